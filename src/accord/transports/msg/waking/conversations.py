"""What waking asks of a conversation: of a thread, or of a session that is read as one."""

from collections import OrderedDict
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, NamedTuple

from accord.api.threads import SummarizeThread
from accord.core.attention.cursors import cursor_in
from accord.core.attention.state import Seat
from accord.core.attention.waking.automatic_wakes import PostedMessage
from accord.core.attention.waking.politeness_loop import polite_run
from accord.core.kernel.actor import Actor
from accord.core.kernel.effects import Relay
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Instant
from accord.core.kernel.records import Record
from accord.core.kernel.role_permissions import Kind
from accord.core.room.conversation.prompts import PromptDraft, PromptSubmit
from accord.core.room.state import ABSENT_PRESENCES, Room
from accord.core.room.threads import state as thread_state
from accord.core.room.threads.state import MessageKind, Thread, is_thread_id
from accord.core.room.threads.thread_findings import event_type_of
from accord.core.room.threads.thread_messages import ThreadMessage, author_of
from accord.core.room.threads.thread_posts import ADDRESSEES, addressees_of
from accord.core.views import thread_summary
from accord.core.views.session_threads import SessionThread, as_message, is_background, member_of
from accord.engine.streams.stream import Stream

if TYPE_CHECKING:
    from accord.transports.msg.service import ThreadService

# Messages looked at for a politeness loop: six of two agents, and notices of the server between.
TALK_MESSAGES = 24
# For a new session, which knows nothing of the thread (MSG 3.8).
SUMMARIZED_MESSAGES = 200
MAX_DRAFTS = 10_000


class Conversation(NamedTuple):
    """How a conversation stands for one agent."""

    unread: int
    polite_run: int
    is_present: bool = False  # of a session: the agent acted in it a moment ago


class Conversations:
    """Reads threads and sessions for the rules of waking, as the agent that is to be woken."""

    def __init__(self, threads: "ThreadService") -> None:
        self.threads = threads
        self.engine = threads.engine
        # Who waits for messages of a stream by a long poll.
        self.polling: Callable[[str], Container[str]] = lambda _: ()
        self._drafts: OrderedDict[Seat, Instant] = OrderedDict()
        # Called with every draft, where other servers have to know.
        self.on_draft: Callable[[Seat], None] | None = None
        self.engine.delivery.on_relay.append(self._on_relay)

    async def of(self, seat: Seat, id: str) -> Conversation:
        """How it stands at this moment; raises Refused if the agent is not in it."""
        if is_thread_id(id):
            thread = await self._thread(id)
            cursor = await self.threads.cursor_of(thread, seat.agent)
            unread = self.threads.unread(thread, seat.agent, cursor)
            newest = await self.newest_messages(thread, thread.last_seq)
            return Conversation(unread, polite_run(newest))
        session = await self.session(seat, id)
        room, sessions = session.room, self.threads.sessions
        read_up_to = cursor_in(await self.threads.attention_of(*seat), id).last_read_seq
        unread = await sessions.unanswered(session, seat.agent, read_up_to)
        member = room.members.get(seat.agent)
        is_present = member is not None and member.presence not in ABSENT_PRESENCES
        said = await self.newest_in_session(session, seat.agent)
        return Conversation(unread, polite_run(said), is_present)

    async def session(self, seat: Seat, id: str) -> SessionThread:
        """The session or fork as this agent sees it; raises Refused."""
        return await self.threads.sessions.conversation(id, reader(seat))

    async def newest_in_session(self, session: SessionThread, agent: str) -> list[PostedMessage]:
        """The messages of a session that this agent may read, the newest first."""
        records = await self.threads.sessions.newest(session, agent, TALK_MESSAGES)
        return [message_in_session(session.room, record) for record in reversed(records)]

    async def newest_messages(self, thread: Thread, up_to: int) -> list[PostedMessage]:
        """The messages of a thread up to a `seq`, the newest first."""
        after = max(0, up_to - TALK_MESSAGES)
        records = await self.threads.messages_after(thread, after, up_to - after)
        return [
            posted_message(record, record.event)
            for record in reversed(records)
            if isinstance(record.event, ThreadMessage)
        ]

    async def summary(self, seat: Seat, id: str) -> str:
        """What a new session of the agent is told about it."""
        if is_thread_id(id):
            thread = await self._thread(id)
            after = max(0, thread.last_seq - SUMMARIZED_MESSAGES)
            records = await self.threads.messages_after(thread, after, SUMMARIZED_MESSAGES)
            return thread_summary.summarize(thread, records)
        asked = SummarizeThread(thread_id=id, max_messages=SUMMARIZED_MESSAGES)
        return (await self.threads.sessions.summarize_thread(reader(seat), asked)).summary

    def draft_at(self, seat: Seat) -> Instant | None:
        """When a person last wrote at a prompt for this agent (UNI-24)."""
        return self._drafts.get(seat)

    def _on_relay(self, stream: Stream, actor: Actor, relay: Relay) -> None:
        said = relay.body
        if not isinstance(said, PromptDraft) or said.target_agent is None:
            return
        if actor.kind is Kind.HUMAN:
            seat = Seat(stream.base.state.workspace, said.target_agent)
            self.remember_draft(seat)
            if self.on_draft is not None:
                self.on_draft(seat)

    def remember_draft(self, seat: Seat) -> None:
        """A person writes at a prompt for this agent, here or on another server."""
        self._drafts[seat] = self.engine.clock.now()
        self._drafts.move_to_end(seat)
        if len(self._drafts) > MAX_DRAFTS:
            self._drafts.popitem(last=False)

    async def _thread(self, id: str) -> Thread:
        thread: Thread = await self.engine.state(thread_state.stream_of(id))
        return thread


def reader(seat: Seat) -> Actor:
    """The agent, as far as reading is concerned."""
    return Actor(seat.agent, Kind.AGENT, workspace=seat.workspace)


def posted_message(record: Record, event: ThreadMessage) -> PostedMessage:
    """A message of a thread as the rules of waking see it."""
    return PostedMessage(
        sender=author_of(record),
        kind=event.kind,
        by_agent=event.author_kind is Kind.AGENT,
        event_type=event_type_of(event.metadata or {}) or None,
        role=event.role,
        to=addressees_of(event),
        metadata=event.metadata or {},
    )


def message_in_session(room: Room, record: Record) -> PostedMessage:
    """A record of a session as the rules of waking see it: prompts are chat, work is an event."""
    said = record.said
    member = member_of(room, record.sender)
    by_agent = member is not None and member.kind is Kind.AGENT
    if is_background(record):
        return PostedMessage(sender=record.sender, kind=MessageKind.SYSTEM, by_agent=by_agent)
    if isinstance(said, PromptSubmit):
        return PostedMessage(sender=record.sender, kind=MessageKind.CHAT, by_agent=by_agent)
    message = as_message(record, {})
    if record.sender == SYSTEM and "notice" in message.metadata:
        return PostedMessage(
            sender=SYSTEM, kind=MessageKind.SYSTEM, by_agent=False, metadata=message.metadata
        )
    is_work = message.kind is MessageKind.SYSTEM
    named = message.metadata.get(ADDRESSEES)
    return PostedMessage(
        sender=record.sender,
        kind=MessageKind.EVENT if is_work else message.kind,
        by_agent=by_agent,
        event_type=None if is_work else event_type_of(message.metadata) or None,
        to=tuple(who for who in named if isinstance(who, str)) if isinstance(named, list) else (),
        metadata={} if is_work else message.metadata,
    )
