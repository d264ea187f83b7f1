"""Time and tasks: the clocks, and work that runs as a task or when a deadline has passed."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from accord.core.kernel.messages import Instant
from accord.engine.ports import Clock

log = logging.getLogger("accord.engine")


# Seconds. After a suspend a timer is late, so the clock is checked at least this often.
MAX_SLEEP_S = 60.0


# A deadline that a tick did not resolve is tried again after this time.
RETRY_AFTER_MS = 1000


# Outdated heap entries tolerated before the heap is rebuilt.
MAX_STALE_ENTRIES = 64


# Unexpected errors kept for tests and inspection; all of them are logged.
MAX_FAILURES = 16


class SystemClock:
    """Wall time at the start, monotonic from then on: setting the clock has no effect (UNI-23)."""

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] | None = None,
    ) -> None:
        self._steady = steady or steady_clock()
        self._offset = wall() - self._steady()

    def now(self) -> int:
        """Milliseconds since 1970."""
        return (self._offset + self._steady()) // 1_000_000


class WallClock:
    """The wall clock as it is set now; for tokens, which other machines check too."""

    def __init__(self, wall: Callable[[], int] = time.time_ns) -> None:
        self._wall = wall

    def now(self) -> int:
        """Milliseconds since 1970."""
        return self._wall() // 1_000_000


def steady_clock() -> Callable[[], int]:
    """Monotonic nanoseconds, including time asleep where the platform supports that."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    return time.monotonic_ns


class Scheduler:
    """Calls `due(stream)` once the deadline of a stream has passed.

    There is one timer, for the next deadline over all streams; deadlines are part of the state.
    """

    def __init__(self, clock: Clock, due: Callable[[str], None]) -> None:
        self.clock = clock
        self.on_due = due
        self.deadlines: dict[str, Instant] = {}
        self.heap: list[tuple[Instant, str]] = []
        self.timer: asyncio.TimerHandle | None = None

    def set(self, stream: str, at: Instant | None) -> None:
        """Set the earliest deadline of a stream; None removes it."""
        if at is None:
            self.deadlines.pop(stream, None)
        else:
            self.deadlines[stream] = at
            heappush(self.heap, (at, stream))
            self._arm()
        if len(self.heap) > 2 * len(self.deadlines) + MAX_STALE_ENTRIES:
            self.heap = [(at, stream) for stream, at in self.deadlines.items()]
            heapify(self.heap)

    def run_due(self) -> None:
        """Call for every stream whose deadline has passed, then arm the timer."""
        now = self.clock.now()
        while self.heap and self.heap[0][0] <= now:
            at, stream = heappop(self.heap)
            if self.deadlines.get(stream) == at:
                heappush(self.heap, (now + RETRY_AFTER_MS, stream))
                self.deadlines[stream] = now + RETRY_AFTER_MS
                self.on_due(stream)
        self._arm()

    def stop(self) -> None:
        if self.timer:
            self.timer.cancel()
        self.deadlines.clear()
        self.heap.clear()

    def _arm(self) -> None:
        if self.timer:
            self.timer.cancel()
        self.timer = None
        if self.heap:
            wait = max(0, self.heap[0][0] - self.clock.now()) / 1000
            nap = min(wait, MAX_SLEEP_S)
            self.timer = asyncio.get_running_loop().call_later(nap, self.run_due)


class BackgroundTasks:
    """Tasks that are running, and the errors that should never have happened."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this as a task; a failure is logged and recorded."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.critical("task.died", exc_info=error)
            self.record_failure(error)

    def record_failure(self, error: BaseException) -> None:
        """Keep an error that should never happen."""
        self.failures.append(error)
        del self.failures[:-MAX_FAILURES]

    async def wait_until_idle(self) -> None:
        """Wait until no task is running."""
        while tasks := [task for task in self._running if task is not asyncio.current_task()]:
            await asyncio.gather(*tasks, return_exceptions=True)

    def cancel_all(self) -> None:
        for task in self._running:
            task.cancel()
