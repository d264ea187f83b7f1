"""Whether a new commit really contains the change of an old one.

Git lists pairs after a rebase, and squashed commits before the commit of a `merge --squash`. Both
lists include commits that were skipped or whose changes were dropped. Since a wrong reason is worse
than none, each pair is compared by its changes.
"""

from collections.abc import Iterable, Mapping, Sequence

from accord.git.process import GitError, OutputTooLargeError
from accord.git.repository import Repository, decode_git

REBASE_DIRS = ("rebase-merge", "rebase-apply")
SQUASH_COMMANDS = frozenset({"fixup", "squash", "f", "s"})
MAX_DIFF_LINES, MAX_DIFFS = 20_000, 20

RewrittenPair = tuple[str, str]


def confirmed_rewrites(repo: Repository, pairs: Sequence[RewrittenPair]) -> list[RewrittenPair]:
    """The pairs of old and new commits that share a change."""
    onto, squashed = _rebase_onto(repo), _squashed_commits(repo)
    changed = changed_paths(repo, {sha for pair in pairs for sha in pair})
    created = _added_since(repo, onto, {new for _, new in pairs})
    confirmed: dict[RewrittenPair, None] = {}
    taken: set[str] = set()
    for old, new in pairs:
        is_squashed = squashed is not None and old in squashed
        is_skipped = squashed is not None and new in taken and not is_squashed
        if (
            new in created
            and not is_skipped
            and (is_squashed or _is_similar(repo, old, new, changed))
        ):
            taken.add(new)
            confirmed[old, new] = None
    return list(confirmed)


def _added_since(repo: Repository, onto: str, commits: set[str]) -> set[str]:
    """The commits that the rebase created."""
    if not onto:
        return commits
    revisions = "".join(f"{name}\n" for name in (*sorted(commits), f"^{onto}")).encode()
    return commits & set(repo.run_text("rev-list", "--stdin", data=revisions).split())


def contains_any(repo: Repository, olds: Iterable[str], new: str) -> bool:
    """Whether the new commit contains a change of any of the old ones."""
    candidates = [*olds]
    changed = changed_paths(repo, {*candidates, new})
    paths = changed.get(new, set())
    if not paths or any(paths & changed.get(old, paths) for old in candidates):
        return True
    lines = _changed_lines(repo, new)
    return any(lines & _changed_lines(repo, old) for old in candidates[:MAX_DIFFS])


def changed_paths(repo: Repository, shas: Iterable[str]) -> Mapping[str, set[str]]:
    """The paths that each commit changed; merges are left out."""
    wanted = sorted(set(shas))
    words = ("diff-tree", "-r", "--stdin", "-z", "--root", "--no-renames", "--name-only")
    try:
        out = decode_git(
            repo.run_bytes(*words, data="".join(f"{sha}\n" for sha in wanted).encode())
        )
    except GitError:  # some commits no longer exist
        return {}
    names, paths_by_sha, current = set(wanted), dict[str, set[str]](), ""
    for word in out.split("\0")[:-1]:
        if word in names:
            current = word
            paths_by_sha[current] = set()
        else:
            paths_by_sha[current].add(word)
    return paths_by_sha


def _is_similar(repo: Repository, old: str, new: str, changed: Mapping[str, set[str]]) -> bool:
    """Whether both change the same file or, after a rename, the same line in the same way."""
    if not (changed.get(old) and changed.get(new)):
        return True  # an empty commit or a merge: nothing to compare
    return bool(changed[old] & changed[new]) or bool(
        _changed_lines(repo, old) & _changed_lines(repo, new)
    )


def _changed_lines(repo: Repository, sha: str) -> set[bytes]:
    words = ("diff-tree", "-r", "-p", "-U0", "--root", "--no-commit-id", "--no-renames")
    try:
        diff = repo.run(*words, "--no-ext-diff", "--no-textconv", "--no-color", sha).out
    except OutputTooLargeError:
        return set()
    changed = (line for line in diff.split(b"\n")[:MAX_DIFF_LINES] if line[:1] in (b"+", b"-"))
    return {line for line in changed if line[1:].strip() and line[:3] not in (b"+++", b"---")}


def _rebase_onto(repo: Repository) -> str:
    """The commit that a rebase started from; it and its ancestors cannot be rewritten commits."""
    return next(
        (sha for name in REBASE_DIRS if (sha := _read_git_file(repo, f"{name}/onto").strip())), ""
    )


def _squashed_commits(repo: Repository) -> frozenset[str] | None:
    """Commits that the rebase marked as squash or fixup; None if git keeps no list."""
    done = _read_git_file(repo, "rebase-merge/done")
    rows = [line.split() for line in done.split("\n")]
    named = (row[2] if row[1] in {"-C", "-c"} else row[1] for row in rows if _is_squash_row(row))
    return frozenset(named) if done else None


def _is_squash_row(row: list[str]) -> bool:
    return len(row) > 2 and row[0] in SQUASH_COMMANDS


def _read_git_file(repo: Repository, name: str) -> str:
    try:
        with open(repo.git_file(name), encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""
