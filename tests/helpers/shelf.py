"""A room with a shelf, and what is put there."""

from hashlib import sha256
from typing import Any

from accord.core.kernel.authority import Role
from accord.core.room import CONTEXT
from accord.core.room.shelf import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.state import ContentRef, Item, Room
from tests.helpers.room import BOB, CAROL, CLAUDE, DAVE, Facts, Step, given, joined, opened


def adds(
    content: Any = "one\ntwo\n", *visible_to: str, key: str = "k", **fields: Any
) -> ContextAdd:
    kind = "structured" if isinstance(content, dict) else "text"
    whole = {"content_type": kind, "content": content, "visible_to": visible_to or None} | fields
    return ContextAdd(key=key, **whole)


def updates(key: str = "k", **fields: Any) -> ContextUpdate:
    return ContextUpdate(key=key, reason="Better", **(fields or {"new_content": "new"}))


def removes(key: str = "k") -> ContextRemove:
    return ContextRemove(key=key, reason="Old")


def ref(content: bytes = b"", **fields: Any) -> ContentRef:
    whole: dict[str, Any] = {"hash": sha256(content).hexdigest(), "size_bytes": len(content)}
    whole |= fields
    return ContentRef(mime_type="text/plain", storage="inline", **whole)


def some_room(*script: Step) -> Room:
    """Alice, Bob and Carol take part, Dave looks on, Claude drives."""
    return given(
        opened(),
        joined(BOB, Role.DRIVER),
        joined(CAROL, Role.NAVIGATOR),
        joined(DAVE, Role.OBSERVER),
        joined(CLAUDE, Role.DRIVER),
        *script,
    )


def item(room: Room, key: str = "k", fork: str = "") -> Item:
    return room.shelf[fork][key]


def heard(room: Room, facts: Facts) -> set[str]:
    """Everybody in the room who hears of any of it."""
    told: set[str] = set()
    for record in facts.records:
        to = CONTEXT.audience(room, record)
        told |= room.members.keys() if to is None else to
    return told
