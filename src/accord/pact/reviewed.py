"""`Reviewed-By` for the work of a feature: whoever accepted it by the log, and nobody else."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from accord.core.kernel.refusal import Refused
from accord.core.provenance.build import people, trailer_line
from accord.core.provenance.message import REVIEWED_BY
from accord.core.provenance.participants import AGENT, Participant, parse
from accord.core.provenance.trailers import Trailer
from accord.core.work.review import reviewers
from accord.core.work.state import Feature, Work
from accord.core.work.words import is_slug
from accord.git.process import GitError
from accord.git.repository import Repository
from accord.git.reviewing import mark

MOST_COMMITS = 1000


def names(work: Work, feature: Feature, called: Mapping[str, Any]) -> list[str]:
    """The reviewers as a trailer has them; a server may know that one of them is a person."""
    seats = [seat for seat in reviewers(work, feature) if is_slug(seat)]
    return [str(_named(seat, called.get(seat))) for seat in seats]


def _named(seat: str, said: object) -> Participant:
    found = parse(said) if isinstance(said, str) else None
    return found if found and found.identifier == seat else Participant(AGENT, seat)


def message(subject: str, by: list[str]) -> str:
    """The message of a merge."""
    who = people(by)
    return f"{subject}\n\n{trailer_line(Trailer(REVIEWED_BY, who))}" if who else subject


def note(repository: Repository, merge: str, by: list[str]) -> str:
    """Say it in the records of the commits that a merge brought; what went wrong, if anything."""
    with suppress(GitError, Refused):
        span = f"{merge}^1..{merge}^2"
        shas = repository.ask("rev-list", f"--max-count={MOST_COMMITS}", span, "--").split()
        mark(repository, shas, by)
        return ""
    return "who reviewed the commits could not be added to their records"
