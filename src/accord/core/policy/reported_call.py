"""A call that a hook or executor reports, in the form that the rules read."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from accord.core.kernel.command_line import ARGV, COMMAND, lines_agree, words_of

REPORTED_KEY = "reported"
PATH_KEYS = (
    *("file_path", "path", "notebook_path", "filepath", "file", "filename", "dir_path"),
    *("absolute_path", "directory"),
)
PATHS_KEYS = ("paths", "file_paths", "files")
# Arguments of hosts' search tools that are patterns of files, and so name files, too.
PATTERN_KEYS: Mapping[str, tuple[str, ...]] = {
    "Glob": ("pattern", "glob_pattern"),
    "glob": ("pattern",),
    "Grep": ("glob",),
    "grep_search": ("include_pattern",),
    "search_file_content": ("include",),
    "read_many_files": ("include",),
}
# These tell names of files, and nothing of what is in them.
LISTING_TOOLS = frozenset({"Glob", "glob"})
PATCH_KEYS = ("patch", "input", COMMAND, "diff")
MAX_RESOLVED = 4096


class CallKind(StrEnum):
    """What a host's tool does, whatever the host calls it."""

    SHELL = "shell"
    WRITE = "write"
    PATCH = "patch"
    READ = "read"
    FETCH = "fetch"
    MCP = "mcp"
    OTHER = "other"


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a call runs; all paths are absolute.

    `resolved`: what each path of `paths_named` really is. `protected`: Accord's own directories.
    """

    cwd: str
    worktree: str
    home: str = ""
    protected: tuple[str, ...] = ()
    resolved: Mapping[str, tuple[str, ...]] = {}
    mcp_server: str = ""


class ReportedCall(msgspec.Struct, frozen=True):
    """One call of a tool, as its host is about to run it."""

    kind: CallKind
    tool: str
    arguments: Mapping[str, Any]
    place: Place

    @property
    def command(self) -> str | None:
        """The text of a shell call, if the arguments name exactly one."""
        value = self.arguments.get(COMMAND)
        has_one = isinstance(value, str) and ARGV not in self.arguments
        return value if has_one and lines_agree(self.arguments) else None

    @property
    def argv(self) -> tuple[str, ...] | None:
        """The words of a call that runs without a shell."""
        words = words_of(self.arguments)
        return tuple(words) if words and lines_agree(self.arguments) else None

    @property
    def paths(self) -> tuple[str, ...] | None:
        """The paths that the arguments name; None if one is not text."""
        found = [self.arguments[key] for key in PATH_KEYS if key in self.arguments]
        for key in PATHS_KEYS:
            listed = self.arguments.get(key, [])
            found += listed if isinstance(listed, list | tuple) else [listed]
        present = [path for path in found if path is not None]
        return tuple(present) if all(isinstance(path, str) for path in present) else None

    @property
    def patterns(self) -> tuple[str, ...] | None:
        """The patterns of files that the arguments of a search name; None if one is not text."""
        values = [self.arguments.get(key) for key in PATTERN_KEYS.get(self.tool, ())]
        listed = [each if isinstance(each, list | tuple) else [each] for each in values]
        present = [pattern for each in listed for pattern in each if pattern is not None]
        return tuple(present) if all(isinstance(each, str) for each in present) else None

    @property
    def patch(self) -> str | None:
        """The text of a patch, if exactly one argument holds it."""
        found = [self.arguments[key] for key in PATCH_KEYS if key in self.arguments]
        return found[0] if len(found) == 1 and isinstance(found[0], str) else None


class Reported(msgspec.Struct, frozen=True, omit_defaults=True):
    """`metadata.reported` of a `tool.propose`: a hook or executor saw this call."""

    kind: CallKind
    repository: str
    place: Place
    host: str = ""


def reported_of(metadata: Mapping[str, Any] | None) -> Reported | None:
    """What a proposal says about its call; None if it is not a reported one.

    Raises `msgspec.ValidationError` if it is malformed.
    """
    value = (metadata or {}).get(REPORTED_KEY)
    return None if value is None else msgspec.convert(value, Reported)


def reported_metadata(call: ReportedCall, repository: str, host: str = "") -> dict[str, Any]:
    """The metadata that marks a proposal as this call."""
    reported = Reported(call.kind, repository, call.place, host)
    return {REPORTED_KEY: msgspec.to_builtins(reported)}


PATCH_MARKS = (
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "--- ",
    "+++ ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
)
DELETION_MARKS = ("*** Delete File: ", "deleted file mode")
NO_FILE = "/dev/null"


def patched_paths(patch: str) -> Iterator[str]:
    """The files that a patch names, in either form; lines of content may add some to them."""
    for line in patch.splitlines():
        mark = next((mark for mark in PATCH_MARKS if line.startswith(mark)), None)
        if mark is None:
            continue
        path = line.removeprefix(mark).split("\t")[0].strip()
        is_diff = mark in ("--- ", "+++ ")
        if path and path != NO_FILE:
            yield path[2:] if is_diff and path.startswith(("a/", "b/")) else path


def deletes_files(patch: str) -> bool:
    """Whether a patch removes a file."""
    lines = patch.splitlines()
    return any(line.startswith(DELETION_MARKS) or line == f"+++ {NO_FILE}" for line in lines)
