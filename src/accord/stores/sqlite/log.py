"""The log on one SQLite file: one thread writes, one reads, the event loop never blocks."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from accord.core.kernel.integrity.hash_chain import SignatureCoverage, SignedHead
from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.engine.ports import Row, Snapshot, StoreError, UnknownStoreError
from accord.stores.append import CommitSignal, TailCache, check_append
from accord.stores.sqlite.database_file import connect, prepare_file
from accord.stores.sqlite.errors import MALFORMED_ROW_ERRORS, store_error
from accord.stores.sqlite.pruning import Pruner
from accord.stores.sqlite.reader import LARGE_READ_ROWS, SMALL_READ_ROWS, Reader
from accord.stores.sqlite.writer import (
    SYNCHRONOUS,
    AppendJob,
    CommitResult,
    Job,
    StatementJob,
    Writer,
)

P = ParamSpec("P")
T = TypeVar("T")

# Seconds between two batches of removed rows, so that commits are not delayed.
PRUNE_PAUSE_S = 0.01
# Seconds between checks for commits of other processes.
FOREIGN_COMMIT_POLL_S = 0.2
# Commits of this process are signalled together after this time; followers are not in a hurry.
NOTIFY_DELAY_S = 0.02

ADVANCE_SQL = """
    INSERT INTO cursors VALUES (?, ?)
    ON CONFLICT DO UPDATE SET position = max(position, excluded.position)
"""
SAVE_SNAPSHOT_SQL = """
    INSERT INTO snapshots VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET version = excluded.version, shape = excluded.shape,
        blob = excluded.blob WHERE excluded.version >= version
"""
ADD_HEAD_SQL = """
    INSERT OR IGNORE INTO heads (stream, version, hash, at, key, signature, total)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""


class SqliteLog:
    """The `EventLog` port on the file at `path`."""

    def __init__(self, path: str, durability: str) -> None:
        self._path = path
        self._writer = Writer(path, durability, connect)
        self._loop_reader = Reader(path, wait=False)
        self._thread_reader = Reader(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="accord-reader")
        self._tail_watch = TailWatch(self._loop_reader.data_version, self._loop_reader.position)
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: str, *, durability: str = "full") -> "SqliteLog":
        """Open the log in the file at `path`; creates it if it is missing."""
        if durability not in SYNCHRONOUS:
            raise StoreError(f"Durability is one of {', '.join(SYNCHRONOUS)}, not {durability!r}")
        if not path:
            detail = "sqlite: needs the path of a file, as in sqlite:accord.db"
            raise UnknownStoreError(detail)
        log = await asyncio.to_thread(cls._open_file, path, durability)
        log.start()
        return log

    @classmethod
    def _open_file(cls, path: str, durability: str) -> "SqliteLog":
        prepare_file(path)
        try:
            return cls(path, durability)
        except apsw.Error as error:
            raise store_error(path, error) from error

    def start(self) -> None:
        """Bind to the running loop."""
        self._writer.start(self._tail_watch.on_commit)

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        check_append(stream, expected, rows)
        self._check_open()
        done = asyncio.get_running_loop().create_future()
        self._writer.put(AppendJob(stream, expected, rows, done))
        await done

    async def commit_together(self, jobs: Sequence[Job]) -> list[BaseException | None]:
        """Store these in one transaction, each decided alone; the outcome of each."""
        self._check_open()
        self._writer.put_together(jobs)
        return await asyncio.gather(*(job.done for job in jobs), return_exceptions=True)

    def wake_followers(self) -> None:
        """Let followers read now what was just stored, instead of with the next commits."""
        self._tail_watch.commit_signal.notify()

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        first = SMALL_READ_ROWS if limit is None else min(SMALL_READ_ROWS, limit)
        rows, more = await self._query_on_loop(Reader.read_small, stream, after, first)
        while more and (limit is None or len(rows) < limit):
            want = LARGE_READ_ROWS if limit is None else min(LARGE_READ_ROWS, limit - len(rows))
            found = await self._query_in_thread(Reader.read, stream, rows[-1].version, want)
            rows += found
            more = bool(found)
        return rows

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        ask = self._query_on_loop if len(ids) <= SMALL_READ_ROWS else self._query_in_thread
        return await ask(Reader.find, stream, ids)

    async def streams(self, prefix: str = "") -> dict[str, int]:
        return await self._query_in_thread(Reader.streams, prefix)

    async def position(self) -> int:
        return await self._query_on_loop(Reader.position)

    async def tail(self, after: int) -> AsyncGenerator[list[tuple[int, Row]], None]:
        position = max(after, 0)
        with self._tail_watch.watching() as follow:
            while True:
                rung = follow.commit_signal.next()
                self._check_open()
                placed = follow.cache.after(position, LARGE_READ_ROWS)
                if placed is None:
                    placed = await self._query_in_thread(
                        Reader.read_after, position, LARGE_READ_ROWS
                    )
                if placed:
                    position = placed[-1][0]
                    yield placed
                else:
                    await rung.wait()

    async def cursor(self, name: str) -> int:
        return await self._query_on_loop(Reader.cursor, name)

    async def advance(self, name: str, position: int) -> None:
        await self._run_statement(ADVANCE_SQL, name, position)

    async def snapshot(self, stream: str) -> Snapshot | None:
        return await self._query_in_thread(Reader.snapshot, stream)

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        await self._run_statement(
            SAVE_SNAPSHOT_SQL, stream, snapshot.version, snapshot.shape, snapshot.blob
        )

    async def heads(self, stream: str) -> list[SignedHead]:
        return await self._query_in_thread(Reader.heads, stream)

    async def signed_version(self, stream: str) -> int:
        return await self._query_on_loop(Reader.signed_version, stream)

    async def signature_coverage(self) -> SignatureCoverage:
        return await self._query_in_thread(Reader.signature_coverage)

    async def add_head(self, head: SignedHead) -> None:
        words = (head.stream, head.version, head.hash, head.at, head.key, head.signature)
        await self._run_statement(ADD_HEAD_SQL, *words, head.total)

    async def cut(self, stream: str) -> RetentionCut | None:
        """The retention cut of the stream, if its beginning was removed."""
        return await self._query_on_loop(Reader.cut, stream)

    async def prune(self, cut: RetentionCut) -> None:
        """Store the cut, then remove the rows before it in small batches."""
        await self._prune_in_thread(lambda pruner: pruner.keep(cut))
        await self._remove(cut.stream)

    async def finish_pruning(self) -> None:
        """Complete removals that a killed process left unfinished."""
        for stream in await self._prune_in_thread(Pruner.unfinished_streams):
            await self._remove(stream)

    async def cursors(self) -> dict[str, int]:
        """The positions that workers have reached, by name."""
        return await self._query_in_thread(Reader.cursors)

    async def begin_behind_cut(self, cut: RetentionCut) -> None:
        """Let a stream without records begin behind this cut; Conflict if it has records."""
        await self._prune_in_thread(lambda pruner: pruner.begin_behind(cut))

    async def _remove(self, stream: str) -> None:
        while True:
            if not await self._prune_in_thread(lambda pruner: pruner.remove(stream)):
                return
            await asyncio.sleep(PRUNE_PAUSE_S)

    async def _prune_in_thread(self, work: Callable[[Pruner], T]) -> T:
        self._check_open()
        return await asyncio.to_thread(self._with_pruner, work)

    def _with_pruner(self, work: Callable[[Pruner], T]) -> T:
        try:
            with closing(Pruner(self._path)) as pruner:
                return work(pruner)
        except apsw.Error as error:
            raise store_error(self._path, error) from error

    async def check(self) -> list[str]:
        """Verify the whole file; empty if there is no problem."""
        self._check_open()
        return await asyncio.to_thread(self._integrity)

    def sizes(self) -> dict[str, int]:
        """Size in bytes of the database file and of its write-ahead log."""
        parts = {"database": Path(self._path), "wal": Path(f"{self._path}-wal")}
        return {name: part.stat().st_size for name, part in parts.items() if part.exists()}

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._tail_watch.close()
        self._loop_reader.close()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._thread_reader.close)
        self._thread.shutdown()
        await self._writer.close()

    def _integrity(self) -> list[str]:
        reader = Reader(self._path)
        try:
            return reader.integrity()
        except apsw.Error:
            return ["the file is damaged, so that SQLite cannot check it"]
        finally:
            reader.close()

    async def _run_statement(self, sql: str, *values: str | int | bytes) -> None:
        self._check_open()
        done = asyncio.get_running_loop().create_future()
        self._writer.put(StatementJob(sql, values, done))
        await done

    async def _query_on_loop(
        self, question: Callable[Concatenate[Reader, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """On the loop, since it takes microseconds; in the thread if it would have to wait."""
        self._check_open()
        try:
            return question(self._loop_reader, *args, **kwargs)
        except apsw.BusyError:
            return await self._query_in_thread(question, *args, **kwargs)
        except (apsw.Error, *MALFORMED_ROW_ERRORS) as error:
            raise store_error(self._path, error) from error

    async def _query_in_thread(
        self, question: Callable[Concatenate[Reader, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        self._check_open()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(
                self._thread, lambda: question(self._thread_reader, *args, **kwargs)
            )
        except (apsw.Error, *MALFORMED_ROW_ERRORS) as error:
            raise store_error(self._path, error) from error

    def _check_open(self) -> None:
        if self._closing:
            raise StoreError(f"The log {self._path} is closed")


class TailWatch:
    """Signals new rows; idle while there are no followers."""

    def __init__(self, changes: Callable[[], int], position: Callable[[], int]) -> None:
        self.commit_signal = CommitSignal()
        self.cache = TailCache()
        self._data_version = changes
        self._position = position
        self._followers = 0
        self._soon: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self) -> Iterator["TailWatch"]:
        """While inside, commits of other processes are detected too."""
        self._followers += 1
        if self._watch is None:
            self._watch = asyncio.create_task(self._poll_foreign_commits())
        try:
            yield self
        finally:
            self._followers -= 1
            if not self._followers:
                self._stop()

    def on_commit(self, commit: CommitResult) -> None:
        """This process committed."""
        if commit.rows and self._followers:
            self.cache.add(commit.rows, commit.last)
            if self._soon is None:
                self._soon = asyncio.get_running_loop().call_later(NOTIFY_DELAY_S, self._notify)

    def _notify(self) -> None:
        self._soon = None
        self.commit_signal.notify()

    def close(self) -> None:
        """Wake all followers for the last time."""
        self._stop()
        self.commit_signal.notify()

    def _stop(self) -> None:
        self.cache.clear()
        if self._soon:
            self._soon.cancel()
            self._soon = None
        if self._watch:
            self._watch.cancel()
            self._watch = None

    async def _poll_foreign_commits(self) -> None:
        seen = -1
        while True:
            try:
                now = self._data_version()
                if now != seen and self._position() != self.cache.last:
                    self.cache.clear()
                    self.commit_signal.notify()
                seen = now
            except apsw.Error:  # the reader meets the same error and reports it
                pass
            await asyncio.sleep(FOREIGN_COMMIT_POLL_S)
