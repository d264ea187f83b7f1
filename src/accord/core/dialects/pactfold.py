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
    ids = list[str]()
    whole = _in_parts(data, ids)
    if whole is None:
        return _at_once(data)
    # Whether any came twice is asked for all at once, which is quicker. In order, it is rare.
    named = [id for id in ids if id]
    whole.fold.seen = dict.fromkeys(named)
    each_once = len(whole.fold.seen) == len(named)
    return whole if each_once else _in_parts(data) or _at_once(data)


def _in_parts(data: bytes, ids: list[str] | None = None) -> Whole | None:
    """One part after the other; None where they are not in order.

    With `ids`, which get those of all events, each of these is taken for new.
    """
    fold, faults, last, following = Fold(), list[pact.Fault](), "", 1
    for part in pact.parts(data):
        if part.entries and part.entries[0].at < last:
            return None
        if ids is not None:
            ids += [entry.event.event_id for entry in part.entries]
        fold.take(part.entries, once=ids is not None)
        faults += part.faults
        last, following = part.last or last, part.next
    return Whole(fold, faults, last, following - 1)


def _at_once(data: bytes) -> Whole:
    """Where git has merged two branches, an event may belong before any other."""
    reading = pact.read(data)
    made = Fold().take(reading.entries)
    return Whole(made, reading.faults, reading.last, reading.next - 1)
