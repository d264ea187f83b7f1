"""Tells followers of the log about new rows, of this server and of others.

PostgreSQL announces each commit (NOTIFY). A poll finds what an announcement missed, for example
while the listening connection was lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import asyncpg

from accord.engine.ports import Row, StoreError
from accord.stores.append import CommitSignal, TailCache
from accord.stores.postgres.errors import CONNECTION_ERRORS, STORE_ERRORS
from accord.stores.postgres.schema import CHANNEL

# Seconds between checks for commits that were not announced.
POLL_INTERVAL_S = 0.4
# Commits of this server are signalled together after this time; it has delivered them already.
NOTIFY_DELAY_S = 0.02

Connect = Callable[[], Awaitable[asyncpg.Connection]]


class TailWatch:
    """Signals new rows; idle while there are no followers."""

    def __init__(
        self, writer: int, connect: Connect, position: Callable[[], Awaitable[int]]
    ) -> None:
        self.commit_signal = CommitSignal()
        self.cache = TailCache()
        self._own_prefix = f"{writer} "
        self._connect = connect
        self._position = position
        self._followers = 0
        self._soon: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self) -> Iterator["TailWatch"]:
        """While inside, commits of other servers are detected too."""
        self._followers += 1
        if self._watch is None:
            self._watch = asyncio.create_task(self._run(), name="accord-postgres-listener")
        try:
            yield self
        finally:
            self._followers -= 1
            if not self._followers:
                self._stop()

    def on_commit(self, rows: Sequence[Row], last: int) -> None:
        """This server committed."""
        if self._followers:
            self.cache.add(rows, last)
            if self._soon is None:
                self._soon = asyncio.get_running_loop().call_later(NOTIFY_DELAY_S, self._notify)

    def on_foreign_commit(self) -> None:
        """Rows that this server did not write may be at the end of the log."""
        self.cache.clear()
        self.commit_signal.notify()

    def close(self) -> None:
        """Wake all followers for the last time."""
        self._stop()
        self.commit_signal.notify()

    def _notify(self) -> None:
        self._soon = None
        self.commit_signal.notify()

    def _stop(self) -> None:
        self.cache.clear()
        if self._soon:
            self._soon.cancel()
            self._soon = None
        if self._watch:
            self._watch.cancel()
            self._watch = None

    async def _run(self) -> None:
        listener: asyncpg.Connection | None = None
        seen = -1
        try:
            while True:
                with suppress(StoreError, *STORE_ERRORS):
                    if listener is None or listener.is_closed():
                        listener = await self._connect()
                        await listener.add_listener(CHANNEL, self._on_notification)
                    now = await self._position()
                    if now not in {seen, self.cache.last}:
                        self.on_foreign_commit()
                    seen = now
                await asyncio.sleep(POLL_INTERVAL_S)
        finally:
            if listener:
                with suppress(*CONNECTION_ERRORS):
                    listener.terminate()

    def _on_notification(
        self, _connection: object, _pid: int, _channel: str, payload: object
    ) -> None:
        if not str(payload).startswith(self._own_prefix):
            self.on_foreign_commit()
