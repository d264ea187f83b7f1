"""Which commit a line comes from, as git sees it: what was moved or re-indented counts as old."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from .repository import Repository, refusal, text

IGNORED = ".git-blame-ignore-revs"
PATIENCE_S = 60.0
OFF = ("clean=", "process=", "required=false")
NO_FILTER = frozenset({"unspecified", "unset", "set", None})
_head = re.compile(r"([0-9a-f]{40,64}) (\d+) (\d+)(?: \d+)?").fullmatch


class Line(NamedTuple):
    """A line of a file: where it is now, and in which commit it came, under which name."""

    sha: str
    number: int
    text: str
    path: str

    @property
    def uncommitted(self) -> bool:
        """Whether it is in the work tree only."""
        return set(self.sha) == {"0"}


def blame(repo: Repository, path: str, lines: tuple[int, int] | None, rev: str = "") -> list[Line]:
    """The lines of a file, all or from one to another; nothing of the repository's own is run.

    A file with a filter is read as it lies there; one of which nothing is left then, as committed.
    """
    name = None if rev else _filter(repo, path)
    if name and "=" in name:  # what the command line cannot name
        return blame(repo, path, lines, "HEAD")
    found = _blamed(repo, path, lines, rev, name)
    unlike = name not in NO_FILTER and not lines and all(line.uncommitted for line in found)
    return _blamed(repo, path, lines, "HEAD") if unlike else found


def _blamed(
    repo: Repository, path: str, lines: tuple[int, int] | None, rev: str, name: str | None = None
) -> list[Line]:
    """`name` is the filter of the file, which is not run."""
    span = [f"-L{lines[0]},{lines[1]}"] if lines else []
    without = [word for key in OFF if name is not None for word in ("-c", f"filter.{name}.{key}")]
    words = [*without, "blame", "-w", "-M", "-C20", "--porcelain", "--no-textconv", *span]
    where = [*([rev] if rev else []), "--", path]
    done = repo.run(*words, *_ignoring(repo), *where, patience=PATIENCE_S)
    if done.code:
        done = repo.run(*words, "--ignore-revs-file=", *where, patience=PATIENCE_S)
    if done.code:
        raise refusal(done)
    return list(_lines(text(done.out)))


def filter_of(repo: Repository, path: str) -> str:
    """What git would run on the file of the work tree, by its name; empty for nothing."""
    name = _filter(repo, path)
    return "" if name in NO_FILTER else name


def _filter(repo: Repository, path: str) -> str:
    """The same, or a word for none, which a filter may be called, too."""
    said = text(repo.raw("check-attr", "-z", "filter", "--", path)).split("\0")
    return "".join(said[2:3])


def _ignoring(repo: Repository) -> list[str]:
    """The usual file of commits that only moved things, unless the configuration names one."""
    if repo.maybe("config", "blame.ignoreRevsFile"):
        return []
    top = repo.places.root
    if not top or not repo.says("cat-file", "-e", f"HEAD:{IGNORED}"):
        return []
    return [f"--ignore-revs-file={top}/{IGNORED}"]


def _lines(out: str) -> Iterator[Line]:
    paths: dict[str, str] = {}
    sha, number = "", 0
    for line in out.split("\n"):
        if line.startswith("\t"):
            yield Line(sha, number, line[1:], paths.get(sha, ""))
        elif found := _head(line):
            sha, number = found[1], int(found[3])
        elif line.startswith("filename "):
            paths[sha] = line.removeprefix("filename ")
