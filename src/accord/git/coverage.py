"""How many commits say how they were decided (OPEN-58)."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from accord.core.provenance.message import parse

from . import decisions
from .repository import Commit, Repository

MOST = 100_000


class Coverage(NamedTuple):
    """Commits that say how they were decided, by all that were looked at; `recorded` have a record.

    Trailers say it (OPEN-58); a record does where somebody asked to count these, too.
    """

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


def of(commits: Sequence[Commit], recorded: int = 0, counted: Collection[str] = ()) -> Coverage:
    """Of commits that were read already; those that are `counted` need no trailers."""
    without = tuple(each for each in commits if each.sha not in counted and not has_trailers(each))
    return Coverage(len(commits), len(commits) - len(without), recorded, without)


def measure(
    repo: Repository, which: Sequence[str], most: int = MOST, *, records: bool = False
) -> Coverage:
    """Look at these commits, if any, and at what is on record for them."""
    found = repo.commits(*which, most=most) if which else []
    linked, noted = decisions.on_record(repo, (commit.sha for commit in found))
    known = linked.keys() | noted.keys()
    return of(found, len(known), known if records else ())
