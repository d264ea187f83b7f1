"""`Reviewed-By` trailers for a feature: exactly the seats that accepted its tasks.

A commit names a reviewer only if a checkpoint showed that commit and the reviewer accepted it.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from accord.core.kernel.refusal import Refused
from accord.core.provenance.commit_message.trailer_values import (
    AGENT,
    Participant,
    parse_participant,
)
from accord.core.provenance.commit_message.trailers import (
    REVIEWED_BY_KEY,
    participant_values,
    split_trailer,
    trailer_line,
)
from accord.core.work.state import Feature, Work
from accord.core.work.vocabulary import is_slug
from accord.git.process import GitError
from accord.git.records.reviewers import add_reviewers
from accord.git.repository import Repository
from accord.pact import checkpoint_commit
from accord.pact.location import PactLocation

MAX_COMMITS = 1000


class ReviewCoverage(NamedTuple):
    """Which commits of a branch each seat reviewed, and what was left unreviewed."""

    commits_by_seat: Mapping[str, tuple[str, ...]]
    is_complete: bool
    gaps: tuple[str, ...] = ()


class MergeRange(NamedTuple):
    """The tip of the merged branch, and the base's commit before the merge."""

    tip: str
    base: str


def find_reviews(
    place: PactLocation, repository: Repository, work: Work, feature: Feature, merge: MergeRange
) -> ReviewCoverage:
    """Compare the accepted commits with the commits that a merge brings in."""
    accepted = {
        seat: shas_ for seat, shas_ in work.commits_by_reviewer(feature).items() if is_slug(seat)
    }
    heads = {
        seat: tuple(sha for sha in shas if repository.contains(merge.tip, sha))
        for seat, shas in accepted.items()
    }
    gaps = [
        f"{seat} is not named as a reviewer: the commit it accepted is not on {feature.branch}"
        for seat, shas in heads.items()
        if not shas
    ]
    seen = sorted({sha for shas in heads.values() for sha in shas})
    unreviewed = checkpoint_commit.commits_after(place, repository, merge.tip, [merge.base, *seen])
    if unreviewed and seen:
        gaps.append(
            f"{checkpoint_commit.format_commits(unreviewed)} came after the review, "
            "so the merge commit names no reviewer"
        )
    return ReviewCoverage(
        {seat: shas for seat, shas in heads.items() if shas}, not unreviewed, tuple(gaps)
    )


def reviewer_names(coverage: ReviewCoverage, known_names: Mapping[str, Any]) -> dict[str, str]:
    """Reviewers as trailers name them; `called` are names from a server, which knows people."""
    return {seat: str(_reviewer(seat, known_names.get(seat))) for seat in coverage.commits_by_seat}


def _reviewer(seat: str, known_name: object) -> Participant:
    participant = parse_participant(known_name) if isinstance(known_name, str) else None
    return (
        participant if participant and participant.identifier == seat else Participant(AGENT, seat)
    )


def merge_message(subject: str, coverage: ReviewCoverage, by: Mapping[str, str]) -> str:
    """The merge commit's message; reviewers are named only if they reviewed all of it."""
    reviewers = participant_values(list(by.values())) if coverage.is_complete else []
    lines = [trailer_line(each) for each in split_trailer(REVIEWED_BY_KEY, reviewers)]
    return "\n".join([subject, "", *lines]) if lines else subject


def record_reviewers(
    repository: Repository, merge: MergeRange, coverage: ReviewCoverage, by: Mapping[str, str]
) -> list[str]:
    """Add the reviewers to the records of the merged commits; notes for the user on failure."""
    with suppress(GitError, Refused):
        for seat, heads in coverage.commits_by_seat.items():
            revisions = (f"--max-count={MAX_COMMITS}", *heads, f"^{merge.base}")
            add_reviewers(
                repository, repository.run_text("rev-list", *revisions, "--").split(), [by[seat]]
            )
        return []
    return ["the reviewers could not be added to the commits' records"]
