"""What every store does around an append: check the rows, wake followers, keep the newest rows."""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter

from accord.engine.ports import Row

PositionedRow = tuple[int, Row]

# Bounds of the newest rows kept for followers.
MAX_TAIL_ROWS = 8192
MAX_TAIL_BYTES = 16 << 20

BODY = attrgetter("body")
STREAM, VERSION = attrgetter("stream"), attrgetter("version")


def check_append(stream: str, expected: int, rows: Sequence[Row]) -> None:
    """Check that rows belong to `stream` and continue from `expected`; else the caller is wrong."""
    right = list(range(expected + 1, expected + 1 + len(rows)))
    versions, streams = list(map(VERSION, rows)), set(map(STREAM, rows))
    if versions != right or not streams <= {stream}:
        named = ", ".join(sorted(streams))
        raise ValueError(f"{named} {versions} does not belong at {stream} {right}")


class CommitSignal:
    """Wakes tasks that wait for the next commit.

    Call `next()` before reading and wait for it afterwards, so that no commit is missed.
    """

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None

    def next(self) -> asyncio.Event:
        """An event that the next `notify` sets."""
        if self._event is None:
            self._event = asyncio.Event()
        return self._event

    def notify(self) -> None:
        """Wake all current waiters."""
        event, self._event = self._event, None
        if event:
            event.set()


class TailCache:
    """The newest rows without a gap, within bounds."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque()
        self._bytes = 0
        self.last = 0

    def add(self, rows: Sequence[Row], last: int) -> None:
        """Add committed rows; the newest is at position `last`."""
        if last - len(rows) != self.last:
            self.clear()
        self._rows.extend(rows)
        self._bytes += sum(map(len, map(BODY, rows)))
        self.last = last
        self._trim()

    def clear(self) -> None:
        """Forget everything, since rows may be missing at the end."""
        self._rows.clear()
        self._bytes = 0

    def skip_to(self, last: int) -> None:
        """Begin behind this position, unless the cache is there already."""
        if last > self.last:
            self.clear()
            self.last = last

    def after(self, position: int, limit: int) -> list[PositionedRow] | None:
        """Rows behind `position`; empty if there are none; None: read the store."""
        behind = self.last - position
        # A follower that read from the store may be ahead of this cache.
        if not self._rows or not 0 <= behind <= len(self._rows):
            return None
        # From the newer end: a follower that keeps up needs the last few of thousands.
        rows = list(islice(reversed(self._rows), behind))
        rows.reverse()
        return list(enumerate(rows[:limit], position + 1))

    def _trim(self) -> None:
        while self._rows and (len(self._rows) > MAX_TAIL_ROWS or self._bytes > MAX_TAIL_BYTES):
            self._bytes -= len(self._rows.popleft().body)
