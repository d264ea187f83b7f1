"""What the hooks run: `python -m accord.git.hook NAME …`. Standard library alone, and quick.

A hook never stands between people and their commit: whatever goes wrong here is nothing (OPEN-57).
Only `commit-msg` says no, to a message that claims a session and says it badly, and `pre-push`
where the repository asks for it. `ACCORD_DEBUG=1` shows what went wrong.

What a commit without a session has no need of is imported only once there is one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from . import bridge, owed, places, squash
from .ledger import any_record, by_commit, look
from .repository import Commit, Repository, is_object

TYPE_CHECKING = False  # a name that type checkers take for true
if TYPE_CHECKING:
    from typing import NoReturn

REBASING = ("rebase-merge", "rebase-apply")
PICKING = "CHERRY_PICK_HEAD"
WAITS = "rebase-merge/amend"  # a rebase stopped: somebody may change a commit, or make others
OWN = ("commit: ", "commit (merge): ")  # what git notes of a commit that is no copy
MOST_REWRITTEN = 5000
ACTS = frozenset({"", "message", "template"})  # OPEN-69: not of a merge, a squash or an amend


def main(words: Sequence[str]) -> int:
    """Run one hook; 1 refuses, anything else is 0."""
    name, *rest = words or [""]
    try:
        with Repository(where=places.around(os.environ)) as repo:
            return RUNS[name](repo, rest) if name in RUNS else 0
    except Exception as error:  # noqa: BLE001 - a hook that fails must not fail the commit
        _report(error)
        return 0


def _report(error: Exception) -> None:
    if os.environ.get("ACCORD_DEBUG"):
        import traceback

        traceback.print_exception(error)


def leave(code: int) -> NoReturn:
    """End at once: Python would first put away all that it has loaded."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def prepare_commit_msg(repo: Repository, words: Sequence[str]) -> int:
    """Trailers, where something is known."""
    file, source = words[0], words[1] if len(words) > 1 else ""
    squash.remember(repo)
    _settle(repo)  # first: what this commit comes of begins behind the last one that is on record
    draft = _content(file)
    named = any(name.startswith("PVP_") for name in os.environ)
    somebody = named or bridge.in_reach(os.environ) or b"pvp" in draft.lower()
    if somebody and source in ACTS and not _copies(repo):
        from . import preparing

        preparing.prepare(repo, file, draft, source)
    return 0


def _settle(repo: Repository) -> None:
    """Make the record that a hook was killed over; whatever that costs, only once."""
    if not owed.taken(repo):
        return
    from . import mending

    try:
        mending.mend(repo)
    except Exception as error:  # noqa: BLE001 - the commit at hand has a record of its own
        _report(error)


def _copies(repo: Repository) -> bool:
    """Whether git makes a commit again, as a rebase does while it does not wait."""
    rebases = os.environ.get("GIT_REFLOG_ACTION", "").startswith("rebase")
    waits = repo.has_file(WAITS) and not rebases
    return repo.has_file(PICKING) or (repo.has_file(*REBASING) and not waits)


def commit_msg(repo: Repository, words: Sequence[str]) -> int:
    """Whether a message that speaks of a session says it well."""
    draft = _content(words[0])
    if b"pvp" not in draft.lower():
        return 0
    from . import checking

    refused = checking.check(repo, draft)
    if not refused:
        owed.note(repo)
    return refused


def post_commit(repo: Repository, words: Sequence[str]) -> int:
    """A record of the commit, if it speaks of a session or squashed others."""
    del words
    return _linked(repo, repo.checked_out())


def post_merge(repo: Repository, words: Sequence[str]) -> int:
    """A record of the merge commit, for which git calls no `post-commit`."""
    commit = repo.checked_out()
    squashes = words[:1] == ["1"]
    forwards = f"GITHEAD_{commit.sha}" in os.environ  # git names what it merges
    made = len(commit.parents) > 1 and not squashes and not forwards
    return _linked(repo, commit) if made else 0


def _linked(repo: Repository, commit: Commit) -> int:
    squashed = squash.taken(repo)
    speaks = "pvp" in commit.message.lower()
    if (speaks or squashed or _joins(repo, commit)) and not _moves(repo, commit):
        from . import linking

        linking.link(repo, commit, squashed)
    owed.taken(repo)
    return 0


def _moves(repo: Repository, commit: Commit) -> bool:
    """Whether a rebase made it: then `post-rewrite` will carry over whatever there is."""
    return repo.has_file(*REBASING) and not commit.reflog.startswith(OWN)


def _joins(repo: Repository, commit: Commit) -> bool:
    """Whether it may bring a fork's commits in."""
    return len(commit.parents) > 1 and any_record(repo)


def post_rewrite(repo: Repository, words: Sequence[str]) -> int:
    """Records go on to the commits that took the others' place."""
    rows = [line.split()[:2] for line in _given().split("\n")[:MOST_REWRITTEN]]
    pairs = [(row[0], row[1]) for row in rows if len(row) == 2 and all(map(is_object, row))]
    shas = {sha for pair in pairs for sha in pair}
    seen = look(repo, map(by_commit, shas), shas)
    if seen.files or seen.notes:
        from . import carrying

        carrying.carry(repo, pairs, seen, sure=words[:1] == ["amend"])
    return 0


def pre_push(repo: Repository, words: Sequence[str]) -> int:
    """Records follow what is pushed, and a word on what is not covered."""
    from . import pushing

    _settle(repo)
    return pushing.check(repo, words[0], _given())


def _given() -> str:
    """What git says to the hook; the names in it may be any bytes."""
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _content(file: str) -> bytes:
    with open(file, "rb") as draft:  # noqa: PTH123 - `pathlib` takes longer than all of this
        return draft.read()


RUNS: dict[str, Callable[[Repository, Sequence[str]], int]] = {
    "prepare-commit-msg": prepare_commit_msg,
    "commit-msg": commit_msg,
    "post-commit": post_commit,
    "post-merge": post_merge,
    "post-rewrite": post_rewrite,
    "pre-push": pre_push,
}
HOOKS = tuple(RUNS)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
