"""Received messages that the program has not read yet."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from accord.client.envelope import Envelope


class Inbox(AsyncIterator[Envelope]):
    """An ordered queue of messages for one reader.

    `put` does not enforce `max_unread`: the router checks `is_full` and stops reading if it can.
    """

    def __init__(self, max_unread: int, on_change: Callable[[], None]) -> None:
        self._max_unread = max_unread
        self._on_change = on_change
        self._unread: deque[Envelope] = deque()
        self._changed = asyncio.Event()
        self._closed = False
        self._error: Exception | None = None

    @property
    def is_full(self) -> bool:
        """Whether the reader must catch up first; never if `max_unread` is 0: no reader."""
        return 0 < self._max_unread <= len(self._unread) and not self._closed

    def put(self, envelope: Envelope) -> None:
        """Queue a message, unless the inbox is closed or has no reader."""
        if self._max_unread and not self._closed:
            self._unread.append(envelope)
            self._changed.set()

    def close(self, error: Exception | None = None) -> None:
        """End the stream: the reader still gets queued messages, then the end or `error`."""
        if not self._closed:
            self._closed, self._error = True, error
            self._changed.set()
            self._on_change()

    async def __anext__(self) -> Envelope:
        """Wait for the next message."""
        while not self._unread:
            if self._closed:
                raise self._error or StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        envelope = self._unread.popleft()
        self._on_change()
        return envelope
