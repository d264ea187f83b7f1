"""Posting messages: chat, events, and notices of the server itself."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.room.threads.message_tags import is_event_type
from accord.core.room.threads.state import (
    SCHEMA_VERSION,
    Addressed,
    MessageKind,
    Thread,
    ThreadStatus,
)
from accord.core.room.threads.thread_findings import (
    FindingEvent,
    after_event,
    ensure_room_for_finding,
    event_type_of,
)
from accord.core.room.threads.thread_messages import (
    ThreadMessage,
    as_context_item,
    author_fields,
    author_of,
    counted,
    is_same_metadata,
    text_of,
)

# `metadata.to` names the participants that a message is for.
ADDRESSEES = "to"


class ThreadPost(Body, frozen=True, omit_defaults=True, gc=False):
    """Post a message; `in_reply_to` is the message's `ref`."""

    type = "thread.post"
    needs = Permission.MEMBER

    kind: MessageKind
    text: str
    metadata: dict[str, Any] | None = None
    schema_version: int = SCHEMA_VERSION
    key: str = ""

    def is_retry_of(self, recorded: Body) -> bool:  # noqa: ARG002 - the caller compares all fields
        """Whether the key is the same; `is_same_post` compares the content."""
        return True


class MessagePosted(ThreadMessage, frozen=True, kw_only=True, gc=False):
    """A message was posted."""

    name = "thread.posted"

    # The thread's status at that moment, which a retry is told again.
    thread_status: ThreadStatus = ThreadStatus.ACTIVE


def post(thread: Thread, command: Command, body: ThreadPost) -> Iterable[EventOrEffect]:
    """Check what the types cannot express, and store the message."""
    ensure_may_post(thread, command, body)
    metadata = body.metadata or {}
    ensure_addressees(thread.participants, metadata)
    tag = ""
    if body.kind is MessageKind.EVENT:
        tag = f"event:{checked_event_type(thread, metadata)}"
    return (
        MessagePosted(
            said=as_context_item(command.message.id, body.kind, body.text, tag),
            ref=command.message.ref,
            kind=body.kind,
            metadata=body.metadata,
            schema_version=body.schema_version,
            key=body.key,
            thread_status=thread.status,
            **author_fields(command.actor),
        ),
    )


def ensure_may_post(thread: Thread, command: Command, body: ThreadPost) -> None:
    """OPEN-124: `system` is the server's; a closed thread takes nothing (OPEN-120)."""
    if body.kind is MessageKind.SYSTEM and command.actor.kind is not Kind.SYSTEM:
        raise Refused(Reason.FORBIDDEN, "Only the server posts messages of kind system")
    if not thread.created_by or thread.status is ThreadStatus.CLOSED:
        detail = f"The thread {thread.id} is closed; an orchestrator or operator can reopen it"
        raise Refused(Reason.WRONG_STATE, detail)


def ensure_addressees(participants: Iterable[str], metadata: dict[str, Any]) -> None:
    """A message is addressed to participants only."""
    named = metadata.get(ADDRESSEES)
    if named is None:
        return
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise Refused(Reason.MALFORMED, "metadata.to must be a list of agent ids")
    strangers = sorted({*named} - {*participants})
    if strangers:
        detail = f"metadata.to names agents that are not in this thread: {', '.join(strangers)}"
        raise Refused(Reason.MALFORMED, detail, {"unknown_participants": strangers})


def addressees_of(event: ThreadMessage) -> tuple[str, ...]:
    """Whom a message addresses."""
    return tuple((event.metadata or {}).get(ADDRESSEES) or ())


def event_type_refusal() -> Refused:
    detail = "An event needs metadata.event_type in lower snake case, such as fix_pushed"
    return Refused(Reason.MALFORMED, detail)


def checked_event_type(thread: Thread, metadata: dict[str, Any]) -> str:
    """The event type in lower snake case; types outside the registry are stored too."""
    name = event_type_of(metadata)
    if not is_event_type(name):
        raise event_type_refusal()
    ensure_room_for_finding(thread.findings, metadata)
    return name


def is_same_post(event: ThreadMessage, body: ThreadPost, in_reply_to: str | None) -> bool:
    """Whether this repeats the recorded message (OPEN-116)."""
    recorded = (event.kind, text_of(event), event.schema_version, event.ref)
    asked = (body.kind, body.text, body.schema_version, in_reply_to)
    return recorded == asked and is_same_metadata(event.metadata, body.metadata)


def on_posted(thread: Thread, event: MessagePosted, record: Record) -> Thread:
    """Count the message; an event may also open or close findings."""
    changed = replace(
        thread, **counted(thread, record), addressed=addressed_by(thread, event, record)
    )
    if event.kind is not MessageKind.EVENT:
        return changed
    about = (record.id, record.seq, author_of(record), event.role, event.ref, event.metadata or {})
    return after_event(changed, FindingEvent(*about))


def addressed_by(thread: Thread, event: ThreadMessage, record: Record) -> Mapping[str, Addressed]:
    """Who has to answer after this message: not its author any more, and those whom it names."""
    author = author_of(record)
    waiting = thread.addressed
    if author in waiting:
        waiting = {name: first for name, first in waiting.items() if name != author}
    for name in addressees_of(event):
        if name != author and name not in waiting:
            first = Addressed(record.id, record.seq, author, record.at)
            waiting = {**waiting, name: first}
    return waiting


DECIDE: Deciders = {ThreadPost: post}
EVOLVE: Evolvers = {MessagePosted: on_posted}
