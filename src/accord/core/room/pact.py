"""The pact of the session's repository, as the room knows it: its tasks, and what waits for review.

The file in the repository rules (OPEN-137). What is told here is the server's copy of it: everybody
reads it, nobody here writes it, and merges go by it. A session shows one pact, and heeds every one
of a repository that it was ever bound to: Pact knows no override (UNI-16), so nothing frees what
was forked but what the pact itself says.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.authority import May
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Fact, Record
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import shelf
from accord.core.room.content import TASKS
from accord.core.room.fields import Id, Short
from accord.core.room.lanes import MOST_LANES, heeded
from accord.core.room.places import scope_of
from accord.core.room.shelf import REVIEW, ContextAdd, ContextRemove
from accord.core.room.state import Item, Lane, Pact, Room

TAGS = ("pact",)


class TasksMirror(Body, frozen=True, omit_defaults=True, gc=False):
    """The tasks of the repository, as its pact has them now."""

    type = "tasks.mirror"
    needs = May.SERVE
    while_paused = True

    repo: Id
    content: dict[str, Any]
    lanes: Annotated[tuple[Lane, ...], Meta(max_length=MOST_LANES)] = ()
    trouble: Short = ""


class TasksRelease(Body, frozen=True, omit_defaults=True, gc=False):
    """The session works in that repository no longer."""

    type = "tasks.release"
    needs = May.SERVE
    while_paused = True

    repo: Id


class TasksGuard(Body, frozen=True, omit_defaults=True, gc=False):
    """What merges go by, of a pact that the session does not show: it left it, or shows another."""

    type = "tasks.guard"
    needs = May.SERVE
    while_paused = True

    repo: Id
    lanes: Annotated[tuple[Lane, ...], Meta(max_length=MOST_LANES)] = ()
    trouble: Short = ""


class ReviewAsk(Body, frozen=True, omit_defaults=True, gc=False):
    """Somebody shows what was done; `checkpoint` is the event that says so."""

    type = "review.ask"
    needs = May.SERVE
    while_paused = True

    task: Id
    checkpoint: Id
    words: Short


class ReviewEnd(Body, frozen=True, omit_defaults=True, gc=False):
    """It waits for review no longer."""

    type = "review.end"
    needs = May.SERVE
    while_paused = True

    task: Id
    reason: Short


class TasksMirrored(Event, frozen=True, kw_only=True, gc=False):
    """Everybody hears the tasks as context of the server's."""

    name = "tasks.mirrored"

    said: ContextAdd
    repo: str
    lanes: tuple[Lane, ...] = ()
    trouble: str = ""


class TasksReleased(Event, frozen=True, kw_only=True, gc=False):
    """The tasks are the agents' own again."""

    name = "tasks.released"

    said: ContextRemove


class TasksGuarded(Event, frozen=True, kw_only=True, gc=False):
    """Merges go by it; nobody hears of it."""

    name = "tasks.guarded"

    repo: str
    lanes: tuple[Lane, ...] = ()
    trouble: str = ""


class ReviewAsked(Event, frozen=True, kw_only=True, gc=False):
    """The reviewer's room was told that something waits."""

    name = "review.asked"

    said: ContextAdd


class ReviewEnded(Event, frozen=True, kw_only=True, gc=False):
    """It was judged, or shown anew elsewhere."""

    name = "review.ended"

    said: ContextRemove


def review_key(task: str) -> str:
    """Where a review lies while it waits."""
    return f"{REVIEW}{task}"


# Deciding


def mirror(room: Room, ask: Ask, body: TasksMirror) -> Iterator[Fact]:
    """What is new; a session has one repository whose tasks it shows."""
    if not is_open(room):
        return
    if room.pact is not None and room.pact.repo != body.repo:
        detail = f"The session shows the tasks of {room.pact.repo}; unbind that first"
        raise Refused(Why.WRONG_STATE, detail)
    held = on_trunk(room).get(TASKS)
    now = pact_of(body)
    if held is not None and held.content == body.content and room.pact == now:
        return
    said = ContextAdd(key=TASKS, content_type="structured", content=body.content, tags=TAGS)
    yield TasksMirrored(said=said, repo=body.repo, lanes=body.lanes, trouble=body.trouble)


def release(room: Room, ask: Ask, body: TasksRelease) -> Iterator[Fact]:
    """What came of the pact goes with it."""
    if not is_open(room) or room.pact is None or room.pact.repo != body.repo:
        return
    reason = "The session works in that repository no longer"
    yield TasksReleased(said=ContextRemove(key=TASKS, reason=reason))
    for key in reviews(room):
        yield ReviewEnded(said=ContextRemove(key=key, reason=reason))


def guard(room: Room, ask: Ask, body: TasksGuard) -> Iterator[Fact]:
    """What is new."""
    before = room.pacts.get(body.repo)
    now = pact_of(body)
    if is_open(room) and heeded(before, now) != before:
        yield TasksGuarded(repo=body.repo, lanes=body.lanes, trouble=body.trouble)


def ask_review(room: Room, ask: Ask, body: ReviewAsk) -> Iterator[Fact]:
    """Told to everybody, since who reviews is no secret; once, as long as it lies there."""
    key = review_key(body.task)
    if is_open(room) and room.pact is not None and reviews(room).get(key) != body.checkpoint:
        yield ReviewAsked(
            said=ContextAdd(
                key=key,
                content_type="text",
                content=body.words,
                source=body.checkpoint,
                tags=(*TAGS, "review"),
            )
        )


def end_review(room: Room, ask: Ask, body: ReviewEnd) -> Iterator[Fact]:
    """What waits no longer is taken away."""
    key = review_key(body.task)
    if is_open(room) and key in reviews(room):
        yield ReviewEnded(said=ContextRemove(key=key, reason=body.reason))


def is_open(room: Room) -> bool:
    """Whether anybody can still be told anything."""
    return room.exists and not room.ended


def on_trunk(room: Room) -> Mapping[str, Item]:
    """What lies there for everybody."""
    return room.shelf.get(scope_of(None), {})


def reviews(room: Room) -> dict[str, str]:
    """The reviews that were asked for here, each with its checkpoint."""
    return {
        key: item.source
        for key, item in on_trunk(room).items()
        if key.startswith(REVIEW) and item.author == SYSTEM
    }


# Folding


def on_mirrored(room: Room, event: TasksMirrored, record: Record) -> Room:
    """The same wherever the conversation goes on."""
    item = shelf.laid(event.said, SYSTEM, record)
    now = pact_of(event)
    room = replace(heeding(room, now), pact=now)
    for scope in scopes(room):
        room = shelf.put(room, scope, item)
    return room


def pact_of(told: TasksMirror | TasksGuard | TasksMirrored | TasksGuarded) -> Pact:
    """The pact that it tells of."""
    return Pact(told.repo, told.lanes, told.trouble)


def heeding(room: Room, now: Pact) -> Room:
    """The room, whose merges go by this from now on."""
    return replace(room, pacts={**room.pacts, now.repo: heeded(room.pacts.get(now.repo), now)})


def on_guarded(room: Room, event: TasksGuarded, record: Record) -> Room:
    """Heeded, not shown."""
    return heeding(room, pact_of(event))


def on_released(room: Room, event: TasksReleased, record: Record) -> Room:
    """Nothing of it is left to see; merges go by it all the same."""
    for scope in scopes(room):
        room = shelf.drop(room, scope, TASKS, record.version)
    return replace(room, pact=None)


def on_asked(room: Room, event: ReviewAsked, record: Record) -> Room:
    """It lies there until it is judged."""
    return shelf.put(room, scope_of(None), shelf.laid(event.said, SYSTEM, record))


def on_ended(room: Room, event: ReviewEnded, record: Record) -> Room:
    """Gone, also where a fork took it along."""
    for scope in scopes(room):
        held = room.shelf.get(scope, {}).get(event.said.key)
        if held is not None and held.author == SYSTEM:
            room = shelf.drop(room, scope, held.key, record.version)
    return room


def scopes(room: Room) -> list[str]:
    """The trunk's shelf and those of the forks that are open."""
    return [scope_of(None), *(fork.id for fork in room.forks.values() if not fork.merged)]


DECIDE: Deciders = {
    TasksMirror: mirror,
    TasksRelease: release,
    TasksGuard: guard,
    ReviewAsk: ask_review,
    ReviewEnd: end_review,
}
EVOLVE: Evolvers = {
    TasksMirrored: on_mirrored,
    TasksReleased: on_released,
    TasksGuarded: on_guarded,
    ReviewAsked: on_asked,
    ReviewEnded: on_ended,
}
