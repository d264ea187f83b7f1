"""The next deadline over all streams. Deadlines come from state, so a restart forgets none."""

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from accord.core.kernel.log import Instant
from accord.engine.ports import Clock

# Seconds; a machine that slept has another idea of how long a timer was to wait.
LONGEST_NAP = 60.0
# A deadline that a tick did not move is tried again after this long.
PATIENCE = 1000
# Deadlines that were moved wait in the heap beside those that count, and no more of them.
MOST_STALE = 64


class Scheduler:
    """Calls `due(stream)` once a stream's deadline has come."""

    def __init__(self, clock: Clock, due: Callable[[str], None]) -> None:
        self.clock = clock
        self.due = due
        self.when: dict[str, Instant] = {}
        self.heap: list[tuple[Instant, str]] = []
        self.timer: asyncio.TimerHandle | None = None

    def set(self, stream: str, at: Instant | None) -> None:
        """The stream's soonest deadline is now `at`; None: it has none."""
        if at is None:
            self.when.pop(stream, None)
        else:
            self.when[stream] = at
            heappush(self.heap, (at, stream))
            self._arm()
        if len(self.heap) > 2 * len(self.when) + MOST_STALE:
            self.heap = [(at, stream) for stream, at in self.when.items()]
            heapify(self.heap)

    def run_due(self) -> None:
        """Call for every stream whose time has come, and wait for the next."""
        now = self.clock.now()
        while self.heap and self.heap[0][0] <= now:
            at, stream = heappop(self.heap)
            if self.when.get(stream) == at:
                heappush(self.heap, (now + PATIENCE, stream))
                self.when[stream] = now + PATIENCE
                self.due(stream)
        self._arm()

    def stop(self) -> None:
        """No more calls."""
        if self.timer:
            self.timer.cancel()
        self.when.clear()
        self.heap.clear()

    def _arm(self) -> None:
        if self.timer:
            self.timer.cancel()
        self.timer = None
        if self.heap:
            wait = max(0, self.heap[0][0] - self.clock.now()) / 1000
            nap = min(wait, LONGEST_NAP)
            self.timer = asyncio.get_running_loop().call_later(nap, self.run_due)
