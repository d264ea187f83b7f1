"""`accord agent` as a real process."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.helpers.clients.cli import clean_environment

END_TIMEOUT_S = 60


@contextlib.contextmanager
def agent_process(
    *words: str, cwd: Path, log: Path, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `accord agent` until the end of the block, then terminate it; `log` has its output."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "accord", "agent", *words],
            cwd=cwd,
            env=clean_environment(**(env or {})),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
