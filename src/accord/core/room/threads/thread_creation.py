"""Creating a thread, and adding participants to it."""

from collections.abc import Iterable

from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission
from accord.core.room.threads.state import MessageKind, Thread, ThreadStatus, ThreadType
from accord.core.room.threads.thread_messages import (
    ThreadMessage,
    as_context_item,
    author_fields,
    counted,
)

MAX_PARTICIPANTS = 256


class ThreadCreate(Body, frozen=True, omit_defaults=True, gc=False):
    """Create a thread."""

    type = "thread.create"
    needs = Permission.ENTER
    after_end = True

    workspace: str
    title: str
    thread_type: ThreadType
    participants: tuple[str, ...]


class ThreadAdd(Body, frozen=True, omit_defaults=True, gc=False):
    """Add participants."""

    type = "thread.add"
    needs = Permission.MEMBER

    participants: tuple[str, ...]
    key: str = ""

    def is_retry_of(self, recorded: Body) -> bool:  # noqa: ARG002 - the caller compares all fields
        """Whether the key is the same; `same_request` compares the content."""
        return True


class ThreadCreated(Event, frozen=True, kw_only=True, gc=False):
    """A thread was created; not a message, so its first message has `seq` 1."""

    name = "thread.created"

    workspace: str
    title: str
    type: ThreadType
    participants: tuple[str, ...]
    created_by: str


class ParticipantsAdded(ThreadMessage, frozen=True, kw_only=True, gc=False):
    """Participants were added."""

    name = "thread.participants_added"

    added: tuple[str, ...]


def create(thread: Thread, command: Command, body: ThreadCreate) -> Iterable[EventOrEffect]:
    """The same request again, with the same key, changes nothing."""
    if thread.exists:
        raise Refused(Reason.KEY_REUSED, f"There is already a thread {thread.id}")
    return (
        ThreadCreated(
            workspace=body.workspace,
            title=body.title,
            type=body.thread_type,
            participants=body.participants,
            created_by=command.actor.principal,
        ),
    )


def add(thread: Thread, command: Command, body: ThreadAdd) -> Iterable[EventOrEffect]:
    """Add those who are not in it yet; refused if there are none, or too many."""
    added = tuple(name for name in body.participants if name not in thread.participants)
    if not added:
        raise Refused(Reason.WRONG_STATE, "All of them are participants already")
    if thread.status is ThreadStatus.CLOSED:
        raise Refused(Reason.WRONG_STATE, "The thread is closed; set it to active first")
    if len(thread.participants) + len(added) > MAX_PARTICIPANTS:
        detail = f"A thread may have at most {MAX_PARTICIPANTS} participants"
        raise Refused(Reason.FULL, detail)
    text = f"{command.actor.principal} added {', '.join(added)}"
    return (
        ParticipantsAdded(
            said=as_context_item(command.message.id, MessageKind.SYSTEM, text),
            kind=MessageKind.SYSTEM,
            added=added,
            key=body.key,
            **author_fields(command.actor),
        ),
    )


def on_created(thread: Thread, event: ThreadCreated, record: Record) -> Thread:
    return replace(
        thread,
        workspace=event.workspace,
        title=event.title,
        type=event.type,
        participants=event.participants,
        created_by=event.created_by,
        created_at=record.at,
        updated_at=record.at,
    )


def on_added(thread: Thread, event: ParticipantsAdded, record: Record) -> Thread:
    participants = (*thread.participants, *event.added)
    return replace(thread, participants=participants, **counted(thread, record))


DECIDE: Deciders = {ThreadCreate: create, ThreadAdd: add}
EVOLVE: Evolvers = {ThreadCreated: on_created, ParticipantsAdded: on_added}
