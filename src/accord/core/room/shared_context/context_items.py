"""Context items: text and data that members share with all or with some."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.context import Command, EventOrEffect, Evolvers
from accord.core.kernel.effects import ReplayedMessage
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body, MemberIds
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.room.field_types import Id, ShortText
from accord.core.room.shared_context import context_quota
from accord.core.room.shared_context.item_content import (
    MAX_ITEM_BYTES,
    TASKS_KEY,
    Content,
    apply_diff,
    check_tasks,
    matches_ref,
)
from accord.core.room.shared_context.tombstones import record_removals
from accord.core.room.state import ContentRef, ContextItem, Room, can_see, without_keys
from accord.core.room.visibility import scope_of

ContextKey = Annotated[str, Meta(min_length=1, max_length=512)]
Tags = Annotated[tuple[ShortText, ...], Meta(max_length=64)]
RESERVED_PREFIX = "session:"
REVIEW_PREFIX = "review:"


class ContextAdd(Body, frozen=True, omit_defaults=True, gc=False):
    """Add a context item."""

    type = "context.add"
    needs = Permission.ADD_CONTEXT
    forkable = True

    key: ContextKey
    content_type: Literal["text", "file", "reference", "structured", "image", "audio_transcript"]
    content: Content | None = None
    content_ref: ContentRef | None = None
    visible_to: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=256)] | None = None
    source: ShortText | None = None
    tags: Tags | None = None


class ContextUpdate(Body, frozen=True, omit_defaults=True, gc=False):
    """Change an item by a diff, by new content, or by a reference to new content."""

    type = "context.update"
    needs = Permission.ADD_CONTEXT
    forkable = True

    key: ContextKey
    reason: ShortText
    diff: Annotated[str, Meta(max_length=MAX_ITEM_BYTES)] | None = None
    new_content: Content | None = None
    new_content_ref: ContentRef | None = None


class ContextRemove(Body, frozen=True, omit_defaults=True, gc=False):
    """Remove an item."""

    type = "context.remove"
    needs = Permission.ADD_CONTEXT
    forkable = True

    key: ContextKey
    reason: ShortText


class ContextAdded(Event, frozen=True, kw_only=True, gc=False):
    """A context item was added."""

    name = "context.added"

    said: ContextAdd


class ContextUpdated(Event, frozen=True, kw_only=True, gc=False):
    """A context item changed."""

    name = "context.updated"

    said: ContextUpdate


class ContextRemoved(Event, frozen=True, kw_only=True, gc=False):
    """A context item was removed."""

    name = "context.removed"

    said: ContextRemove


# Deciding


def item_audience(item: ContextItem) -> MemberIds | None:
    """Who may read it; None for everybody."""
    return None if item.visible_to is None else item.visible_to | {item.author}


def find_item(room: Room, command: Command, key: str) -> ContextItem:
    """The item with this key, if the sender may read it."""
    item = room.shelf.get(scope_of(command.message.fork), {}).get(key)
    if item is None or not can_see(item, command.actor.principal):
        raise Refused(Reason.NOT_FOUND, f"There is no context item {key} here")
    return item


def check_reserved(room: Room, command: Command, key: str) -> None:
    """Keys that begin with `session:` are for agents and the server (OPEN-41)."""
    person = (
        command.actor.kind is not Kind.SYSTEM
        and room.members[command.actor.principal].kind is Kind.HUMAN
    )
    if key.startswith(RESERVED_PREFIX) and person:
        detail = f"Keys that begin with {RESERVED_PREFIX} are for agents; choose another key"
        raise Refused(Reason.FORBIDDEN, detail)


def is_mirrored(room: Room, key: str) -> bool:
    """Whether the item is a copy of what the repository's pact says (UNI-17)."""
    return room.pact is not None and (key == TASKS_KEY or key.startswith(REVIEW_PREFIX))


def check_mirrored(room: Room, key: str, existing: ContextItem | None) -> None:
    """Refuse changes to items that the server mirrors from the repository.

    A `review:` item that a member added before the session was bound remains the member's.
    """
    by_member = key != TASKS_KEY and existing is not None and existing.author != SYSTEM
    if is_mirrored(room, key) and not by_member:
        detail = f"{key} is a read-only copy of the repository's pact"
        raise Refused(Reason.FORBIDDEN, f"{detail}; change it there with `accord pact`")


def check_space_left(room: Room, command: Command, item: ContextItem) -> None:
    """Check the size of the item, and of the whole context with it."""
    context_quota.check_item_size(item, command.policy.limits)
    after = with_item(room, scope_of(command.message.fork), item)
    context_quota.check_quota(room, after, command.policy.limits, "The context is full")


def add_item(room: Room, command: Command, body: ContextAdd) -> Iterator[EventOrEffect]:
    """Add an item, or replace one's own."""
    existing = room.shelf.get(scope_of(command.message.fork), {}).get(body.key)
    check_mirrored(room, body.key, existing)
    check_reserved(room, command, body.key)
    check_content(body)
    if existing is not None and existing.author != command.actor.principal:
        visible = can_see(existing, command.actor.principal)
        taken = f"taken by {existing.author}; update it or" if visible else "already taken;"
        raise Refused(Reason.WRONG_STATE, f"{body.key} is {taken} choose another key")
    item = item_of(body, command.actor.principal)
    check_space_left(room, command, item)
    yield ContextAdded(said=body, to=item_audience(item))


def check_content(body: ContextAdd) -> None:
    """Require content or a reference; if both are given, they must agree."""
    content, ref = body.content, body.content_ref
    if content is None and ref is None:
        raise Refused(Reason.MALFORMED, "Give content or content_ref")
    if body.key == TASKS_KEY:
        check_tasks(body.content_type, content)
    if content is not None and ref is not None and not matches_ref(content, ref):
        raise Refused(Reason.MALFORMED, "content_ref.hash is not the hash of content")


def item_of(body: ContextAdd, author: str) -> ContextItem:
    readers = None if body.visible_to is None else frozenset(body.visible_to)
    return ContextItem(
        key=body.key,
        content_type=body.content_type,
        content=body.content,
        content_ref=body.content_ref,
        visible_to=readers,
        author=author,
        source=body.source or "",
        tags=body.tags or (),
    )


def update_item(room: Room, command: Command, body: ContextUpdate) -> Iterator[EventOrEffect]:
    """Change an item that the sender can read; sent to all who can."""
    item = find_item(room, command, body.key)
    check_mirrored(room, body.key, item)
    check_reserved(room, command, body.key)
    updated = apply_update(item, body)
    if body.key == TASKS_KEY:
        check_tasks(updated.content_type, updated.content)
    check_space_left(room, command, updated)
    yield ContextUpdated(said=body, to=item_audience(item))


def apply_update(item: ContextItem, body: ContextUpdate) -> ContextItem:
    """The changed item; refuses a change that does not apply."""
    changes = (body.diff, body.new_content, body.new_content_ref)
    if sum(change is not None for change in changes) != 1:
        raise Refused(Reason.MALFORMED, "Give exactly one of diff, new_content, new_content_ref")
    if body.diff is not None:
        return replace(item, content=apply_diff(item, body.diff), content_ref=None)
    return replace(item, content=body.new_content, content_ref=body.new_content_ref)


def remove_item(room: Room, command: Command, body: ContextRemove) -> Iterator[EventOrEffect]:
    item = find_item(room, command, body.key)
    check_mirrored(room, body.key, item)
    check_reserved(room, command, body.key)
    yield ContextRemoved(said=body, to=item_audience(item))


# Folding


def with_item(room: Room, scope: str, item: ContextItem) -> Room:
    shelf = {**room.shelf.get(scope, {}), item.key: item}
    return replace(room, shelf={**room.shelf, scope: shelf})


def without_item(room: Room, scope: str, key: str, version: int) -> Room:
    """The room without the item; merges need to know that it was removed."""
    before = room.shelf.get(scope, {})
    announced = before[key].announced if key in before else ""
    room = replace(room, shelf={**room.shelf, scope: without_keys(before, key)})
    return record_removals(room, scope, {key: announced}, version)


def item_from_record(body: ContextAdd, author: str, record: Record) -> ContextItem:
    return replace(item_of(body, author), changed=record.version, announced=record.id)


def on_added(room: Room, event: ContextAdded, record: Record) -> Room:
    return with_item(
        room, scope_of(record.fork), item_from_record(event.said, record.actor, record)
    )


def on_updated(room: Room, event: ContextUpdated, record: Record) -> Room:
    """Apply the change; ignore one from an incompatible version that does not apply."""
    scope = scope_of(record.fork)
    item = room.shelf.get(scope, {}).get(event.said.key)
    if item is None:
        return room
    with suppress(Refused):
        room = with_item(
            room, scope, replace(apply_update(item, event.said), changed=record.version)
        )
    return room


def on_removed(room: Room, event: ContextRemoved, record: Record) -> Room:
    return without_item(room, scope_of(record.fork), event.said.key, record.version)


def items_for_joiner(room: Room, member_id: str) -> Iterator[ReplayedMessage]:
    """The items on the trunk that a member who joins may read."""
    for item in room.shelf.get(scope_of(None), {}).values():
        if can_see(item, member_id):
            yield ReplayedMessage(
                item.announced, item.author, body_of_item(item), after_replay=True
            )


def body_of_item(item: ContextItem) -> ContextAdd:
    """The message that would add the item as it is now."""
    readers = None if item.visible_to is None else tuple(sorted(item.visible_to))
    return ContextAdd(
        key=item.key,
        content_type=item.content_type,  # type: ignore[arg-type]  # as it was added
        content=item.content,
        content_ref=item.content_ref,
        visible_to=readers,
        source=item.source or None,
        tags=item.tags or None,
    )


EVOLVE: Evolvers = {
    ContextAdded: on_added,
    ContextUpdated: on_updated,
    ContextRemoved: on_removed,
}
