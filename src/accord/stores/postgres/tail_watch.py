"""Notices commits of all servers, reads those of other servers once, and wakes followers.

Other servers announce their commits and signals (`NOTIFY`); checking the position every
`POLL_INTERVAL_S` finds what an announcement missed. The newest rows are in a cache, so that each is
read from the database once, however many followers there are.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import asyncpg

from accord.engine.ports import Row, StoreError
from accord.stores.append import CommitSignal, TailCache
from accord.stores.postgres.errors import CONNECTION_ERRORS, STORE_ERRORS
from accord.stores.postgres.reader import READ_ROWS, Reader
from accord.stores.postgres.schema import CHANNEL, SIGNAL_CHANNEL

# Seconds between checks for commits that were not announced.
POLL_INTERVAL_S = 0.4
# Commits of this server are signalled together after this time; it has delivered them already.
NOTIFY_DELAY_S = 0.02

Connect = Callable[[], Awaitable[asyncpg.Connection]]


class TailWatch:
    """Signals new rows; idle while there are no followers."""

    def __init__(self, writer: int, connect: Connect, reader: Reader) -> None:
        self.commit_signal = CommitSignal()
        self.cache = TailCache()
        # Called with what servers send each other, and when this server begins to hear it.
        self.on_signal: Callable[[str], None] | None = None
        self.on_listening: Callable[[], None] | None = None
        self._own_prefix = f"{writer} "
        self._connect = connect
        self._reader = reader
        self._followers = 0
        self._announced = 0
        self._wake = asyncio.Event()
        self._is_current = False  # whether all rows behind the cache's newest will be read into it
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
        if not self._followers or last <= self.cache.last:
            return
        if self._is_current and last - len(rows) != self.cache.last:
            self.on_foreign_commit(last)  # rows of another server are between
            return
        self.cache.add(rows, last)
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(NOTIFY_DELAY_S, self._notify)

    def on_foreign_commit(self, last: int = 0) -> None:
        """Rows that this server did not write may be at the end of the log, up to `last`."""
        self._announced = max(self._announced, last)
        self._wake.set()

    def close(self) -> None:
        """Wake all followers for the last time."""
        self._stop()
        self.commit_signal.notify()

    def _notify(self) -> None:
        self._soon = None
        self.commit_signal.notify()

    def _stop(self) -> None:
        self.cache.clear()
        self._is_current = False
        if self._soon:
            self._soon.cancel()
            self._soon = None
        if self._watch:
            self._watch.cancel()
            self._watch = None

    async def _run(self) -> None:
        listener: asyncpg.Connection | None = None
        try:
            while True:
                with suppress(StoreError, *STORE_ERRORS):
                    if listener is None or listener.is_closed():
                        listener = await self._listen()
                    await self._catch_up()
                await self._wait()
        finally:
            if listener:
                with suppress(*CONNECTION_ERRORS):
                    listener.terminate()

    async def _listen(self) -> asyncpg.Connection:
        listener = await self._connect()
        try:
            await listener.add_listener(CHANNEL, self._on_notification)
            await listener.add_listener(SIGNAL_CHANNEL, self._on_signal_notification)
        except BaseException:
            listener.terminate()
            raise
        if self.on_listening:
            self.on_listening()
        return listener

    async def _wait(self) -> None:
        """Until a commit is announced, or the next check is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_INTERVAL_S):
                await self._wake.wait()
                return
        self._announced = 0  # ask for the position, whatever was announced

    async def _catch_up(self) -> None:
        """Read rows of other servers into the cache."""
        was_announced = self._wake.is_set()
        self._wake.clear()
        target = self._announced
        if not was_announced or target <= self.cache.last:
            target = await self._reader.position()
        if not self._is_current:
            self.cache.skip_to(target)
            self._is_current = True
            self.commit_signal.notify()
        while self.cache.last < target:
            found = await self._reader.read_after(self.cache.last, READ_ROWS)
            fresh = [row for position, row in found if position > self.cache.last]
            if not found:
                return
            if fresh:
                self.cache.add(fresh, found[-1][0])
            self.commit_signal.notify()

    def _on_notification(
        self, _connection: object, _pid: int, _channel: str, payload: object
    ) -> None:
        text = str(payload)
        if not text.startswith(self._own_prefix):
            last = text.rpartition(" ")[2]
            self.on_foreign_commit(int(last) if last.isdecimal() else 0)

    def _on_signal_notification(
        self, _connection: object, _pid: int, _channel: str, payload: object
    ) -> None:
        if self.on_signal:
            self.on_signal(str(payload))
