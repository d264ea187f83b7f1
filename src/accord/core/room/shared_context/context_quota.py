"""The context quota: how large context items are, and whether more fit."""

import msgspec

from accord.core.kernel.limits import Limits, limit_exceeded
from accord.core.room.state import ContextItem, Room

# Estimated cost of an item beside its text, and of a tombstone beside its key.
ITEM_OVERHEAD_BYTES = 64


def utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def content_size(item: ContextItem) -> int:
    """Bytes of the text, or of the object as JSON."""
    if isinstance(item.content, str):
        return utf8_length(item.content)
    return 0 if item.content is None else len(msgspec.json.encode(item.content))


def item_size(item: ContextItem) -> int:
    """Bytes of all that the sender chose: content, key, tags, source, reference and readers."""
    size = (
        ITEM_OVERHEAD_BYTES + content_size(item) + utf8_length(item.key) + utf8_length(item.source)
    )
    if item.content_ref is not None:
        size += len(msgspec.json.encode(item.content_ref))
    if item.tags or item.visible_to:
        size += sum(map(utf8_length, (*item.tags, *(item.visible_to or ()))))
    return size


def is_merged_scope(room: Room, scope: str) -> bool:
    """Whether a scope belongs to a merged fork, whose items can no longer be removed."""
    return scope in room.forks and room.forks[scope].merged


def context_size(room: Room) -> tuple[int, int]:
    """Bytes of items and tombstones in open scopes; and in all scopes."""
    in_open = in_merged = 0
    for scope, shelf in room.shelf.items():
        size = sum(map(item_size, shelf.values()))
        size += sum(ITEM_OVERHEAD_BYTES + utf8_length(key) for key in room.removed.get(scope, ()))
        if is_merged_scope(room, scope):
            in_merged += size
        else:
            in_open += size
    return in_open, in_open + in_merged


def check_quota(before: Room, after: Room, limits: Limits, what: str) -> None:
    """Refuse a change that exceeds the quota; shrinking is always allowed."""
    open_after, total_after = context_size(after)
    if open_after <= limits.context and total_after <= limits.context_kept:
        return
    open_before, total_before = context_size(before)
    for name, limit, size_after, size_before in (
        ("context", limits.context, open_after, open_before),
        ("context_kept", limits.context_kept, total_after, total_before),
    ):
        if size_after > limit and size_after > size_before:
            detail = f"{what}: a session's context may have at most {limit} bytes"
            raise limit_exceeded(name, limit, detail)


def check_item_size(item: ContextItem, limits: Limits) -> None:
    """Refuse an item that is too large by itself."""
    size, limit = content_size(item), limits.context_item
    if size > limit:
        detail = f"{item.key} has {size} bytes; inline content may have at most {limit}"
        raise limit_exceeded("context_item", limit, detail)
