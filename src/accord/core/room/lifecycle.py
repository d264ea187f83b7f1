"""A room's beginning, its rules and its end."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, May
from accord.core.kernel.log import Ask, Body, Deciders, Door, Event, Evolvers, Fact, Record
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import gates, grants, secrets, thinking, timeouts
from accord.core.room.fields import Short
from accord.core.room.participants import (
    Announced,
    ParticipantAnnounce,
    Transport,
    announcement,
    word,
)
from accord.core.room.pauses import repaused
from accord.core.room.roles import ADMIN
from accord.core.room.state import Member, Resolution, Room, SessionConfig

HTTP: Literal["http"] = "http"


class SessionCreate(Body, frozen=True, omit_defaults=True, gc=False):
    """Open a session."""

    type = "session.create"
    needs = May.ENTER

    config: SessionConfig
    name: Short | None = None


class SessionConfigUpdate(Body, frozen=True, omit_defaults=True, gc=False):
    """Change some of its rules."""

    type = "session.config_update"
    needs = May.CONFIGURE
    while_paused = True

    changes: dict[str, Any]
    reason: Short


class SessionEnd(Body, frozen=True, omit_defaults=True, gc=False):
    """Close it for good."""

    type = "session.end"
    needs = May.END
    while_paused = True

    reason: Short
    final_state: Literal["completed", "aborted", "timeout"]


class SessionCreated(Event, frozen=True, kw_only=True, gc=False):
    """A session began; its creator is its first admin (OPEN-6)."""

    name = "session.created"
    door = Door.IN

    said: SessionCreate
    creator: str
    kind: Kind
    workspace: str
    labels: frozenset[str] = frozenset()


class SessionConfigured(Event, frozen=True, kw_only=True, gc=False):
    """Its rules changed."""

    name = "session.configured"

    said: SessionConfigUpdate


class SessionEnded(Event, frozen=True, kw_only=True, gc=False):
    """It is over."""

    name = "session.ended"

    said: SessionEnd


def create(room: Room, ask: Ask, body: SessionCreate) -> Iterator[Fact]:
    """A new room; an id that was ever used is never used again (OPEN-5)."""
    if room.exists:
        raise Refused(Why.WRONG_STATE, f"The session id {room.id} is taken; choose another")
    check_config(room, body.config)
    actor = ask.actor
    yield SessionCreated(
        said=body,
        creator=actor.seat,
        kind=actor.kind,
        workspace=actor.workspace,
        labels=actor.grant.labels if actor.grant else frozenset(),
        ref=ask.message.id,
    )
    who = ParticipantAnnounce(
        id=actor.seat, name=actor.seat, kind=word(actor.kind), roles=(), transport=ways_in(actor)
    )
    said = announcement(who, actor.kind, ADMIN, frozenset())
    yield Announced(said=said, ref=ask.message.id)


def ways_in(actor: Actor) -> Transport:
    """How somebody speaks here, as the edge says: HTTP has no connection to be heard over."""
    return HTTP if actor.runtime == HTTP else "websocket"


def check_config(room: Room, config: SessionConfig) -> None:
    """Refuse timers that could not work and quorums that could never count."""
    beat, idle, away = (
        config.heartbeat_interval_seconds,
        config.idle_timeout_seconds,
        config.away_timeout_seconds,
    )
    if not beat < idle <= away:  # OPEN-33
        detail = "Timers must satisfy heartbeat_interval < idle_timeout <= away_timeout"
        raise Refused(Why.MALFORMED, f"{detail}; got {beat}, {idle}, {away}")
    gates.check_quorum(room, config.default_gate_quorum)


def configure(room: Room, ask: Ask, body: SessionConfigUpdate) -> Iterator[Fact]:
    """All of the changes or none (OPEN-55); only a person loosens what is gated."""
    after = merged(room.rules, body.changes)
    check_config(room, after)
    check_loosens(room, ask, after)
    yield SessionConfigured(said=body)


def check_loosens(room: Room, ask: Ask, after: SessionConfig) -> None:
    """An agent may gate more, never less: gates are there against agents."""
    before, member = room.rules, room.members[ask.actor.seat]
    gated = set(before.require_approval_for) <= set(after.require_approval_for)
    same = (before.default_gate_quorum, before.on_participant_timeout) == (
        after.default_gate_quorum,
        after.on_participant_timeout,
    )
    if member.kind is Kind.AGENT and not (gated and same):
        raise Refused(Why.FORBIDDEN, "Only a person can loosen what needs approval")


def merged(config: SessionConfig, changes: dict[str, Any]) -> SessionConfig:
    """The configuration with the changes; unknown keys and bad values are refused."""
    known = msgspec.to_builtins(config)
    if unknown := sorted(changes.keys() - known.keys()):
        raise Refused(Why.MALFORMED, f"Unknown configuration: {', '.join(unknown)}")
    try:
        return msgspec.convert(known | changes, SessionConfig)
    except msgspec.ValidationError as error:
        raise Refused(Why.MALFORMED, f"Bad configuration: {error}") from error


def end(room: Room, ask: Ask, body: SessionEnd) -> Iterator[Fact]:
    """Open gates are rejected and streams closed first, so nothing runs on (OPEN-27)."""
    for gate in room.gates.values():
        yield from timeouts.time_out(room, ask, gate, Resolution.REJECTED, timeouts.ENDED)
    yield from thinking.interrupted(room)
    yield from secrets.all_void(room, "The session has ended")
    yield SessionEnded(said=body)


def on_created(room: Room, event: SessionCreated, record: Record) -> Room:
    """An open room with one admin in it."""
    creator = Member(
        id=event.creator,
        name=event.creator,
        kind=event.kind,
        roles=ADMIN,
        labels=event.labels,
        since=record.at,
    ).with_verbs()
    return replace(
        room,
        name=event.said.name or "",
        workspace=event.workspace,
        config=event.said.config,
        created_at=record.at,
        created_by=event.creator,
        members={creator.id: creator},
    )


def on_configured(room: Room, event: SessionConfigured, record: Record) -> Room:
    """The new rules; they may end a pause. What a log of another version set may not fit here."""
    if room.config is None:
        return room
    with suppress(Refused):
        room = replace(room, config=merged(room.config, event.said.changes))
    return repaused(room, record.at)


def on_ended(room: Room, event: SessionEnded, record: Record) -> Room:
    """Nothing is open any more."""
    return replace(
        grants.over(room, "ended with the session", *room.tools),
        ended=event.said.final_state,
        gates={},
        streams={},
        interrupts={},
        halted={},
        merges={},
        secrets={},
        paused_at=None,
    )


def owner(room: Room) -> tuple[str, ...]:
    """The workspace and the creator of a session that is open; of others nothing."""
    return (room.workspace, room.created_by) if room.exists and not room.ended else ()


DECIDE: Deciders = {SessionCreate: create, SessionConfigUpdate: configure, SessionEnd: end}
EVOLVE: Evolvers = {
    SessionCreated: on_created,
    SessionConfigured: on_configured,
    SessionEnded: on_ended,
}
