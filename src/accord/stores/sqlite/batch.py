"""One commit over all streams: what is asked together becomes durable together."""

import asyncio
from collections.abc import Sequence

import apsw
import msgspec

from accord.engine.ports import Conflict, Duplicate, Row

INSERT = "INSERT INTO records (stream, version, id, body, hash) VALUES (?, ?, ?, ?, ?)"


class Append(msgspec.Struct, gc=False):
    """Rows that wait for their commit."""

    stream: str
    expected: int
    rows: Sequence[Row]
    done: asyncio.Future[None]


class Chore(msgspec.Struct, gc=False):
    """A statement beside the rows that waits for the commit."""

    sql: str
    values: tuple[object, ...]
    done: asyncio.Future[None]


Job = Append | Chore
Outcome = Exception | None


class Committer:
    """Makes batches durable on its own connection; the database, not memory, is the authority."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._db = connection

    def commit(self, jobs: Sequence[Job]) -> list[Outcome]:
        """What became of each job; raises apsw.Error when nothing was kept."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            outcomes = [self._try(job) for job in jobs]
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return outcomes

    def _try(self, job: Job) -> Outcome:
        try:
            with self._db:
                self._do(job)
        except apsw.Error:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it concerns this job alone
            return error
        return None

    def _do(self, job: Job) -> None:
        if isinstance(job, Chore):
            self._db.execute(job.sql, job.values)
        else:
            self._append(job)

    def _append(self, job: Append) -> None:
        key, version = self._place(job.stream)
        if version != job.expected:
            raise Conflict(f"{job.stream} is at version {version}, not {job.expected}")
        for row in job.rows:
            self._insert(key, row)

    def _insert(self, key: int, row: Row) -> None:
        try:
            self._db.execute(INSERT, (key, row.version, row.id, row.body, row.hash))
        except apsw.ConstraintError as error:
            raise Duplicate(row.stream, row.id) from error

    def _place(self, stream: str) -> tuple[int, int]:
        self._db.execute("INSERT OR IGNORE INTO streams (name) VALUES (?)", (stream,))
        key = self._db.execute("SELECT key FROM streams WHERE name = ?", (stream,)).get
        version = self._db.execute("SELECT max(version) FROM records WHERE stream = ?", (key,)).get
        return key, version or 0
