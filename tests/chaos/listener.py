"""Somebody who listens for long and notes what came, not what it said."""

import asyncio
from types import TracebackType
from typing import Self

from accord.client import Session

PATIENCE = 60.0


class Listener:
    """Every message of a session comes once, and in the order of the room."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.ids: dict[str, None] = {}
        self.seq = 0
        self._unkept: set[str] = set()
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for envelope in self.session.messages():
            assert envelope.id not in self.ids, "twice"
            assert envelope.id not in self._unkept, "twice"
            if envelope.seq:
                assert envelope.seq > self.seq, "out of order"
                self.ids[envelope.id] = None
                self.seq = envelope.seq
            else:  # signals and errors have no place
                self._unkept.add(envelope.id)
            async with self._news:
                self._news.notify_all()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def check(self) -> None:
        """Raises what was wrong with what came."""
        if self._task.done():
            self._task.result()

    async def until(self, seq: int) -> None:
        """Up to this place."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: self.seq >= seq or self._task.done())
        self.check()
