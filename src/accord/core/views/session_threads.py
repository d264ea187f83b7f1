"""A session, or a fork of one, as a thread (UNI-6 to UNI-8)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.records import Record
from accord.core.room.discussion import Discussion
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.state import Member, Room
from accord.core.room.threads.message_tags import CHAT_TAG, metadata_in, metadata_tags
from accord.core.room.threads.session_events import discussion_in
from accord.core.room.threads.state import MessageKind, ThreadStatus
from accord.core.views.sessions import can_read_fork, may_read

NOTICE_KEY = "notice:"
# Messages that ask nothing of their readers: presence, membership, and what agents say meanwhile.
BACKGROUND_TYPES = ("session.", "presence.", "participant.", "response.", "thinking.")


class SessionThread(NamedTuple):
    """The trunk of a session, or one of its forks."""

    room: Room
    fork: str | None = None

    @property
    def id(self) -> str:
        """The id of the session, or of the fork."""
        return self.fork or self.room.id

    @property
    def title(self) -> str:
        """The name of the session, or of the fork."""
        return self.room.name if self.fork is None else self.room.forks[self.fork].name

    @property
    def participants(self) -> tuple[str, ...]:
        """The members in it."""
        return tuple(sorted(self.room.members_in(self.fork)))

    @property
    def status(self) -> ThreadStatus:
        """Closed after its end, blocked while something waits, resolved if an operator said so."""
        room = self.room
        if room.ended or (self.fork is not None and room.forks[self.fork].merged):
            return ThreadStatus.CLOSED
        waits = any(gate.fork == self.fork for gate in room.gates.values())
        if waits or room.paused_at is not None:
            return ThreadStatus.BLOCKED
        return ThreadStatus.RESOLVED if self.discussion.resolved else ThreadStatus.ACTIVE

    @property
    def discussion(self) -> Discussion:
        """What its events left open."""
        return discussion_in(self.room, self.fork)

    def may_read(self, seat: str, record: Record) -> bool:
        """Whether a record belongs to this conversation and this member may see it."""
        return record.fork == self.fork and may_read(self.room, seat, record)


class SessionMessage(NamedTuple):
    """A record of a session as a message of a thread."""

    kind: MessageKind
    body: str
    metadata: dict[str, Any]


def is_readable(conversation: SessionThread, seat: str) -> bool:
    """Whether this member or former member may read the conversation."""
    return can_read_fork(conversation.room, conversation.fork, seat)


def is_background(record: Record) -> bool:
    """Whether a record asks nothing of its readers, so that none is woken for it."""
    return record.said is None or record.said.type.startswith(BACKGROUND_TYPES)


def notice_item(id: str, text: str, metadata: Mapping[str, Any]) -> ContextAdd:
    """A notice of the server to everyone in the session."""
    tags = ("notice", *metadata_tags(metadata))
    return ContextAdd(key=f"{NOTICE_KEY}{id}", content_type="text", content=text, tags=tags)


def as_message(record: Record, envelope: Mapping[str, Any]) -> SessionMessage:
    """Chat and events as they were posted; everything else as one line with its record."""
    said = record.said
    if isinstance(said, ContextAdd) and isinstance(said.content, str):
        tags = said.tags or ()
        metadata = metadata_in(tags)
        if record.sender == SYSTEM and said.key.startswith(NOTICE_KEY):
            return SessionMessage(MessageKind.SYSTEM, said.content, metadata)
        if said.key.startswith(f"{MessageKind.EVENT}:") and "event_type" in metadata:
            return SessionMessage(MessageKind.EVENT, said.content, metadata)
        if said.key.startswith(f"{MessageKind.CHAT}:") and CHAT_TAG in tags:
            return SessionMessage(MessageKind.CHAT, said.content, metadata)
    name = "" if said is None else said.type
    return SessionMessage(MessageKind.SYSTEM, f"{record.sender}: {name}", {"record": envelope})


def member_of(room: Room, name: str) -> Member | None:
    """A present or former member; None for the server."""
    return None if name == SYSTEM else room.members.get(name) or room.former.get(name)
