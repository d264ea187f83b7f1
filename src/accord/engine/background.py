"""Work in the background: timers, clocks, tasks, and workers that follow the log.

A worker has a durable cursor; work that must survive a crash is done by one. The engine's own signs
stream heads, so that an edited, dropped or truncated record can be detected.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from functools import partial
from heapq import heapify, heappop, heappush
from operator import attrgetter, itemgetter
from time import perf_counter
from typing import Any, Protocol

from msgspec.structs import replace

from accord.core.kernel.integrity.hash_chain import SignedHead
from accord.core.kernel.messages import Instant
from accord.engine.counters import EngineCounters
from accord.engine.ports import Clock, EventLog, Row

log = logging.getLogger("accord.engine")
# Seconds. After a suspend a timer is late, so the clock is checked at least this often.
MAX_SLEEP_S = 60.0
# A deadline that a tick did not resolve is tried again after this time.
RETRY_AFTER_MS = 1000
# Outdated heap entries tolerated before the heap is rebuilt.
MAX_STALE_ENTRIES = 64
# Unexpected errors kept for tests and inspection; all of them are logged.
MAX_FAILURES = 16
# Seconds before a failed worker is restarted.
RETRY_DELAY_S = 1.0
ROW = itemgetter(1)
STREAM = attrgetter("stream")


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


class Worker(Protocol):
    """Acts on committed rows. After a crash it sees some of them again."""

    name: str
    pause: float  # seconds between two acts, so that one act handles many rows

    def note(self, rows: Sequence[Row]) -> None:
        """Take in committed rows, in commit order; must be cheap."""
        ...

    async def act(self) -> None:
        """Act on everything noted before this call; must be safe to repeat."""
        ...


class _Follower:
    def __init__(self, position: int) -> None:
        self.position = position
        self.new_rows = asyncio.Event()

    async def follow(self, events: EventLog, worker: Worker) -> None:
        async for batch in events.tail(self.position):
            worker.note(list(map(ROW, batch)))
            self.position = batch[-1][0]
            self.new_rows.set()

    async def act(self, events: EventLog, worker: Worker, tally: EngineCounters) -> None:
        while True:
            await self.new_rows.wait()
            self.new_rows.clear()
            reached, began = self.position, perf_counter()
            await worker.act()
            tally.observe_worker(worker.name, began)
            await events.advance(worker.name, reached)
            await asyncio.sleep(worker.pause)


class Signer(Protocol):
    def sign(self, data: bytes) -> bytes: ...


class SigningKeys(Protocol):
    def signer(self) -> tuple[str, Signer]:
        """The current signing key and its id."""
        ...


class HeadSigner:
    """Signs the newest row of each stream that grew; the signature covers all rows before it."""

    name = "heads"
    pause = 1.0

    def __init__(self, events: EventLog, signer: SigningKeys, clock: Clock) -> None:
        self.events = events
        self.signer = signer
        self.clock = clock
        self.newest_rows: dict[str, Row] = {}
        self.signed_total: int | None = None

    def note(self, rows: Sequence[Row]) -> None:
        """Remember the newest row of each stream."""
        self.newest_rows.update(zip(map(STREAM, rows), rows, strict=True))

    async def act(self) -> None:
        """Sign the streams that grew."""
        for row in list(self.newest_rows.values()):
            await self.sign(row)
            if self.newest_rows[row.stream] is row:
                del self.newest_rows[row.stream]

    async def sign(self, row: Row) -> None:
        """Store a signed head with the number of records signed so far."""
        before, self.signed_total = (
            self.signed_total,
            None,
        )  # counted again only after the head is stored
        if before is None:
            covered = await self.events.signature_coverage()
            # The total never decreases, so a deleted signature is noticed and not silently
            # replaced.
            before = max(covered.records, covered.signed_records)
        total = before + max(0, row.version - await self.events.signed_version(row.stream))
        await self.events.add_head(self.head(row, total))
        self.signed_total = total

    def head(self, row: Row, total: int) -> SignedHead:
        """A signed statement that this row is, or was, the newest of its stream."""
        kid, key = self.signer.signer()
        head = SignedHead(row.stream, row.version, row.hash, self.clock.now(), kid, total=total)
        return replace(head, signature=key.sign(head.signed_bytes()))


def steady_clock() -> Callable[[], int]:
    """Monotonic nanoseconds, including time asleep where the platform supports that."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    return time.monotonic_ns


async def run_worker(events: EventLog, worker: Worker, tally: EngineCounters | None = None) -> None:
    """Feed every row to the worker at least once, across restarts and failures; never returns."""
    tally = tally or EngineCounters()
    while True:
        try:
            await _run_once(events, worker, tally)
        except* Exception as errors:  # noqa: BLE001 - whatever it is, the next try may go well
            names = ",".join(sorted({type(each).__name__ for each in errors.exceptions}))
            log.warning("worker.failed", extra={"worker": worker.name, "error": names})
            tally.worker_restarts[worker.name] += 1
        await asyncio.sleep(max(worker.pause, RETRY_DELAY_S))


async def _run_once(events: EventLog, worker: Worker, tally: EngineCounters) -> None:
    start = await events.cursor(worker.name)
    follower = _Follower(start)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(follower.follow(events, worker))
        tasks.create_task(follower.act(events, worker, tally))


async def finish_worker(events: EventLog, worker: Worker) -> None:
    """Let the worker handle everything committed so far, once, before a stop."""
    reached, end = await events.cursor(worker.name), await events.position()
    if reached >= end:
        return
    async with aclosing(events.tail(reached)) as batches:
        async for batch in batches:
            worker.note(list(map(ROW, batch)))
            reached = batch[-1][0]
            if reached >= end:
                break
    await worker.act()
    await events.advance(worker.name, reached)
