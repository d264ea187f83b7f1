"""Workers tail the log with a durable cursor: what must survive a crash is done from here."""

from collections.abc import Sequence
from typing import Protocol

from accord.engine.ports import EventLog, Row


class Worker(Protocol):
    """Does something about what happened; safe to repeat."""

    name: str

    async def handle(self, rows: Sequence[Row]) -> None:
        """All rows of a batch, in the order of commit."""
        ...


async def run(events: EventLog, worker: Worker) -> None:
    """Hand every row to the worker at least once, across restarts, for ever."""
    async for batch in events.tail(await events.cursor(worker.name)):
        await worker.handle([row for _, row in batch])
        await events.advance(worker.name, batch[-1][0])
