"""The image of a ledger: its events in the order of the file, folded from the mirror's records."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from accord.core.work.mirror import MOST_MOVED, Arranged, Mirrored


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
    """What is recorded of one ledger. `order` is how the file was when it was last looked at."""

    def __init__(self) -> None:
        self.known: dict[str, Source] = {}
        self.order: list[str] = []
        self.records = 0

    def take(self, event: Mirrored | Arranged) -> None:
        """One more record."""
        self.records += 1
        if isinstance(event, Arranged):
            self.order[event.at : event.at + event.drop] = event.put
        elif event.key not in self.known:
            self.order.append(event.key)
            self.known[event.key] = Source(event.key, event.line, event.digest)

    def lines(self) -> Iterator[str]:
        """The events that are in the file."""
        return (self.known[key].line for key in self.order if key in self.known)

    def fresh(self, sources: Iterable[Source]) -> list[Source]:
        """Those that were never recorded."""
        return [each for each in sources if each.key not in self.known]

    def changed(self, sources: Iterable[Source]) -> list[Source]:
        """Those whose id said something else before; the first counts (UNI-11)."""
        return [
            each
            for each in sources
            if each.key in self.known and self.known[each.key].digest != each.digest
        ]

    def lost(self, sources: Iterable[Source]) -> bool:
        """Whether something that was in the file is not any more."""
        return not set(self.order) <= {each.key for each in sources}

    def splice(self, sources: Sequence[Source]) -> Splice | None:
        """The next step towards the order of the file; None when it is that already."""
        wanted = keys(sources)
        start = shared(self.order, wanted)
        if start == len(self.order) == len(wanted):
            return None
        end = shared(self.order[start:][::-1], wanted[start:][::-1])
        put = wanted[start : len(wanted) - end]
        return Splice(start, len(self.order) - end - start, tuple(put[:MOST_MOVED]))


def keys(sources: Iterable[Source]) -> list[str]:
    """By which they are known, in order."""
    return [each.key for each in sources]


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many they have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
