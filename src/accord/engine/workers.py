"""Workers tail the log with a durable cursor: what must survive a crash is done from here."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from operator import itemgetter
from time import perf_counter
from typing import Protocol

from accord.engine.ports import EventLog, Row
from accord.engine.tally import Tally

log = logging.getLogger("accord.engine")

# Seconds until a worker that failed is tried again.
PATIENCE = 1.0

ROW = itemgetter(1)


class Worker(Protocol):
    """Does something about what happened. After a crash it sees some of it again."""

    name: str
    pause: float  # seconds to rest between two acts, so that many rows make one

    def note(self, rows: Sequence[Row]) -> None:
        """Take in what was committed; cheap, called for every row in the order of commit."""
        ...

    async def act(self) -> None:
        """Do what everything noted before this call asks for; safe to repeat."""
        ...


async def run(events: EventLog, worker: Worker, tally: Tally | None = None) -> None:
    """Every row reaches the worker at least once, across restarts and failures, for ever."""
    tally = tally or Tally()
    while True:
        try:
            await _run(events, worker, tally)
        except* Exception as errors:  # noqa: BLE001 - whatever it is, the next try may go well
            names = ",".join(sorted({type(each).__name__ for each in errors.exceptions}))
            log.warning("worker.failed", extra={"worker": worker.name, "error": names})
            tally.restarts[worker.name] += 1
        await asyncio.sleep(max(worker.pause, PATIENCE))


async def _run(events: EventLog, worker: Worker, tally: Tally) -> None:
    start = await events.cursor(worker.name)
    follower = _Follower(start)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(follower.follow(events, worker))
        tasks.create_task(follower.act(events, worker, tally))


async def finish(events: EventLog, worker: Worker) -> None:
    """Let the worker see what was committed so far and act on it, once, before a stop."""
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


class _Follower:
    def __init__(self, position: int) -> None:
        self.position = position
        self.news = asyncio.Event()

    async def follow(self, events: EventLog, worker: Worker) -> None:
        async for batch in events.tail(self.position):
            worker.note(list(map(ROW, batch)))
            self.position = batch[-1][0]
            self.news.set()

    async def act(self, events: EventLog, worker: Worker, tally: Tally) -> None:
        while True:
            await self.news.wait()
            self.news.clear()
            reached, began = self.position, perf_counter()
            await worker.act()
            tally.acted(worker.name, began)
            await events.advance(worker.name, reached)
            await asyncio.sleep(worker.pause)
