"""Runs commands given as argument arrays, with limits on time, output and environment."""

import asyncio
import codecs
import os
import secrets
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from accord.child_processes import kill_process_tree, start_process
from accord.core.kernel.command_line import lines_agree

StreamName = Literal["stdout", "stderr"]
OutputListener = Callable[[StreamName, str], Awaitable[None]]

# Commands see only the variables needed to find programs, the locale and the git bridge:
# any other variable may hold a secret.
ALLOWED_ENV_VARS = frozenset(
    {
        *("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"),
        *("ACCORD_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    }
)
READ_CHUNK_BYTES = 8192


class CommandLimits(msgspec.Struct, frozen=True):
    """How long a command may run, and how much of its output is forwarded."""

    timeout_s: float = 60.0
    max_output_bytes: int = 256 << 10


class ShellCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the `shell` tool; a `git commit` may show the `tree` that it commits.

    `argv` is what runs; `command` and `full_command` repeat it for programs that show those.
    """

    argv: tuple[str, ...]
    timeout_seconds: float | None = None
    tree: str | None = None
    command: str | None = None
    full_command: str | None = None


class CommandResult(msgspec.Struct, frozen=True):
    """How a command ended; `exit_code` is None if it never started."""

    exit_code: int | None
    duration_ms: int
    error: str | None = None
    truncated: bool = False

    @property
    def success(self) -> bool:
        """Whether it exited with 0, within its time limit."""
        return self.exit_code == 0 and self.error is None


class InvalidCommandError(ValueError):
    """The arguments of the `shell` tool cannot be run."""


def parse_call(arguments: Mapping[str, Any]) -> ShellCall:
    """The command in a tool's arguments; a single command line for a shell is not accepted."""
    try:
        call = msgspec.convert(dict(arguments), ShellCall)
    except msgspec.ValidationError as error:
        raise InvalidCommandError(f"shell needs an array of strings as argv: {error}") from None
    if not call.argv or not call.argv[0] or any("\0" in word for word in call.argv):
        raise InvalidCommandError("argv must begin with a program's name, without NUL characters")
    if not lines_agree(arguments):
        raise InvalidCommandError("command and full_command must repeat argv, quoted for a shell")
    return call


def visible_environment(full: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that commands may see."""
    return {
        name: value
        for name, value in full.items()
        if name in ALLOWED_ENV_VARS or name.startswith("LC_")
    }


async def run_command(
    call: ShellCall,
    workdir: Path,
    listener: OutputListener,
    limits: CommandLimits | None = None,
    extra_env: Mapping[str, str] | None = None,
) -> CommandResult:
    """Run a command in `workdir`; `listener` receives its output as it is printed.

    `extra_env` is added to its environment.
    """
    limits = limits or CommandLimits()
    started_at = time.monotonic()
    mark = secrets.token_hex(16)

    def elapsed_ms() -> int:
        return int((time.monotonic() - started_at) * 1000)

    try:
        environment = {**visible_environment(os.environ), **(extra_env or {})}
        process = await start_process(call.argv, workdir, mark, environment)
    except OSError as error:
        return CommandResult(
            None, elapsed_ms(), f"{call.argv[0]} cannot be run: {error.strerror or error}"
        )
    output = OutputLimiter(listener, limits.max_output_bytes)
    seconds = min(call.timeout_seconds or limits.timeout_s, limits.timeout_s)
    error_text = None
    try:
        async with asyncio.timeout(seconds):
            await output.drain(process)
    except TimeoutError:
        error_text = f"stopped after {seconds:g} s (timeout)"
    finally:
        await kill_process_tree(process, mark)
    if error_text is None and process.returncode:
        error_text = f"exited with {process.returncode}"
    return CommandResult(process.returncode, elapsed_ms(), error_text, truncated=output.truncated)


class OutputLimiter:
    """Forwards output up to a limit; the rest is read and discarded."""

    def __init__(self, listener: OutputListener, max_bytes: int) -> None:
        self._listener = listener
        self._bytes_left = max_bytes
        self.truncated = False

    async def drain(self, process: Process) -> None:
        """Forward output until the process has ended."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._pass_on("stdout", process.stdout))
            both.create_task(self._pass_on("stderr", process.stderr))
        await process.wait()

    async def _pass_on(self, name: StreamName, source: asyncio.StreamReader | None) -> None:
        if source is None:
            return
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while piece := await source.read(READ_CHUNK_BYTES):
            kept = piece[: self._bytes_left]
            self._bytes_left -= len(kept)
            self.truncated = self.truncated or len(kept) < len(piece)
            if text := decoder.decode(kept):
                await self._listener(name, text)
        if text := decoder.decode(b"", final=True):
            await self._listener(name, text)
