"""Moves what waits in the write-ahead log into the file, beside the commits and not within them."""

import threading
from contextlib import suppress
from queue import SimpleQueue

import apsw

# Pages of 4 KiB: 4 MiB between two copies, so that each is short, and 64 MiB until the log has
# to start over, because that makes the writer wait for the disk (10 ms seen, 50 with 16 MiB).
OFTEN = 1024
LARGE = 16384
# A log that grew because a reader stood in its way is cut to this when it starts over.
KEEP_BYTES = LARGE * 4096


class Checkpointer:
    """A thread that copies, and the rest by the writer when the log got large.

    SQLite begins again at the front of its log only when all of it was copied, which happens by
    itself in any pause of the writing. Where there is none, the writer makes one: some
    milliseconds for what came in during the last copy.
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
            _copy(self._writing)
        elif not self._asked:
            written, _ = self._writing.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
            if written - self._copied > OFTEN:
                self._copied = written
                self._asked = True
                self._work.put(written)

    def close(self) -> None:
        """End the thread; the connections are the caller's to close."""
        self._work.put(None)
        self._thread.join()

    def _run(self) -> None:
        # A connection that never looked at the file does not know that there is a log to copy.
        with suppress(apsw.Error):
            self._db.pragma("schema_version")
        while self._work.get() is not None:
            self._large = _copy(self._db) > LARGE
            self._asked = False


def _copy(db: apsw.Connection) -> int:
    """The length of the log in pages, as far as it was copied."""
    # A checkpoint that fails is made up for by the next one; what is committed is safe without it.
    with suppress(apsw.Error):
        return db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[1]
    return 0
