"""The shelf: context that members share, with all or with some."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.authority import Kind, May
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Ask, Body, Event, Evolvers, Fact, Recall, Record, Seats
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import quota
from accord.core.room.content import LARGEST_ITEM, TASKS, Content, check_tasks, fits, patched
from accord.core.room.fields import Id, Short
from accord.core.room.graves import bury
from accord.core.room.places import scope_of
from accord.core.room.state import ContentRef, Item, Room, sees, without

Key = Annotated[str, Meta(min_length=1, max_length=512)]
Tags = Annotated[tuple[Short, ...], Meta(max_length=64)]
RESERVED = "session:"
REVIEW = "review:"


class ContextAdd(Body, frozen=True, omit_defaults=True, gc=False):
    """Put something on the shelf."""

    type = "context.add"
    needs = May.ADD_CONTEXT
    scoped = True

    key: Key
    content_type: Literal["text", "file", "reference", "structured", "image", "audio_transcript"]
    content: Content | None = None
    content_ref: ContentRef | None = None
    visible_to: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=256)] | None = None
    source: Short | None = None
    tags: Tags | None = None


class ContextUpdate(Body, frozen=True, omit_defaults=True, gc=False):
    """Change what is there: by a diff, by new content, or by a reference to it."""

    type = "context.update"
    needs = May.ADD_CONTEXT
    scoped = True

    key: Key
    reason: Short
    diff: Annotated[str, Meta(max_length=LARGEST_ITEM)] | None = None
    new_content: Content | None = None
    new_content_ref: ContentRef | None = None


class ContextRemove(Body, frozen=True, omit_defaults=True, gc=False):
    """Take it away."""

    type = "context.remove"
    needs = May.ADD_CONTEXT
    scoped = True

    key: Key
    reason: Short


class ContextAdded(Event, frozen=True, kw_only=True, gc=False):
    """Something is on the shelf."""

    name = "context.added"

    said: ContextAdd


class ContextUpdated(Event, frozen=True, kw_only=True, gc=False):
    """It changed."""

    name = "context.updated"

    said: ContextUpdate


class ContextRemoved(Event, frozen=True, kw_only=True, gc=False):
    """It is gone."""

    name = "context.removed"

    said: ContextRemove


# Deciding


def audience(item: Item) -> Seats | None:
    """Who hears of it."""
    return None if item.visible_to is None else item.visible_to | {item.author}


def find(room: Room, ask: Ask, key: str) -> Item:
    """The item, as far as it exists for the sender."""
    item = room.shelf.get(scope_of(ask.message.fork), {}).get(key)
    if item is None or not sees(item, ask.actor.seat):
        raise Refused(Why.UNKNOWN, f"There is no context {key} here")
    return item


def check_reserved(room: Room, ask: Ask, key: str) -> None:
    """`session:` keys are for agents and the server (OPEN-41)."""
    person = ask.actor.kind is not Kind.SYSTEM and room.members[ask.actor.seat].kind is Kind.HUMAN
    if key.startswith(RESERVED) and person:
        raise Refused(Why.FORBIDDEN, f"Keys that begin with {RESERVED} belong to agents")


def is_mirrored(room: Room, key: str) -> bool:
    """Whether the pact of the session's repository says what lies there (UNI-17)."""
    return room.pact is not None and (key == TASKS or key.startswith(REVIEW))


def check_mirrored(room: Room, key: str, held: Item | None) -> None:
    """What the server copies from the repository is read here, and changed there.

    A review that a member put there before the session came to the repository is the member's own.
    """
    own = key != TASKS and held is not None and held.author != SYSTEM
    if is_mirrored(room, key) and not own:
        detail = f"{key} shows the pact of the repository, and nobody writes it here"
        raise Refused(Why.FORBIDDEN, f"{detail}: use `accord pact` there")


def check_room_left(room: Room, ask: Ask, item: Item) -> None:
    """One item, and all of them together, have a bound."""
    quota.check_content(item, ask.house.limits)
    after = put(room, scope_of(ask.message.fork), item)
    quota.check(room, after, ask.house.limits, "The context is full")


def add(room: Room, ask: Ask, body: ContextAdd) -> Iterator[Fact]:
    """New, or again by its author."""
    held = room.shelf.get(scope_of(ask.message.fork), {}).get(body.key)
    check_mirrored(room, body.key, held)
    check_reserved(room, ask, body.key)
    check_content(body)
    if held is not None and held.author != ask.actor.seat:
        whose = f"{held.author}'s; update it, or" if sees(held, ask.actor.seat) else "taken;"
        raise Refused(Why.WRONG_STATE, f"{body.key} is {whose} choose another key")
    item = item_of(body, ask.actor.seat)
    check_room_left(room, ask, item)
    yield ContextAdded(said=body, to=audience(item))


def check_content(body: ContextAdd) -> None:
    """Content, a reference, or both if they agree."""
    content, ref = body.content, body.content_ref
    if content is None and ref is None:
        raise Refused(Why.MALFORMED, "Give content or content_ref")
    if body.key == TASKS:
        check_tasks(body.content_type, content)
    if content is not None and ref is not None and not fits(content, ref):
        raise Refused(Why.MALFORMED, "content_ref.hash is not the hash of content")


def item_of(body: ContextAdd, author: str) -> Item:
    """A new item as the room keeps it."""
    named = None if body.visible_to is None else frozenset(body.visible_to)
    return Item(
        key=body.key,
        content_type=body.content_type,
        content=body.content,
        content_ref=body.content_ref,
        visible_to=named,
        author=author,
        source=body.source or "",
        tags=body.tags or (),
    )


def update(room: Room, ask: Ask, body: ContextUpdate) -> Iterator[Fact]:
    """A change of what the sender can see, told to those who can."""
    item = find(room, ask, body.key)
    check_mirrored(room, body.key, item)
    check_reserved(room, ask, body.key)
    now = updated(item, body)
    if body.key == TASKS:
        check_tasks(now.content_type, now.content)
    check_room_left(room, ask, now)
    yield ContextUpdated(said=body, to=audience(item))


def updated(item: Item, body: ContextUpdate) -> Item:
    """The item after the change; refuses a change that does not fit."""
    ways = (body.diff, body.new_content, body.new_content_ref)
    if sum(way is not None for way in ways) != 1:
        raise Refused(Why.MALFORMED, "Give exactly one of diff, new_content, new_content_ref")
    if body.diff is not None:
        return replace(item, content=patched(item, body.diff), content_ref=None)
    return replace(item, content=body.new_content, content_ref=body.new_content_ref)


def remove(room: Room, ask: Ask, body: ContextRemove) -> Iterator[Fact]:
    """Away, told to those who could see it."""
    item = find(room, ask, body.key)
    check_mirrored(room, body.key, item)
    check_reserved(room, ask, body.key)
    yield ContextRemoved(said=body, to=audience(item))


# Folding


def put(room: Room, scope: str, item: Item) -> Room:
    """The room with this item on a shelf."""
    shelf = {**room.shelf.get(scope, {}), item.key: item}
    return replace(room, shelf={**room.shelf, scope: shelf})


def drop(room: Room, scope: str, key: str, version: int) -> Room:
    """The room without it; that it was removed is remembered for merges."""
    before = room.shelf.get(scope, {})
    announced = before[key].announced if key in before else ""
    room = replace(room, shelf={**room.shelf, scope: without(before, key)})
    return bury(room, scope, {key: announced}, version)


def laid(said: ContextAdd, author: str, record: Record) -> Item:
    """The item that a record put there."""
    return replace(item_of(said, author), changed=record.version, announced=record.id)


def on_added(room: Room, event: ContextAdded, record: Record) -> Room:
    """One more item, or its author's new version of it."""
    return put(room, scope_of(record.fork), laid(event.said, record.actor, record))


def on_updated(room: Room, event: ContextUpdated, record: Record) -> Room:
    """The item after the change, if it fits; what a log of another version says may not."""
    scope = scope_of(record.fork)
    item = room.shelf.get(scope, {}).get(event.said.key)
    if item is None:
        return room
    with suppress(Refused):
        room = put(room, scope, replace(updated(item, event.said), changed=record.version))
    return room


def on_removed(room: Room, event: ContextRemoved, record: Record) -> Room:
    """Gone."""
    return drop(room, scope_of(record.fork), event.said.key, record.version)


def lying(room: Room, seat: str) -> Iterator[Recall]:
    """What lies on the trunk's shelf for somebody who comes in."""
    for item in room.shelf.get(scope_of(None), {}).values():
        if sees(item, seat):
            yield Recall(item.announced, item.author, said_of(item), late=True)


def said_of(item: Item) -> ContextAdd:
    """The item as it is now, said anew."""
    named = None if item.visible_to is None else tuple(sorted(item.visible_to))
    return ContextAdd(
        key=item.key,
        content_type=item.content_type,  # type: ignore[arg-type]  # as it was added
        content=item.content,
        content_ref=item.content_ref,
        visible_to=named,
        source=item.source or None,
        tags=item.tags or None,
    )


EVOLVE: Evolvers = {
    ContextAdded: on_added,
    ContextUpdated: on_updated,
    ContextRemoved: on_removed,
}
