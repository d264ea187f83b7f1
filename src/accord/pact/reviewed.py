"""`Reviewed-By` for the work of a feature: whoever accepted it by the log, and nobody else.

A name stands on a commit only if a checkpoint showed that commit and was accepted.
"""

from collections.abc import Mapping, Sequence
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
from accord.pact.place import Place

MOST_COMMITS = 1000
MOST_LOOKED = 100
MOST_NAMED = 3


class Found(NamedTuple):
    """What was reviewed of a branch: by whom, up to which commits; and what nobody saw."""

    heads: Mapping[str, tuple[str, ...]]
    whole: bool
    gaps: tuple[str, ...] = ()


def find(place: Place, repository: Repository, work: Work, feature: Feature, tip: str) -> Found:
    """Compare what was accepted with what a merge of `tip` would bring."""
    given = {seat: each for seat, each in accepted(work, feature).items() if is_slug(seat)}
    heads = {
        seat: tuple(sha for sha in shas if repository.contains(tip, sha))
        for seat, shas in given.items()
    }
    gaps = [
        f"{seat} is not named as a reviewer: what it accepted is no commit of {feature.branch}"
        for seat, shas in heads.items()
        if not shas
    ]
    seen = sorted({sha for shas in heads.values() for sha in shas})
    late = _late(place, repository, tip, [f"refs/heads/{work.base_branch}", *seen])
    if late and seen:
        some = ", ".join(sha[:10] for sha in late[:MOST_NAMED])
        more = f" and {len(late) - MOST_NAMED} more" if len(late) > MOST_NAMED else ""
        gaps.append(f"{some}{more} came after the review, so the merge names no reviewer")
    return Found({seat: shas for seat, shas in heads.items() if shas}, not late, tuple(gaps))


def _late(place: Place, repository: Repository, tip: str, seen: list[str]) -> list[str]:
    """The commits that no review covers; events of the pact itself are no work to review."""
    limits = (f"--max-count={MOST_COMMITS}", tip, *(f"^{each}" for each in seen))
    found = repository.ask("rev-list", *limits, "--").split()
    ours = f"{place.name(place.directory)}/"
    looked = (sha for sha in found[:MOST_LOOKED] if not _only(ours, repository.files(sha)))
    return [*looked, *found[MOST_LOOKED:]]


def _only(directory: str, files: Sequence[str]) -> bool:
    return all(path.startswith(directory) for path in files)


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
