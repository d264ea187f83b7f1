"""Who reviewed which commit, as a note says it.

A decision goes along to whatever takes the place of its commit; a review does not. So it names
the commit that was seen, and of any other it says nothing, wherever the note is copied to.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from .note import VERSION, Note

REVIEWS = "reviews"


class Review(NamedTuple):
    """Somebody saw this commit, which came of this decision, and accepted it."""

    by: str
    commit: str
    decision: str


def reviews_of(note: Note) -> tuple[Review, ...]:
    """All that a note holds; what is no review passes by."""
    found = note.get(REVIEWS)
    return tuple(each for part in found if (each := _read(part))) if isinstance(found, list) else ()


def _read(part: Any) -> Review | None:
    values = [part.get(name) for name in Review._fields] if isinstance(part, dict) else [None]
    said = [each for each in values if isinstance(each, str) and each]
    return Review(*said) if len(said) == len(Review._fields) else None


def note_of(reviews: Iterable[Review]) -> Note:
    """A note that says nothing else."""
    told = [each._asdict() for each in reviews]
    return {"version": VERSION, REVIEWS: told} if told else {"version": VERSION}
