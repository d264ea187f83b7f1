"""What every message of a thread has in common: its stored form, and how PVP clients see it."""

from typing import Any

from msgspec.json import Encoder

from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.records import Event, Record
from accord.core.kernel.role_permissions import Kind, ThreadRole
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.threads.state import SCHEMA_VERSION, MessageKind, Thread

TAGS = {kind: (kind.value,) for kind in MessageKind}
_encode = Encoder(order="deterministic").encode


class ThreadMessage(Event, frozen=True, kw_only=True, gc=False):
    """A message of a thread. `said` is its PVP form, a context item with its text (UNI-8).

    `in_reply_to` of MSG is `ref`. `role` is the author's, because it decides what an event closes.
    """

    said: ContextAdd
    kind: MessageKind = MessageKind.CHAT
    author_kind: Kind = Kind.AGENT
    role: ThreadRole = ThreadRole.WORKER
    session: str = ""  # the author's `session_id` claim
    verified: bool = True  # by a token; false where names are not checked (`--auth open`)
    schema_version: int = SCHEMA_VERSION
    metadata: dict[str, Any] | None = None
    key: str = ""  # the idempotency key


def author_fields(actor: Actor) -> dict[str, Any]:
    """What a message says about its author, from the credential alone."""
    return {
        "author_kind": actor.kind,
        "role": actor.thread_role,
        "session": actor.runtime,
        "verified": actor.credential is not None or actor.kind is Kind.SYSTEM,
    }


def as_context_item(message_id: str, kind: MessageKind, text: str, tag: str = "") -> ContextAdd:
    """The message as PVP clients see it."""
    tags = (tag,) if tag else TAGS[kind]
    return ContextAdd(key=f"{kind}:{message_id}", content_type="text", content=text, tags=tags)


def is_same_metadata(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """Whether both are the same JSON; Python also takes 1, 1.0 and true for equal."""
    return _encode(one) == _encode(other)


def text_of(event: ThreadMessage) -> str:
    return event.said.content if isinstance(event.said.content, str) else ""


def author_of(record: Record) -> str:
    """Who wrote a message; those of the server itself are from `system`."""
    return SYSTEM if record.sender == SYSTEM else record.actor


def counted(thread: Thread, record: Record) -> dict[str, Any]:
    """The fields that every message changes."""
    author = author_of(record)
    return {
        "last_seq": record.seq,
        "updated_at": record.at,
        "posted": {**thread.posted, author: thread.posted.get(author, 0) + 1},
    }
