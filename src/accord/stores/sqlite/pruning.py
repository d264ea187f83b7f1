"""Removes the beginning of a stream: first the signed cut is stored, then rows go in batches."""

from contextlib import closing

import apsw

from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.engine.ports import Conflict
from accord.stores.sqlite.database_file import connect
from accord.stores.sqlite.writer import write_transaction

# A batch is one commit and blocks the writer for some milliseconds.
BATCH = 200
# A server that commits without a pause lets another process wait long for its turn.
BUSY_TIMEOUT_MS = 60_000

CUT_SQL = "SELECT stream, version, hash, at, by, reason, state, key, signature FROM cuts"
_ROW_EXISTS_SQL = """
    SELECT 1 FROM records JOIN streams ON key = stream
    WHERE name = ?1 AND version = ?2 AND records.hash = ?3
"""
_HAS_ROWS_SQL = "SELECT 1 FROM records JOIN streams ON key = stream WHERE name = ? LIMIT 1"
_SAVE_CUT_SQL = """
    INSERT INTO cuts (stream, version, hash, at, by, reason, state, key, signature)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET version = excluded.version, hash = excluded.hash,
        at = excluded.at, by = excluded.by, reason = excluded.reason, state = excluded.state,
        key = excluded.key, signature = excluded.signature WHERE excluded.version > version
"""
_REMOVE_SQL = """
    DELETE FROM records WHERE pos IN (
        SELECT pos FROM records WHERE stream = (SELECT key FROM streams WHERE name = ?1)
        AND version <= ?2 ORDER BY version LIMIT ?3
    )
"""
_UNFINISHED_SQL = """
    SELECT cuts.stream FROM cuts JOIN streams ON name = cuts.stream
    WHERE EXISTS (
        SELECT 1 FROM records WHERE records.stream = streams.key AND version <= cuts.version
    )
"""


class Pruner:
    """Synchronous, on its own connection; removed bytes are overwritten in the file."""

    def __init__(self, path: str) -> None:
        self._db = connect(path)
        self._db.set_busy_timeout(BUSY_TIMEOUT_MS)
        self._db.pragma("secure_delete", 1)

    def keep(self, cut: RetentionCut) -> None:
        """Store the cut, and delete the snapshot and heads that refer to the removed part."""
        with write_transaction(self._db):
            row = (cut.stream, cut.version, cut.hash)
            if not self._db.execute(_ROW_EXISTS_SQL, row).get:
                raise Conflict(f"{cut.stream} {cut.version} does not match the retention cut")
            words = (cut.at, cut.by, cut.reason, cut.state, cut.key, cut.signature)
            self._db.execute(_SAVE_CUT_SQL, (*row, *words))
            self._db.execute("DELETE FROM snapshots WHERE stream = ?", (cut.stream,))
            old = "DELETE FROM heads WHERE stream = ? AND version < ?"
            self._db.execute(old, (cut.stream, cut.version))

    def begin_behind(self, cut: RetentionCut) -> None:
        """Store the cut of a stream that has no records yet."""
        with write_transaction(self._db):
            if self._db.execute(_HAS_ROWS_SQL, (cut.stream,)).get:
                raise Conflict(f"{cut.stream} already has records")
            about = (cut.at, cut.by, cut.reason, cut.state, cut.key, cut.signature)
            self._db.execute(_SAVE_CUT_SQL, (cut.stream, cut.version, cut.hash, *about))

    def remove(self, stream: str) -> int:
        """Remove the next batch of rows before the cut; returns how many."""
        with write_transaction(self._db):
            last = self._db.execute("SELECT version FROM cuts WHERE stream = ?", (stream,)).get
            self._db.execute(_REMOVE_SQL, (stream, last or 0, BATCH))
            done = self._db.changes()
        self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        return done

    def unfinished_streams(self) -> list[str]:
        """Streams with a stored cut and rows before it."""
        return [stream for (stream,) in self._db.execute(_UNFINISHED_SQL)]

    def close(self) -> None:
        self._db.close()


def shrink(path: str) -> int:
    """Shrink the file; returns the bytes freed. No other process may use the file meanwhile."""
    with closing(connect(path)) as db:
        size = int(db.pragma("page_size"))
        before = int(db.pragma("page_count"))
        if int(db.pragma("freelist_count")):
            db.execute("VACUUM")
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return (before - int(db.pragma("page_count"))) * size


def free_bytes(path: str) -> int:
    """Bytes in the file that are free for reuse."""
    with closing(connect(path)) as db:
        return int(db.pragma("freelist_count")) * int(db.pragma("page_size"))
