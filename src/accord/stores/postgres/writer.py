"""Commits appends in batches on a connection of its own, one round trip each.

Appends that arrive during a commit share the next one. Many streams share a batch, and the database
decides each job alone (`accord.append_batch`), so a conflict does not affect the others.

When the connection breaks, a batch that was sent may or may not be stored. The writer then connects
again and increases its epoch, which the database checks in every batch: a batch of the earlier
connection that is still on its way is refused. After that it looks which jobs are stored, answers
those, and sends the others again. So every job is answered with what is true, or, if the database
stays away, with an error.
"""

import asyncio
import secrets
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence

import asyncpg
import msgspec

from accord.engine.ports import Conflict, Duplicate, Row, StoreError
from accord.stores.postgres.errors import CONNECTION_ERRORS, DatabaseName, store_error
from accord.stores.postgres.schema import FENCED

MAX_BATCH_ROWS = 4096
MAX_BATCH_BYTES = 8 << 20
# How long one commit may take before the connection is given up.
COMMIT_TIMEOUT_S = 15.0
# How long the writer tries to connect again before it answers with an error.
RECOVERY_TIMEOUT_S = 10.0
RECOVERY_INTERVAL_S = 0.1
# Rows of writers that are gone; a writer whose row was removed gets a new one.
OLD_WRITERS_SQL = "DELETE FROM accord.writers WHERE since < now() - interval '30 days'"

_APPEND_SQL = "SELECT * FROM accord.append_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_NEW_EPOCH_SQL = """
    INSERT INTO accord.writers (id, epoch) VALUES ($1, 1)
    ON CONFLICT (id) DO UPDATE SET epoch = writers.epoch + 1, since = now() RETURNING epoch
"""
# Shared by the servers that use the log, or held by one alone (a copy of the log, or a server of
# a version that knew no others); PostgreSQL releases it with the connection.
SERVER_LOCK = 0x41434F53
CLAIM_SQL = "SELECT pg_try_advisory_lock($1)"
SHARE_SQL = "SELECT pg_try_advisory_lock_shared($1)"
_STORED_SQL = """
    SELECT r.id, r.hash FROM accord.records AS r JOIN accord.streams AS s ON s.key = r.stream
    WHERE s.name = $1 AND r.version = $2
"""

# Also when a new connection cannot be made.
LOST_CONNECTION: tuple[type[BaseException], ...] = (StoreError, *CONNECTION_ERRORS)
RECOVERABLE: tuple[type[BaseException], ...] = (*LOST_CONNECTION, asyncpg.PostgresError)

Connect = Callable[[], Awaitable[asyncpg.Connection]]


class AppendJob(msgspec.Struct, gc=False):
    """Rows to append to one stream."""

    stream: str
    expected: int
    rows: Sequence[Row]
    done: asyncio.Future[None]

    def repeated_id(self) -> str | None:
        """An id that occurs twice in the rows."""
        counted = Counter(row.id for row in self.rows)
        return next((id for id, count in counted.items() if count > 1), None)


class Writer:
    """Accepts jobs and answers them, one commit at a time."""

    def __init__(
        self,
        name: DatabaseName,
        connect: Connect,
        on_commit: Callable[[Sequence[Row], int], None],
        on_recovery: Callable[[], None],
    ) -> None:
        self._name = name
        self._connect = connect
        self._on_commit = on_commit
        self._on_recovery = on_recovery
        self.id = secrets.randbits(62)
        self.retries = 0
        self._epoch = 0
        self._problem: BaseException = StoreError("no problem yet")
        self._claim_sql: str | None = None
        self._connection: asyncpg.Connection | None = None
        self._waiting: deque[AppendJob] = deque()
        self._wake = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect, and start to commit."""
        await self._open_connection()
        self._task = asyncio.create_task(self._run(), name="accord-postgres-writer")

    async def claim_server(self, how: str) -> bool:
        """Use this log alone or beside others, also after connecting again; False: it is taken."""
        connection = self._connection or await self._open_connection()
        claimed = bool(await connection.fetchval(how, SERVER_LOCK))
        self._claim_sql = how if claimed else None
        return claimed

    def put(self, job: AppendJob) -> None:
        """Include the job in the next commit."""
        self._waiting.append(job)
        self._wake.set()

    async def close(self) -> None:
        """Answer every job put so far, then close the connection."""
        self._closed = True
        self._wake.set()
        if self._task:
            await self._task
        self._drop_connection()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._commit_or_fail(self._take_batch())
            if self._closed:
                return

    def _take_batch(self) -> list[AppendJob]:
        """The next jobs, within bounds, in which no stream has an id twice."""
        batch, rows, size = list[AppendJob](), 0, 0
        ids = set[tuple[str, str]]()
        while self._waiting:
            job = self._waiting[0]
            keys = {(job.stream, row.id) for row in job.rows}
            rows += len(job.rows)
            size += sum(len(row.body) for row in job.rows)
            full = rows > MAX_BATCH_ROWS or size > MAX_BATCH_BYTES
            if batch and (full or not ids.isdisjoint(keys)):
                break
            ids |= keys
            batch.append(self._waiting.popleft())
        return batch

    async def _commit_or_fail(self, batch: list[AppendJob]) -> None:
        try:
            await self._commit(batch)
        except StoreError as error:
            fail_all(batch, error)
        except Exception as error:  # noqa: BLE001 - a bug here must not leave callers waiting
            fail_all(batch, StoreError(repr(error)))

    async def _commit(self, batch: list[AppendJob]) -> None:
        """Store the batch, across lost connections, until the recovery takes too long."""
        while batch:
            try:
                await self._send(batch)
                return
            except LOST_CONNECTION as error:
                batch = await self._recover(batch, error)
            except asyncpg.PostgresError as error:
                if error.sqlstate == FENCED:
                    batch = await self._recover(batch, error)
                elif len(batch) > 1:  # one job may be the cause; the others are not to suffer
                    for job in batch:
                        await self._commit_or_fail([job])
                    return
                else:
                    raise store_error(self._name, error) from error

    async def _send(self, batch: list[AppendJob]) -> None:
        connection = self._connection or await self._open_connection()
        # A job that repeats an id appends nothing; its version is checked first, as everywhere.
        repeated = [job.repeated_id() for job in batch]
        counts = [0 if again else len(job.rows) for job, again in zip(batch, repeated, strict=True)]
        numbered = [
            (number, place, row)
            for number, job in enumerate(batch, 1)
            if repeated[number - 1] is None
            for place, row in enumerate(job.rows, 1)
        ]
        (result,) = await connection.fetch(
            _APPEND_SQL,
            self.id,
            self._epoch,
            [job.stream for job in batch],
            [job.expected for job in batch],
            counts,
            [number for number, _, _ in numbered],
            [place for _, place, _ in numbered],
            [row.id for _, _, row in numbered],
            [row.body for _, _, row in numbered],
            [row.hash for _, _, row in numbered],
            timeout=COMMIT_TIMEOUT_S,
        )
        self._answer(batch, repeated, result)

    def _answer(
        self, batch: list[AppendJob], repeated: list[str | None], result: asyncpg.Record
    ) -> None:
        stored = list[Row]()
        outcomes = list[Exception | None]()
        for number, job in enumerate(batch):
            conflict = result["conflicts"][number]
            duplicate = result["duplicates"][number] or repeated[number]
            if conflict is not None:
                detail = f"{job.stream} is at version {conflict}, not {job.expected}"
                outcomes.append(Conflict(detail))
            elif duplicate is not None:
                outcomes.append(Duplicate(job.stream, duplicate))
            else:
                stored += job.rows
                outcomes.append(None)
        if stored:
            self._on_commit(stored, result["last"])
        for job, outcome in zip(batch, outcomes, strict=True):
            answer(job, outcome)

    async def _recover(self, batch: list[AppendJob], cause: BaseException) -> list[AppendJob]:
        """Connect again, and answer the jobs that are stored; returns the others."""
        self._drop_connection()
        self._on_recovery()
        self.retries += 1
        self._problem = cause
        try:
            async with asyncio.timeout(RECOVERY_TIMEOUT_S):
                return await self._reconnect_and_check(batch)
        except TimeoutError:
            self._drop_connection()
            problem = self._problem
            is_told = isinstance(problem, StoreError)
            raise (problem if is_told else store_error(self._name, problem)) from cause

    async def _reconnect_and_check(self, batch: list[AppendJob]) -> list[AppendJob]:
        """A database that is back may still be read-only, full or half started: try again."""
        while True:
            try:
                connection = await self._open_connection()
                return await self._answer_stored(connection, batch)
            except RECOVERABLE as error:
                self._problem = error
                self._drop_connection()
                await asyncio.sleep(RECOVERY_INTERVAL_S)

    async def _answer_stored(
        self, connection: asyncpg.Connection, batch: list[AppendJob]
    ) -> list[AppendJob]:
        missing = list[AppendJob]()
        for job in batch:
            first = job.rows[0] if job.rows else None
            found = first and await connection.fetchrow(_STORED_SQL, job.stream, first.version)
            if first and found and (found["id"], found["hash"]) == (first.id, first.hash):
                answer(job, None)
            else:
                missing.append(job)
        return missing

    async def _open_connection(self) -> asyncpg.Connection:
        """Connect with a new epoch, behind everything the earlier connection may still commit."""
        self._drop_connection()
        self._connection = connection = await self._connect()
        if self._claim_sql and not await connection.fetchval(self._claim_sql, SERVER_LOCK):
            raise StoreError(f"Another program uses {self._name} alone now; stop one of them")
        async with connection.transaction():
            await connection.execute("SELECT FROM accord.head FOR UPDATE")
            await connection.execute(OLD_WRITERS_SQL)
            self._epoch = await connection.fetchval(_NEW_EPOCH_SQL, self.id)
        return connection

    def _drop_connection(self) -> None:
        if self._connection:
            self._connection.terminate()
            self._connection = None


def answer(job: AppendJob, outcome: Exception | None) -> None:
    """Unless the caller no longer waits."""
    if job.done.done():
        return
    if outcome is None:
        job.done.set_result(None)
    else:
        job.done.set_exception(outcome)


def fail_all(batch: Sequence[AppendJob], error: StoreError) -> None:
    for job in batch:
        answer(job, error)
