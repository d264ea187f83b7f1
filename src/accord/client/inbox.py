"""What was heard and not yet read."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from .envelope import Envelope


class Inbox(AsyncIterator[Envelope]):
    """Messages in their order, for one reader; each is handed out once.

    The bound is a mark, not a wall: whoever fills it asks `full` and stops when it can.
    """

    def __init__(self, bound: int, stirred: Callable[[], None]) -> None:
        self._bound = bound
        self._stirred = stirred
        self._waiting: deque[Envelope] = deque()
        self._news = asyncio.Event()
        self._closed = False
        self._error: Exception | None = None

    @property
    def full(self) -> bool:
        """Whether the reader should catch up first; nobody reads a bound of 0."""
        return 0 < self._bound <= len(self._waiting) and not self._closed

    def put(self, envelope: Envelope) -> None:
        """One more to read."""
        if self._bound and not self._closed:
            self._waiting.append(envelope)
            self._news.set()

    def close(self, error: Exception | None = None) -> None:
        """No more will come; the reader still gets what is here, then the end or the error."""
        if not self._closed:
            self._closed, self._error = True, error
            self._news.set()
            self._stirred()

    async def __anext__(self) -> Envelope:
        """The next one, as soon as there is one."""
        while not self._waiting:
            if self._closed:
                raise self._error or StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        envelope = self._waiting.popleft()
        self._stirred()
        return envelope
