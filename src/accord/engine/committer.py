"""Makes decided records durable, in natural batches.

The committer appends what is in a stream's outbox and returns what came of it: `Committed`,
`Overtaken` or `Lost`. The engine, which owns the streams, then delivers and answers, decides again,
or answers with a refusal. One commit per stream runs at a time; what is decided meanwhile shares
the next one.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context, copy_context
from copy import copy
from operator import attrgetter
from time import perf_counter
from typing import NamedTuple, TypeVar

from accord.core.kernel.integrity.hash_chain import link_hash
from accord.core.kernel.limits import Limits, limit_exceeded
from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Kind
from accord.engine.chunk_fast_path import ChunkBatchOutcome
from accord.engine.counters import CommitTiming, EngineCounters
from accord.engine.ports import Conflict, Duplicate, EncodedRecord, EventLog, Row, StoreError
from accord.engine.streams.stream import Outcome, Stream, StreamPosition, Submission
from accord.engine.streams.stream_cache import reason_for

Value = TypeVar("Value")
log = logging.getLogger("accord.engine")

# Memory of a pending record besides its bytes.
RECORD_OVERHEAD_BYTES = 1024
SERVER = Kind.SYSTEM
BODY, EVENT = attrgetter("body"), attrgetter("record.event")


# Called after a commit; must return quickly.
CommitListener = Callable[[str, Sequence[EncodedRecord]], None]
VersionListener = Callable[[str, int], None]


class Committed(NamedTuple):
    """These outcomes and records are durable; the stream was at `before`."""

    outcomes: list[Outcome | ChunkBatchOutcome]
    records: list[EncodedRecord]
    before: StreamPosition
    decided_at: float  # when the first message was decided; these three for metrics
    started_at: float
    stored_at: float
    cause: Context | None  # of the request that is traced


class Overtaken(NamedTuple):
    """Another process appended first, or has one of the ids; nothing was stored."""

    race: Conflict | Duplicate


class Lost(NamedTuple):
    """The store failed; these messages are refused, and nothing was stored."""

    outcomes: list[Outcome]


class Committer:
    """Appends the outbox of a stream to the log."""

    def __init__(
        self, events: EventLog, backpressure: "WriteBackpressure", counters: EngineCounters
    ) -> None:
        self._events = events
        self._backpressure = backpressure
        self._counters = counters

    def post(self, stream: Stream, outcome: Outcome | ChunkBatchOutcome) -> bool:
        """Add this to the next commit; False: it has no commit to wait for."""
        outbox = stream.outbox
        if not outbox:
            if not stream.pending_records and not stream.committing:
                return False
            stream.outbox_since = perf_counter()
            stream.trace_context = copy_context() if self._counters.on_span is not None else None
        outbox.append(outcome)
        self._backpressure.add(stream, outcome.records)
        return True

    async def commit_outbox(self, stream: Stream) -> Committed | Overtaken | Lost:
        """Append everything decided so far, and advance the durable position."""
        records, stream.pending_records = stream.pending_records, []
        stream.in_flight, stream.outbox = stream.outbox, []
        after = copy(stream.tip) if records else stream.base
        since, cause = stream.outbox_since, stream.trace_context
        began, size = perf_counter(), stream.unstored_bytes
        stored = began
        try:
            if records:
                rows = chain_rows(stream.id, stream.base.hash, records)
                after.hash = rows[-1].hash
                await self._events.append(stream.id, stream.base.version, rows)
                stored = perf_counter()
                self._counters.count_commit(len(rows), began, stored)
        except (Conflict, Duplicate) as race:
            self._counters.conflicts += 1
            self._backpressure.release(stream, stream.unstored_bytes)
            return Overtaken(race)
        except Exception as error:  # noqa: BLE001 - every sender must be answered
            return Lost(self._roll_back(stream, error))
        self._backpressure.release(stream, size)
        before, stream.base = stream.base, after
        outcomes, stream.in_flight = stream.in_flight, []
        stream.add_to_window(records)
        return Committed(outcomes, records, before, since, began, stored, cause)

    def count_answered(self, stream: Stream, done: Committed) -> None:
        """Count and trace a commit whose senders are answered."""
        self._counters.observe_answer(done.decided_at)
        if done.cause is not None:
            messages = sum(1 for each in done.outcomes for _ in each.submissions())
            times = (done.decided_at, done.started_at, done.stored_at)
            batch = CommitTiming(stream.id, messages, len(done.records), *times)
            self._counters.trace_commit(batch, done.cause)

    def _roll_back(self, stream: Stream, error: Exception) -> list[Outcome]:
        """The store failed: go back to the durable position; the refusals of what is undurable."""
        self._counters.lost_commits += 1
        unexpected = None if isinstance(error, StoreError) else error
        detail = "" if unexpected else str(error)
        about = {"stream": stream.id, "detail": detail}
        log.error("commit.lost", extra=about, exc_info=unexpected)
        lost = stream.roll_back()
        self._backpressure.release(stream, stream.unstored_bytes)
        stream.drop_pending_records()
        # Also what was refused: that decision may rest on records that are lost now.
        reason = error.public_message if isinstance(error, StoreError) else str(error)
        detail = f"The message could not be stored, and nothing was changed: {reason}"
        refusal = Refused(reason_for(error), detail)
        return [Outcome(each, refusal=refusal) for each in lost]


def chain_rows(stream: str, before: bytes, made: Sequence[EncodedRecord]) -> list[Row]:
    """Records as rows, each hashed together with the one before it.

    All of a commit at once: hashing one by one between other work takes twice as long.
    """
    rows = []
    for encoded in made:
        record, body = encoded.record, encoded.body
        before = link_hash(before, body)
        rows.append(Row(stream, record.version, record.id, body, before))
    return rows


def of_streams(prefix: str, listener: Callable[[str, Value], None]) -> Callable[[str, Value], None]:
    """The listener, called only for streams whose names begin so."""

    def listen(stream: str, what: Value) -> None:
        if stream.startswith(prefix):
            listener(stream, what)

    return listen


def of_events(kinds: tuple[type[Event], ...], listener: CommitListener) -> CommitListener:
    """The listener, called only for commits with one of these events."""

    def listen(stream: str, fresh: Sequence[EncodedRecord]) -> None:
        if any(isinstance(encoded.record.event, kinds) for encoded in fresh):
            listener(stream, fresh)

    return listen


def answer_senders(
    outcomes: Iterable[Outcome | ChunkBatchOutcome], on_failure: Callable[[Exception], None]
) -> None:
    """Answer every sender; a callback that fails does not affect the others."""
    for outcome in outcomes:
        if isinstance(outcome, ChunkBatchOutcome):
            continue
        try:
            outcome.submission.resolve(outcome)
        except Exception as error:
            log.exception("answer.failed", extra={"type": outcome.submission.message.body.type})
            on_failure(error)


def refuse_senders(
    submissions: Iterable[Submission], refusal: Refused, on_failure: Callable[[Exception], None]
) -> None:
    """Refuse messages that were not decided, or whose records are lost."""
    answer_senders([Outcome(each, refusal=refusal) for each in submissions], on_failure)


class CommitListeners:
    """Those who are told of commits; one that fails does not affect the others."""

    def __init__(
        self, counters: EngineCounters, record_failure: Callable[[BaseException], None]
    ) -> None:
        self._counters = counters
        self._record_failure = record_failure
        self.on_commit: list[CommitListener] = []  # called after every commit
        self.on_state_change: list[CommitListener] = []  # called after those that changed the state
        # Called with streams at versions that other processes may have written: on the log's tail
        # if the stream is not in memory here, and when a stream is read.
        self.on_version_seen: list[VersionListener] = []

    def publish(self, stream: str, fresh: Sequence[EncodedRecord], *, state_changed: bool) -> None:
        """Tell that these records are durable."""
        self._counters.events.update(map(type, map(EVENT, fresh)))
        listeners = self.on_commit + self.on_state_change if state_changed else self.on_commit
        for listener in listeners if fresh else ():
            try:
                listener(stream, fresh)
            except Exception as error:
                log.exception("listener.failed", extra={"stream": stream})
                self._record_failure(error)

    def report_version(self, stream: str, version: int) -> None:
        """Tell that a stream has reached this version."""
        for listener in self.on_version_seen:
            listener(stream, version)


class WriteBackpressure:
    """Bytes that wait for the store, per stream and in total."""

    __slots__ = ("limits", "unlimited_below", "unstored_bytes")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.unstored_bytes = 0
        # Below the smaller limit no check is needed.
        self.unlimited_below = min(limits.unstored, limits.unstored_session)

    def refusal_for(self, stream: Stream, submission: Submission) -> Refused | None:
        """Why a message is not accepted now; messages of the server itself always are."""
        limits = self.limits
        if self.unstored_bytes > limits.unstored:
            name, max_bytes = "unstored", limits.unstored
        elif stream.unstored_bytes > limits.unstored_session:
            name, max_bytes = "unstored_session", limits.unstored_session
        else:
            return None
        if submission.actor.kind is SERVER:
            return None
        detail = f"The store is slow, more than {max_bytes} bytes wait for it; try again later"
        return limit_exceeded(name, max_bytes, detail, retry_after_ms=1000)

    def add(self, stream: Stream, made: Sequence[EncodedRecord]) -> None:
        size = RECORD_OVERHEAD_BYTES * (len(made) or 1) + sum(map(len, map(BODY, made)))
        stream.unstored_bytes += size
        self.unstored_bytes += size

    def release(self, stream: Stream, size: int) -> None:
        """Subtract what was stored or dropped."""
        size = min(size, stream.unstored_bytes)  # a dropped stream counts nothing any more
        stream.unstored_bytes -= size
        self.unstored_bytes -= size
