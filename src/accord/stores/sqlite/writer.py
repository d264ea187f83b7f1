"""The one thread that writes; what arrives during a commit shares the next one."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

import apsw

from accord.engine.ports import StoreError
from accord.stores.sqlite.checkpoint import KEEP_BYTES, Checkpointer
from accord.stores.sqlite.committer import Committer
from accord.stores.sqlite.faults import store_error
from accord.stores.sqlite.file import connect
from accord.stores.sqlite.jobs import Commit, Job
from accord.stores.sqlite.runway import Runway

SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}
# No more: when an index was balanced, the end of a commit looks at every page that is kept.
CACHE_KIB = 8 << 10
MORE, LAST = True, False


class Writer:
    """Takes jobs on the event loop and answers them there, one commit at a time."""

    def __init__(self, path: str, durability: str) -> None:
        self._path = path
        self._db = connect(path)
        self._db.pragma("synchronous", SYNCHRONOUS[durability])
        self._db.pragma("journal_size_limit", KEEP_BYTES)
        self._db.pragma("cache_size", -CACHE_KIB)
        self._beside = connect(path)
        self._waiting: deque[Job] = deque()
        self._armed = False
        self._turns: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="accord-writer", daemon=True)

    def start(self, committed: Callable[[Commit], None]) -> None:
        """Begin; `committed` is called on this loop before the jobs are answered."""
        self._committed = committed
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def put(self, job: Job) -> None:
        """Have the job in the next commit."""
        self._waiting.append(job)
        if not self._armed:
            self._armed = True
            # At the end of this turn of the loop, so that one turn is one commit.
            self._loop.call_soon(self._turn)

    async def close(self) -> None:
        """Everything put so far is answered; then the thread ends."""
        self._turns.put(LAST)
        await asyncio.to_thread(self._thread.join)

    def _turn(self) -> None:
        self._armed = False
        self._turns.put(MORE)

    def _answer(self, batch: list[Job], commit: Commit) -> None:
        self._committed(commit)
        for job, outcome in zip(batch, commit.outcomes, strict=True):
            if job.done.done():
                continue
            if outcome is None:
                job.done.set_result(None)
            else:
                job.done.set_exception(outcome)

    def _run(self) -> None:
        committer = Committer(self._db)
        checkpointer = Checkpointer(self._beside, self._db)
        runway = Runway(self._db, self._path, KEEP_BYTES)
        more = MORE
        while more:
            more = self._turns.get()
            # Without asking the loop again: it may be busy, and what waits is here.
            while batch := self._take():
                self._tell(batch, self._commit(committer, batch))
                checkpointer.after_commit()
                runway.after_commit()
        checkpointer.close()
        self._let_go()

    def _take(self) -> list[Job]:
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def _commit(self, committer: Committer, batch: list[Job]) -> Commit:
        try:
            return committer.commit(batch)
        except apsw.Error as error:
            return Commit([store_error(self._path, error) for _ in batch], [], 0)
        except Exception as error:  # noqa: BLE001 - a mistake of ours leaves nobody waiting
            return Commit([StoreError(repr(error)) for _ in batch], [], 0)

    def _tell(self, batch: list[Job], commit: Commit) -> None:
        # The loop is closed when nobody is left who could hear the answer.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._answer, batch, commit)

    def _let_go(self) -> None:
        with suppress(apsw.Error):  # a disk that fails now took all that was acknowledged
            self._beside.close()
        # Not done while another process reads; its last connection then does it.
        with suppress(apsw.Error):
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        with suppress(apsw.Error):
            self._db.close()
