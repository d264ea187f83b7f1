"""The copy of the log on this machine, an SQLite file that answers all reads.

It can be deleted at any time: a server that has none makes it again from the stream. Which messages
it has applied is stored in the transaction that applies them.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from accord.engine.ports import StoreError
from accord.stores.nats.entries import Advance, Append, Entry
from accord.stores.nats.follower import CopyFailedError, ReceivedMessage
from accord.stores.sqlite.log import ADD_HEAD_SQL, ADVANCE_SQL, SqliteLog
from accord.stores.sqlite.writer import AppendJob, Job, StatementJob

APPLIED_CURSOR = "nats:applied"

Outcome = BaseException | None


class LocalCopy:
    """One file, used by one process at a time."""

    def __init__(self, log: SqliteLog, directory: "CopyDirectory", applied: int) -> None:
        self.log = log
        self.applied = applied
        self._directory = directory

    @classmethod
    async def open(cls, folder: str, stream: str, created: str) -> "LocalCopy":
        """The copy of the stream that was created then; a new one if there is none."""
        try:
            directory = await asyncio.to_thread(CopyDirectory.claim, folder)
        except OSError as error:
            detail = f"The local copy of the log cannot be kept in {folder}: {error.strerror}"
            raise StoreError(f"{detail}; name another directory with copy=") from None
        mark = hashlib.sha256(f"{stream} {created}".encode()).hexdigest()[:16]
        path = directory.path / f"{stream}-{mark}.db"
        try:
            # The stream has everything: what a power cut takes from the copy is read again.
            log = await SqliteLog.open(str(path), durability="normal")
        except BaseException:
            directory.release()
            raise
        return cls(log, directory, await log.cursor(APPLIED_CURSOR))

    async def apply(self, received: Sequence[ReceivedMessage]) -> list[list[Outcome]]:
        """Apply messages in one transaction; the outcomes of the entries of each."""
        loop = asyncio.get_running_loop()
        jobs = [
            _job(entry, loop.create_future()) for each in received for entry in each.message.entries
        ]
        last = received[-1].sequence
        mark = StatementJob(ADVANCE_SQL, (APPLIED_CURSOR, last), loop.create_future())
        outcomes = await self.log.commit_together([*jobs, mark])
        if problem := outcomes.pop():
            raise CopyFailedError(f"The local copy of the log cannot be written: {problem}")
        self.applied = last
        left = iter(outcomes)
        return [[next(left) for _ in each.message.entries] for each in received]

    async def close(self) -> None:
        """Close the file, and let another process use it."""
        await self.log.close()
        self._directory.release()


def _job(entry: Entry, done: "asyncio.Future[None]") -> Job:
    if isinstance(entry, Append):
        return AppendJob(entry.stream, entry.expected, entry.rows(), done)
    if isinstance(entry, Advance):
        return StatementJob(ADVANCE_SQL, (entry.name, entry.position), done)
    values = (entry.stream, entry.version, entry.hash, entry.at, entry.key, entry.signature)
    return StatementJob(ADD_HEAD_SQL, (*values, entry.total), done)


class CopyDirectory:
    """The directory of the copy; a temporary one if none is named or another process uses it."""

    def __init__(self, path: Path, lock: int | None) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def claim(cls, folder: str) -> "CopyDirectory":
        """Lock the directory, or make a temporary one."""
        if folder:
            path = Path(folder)
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return cls(path, lock)
            os.close(lock)
        return cls(Path(tempfile.mkdtemp(prefix="accord-nats-")), None)

    def release(self) -> None:
        """Unlock it, or remove the temporary one."""
        if self._lock is None:
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            os.close(self._lock)
            self._lock = None
