"""Room ahead of the write-ahead log: it is written over, and does not grow with each commit.

A file that grows takes the file system a commit of its own journal, for which everybody waits who
makes anything durable meanwhile. Commits of 20 KiB, 250 a second, beside a file that is made
durable twice a second, as a copy of the log is, in ms (the middle of three runs):

    way                      p50    p99    most
    the file grows           3.19   9.45   20.9
    the file is there        0.36   5.27   14.9
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

# A log this short is that of a command, or of nobody who is in a hurry.
FIRST = 256 << 10
# Ever so often, so that it happens to few; no more than a log is kept at.
STEP = 4 << 20
PIECE = bytes(1 << 20)
FRAME = 24  # what stands before each page


class Runway:
    """Zeros behind the last frame: no frame, for whoever reads the log, and never a part of one."""

    def __init__(self, db: apsw.Connection, path: str, most: int) -> None:
        self._db = db
        self._path = f"{path}-wal"
        self._most = most
        self._page = int(db.pragma("page_size")) + FRAME
        self._end = 2 * FIRST
        self._pages = 0
        db.set_wal_hook(self._grown)

    def _grown(self, _: apsw.Connection, name: str, pages: int) -> int:
        if name == "main":
            self._pages = pages
        return apsw.SQLITE_OK

    def after_commit(self) -> None:
        """Called by the writer between two commits; a disk without room for it does without."""
        used = self._pages * self._page
        if used + FIRST < self._end or used > self._most:
            return
        with suppress(apsw.Error, OSError), self._alone():
            self._lengthen(used)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While nobody else writes: their frames would lie where the zeros go."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    def _lengthen(self, used: int) -> None:
        log = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            size = os.fstat(log).st_size
            self._end = max(size, min(used + STEP, self._most))
            try:
                fill(log, size, self._end)
            except OSError:
                os.ftruncate(log, size)
                raise
        finally:
            os.close(log)


def fill(file: int, start: int, end: int) -> None:
    """Zeros from here to there."""
    while start < end:
        start += os.pwrite(file, PIECE[: end - start], start)
