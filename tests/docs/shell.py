"""A shell that somebody types into."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

DONE_MARK = "--- done:"
DONE_PATTERN = re.compile(rf"\n{DONE_MARK}(\d+)\n".encode())
COMMAND_TIMEOUT_S = 60.0


class CommandResult(NamedTuple):
    """What a command printed, and its exit code."""

    text: str
    code: int


class Shell:
    """One bash, so that variables and background jobs stay from line to line."""

    def __init__(self, directory: Path, env: dict[str, str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._output = directory.with_name("output")
        self._output.touch()
        with self._output.open("ab") as out:
            self._bash = subprocess.Popen(
                ["bash", "--norc", "--noprofile"],
                cwd=directory,
                env={**shell_environment(directory), **env},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self, command: str) -> CommandResult:
        """Type it and wait until the prompt is back."""
        assert self._bash.stdin is not None
        started = len(self._output.read_bytes())
        line = f"{command}\nprintf '\\n{DONE_MARK}%d\\n' $?\n"
        self._bash.stdin.write(line.encode())
        self._bash.stdin.flush()
        deadline = time.monotonic() + COMMAND_TIMEOUT_S
        # Bytes: what is written just now may end within a letter, or go on behind the mark.
        while not (done := DONE_PATTERN.search(text := self._output.read_bytes()[started:])):
            assert time.monotonic() < deadline, f"this does not come back: {command}\n{text!r}"
            time.sleep(0.02)
        return CommandResult(text[: done.start()].decode("utf-8"), int(done[1]))

    def close(self) -> None:
        """End it, and whatever was left running in it."""
        os.killpg(self._bash.pid, signal.SIGTERM)
        assert self._bash.stdin is not None
        self._bash.stdin.close()
        self._bash.wait(COMMAND_TIMEOUT_S)


def shell_environment(home: Path) -> dict[str, str]:
    """A plain environment in which `accord` and `python` are the ones under test."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    here = str(Path(sys.executable).parent)
    return {
        **kept,
        "PATH": f"{here}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "HOME": str(home),
        "USER": "alice",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "COLUMNS": "100",
    }
