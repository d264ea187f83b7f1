"""How many commits say how they were decided (OPEN-58)."""

from collections.abc import Sequence
from typing import NamedTuple

from accord.core.provenance.message import parse

from . import decisions
from .repository import Commit, Repository

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


def of(commits: Sequence[Commit], recorded: int = 0) -> Coverage:
    """Of commits that were read already."""
    without = tuple(commit for commit in commits if not has_trailers(commit))
    return Coverage(len(commits), len(commits) - len(without), recorded, without)


def measure(repo: Repository, which: Sequence[str], most: int = MOST) -> Coverage:
    """Look at these commits, if any, and at what is on record for them."""
    found = repo.commits(*which, most=most) if which else []
    linked, noted = decisions.on_record(repo, (commit.sha for commit in found))
    return of(found, len(linked.keys() | noted.keys()))
