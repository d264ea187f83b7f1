"""Rooms with shared context items."""

from hashlib import sha256
from typing import Any

from accord.core.kernel.role_permissions import Role
from accord.core.room import CONTEXT
from accord.core.room.shared_context.context_items import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.state import ContentRef, ContextItem, Room
from tests.helpers.room.scenario import (
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    CommandOutcome,
    Step,
    create_step,
    given,
    join_step,
)


def context_add(
    content: Any = "one\ntwo\n", *visible_to: str, key: str = "k", **fields: Any
) -> ContextAdd:
    """A `context.add`, of text or of structured content."""
    kind = "structured" if isinstance(content, dict) else "text"
    whole = {"content_type": kind, "content": content, "visible_to": visible_to or None} | fields
    return ContextAdd(key=key, **whole)


def context_update(key: str = "k", **fields: Any) -> ContextUpdate:
    """A `context.update` with new content, unless `fields` say otherwise."""
    return ContextUpdate(key=key, reason="Better", **(fields or {"new_content": "new"}))


def context_remove(key: str = "k") -> ContextRemove:
    """A `context.remove`."""
    return ContextRemove(key=key, reason="Old")


def make_content_ref(content: bytes = b"", **fields: Any) -> ContentRef:
    """A reference to this content."""
    whole: dict[str, Any] = {"hash": sha256(content).hexdigest(), "size_bytes": len(content)}
    whole |= fields
    return ContentRef(mime_type="text/plain", storage="inline", **whole)


def room_with_observer(*script: Step) -> Room:
    """A room where Alice, Bob and Carol take part, Dave observes, and Claude drives."""
    return given(
        create_step(),
        join_step(BOB, Role.DRIVER),
        join_step(CAROL, Role.NAVIGATOR),
        join_step(DAVE, Role.OBSERVER),
        join_step(CLAUDE, Role.DRIVER),
        *script,
    )


def context_item(room: Room, key: str = "k", fork: str = "") -> ContextItem:
    """The stored context item of a fork; the trunk is ""."""
    return room.shelf[fork][key]


def recipients_of(room: Room, facts: CommandOutcome) -> set[str]:
    """All members who receive any of these events or effects."""
    recipients: set[str] = set()
    for record in facts.records:
        to = CONTEXT.presence.audience(room, record)
        recipients |= room.members.keys() if to is None else to
    return recipients
