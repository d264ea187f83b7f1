"""The engine: decide ahead, commit in natural batches, answer after the commit.

ONE OWNER. The engine owns the streams, and it alone knows all parts. A part gets what it needs when
it is made (the log, the codec, the clock, a callback) and never the engine; what it finds out it
returns. So each part can be read, tested and replaced alone:

- `Decider` reads and advances one stream, and returns what came of a message;
- `Committer` appends what is decided, and returns whether it is durable, overtaken or lost;
- `StreamCache` reads streams from the log and evicts them;
- `Delivery` writes to connections, and returns who joined; `JoinHandler` sends those the past;
- `HeartbeatMonitor` and `Startup` submit messages of the server itself.

THE LOOP. `submit` decides a message, or queues it while its stream is held. `_decide` does what the
decision says; `_commit` does the same with the result of a commit. Both run on one event loop, so a
step without an `await` is atomic. A stream is held while it is read from the log
(`_run_while_held`): at the start, to catch up with another process, or to look records up. After
the last hold its queue is decided in order.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from accord.core.kernel.actor import TIMER_ACTOR, Actor
from accord.core.kernel.context import Context
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.limits import limit_exceeded
from accord.core.kernel.messages import Body, ChunkBatch, Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.timestamps import to_iso
from accord.engine.chunk_fast_path import ChunkBatchOutcome, decide_batch
from accord.engine.committer import (
    CommitListeners,
    Committed,
    Committer,
    Overtaken,
    WriteBackpressure,
    answer_senders,
)
from accord.engine.counters import EngineCounters
from accord.engine.decider import Decider, SenderReturned
from accord.engine.delivery.delivery import Delivery, Vault
from accord.engine.delivery.heartbeat import HeartbeatMonitor
from accord.engine.delivery.joining import JoinHandler
from accord.engine.ports import (
    Conflict,
    DamagedError,
    Duplicate,
    EncodedRecord,
    EnginePorts,
    EventLog,
    Row,
    StoreError,
)
from accord.engine.scheduling import BackgroundTasks, Scheduler
from accord.engine.streams.snapshots import Snapshots
from accord.engine.streams.startup import RoomSummaries, Startup
from accord.engine.streams.stream import OnOutcome, Outcome, Peer, Stream, Submission
from accord.engine.streams.stream_cache import StreamCache, unreadable_refusal
from accord.engine.streams.verified_reads import RecordReader

log = logging.getLogger("accord.engine")

# Seconds between attempts to follow the log.
FOLLOW_RETRY_S = 1.0

ROW, STREAM = itemgetter(1), attrgetter("stream")


# The refusal of a message, or its records.
HandleResult = tuple[Refused | None, tuple[EncodedRecord, ...]]


class Engine:
    """Everything that changes a stream goes through `submit`."""

    def __init__(
        self,
        events: EventLog,
        contexts: Iterable[Context[Any]],
        ports: EnginePorts,
        *,
        window: int = 1000,
        check: bool = False,
    ) -> None:
        self.events = events
        self.contexts = {context.name: context for context in contexts}
        self.codec, self.clock, self.new_id, self.policy = ports
        self.check = check
        self.pinned: set[str] = set()
        self.tasks = BackgroundTasks()
        self.wait_until_idle, self.failures = self.tasks.wait_until_idle, self.tasks.failures
        self.counters = EngineCounters()
        self.listeners = CommitListeners(self.counters, self.tasks.record_failure)
        self.on_commit = self.listeners.on_commit
        self.on_state_change = self.listeners.on_state_change
        self.on_version_seen = self.listeners.on_version_seen
        self.vault = Vault()
        self.reader = RecordReader(events, self.codec)
        self.decode_row = self.reader.decode
        self.snapshots = Snapshots(events)
        self.stream_cache = StreamCache(
            self.reader, self.snapshots, self.contexts, self.clock, window, self._is_in_use
        )
        self.streams = self.stream_cache.streams
        self.decider = Decider(self.codec, self.clock, self.policy)
        self.backpressure = WriteBackpressure(self.policy.limits)
        self.committer = Committer(events, self.backpressure, self.counters)
        submit, streams = self.submit_system_message, self.streams
        self.heartbeat = HeartbeatMonitor(ports, streams, self._broadcast, submit)
        self.delivery = Delivery(ports, self.contexts, streams, self.vault, self.heartbeat, submit)
        self.joining = JoinHandler(
            ports, self.reader, self.delivery, self.vault, self.counters, self.tasks.spawn, submit
        )
        self.scheduler = Scheduler(self.clock, self.send_tick)
        self._start_position: int | None = None
        self._starting = False

    # Submitting

    def submit(self, stream: str, submission: Submission) -> None:
        """Decide now, or queue while the stream is being read; the answer comes later."""
        opened = self.streams.get(stream) or self._open(stream)
        if self.backpressure.unstored_bytes > self.backpressure.unlimited_below and (
            refusal := self.backpressure.refusal_for(opened, submission)
        ):
            submission.refuse(refusal)
        elif not opened.hold_count and not opened.queue:
            self._decide(opened, submission)
        elif len(opened.queue) < (most := self.backpressure.limits.queue):
            opened.queue.append(submission)
        else:
            detail = "The session is still being loaded and its queue is full; try again"
            submission.refuse(limit_exceeded("queue", most, detail, retry_after_ms=1000))

    def submit_chunks(
        self, batch: ChunkBatch, actor: Actor, on_outcome: OnOutcome, peer: Peer
    ) -> bool:
        """Decide chunks of one answer together; False: nothing was done, submit each of them."""
        stream = self.streams.get(f"room/{batch.first.room}")
        if (
            stream is None
            or stream.hold_count
            or stream.queue
            or self.backpressure.unstored_bytes > self.backpressure.unlimited_below
        ):
            return False
        now = self.clock.now() + stream.clock_ahead
        outcome = decide_batch(self.codec, stream, batch, actor, on_outcome, peer, now)
        if outcome is None:
            return False
        self._post(stream, outcome)
        return True

    async def handle(
        self, message: Message, actor: Actor, *, stream: str | None = None, peer: Peer | None = None
    ) -> tuple[EncodedRecord, ...]:
        """The durable records of a message; raises Refused."""
        done: asyncio.Future[HandleResult] = asyncio.get_running_loop().create_future()

        def answer(outcome: Outcome) -> None:
            if not done.done():
                # Not the outcome: a refusal's traceback refers to this frame, which would keep both
                # alive.
                done.set_result((outcome.refusal, outcome.records))

        self.submit(stream or f"room/{message.room}", Submission(message, actor, answer, peer))
        refused, encoded = await done
        if refused:
            raise refused
        return encoded

    def submit_system_message(
        self, stream: str, body: Body, actor: Actor, answer: OnOutcome | None = None
    ) -> None:
        """Submit a message of the server itself."""
        now = self.clock.now()
        room = stream.partition("/")[2]
        message = Message(self.new_id(), to_iso(now), room, SYSTEM, body)
        self.submit(stream, Submission(message, actor, answer))

    async def state(self, stream: str) -> Any:
        """The durable state of a stream; StoreError if it cannot be read."""
        opened = self.streams.get(stream) or self._open(stream)
        if opened.hold_count:
            ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            opened.ready_waiters.append(ready)
            await ready
        state = opened.base.state
        self._evict_if_idle(opened)
        return state

    def peek(self, stream: str) -> Any | None:
        """The durable state, None while it is being read; stays in memory from now on."""
        self.pinned.add(stream)
        opened = self.streams.get(stream) or self._open(stream)
        return opened.base.state if opened.base.version or not opened.hold_count else None

    # Deciding and committing

    def _decide(self, stream: Stream, submission: Submission) -> None:
        """Decide this message and do what the decision says; it is answered in every case."""
        decision = self.decider.decide(stream, submission)
        if isinstance(decision, Outcome):
            self._post(stream, decision)
            if decision.refusal is not None or decision.is_retry:
                self.heartbeat.on_activity(stream, submission.actor)
        elif isinstance(decision, SenderReturned):
            self.heartbeat.end_inactivity(stream, decision.seat)
            self._decide(stream, submission)
        else:
            stream.queue.appendleft(submission)
            self._hold_while(stream, self._look_up(stream, submission, decision.ids))
        del decision  # a refusal's traceback refers to this frame, which would keep both alive

    def _post(self, stream: Stream, outcome: Outcome | ChunkBatchOutcome) -> None:
        """Answer and deliver this outcome once everything decided before it is durable."""
        if not self.committer.post(stream, outcome):
            self._deliver_and_answer(stream, [outcome])
        elif not stream.committing:
            stream.committing = True
            self.tasks.spawn(self._commit(stream))

    async def _commit(self, stream: Stream) -> None:
        """Commit what is decided until nothing is left, and do what each result says."""
        while stream.outbox:
            result = await self.committer.commit_outbox(stream)
            if isinstance(result, Committed):
                self._on_committed(stream, result)
                self.committer.count_answered(stream, result)
            elif isinstance(result, Overtaken):
                stream.hold_count += 1
                await self._run_while_held(stream, self._decide_again(stream, result.race))
            else:
                self._deliver_and_answer(stream, result.outcomes)
        stream.committing = False
        self._settle(stream)

    def _on_committed(self, stream: Stream, done: Committed) -> None:
        """Deliver, answer and schedule what follows a commit."""
        state_changed = stream.base.state is not done.before.state
        self._deliver_and_answer(stream, done.outcomes)
        self.listeners.publish(stream.id, done.records, state_changed=state_changed)
        if state_changed:
            stream.chunk_streams.clear()
            self._reschedule(stream)
        if self.delivery.unrecorded_absences and done.records:
            self.delivery.retry_unrecorded_absences(stream.id)
        if self.snapshots.is_due(stream):
            self.tasks.spawn(self.snapshots.take(stream))
        if self.check:
            self.tasks.spawn(self.stream_cache.check_fold(stream))

    async def _decide_again(self, stream: Stream, race: Conflict | Duplicate) -> None:
        """Another process appended first: roll back, fold its records and decide again."""
        waiting = stream.roll_back()
        stream.queue.extendleft(reversed(waiting))
        await self.catch_up(stream)
        if isinstance(race, Duplicate):
            await self.stream_cache.look_up_retries(stream, waiting, race.id)

    def _deliver_and_answer(
        self, stream: Stream, outcomes: Sequence[Outcome | ChunkBatchOutcome]
    ) -> None:
        """Deliver and answer; if delivery fails, readers are disconnected and replay."""
        try:
            joins = self.delivery.deliver(stream, outcomes)
            if joins is not None:
                self.joining.admit_joiners(stream, joins)
        except Exception as error:
            log.exception("commit.untold", extra={"stream": stream.id})
            self.tasks.record_failure(error)
            self.delivery.disconnect(stream.id)
        answer_senders(outcomes, self.tasks.record_failure)
        self.counters.count_outcomes(outcomes)

    def _broadcast(self, stream: str, frame: bytes) -> set[str]:
        return self.delivery.broadcast(stream, frame)

    # Reading streams

    def _open(self, stream: str) -> Stream:
        """Create a stream and start reading it; messages queue until it was read."""
        opened = self.stream_cache.create(stream)
        self._hold_while(opened, self._load(opened))
        return opened

    async def _load(self, stream: Stream) -> None:
        await self.stream_cache.load(stream)
        self._reschedule(stream)
        self.listeners.report_version(stream.id, stream.base.version)

    def _hold_while(self, stream: Stream, work: Coroutine[Any, Any, None]) -> None:
        """Run this while the stream decides nothing."""
        stream.hold_count += 1
        self.tasks.spawn(self._run_while_held(stream, work))

    async def _run_while_held(self, stream: Stream, work: Coroutine[Any, Any, None]) -> None:
        """Run this for a stream that was held by the caller, then release it."""
        try:
            await work
        except StoreError as error:
            self._drop_unreadable(stream, error)
        except Exception as error:
            log.exception("stream.damaged", extra={"stream": stream.id})
            self._drop_unreadable(stream, DamagedError(f"{stream.id} is damaged: {error}"))
        else:
            self._release(stream)

    def _release(self, stream: Stream) -> None:
        """Release one hold; after the last one, decide what is queued."""
        stream.hold_count -= 1
        if stream.hold_count:
            return
        for ready in stream.ready_waiters:
            if not ready.done():
                ready.set_result(None)
        stream.ready_waiters.clear()
        while stream.queue and not stream.hold_count:
            self._decide(stream, stream.queue.popleft())
        self._settle(stream)

    def _drop_unreadable(self, stream: Stream, error: StoreError) -> None:
        """The store failed: refuse everything queued; the next message opens the stream again.

        The object stays held, so that nothing is ever decided in it.
        """
        detail = "damaged" if isinstance(error, DamagedError) else str(error)
        log.error("stream.unreadable", extra={"stream": stream.id, "detail": detail})
        self.stream_cache.drop(stream)
        self.backpressure.release(stream, stream.unstored_bytes)
        waiting = stream.abandon(error)
        self._refuse_all(waiting, unreadable_refusal(error))
        self.delivery.disconnect(stream.id)  # after the answers, which closing would cut off

    async def _look_up(self, stream: Stream, submission: Submission, ids: tuple[str, ...]) -> None:
        """Read records for the message at the front of the queue, which is decided afterwards."""
        try:
            await self.stream_cache.look_up(stream, submission, ids)
        except StoreError as error:
            stream.queue.remove(submission)
            self._post(stream, Outcome(submission, refusal=unreadable_refusal(error)))

    async def catch_up(self, stream: Stream) -> None:
        """Fold and deliver what other processes appended."""
        foreign = await self.stream_cache.catch_up(stream)
        self.delivery.deliver_foreign(stream, foreign.records)
        self.listeners.publish(stream.id, foreign.records, state_changed=foreign.state_changed)
        if foreign.state_changed:
            self._reschedule(stream)

    def _settle(self, stream: Stream) -> None:
        """Nothing is left to decide or commit: catch up with the log, or evict the stream."""
        self._catch_up_if_behind(stream)
        self._evict_if_idle(stream)

    def _catch_up_if_behind(self, stream: Stream) -> None:
        """Fold what other processes appended, if nothing is pending here.

        Otherwise the pending append finds the conflict.
        """
        if stream.newest_version > stream.base.version and stream.is_idle:
            self._hold_while(stream, self.catch_up(stream))

    def _evict_if_idle(self, stream: Stream) -> None:
        ended = self.stream_cache.evict_if_idle(stream)
        if ended is not None:
            self.delivery.unsubscribe_all(ended)
            self.stream_cache.evict(ended)

    def _is_in_use(self, stream: str) -> bool:
        return stream in self.pinned or self.delivery.has_listeners(stream)

    # Start, deadlines and other processes

    async def start(self) -> RoomSummaries:
        """Mark all members disconnected and arm every deadline; returns a summary of all rooms."""
        self._starting = True
        self._start_position = await self.events.position()
        startup = Startup(
            self.events, self.scheduler, self.stream_cache, self._open_room, self.wait_until_idle
        )
        summaries = await startup.run(self.snapshots.shape(self.contexts["room"]), self.clock)
        self._starting = False
        return summaries

    async def _open_room(self, stream: str) -> None:
        """Open a room at start-up: all its members are disconnected, and its deadlines apply."""
        try:
            state = await self.state(stream)
        except DamagedError:  # the reader logged it; the other rooms are still opened
            return
        for seat in self.contexts["room"].presence.connected_members(state):
            self.delivery.record_absence(stream, seat)
        self.send_tick(stream)

    def send_tick(self, stream: str) -> None:
        """Let the rules act on deadlines that have passed."""
        context = self.contexts[stream.partition("/")[0]]
        wake = context.startup_body if self._starting else None
        self.submit_system_message(stream, wake or context.tick_body, TIMER_ACTOR)

    def _reschedule(self, stream: Stream) -> None:
        """Set the timer of a stream to its earliest deadline."""
        soonest = min(stream.context.deadlines(stream.base.state, self.policy), default=None)
        if soonest != stream.deadline:
            stream.deadline = soonest
            when = None if soonest is None else soonest - stream.clock_ahead
            self.scheduler.set(stream.id, when)

    async def follow_log(self) -> None:
        """Keep streams in memory in step with what other processes append; runs until cancelled."""
        at = await self.events.position() if self._start_position is None else self._start_position
        while True:
            try:
                async for batch in self.events.tail(at):
                    self._on_foreign_rows(list(map(ROW, batch)))
                    at = batch[-1][0]
            except StoreError as error:
                log.warning("log.unfollowed", extra={"detail": str(error)})
                await asyncio.sleep(FOLLOW_RETRY_S)

    def _on_foreign_rows(self, rows: Sequence[Row]) -> None:
        newest = dict(zip(map(STREAM, rows), rows, strict=True))
        for row in newest.values():
            opened = self.streams.get(row.stream)
            if opened is None:
                self.listeners.report_version(row.stream, row.version)
            elif row.version > opened.base.version:
                opened.newest_version = row.version
                self._catch_up_if_behind(opened)

    # Stopping

    def abandon_pending(self, refusal: Refused) -> None:
        """Cancel everything and refuse all unanswered messages; used when a stop takes too long."""
        self.tasks.cancel_all()
        for opened in list(self.streams.values()):
            opened.hold_count += 1  # decide nothing here again
            waiting = opened.abandon(StoreError(refusal.detail))
            opened.in_flight = []
            self._refuse_all(waiting, refusal)

    def _refuse_all(self, submissions: Iterable[Submission], refusal: Refused) -> None:
        outcomes = [Outcome(each, refusal=refusal) for each in submissions]
        answer_senders(outcomes, self.tasks.record_failure)
