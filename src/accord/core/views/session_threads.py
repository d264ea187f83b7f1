"""A session, or a fork of one, as a thread (UNI-6 to UNI-8)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.records import Record
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.state import Member, Room
from accord.core.room.threads.state import MessageKind, ThreadStatus
from accord.core.room.threads.thread_posts import is_event_type
from accord.core.views.sessions import can_read_fork, may_read

CHAT_TAG = MessageKind.CHAT.value
EVENT_TAG = "event:"
METADATA_TAG = "metadata:"
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
        """Closed after its end, blocked while something waits, else active."""
        room = self.room
        if room.ended or (self.fork is not None and room.forks[self.fork].merged):
            return ThreadStatus.CLOSED
        waits = any(gate.fork == self.fork for gate in room.gates.values())
        return ThreadStatus.BLOCKED if waits or room.paused_at is not None else ThreadStatus.ACTIVE

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


def tags_of(kind: MessageKind, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The tags of a context item that carries a message with this metadata."""
    if kind is MessageKind.EVENT:
        others = {name: value for name, value in metadata.items() if name != "event_type"}
        return (f"{EVENT_TAG}{metadata['event_type']}", *metadata_tags(others))
    return (CHAT_TAG, *metadata_tags(metadata))


def metadata_tags(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    encoded = msgspec.json.encode(metadata, order="deterministic").decode()
    return (METADATA_TAG + encoded,) if metadata else ()


def metadata_in(tags: tuple[str, ...]) -> dict[str, Any]:
    """The metadata that these tags carry; tags that are not ours carry none."""
    found: dict[str, Any] = {}
    for tag in tags:
        if tag.startswith(METADATA_TAG):
            try:
                found |= msgspec.json.decode(tag.removeprefix(METADATA_TAG), type=dict[str, Any])
            except (msgspec.MsgspecError, RecursionError):
                continue
        elif is_event_type(name := tag.removeprefix(EVENT_TAG)) and name != tag:
            found["event_type"] = name
    return found


def member_of(room: Room, name: str) -> Member | None:
    """A present or former member; None for the server."""
    return None if name == SYSTEM else room.members.get(name) or room.former.get(name)
