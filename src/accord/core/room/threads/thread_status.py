"""The status of a thread: which changes exist, and who may make them (OPEN-120)."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission, ThreadRole
from accord.core.room.threads.state import MessageKind, Thread, ThreadStatus
from accord.core.room.threads.thread_access import is_leading
from accord.core.room.threads.thread_messages import (
    ThreadMessage,
    as_context_item,
    author_fields,
    counted,
    is_same_metadata,
)

ACTIVE, BLOCKED = ThreadStatus.ACTIVE, ThreadStatus.BLOCKED
RESOLVED, CLOSED = ThreadStatus.RESOLVED, ThreadStatus.CLOSED

# What everyone in the thread may do, with the exceptions for workers below.
TRANSITIONS = frozenset(
    {
        (ACTIVE, BLOCKED),
        (BLOCKED, ACTIVE),
        (ACTIVE, RESOLVED),
        (BLOCKED, RESOLVED),
        (RESOLVED, ACTIVE),
        (RESOLVED, CLOSED),
    }
)
# What only operators and orchestrators may do, with a reason.
OVERRIDES = frozenset({(ACTIVE, CLOSED), (BLOCKED, CLOSED), (CLOSED, ACTIVE)})


class ThreadSetStatus(Body, frozen=True, omit_defaults=True, gc=False):
    """Change the status; `force` makes any change, for human operators only (UNI-16)."""

    type = "thread.set_status"
    needs = Permission.MEMBER

    status: ThreadStatus
    reason: str = ""
    force: bool = False
    metadata: dict[str, Any] | None = None
    key: str = ""

    def is_retry_of(self, recorded: Body) -> bool:  # noqa: ARG002 - the caller compares all fields
        """Whether the key is the same; `is_same_change` compares the content."""
        return True


class StatusChanged(ThreadMessage, frozen=True, kw_only=True, gc=False):
    """The status changed; a message of kind `system` that everyone in the thread reads."""

    name = "thread.status_changed"

    status: ThreadStatus
    previous: ThreadStatus
    reason: str = ""
    forced: bool = False


def set_status(thread: Thread, command: Command, body: ThreadSetStatus) -> Iterable[EventOrEffect]:
    """Change it if there is such a change and the actor may make it."""
    ensure_allowed(thread, command.actor, body)
    text = f"{command.actor.principal} set the thread from {thread.status} to {body.status}"
    reason = f": {body.reason}" if body.reason else ""
    return (
        StatusChanged(
            said=as_context_item(command.message.id, MessageKind.SYSTEM, f"{text}{reason}"),
            kind=MessageKind.SYSTEM,
            status=body.status,
            previous=thread.status,
            reason=body.reason,
            forced=body.force,
            metadata=body.metadata,
            key=body.key,
            **author_fields(command.actor),
        ),
    )


def ensure_allowed(thread: Thread, actor: Actor, body: ThreadSetStatus) -> None:
    """Refuse a change that does not exist, and one beyond the actor's role."""
    change = (thread.status, body.status)
    if thread.status is body.status:
        raise Refused(Reason.WRONG_STATE, f"The thread is {body.status} already")
    if body.force:
        ensure_operator(actor)
    elif change in OVERRIDES:
        if not is_leading(actor):
            raise no_authority(f"set a thread from {thread.status} to {body.status}")
    elif change not in TRANSITIONS:
        detail = f"A thread cannot go from {thread.status} to {body.status}"
        raise Refused(Reason.WRONG_STATE, detail)
    elif actor.thread_role is ThreadRole.WORKER:
        ensure_worker_may(thread, actor, body.status)
    if (body.force or change in OVERRIDES) and not body.reason:
        raise Refused(Reason.MALFORMED, "An override needs a reason")


def ensure_operator(actor: Actor) -> None:
    """UNI-16: forcing needs a human operator."""
    if actor.thread_role is not ThreadRole.OPERATOR:
        detail = "Only a human operator may use force"
        raise Refused(Reason.NO_AUTHORITY, detail)


def ensure_worker_may(thread: Thread, actor: Actor, status: ThreadStatus) -> None:
    """A worker ends only a block of its own, and closes only what is not disputed."""
    if thread.status is BLOCKED and thread.blocked_by != actor.principal:
        raise no_authority(f"end the block that {thread.blocked_by} set")
    if status is CLOSED and thread.is_disputed:
        raise no_authority("close a disputed thread: a finding or an escalation is open")


def no_authority(act: str) -> Refused:
    detail = f"Your role may not {act}; ask an orchestrator or operator"
    return Refused(Reason.NO_AUTHORITY, detail)


def is_same_change(event: StatusChanged, body: ThreadSetStatus) -> bool:
    """Whether this repeats the recorded change (OPEN-117)."""
    recorded = (event.status, event.reason, event.forced)
    asked = (body.status, body.reason, body.force)
    return recorded == asked and is_same_metadata(event.metadata, body.metadata)


def on_changed(thread: Thread, event: StatusChanged, record: Record) -> Thread:
    blocked_by = record.actor if event.status is BLOCKED else ""
    return replace(thread, status=event.status, blocked_by=blocked_by, **counted(thread, record))


DECIDE: Deciders = {ThreadSetStatus: set_status}
EVOLVE: Evolvers = {StatusChanged: on_changed}
