"""Whether a commit took another's place, or only stands where it stood.

Git says so after a rebase, and `merge --squash` before a commit; both also of commits that were
skipped, or whose changes somebody threw away. A wrong reason is worse than none.
"""

from collections.abc import Iterable, Mapping, Sequence

from .process import GitError, TooMuchError
from .repository import Repository, text

WHERE = ("rebase-merge", "rebase-apply")
JOINS = frozenset({"fixup", "squash", "f", "s"})
MOST_LINES, MOST_READ = 20_000, 20

Pair = tuple[str, str]


def kept(repo: Repository, pairs: Sequence[Pair]) -> list[Pair]:
    """Of old commits and what git says took their place, those that did."""
    onto, joined = _onto(repo), _joined(repo)
    changed = touched(repo, {sha for pair in pairs for sha in pair})
    fresh = _after(repo, onto, {new for _, new in pairs})
    found: dict[Pair, None] = {}
    taken: set[str] = set()
    for old, new in pairs:
        part = joined is not None and old in joined
        skipped = joined is not None and new in taken and not part
        if new in fresh and not skipped and (part or _alike(repo, old, new, changed)):
            taken.add(new)
            found[old, new] = None
    return list(found)


def _after(repo: Repository, onto: str, news: set[str]) -> set[str]:
    """Those that were not there before the rebase."""
    if not onto:
        return news
    asked = "".join(f"{name}\n" for name in (*sorted(news), f"^{onto}")).encode()
    return news & set(repo.ask("rev-list", "--stdin", data=asked).split())


def is_in(repo: Repository, olds: Iterable[str], new: str) -> bool:
    """Whether something of these is in the new commit."""
    known = [*olds]
    changed = touched(repo, {*known, new})
    paths = changed.get(new, set())
    if not paths or any(paths & changed.get(old, paths) for old in known):
        return True
    ours = _lines(repo, new)
    return any(ours & _lines(repo, old) for old in known[:MOST_READ])


def touched(repo: Repository, shas: Iterable[str]) -> Mapping[str, set[str]]:
    """The paths that each of these changed; of a merge nothing is said."""
    wanted = sorted(set(shas))
    words = ("diff-tree", "-r", "--stdin", "-z", "--root", "--no-renames", "--name-only")
    try:
        out = text(repo.raw(*words, data="".join(f"{sha}\n" for sha in wanted).encode()))
    except GitError:  # some are gone
        return {}
    names, found, at = set(wanted), dict[str, set[str]](), ""
    for word in out.split("\0")[:-1]:
        if word in names:
            at = word
            found[at] = set()
        else:
            found[at].add(word)
    return found


def _alike(repo: Repository, old: str, new: str, changed: Mapping[str, set[str]]) -> bool:
    """They change the same file, or, after a rename, a line in the same way."""
    if not (changed.get(old) and changed.get(new)):
        return True  # nothing that could tell them apart
    return bool(changed[old] & changed[new]) or bool(_lines(repo, old) & _lines(repo, new))


def _lines(repo: Repository, sha: str) -> set[bytes]:
    words = ("diff-tree", "-r", "-p", "-U0", "--root", "--no-commit-id", "--no-renames")
    try:
        diff = repo.run(*words, "--no-ext-diff", "--no-textconv", "--no-color", sha).out
    except TooMuchError:
        return set()
    marked = (line for line in diff.split(b"\n")[:MOST_LINES] if line[:1] in (b"+", b"-"))
    return {line for line in marked if line[1:].strip() and line[:3] not in (b"+++", b"---")}


def _onto(repo: Repository) -> str:
    """Where a rebase began; what was there before it is nobody's new place."""
    return next((said for name in WHERE if (said := _read(repo, f"{name}/onto").strip())), "")


def _joined(repo: Repository) -> frozenset[str] | None:
    """The commits that were to become part of the one before; None where git keeps no list."""
    said = _read(repo, "rebase-merge/done")
    rows = [line.split() for line in said.split("\n")]
    named = (row[2] if row[1] in {"-C", "-c"} else row[1] for row in rows if _joins(row))
    return frozenset(named) if said else None


def _joins(row: list[str]) -> bool:
    return len(row) > 2 and row[0] in JOINS


def _read(repo: Repository, name: str) -> str:
    try:
        with open(repo.file(name), encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""
