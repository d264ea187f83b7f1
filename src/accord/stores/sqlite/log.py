"""The port on one SQLite file: a thread writes, another reads, the loop waits for neither."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from accord.core.kernel.chain import Covered, Head
from accord.core.kernel.cuts import Cut
from accord.engine.ports import Row, Snapshot, StoreError, UnknownStoreError
from accord.stores.place import check_place
from accord.stores.sqlite.faults import NONSENSE, store_error
from accord.stores.sqlite.file import prepare
from accord.stores.sqlite.follow import Follow
from accord.stores.sqlite.jobs import Append, Chore
from accord.stores.sqlite.pruning import Pruner
from accord.stores.sqlite.reader import FEW, MANY, Reader
from accord.stores.sqlite.writer import SYNCHRONOUS, Writer

P = ParamSpec("P")
T = TypeVar("T")

# Between two batches of rows that are removed, for those who write.
PAUSE_S = 0.01

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
    INSERT OR IGNORE INTO heads (stream, version, hash, at, key, signature, total)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""


class SqliteLog:
    """Every promise of the port, kept by the file at `path`."""

    def __init__(self, path: str, durability: str) -> None:
        self._path = path
        self._writer = Writer(path, durability)
        self._near = Reader(path, wait=False)
        self._far = Reader(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="accord-reader")
        self._follow = Follow(self._near.changes, self._near.position)
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: str, *, durability: str = "full") -> "SqliteLog":
        """The log in the file at `path`, which is made when it is missing."""
        if durability not in SYNCHRONOUS:
            raise StoreError(f"Durability is one of {', '.join(SYNCHRONOUS)}, not {durability!r}")
        if not path:
            detail = "sqlite: wants the path of a file, as in sqlite:accord.db"
            raise UnknownStoreError(detail)
        log = await asyncio.to_thread(cls._opened, path, durability)
        log.start()
        return log

    @classmethod
    def _opened(cls, path: str, durability: str) -> "SqliteLog":
        prepare(path)
        try:
            return cls(path, durability)
        except apsw.Error as error:
            raise store_error(path, error) from error

    def start(self) -> None:
        """Answer on this loop from now on."""
        self._writer.start(self._follow.committed)

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        check_place(stream, expected, rows)
        self._check_open()
        done = asyncio.get_running_loop().create_future()
        self._writer.put(Append(stream, expected, rows, done))
        await done

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        first = FEW if limit is None else min(FEW, limit)
        rows, more = await self._soon(Reader.few, stream, after, first)
        while more and (limit is None or len(rows) < limit):
            want = MANY if limit is None else min(MANY, limit - len(rows))
            found = await self._ask(Reader.read, stream, rows[-1].version, want)
            rows += found
            more = bool(found)
        return rows

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        ask = self._soon if len(ids) <= FEW else self._ask
        return await ask(Reader.find, stream, ids)

    async def streams(self, prefix: str = "") -> dict[str, int]:
        return await self._ask(Reader.streams, prefix)

    async def position(self) -> int:
        return await self._soon(Reader.position)

    async def tail(self, after: int) -> AsyncGenerator[list[tuple[int, Row]], None]:
        position = max(after, 0)
        with self._follow.following() as follow:
            while True:
                rung = follow.bell.next()
                self._check_open()
                placed = follow.recent.after(position, MANY)
                if placed is None:
                    placed = await self._ask(Reader.after, position, MANY)
                if placed:
                    position = placed[-1][0]
                    yield placed
                else:
                    await rung.wait()

    async def cursor(self, name: str) -> int:
        return await self._soon(Reader.cursor, name)

    async def advance(self, name: str, position: int) -> None:
        await self._do(ADVANCE, name, position)

    async def snapshot(self, stream: str) -> Snapshot | None:
        return await self._ask(Reader.snapshot, stream)

    async def keep(self, stream: str, snapshot: Snapshot) -> None:
        await self._do(KEEP, stream, snapshot.version, snapshot.shape, snapshot.blob)

    async def heads(self, stream: str) -> list[Head]:
        return await self._ask(Reader.heads, stream)

    async def signed(self, stream: str) -> int:
        return await self._soon(Reader.signed, stream)

    async def covered(self) -> Covered:
        return await self._ask(Reader.covered)

    async def sign(self, head: Head) -> None:
        words = (head.stream, head.version, head.hash, head.at, head.key, head.signature)
        await self._do(SIGN, *words, head.total)

    async def cut(self, stream: str) -> Cut | None:
        """Where the stream begins now, if its beginning was removed."""
        return await self._soon(Reader.cut, stream)

    async def prune(self, cut: Cut) -> None:
        """Keep the cut, then remove the rows before it, a few at a time."""
        await self._pruning(lambda pruner: pruner.keep(cut))
        await self._remove(cut.stream)

    async def finish_pruning(self) -> None:
        """Remove what a process that was killed had still to remove."""
        for stream in await self._pruning(Pruner.unfinished):
            await self._remove(stream)

    async def _remove(self, stream: str) -> None:
        while True:
            if not await self._pruning(lambda pruner: pruner.remove(stream)):
                return
            await asyncio.sleep(PAUSE_S)

    async def _pruning(self, work: Callable[[Pruner], T]) -> T:
        self._check_open()
        return await asyncio.to_thread(self._pruned, work)

    def _pruned(self, work: Callable[[Pruner], T]) -> T:
        try:
            with closing(Pruner(self._path)) as pruner:
                return work(pruner)
        except apsw.Error as error:
            raise store_error(self._path, error) from error

    async def check(self) -> list[str]:
        """What is wrong with the file, read as a whole; empty when nothing is."""
        self._check_open()
        return await asyncio.to_thread(self._integrity)

    def sizes(self) -> dict[str, int]:
        """Bytes of the file, and of its write-ahead log with the room ahead of it."""
        parts = {"database": Path(self._path), "wal": Path(f"{self._path}-wal")}
        return {name: part.stat().st_size for name, part in parts.items() if part.exists()}

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._follow.end()
        self._near.close()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._far.close)
        self._thread.shutdown()
        await self._writer.close()

    def _integrity(self) -> list[str]:
        reader = Reader(self._path)
        try:
            return reader.integrity()
        except apsw.Error as error:
            return [f"the file is damaged ({error})"]
        finally:
            reader.close()

    async def _do(self, sql: str, *values: str | int | bytes) -> None:
        self._check_open()
        done = asyncio.get_running_loop().create_future()
        self._writer.put(Chore(sql, values, done))
        await done

    async def _soon(
        self, question: Callable[Concatenate[Reader, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """On the loop, because it takes microseconds; in the thread when it would have to wait."""
        self._check_open()
        try:
            return question(self._near, *args, **kwargs)
        except apsw.BusyError:
            return await self._ask(question, *args, **kwargs)
        except (apsw.Error, *NONSENSE) as error:
            raise store_error(self._path, error) from error

    async def _ask(
        self, question: Callable[Concatenate[Reader, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        self._check_open()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(
                self._thread, lambda: question(self._far, *args, **kwargs)
            )
        except (apsw.Error, *NONSENSE) as error:
            raise store_error(self._path, error) from error

    def _check_open(self) -> None:
        if self._closing:
            raise StoreError(f"The log {self._path} is closed")
