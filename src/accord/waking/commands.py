"""Runs a command that wakes an agent: bounded in time, output and environment."""

import asyncio
import os
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self

from accord.child_processes import kill_process_tree, start_process
from accord.core.attention.waking.prompt import clean
from accord.core.kernel.redaction import redact

# What a program needs to find its files and its language. Everything else may hold a secret; what
# a vendor's program needs besides is named in its row and by the operator.
COMMON_VARIABLES = frozenset(
    {*("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")}
)
READ_BYTES = 8 << 10
# Of each stream only the end is kept: that is where programs say why they failed.
KEPT_BYTES = 8 << 10
MAX_DETAIL = 300
# A descendant that left the process group may keep a pipe open.
PIPE_GRACE_S = 1.0


class CommandState(StrEnum):
    """How a command ended."""

    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    NOT_STARTED = "not_started"


class WakeCommand(NamedTuple):
    """A command as an argument array, where it runs, and for how long at most."""

    argv: tuple[str, ...]
    directory: str
    environment: Mapping[str, str]
    timeout_s: float


class CommandOutcome(NamedTuple):
    """How it ended, and the end of what it printed."""

    state: CommandState
    exit_code: int | None
    output: str

    @property
    def detail(self) -> str:
        """One line for the audit: cleaned, without secrets, bounded."""
        last = next((line for line in reversed(self.output.splitlines()) if line.strip()), "")
        words = {
            CommandState.DONE: "It ended with 0",
            CommandState.FAILED: f"It ended with {self.exit_code}",
            CommandState.TIMED_OUT: "It was stopped because it took too long",
            CommandState.NOT_STARTED: "It could not be started",
        }[self.state]
        text = redact(" ".join(clean(last).split()))
        return f"{words}: {text}"[:MAX_DETAIL] if text else words


def environment_for(full: Mapping[str, str], names: Sequence[str] = ()) -> dict[str, str]:
    """The part of an environment that a woken program sees."""
    allowed = COMMON_VARIABLES.union(names)
    return {
        name: value for name, value in full.items() if name in allowed or name.startswith("LC_")
    }


def shown(argv: Sequence[str]) -> str:
    """The command for people to read (MSG 3.8); it is never run in this form."""
    return redact(clean(shlex.join(argv)))


async def run_wake_command(
    command: WakeCommand, on_start: Callable[[], None] = lambda: None
) -> CommandOutcome:
    """Run it to its end, and leave no process behind, however it ends."""
    mark = secrets.token_hex(16)
    async with AsyncExitStack() as pipes:
        stdout = await pipes.enter_async_context(_TailPipe())
        stderr = await pipes.enter_async_context(_TailPipe())
        try:
            process = await start_process(
                command.argv,
                Path(command.directory),
                mark,
                command.environment,
                (stdout.write_end, stderr.write_end),
            )
        except OSError as error:
            return CommandOutcome(CommandState.NOT_STARTED, None, error.strerror or str(error))
        finally:
            stdout.close_write_end()
            stderr.close_write_end()
        on_start()
        timed_out = False
        try:
            async with asyncio.timeout(command.timeout_s):
                await process.wait()
        except TimeoutError:
            timed_out = True
        finally:
            await kill_process_tree(process, mark)
        await asyncio.wait({stdout.reading, stderr.reading}, timeout=PIPE_GRACE_S)
        output = f"{stdout.text}\n{stderr.text}"
    if timed_out:
        return CommandOutcome(CommandState.TIMED_OUT, process.returncode, output)
    state = CommandState.FAILED if process.returncode else CommandState.DONE
    return CommandOutcome(state, process.returncode, output)


class _TailPipe:
    """A pipe of which only the end is kept; the rest is dropped, so that the program never blocks.

    Our own and not the process's, so that a descendant that keeps it open does not hold us up.
    """

    def __init__(self) -> None:
        self._kept = b""

    async def __aenter__(self) -> Self:
        read_end, self.write_end = os.pipe()
        self._is_open = True
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", 0)
        )
        self.reading = asyncio.create_task(self._read(reader))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close_write_end()
        self.reading.cancel()
        self._transport.close()

    def close_write_end(self) -> None:
        """Only the program writes."""
        if self._is_open:
            self._is_open = False
            os.close(self.write_end)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while piece := await reader.read(READ_BYTES):
            self._kept = (self._kept + piece)[-KEPT_BYTES:]

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")
