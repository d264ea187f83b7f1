"""The image of a ledger: its events in the order of the file, folded from the mirror's records.

It knows which events there are and not what they say: that is on the log, and is read there by
whoever needs all of it.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from accord.core.work.mirror import MOST_MOVED, Arranged, Mirrored

# What a record takes besides its line, and what a key takes in another order.
ENVELOPE, KEY = 256, 35


class Source(NamedTuple):
    """An event as a file has it: how it is known, what it says, and a digest of the whole line."""

    key: str
    line: str
    digest: str


class Splice(NamedTuple):
    """From place `at` on, `drop` events give way to those in `put`."""

    at: int
    drop: int
    put: tuple[str, ...]


class Image:
    """What is recorded of one ledger. `order` is how the file was when it was last looked at.

    `weight` is about how many bytes the records take.
    """

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.order: list[str] = []
        self.records = 0
        self.weight = 0

    def take(self, event: Mirrored | Arranged) -> bool:
        """One more record; whether it only adds an event at the end."""
        self.records += 1
        if isinstance(event, Arranged):
            self.weight += ENVELOPE + KEY * len(event.put)
            self.order[event.at : event.at + event.drop] = event.put
            return False
        self.weight += ENVELOPE + len(event.line)
        fresh = event.key not in self.known
        if fresh:
            self.order.append(event.key)
            self.known.add(event.key)
        return fresh

    def fresh(self, sources: Iterable[Source]) -> list[Source]:
        """Those that were never recorded, each once."""
        found = {each.key: each for each in sources if each.key not in self.known}
        return list(found.values())

    def lost(self, wanted: Collection[str]) -> bool:
        """Whether something that was in the file is not any more."""
        return not all(key in wanted for key in self.order)

    def splice(self, wanted: Sequence[str]) -> Splice | None:
        """The next step towards the order of the file; None when it is that already."""
        start = shared(self.order, wanted)
        if start == len(self.order) == len(wanted):
            return None
        end = shared(self.order[start:][::-1], wanted[start:][::-1])
        put = wanted[start : len(wanted) - end]
        return Splice(start, len(self.order) - end - start, tuple(put[:MOST_MOVED]))


class Sorting:
    """The lines of an image, put in its order as they come from the records."""

    def __init__(self, image: Image) -> None:
        self._ranks = {key: rank for rank, key in enumerate(image.order)}
        self._lines: list[str | None] = [None] * len(image.order)

    def take(self, event: Mirrored) -> None:
        """One more; of two with the same key the first counts (UNI-11)."""
        if (rank := self._ranks.pop(event.key, None)) is not None:
            self._lines[rank] = event.line

    def lines(self) -> list[str]:
        """Those that are in the file."""
        return [line for line in self._lines if line is not None]


def keys(sources: Iterable[Source]) -> list[str]:
    """By which they are known, in order."""
    return [each.key for each in sources]


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many they have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
