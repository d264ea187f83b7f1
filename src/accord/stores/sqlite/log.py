"""The port on one SQLite file: a thread writes, another reads, the loop waits for neither."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import apsw

from accord.core.kernel.chain import Head
from accord.engine.ports import Row, Snapshot, StoreError
from accord.stores.bell import Bell
from accord.stores.place import check_place
from accord.stores.sqlite.batch import Append, Chore
from accord.stores.sqlite.faults import store_error
from accord.stores.sqlite.file import prepare
from accord.stores.sqlite.reader import Reader
from accord.stores.sqlite.writer import SYNCHRONOUS, Writer

T = TypeVar("T")

POLL_S = 0.2
BATCH = 500

ADVANCE = """
    INSERT INTO cursors VALUES (?, ?)
    ON CONFLICT DO UPDATE SET position = max(position, excluded.position)
"""
KEEP = """
    INSERT INTO snapshots VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET version = excluded.version, shape = excluded.shape,
        blob = excluded.blob WHERE excluded.version >= version
"""
SIGN = """
    INSERT OR IGNORE INTO heads (stream, version, hash, at, key, signature)
    VALUES (?, ?, ?, ?, ?, ?)
"""


class SqliteLog:
    """Every promise of the port, kept by the file at `path`."""

    def __init__(self, path: str, durability: str) -> None:
        self._path = path
        self._bell = Bell()
        self._reader = Reader(path)
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="accord-reader")
        self._writer = Writer(path, durability, self._bell.ring)
        self._loop = asyncio.get_running_loop()
        self._closing: asyncio.Task[None] | None = None
        self._tails = 0
        self._poll: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: str, *, durability: str = "full") -> "SqliteLog":
        """The log in the file at `path`, which is made when it is missing."""
        if durability not in SYNCHRONOUS:
            raise StoreError(f"Durability is one of {', '.join(SYNCHRONOUS)}, not {durability!r}")
        if not path:
            raise StoreError("sqlite: needs the path of a file, as in sqlite:accord.db")
        await asyncio.to_thread(prepare, path)
        return cls(path, durability)

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        check_place(stream, expected, rows)
        self._check_open()
        done = self._loop.create_future()
        self._writer.put(Append(stream, expected, rows, done))
        await done

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        return await self._ask(self._reader.read, stream, after, limit)

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        return await self._ask(self._reader.find, stream, ids)

    async def streams(self, prefix: str = "") -> dict[str, int]:
        return await self._ask(self._reader.streams, prefix)

    async def position(self) -> int:
        return await self._ask(self._reader.position)

    async def tail(self, after: int) -> AsyncIterator[list[tuple[int, Row]]]:
        position = after
        self._watch(1)
        try:
            while True:
                rung = self._bell.next()
                placed = await self._ask(self._reader.after, position, BATCH)
                if placed:
                    position = placed[-1][0]
                    yield placed
                else:
                    await rung.wait()
        finally:
            self._watch(-1)

    async def cursor(self, name: str) -> int:
        return await self._ask(self._reader.cursor, name)

    async def advance(self, name: str, position: int) -> None:
        await self._do(ADVANCE, name, position)

    async def snapshot(self, stream: str) -> Snapshot | None:
        return await self._ask(self._reader.snapshot, stream)

    async def keep(self, stream: str, snapshot: Snapshot) -> None:
        await self._do(KEEP, stream, snapshot.version, snapshot.shape, snapshot.blob)

    async def heads(self, stream: str) -> list[Head]:
        return await self._ask(self._reader.heads, stream)

    async def sign(self, head: Head) -> None:
        values = (head.stream, head.version, head.hash, head.at, head.key, head.signature)
        await self._do(SIGN, *values)

    async def check(self) -> list[str]:
        """What is wrong with the file, read as a whole; empty when nothing is."""
        return await self._ask(self._reader.integrity)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._poll:
            self._poll.cancel()
        await self._writer.close()
        await self._loop.run_in_executor(self._reading, self._reader.close)
        self._reading.shutdown(wait=False)
        self._bell.ring()

    async def _do(self, sql: str, *values: object) -> None:
        self._check_open()
        done = self._loop.create_future()
        self._writer.put(Chore(sql, values, done))
        await done

    async def _ask(self, question: Callable[..., T], *words: object) -> T:
        self._check_open()
        try:
            return await self._loop.run_in_executor(self._reading, question, *words)
        except apsw.Error as error:
            raise store_error(self._path, error) from error

    def _check_open(self) -> None:
        if self._closing:
            raise StoreError(f"The log {self._path} is closed")

    def _watch(self, more: int) -> None:
        self._tails += more
        if self._tails and self._poll is None:
            self._poll = asyncio.create_task(self._listen())
        elif not self._tails and self._poll:
            self._poll.cancel()
            self._poll = None

    async def _listen(self) -> None:
        seen = await self._ask(self._reader.changes)
        while True:
            await asyncio.sleep(POLL_S)
            now = await self._ask(self._reader.changes)
            if now != seen:
                self._bell.ring()
            seen = now
