"""Room ahead of the write-ahead log: it is written over, and does not grow with each commit.

A file that grows takes the file system a commit of its own journal. Commits of 20 KiB, 250 a
second, beside a file that is made durable twice a second, as a copy of the log is, in ms, three
runs on a quiet machine:

    way                      p50            p99
    the file grows           0.58 .. 0.61   2.8 .. 6.9
    the file is there        0.32 .. 0.40   1.1 .. 13.2

So the usual commit gains a third; of the slowest ones nothing can be said.

The zeros are made durable by the commit behind them, which waits for that. Commits of 16 KiB, 200
a second, in ms, two runs on a shared machine, the middle one and the slowest:

    zeros at a time     to write them           the commit behind them
    256 KiB             0.18 .. 0.19, 0.54      0.9 .. 1.0, 3.1
    1 MiB               0.47 .. 0.86, 2.2       1.5 .. 2.2, 9.7
    4 MiB               1.4 .. 1.7, 4.0         2.9 .. 3.3, 65
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from accord.stores.sqlite.file import BUSY_MS

# A log this short is that of a command, or of nobody who is in a hurry. So much is kept ahead.
FIRST = 256 << 10
# A little at a time, because a commit waits for it; no more than a log is kept at.
STEP = 256 << 10
PIECE = bytes(1 << 20)
FRAME = 24  # what stands before each page


class Runway:
    """Zeros behind the last frame: no frame, for whoever reads the log, and never a part of one."""

    def __init__(self, db: apsw.Connection, path: str, most: int) -> None:
        self._db = db
        self._path = path
        self._file = identity(path)
        self._most = most
        self._page = int(db.pragma("page_size")) + FRAME
        self._end = 2 * FIRST
        self._pages = 0
        db.set_wal_hook(self._grown)

    def _grown(self, _: apsw.Connection, name: str, pages: int) -> int:
        if name == "main":
            if pages < self._pages:  # it starts over, and others may have cut it
                self._end = min(self._end, 2 * FIRST)
            self._pages = pages
        return apsw.SQLITE_OK

    def after_commit(self) -> None:
        """Called by the writer between two commits; a disk without room for it does without."""
        used = self._pages * self._page
        far_enough = used + FIRST < self._end or self._end >= self._most
        if far_enough or used > self._most:
            return
        with suppress(apsw.Error, OSError), self._alone():
            self._lengthen(used)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While nobody else writes: their frames would lie where the zeros go.

        Without waiting for them, because commits wait behind this.
        """
        self._db.set_busy_timeout(0)
        try:
            self._db.execute("BEGIN IMMEDIATE")
        finally:
            self._db.set_busy_timeout(BUSY_MS)
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    def _lengthen(self, used: int) -> None:
        log = os.open(f"{self._path}-wal", os.O_RDWR | os.O_CLOEXEC)
        try:
            if self._file is None or identity(self._path) != self._file:
                return  # another store stands there by now, and its writers do not wait for us
            size = os.fstat(log).st_size
            self._end = max(size, min(used + FIRST + STEP, self._most))
            try:
                fill(log, size, self._end)
            except OSError:
                os.ftruncate(log, size)
                raise
        finally:
            os.close(log)


def identity(path: str) -> tuple[int, int] | None:
    """By which a file is the same one, whatever stands under its name; None where nothing does."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def fill(file: int, start: int, end: int) -> None:
    """Zeros from here to there."""
    while start < end:
        start += os.pwrite(file, PIECE[: end - start], start)
