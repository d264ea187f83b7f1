"""The names of changes: the same wherever a change is applied, whatever its commit is called.

Spaces count: in some languages they are half of what a line means.
"""

from collections.abc import Iterable

from .process import Done
from .repository import Repository, text

SHAPE = ("-p", "-U3", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")


def between(repo: Repository, base: str, tip: str) -> str:
    """Of all that differs between two commits; empty where nothing does."""
    return _named(repo, repo.run("diff-tree", "-r", *SHAPE, base, tip))


def of(repo: Repository, sha: str) -> str:
    """Of what a commit changed; of a merge, all that it brought in."""
    diff = repo.run("diff-tree", "-r", *SHAPE, f"{sha}^1", sha)
    if diff.code:
        diff = repo.run("diff-tree", "-r", "--no-commit-id", *SHAPE, "--root", sha)
    return _named(repo, diff)


def _named(repo: Repository, diff: Done) -> str:
    if diff.code or not diff.out:
        return ""
    return _ids(repo, diff.out).partition(" ")[0]


def _ids(repo: Repository, diff: bytes) -> str:
    """As git names them; one that is too old to count spaces does without."""
    done = repo.run("patch-id", "--verbatim", data=diff)
    return repo.ask("patch-id", "--stable", data=diff) if done.code else text(done.out).rstrip("\n")


def of_many(repo: Repository, shas: Iterable[str]) -> dict[str, str]:
    """Of each of these commits; merges have none here."""
    wanted = "\n".join(shas).encode()
    if not wanted:
        return {}
    diff = repo.raw("diff-tree", "-r", "--stdin", *SHAPE, "--root", data=wanted + b"\n")
    lines = _ids(repo, diff).splitlines() if diff else []
    return {sha: patch for patch, _, sha in (line.partition(" ") for line in lines)}
