"""How much context a room holds, and whether there is room for more."""

from collections.abc import Iterator

import msgspec

from accord.core.kernel.limits import Limits, reached
from accord.core.room.state import Item, Room

# What an item costs beside its words, and what remembering that one was removed costs.
OVERHEAD = 64


def content_size(item: Item) -> int:
    """The bytes of its text, or of its object as written."""
    if isinstance(item.content, str):
        return len(item.content.encode())
    return 0 if item.content is None else len(msgspec.json.encode(item.content))


def weight(item: Item) -> int:
    """All that its sender chose: content, key, tags, source, reference and readers."""
    words = (item.key, item.source, *item.tags, *(item.visible_to or ()))
    ref = 0 if item.content_ref is None else len(msgspec.json.encode(item.content_ref))
    return OVERHEAD + content_size(item) + ref + sum(len(word.encode()) for word in words)


def is_over(room: Room, scope: str) -> bool:
    """Whether a shelf is that of a merged fork, which nobody can clear any more."""
    return scope in room.forks and room.forks[scope].merged


def weights(room: Room, *, merged: bool) -> Iterator[int]:
    """What lies on the shelves and what is remembered of what lay there."""
    for scope, shelf in room.shelf.items():
        if merged or not is_over(room, scope):
            yield from (weight(item) for item in shelf.values())
    for scope, gone in room.removed.items():
        if merged or not is_over(room, scope):
            yield from (OVERHEAD + len(key.encode()) for key in gone)


def check(before: Room, after: Room, limits: Limits, what: str) -> None:
    """Refuse what would make a room hold too much; to hold less is always fine."""
    for name, most, merged in (
        ("context", limits.context, False),
        ("context_kept", limits.context_kept, True),
    ):
        now = sum(weights(after, merged=merged))
        if now > most and now > sum(weights(before, merged=merged)):
            raise reached(name, most, f"{what}: a session's context may have {most} bytes")


def check_content(item: Item, limits: Limits) -> None:
    """Refuse one item that is too large by itself."""
    size, most = content_size(item), limits.context_item
    if size > most:
        detail = f"{item.key} has {size} bytes; inline content may have {most}"
        raise reached("context_item", most, detail)
