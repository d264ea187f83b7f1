"""The tools `read_file`, `list_files` and `search_files`: they change nothing.

A path is read only if it leads where it led when the call was proposed; `real_paths` among the
arguments says where a link leads, so that people see it.
"""

import asyncio
import fnmatch
import os
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from accord.agents import shell

REAL_PATHS = "real_paths"
READING_TOOLS = ("read_file", "list_files", "search_files")
MAX_LINES = 2000
MAX_LINE_LENGTH = 2000
MAX_FILE_BYTES = 32 << 20
MAX_LISTED = 1000
HIDDEN_DIRECTORIES = (".git", "node_modules", ".venv", "__pycache__")


class ReadingError(Exception):
    """The call cannot be run; the message says why."""


async def run_reading_tool(
    name: str,
    arguments: Mapping[str, Any],
    workdir: Path,
    listener: shell.OutputListener,
    limits: shell.CommandLimits,
) -> shell.CommandResult:
    """Read, list or search; the output is what the tool prints."""
    started_at = time.monotonic()
    try:
        path = checked_path(arguments, workdir)
        if name == "search_files":
            call = shell.ShellCall(argv=search_command(arguments, path, workdir))
            found = await shell.run_command(call, workdir, listener, limits)
            # grep exits with 1 if it finds nothing.
            return shell.CommandResult(0, found.duration_ms) if found.exit_code == 1 else found
        read = read_lines if name == "read_file" else list_files
        text = await asyncio.to_thread(read, arguments, path)
    except ReadingError as error:
        return shell.CommandResult(None, 0, str(error))
    except OSError as error:
        return shell.CommandResult(None, 0, f"It cannot be read: {error.strerror or error}")
    await listener("stdout", text[: limits.max_output_bytes])
    return shell.CommandResult(
        0,
        int((time.monotonic() - started_at) * 1000),
        truncated=len(text) > limits.max_output_bytes,
    )


def checked_path(arguments: Mapping[str, Any], workdir: Path) -> Path:
    """The path of a call, if it leads where it led when people saw the call."""
    named = arguments.get("path", ".")
    if not isinstance(named, str) or "\0" in named:
        raise ReadingError("path must be text")
    path = os.path.normpath(workdir.resolve() / named)
    real, known = os.path.realpath(path), arguments.get(REAL_PATHS)
    seen = known.get(path, [path]) if isinstance(known, dict) else [path]
    if [real] != list(seen):
        raise ReadingError(f"{named} does not lead where it led when the call was proposed")
    return Path(real)


def read_lines(arguments: Mapping[str, Any], path: Path) -> str:
    """Lines of a text file, from `offset` (1 is the first), at most `limit`."""
    first = whole_number(arguments, "offset", 1)
    limit = min(whole_number(arguments, "limit", MAX_LINES), MAX_LINES)
    if not path.is_file():
        raise ReadingError(f"{path} is not a file")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ReadingError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB; search in it")
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = islice(file, first - 1, first - 1 + limit)
        return "".join(
            line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]}…\n"
            for line in lines
        )


def list_files(arguments: Mapping[str, Any], path: Path) -> str:
    """The files below a directory that match `glob`, sorted."""
    pattern = arguments.get("glob", "*")
    if not isinstance(pattern, str):
        raise ReadingError("glob must be text")
    if not path.is_dir():
        raise ReadingError(f"{path} is not a directory")
    found = sorted(islice(_matching(path, pattern), MAX_LISTED + 1))
    more = "…\n" if len(found) > MAX_LISTED else ""
    return "".join(f"{each}\n" for each in found[:MAX_LISTED]) + more


def _matching(top: Path, pattern: str) -> Iterator[str]:
    for folder, directories, files in os.walk(top):
        directories[:] = sorted(each for each in directories if each not in HIDDEN_DIRECTORIES)
        for name in sorted(files):
            relative = os.path.relpath(Path(folder) / name, top)
            if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(relative, pattern):
                yield relative


def search_command(arguments: Mapping[str, Any], path: Path, workdir: Path) -> tuple[str, ...]:
    """The search as a command: grep can be killed, a regular expression in Python cannot."""
    pattern, glob = arguments.get("pattern"), arguments.get("glob")
    if not isinstance(pattern, str) or not pattern or "\0" in pattern:
        raise ReadingError("pattern must be text")
    if glob is not None and (not isinstance(glob, str) or "\0" in glob):
        raise ReadingError("glob must be text")
    top = workdir.resolve()
    place = os.path.relpath(path, top) if path.is_relative_to(top) else str(path)
    excluded = [f"--exclude-dir={name}" for name in HIDDEN_DIRECTORIES]
    included = [f"--include={glob}"] if glob else []
    return ("grep", "-rnHIE", *excluded, *included, "-e", pattern, "--", place)


def whole_number(arguments: Mapping[str, Any], key: str, default: int) -> int:
    """A positive number among the arguments."""
    value = arguments.get(key, default)
    if type(value) is not int or value < 1:
        raise ReadingError(f"{key} must be a positive whole number")
    return value
