"""The names of changes: the same wherever a change is applied, whatever its commit is called.

Spaces count: in some languages they are half of what a line means.
"""

from collections.abc import Iterable
from typing import NamedTuple

from .process import Done
from .repository import Commit, Repository, refusal, text

SHAPE = ("-p", "-U3", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
MERGES = ("--diff-merges=first-parent",)


class Patch(NamedTuple):
    """What a commit does: the name of its change, empty where it changes nothing, and the paths."""

    name: str
    files: tuple[str, ...]


def between(repo: Repository, base: str, tip: str) -> str:
    """Of all that differs between two commits; empty where nothing does."""
    return _named(repo, repo.run("diff-tree", "-r", *SHAPE, base, tip))


def of(repo: Repository, commit: Commit) -> Patch:
    """Of what a commit changed; of a merge, all that it brought in."""
    sides = (commit.parents[0], commit.sha) if commit.parents else ("--root", commit.sha)
    diff = repo.run("diff-tree", "-r", "--no-commit-id", "--raw", *SHAPE, *sides)
    rows, _, patch = diff.out.partition(b"\n\n")
    paths = tuple(row.partition("\t")[2] for row in text(rows).split("\n") if row)
    quoted = any(path.startswith('"') for path in paths)
    name = _named(repo, diff._replace(out=patch))
    return Patch(name, repo.files(commit.sha) if quoted else paths)


def _named(repo: Repository, diff: Done) -> str:
    if diff.code or not diff.out:
        return ""
    return _ids(repo, diff.out).partition(" ")[0]


def _ids(repo: Repository, diff: bytes) -> str:
    """As git names them; one that is too old to count spaces does without."""
    done = repo.run("patch-id", "--verbatim", data=diff)
    return repo.ask("patch-id", "--stable", data=diff) if done.code else text(done.out).rstrip("\n")


def of_many(repo: Repository, shas: Iterable[str], *, merges: bool = False) -> dict[str, str]:
    """Of each of these commits; with `merges`, of these as well all that they brought in."""
    wanted = "\n".join(shas).encode()
    if not wanted:
        return {}
    words = ("diff-tree", "-r", "--stdin", *SHAPE, "--root")
    found = repo.run(*words, *(MERGES if merges else ()), data=wanted + b"\n")
    if merges and found.code:  # git before 2.31 has no word for it
        return of_many(repo, wanted.decode().split("\n"))
    if found.code:
        raise refusal(found)
    diff = found.out
    lines = _ids(repo, diff).splitlines() if diff else []
    return {sha: patch for patch, _, sha in (line.partition(" ") for line in lines)}
