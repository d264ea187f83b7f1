"""The file of `accord serve --wake FILE`: which agents this server may wake by itself, and how.

The server runs a command only for an agent, a directory and a program that an operator has named
here. What an agent says about itself in its heartbeats selects among these and adds nothing.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Annotated

import msgspec
from msgspec import Meta

from accord.core.attention.runtimes import check_directory
from accord.core.kernel.actor import DEFAULT_WORKSPACE
from accord.core.kernel.refusal import Reason, Refused
from accord.waking.adapters import ADAPTERS

MAX_FILE_BYTES = 256 << 10
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

Text = Annotated[str, Meta(min_length=1, max_length=1024)]
Word = Annotated[str, Meta(max_length=1024, pattern="^[^\x00]*$")]
VariableName = Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


class WakeableAgent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table `[[agent]]` of the file."""

    id: Text
    runtime: Text
    directory: Text
    program: Text = ""  # default: the vendor's own name, found on PATH when the server starts
    workspace: Text = DEFAULT_WORKSPACE
    resume: bool = True
    spawn: bool = False
    options: tuple[Word, ...] = ()
    environment: tuple[VariableName, ...] = ()
    timeout_seconds: Annotated[int, Meta(ge=5, le=1740)] = 900


class WakeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file: one entry for each agent that may be woken."""

    agent: Annotated[tuple[WakeableAgent, ...], Meta(max_length=1000)] = ()


WakeableAgents = Mapping[tuple[str, str], tuple[WakeableAgent, ...]]  # by workspace and agent


def load_wake_file(path: Path) -> WakeableAgents:
    """The agents that this server may wake; Refused if the file cannot be trusted or read."""
    rows = _parse(path, _read(path)).agent
    found: dict[tuple[str, str], tuple[WakeableAgent, ...]] = {}
    for row in rows:
        key = (row.workspace, row.id)
        found[key] = (*found.get(key, ()), _checked(path, row))
    return found


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            info = os.fstat(file.fileno())
            if info.st_mode & OTHERS_MAY_WRITE or info.st_uid not in {0, os.geteuid()}:
                raise _wrong(
                    path,
                    "others may write it, and it says which programs the server runs; give it to "
                    "your own user with mode 600",
                )
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _wrong(path, f"it cannot be read ({error.strerror or error})") from None
    if len(data) > MAX_FILE_BYTES:
        raise _wrong(path, f"it is larger than {MAX_FILE_BYTES >> 10} KiB")
    return data.decode("utf-8", "replace")


def _parse(path: Path, text: str) -> WakeFile:
    try:
        return msgspec.convert(tomllib.loads(text), WakeFile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise _wrong(path, str(error)) from None


def _checked(path: Path, row: WakeableAgent) -> WakeableAgent:
    """The row with its program as an absolute path and its directory without symbolic links."""
    adapter = ADAPTERS.get(row.runtime)
    if adapter is None:
        known = ", ".join(sorted(ADAPTERS))
        raise _wrong(path, f"{row.runtime} cannot be woken; use one of {known}")
    check_directory(row.directory)
    directory = Path(row.directory)
    if not directory.is_dir():
        raise _wrong(path, f"the directory {row.directory} of {row.id} does not exist")
    program = row.program or which(adapter.program) or ""
    if not Path(program).is_absolute() or not os.access(program, os.X_OK):
        raise _wrong(
            path,
            f"the program of {row.id} was not found; set program to the absolute path of "
            f"{adapter.program}",
        )
    return msgspec.structs.replace(row, program=program, directory=os.path.realpath(row.directory))


def _wrong(path: Path, detail: str) -> Refused:
    return Refused(Reason.MALFORMED, f"The file {path} of --wake is not usable: {detail}")
