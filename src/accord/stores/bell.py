"""Wakes whoever waits for the next commit."""

import asyncio


class Bell:
    """Take `next()` before you look, then wait for it: no ring in between is missed."""

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None

    def next(self) -> asyncio.Event:
        """Is set by the next ring."""
        if self._event is None:
            self._event = asyncio.Event()
        return self._event

    def ring(self) -> None:
        """Wake all who wait now."""
        event, self._event = self._event, None
        if event:
            event.set()
