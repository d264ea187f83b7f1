"""Servers that start fast: forked from a process that has read all of the code already.

A start of Python and the reading of the code take most of the time of a short life. What is forked
is a process like any other: it has files, locks and memory of its own, and dies of `kill -9`.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, TextIO

LINES = 1
POLL = 0.001
PATIENCE = 60.0
FAILED = 70


class Born:
    """A forked process, as `subprocess.Popen` would show it; its mother says how it ended."""

    def __init__(self, nursery: "Nursery", pid: int) -> None:
        self._nursery = nursery
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """What it ended with, if it has."""
        if self._status is None:
            self._status = self._nursery.ask("ended", self.pid)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """What it ends with."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{self.pid} does not end")
            time.sleep(POLL)
        return status

    def send_signal(self, which: signal.Signals) -> None:
        """Its number stays its own until its mother was asked for its end."""
        if self._status is None:
            os.kill(self.pid, which)


class Nursery:
    """The process that others are forked from, seen from a test."""

    def __enter__(self) -> Self:
        words = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=LINES
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=PATIENCE)

    def spawn(self, words: list[str], log: Path) -> Born:
        """What `accord` does with these words, in a process of its own."""
        return Born(self, self.ask("fork", words[words.index("accord") + 1 :], str(log)))

    def ask(self, *what: Any) -> Any:
        """One question, one answer."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


# Inside of it


def fork(words: list[str], log: str) -> int:
    """One more child."""
    pid = os.fork()
    if pid:
        return pid
    try:
        live(words, log)
    except BaseException:  # noqa: BLE001 - a child never comes back from here
        traceback.print_exc()
        os._exit(FAILED)


def live(words: list[str], log: str) -> NoReturn:
    """A child's whole life."""
    from accord.cli.main import main

    nothing = os.open(os.devnull, os.O_RDONLY)
    to = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for old, new in ((0, nothing), (1, to), (2, to)):
        os.dup2(new, old)
    os.close(nothing)
    os.close(to)
    status = main(words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def ended(pid: int) -> int | None:
    """What a child ended with, below 0 if by a signal, as Popen says it."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def read_everything() -> None:
    """All that a server would read before it serves."""
    import uvloop  # noqa: F401

    from accord import serving  # noqa: F401
    from accord.cli import lock, main, signals  # noqa: F401

    main.parser("serve", main.load("serve"))


def nurse(asked: TextIO) -> None:
    """Until nobody asks any more."""
    read_everything()
    gc.collect()
    gc.freeze()
    ways: dict[str, Any] = {"fork": fork, "ended": ended}
    for line in asked:
        way, *given = json.loads(line)
        print(json.dumps(ways[way](*given)), flush=True)


if __name__ == "__main__":
    nurse(sys.stdin)
