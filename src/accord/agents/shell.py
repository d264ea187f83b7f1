"""Running a command: an array of words, never a shell's line; bounded in time, output and sight."""

import asyncio
import codecs
import contextlib
import os
import secrets
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

Stream = Literal["stdout", "stderr"]
Listener = Callable[[Stream, str], Awaitable[None]]

# A command sees what it needs to find programs, to speak the user's language and to find the git
# bridge, and no more: what is not on this list may be a secret.
VISIBLE = frozenset(
    {
        *("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"),
        *("ACCORD_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    }
)
PIECE = 8192
MARK = "RUN_BY_ACCORD"  # by this the children of a command are known


class Limits(msgspec.Struct, frozen=True):
    """How long a command may take, and how much of what it prints is passed on."""

    seconds: float = 60.0
    output: int = 256 << 10


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool `shell`."""

    argv: tuple[str, ...]
    timeout_seconds: float | None = None


class Done(msgspec.Struct, frozen=True):
    """How a command ended. `code` is None where it never started."""

    code: int | None
    duration_ms: int
    problem: str | None = None
    cut: bool = False

    @property
    def success(self) -> bool:
        """Whether it did what it was to do."""
        return self.code == 0 and self.problem is None


class NotACommandError(ValueError):
    """The arguments name no command that could be run."""


def call(arguments: Mapping[str, Any]) -> Call:
    """The command in these arguments; a line for a shell to take apart is none."""
    try:
        made = msgspec.convert(dict(arguments), Call)
    except msgspec.ValidationError as error:
        raise NotACommandError(f"shell takes an array of words as argv: {error}") from None
    if not made.argv or not made.argv[0] or any("\0" in word for word in made.argv):
        raise NotACommandError("argv begins with the name of a program")
    return made


def environment(full: Mapping[str, str]) -> dict[str, str]:
    """What a command may see of our environment."""
    return {
        name: value for name, value in full.items() if name in VISIBLE or name.startswith("LC_")
    }


async def run(
    made: Call,
    workdir: Path,
    listener: Listener,
    limits: Limits | None = None,
    told: Mapping[str, str] | None = None,
) -> Done:
    """Run it there; the listener hears what it prints as it prints it.

    `told` is in its environment besides.
    """
    bounds = limits or Limits()
    began = time.monotonic()
    mark = secrets.token_hex(16)

    def took() -> int:
        return int((time.monotonic() - began) * 1000)

    try:
        process = await start(made.argv, workdir, mark, told or {})
    except OSError as error:
        return Done(None, took(), f"{made.argv[0]} cannot be run: {error.strerror or error}")
    meter = Meter(listener, bounds.output)
    seconds = min(made.timeout_seconds or bounds.seconds, bounds.seconds)
    problem = None
    try:
        async with asyncio.timeout(seconds):
            await meter.drain(process)
    except TimeoutError:
        problem = f"stopped after {seconds:g} s"
    finally:
        await end(process, mark)
    if problem is None and process.returncode:
        problem = f"ended with {process.returncode}"
    return Done(process.returncode, took(), problem, cut=meter.cut)


async def start(argv: Sequence[str], workdir: Path, mark: str, told: Mapping[str, str]) -> Process:
    """The process, in a group of its own, so that its children end with it."""
    return await asyncio.create_subprocess_exec(
        *argv,
        cwd=workdir,
        env={**environment(os.environ), **told, MARK: mark},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )


async def end(process: Process, mark: str) -> None:
    """Nothing of it runs on, not even what left its group, where the system lets us see that."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    for pid in strays(mark):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def strays(mark: str) -> list[int]:
    """Processes that were started with this mark; only Linux tells."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in file.read_bytes().split(b"\0"):
                found.append(int(file.parent.name))
    return found


class Meter:
    """Passes output on until there is too much of it; the rest is read and dropped."""

    def __init__(self, listener: Listener, most: int) -> None:
        self._listener = listener
        self._left = most
        self.cut = False

    async def drain(self, process: Process) -> None:
        """Until it has closed its output and ended."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._pass_on("stdout", process.stdout))
            both.create_task(self._pass_on("stderr", process.stderr))
        await process.wait()

    async def _pass_on(self, name: Stream, source: asyncio.StreamReader | None) -> None:
        if source is None:
            return
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while piece := await source.read(PIECE):
            kept = piece[: self._left]
            self._left -= len(kept)
            self.cut = self.cut or len(kept) < len(piece)
            if text := decoder.decode(kept):
                await self._listener(name, text)
        if text := decoder.decode(b"", final=True):
            await self._listener(name, text)
