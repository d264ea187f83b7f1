"""Workers follow the log with a durable cursor, for work that must survive a crash.

The engine's own worker signs stream heads, so that an edited, dropped or truncated record can be
detected.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from operator import attrgetter, itemgetter
from time import perf_counter
from typing import Protocol

from msgspec.structs import replace

from accord.core.kernel.integrity.hash_chain import SignedHead
from accord.engine.counters import EngineCounters
from accord.engine.ports import Clock, EventLog, Row, StoreError

log = logging.getLogger("accord.engine")
# Seconds before a failed worker is restarted.
RETRY_DELAY_S = 1.0
ROW = itemgetter(1)
STREAM = attrgetter("stream")


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


async def follow(
    events: EventLog, position: int, on_batch: Callable[[Sequence[tuple[int, Row]]], None]
) -> None:
    """Call this for all rows behind `position`, across failures of the store; never returns."""
    while True:
        try:
            async for batch in events.tail(position):
                on_batch(batch)
                position = batch[-1][0]
        except StoreError as error:
            log.warning("log.unfollowed", extra={"detail": str(error)})
            await asyncio.sleep(RETRY_DELAY_S)


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
