"""What every store does around an append: check the rows before, wake followers after."""

import asyncio
from collections.abc import Sequence
from operator import attrgetter

from accord.engine.ports import Row

STREAM, VERSION = attrgetter("stream"), attrgetter("version")


def check_append(stream: str, expected: int, rows: Sequence[Row]) -> None:
    """Check that rows belong to `stream` and continue from `expected`; else the caller is wrong."""
    right = list(range(expected + 1, expected + 1 + len(rows)))
    versions, streams = list(map(VERSION, rows)), set(map(STREAM, rows))
    if versions != right or not streams <= {stream}:
        named = ", ".join(sorted(streams))
        raise ValueError(f"{named} {versions} does not belong at {stream} {right}")


class CommitSignal:
    """Wakes tasks that wait for the next commit.

    Call `next()` before reading and wait for it afterwards, so that no commit is missed.
    """

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None

    def next(self) -> asyncio.Event:
        """An event that the next `notify` sets."""
        if self._event is None:
            self._event = asyncio.Event()
        return self._event

    def notify(self) -> None:
        """Wake all current waiters."""
        event, self._event = self._event, None
        if event:
            event.set()
