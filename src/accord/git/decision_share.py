"""Decision coverage: the share of commits that say how they were decided (OPEN-58)."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from accord.core.provenance.commit_message.parser import parse_message
from accord.git.records import decisions_ref

from .repository import Commit, Repository

MAX_COMMITS = 100_000


class CommitCoverage(NamedTuple):
    """How many commits are covered by a decision; `recorded` is how many have a record.

    A commit is covered if it has PVP trailers (OPEN-58) or, on request, a record.
    """

    commits: int
    covered: int
    recorded: int
    uncovered: tuple[Commit, ...]

    @property
    def percent(self) -> float:
        """Share of commits with a decision; 100 when there are no commits."""
        return 100.0 * self.covered / self.commits if self.commits else 100.0


def has_pvp_trailers(commit: Commit) -> bool:
    """Whether the commit has at least one PVP trailer."""
    mentions_pvp = "pvp-" in commit.message.lower()
    return mentions_pvp and any(
        trailer.key.lower().startswith("pvp-") for trailer in parse_message(commit.message).trailers
    )


def coverage_of(
    commits: Sequence[Commit], recorded: int = 0, counted: Collection[str] = ()
) -> CommitCoverage:
    """Coverage of these commits; those in `counted` count as covered without trailers."""
    uncovered = tuple(
        commit for commit in commits if commit.sha not in counted and not has_pvp_trailers(commit)
    )
    return CommitCoverage(len(commits), len(commits) - len(uncovered), recorded, uncovered)


def measure_coverage(
    repo: Repository,
    which: Sequence[str],
    max_commits: int = MAX_COMMITS,
    *,
    count_records: bool = False,
) -> CommitCoverage:
    """Read the commits of a range, none if `which` is empty, and compute their coverage."""
    commits = repo.commits(*which, max_count=max_commits) if which else []
    linked, noted = decisions_ref.links_and_notes(repo, (commit.sha for commit in commits))
    records = {sha for sha, note in noted.items() if decisions_ref.decision_ids_of(note)}
    known = linked.keys() | records
    return coverage_of(commits, len(known), known if count_records else ())
