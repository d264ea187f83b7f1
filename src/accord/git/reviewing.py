"""Who reviewed commits that exist already: said in their notes and in our ref."""

from collections.abc import Iterable, Sequence

from accord.core.provenance.note import VERSION, Note

from . import decisions
from .decisions import Link
from .repository import Repository


def mark(repo: Repository, shas: Iterable[str], by: Sequence[str]) -> int:
    """Add the reviewers to the decisions of these commits; how many commits have one."""
    found = decisions.of_commits(repo, shas) if by else {}
    linked = {sha: Link(ids) for sha, ids in found.items() if ids}
    ids = {id for link in linked.values() for id in link.ids}
    if linked:
        decisions.attach(repo, linked, {id: _said(id, by) for id in ids})
    return len(linked)


def _said(id: str, by: Sequence[str]) -> Note:
    return {"version": VERSION, "decisions": [{"id": id, "reviewed_by": list(by)}]}
