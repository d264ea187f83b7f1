"""What the thread methods of one server need: the engine, quotas, and delivery marks."""

from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter

from accord.core.attention import state as attention_state
from accord.core.attention.cursors import cursor_in, unread_count
from accord.core.attention.delivery_marks import DeliveryState, state_of
from accord.core.attention.state import Attention, Cursor, Seat
from accord.core.attention.waking.waker_port import Waker
from accord.core.kernel.actor import TIMER_ACTOR, Actor
from accord.core.kernel.ids import SYSTEM, is_id
from accord.core.kernel.messages import Message
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import ThreadRole
from accord.core.kernel.timestamps import to_iso
from accord.core.room.threads.state import (
    MESSAGE_ID_PREFIX,
    STREAM_PREFIX,
    MessageKind,
    Thread,
    is_thread_id,
    no_thread_refusal,
    stream_of,
    version_of,
)
from accord.core.room.threads.thread_access import ensure_access
from accord.core.room.threads.thread_messages import author_of
from accord.core.room.threads.thread_posts import ThreadPost
from accord.core.views.session_threads import notice_item
from accord.engine.committer import of_streams
from accord.engine.engine import Engine
from accord.engine.ports import EncodedRecord
from accord.engine.streams import verified_reads
from accord.transports.http.session_index import ROOM_PREFIX
from accord.transports.http.sessions import SessionReader
from accord.transports.intake import Intake
from accord.transports.msg.delivery_marks import MAX_MARKS, Marks
from accord.transports.msg.idempotent_submission import Submitter
from accord.transports.msg.post_quota import PostQuota
from accord.transports.msg.session_delivery import SessionDelivery
from accord.transports.msg.session_threads import MAX_PAGE_BYTES, SessionThreads
from accord.transports.msg.thread_index import ThreadIndex
from accord.transports.msg.waking.service import WakeService
from accord.transports.msg.waking.silence import SilenceWatch

BODY, RECORD = attrgetter("body"), attrgetter("record")
# Messages may be long: so many are read at a time, and so many bytes of them for a summary.
ROWS_PER_READ = 50
MAX_SUMMARIZED_BYTES = 4 << 20
NO_CURSOR = Cursor(0, "", 0)
NO_SEAT = Seat("", "")
STOPPING_DETAIL = "The server is stopping; try again in a moment"


class ThreadService:
    """Reads and writes threads on behalf of verified actors."""

    def __init__(self, intake: Intake, sessions: SessionReader, waker: Waker | None = None) -> None:
        self.intake = intake
        self.sessions = SessionThreads(sessions, verified=not intake.is_open)
        self.engine: Engine = intake.engine
        limits = intake.limits
        self.submitter = Submitter(self.engine, limits.idempotency_seconds, intake.auth.id_secret)
        self.quota = PostQuota(
            limits.thread_posts, self.engine.clock.now, is_limited=intake.buckets.rate is not None
        )
        self.marks = Marks()
        self.index = ThreadIndex(self.engine)
        self.engine.on_commit.append(of_streams(STREAM_PREFIX, self._on_commit))
        self._unwritten: dict[str, Attention] = {}  # streams of agents that never acknowledged
        self.engine.on_commit.append(of_streams(attention_state.STREAM_PREFIX, self._on_attention))
        self.engine.on_version_seen.append(
            of_streams(attention_state.STREAM_PREFIX, self._on_version_seen)
        )
        self.wakes = WakeService(self, waker)
        self.silence = SilenceWatch(self.engine)
        self.sessions.delivery = self.session_delivery = SessionDelivery(
            self.engine, self.marks, self.attention_of, self.silence
        )

    def ensure_open(self) -> None:
        """Refuse while the server stops."""
        if self.intake.closed:
            raise Refused(Reason.UNAVAILABLE, STOPPING_DETAIL, {"stopping": True})

    async def thread_for(self, thread_id: str, actor: Actor) -> Thread:
        """The durable state of a thread that this actor may read; raises Refused."""
        self.ensure_open()
        stream = stream_of(thread_id)
        thread: Thread | None = self.engine.stream_cache.state_at_hand(stream)
        if thread is None:
            if not is_id(thread_id):
                raise no_thread_refusal(thread_id[:128])
            if stream not in self.engine.streams:
                self.intake.buckets.charge_stream_load(actor, ThreadPost.type)
            thread = await self.engine.state(stream)
        ensure_access(thread, actor)
        return thread

    async def messages_after(self, thread: Thread, seq: int, limit: int) -> list[Record]:
        """Up to `limit` messages after `seq`; costs the same wherever they are in the thread."""
        return [encoded.record for encoded in await self._encoded_after(thread, seq, limit)]

    async def page_after(self, thread: Thread, seq: int, limit: int) -> list[Record]:
        """Up to `limit` messages after `seq`; fewer, but one at least, if they are long."""
        page: list[Record] = []
        size = 0
        while batch := await self._encoded_after(
            thread, seq + len(page), min(limit - len(page), ROWS_PER_READ)
        ):
            bytes_of_batch = sum(map(len, map(BODY, batch)))
            if size + bytes_of_batch <= MAX_PAGE_BYTES:
                size += bytes_of_batch
                page += map(RECORD, batch)
                continue
            for encoded in batch:
                size += len(encoded.body)
                if page and size > MAX_PAGE_BYTES:
                    return page
                page.append(encoded.record)
        return page

    async def newest_messages(self, thread: Thread, limit: int) -> list[Record]:
        """Up to `limit` of the newest messages; fewer if they are long."""
        parts: list[list[Record]] = []
        left, first, size = limit, thread.last_seq, 0
        while (step := min(left, first, ROWS_PER_READ)) > 0 and size < MAX_SUMMARIZED_BYTES:
            first, left = first - step, left - step
            batch = await self._encoded_after(thread, first, step)
            size += sum(len(encoded.body) for encoded in batch)
            parts.append([encoded.record for encoded in batch])
        return [record for part in reversed(parts) for record in part]

    async def _encoded_after(self, thread: Thread, seq: int, limit: int) -> list[EncodedRecord]:
        wanted = min(limit, thread.last_seq - seq)
        if wanted <= 0:
            return []
        name, after = stream_of(thread.id), version_of(seq)
        opened = self.engine.streams.get(name)
        if opened is not None and opened.base.version - after <= len(opened.window):
            start = len(opened.window) - (opened.base.version - after)
            return list(islice(opened.window, start, start + wanted))
        rows = await verified_reads.read(self.engine.events, name, after, wanted)
        records = [self.engine.decode_row(row) for row in rows]
        if (opened := self.engine.streams.get(name)) is not None:
            opened.adopt_newest(records)
        return records

    async def attention_of(self, workspace: str, agent: str) -> Attention:
        """What an agent has read."""
        stream = attention_state.stream_of(workspace, agent)
        known = self._unwritten.get(stream)
        if known is not None and stream not in self.engine.streams:
            return known
        state: Attention = await self.engine.state(stream)
        if stream not in self.engine.streams:  # the engine keeps nothing of an empty stream
            self._unwritten[stream] = state
            if len(self._unwritten) > MAX_MARKS:
                del self._unwritten[next(iter(self._unwritten))]
        return state

    def _on_attention(self, stream: str, _: Sequence[EncodedRecord]) -> None:
        self._unwritten.pop(stream, None)

    def _on_version_seen(self, stream: str, version: int) -> None:
        """Another process wrote to the stream."""
        if version:
            self._unwritten.pop(stream, None)

    async def cursor_of(self, thread: Thread, agent: str) -> Cursor:
        """An agent's cursor in a thread."""
        return cursor_in(await self.attention_of(thread.workspace, agent), thread.id)

    async def own_up_to(self, thread: Thread, agent: str, cursor: Cursor, seq: int) -> int:
        """How many of the messages up to `seq` this agent wrote.

        Counts from the cursor or from the end, whichever is nearer; usually there is nothing
        to read, because an agent acknowledges the newest message or wrote none since its cursor.
        """
        written = thread.posted.get(agent, 0)
        if seq >= thread.last_seq or written == cursor.own:
            return written
        if seq - cursor.last_read_seq <= thread.last_seq - seq:
            return cursor.own + await self._own_between(thread, agent, cursor.last_read_seq, seq)
        return written - await self._own_between(thread, agent, seq, thread.last_seq)

    async def _own_between(self, thread: Thread, agent: str, after: int, up_to: int) -> int:
        own = 0
        while after < up_to:
            batch = await self.messages_after(thread, after, min(ROWS_PER_READ, up_to - after))
            own += sum(author_of(record) == agent for record in batch)
            after += len(batch)
        return own

    def unread(self, thread: Thread, agent: str, cursor: Cursor) -> int:
        """Messages after the cursor that this agent did not write; reads nothing."""
        return unread_count(cursor, thread.last_seq, thread.posted.get(agent, 0))

    # Delivery

    def record_handed_over(
        self, thread: Thread, agent: str, cursor: Cursor, *, after: int, up_to: int, seen: bool
    ) -> None:
        """Messages reached an agent: read by it, or written to a live connection of it."""
        marks = self.marks.of(thread.workspace, thread.id, agent, cursor.last_read_seq)
        place = (thread.workspace, thread.id, agent)
        self.marks.move(place, marks, after, up_to, seen=seen)

    def _on_commit(self, stream: str, fresh: Sequence[EncodedRecord]) -> None:
        """Messages are delivered to those who watch the thread on a live connection."""
        if not self.engine.delivery.has_listeners(stream):
            return
        thread: Thread = self.engine.streams[stream].base.state
        seqs = [encoded.record.seq for encoded in fresh if encoded.record.seq]
        for agent in {peer.principal for peer in self.engine.delivery.connections(stream)}:
            opened = self.engine.streams.get(attention_state.stream_of(thread.workspace, agent))
            cursor = cursor_in(opened.base.state, thread.id) if opened else NO_CURSOR
            if seqs:
                after, up_to = seqs[0] - 1, seqs[-1]
                self.record_handed_over(thread, agent, cursor, after=after, up_to=up_to, seen=False)

    async def deliveries(
        self, thread: Thread, actor: Actor, records: Iterable[Record]
    ) -> dict[int, dict[str, DeliveryState]]:
        """How far these messages reached each participant, for those that the actor may see."""
        is_operator = actor.thread_role is ThreadRole.OPERATOR
        shown = [
            (record.seq, author_of(record))
            for record in records
            if is_operator or author_of(record) == actor.principal
        ]
        if not shown:
            return {}
        reached = {}
        for agent in thread.participants:
            acked = (await self.cursor_of(thread, agent)).last_read_seq
            reached[agent] = acked, self.marks.of(thread.workspace, thread.id, agent, acked)
        return {
            seq: {
                agent: state_of(seq, acked, marks)
                for agent, (acked, marks) in reached.items()
                if agent != author
            }
            for seq, author in shown
        }

    # The server's own messages

    async def post_notice(
        self,
        thread_id: str,
        text: str,
        metadata: dict[str, object],
        id: str = "",
        seat: Seat | None = None,
    ) -> None:
        """Post a message of kind `system` from the server itself; raises Refused.

        With an `id` it is posted once, however often this is called. A session is found by a
        member of it, the `seat`.
        """
        now = to_iso(self.engine.clock.now())
        message_id = MESSAGE_ID_PREFIX + (id or self.engine.new_id())
        if is_thread_id(thread_id):
            post = ThreadPost(kind=MessageKind.SYSTEM, text=text, metadata=metadata)
            stream = stream_of(thread_id)
            message = Message(message_id, now, thread_id, SYSTEM, post)
        else:
            session, fork = await self.wakes.conversations.session(seat or NO_SEAT, thread_id)
            stream = f"{ROOM_PREFIX}{session.id}"
            item = notice_item(message_id, text, metadata)
            message = Message(message_id, now, session.id, SYSTEM, item, fork=fork)
        answer = await self.submitter.answer_to(stream, message, TIMER_ACTOR)
        if answer.refusal is not None:
            raise answer.refusal
