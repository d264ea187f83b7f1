"""One commit over all streams: what is asked together becomes durable together."""

from collections.abc import Sequence

import apsw

from accord.engine.ports import Duplicate, Row, StoreError
from accord.stores.sqlite.insert import MOST, Value, insert
from accord.stores.sqlite.jobs import Append, Chore, Commit, Job, Outcome
from accord.stores.sqlite.places import Place, Places, conflict
from accord.stores.sqlite.transaction import transaction


class Committer:
    """Makes batches durable on its own connection; the file, not memory, is the authority.

    Three ways, each a fallback of the one before: one statement that commits itself, when memory
    says that every append fits and the unique indexes agree; one transaction that looks up what
    memory does not know; and, when a row collides, one where every job can fail alone.
    """

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._places = Places(db)

    def commit(self, jobs: Sequence[Job]) -> Commit:
        """Raises apsw.Error when nothing was kept."""
        try:
            return self._at_once(jobs) or self._together(jobs)
        except (apsw.ConstraintError, apsw.TooBigError, TypeError, ValueError):
            return self._one_by_one(jobs)

    def _at_once(self, jobs: Sequence[Job]) -> Commit | None:
        batch = _Batch()
        for job in jobs:
            if isinstance(job, Chore) or not job.rows:
                return None
            place = batch.places.get(job.stream) or self._places.known(job.stream)
            if place is None or place.version != job.expected:
                return None
            batch.add(place.key, job)
        if len(batch.rows) > MOST:
            return None
        insert(self._db, batch.values)
        return self._done(batch, [None] * len(jobs))

    def _together(self, jobs: Sequence[Job]) -> Commit:
        with transaction(self._db):
            batch = _Batch()
            outcomes = [self._try(batch, job) for job in jobs]
            insert(self._db, batch.values)
            batch.last = self._db.last_insert_rowid()
            for job in jobs:
                self._chore(job)
        return self._done(batch, outcomes)

    def _try(self, batch: "_Batch", job: Job) -> Outcome:
        if isinstance(job, Chore):
            return None
        place = self._place(batch, job)
        if place.version != job.expected:
            return conflict(job.stream, place.version, job.expected)
        if job.rows:
            batch.add(place.key or self._places.name(job.stream), job)
        return None

    def _place(self, batch: "_Batch", job: Append) -> Place:
        place = batch.places.get(job.stream)
        if place:
            return place
        place = self._places.known(job.stream)
        if place and place.version == job.expected and job.rows:
            return place
        return self._places.look(job.stream)

    def _one_by_one(self, jobs: Sequence[Job]) -> Commit:
        with transaction(self._db):
            batch = _Batch()
            outcomes = [self._alone(batch, job) for job in jobs]
        return self._done(batch, outcomes)

    def _alone(self, batch: "_Batch", job: Job) -> Outcome:
        try:
            with self._db:
                self._chore(job)
                outcome = self._append(batch, job) if isinstance(job, Append) else None
        except (Duplicate, TypeError, ValueError) as error:
            outcome = error.with_traceback(None)
        except (apsw.ConstraintError, apsw.TooBigError) as error:
            outcome = StoreError(f"SQLite does not take it ({error})")
        return outcome

    def _append(self, batch: "_Batch", job: Append) -> Outcome:
        place = batch.places.get(job.stream) or self._places.look(job.stream)
        if place.version != job.expected:
            return conflict(job.stream, place.version, job.expected)
        if job.rows:
            key = place.key or self._places.name(job.stream)
            for row in job.rows:
                self._insert(key, row)
            batch.last = self._db.last_insert_rowid()
            batch.add(key, job)
        return None

    def _insert(self, key: int, row: Row) -> None:
        try:
            insert(self._db, (key, row.version, row.id, row.body, row.hash))
        except apsw.ConstraintError as error:
            # Its stubs do not name the attribute.
            if error.extendedresult != apsw.SQLITE_CONSTRAINT_UNIQUE:  # type: ignore[attr-defined]
                raise
            raise Duplicate(row.stream, row.id) from None

    def _chore(self, job: Job) -> None:
        if isinstance(job, Chore):
            self._db.execute(job.sql, job.values)

    def _done(self, batch: "_Batch", outcomes: list[Outcome]) -> Commit:
        self._places.remember(batch.places)
        return Commit(outcomes, batch.rows, batch.last or self._db.last_insert_rowid())


class _Batch:
    """What one transaction adds to the table, in the order of its rows."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.rows: list[Row] = []
        self.places: dict[str, Place] = {}
        self.last = 0

    def add(self, key: int, job: Append) -> None:
        self.rows += job.rows
        self.places[job.stream] = Place(key, job.expected + len(job.rows))
        for row in job.rows:
            self.values += (key, row.version, row.id, row.body, row.hash)
