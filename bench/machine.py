"""What the machine tells of a process: CPU time, memory, and which core it runs on."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


@cache
def cores() -> tuple[int | None, int | None]:
    """A core for the server and another one for the load, where there are two to be had."""
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    mine = sorted(os.sched_getaffinity(0))
    return (mine[0], mine[1]) if len(mine) > 1 else (None, None)


def pin(core: int | None, pid: int = 0) -> None:
    """This process, or that one with all its threads, stays on this core from now on."""
    if core is not None:
        for thread in Path(f"/proc/{pid}/task").iterdir() if pid else (Path("0"),):
            os.sched_setaffinity(int(thread.name), {core})


@contextmanager
def on_all_cores() -> Iterator[None]:
    """What is started here is not pinned: a browser is many processes."""
    if not hasattr(os, "sched_getaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core for core in cores() if core is not None} or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_s(pid: int) -> float:
    """CPU seconds of a process: exact while all its threads live, else in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    coarse = (int(fields[11]) + int(fields[12])) / TICK
    exact = sum(_thread_s(path) for path in Path(f"/proc/{pid}/task").iterdir())
    threads_ended = coarse - exact > 5 / TICK
    return coarse if threads_ended else exact


def _thread_s(task: Path) -> float:
    try:
        return int((task / "schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def rss_kib(pid: int) -> int:
    """Resident memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


def busy_s() -> float:
    """CPU seconds the whole machine was busy: shows what else ran beside a measurement."""
    with Path("/proc/stat").open() as file:
        fields = [int(word) for word in file.readline().split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / TICK


def allow_many_files() -> int:
    """As many open files as the machine lets us have."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
