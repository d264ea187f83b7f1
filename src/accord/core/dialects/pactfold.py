"""A whole log as the state of the work, folded as it is read: most of it is never held at once."""

from typing import NamedTuple

from accord.core.dialects import pact
from accord.core.work.fold import Fold


class Whole(NamedTuple):
    """A log, folded; `last` is the latest instant in it, and `lines` how many it has."""

    fold: Fold
    faults: list[pact.Fault]
    last: str
    lines: int


def folded(data: bytes) -> Whole:
    """The same as to read it all, and then to fold it."""
    fold, faults, last, following = Fold(), list[pact.Fault](), "", 1
    for part in pact.parts(data):
        if part.entries and part.entries[0].at < last:
            return _at_once(data)
        fold.take(part.entries)
        faults += part.faults
        last, following = part.last or last, part.next
    return Whole(fold, faults, last, following - 1)


def _at_once(data: bytes) -> Whole:
    """Where git has merged two branches, an event may belong before any other."""
    reading = pact.read(data)
    made = Fold().take(reading.entries)
    return Whole(made, reading.faults, reading.last, reading.next - 1)
