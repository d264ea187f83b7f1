"""`Reviewed-By` for the work of a feature: whoever accepted it by the log, and nobody else.

A name stands on a commit only if a checkpoint showed that commit and was accepted.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from accord.core.kernel.refusal import Refused
from accord.core.provenance.build import people, trailer_line
from accord.core.provenance.message import REVIEWED_BY
from accord.core.provenance.participants import AGENT, Participant, parse
from accord.core.provenance.trailers import Trailer
from accord.core.work.review import accepted
from accord.core.work.state import Feature, Work
from accord.core.work.words import is_slug
from accord.git.process import GitError
from accord.git.repository import Repository
from accord.git.reviewing import mark
from accord.pact import shown
from accord.pact.place import Place

MOST_COMMITS = 1000


class Found(NamedTuple):
    """What was reviewed of a branch: by whom, up to which commits; and what nobody saw."""

    heads: Mapping[str, tuple[str, ...]]
    whole: bool
    gaps: tuple[str, ...] = ()


class Merge(NamedTuple):
    """What comes where: the last commit of a branch, to a commit of the base."""

    tip: str
    base: str


def find(place: Place, repository: Repository, work: Work, feature: Feature, merge: Merge) -> Found:
    """Compare what was accepted with what a merge brings, or brought."""
    given = {seat: each for seat, each in accepted(work, feature).items() if is_slug(seat)}
    heads = {
        seat: tuple(sha for sha in shas if repository.contains(merge.tip, sha))
        for seat, shas in given.items()
    }
    gaps = [
        f"{seat} is not named as a reviewer: what it accepted is no commit of {feature.branch}"
        for seat, shas in heads.items()
        if not shas
    ]
    seen = sorted({sha for shas in heads.values() for sha in shas})
    late = shown.after(place, repository, merge.tip, [merge.base, *seen])
    if late and seen:
        gaps.append(f"{shown.some(late)} came after the review, so the merge names no reviewer")
    return Found({seat: shas for seat, shas in heads.items() if shas}, not late, tuple(gaps))


def names(found: Found, called: Mapping[str, Any]) -> dict[str, str]:
    """The reviewers as a trailer has them; a server may know that one of them is a person."""
    return {seat: str(_named(seat, called.get(seat))) for seat in found.heads}


def _named(seat: str, said: object) -> Participant:
    found = parse(said) if isinstance(said, str) else None
    return found if found and found.identifier == seat else Participant(AGENT, seat)


def message(subject: str, found: Found, by: Mapping[str, str]) -> str:
    """The message of a merge; it names reviewers when they saw all that it brings."""
    who = people(list(by.values())) if found.whole else ""
    return f"{subject}\n\n{trailer_line(Trailer(REVIEWED_BY, who))}" if who else subject


def note(repository: Repository, merge: str, found: Found, by: Mapping[str, str]) -> list[str]:
    """Say it in the records of the commits that a merge brought; what went wrong, if anything."""
    with suppress(GitError, Refused):
        for seat, heads in found.heads.items():
            limits = (f"--max-count={MOST_COMMITS}", *heads, f"^{merge}^1")
            mark(repository, repository.ask("rev-list", *limits, "--").split(), [by[seat]])
        return []
    return ["who reviewed the commits could not be added to their records"]
