"""Moves what waits in the write-ahead log into the file, beside the commits and not within them."""

import threading
from contextlib import suppress

import apsw

# 16 MiB: large enough to be rare, small enough to be short.
PAGES = 4096
# A log that grew while a reader stood in its way is cut to this when it starts over.
KEEP_BYTES = 64 << 20


class Checkpointer:
    """A thread that copies; the writer copies the small rest, so that the log can start over.

    Only between two commits can all of it have been copied, and only then does SQLite begin again
    at the front of the log instead of making it longer.
    """

    def __init__(self, db: apsw.Connection, writing: apsw.Connection) -> None:
        self._db = db
        self._writing = writing
        self._due = threading.Event()
        self._copied = threading.Event()
        self._ended = False
        self._from = 0
        self._thread = threading.Thread(target=self._run, name="accord-checkpoint", daemon=True)
        self._thread.start()

    def after_commit(self) -> None:
        """Called by the writer, on its thread, between two commits."""
        if self._copied.is_set():
            self._copied.clear()
            self._from = self._written()
            _copy(self._writing)
        elif not self._due.is_set() and self._written() - self._from > PAGES:
            self._due.set()

    def close(self) -> None:
        """End the thread; the connection is the caller's to close."""
        self._ended = True
        self._due.set()
        self._thread.join()

    def _written(self) -> int:
        return self._writing.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0]

    def _run(self) -> None:
        while self._due.wait() and not self._ended:
            _copy(self._db)
            self._copied.set()
            self._due.clear()


def _copy(db: apsw.Connection) -> None:
    # A checkpoint that fails is made up for by the next one; what is committed is safe without it.
    with suppress(apsw.Error):
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
