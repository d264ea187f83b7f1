"""The end of the log in memory, so that whoever keeps up with it does not read the file."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter

from accord.engine.ports import Row

Placed = tuple[int, Row]

ROWS = 8192
BYTES = 16 << 20
BODY = attrgetter("body")


class Recent:
    """The newest rows, without a gap, as many as the bounds allow."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque()
        self._bytes = 0
        self.last = 0

    def add(self, rows: Sequence[Row], last: int) -> None:
        """These rows were committed, the newest at position `last`."""
        if last - len(rows) != self.last:
            self.forget()
        self._rows.extend(rows)
        self._bytes += sum(map(len, map(BODY, rows)))
        self.last = last
        self._trim()

    def forget(self) -> None:
        """There may be rows at the end of the log that we do not know of."""
        self._rows.clear()
        self._bytes = 0

    def after(self, position: int, limit: int) -> list[Placed] | None:
        """Rows behind `position`; none when there are none; None when only the file knows."""
        behind = self.last - position
        # Whoever read the file may be ahead of what was told here.
        if not self._rows or not 0 <= behind <= len(self._rows):
            return None
        # From the newer end, because whoever keeps up wants the last few of thousands.
        rows = list(islice(reversed(self._rows), behind))
        rows.reverse()
        return list(enumerate(rows[:limit], position + 1))

    def _trim(self) -> None:
        while self._rows and (len(self._rows) > ROWS or self._bytes > BYTES):
            self._bytes -= len(self._rows.popleft().body)
