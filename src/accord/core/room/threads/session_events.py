"""What the events in a session leave open there, by the rules of threads.

An event is a context item with the key `event:…` (UNI-8). Roles are those in the session at that
moment. A later prompt or finding ends a resolution.
"""

from functools import wraps

from msgspec.structs import replace

from accord.core.kernel.context import Evolver
from accord.core.kernel.records import Event, Record
from accord.core.kernel.role_permissions import ThreadRole, thread_role_of
from accord.core.room.discussion import Discussion
from accord.core.room.shared_context.context_items import ContextAdd, ContextAdded
from accord.core.room.state import Room
from accord.core.room.threads.message_tags import metadata_in
from accord.core.room.threads.state import MessageKind
from accord.core.room.threads.thread_findings import (
    MAX_OPEN_FINDINGS,
    REPORTED,
    RESOLVED,
    FindingEvent,
    after_event,
    event_type_of,
)
from accord.core.room.visibility import scope_of

KEY_PREFIX = f"{MessageKind.EVENT}:"
NOTHING_OPEN = Discussion()


def discussion_in(room: Room, fork: str | None) -> Discussion:
    """What is open in a fork, or on the trunk."""
    return room.discussions.get(scope_of(fork), NOTHING_OPEN)


def event_in(room: Room, said: ContextAdd, record: Record) -> FindingEvent | None:
    """The event that a context item carries; None if it is another one, or from no member."""
    author = room.members.get(record.actor)
    if author is None or not (said.key.startswith(KEY_PREFIX) and isinstance(said.content, str)):
        return None
    metadata = metadata_in(said.tags or ())
    if not event_type_of(metadata):
        return None
    role = thread_role_of(author.kind, author.roles, author.capabilities)
    return FindingEvent(record.id, record.seq, author.id, role, record.ref, metadata)


def noting_events(evolver: Evolver) -> Evolver:
    """The evolver of added items, which also notes what an event leaves open."""

    @wraps(evolver)
    def evolve(room: Room, event: ContextAdded, record: Record) -> Room:
        after: Room = evolver(room, event, record)
        said = event_in(room, event.said, record)
        return after if said is None else with_event(after, record.fork, said)

    return evolve


def with_event(room: Room, fork: str | None, event: FindingEvent) -> Room:
    before, type = discussion_in(room, fork), event_type_of(event.metadata)
    if type == REPORTED and len(before.findings) >= MAX_OPEN_FINDINGS:
        return room
    after = after_event(before, event)
    if type == RESOLVED and event.role is ThreadRole.OPERATOR:
        waits = room.paused_at is not None or any(g.fork == fork for g in room.gates.values())
        after = replace(after, resolved=not waits)
    elif type == REPORTED:
        after = replace(after, resolved=False)
    return room if after == before else _with_discussion(room, fork, after)


def reopening(evolver: Evolver) -> Evolver:
    """The evolver of prompts, after which a conversation is not resolved."""

    @wraps(evolver)
    def evolve(room: Room, event: Event, record: Record) -> Room:
        after: Room = evolver(room, event, record)
        discussion = discussion_in(after, record.fork)
        if not discussion.resolved:
            return after
        return _with_discussion(after, record.fork, replace(discussion, resolved=False))

    return evolve


def _with_discussion(room: Room, fork: str | None, discussion: Discussion) -> Room:
    return replace(room, discussions={**room.discussions, scope_of(fork): discussion})
