"""The names of changes: the same wherever a change is applied, whatever its commit is called.

Spaces count: in some languages they are half of what a line means.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .process import MOST_BYTES, Done, TooMuchError
from .repository import Commit, Repository, refusal, text

SHAPE = ("-p", "-U3", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
MERGES = ("--diff-merges=first-parent",)
MOST_AT_ONCE = 16 << 20
MOST_TURNS = 40


class Patch(NamedTuple):
    """What a commit does: the name of its change and the paths.

    The name is empty where it changes nothing, or more than anybody would read.
    """

    name: str
    files: tuple[str, ...]


def of(repo: Repository, commit: Commit) -> Patch:
    """Of what a commit changed; of a merge, all that it brought in."""
    sides = (commit.parents[0], commit.sha) if commit.parents else ("--root", commit.sha)
    try:
        diff = repo.run("diff-tree", "-r", "--no-commit-id", "--raw", *SHAPE, *sides)
    except TooMuchError:
        return Patch("", repo.files(commit.sha))
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
    return _all_named(repo, list(shas), *(MERGES if merges else ()))


def since(repo: Repository, bases: Mapping[str, str]) -> dict[str, str]:
    """Of all that differs between each of these commits and an earlier one."""
    return _all_named(repo, [f"{tip} {base}" for tip, base in bases.items()])


def _all_named(repo: Repository, asked: list[str], *words: str) -> dict[str, str]:
    """By halves where it is too much at once; what is too much alone costs no other its name."""
    found: dict[str, str] = {}
    rest = [asked] if asked else []
    for _ in range(MOST_TURNS):
        if not rest:
            break
        part = rest.pop()
        half = len(part) // 2
        try:
            found |= _named_at_once(repo, part, MOST_AT_ONCE if half else MOST_BYTES, *words)
        except TooMuchError:
            rest += [part[half:], part[:half]] if half else []
    return found


def _named_at_once(repo: Repository, asked: list[str], most: int, *words: str) -> dict[str, str]:
    done = _differences(repo, asked, most, *words)
    if words and done.code:  # git before 2.31 has no word for merges
        done = _differences(repo, asked, most)
    if done.code:
        raise refusal(done)
    lines = _ids(repo, done.out).splitlines() if done.out else []
    return {sha: patch for patch, _, sha in (line.partition(" ") for line in lines)}


def _differences(repo: Repository, asked: Iterable[str], most: int, *words: str) -> Done:
    lines = "".join(f"{each}\n" for each in asked).encode()
    every = ("diff-tree", "-r", "--stdin", *SHAPE, "--root", *words)
    return repo.run(*every, data=lines, most=most)
