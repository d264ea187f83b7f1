"""CPU time of this process and all that it started, those that have ended included."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# utime, stime, cutime and cstime, counted behind the command, which is in brackets.
TIMES = slice(11, 15)


def tree_cpu_s() -> float:
    """CPU seconds so far; a process that outlives its parent is no longer counted."""
    if Path("/proc/self/stat").exists():
        return sum(map(_process_cpu_s, _tree(os.getpid())))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in _tasks(pid):
        for child in _read(task / "children").split():
            yield from _tree(int(child))


def _tasks(pid: int) -> list[Path]:
    """None if the process has ended meanwhile."""
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def _process_cpu_s(pid: int) -> float:
    """What the process used itself, and what its children used for which it has waited."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[TIMES])) / TICKS_PER_S


def _read(file: Path) -> str:
    """Empty if the process has ended meanwhile."""
    try:
        return file.read_text("utf-8", errors="replace")
    except OSError:
        return ""
