"""Child processes that can be killed with everything they started."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path

MARK_ENV_VAR = "RUN_BY_ACCORD"  # identifies the descendants of a command


async def start_process(
    argv: Sequence[str],
    workdir: Path,
    mark: str,
    environment: Mapping[str, str],
    output: tuple[int, int] = (PIPE, PIPE),
) -> Process:
    """Start the command in its own process group, so that its children can be killed with it.

    It sees this environment and nothing else, and has no standard input. `output` is where its
    standard output and standard error go.
    """
    return await asyncio.create_subprocess_exec(
        *argv,
        cwd=workdir,
        env={**environment, MARK_ENV_VAR: mark},
        stdin=DEVNULL,
        stdout=output[0],
        stderr=output[1],
        start_new_session=True,
    )


async def kill_process_tree(process: Process, mark: str) -> None:
    """Kill the process group, and on Linux also descendants that left it.

    The descendants before waiting: until Python 3.12 waiting for a process also waits for the end
    of its pipes, and a descendant may hold them.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in await asyncio.to_thread(find_marked_processes, mark):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    await process.wait()


def find_marked_processes(mark: str) -> list[int]:
    """Ids of the processes with this mark in their environment; Linux only."""
    pids = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"{MARK_ENV_VAR}={mark}".encode() in file.read_bytes().split(b"\0"):
                pids.append(int(file.parent.name))
    return pids
