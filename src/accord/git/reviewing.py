"""Who reviewed commits that exist already: said in their notes and in our ref."""

from collections.abc import Iterable, Sequence

from accord.core.provenance.reviews import Review, note_of

from . import decisions
from .decisions import Link
from .repository import Repository


def mark(repo: Repository, shas: Iterable[str], by: Sequence[str]) -> int:
    """Add the reviewers to the decisions of these commits; how many commits have one."""
    found = decisions.of_commits(repo, shas) if by else {}
    linked = {sha: Link(ids) for sha, ids in found.items() if ids}
    seen: dict[str, list[Review]] = {}
    for sha, link in linked.items():
        for id in link.ids:
            seen.setdefault(id, []).extend(Review(who, sha, id) for who in by)
    if linked:
        decisions.attach(repo, linked, {id: note_of(each) for id, each in seen.items()})
    return len(linked)
