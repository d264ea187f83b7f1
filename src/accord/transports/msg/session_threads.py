"""The methods on a session or fork: its messages are read and chat is posted as in a thread."""

from collections import deque
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from accord.api import threads as api
from accord.core.attention.cursors import cursor_in
from accord.core.attention.delivery_marks import DeliveryState
from accord.core.attention.state import Attention
from accord.core.attention.state import stream_of as attention_stream
from accord.core.dialects.nesting import is_too_deep
from accord.core.kernel.actor import Actor
from accord.core.kernel.context import fold
from accord.core.kernel.ids import is_id
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.state import Room
from accord.core.room.threads.message_tags import is_event_type, tags_of
from accord.core.room.threads.state import (
    MESSAGE_ID_PREFIX,
    MessageKind,
    ThreadType,
    no_thread_refusal,
)
from accord.core.room.threads.thread_findings import ensure_room_for_finding
from accord.core.room.threads.thread_posts import (
    ensure_addressees,
    event_type_refusal,
)
from accord.core.views.session_threads import (
    SessionMessage,
    SessionThread,
    as_message,
    is_background,
    is_readable,
    member_of,
)
from accord.core.views.sessions import is_known_to
from accord.core.views.thread_summary import ESCALATED, MAX_QUOTE_CHARS, MAX_QUOTES, excerpt
from accord.core.views.thread_summary import count as number_of
from accord.engine.ports import EncodedRecord
from accord.engine.streams import verified_reads
from accord.engine.streams.snapshots import position_after_cut
from accord.engine.streams.stream import StreamPosition
from accord.engine.streams.verified_reads import read_rows, verified
from accord.transports.http.sessions import ROWS_PER_READ, SessionReader
from accord.transports.msg.argument_checks import checked_metadata, checked_text
from accord.transports.msg.idempotent_submission import Request
from accord.transports.msg.message_items import open_item
from accord.transports.msg.session_delivery import SessionDelivery

# Rows of the log that one request looks at; a page may then have fewer messages than asked for.
MAX_SCANNED_ROWS = 2000
# Stored bytes in one answer, beyond which it has fewer messages than asked for.
MAX_PAGE_BYTES = 9 << 17
MAX_TAG_CHARS = 4096
# Messages back from the newest among which one is looked for that an agent has not answered.
MAX_LOOKED_BACK = 500
OWN_RULES_DETAIL = "This thread is a session; its members and its end are changed in the session"


class SessionPage(NamedTuple):
    """Messages of a conversation, up to which `seq` the log was read, and whether it goes on."""

    found: list[EncodedRecord]
    read_up_to: int
    has_more: bool


class SessionThreads:
    """Sessions as threads, for members: operators and orchestrators too need membership."""

    def __init__(self, sessions: SessionReader, *, verified: bool) -> None:
        self.sessions = sessions
        self.engine = sessions.engine
        self.verified = verified
        self._session_of_fork: dict[str, str] = {}
        self.delivery: SessionDelivery

    async def conversation(self, thread_id: str, actor: Actor) -> SessionThread:
        """The session or fork with this id, if the actor is or was a member; raises Refused."""
        if not is_id(thread_id):
            raise no_thread_refusal(thread_id[:128])
        room: Room = await self.engine.state(f"room/{thread_id}")
        if is_known_to(room, actor):
            return SessionThread(room)
        for name in await self._sessions_with(thread_id, actor):
            room = await self.engine.state(name)
            found = SessionThread(room, thread_id)
            if thread_id in room.forks and is_known_to(room, actor):
                self._session_of_fork[thread_id] = name
                if is_readable(found, actor.principal):
                    return found
        raise no_thread_refusal(thread_id[:128])

    async def _sessions_with(self, fork: str, actor: Actor) -> list[str]:
        """Where the fork was found before, else all sessions of the actor."""
        known = self._session_of_fork.get(fork)
        return [known] if known else list(await self.sessions.index.sessions_of(actor))

    async def page(
        self, conversation: SessionThread, seat: str, after: int, limit: int
    ) -> SessionPage:
        """Messages after `seq` `after` that this member may see."""
        found: list[EncodedRecord] = []
        read_up_to, rows, size = after, 0, 0
        async for encoded in self._records(conversation, after):
            rows += encoded.record.seq > after  # else a page could end before it begins
            if len(found) == limit or rows > MAX_SCANNED_ROWS or size > MAX_PAGE_BYTES:
                return SessionPage(found, read_up_to, has_more=True)
            read_up_to = max(read_up_to, encoded.record.seq)
            if encoded.record.seq > after and conversation.may_read(seat, encoded.record):
                found.append(encoded)
                size += len(encoded.body)
        return SessionPage(found, read_up_to, has_more=False)

    async def as_of(self, conversation: SessionThread, record: Record) -> SessionThread:
        """The conversation as it was after this record; as it is if the record was removed."""
        name = record.stream
        context = self.engine.contexts[name.partition("/")[0]]
        gone = await verified_reads.cut(self.engine.events, name)
        if gone is not None and gone.version >= record.version:
            return conversation
        room: Room = (
            context.initial_state(name) if gone is None else position_after_cut(context, gone).state
        )
        after = 0 if gone is None else gone.version
        async for row in read_rows(verified(self.engine.events), name, after, ROWS_PER_READ):
            if row.version > record.version:
                break
            room = fold(context, room, (self.engine.decode_row(row).record,))
        return conversation._replace(room=room)

    async def _records(
        self, conversation: SessionThread, after: int
    ) -> AsyncIterator[EncodedRecord]:
        read, stream = verified(self.engine.events), f"room/{conversation.room.id}"
        async for row in read_rows(read, stream, after, ROWS_PER_READ):
            yield self.engine.decode_row(row)

    async def _unread(self, conversation: SessionThread, actor: Actor, after: int) -> int:
        """How many of the next records are messages of others; keeps none of them."""
        count = rows = 0
        async for encoded in self._records(conversation, after):
            rows += 1
            if rows > MAX_SCANNED_ROWS:
                break
            record = encoded.record
            is_later = record.seq > after and record.actor != actor.principal
            count += is_later and conversation.may_read(actor.principal, record)
        return count

    async def unanswered(self, conversation: SessionThread, agent: str, after: int) -> int:
        """Messages that may concern an agent since its cursor and its own newest message."""
        first = max(after, self._latest(conversation).seq - MAX_LOOKED_BACK)
        count = 0
        async for encoded in self._records(conversation, first):
            record = encoded.record
            if record.actor == agent and record.fork == conversation.fork:
                count = 0
            elif record.seq > first and not is_background(record):
                count += conversation.may_read(agent, record)
        return count

    async def newest(self, conversation: SessionThread, agent: str, limit: int) -> list[Record]:
        """The newest records that an agent may read, of the last so many."""
        after = max(0, self._latest(conversation).seq - limit)
        page = await self.page(conversation, agent, after, limit)
        return [encoded.record for encoded in page.found]

    def item(
        self,
        conversation: SessionThread,
        encoded: EncodedRecord,
        delivery: dict[str, DeliveryState] | UnsetType = UNSET,
    ) -> api.MessageItem:
        """A record of a session as a message."""
        record = encoded.record
        envelope = msgspec.json.decode(encoded.frame or b"{}")
        message = as_message(record, envelope)
        member = member_of(conversation.room, record.sender)
        return api.MessageItem(
            message_id=record.id,
            thread_id=conversation.id,
            seq=record.seq,
            sender_agent_id=record.sender,
            sender_kind=member.kind if member else Kind.SYSTEM,
            sender_verified=self.verified or member is None,
            sender_session_id="",
            kind=message.kind,
            body=message.body,
            metadata=readable_metadata(message) or UNSET,
            in_reply_to=record.ref or UNSET,
            schema_version=1,
            created_at=to_iso(record.at),
            quoted=True,
            delivery=delivery,
        )

    # Methods

    async def read_messages(self, actor: Actor, request: api.ReadMessages) -> api.MessagePage:
        """Messages of a session; its `seq` has gaps."""
        conversation, seat = await self.conversation(request.thread_id, actor), actor.principal
        page = await self.page(conversation, seat, request.since_seq, request.limit)
        next_seq = page.found[-1].record.seq if page.found else page.read_up_to
        if page.found and not request.peek:
            self.delivery.on_read(conversation, seat, request.since_seq, next_seq)
        records = [encoded.record for encoded in page.found]
        reached = await self.delivery.reached(conversation, actor, records)
        return api.MessagePage(
            messages=tuple(
                self.item(conversation, each, reached.get(each.record.seq, UNSET))
                for each in page.found
            ),
            next_seq=next_seq,
            has_more=page.has_more,
            notice=api.QUOTED_NOTICE,
        )

    async def get_thread(self, actor: Actor, request: api.GetThread) -> api.ThreadDetail:
        """A session's name and members, and how much of it the caller has not read."""
        conversation = await self.conversation(request.thread_id, actor)
        room, latest = conversation.room, self._latest(conversation)
        cursor = cursor_in(await self._attention(actor), conversation.id)
        return api.ThreadDetail(
            thread_id=conversation.id,
            workspace_id=room.workspace,
            title=conversation.title,
            type=ThreadType.CONVERSATION,
            status=conversation.status,
            participants=conversation.participants,
            created_by=room.created_by,
            created_at=to_iso(room.created_at),
            updated_at=to_iso(latest.at),
            last_seq=latest.seq,
            last_read_seq=cursor.last_read_seq,
            unread=await self._unread(conversation, actor, cursor.last_read_seq),
            quoted=True,
        )

    async def summarize_thread(
        self, actor: Actor, request: api.SummarizeThread
    ) -> api.ThreadSummary:
        """How much was said, the newest chat, and the findings that are still open."""
        conversation = await self.conversation(request.thread_id, actor)
        after = max(0, self._latest(conversation).seq - request.max_messages)
        count, chat, has_more = 0, deque[api.MessageItem](maxlen=MAX_QUOTES), True
        while has_more:
            _, after, has_more = page = await self.page(
                conversation, actor.principal, after, request.max_messages
            )
            count += len(page.found)
            items = (self.item(conversation, encoded) for encoded in page.found)
            chat.extend(item for item in items if item.kind is MessageKind.CHAT)
        open_items = await self._open_items(conversation, actor.principal)
        lines = [
            f"The session is {conversation.status}; this is about {count} of its newest messages.",
            *((f"{number_of(len(open_items), 'finding')} open.",) if open_items else ()),
            *((ESCALATED,) if conversation.discussion.escalated else ()),
            *(
                f"{item.sender_agent_id} wrote: {excerpt(item.body, MAX_QUOTE_CHARS)!r}"
                for item in chat
            ),
        ]
        return api.ThreadSummary(
            summary="\n".join(lines),
            open_items=open_items,
            last_status=conversation.status,
            notice=api.QUOTED_NOTICE,
        )

    async def _open_items(self, conversation: SessionThread, seat: str) -> tuple[api.OpenItem, ...]:
        """The open findings that this member may see, however old they are."""
        items = []
        for id, finding in conversation.discussion.findings.items():
            page = await self.page(conversation, seat, finding.seq - 1, 1)
            for encoded in page.found:
                if encoded.record.id == id:
                    text = self.item(conversation, encoded).body
                    items.append(open_item(id, finding, text))
        return tuple(items)

    async def post_request(
        self, actor: Actor, request: api.PostMessage
    ) -> tuple[SessionThread, Request]:
        """A chat message or event for a session: a context item (UNI-8)."""
        conversation = await self.conversation(request.thread_id, actor)
        metadata = checked_metadata(request.metadata) or {}
        ensure_addressees(conversation.participants, metadata)
        if request.kind is MessageKind.EVENT:
            ensure_room_for_finding(conversation.discussion.findings, metadata)
        tags = checked_tags(request.kind, metadata)
        text = checked_text(request.body)
        stream = f"room/{conversation.room.id}"

        def body(message_id: str) -> Body:
            key = f"{request.kind}:{message_id}"
            return ContextAdd(key=key, content_type="text", content=text, tags=tags)

        return conversation, Request(
            actor=actor,
            method="thread.post",
            body=body,
            scope=conversation.id,
            key=request.idempotency_key,
            ref=request.in_reply_to,
            place=lambda id: (stream, MESSAGE_ID_PREFIX + id),
            is_same=lambda record: record.ref == request.in_reply_to,
            fork=conversation.fork,
        )

    async def position(self, thread_id: str, actor: Actor, seq: int) -> tuple[str, int, str]:
        """The conversation's id, its newest `seq`, and the message at `seq`."""
        conversation = await self.conversation(thread_id, actor)
        page = await self.page(conversation, actor.principal, max(0, seq - 1), 1)
        at = next((each.record.id for each in page.found if each.record.seq == seq), "")
        return conversation.id, self._latest(conversation).seq, at

    async def _attention(self, actor: Actor) -> Attention:
        state: Attention = await self.engine.state(
            attention_stream(actor.workspace, actor.principal)
        )
        return state

    def _latest(self, conversation: SessionThread) -> StreamPosition:
        opened = self.engine.streams.get(f"room/{conversation.room.id}")
        if opened is None:
            raise Refused(Reason.UNAVAILABLE, "The session is being loaded; try again")
        return opened.base


def checked_tags(kind: MessageKind, metadata: dict[str, Any]) -> tuple[str, ...]:
    """The tags that carry a message's kind and metadata in a session."""
    if kind is MessageKind.SYSTEM:
        raise Refused(Reason.FORBIDDEN, "Only the server posts messages of kind system")
    if kind is MessageKind.EVENT and not is_event_type(metadata.get("event_type")):
        raise event_type_refusal()
    tags = tags_of(kind, metadata)
    if max(map(len, tags)) > MAX_TAG_CHARS:
        detail = f"In a session, metadata may have at most {MAX_TAG_CHARS} characters"
        raise Refused(Reason.TOO_LARGE, detail)
    return tags


def readable_metadata(message: SessionMessage) -> dict[str, Any]:
    """The metadata, unless a session's member wrote it deeper than readers can decode."""
    if message.kind is MessageKind.SYSTEM or not is_too_deep(message.metadata):
        return message.metadata
    return {name: message.metadata[name] for name in ("event_type",) if name in message.metadata}


def own_rules_refusal() -> Refused:
    """A session's status and members follow its own rules."""
    return Refused(Reason.WRONG_STATE, OWN_RULES_DETAIL)
