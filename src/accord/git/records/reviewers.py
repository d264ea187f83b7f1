"""Add reviewers to the records of existing commits."""

from collections.abc import Iterable, Sequence

from accord.core.provenance.notes.note import CommitReview, reviews_note
from accord.git.records import decisions_ref
from accord.git.records.decisions_ref import DecisionLink
from accord.git.repository import Repository


def add_reviewers(repo: Repository, shas: Iterable[str], by: Sequence[str]) -> int:
    """Add reviewers to the decisions of these commits; the number of commits with a decision."""
    ids_by_sha = decisions_ref.ids_by_commit(repo, shas) if by else {}
    linked = {sha: DecisionLink(ids) for sha, ids in ids_by_sha.items() if ids}
    reviews_by_id: dict[str, list[CommitReview]] = {}
    for sha, link in linked.items():
        for id in link.ids:
            reviews_by_id.setdefault(id, []).extend(CommitReview(who, sha, id) for who in by)
    if linked:
        decisions_ref.attach_decisions(
            repo, linked, {id: reviews_note(reviews) for id, reviews in reviews_by_id.items()}
        )
    return len(linked)
