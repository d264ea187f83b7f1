"""Which commit a line comes from; moved or re-indented lines keep their original commit."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from .repository import Repository, decode_git, error_from_result

IGNORE_REVS_FILE = ".git-blame-ignore-revs"
BLAME_TIMEOUT_S = 60.0
DISABLED_FILTER_KEYS = ("clean=", "process=", "required=false")
NO_FILTER_VALUES = frozenset({"unspecified", "unset", "set", None})
_match_header = re.compile(r"([0-9a-f]{40,64}) (\d+) (\d+)(?: \d+)?").fullmatch


class BlameLine(NamedTuple):
    """One line of a file, with the commit that introduced it and the file's path in that commit."""

    sha: str
    number: int
    text: str
    path: str

    @property
    def is_uncommitted(self) -> bool:
        """Whether the line exists in the work tree only."""
        return set(self.sha) == {"0"}


def blame(
    repo: Repository, path: str, lines: tuple[int, int] | None, rev: str = ""
) -> list[BlameLine]:
    """Blame a file, or a range of its lines, without running any filter the repository configures.

    A filtered file is compared unfiltered. If then no line matches a commit, the version at HEAD
    is blamed instead.
    """
    name = None if rev else _filter_attribute(repo, path)
    if name and "=" in name:  # `-c filter.NAME.clean=` cannot express such a name
        return blame(repo, path, lines, "HEAD")
    result = _run_blame(repo, path, lines, rev, name)
    only_uncommitted = (
        name not in NO_FILTER_VALUES and not lines and all(line.is_uncommitted for line in result)
    )
    return _run_blame(repo, path, lines, "HEAD") if only_uncommitted else result


def _run_blame(
    repo: Repository, path: str, lines: tuple[int, int] | None, rev: str, name: str | None = None
) -> list[BlameLine]:
    """Run `git blame`; `name` is the file's filter, which is disabled."""
    range_options = [f"-L{lines[0]},{lines[1]}"] if lines else []
    disable_filter = [
        option
        for key in DISABLED_FILTER_KEYS
        if name is not None
        for option in ("-c", f"filter.{name}.{key}")
    ]
    command = [
        *disable_filter,
        "blame",
        "-w",
        "-M",
        "-C20",
        "--porcelain",
        "--no-textconv",
        *range_options,
    ]
    target = [*([rev] if rev else []), "--", path]
    done = repo.run(*command, *_ignore_revs_options(repo), *target, timeout_s=BLAME_TIMEOUT_S)
    if done.code:
        done = repo.run(*command, "--ignore-revs-file=", *target, timeout_s=BLAME_TIMEOUT_S)
    if done.code:
        raise error_from_result(done)
    return list(_parse_porcelain(decode_git(done.out)))


def filter_of(repo: Repository, path: str) -> str:
    """The name of the filter that git would run on the file in the work tree; empty for none."""
    name = _filter_attribute(repo, path)
    return "" if name in NO_FILTER_VALUES else name


def _filter_attribute(repo: Repository, path: str) -> str:
    """The raw `filter` attribute: a filter's name, or a value such as `unset` for none."""
    fields = decode_git(repo.run_bytes("check-attr", "-z", "filter", "--", path)).split("\0")
    return "".join(fields[2:3])


def _ignore_revs_options(repo: Repository) -> list[str]:
    """Options for the committed `.git-blame-ignore-revs`, unless git is configured with a file."""
    if repo.try_text("config", "blame.ignoreRevsFile"):
        return []
    top = repo.directories.root
    if not top or not repo.succeeds("cat-file", "-e", f"HEAD:{IGNORE_REVS_FILE}"):
        return []
    return [f"--ignore-revs-file={top}/{IGNORE_REVS_FILE}"]


def _parse_porcelain(out: str) -> Iterator[BlameLine]:
    paths: dict[str, str] = {}
    sha, number = "", 0
    for line in out.split("\n"):
        if line.startswith("\t"):
            yield BlameLine(sha, number, line[1:], paths.get(sha, ""))
        elif match := _match_header(line):
            sha, number = match[1], int(match[3])
        elif line.startswith("filename "):
            paths[sha] = line.removeprefix("filename ")
