"""The `EventLog` port on a PostgreSQL database.

One connection writes (`writer.py`), one listens for commits of other servers (`tail_watch.py`), and
a pool reads. docs/design/postgresql-log.md says why commits are serialised.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import asyncpg

from accord.core.kernel.integrity.hash_chain import SignatureCoverage, SignedHead
from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.engine.ports import Row, Snapshot, StoreError, UnknownStoreError
from accord.stores.append import check_append
from accord.stores.postgres import pruning, schema
from accord.stores.postgres.errors import (
    CONNECTION_ERRORS,
    STORE_ERRORS,
    DatabaseName,
    store_error,
)
from accord.stores.postgres.reader import QUERY_TIMEOUT_S, READ_ROWS, Reader
from accord.stores.postgres.server_link import PostgresServerLink
from accord.stores.postgres.tail_watch import TailWatch
from accord.stores.postgres.writer import CLAIM_SQL, SHARE_SQL, AppendJob, Writer

T = TypeVar("T")

SYNCHRONOUS_COMMIT = {"full": "on", "normal": "off"}
CONNECT_TIMEOUT_S = 10.0
MAX_POOL_CONNECTIONS = 8
# Reads are repeated on a new connection for this long.
READ_RETRY_S = 5.0
READ_RETRY_INTERVAL_S = 0.1
# How long queries that are under way may take when the log is closed.
CLOSE_TIMEOUT_S = 2.0
# Seconds between two batches of removed rows, so that commits are not delayed.
PRUNE_PAUSE_S = 0.01

_ADVANCE_SQL = """
    INSERT INTO accord.cursors AS kept (name, position) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET position = greatest(kept.position, excluded.position)
"""
_SAVE_SNAPSHOT_SQL = """
    INSERT INTO accord.snapshots AS kept (stream, version, shape, blob) VALUES ($1, $2, $3, $4)
    ON CONFLICT (stream) DO UPDATE SET version = excluded.version, shape = excluded.shape,
        blob = excluded.blob WHERE excluded.version >= kept.version
"""
_ADD_HEAD_SQL = """
    INSERT INTO accord.heads (stream, version, hash, at, key, signature, total)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING
"""


class PostgresLog:
    """The log in the schema `accord` of one database."""

    def __init__(self, name: DatabaseName, pool: asyncpg.Pool, connect: "Connector") -> None:
        self._name = name
        self._pool = pool
        self._connect = connect
        self._reader = Reader(pool)
        self._writer = Writer(name, connect, self._on_commit, self._on_recovery)
        self._tail_watch = TailWatch(self._writer.id, connect, self._reader)
        self._sizes: dict[str, int] = {}
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, url: str, *, durability: str = "full") -> "PostgresLog":
        """Open the log in this database; creates its tables if there are none."""
        if durability not in SYNCHRONOUS_COMMIT:
            known = ", ".join(SYNCHRONOUS_COMMIT)
            raise StoreError(f"Durability is one of {known}, not {durability!r}")
        name = DatabaseName.from_url(url)
        connect = Connector(name, url, durability)
        await _with_connection(connect, name, lambda found: schema.prepare(found, name))
        log = cls(name, await connect.pool(), connect)
        try:
            await log._writer.start()
        except STORE_ERRORS as error:
            await log._pool.close()
            raise store_error(name, error) from error
        return log

    async def claim_server(self) -> None:
        """Be the only one that uses this log; StoreError while a server does."""
        await self._claim(CLAIM_SQL, "A server")

    async def link_servers(self) -> "PostgresServerLink":
        """Use the log beside other servers; StoreError while something uses it alone."""
        await self._claim(SHARE_SQL, "A copy, or a server of an earlier version,")
        return PostgresServerLink(self._writer.id, self._connect, self._pool, self._tail_watch)

    async def _claim(self, how: str, other: str) -> None:
        try:
            claimed = await self._writer.claim_server(how)
        except STORE_ERRORS as error:
            raise store_error(self._name, error) from error
        if not claimed:
            detail = f"{other} uses {self._name}; stop it first, or name another database"
            raise StoreError(detail, str(self._name))

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        check_append(stream, expected, rows)
        self._check_open()
        done = asyncio.get_running_loop().create_future()
        self._writer.put(AppendJob(stream, expected, rows, done))
        await done

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        rows = list[Row]()
        last = max(after, 0)
        while limit is None or len(rows) < limit:
            want = READ_ROWS if limit is None else min(READ_ROWS, limit - len(rows))
            found = await self._query(self._reader.read, stream, last, want)
            if not found:
                break
            rows += found
            last = found[-1].version
        return rows

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        return await self._query(self._reader.find, stream, ids)

    async def streams(self, prefix: str = "") -> dict[str, int]:
        return await self._query(self._reader.streams, prefix)

    async def position(self) -> int:
        return await self._query(self._reader.position)

    async def tail(self, after: int) -> AsyncGenerator[list[tuple[int, Row]], None]:
        position = max(after, 0)
        with self._tail_watch.watching() as follow:
            while True:
                signal = follow.commit_signal.next()
                self._check_open()
                placed = follow.cache.after(position, READ_ROWS)
                if placed is None:
                    placed = await self._query(self._reader.read_after, position, READ_ROWS)
                if placed:
                    position = placed[-1][0]
                    yield placed
                else:
                    await signal.wait()

    async def cursor(self, name: str) -> int:
        return await self._query(self._reader.cursor, name)

    async def advance(self, name: str, position: int) -> None:
        await self._execute(_ADVANCE_SQL, name, position)

    async def snapshot(self, stream: str) -> Snapshot | None:
        return await self._query(self._reader.snapshot, stream)

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        values = (stream, snapshot.version, snapshot.shape, snapshot.blob)
        await self._execute(_SAVE_SNAPSHOT_SQL, *values)

    async def heads(self, stream: str) -> list[SignedHead]:
        return await self._query(self._reader.heads, stream)

    async def signed_version(self, stream: str) -> int:
        return await self._query(self._reader.signed_version, stream)

    async def signature_coverage(self) -> SignatureCoverage:
        return await self._query(self._reader.signature_coverage)

    async def add_head(self, head: SignedHead) -> None:
        values = (head.stream, head.version, head.hash, head.at, head.key, head.signature)
        await self._execute(_ADD_HEAD_SQL, *values, head.total)

    async def cut(self, stream: str) -> RetentionCut | None:
        """The retention cut of the stream, if its beginning was removed."""
        return await self._query(self._reader.cut, stream)

    async def prune(self, cut: RetentionCut) -> None:
        """Store the cut, then remove the rows before it in small batches."""
        await self._query(self._with_connection, pruning.keep_cut, cut)
        await self._remove(cut.stream)

    async def finish_pruning(self) -> None:
        """Complete removals that a killed process left unfinished."""
        for stream in await self._query(self._with_connection, pruning.unfinished_streams):
            await self._remove(stream)

    async def cursors(self) -> dict[str, int]:
        """The positions that workers have reached, by name."""
        return await self._query(self._reader.cursors)

    async def begin_behind_cut(self, cut: RetentionCut) -> None:
        """Let a stream without records begin behind this cut; Conflict if it has records."""
        await self._query(self._with_connection, pruning.begin_behind, cut)

    @property
    def retries(self) -> int:
        """How many commits were sent again after a lost connection."""
        return self._writer.retries

    def sizes(self) -> dict[str, int]:
        """Bytes of each table with its indexes, as of the last look."""
        if not self._closing:
            self._sizes_task = asyncio.ensure_future(self._measure())
        return self._sizes

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._tail_watch.close()
        await self._writer.close()
        try:
            await asyncio.wait_for(self._pool.close(), CLOSE_TIMEOUT_S)
        except TimeoutError:
            self._pool.terminate()

    def _on_commit(self, rows: Sequence[Row], last: int) -> None:
        self._tail_watch.on_commit(rows, last)

    def _on_recovery(self) -> None:
        self._tail_watch.on_foreign_commit()

    async def _measure(self) -> None:
        try:
            self._sizes = await self._reader.sizes()
        except STORE_ERRORS:  # metrics show the last known sizes
            return

    async def _remove(self, stream: str) -> None:
        while True:
            if not await self._query(self._with_connection, pruning.remove_rows, stream):
                return
            await asyncio.sleep(PRUNE_PAUSE_S)

    async def _with_connection(self, work: Callable[..., Awaitable[T]], *values: Any) -> T:
        async with self._pool.acquire() as connection:
            return await work(connection, *values)

    async def _execute(self, sql: str, *values: Any) -> None:
        """Run a statement that may be repeated."""
        await self._query(self._pool.execute, sql, *values, timeout=QUERY_TIMEOUT_S)

    async def _query(
        self, question: Callable[..., Awaitable[T]], *values: Any, **options: Any
    ) -> T:
        """Ask, and ask again for a while if the connection is lost."""
        self._check_open()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + READ_RETRY_S
        while True:
            try:
                return await question(*values, **options)
            except CONNECTION_ERRORS as error:
                if self._closing or loop.time() > deadline:
                    self._check_open()
                    raise store_error(self._name, error) from error
            except asyncpg.PostgresError as error:
                raise store_error(self._name, error) from error
            await asyncio.sleep(READ_RETRY_INTERVAL_S)

    def _check_open(self) -> None:
        if self._closing:
            raise StoreError(f"The log {self._name} is closed")


async def has_log(url: str) -> bool:
    """Whether the database has a log; StoreError if it cannot be reached."""
    name = DatabaseName.from_url(url)
    version = await _with_connection(Connector(name, url, "full"), name, schema.version_of)
    return bool(version)


async def _with_connection(
    connect: "Connector", name: DatabaseName, work: Callable[[asyncpg.Connection], Awaitable[T]]
) -> T:
    """Do this on a connection of its own."""
    connection = await connect()
    try:
        return await work(connection)
    except STORE_ERRORS as error:
        raise store_error(name, error) from error
    finally:
        await connection.close()


class Connector:
    """Opens connections with the settings of this log."""

    def __init__(self, name: DatabaseName, url: str, durability: str) -> None:
        self._name = name
        self._url = url
        self._settings = {
            "application_name": "accord",
            "synchronous_commit": SYNCHRONOUS_COMMIT[durability],
        }

    async def __call__(self) -> asyncpg.Connection:
        """A new connection; raises StoreError if it cannot be made."""
        return await self._attempt(asyncpg.connect)

    async def pool(self) -> asyncpg.Pool:
        """A pool of connections for reading."""
        return await self._attempt(asyncpg.create_pool, min_size=0, max_size=MAX_POOL_CONNECTIONS)

    async def _attempt(self, connect: Callable[..., Awaitable[T]], **options: Any) -> T:
        try:
            return await connect(
                self._url, timeout=CONNECT_TIMEOUT_S, server_settings=self._settings, **options
            )
        except STORE_ERRORS as error:
            raise store_error(self._name, error) from error
        except ValueError as error:
            detail = f"{self._name} cannot be used as a store: {error}"
            raise UnknownStoreError(detail) from None
