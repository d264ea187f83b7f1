"""How much context a room holds, and whether there is room for more."""

import msgspec

from accord.core.kernel.limits import Limits, reached
from accord.core.room.state import Item, Room

# What an item costs beside its words, and what remembering that one was removed costs.
OVERHEAD = 64


def length(text: str) -> int:
    """In bytes."""
    return len(text) if text.isascii() else len(text.encode())


def content_size(item: Item) -> int:
    """The bytes of its text, or of its object as written."""
    if isinstance(item.content, str):
        return length(item.content)
    return 0 if item.content is None else len(msgspec.json.encode(item.content))


def weight(item: Item) -> int:
    """All that its sender chose: content, key, tags, source, reference and readers."""
    size = OVERHEAD + content_size(item) + length(item.key) + length(item.source)
    if item.content_ref is not None:
        size += len(msgspec.json.encode(item.content_ref))
    if item.tags or item.visible_to:
        size += sum(map(length, (*item.tags, *(item.visible_to or ()))))
    return size


def is_over(room: Room, scope: str) -> bool:
    """Whether a shelf is that of a merged fork, which nobody can clear any more."""
    return scope in room.forks and room.forks[scope].merged


def held(room: Room) -> tuple[int, int]:
    """What lies on open shelves and is remembered of them; and the same of all shelves."""
    living = over = 0
    for scope, shelf in room.shelf.items():
        size = sum(map(weight, shelf.values()))
        size += sum(OVERHEAD + length(key) for key in room.removed.get(scope, ()))
        if is_over(room, scope):
            over += size
        else:
            living += size
    return living, living + over


def check(before: Room, after: Room, limits: Limits, what: str) -> None:
    """Refuse what would make a room hold too much; to hold less is always fine."""
    living, all_of_it = held(after)
    if living <= limits.context and all_of_it <= limits.context_kept:
        return
    was_living, was_all = held(before)
    for name, most, now, was in (
        ("context", limits.context, living, was_living),
        ("context_kept", limits.context_kept, all_of_it, was_all),
    ):
        if now > most and now > was:
            raise reached(name, most, f"{what}: a session's context may have {most} bytes")


def check_content(item: Item, limits: Limits) -> None:
    """Refuse one item that is too large by itself."""
    size, most = content_size(item), limits.context_item
    if size > most:
        detail = f"{item.key} has {size} bytes; inline content may have {most}"
        raise reached("context_item", most, detail)
