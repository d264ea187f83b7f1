"""Records of commits that were rebased or amended go on to those that took their place."""

from collections.abc import Sequence

from accord.core.provenance.note import Note

from . import decisions, patches
from .decisions import Link, decision_ids
from .ledger import Seen
from .repository import Repository

Pairs = Sequence[tuple[str, str]]


def carry(repo: Repository, pairs: Pairs, seen: Seen, *, sure: bool) -> None:
    """From the old commits to the new ones; several may have become one.

    `seen` is what is on record for all of them. Unless it is `sure`, git may name new commits
    that only stand where the others stood.
    """
    linked, noted = decisions.told(seen)
    in_note = {sha: frozenset(decision_ids(note)) for sha, note in noted.items()}
    none = frozenset[str]()
    known = {old: linked.get(old, none) | in_note.get(old, none) for old, _ in pairs}
    there = {new: linked.get(new, none) & in_note.get(new, none) for _, new in pairs}
    if all(known[old] <= there[new] for old, new in pairs):
        return  # as after most amends: `post-commit` did it
    if not sure:
        from . import moving

        pairs = moving.kept(repo, pairs)
    found: dict[str, frozenset[str]] = {}
    for old, new in pairs:
        found[new] = found.get(new, none) | known[old]
    extra = {id: noted[old] for old, _ in pairs for id in in_note.get(old, none)}
    _attach(repo, {new: ids for new, ids in found.items() if ids}, extra)


def _attach(repo: Repository, carried: dict[str, frozenset[str]], extra: dict[str, Note]) -> None:
    if carried:
        names = patches.of_many(repo, carried, merges=True)
        links = {
            new: Link(ids, frozenset({names.get(new, "")} - {""})) for new, ids in carried.items()
        }
        decisions.attach(repo, links, spare=extra)
