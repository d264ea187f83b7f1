"""The one thread that writes; what arrives during a commit shares the next one."""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue

import apsw

from accord.engine.ports import StoreError
from accord.stores.sqlite.batch import Committer, Job, Outcome
from accord.stores.sqlite.faults import store_error
from accord.stores.sqlite.file import connect

SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}


class Writer:
    """Takes jobs on the event loop and answers them there, one commit at a time."""

    def __init__(self, path: str, durability: str, committed: Callable[[], None]) -> None:
        self._path = path
        self._committed = committed
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Job] = []
        self._busy = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._batches: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._db = connect(path)
        self._db.pragma("synchronous", SYNCHRONOUS[durability])
        self._thread = threading.Thread(target=self._run, name="accord-writer", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Have the job in the next commit."""
        self._waiting.append(job)
        if not self._busy:
            self._busy = True
            self._idle.clear()
            self._loop.call_soon(self._flush)

    async def close(self) -> None:
        """Everything put so far is answered, then the thread ends."""
        await self._idle.wait()
        self._batches.put(None)
        await asyncio.to_thread(self._thread.join)
        self._db.close()

    def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        if batch:
            self._batches.put(batch)
        else:
            self._busy = False
            self._idle.set()

    def _run(self) -> None:
        committer = Committer(self._db)
        while (batch := self._batches.get()) is not None:
            outcomes = self._outcomes(committer, batch)
            self._loop.call_soon_threadsafe(self._answer, batch, outcomes)

    def _outcomes(self, committer: Committer, batch: list[Job]) -> list[Outcome]:
        try:
            return committer.commit(batch)
        except apsw.Error as error:
            return [store_error(self._path, error) for _ in batch]
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not leave callers waiting
            return [StoreError(repr(error)) for _ in batch]

    def _answer(self, batch: list[Job], outcomes: list[Outcome]) -> None:
        for job, outcome in zip(batch, outcomes, strict=True):
            if job.done.done():
                continue
            if outcome is None:
                job.done.set_result(None)
            else:
                job.done.set_exception(outcome)
        self._committed()
        self._flush()
