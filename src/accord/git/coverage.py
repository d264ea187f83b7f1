"""How many commits say how they were decided (OPEN-58)."""

from collections.abc import Sequence
from typing import NamedTuple

from accord.core.provenance.message import parse

from . import decisions, notes
from .history import Commit, History

MOST = 100_000


class Coverage(NamedTuple):
    """Commits with PVP trailers, by all that were looked at; `recorded` have a record besides."""

    commits: int
    covered: int
    recorded: int
    without: tuple[Commit, ...]

    @property
    def percent(self) -> float:
        """Of nothing, everything is covered."""
        return 100.0 * self.covered / self.commits if self.commits else 100.0


def has_trailers(commit: Commit) -> bool:
    """Whether any of its trailers is of PVP."""
    quick = "pvp-" in commit.message.lower()
    return quick and any(
        each.key.lower().startswith("pvp-") for each in parse(commit.message).trailers
    )


def measure(repo: History, which: Sequence[str], most: int = MOST) -> Coverage:
    """Look at these commits."""
    found = repo.commits(*which, most=most)
    without = tuple(commit for commit in found if not has_trailers(commit))
    linked = set(decisions.of_commits(repo, (commit.sha for commit in found)))
    if notes.exist(repo):
        linked |= set(notes.of(repo, (commit.sha for commit in found)))
    return Coverage(len(found), len(found) - len(without), len(linked), without)
