"""A program that speaks JSON, one object in a line, on its standard input and output."""

import asyncio
import contextlib
import os
import secrets
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from accord.agents.loop import BehaviorError
from accord.child_processes import MARK_ENV_VAR, kill_process_tree

MAX_LINE_BYTES = 32 << 20
MAX_ERROR_LINES = 20
MAX_SHOWN_ERROR = 300
# The program's commands must not act in the name of the person who started the agent.
HIDDEN_VARIABLES = ("ACCORD_TOKEN", "ACCORD_PROFILE")


class HostError(BehaviorError):
    """The program failed or does not keep to its protocol; the message is told to the session."""


def host_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a host: the user's own, without what speaks for a person to Accord."""
    own = {name: value for name, value in os.environ.items() if name not in HIDDEN_VARIABLES}
    return {**own, **extra}


class HostProcess:
    """A running program; everything that it started is killed with it."""

    def __init__(self, process: Process, mark: str, name: str) -> None:
        self.process = process
        self.name = name
        self._mark = mark
        self._errors: deque[str] = deque(maxlen=MAX_ERROR_LINES)
        self._reading = asyncio.create_task(self._read_errors())

    @classmethod
    async def start(
        cls, argv: Sequence[str], workdir: Path, environment: Mapping[str, str]
    ) -> "HostProcess":
        """Start the program; raises HostError."""
        mark = secrets.token_hex(16)
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=workdir,
                env={**environment, MARK_ENV_VAR: mark},
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                limit=MAX_LINE_BYTES,
                start_new_session=True,
            )
        except OSError as error:
            raise HostError(f"{argv[0]} cannot be started: {error.strerror or error}") from None
        return cls(process, mark, Path(argv[0]).name)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.returncode is None

    def send(self, message: Mapping[str, Any]) -> None:
        """Write a line; a program that has ended is noticed where its output is read."""
        stdin = self.process.stdin
        if stdin is not None and not stdin.is_closing():
            with contextlib.suppress(ConnectionError, RuntimeError):
                stdin.write(msgspec.json.encode(message) + b"\n")

    async def receive(self) -> dict[str, Any]:
        """The next object; what is not JSON is left out. Raises HostError at the end."""
        while True:
            try:
                line = await self.process.stdout.readline() if self.process.stdout else b""
            except ValueError:
                raise HostError(f"{self.name} wrote a line of more than 32 MiB") from None
            if not line:
                raise await self.ended()
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                message = msgspec.json.decode(line)
                if isinstance(message, dict):
                    return message

    async def ended(self) -> HostError:
        """Why the program is gone, in its own last words."""
        await self.close()
        last = next((line for line in reversed(self._errors) if line), "it said nothing")
        return HostError(f"{self.name} ended with exit code {self.process.returncode}: {last}")

    async def close(self) -> None:
        """Kill it and everything that it started."""
        await kill_process_tree(self.process, self._mark)
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read_errors(self) -> None:
        """Keep the last lines, so that the pipe never fills up."""
        stderr, rest = self.process.stderr, b""
        while stderr is not None and (piece := await stderr.read(8192)):
            *lines, rest = (rest + piece)[-65536:].split(b"\n")
            for line in lines:
                self._remember(line)
        self._remember(rest)

    def _remember(self, line: bytes) -> None:
        text = "".join(each for each in line.decode("utf-8", "replace") if each.isprintable())
        self._errors.append(text.strip()[:MAX_SHOWN_ERROR])
