"""The writer thread: jobs that arrive during a commit share the next one, in one transaction."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from queue import SimpleQueue
from typing import NamedTuple

import apsw
import msgspec

from accord.engine.ports import Conflict, Duplicate, Row, StoreError
from accord.stores.sqlite.errors import store_error

SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}
# Not larger: after balancing an index, SQLite scans all cached pages at the end of a commit.
CACHE_KIB = 8 << 10
CONTINUE, STOP = True, False
# In pages of 4 KiB. 4 MiB between two checkpoints keeps each one short. At 64 MiB the log has to
# restart, which makes the writer wait for the disk (10 ms measured, 50 ms at 16 MiB).
CHECKPOINT_INTERVAL_PAGES = 1024
RESTART_WAL_PAGES = 16384
# A log that grew because of a long reader is truncated to this when it restarts.
WAL_SIZE_LIMIT_BYTES = RESTART_WAL_PAGES * 4096
MAX_CACHED_STREAMS = 4096
COLUMNS_PER_ROW = 5
# apsw does not cache statements longer than 16 KiB, and a row takes twelve bytes.
MAX_ROWS_PER_INSERT = 1024

SqlValue = str | int | bytes | None


class AppendJob(msgspec.Struct, gc=False):
    """Rows to append to one stream."""

    stream: str
    expected: int
    rows: Sequence[Row]
    done: asyncio.Future[None]


class StatementJob(msgspec.Struct, gc=False):
    """A statement to run in the same commit."""

    sql: str
    values: tuple[str | int | bytes, ...]
    done: asyncio.Future[None]


Job = AppendJob | StatementJob
JobOutcome = Exception | None


class CommitResult(msgspec.Struct, gc=False):
    """The result of each job of a batch, and the rows added at the end of the log."""

    outcomes: list[JobOutcome]
    rows: list[Row]
    last: int


class Writer:
    """Accepts jobs on the event loop and answers them there, one commit at a time."""

    def __init__(
        self, path: str, durability: str, connect: Callable[[str], apsw.Connection]
    ) -> None:
        self._path = path
        self._db = connect(path)
        self._db.pragma("synchronous", SYNCHRONOUS[durability])
        self._db.pragma("journal_size_limit", WAL_SIZE_LIMIT_BYTES)
        self._db.pragma("cache_size", -CACHE_KIB)
        self._checkpoint_db = connect(path)
        self._waiting: deque[Job] = deque()
        self._armed = False
        self._turns: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="accord-writer", daemon=True)

    def start(self, committed: Callable[[CommitResult], None]) -> None:
        """Start the thread; `committed` is called on this loop before the jobs are answered."""
        self._committed = committed
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def put(self, job: Job) -> None:
        """Include the job in the next commit."""
        self._waiting.append(job)
        if not self._armed:
            self._armed = True
            # At the end of this turn of the loop, so that one turn makes one commit.
            self._loop.call_soon(self._release_batch)

    def put_together(self, jobs: Sequence[Job]) -> None:
        """Include these jobs in one and the same commit."""
        # `extend` is atomic for the writer's thread, which takes all that is waiting.
        self._waiting.extend(jobs)
        if not self._armed:
            self._armed = True
            self._loop.call_soon(self._release_batch)

    async def close(self) -> None:
        """Answer every job put so far, then end the thread."""
        self._turns.put(STOP)
        await asyncio.to_thread(self._thread.join)

    def _release_batch(self) -> None:
        self._armed = False
        self._turns.put(CONTINUE)

    def _answer(self, batch: list[Job], commit: CommitResult) -> None:
        self._committed(commit)
        for job, outcome in zip(batch, commit.outcomes, strict=True):
            if job.done.done():
                continue
            if outcome is None:
                job.done.set_result(None)
            else:
                job.done.set_exception(outcome)

    def _run(self) -> None:
        committer = BatchCommitter(self._db)
        checkpointer = Checkpointer(self._checkpoint_db, self._db)
        more = CONTINUE
        while more:
            more = self._turns.get()
            # Without asking the event loop, which may be busy, for what has arrived meanwhile.
            while batch := self._take_batch():
                self._answer_on_loop(batch, self._commit(committer, batch))
                checkpointer.after_commit()
        checkpointer.close()
        self._close_connections()

    def _take_batch(self) -> list[Job]:
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def _commit(self, committer: "BatchCommitter", batch: list[Job]) -> CommitResult:
        try:
            return committer.commit(batch)
        except apsw.Error as error:
            return CommitResult([store_error(self._path, error) for _ in batch], [], 0)
        except Exception as error:  # noqa: BLE001 - a bug here must not leave callers waiting
            return CommitResult([StoreError(repr(error)) for _ in batch], [], 0)

    def _answer_on_loop(self, batch: list[Job], commit: CommitResult) -> None:
        # The loop is closed when no caller is left to receive the answer.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._answer, batch, commit)

    def _close_connections(self) -> None:
        with suppress(apsw.Error):  # everything acknowledged is already durable
            self._checkpoint_db.close()
        # Fails while another process reads; its last connection then does it.
        with suppress(apsw.Error):
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        with suppress(apsw.Error):
            self._db.close()


class StreamVersion(NamedTuple):
    """A stream's key in the tables, 0 if it has none yet, and its newest version."""

    key: int
    version: int


class StreamVersions:
    """A cache of the table; never ahead of it, behind it when another process appends."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._known: dict[str, StreamVersion] = {}

    def cached(self, stream: str) -> StreamVersion | None:
        """The cached value, which may be outdated."""
        return self._known.get(stream)

    def remember(self, places: dict[str, StreamVersion]) -> None:
        """Cache committed values."""
        if len(self._known) > MAX_CACHED_STREAMS:
            self._known.clear()
        self._known |= places

    def read(self, stream: str) -> StreamVersion:
        """The value in the table; call inside the transaction that relies on it."""
        key = self._db.execute("SELECT key FROM streams WHERE name = ?", (stream,)).get or 0
        newest = "SELECT max(version) FROM records WHERE stream = ?"
        version = self._db.execute(newest, (key,)).get or self._cut_version(stream)
        return StreamVersion(key, version)

    def _cut_version(self, stream: str) -> int:
        """Where a stream without records begins: 0, or behind its cut while it is being copied."""
        return self._db.execute("SELECT version FROM cuts WHERE stream = ?", (stream,)).get or 0

    def create(self, stream: str) -> int:
        """Insert a stream and return its key."""
        sql = "INSERT INTO streams (name) VALUES (?) RETURNING key"
        return int(self._db.execute(sql, (stream,)).get)


class BatchCommitter:
    """Makes batches durable on its own connection; the file, not the cache, is authoritative.

    Three ways, each a fallback of the one before: a single self-committing statement, if the cache
    says that every append fits and the unique indexes agree; a transaction that reads what the
    cache does not have; and, if a row collides, a transaction in which every job can fail alone.
    """

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._versions = StreamVersions(db)

    def commit(self, jobs: Sequence[Job]) -> CommitResult:
        """Raises apsw.Error if nothing was stored."""
        try:
            return self._commit_single_statement(jobs) or self._commit_transaction(jobs)
        except (apsw.ConstraintError, apsw.TooBigError, TypeError, ValueError):
            return self._commit_individually(jobs)

    def _commit_single_statement(self, jobs: Sequence[Job]) -> CommitResult | None:
        batch = _Batch()
        for job in jobs:
            if isinstance(job, StatementJob) or not job.rows:
                return None
            place = batch.versions.get(job.stream) or self._versions.cached(job.stream)
            if place is None or place.version != job.expected:
                return None
            batch.add(place.key, job)
        if len(batch.rows) > MAX_ROWS_PER_INSERT:
            return None
        insert_rows(self._db, batch.values)
        return self._result_of(batch, [None] * len(jobs))

    def _commit_transaction(self, jobs: Sequence[Job]) -> CommitResult:
        with write_transaction(self._db):
            batch = _Batch()
            outcomes = [self._add_to_batch(batch, job) for job in jobs]
            insert_rows(self._db, batch.values)
            batch.last = self._db.last_insert_rowid()
            for job in jobs:
                self._run_statement(job)
        return self._result_of(batch, outcomes)

    def _add_to_batch(self, batch: "_Batch", job: Job) -> JobOutcome:
        if isinstance(job, StatementJob):
            return None
        place = self._version_of(batch, job)
        if place.version != job.expected:
            return conflict_error(job.stream, place.version, job.expected)
        if job.rows:
            batch.add(place.key or self._versions.create(job.stream), job)
        return None

    def _version_of(self, batch: "_Batch", job: AppendJob) -> StreamVersion:
        place = batch.versions.get(job.stream)
        if place:
            return place
        place = self._versions.cached(job.stream)
        if place and place.version == job.expected and job.rows:
            return place
        return self._versions.read(job.stream)

    def _commit_individually(self, jobs: Sequence[Job]) -> CommitResult:
        with write_transaction(self._db):
            batch = _Batch()
            outcomes = [self._run_in_savepoint(batch, job) for job in jobs]
        return self._result_of(batch, outcomes)

    def _run_in_savepoint(self, batch: "_Batch", job: Job) -> JobOutcome:
        try:
            with self._db:
                self._run_statement(job)
                outcome = self._append(batch, job) if isinstance(job, AppendJob) else None
        except (Duplicate, TypeError, ValueError) as error:
            outcome = error.with_traceback(None)
        except (apsw.ConstraintError, apsw.TooBigError) as error:
            outcome = StoreError(f"SQLite rejected it ({error})")
        return outcome

    def _append(self, batch: "_Batch", job: AppendJob) -> JobOutcome:
        place = batch.versions.get(job.stream) or self._versions.read(job.stream)
        if place.version != job.expected:
            return conflict_error(job.stream, place.version, job.expected)
        if job.rows:
            key = place.key or self._versions.create(job.stream)
            for row in job.rows:
                self._insert(key, row)
            batch.last = self._db.last_insert_rowid()
            batch.add(key, job)
        return None

    def _insert(self, key: int, row: Row) -> None:
        try:
            insert_rows(self._db, (key, row.version, row.id, row.body, row.hash))
        except apsw.ConstraintError as error:
            if error.extendedresult != apsw.SQLITE_CONSTRAINT_UNIQUE:  # type: ignore[attr-defined]  # not in its stubs
                raise
            raise Duplicate(row.stream, row.id) from None

    def _run_statement(self, job: Job) -> None:
        if isinstance(job, StatementJob):
            self._db.execute(job.sql, job.values)

    def _result_of(self, batch: "_Batch", outcomes: list[JobOutcome]) -> CommitResult:
        self._versions.remember(batch.versions)
        return CommitResult(outcomes, batch.rows, batch.last or self._db.last_insert_rowid())


class _Batch:
    """What one transaction adds, in the order of its rows."""

    def __init__(self) -> None:
        self.values: list[SqlValue] = []
        self.rows: list[Row] = []
        self.versions: dict[str, StreamVersion] = {}
        self.last = 0

    def add(self, key: int, job: AppendJob) -> None:
        self.rows += job.rows
        self.versions[job.stream] = StreamVersion(key, job.expected + len(job.rows))
        for row in job.rows:
            self.values += (key, row.version, row.id, row.body, row.hash)


def conflict_error(stream: str, version: int, expected: int) -> Conflict:
    return Conflict(f"{stream} is at version {version}, not {expected}")


@cache
def insert_statement(rows: int) -> str:
    """Inserts up to `rows` rows in order, skipping those that are NULL."""
    values = ",".join(["(?,?,?,?,?)"] * rows)
    return (
        "INSERT INTO records (stream, version, id, body, hash) "  # noqa: S608 - placeholders only
        f"SELECT * FROM (VALUES{values}) WHERE column1 NOT NULL"
    )


def insert_rows(db: apsw.Connection, values: Sequence[SqlValue]) -> None:
    """Insert rows given as five consecutive values each."""
    step = MAX_ROWS_PER_INSERT * COLUMNS_PER_ROW
    for start in range(0, len(values), step):
        _insert_padded(db, values[start : start + step])


def _insert_padded(db: apsw.Connection, values: Sequence[SqlValue]) -> None:
    rows = len(values) // COLUMNS_PER_ROW
    # Few sizes, so that each statement is parsed once.
    size = 1 << (rows - 1).bit_length()
    db.execute(insert_statement(size), (*values, *[None] * (COLUMNS_PER_ROW * (size - rows))))


@contextmanager
def write_transaction(db: apsw.Connection) -> Iterator[None]:
    """Takes the write lock at once, so that nothing it reads can change."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # On a full or failing disk SQLite has already rolled back.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


class Checkpointer:
    """Checkpoints in a thread; the writer helps when the log gets too large.

    SQLite restarts its log from the front only when all of it was copied, which happens in any
    pause of writing. Without a pause the writer does the last checkpoint itself, which takes a few
    milliseconds for what was written during the one before.
    """

    def __init__(self, db: apsw.Connection, writing: apsw.Connection) -> None:
        self._db = db
        self._writing = writing
        self._copied = 0
        self._asked = False
        self._large = False
        self._work: SimpleQueue[int | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="accord-checkpoint", daemon=True)
        self._thread.start()

    def after_commit(self) -> None:
        """Called by the writer, on its thread, between two commits."""
        if self._large:
            self._large = False
            _checkpoint(self._writing)
        elif not self._asked:
            written, _ = self._writing.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
            if written - self._copied > CHECKPOINT_INTERVAL_PAGES:
                self._copied = written
                self._asked = True
                self._work.put(written)

    def close(self) -> None:
        """End the thread; the caller closes the connections."""
        self._work.put(None)
        self._thread.join()

    def _run(self) -> None:
        # A connection that has not read the file does not know that there is a log to copy.
        with suppress(apsw.Error):
            self._db.pragma("schema_version")
        while self._work.get() is not None:
            self._large = _checkpoint(self._db) > RESTART_WAL_PAGES
            self._asked = False


def _checkpoint(db: apsw.Connection) -> int:
    """Length of the log in pages, as far as it was copied."""
    # The next checkpoint makes up for one that fails; committed data is safe without it.
    with suppress(apsw.Error):
        return db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[1]
    return 0
