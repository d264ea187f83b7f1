"""The events of a ledger and their order, folded from the mirror's records."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from accord.core.work.mirror import MAX_MOVED_EVENTS, Arranged, Mirrored

# Estimated size of a record besides its line, and of a key within a change of order.
RECORD_OVERHEAD_BYTES, KEY_BYTES = 256, 35


class SourceEvent(NamedTuple):
    """An event read from a file: its key, its line (maybe shortened), the full line's digest."""

    key: str
    line: str
    digest: str


class Splice(NamedTuple):
    """From index `at` on, `drop` events are replaced by those in `put`."""

    at: int
    drop: int
    put: tuple[str, ...]


class MirrorOrder:
    """The recorded events of a pact; `order` lists those currently in its files.

    `lines` are those of all recorded events. `size_bytes` estimates the size of the records.
    """

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}
        self.order: list[str] = []
        self.records = 0
        self.size_bytes = 0

    def apply(self, event: Mirrored | Arranged) -> bool:
        """Apply a record; whether it merely appends a new event."""
        self.records += 1
        if isinstance(event, Arranged):
            self.size_bytes += RECORD_OVERHEAD_BYTES + KEY_BYTES * len(event.put)
            self.order[event.at : event.at + event.drop] = event.put
            return False
        self.size_bytes += RECORD_OVERHEAD_BYTES + len(event.line)
        is_new = event.key not in self.lines
        if is_new:  # of two with the same key the first counts (UNI-11)
            self.order.append(event.key)
            self.lines[event.key] = event.line
        return is_new

    def current_lines(self) -> list[str]:
        """The lines of the current order."""
        return [self.lines[key] for key in self.order if key in self.lines]

    def unrecorded(self, sources: Iterable[SourceEvent]) -> list[SourceEvent]:
        """The events that were never recorded, without duplicates."""
        events = {event.key: event for event in sources if event.key not in self.lines}
        return list(events.values())

    def has_removed(self, wanted: Collection[str]) -> bool:
        """Whether an event of the current order is missing in `wanted`."""
        return not all(key in wanted for key in self.order)

    def next_splice(self, wanted: Sequence[str]) -> Splice | None:
        """The next splice towards the wanted order; None once it is reached."""
        start = common_prefix_length(self.order, wanted)
        if start == len(self.order) == len(wanted):
            return None
        end = common_prefix_length(self.order[start:][::-1], wanted[start:][::-1])
        put = wanted[start : len(wanted) - end]
        return Splice(start, len(self.order) - end - start, tuple(put[:MAX_MOVED_EVENTS]))


def common_prefix_length(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the common prefix of two sequences."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))
