"""The engine: decide ahead, commit in natural batches, answer after the commit.

ONE OWNER. The engine owns the streams, and it alone knows all parts. A part gets what it needs when
it is made and never the engine; what it finds out it returns. So each can be read and tested alone:

- `Decider` advances one stream and returns what came of a message; `Committer` makes it durable;
- `StreamCache` reads streams from the log and evicts them;
- `Delivery` writes to connections, and returns who joined; `JoinHandler` sends those the past;
- `HeartbeatMonitor` and `Startup` submit messages of the server itself;
- `ServerGroup` knows the other servers on the log, where a store allows several.

A stream that is read from the log is held: its messages queue, and are decided after the last hold.
A step without an `await` is atomic.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from operator import attrgetter, itemgetter
from typing import Any

from accord.core.kernel.actor import TIMER_ACTOR, Actor
from accord.core.kernel.context import Context
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.limits import limit_exceeded
from accord.core.kernel.messages import Body, ChunkBatch, Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.timestamps import to_iso
from accord.engine import workers
from accord.engine.chunk_fast_path import ChunkBatchOutcome, decide_batch
from accord.engine.committer import (
    CommitListeners,
    Committed,
    Committer,
    Overtaken,
    WriteBackpressure,
    answer_senders,
    refuse_senders,
)
from accord.engine.counters import EngineCounters
from accord.engine.decider import Decider, SenderReturned
from accord.engine.delivery.delivery import Delivery
from accord.engine.delivery.inactivity import HeartbeatMonitor
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
from accord.engine.servers.group import ServerGroup
from accord.engine.streams.snapshots import Snapshots
from accord.engine.streams.startup import RoomSummaries, Startup
from accord.engine.streams.stream import OnOutcome, Outcome, Peer, Stream, Submission, Vault
from accord.engine.streams.stream_cache import StreamCache, unreadable_refusal
from accord.engine.streams.verified_reads import RecordReader

log = logging.getLogger("accord.engine")

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
        self.followed_position: int | None = None
        self.servers: ServerGroup | None = None  # set where several servers may use the log
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
        is_full = self.backpressure.unstored_bytes > self.backpressure.unlimited_below
        if stream is None or stream.hold_count or stream.queue or is_full:
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
        """Decide a message and do what the decision says; it is answered in every case."""
        decision = self.decider.decide(stream, submission)
        if isinstance(decision, Outcome):
            is_refused = decision.refusal is not None
            if is_refused and self.servers and not self.servers.is_current(stream, submission):
                stream.queue.appendleft(submission)
                self._hold_while(stream, self._catch_up_after_commit(stream))
                return
            self._post(stream, decision)
            if is_refused or decision.is_retry:
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
            if self.servers is not None and self.servers.relays.is_pending(stream.id):
                await self.servers.relays.settled(stream.id)
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
        """Refuse everything queued; this object stays held, the next message opens another."""
        detail = "damaged" if isinstance(error, DamagedError) else str(error)
        log.error("stream.unreadable", extra={"stream": stream.id, "detail": detail})
        self.stream_cache.drop(stream)
        self.backpressure.release(stream, stream.unstored_bytes)
        waiting = stream.abandon(error)
        refuse_senders(waiting, unreadable_refusal(error), self.tasks.record_failure)
        self.delivery.disconnect(stream.id)  # after the answers, which closing would cut off

    async def _look_up(self, stream: Stream, submission: Submission, ids: tuple[str, ...]) -> None:
        """Read records for the message at the front of the queue, which is decided afterwards."""
        try:
            await self.stream_cache.look_up(stream, submission, ids)
        except StoreError as error:
            stream.queue.remove(submission)
            self._post(stream, Outcome(submission, refusal=unreadable_refusal(error)))

    async def catch_up(self, stream: Stream, known: Sequence[Row] = ()) -> None:
        """Fold and deliver what other processes appended; `known` are rows read already."""
        foreign = await self.stream_cache.catch_up(stream, known)
        self.delivery.deliver_foreign(stream, foreign.records)
        if self.servers is not None:
            self.servers.on_foreign_records(stream, foreign.records)
        self.listeners.publish(stream.id, foreign.records, state_changed=foreign.state_changed)
        if foreign.state_changed:
            self._reschedule(stream)

    async def _catch_up_after_commit(self, stream: Stream) -> None:
        await stream.commit_ended()
        await self.catch_up(stream)

    def _settle(self, stream: Stream) -> None:
        """Nothing is left to decide or commit: catch up with the log, or evict the stream."""
        self._catch_up_if_behind(stream)
        self._evict_if_idle(stream)

    def _catch_up_if_behind(self, stream: Stream, known: Sequence[Row] = ()) -> None:
        """Fold what other processes appended; if an append is pending, it finds the conflict."""
        if stream.newest_version > stream.base.version and stream.is_idle:
            self._hold_while(stream, self.catch_up(stream, known))

    def fall_behind(self, stream: Stream, version: int) -> None:
        """The log has this version of the stream."""
        stream.newest_version = max(stream.newest_version, version)
        self._catch_up_if_behind(stream)

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
        self.followed_position = await self.events.position()
        startup = Startup(
            self.events, self.scheduler, self.stream_cache, self._open_room, self.wait_until_idle
        )
        summaries = await startup.run(self.snapshots.shape(self.contexts["room"]), self.clock)
        self._starting = False
        return summaries

    async def _open_room(self, stream: str) -> None:
        """Open a room at start-up: all its members are disconnected, and its deadlines apply."""
        with suppress(DamagedError):  # the reader logged it; the other rooms are still opened
            await self.review_presence(stream)
            self.send_tick(stream)

    async def review_presence(self, stream: str) -> None:
        """Record members as disconnected who are connected nowhere; arms the stream's deadline."""
        state = await self.state(stream)
        for seat in self.contexts[stream.partition("/")[0]].presence.connected_members(state):
            self.delivery.mark_absent_if_gone(stream, seat)

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
        if self.followed_position is None:
            self.followed_position = await self.events.position()
        await workers.follow(self.events, self.followed_position, self._on_batch)

    def _on_batch(self, batch: Sequence[tuple[int, Row]]) -> None:
        rows = list(map(ROW, batch))
        for row in dict(zip(map(STREAM, rows), rows, strict=True)).values():  # the newest of each
            opened = self.streams.get(row.stream)
            if opened is None:
                self.listeners.report_version(row.stream, row.version)
            elif row.version > opened.base.version:
                opened.newest_version = row.version
                known = [r for r in rows if r.stream == row.stream] if opened.is_idle else []
                self._catch_up_if_behind(opened, known)
        if self.servers is not None:
            self.servers.on_unopened_rows([row for row in rows if row.stream not in self.streams])
        self.followed_position = batch[-1][0]

    # Stopping

    def abandon_pending(self, refusal: Refused) -> None:
        """Cancel everything and refuse all unanswered messages; used when a stop takes too long."""
        self.tasks.cancel_all()
        for opened in list(self.streams.values()):
            opened.hold_count += 1  # decide nothing here again
            waiting = opened.abandon(StoreError(refusal.detail))
            opened.in_flight = []
            refuse_senders(waiting, refusal, self.tasks.record_failure)
