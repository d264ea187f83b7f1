"""The newest rows in memory, for those who follow the log."""

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
