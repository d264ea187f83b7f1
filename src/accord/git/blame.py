"""Which commit a line comes from, as git sees it: what was moved or re-indented counts as old."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from .repository import Repository, refusal, text

IGNORED = ".git-blame-ignore-revs"
PATIENCE_S = 60.0
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
    """The lines of a file, all or from one to another; nothing of the repository's own is run."""
    span = [f"-L{lines[0]},{lines[1]}"] if lines else []
    words = ["blame", "-w", "-M", "-C20", "--porcelain", "--no-textconv", *span]
    rev = rev or ("HEAD" if _is_filtered(repo, path) else "")
    where = [*([rev] if rev else []), "--", path]
    done = repo.run(*words, *_ignoring(repo), *where, patience=PATIENCE_S)
    if done.code:
        done = repo.run(*words, "--ignore-revs-file=", *where, patience=PATIENCE_S)
    if done.code:
        raise refusal(done)
    return list(_lines(text(done.out)))


def _is_filtered(repo: Repository, path: str) -> bool:
    """Whether git would run a program on the file of the work tree; it is asked as committed."""
    said = text(repo.raw("check-attr", "-z", "filter", "--", path)).split("\0")
    return said[2:3] not in (["unspecified"], ["unset"])


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
