"""Replication: the ledgers of a repository's work trees become one stream on the server's log.

The problem. A pact's ledger is a file in a work tree. A repository may have several work trees,
each with its own version of the file, and anything may happen to such a file: tools append to it,
git merges, replaces or reorders its lines, an editor rewrites it, a disk hangs, a directory
disappears. The server needs one sequence of events that it can fold, replay and check merges
against. The files are the source of truth; nothing is ever written back to them.

What is recorded. The stream `work/<repo>` has two kinds of records:

- `Mirrored` holds one event's line, verbatim (shortened if very long, with the whole's digest). Its
  message id follows from the event's id, or from its text if it has none. Recording an event twice
  is therefore a retry that changes nothing, whichever work tree or process does it.
- `Arranged` holds a splice of the order: from index `at` on, `drop` events are replaced by the keys
  in `put`. It names events and does not repeat them, so removing or moving a line costs little.

Events are never deleted from the stream. An event that is in no file any more leaves the order and
no longer counts, but its record stays, and it counts again as soon as a file has it again.

Order. The order of the stream should equal the order of the files, as git's union merge would join
them: the events of the first work tree in file order, then those of the next that are new, and so
on (`_file_order`). New events are appended first, then splices are recorded until the order matches
(`_record_order`); each splice names the number of records it was computed from and is refused if
another writer was faster. The folded state follows time, not this order: entries are sorted by
their instant, then by their place in the order. A few events at the end that are not older than the
last one are added to the state; anything else is folded afresh from the lines in memory.

Disagreement between ledgers:

- An event counts if at least one ledger has it. A work tree that lags behind removes nothing.
- The same id with different content: the first one recorded counts. Within one file, the other line
  is reported as a fault; `accord pact validate` and `merge` complain about it as well.
- A removed event is believed only when two consecutive looks find the same files, because git
  writes a file in several steps, and only while every ledger can be read (`_unconfirmed_marks`).
- A missing, empty or unreadable ledger keeps the events it had. Otherwise deleting a directory
  would remove open tasks, and a feature with open tasks could be merged. Such a work tree counts
  until it is removed explicitly, or has nothing that the others lack.
- If a ledger cannot be read completely, `blind_reason` says why, and sessions refuse merges until
  it can: unread lines may hold open tasks.

Crashes and limits. `sync` reads files in threads and records in batches, so a long ledger delays
nothing else. The state changes only at the end of a sync, so it never reflects half of a file. No
progress is stored outside the stream: after a crash, the stream is read again, the files are read
from the beginning, and what is already recorded is skipped. A ledger that is rewritten with new ids
all the time would fill the log, so a stream takes a bounded number of events and bytes
(`replica_limits`) and then stops with `full_reason`.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from accord.core.kernel.messages import Body
from accord.core.work.mirror import (
    Arranged,
    Mirrored,
    MirrorState,
    PactArrange,
    PactMirror,
    mirror_message_id,
)
from accord.core.work.mirror_order import MirrorOrder, SourceEvent
from accord.engine.engine import Engine
from accord.pact.ledger import LedgerMark
from accord.pact.mirror.ledger_file import NO_ANSWER_NOTICE, LedgerFile
from accord.pact.mirror.mirrored_work import MirroredWork, fold_lines
from accord.pact.mirror.recorder import StreamRecorder

log = logging.getLogger("accord.mirror")

DISK_TIMEOUT_S = 2.0
BATCH_EVENTS = 200  # submitted at once; small, so that other streams are not delayed
MAX_LINES_ADDED = 500  # folded in the event loop; more are folded afresh in a thread
PROGRESS_EVENTS = 10_000  # between progress messages
# A stream may take this many times the size of the largest allowed ledger.
STREAM_SIZE_FACTOR = 4
MIN_EVENT_BYTES = 128  # a usual lower bound for one event
FULL_NOTICE = (
    "The server's log already has {events} events or {mib} MiB of this pact, which is the limit. "
    "This happens if the pact's log is rewritten with new ids. To start over with a new repository "
    "id, run `git config --unset accord.repo`, then `accord git install`"
)


class ReplicaLimits(NamedTuple):
    """Limits on the stream of one pact."""

    events: int
    bytes: int

    @property
    def sentence(self) -> str:
        """The explanation for a stream that reached its limit."""
        return FULL_NOTICE.format(events=self.events, mib=self.bytes >> 20)


def replica_limits(largest: int) -> ReplicaLimits:
    """Stream limits for ledgers of up to `largest` bytes."""
    return ReplicaLimits(largest // MIN_EVENT_BYTES, STREAM_SIZE_FACTOR * largest)


class Replica:
    """Replicates one repository's ledgers; an interrupted sync is completed by the next one."""

    def __init__(self, engine: Engine, repo: str) -> None:
        self.repo = repo
        self.recorder = StreamRecorder(engine, repo)
        self.ledger_files: dict[str, LedgerFile] = {}
        self.work = MirroredWork()
        self.is_ready = False  # `work` reflects the files as of the last sync
        self.full_reason = ""  # why nothing more is recorded
        self._order = MirrorOrder()
        self._pending: list[SourceEvent] = []  # read, perhaps not recorded yet
        self._new_lines: list[str] = []  # recorded, not folded yet
        self._is_stale = False  # the order changed since `work` was folded
        self._may_be_unordered = True  # the order of the files may differ
        self._unconfirmed_marks: tuple[LedgerMark, ...] | None = None
        self._last_reported: tuple[int, str] | None = None

    def set_directories(self, directories: Iterable[str]) -> None:
        """Set the directories of the ledgers; known ones keep their state."""
        largest = self.recorder.engine.policy.limits.pact_log
        files = {
            directory: self.ledger_files.get(directory) or LedgerFile(directory, largest)
            for directory in directories
        }
        self._may_be_unordered = self._may_be_unordered or files.keys() != self.ledger_files.keys()
        self.ledger_files = files

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self.recorder.stream

    @property
    def event_count(self) -> int:
        """The number of events in the current order."""
        return len(self._order.order)

    @property
    def blind_reason(self) -> str:
        """Why the server may not know of all tasks; empty if it does."""
        return self.full_reason or next(
            filter(None, (file.blind_reason for file in self.ledger_files.values())), ""
        )

    def count_only_in(self, directory: str) -> int:
        """How many events only this ledger has; an unreadable one may have had any event."""
        ledger_file = self.ledger_files[directory]
        others = [
            file.content.digests for file in self.ledger_files.values() if file is not ledger_file
        ]
        own = (
            key
            for key in self._order.order
            if ledger_file.trouble or key in ledger_file.content.digests
        )
        return sum(not any(key in known for known in others) for key in own)

    async def sync(self) -> bool:
        """Record what is new; whether sessions need an update."""
        await self._read_stream()
        await self._read_files()
        await self._record_new()
        await self._record_order()
        await self._fold()
        self.is_ready = True
        before, self._last_reported = self._last_reported, (self._order.records, self.blind_reason)
        return self._last_reported != before

    # Reading the files

    async def _read_files(self) -> None:
        """Read the ledgers, unless events of the last read are still to be recorded."""
        if not self.full_reason and not self._pending:
            found = await asyncio.gather(*map(self._refresh_file, self.ledger_files.values()))
            self._pending += chain.from_iterable(found)

    async def _refresh_file(self, file: LedgerFile) -> Sequence[SourceEvent]:
        """The new events of one ledger; empty if its disk does not respond."""
        before = file.trouble
        result = await file.background.call(file.refresh, DISK_TIMEOUT_S)
        if result is None and not file.is_silent:
            log.warning("pact.unseen", extra={"stream": self.stream, "detail": NO_ANSWER_NOTICE})
        file.is_silent = result is None
        if result is None:
            return ()
        recovered = bool(before) and not file.trouble
        self._may_be_unordered = self._may_be_unordered or file.was_reread or recovered
        file.was_reread = False
        if result.read:
            self._log_faults(file)
        return result.events

    def _log_faults(self, file: LedgerFile) -> None:
        extra = {"stream": self.stream, "count": len(file.status.faults)}
        if file.status.faults:
            lines = ",".join(map(str, file.status.faults[:20]))
            log.warning("pact.unread", extra={**extra, "detail": f"lines {lines}"})
        if file.status.trouble:
            log.warning("pact.unseen", extra={**extra, "detail": file.status.trouble})

    # Recording

    async def _read_stream(self) -> None:
        """Read the records that are not known here yet; all of them at first."""
        mirror: MirrorState = await self.recorder.state()
        if mirror.records != self._order.records:
            async for events in self.recorder.read_new():
                self._apply(events)

    def _apply(self, events: Iterable[Mirrored | Arranged]) -> None:
        for event in events:
            if self._order.apply(event) and isinstance(event, Mirrored):
                self._new_lines.append(event.line)
            else:
                self._is_stale = True

    async def _record_new(self) -> None:
        fresh = self._order.unrecorded(self._pending)
        known = len({event.key for event in self._pending}) - len(fresh)
        # An event that was recorded before and is read again may have moved.
        self._may_be_unordered = self._may_be_unordered or known > 0
        for start in range(0, len(fresh), BATCH_EVENTS):
            if self._is_full(fresh=True):
                return
            batch = fresh[start : start + BATCH_EVENTS]
            messages = [
                (mirror_message_id(event.key), PactMirror(event.key, event.line, event.digest))
                for event in batch
            ]
            await self._submit(messages)
        self._pending.clear()

    def _is_full(self, *, fresh: bool) -> bool:
        """Whether the stream has reached its limit; reported once."""
        order = self._order
        limits = replica_limits(self.recorder.engine.policy.limits.pact_log)
        too_many = fresh and len(order.lines) >= limits.events
        if not self.full_reason and (too_many or order.size_bytes >= limits.bytes):
            self.full_reason = limits.sentence
            extra = {"stream": self.stream, "count": len(order.lines), "detail": self.full_reason}
            log.error("pact.full", extra=extra)
        return bool(self.full_reason)

    async def _submit(self, messages: Sequence[tuple[str, Body]]) -> None:
        before = len(self._order.lines) // PROGRESS_EVENTS
        if (events := await self.recorder.submit(messages)) is None:
            await self._read_stream()  # another writer recorded events in between
        else:
            self._apply(events)
        if len(self._order.lines) // PROGRESS_EVENTS > before:
            extra = {"stream": self.stream, "count": len(self._order.lines)}
            log.info("pact.copied", extra=extra)

    async def _record_order(self) -> None:
        """Record splices until the stream's order equals that of the files."""
        if not (self._may_be_unordered or self._unconfirmed_marks):
            return
        silent = any(file.is_silent for file in self.ledger_files.values())
        if silent or self.full_reason:
            return  # events on a disk that does not respond are not gone
        self._may_be_unordered = False
        wanted = await asyncio.to_thread(self._file_order)
        while wanted and (splice := await asyncio.to_thread(self._order.next_splice, wanted)):
            if self._is_full(fresh=False):
                return
            self._may_be_unordered = True  # in case the submission fails
            body = PactArrange(self._order.records, *splice)
            await self._submit([(self.recorder.engine.new_id(), body)])
            self._may_be_unordered = False

    def _file_order(self) -> list[str]:
        """The events of all ledgers in the order that git's union merge would give.

        Empty if it should not be recorded yet: removals must be seen twice, since git writes a
        file in several steps, and are ignored while one of the files cannot be read.
        """
        files = self.ledger_files.values()
        wanted = dict.fromkeys(chain.from_iterable(file.content.digests for file in files))
        if not self._order.has_removed(wanted):
            self._unconfirmed_marks = None
            return list(wanted)
        if any(file.trouble for file in files):
            return []
        marks = tuple(file.status.mark for file in files)
        is_confirmed = marks == self._unconfirmed_marks
        self._unconfirmed_marks = None if is_confirmed else marks
        return list(wanted) if is_confirmed else []

    # Folding

    async def _fold(self) -> None:
        """Bring `work` up to date."""
        few = not self._is_stale and len(self._new_lines) <= MAX_LINES_ADDED
        if not few or not self.work.add_lines(self._new_lines):
            self.work = await asyncio.to_thread(fold_lines, self._order.current_lines())
        self._is_stale = False
        self._new_lines.clear()
