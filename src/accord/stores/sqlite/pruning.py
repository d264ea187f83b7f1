"""Removing the beginning of a stream: the signed cut first, then its rows, a few at a time."""

from contextlib import closing

import apsw

from accord.core.kernel.cuts import Cut
from accord.engine.ports import Conflict
from accord.stores.sqlite.file import connect
from accord.stores.sqlite.transaction import transaction

# Each batch is one commit, for which the writer waits: some milliseconds.
BATCH = 200

CUT = "SELECT stream, version, hash, at, by, reason, state, key, signature FROM cuts"
_MADE = """
    SELECT 1 FROM records JOIN streams ON key = stream
    WHERE name = ?1 AND version = ?2 AND records.hash = ?3
"""
_KEEP = """
    INSERT INTO cuts (stream, version, hash, at, by, reason, state, key, signature)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET version = excluded.version, hash = excluded.hash,
        at = excluded.at, by = excluded.by, reason = excluded.reason, state = excluded.state,
        key = excluded.key, signature = excluded.signature WHERE excluded.version > version
"""
_REMOVE = """
    DELETE FROM records WHERE pos IN (
        SELECT pos FROM records WHERE stream = (SELECT key FROM streams WHERE name = ?1)
        AND version <= ?2 ORDER BY version LIMIT ?3
    )
"""
_LEFT = """
    SELECT cuts.stream FROM cuts JOIN streams ON name = cuts.stream
    WHERE EXISTS (
        SELECT 1 FROM records WHERE records.stream = streams.key AND version <= cuts.version
    )
"""


class Pruner:
    """Synchronous, on a connection of its own; what it removes leaves no trace in the file."""

    def __init__(self, path: str) -> None:
        self._db = connect(path)
        self._db.pragma("secure_delete", 1)

    def keep(self, cut: Cut) -> None:
        """Put the cut on file, and drop what could bring the removed part back."""
        with transaction(self._db):
            row = (cut.stream, cut.version, cut.hash)
            if not self._db.execute(_MADE, row).get:
                raise Conflict(f"{cut.stream} {cut.version} is not what is to be cut")
            words = (cut.at, cut.by, cut.reason, cut.state, cut.key, cut.signature)
            self._db.execute(_KEEP, (*row, *words))
            self._db.execute("DELETE FROM snapshots WHERE stream = ?", (cut.stream,))
            old = "DELETE FROM heads WHERE stream = ? AND version < ?"
            self._db.execute(old, (cut.stream, cut.version))

    def remove(self, stream: str) -> int:
        """Remove the next few rows before the cut; how many there were."""
        with transaction(self._db):
            last = self._db.execute("SELECT version FROM cuts WHERE stream = ?", (stream,)).get
            self._db.execute(_REMOVE, (stream, last or 0, BATCH))
            done = self._db.changes()
        self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        return done

    def unfinished(self) -> list[str]:
        """Streams whose cut was kept, but not all of its rows removed."""
        return [stream for (stream,) in self._db.execute(_LEFT)]

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


def shrink(path: str) -> int:
    """Give free pages back to the disk; returns bytes. Nobody else may use the file meanwhile."""
    with closing(connect(path)) as db:
        size = int(db.pragma("page_size"))
        before = int(db.pragma("page_count"))
        if int(db.pragma("freelist_count")):
            db.execute("VACUUM")
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return (before - int(db.pragma("page_count"))) * size


def free(path: str) -> int:
    """Bytes inside the file that what comes next will use."""
    with closing(connect(path)) as db:
        return int(db.pragma("freelist_count")) * int(db.pragma("page_size"))
