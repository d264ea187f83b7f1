"""Carry records of rebased or amended commits over to the commits that replaced them."""

from collections.abc import Sequence

from accord.core.provenance.notes.note import Note
from accord.git import commit_content
from accord.git.records import decisions_ref
from accord.git.records.decisions_ref import DecisionLink, decision_ids_of
from accord.git.records.record_refs import RefContents
from accord.git.repository import Repository

RewrittenPairs = Sequence[tuple[str, str]]


def carry_records(
    repo: Repository, pairs: RewrittenPairs, seen: RefContents, *, is_amend: bool
) -> None:
    """Carry records from old to new commits; several old commits may have become one.

    `seen` holds the records of all of them. After a rebase, as opposed to an amend, git may pair
    unrelated commits, so each pair is verified.
    """
    linked, noted = decisions_ref.links_and_notes_in(seen)
    in_note = {sha: frozenset(decision_ids_of(note)) for sha, note in noted.items()}
    none = frozenset[str]()
    known = {old: linked.get(old, none) | in_note.get(old, none) for old, _ in pairs}
    there = {new: linked.get(new, none) & in_note.get(new, none) for _, new in pairs}
    if all(known[old] <= there[new] for old, new in pairs):
        return  # usual after an amend, which `post-commit` has handled
    if not is_amend:
        from accord.git.records import rewrite_match

        pairs = rewrite_match.confirmed_rewrites(repo, pairs)
    ids_by_new: dict[str, frozenset[str]] = {}
    for old, new in pairs:
        ids_by_new[new] = ids_by_new.get(new, none) | known[old]
    extra = {id: noted[old] for old, _ in pairs for id in in_note.get(old, none)}
    _attach_carried(repo, {new: ids for new, ids in ids_by_new.items() if ids}, extra)


def _attach_carried(
    repo: Repository, carried: dict[str, frozenset[str]], extra: dict[str, Note]
) -> None:
    if carried:
        names = commit_content.patch_ids_of(repo, carried, merges=True)
        links = {
            new: DecisionLink(ids, frozenset({names.get(new, "")} - {""}))
            for new, ids in carried.items()
        }
        decisions_ref.attach_decisions(repo, links, spare=extra)
