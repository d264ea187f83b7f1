"""The tasks and pending reviews of the repository's pact, mirrored into the session.

The file in the repository is authoritative (OPEN-137); the session holds a read-only copy that
merges must respect. A session shows one pact, and respects those of all repositories that it was
ever bound to: Pact has no override (UNI-16), so only the pact itself can release forked work.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission
from accord.core.room.field_types import Id, ShortText
from accord.core.room.forking.fork_state import PactFeature, PactSummary
from accord.core.room.forking.pact_merge_rule import MAX_FEATURES, retain_unmerged_features
from accord.core.room.shared_context import context_items
from accord.core.room.shared_context.context_items import REVIEW_PREFIX, ContextAdd, ContextRemove
from accord.core.room.shared_context.item_content import TASKS_KEY
from accord.core.room.state import ContextItem, Room
from accord.core.room.visibility import scope_of

PACT_TAGS = ("pact",)


class TasksMirror(Body, frozen=True, omit_defaults=True, gc=False):
    """The tasks in the repository's pact as they are now."""

    type = "tasks.mirror"
    needs = Permission.SERVER_ONLY
    while_paused = True

    repo: Id
    content: dict[str, Any]
    lanes: Annotated[tuple[PactFeature, ...], Meta(max_length=MAX_FEATURES)] = ()
    trouble: ShortText = ""


class TasksRelease(Body, frozen=True, omit_defaults=True, gc=False):
    """The session is no longer bound to that repository."""

    type = "tasks.release"
    needs = Permission.SERVER_ONLY
    while_paused = True

    repo: Id


class TasksGuard(Body, frozen=True, omit_defaults=True, gc=False):
    """A pact that merges must respect although the session does not show its tasks."""

    type = "tasks.guard"
    needs = Permission.SERVER_ONLY
    while_paused = True

    repo: Id
    lanes: Annotated[tuple[PactFeature, ...], Meta(max_length=MAX_FEATURES)] = ()
    trouble: ShortText = ""


class ReviewAsk(Body, frozen=True, omit_defaults=True, gc=False):
    """A task is ready for review; `checkpoint` is the pact's event that says so."""

    type = "review.ask"
    needs = Permission.SERVER_ONLY
    while_paused = True

    task: Id
    checkpoint: Id
    words: ShortText


class ReviewEnd(Body, frozen=True, omit_defaults=True, gc=False):
    """A task no longer waits for review."""

    type = "review.end"
    needs = Permission.SERVER_ONLY
    while_paused = True

    task: Id
    reason: ShortText


class TasksMirrored(Event, frozen=True, kw_only=True, gc=False):
    """The tasks changed; everybody receives them as a context item of the server."""

    name = "tasks.mirrored"

    said: ContextAdd
    repo: str
    lanes: tuple[PactFeature, ...] = ()
    trouble: str = ""


class TasksReleased(Event, frozen=True, kw_only=True, gc=False):
    """The tasks are no longer mirrored; agents may keep their own again."""

    name = "tasks.released"

    said: ContextRemove


class TasksGuarded(Event, frozen=True, kw_only=True, gc=False):
    """A pact that merges must respect changed; not sent to members."""

    name = "tasks.guarded"

    repo: str
    lanes: tuple[PactFeature, ...] = ()
    trouble: str = ""


class ReviewAsked(Event, frozen=True, kw_only=True, gc=False):
    """A review was requested in the reviewer's session."""

    name = "review.asked"

    said: ContextAdd


class ReviewEnded(Event, frozen=True, kw_only=True, gc=False):
    """A review ended, or moved to another session."""

    name = "review.ended"

    said: ContextRemove


def review_key(task: str) -> str:
    return f"{REVIEW_PREFIX}{task}"


# Deciding


def mirror_tasks(room: Room, command: Command, body: TasksMirror) -> Iterator[EventOrEffect]:
    """Mirror the tasks if they changed; a session shows the tasks of one repository."""
    if not is_open(room):
        return
    if room.pact is not None and room.pact.repo != body.repo:
        detail = (
            f"The session already shows the tasks of {room.pact.repo}; unbind that repository first"
        )
        raise Refused(Reason.WRONG_STATE, detail)
    existing, pact = trunk_items(room).get(TASKS_KEY), pact_of(body)
    if existing is not None and existing.content == body.content and room.pact == pact:
        return
    item = ContextAdd(
        key=TASKS_KEY, content_type="structured", content=body.content, tags=PACT_TAGS
    )
    yield TasksMirrored(said=item, repo=body.repo, lanes=body.lanes, trouble=body.trouble)


def release_tasks(room: Room, command: Command, body: TasksRelease) -> Iterator[EventOrEffect]:
    """Remove what was mirrored from a repository that the session left."""
    if not is_open(room) or room.pact is None or room.pact.repo != body.repo:
        return
    reason = "The session is no longer bound to that repository"
    yield TasksReleased(said=ContextRemove(key=TASKS_KEY, reason=reason))
    for key in pending_reviews(room):
        yield ReviewEnded(said=ContextRemove(key=key, reason=reason))


def guard_merges(room: Room, command: Command, body: TasksGuard) -> Iterator[EventOrEffect]:
    before = room.pacts.get(body.repo)
    if is_open(room) and retain_unmerged_features(before, pact_of(body)) != before:
        yield TasksGuarded(repo=body.repo, lanes=body.lanes, trouble=body.trouble)


def ask_review(room: Room, command: Command, body: ReviewAsk) -> Iterator[EventOrEffect]:
    """Request a review once for each checkpoint; everybody may know who reviews."""
    key = review_key(body.task)
    if (
        is_open(room)
        and room.pact is not None
        and pending_reviews(room).get(key) != body.checkpoint
    ):
        yield ReviewAsked(
            said=ContextAdd(
                key=key,
                content_type="text",
                content=body.words,
                source=body.checkpoint,
                tags=(*PACT_TAGS, "review"),
            )
        )


def end_review(room: Room, command: Command, body: ReviewEnd) -> Iterator[EventOrEffect]:
    key = review_key(body.task)
    if is_open(room) and key in pending_reviews(room):
        yield ReviewEnded(said=ContextRemove(key=key, reason=body.reason))


def is_open(room: Room) -> bool:
    """Whether the session exists and has not ended."""
    return room.exists and not room.ended


def trunk_items(room: Room) -> Mapping[str, ContextItem]:
    """The context items of the trunk."""
    return room.shelf.get(scope_of(None), {})


def pending_reviews(room: Room) -> dict[str, str]:
    """The open review requests in this session, each with its checkpoint."""
    return {
        key: item.source
        for key, item in trunk_items(room).items()
        if key.startswith(REVIEW_PREFIX) and item.author == SYSTEM
    }


# Folding


def on_mirrored(room: Room, event: TasksMirrored, record: Record) -> Room:
    """Put the tasks on the trunk and into every open fork."""
    item = context_items.item_from_record(event.said, SYSTEM, record)
    pact = pact_of(event)
    room = replace(with_pact(room, pact), pact=pact)
    for scope in open_scopes(room):
        room = context_items.with_item(room, scope, item)
    return room


def pact_of(source: TasksMirror | TasksGuard | TasksMirrored | TasksGuarded) -> PactSummary:
    return PactSummary(source.repo, source.lanes, source.trouble)


def with_pact(room: Room, pact: PactSummary) -> Room:
    """The room with this pact among those that merges must respect."""
    retained = retain_unmerged_features(room.pacts.get(pact.repo), pact)
    return replace(room, pacts={**room.pacts, pact.repo: retained})


def on_guarded(room: Room, event: TasksGuarded, record: Record) -> Room:
    return with_pact(room, pact_of(event))


def on_released(room: Room, event: TasksReleased, record: Record) -> Room:
    """Remove the tasks; merges still respect the pact."""
    for scope in open_scopes(room):
        room = context_items.without_item(room, scope, TASKS_KEY, record.version)
    return replace(room, pact=None)


def on_asked(room: Room, event: ReviewAsked, record: Record) -> Room:
    return context_items.with_item(
        room, scope_of(None), context_items.item_from_record(event.said, SYSTEM, record)
    )


def on_ended(room: Room, event: ReviewEnded, record: Record) -> Room:
    """Remove the request, also from forks that copied it."""
    for scope in open_scopes(room):
        item = room.shelf.get(scope, {}).get(event.said.key)
        if item is not None and item.author == SYSTEM:
            room = context_items.without_item(room, scope, item.key, record.version)
    return room


def open_scopes(room: Room) -> list[str]:
    """The trunk and the open forks."""
    return [scope_of(None), *(fork.id for fork in room.forks.values() if not fork.merged)]


DECIDE: Deciders = {
    TasksMirror: mirror_tasks,
    TasksRelease: release_tasks,
    TasksGuard: guard_merges,
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
