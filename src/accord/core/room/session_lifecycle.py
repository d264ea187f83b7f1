"""A session's life: create, configure, end."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, MembershipChange, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.room.approval import electorate, gate_timeouts, gates, grants
from accord.core.room.conversation import thinking
from accord.core.room.field_types import ShortText
from accord.core.room.membership.absence_pause import update_pause
from accord.core.room.membership.announcements import (
    MemberAnnounced,
    ParticipantAnnounce,
    Transport,
    granted_announcement,
    wire_kind,
)
from accord.core.room.membership.role_assignment import ADMIN_ROLES
from accord.core.room.room_settings import GateResolution, SessionConfig
from accord.core.room.shared_context import secrets
from accord.core.room.state import Member, Room

HTTP_TRANSPORT: Literal["http"] = "http"


class SessionCreate(Body, frozen=True, omit_defaults=True, gc=False):
    """Open a session."""

    type = "session.create"
    needs = Permission.ENTER

    config: SessionConfig
    name: ShortText | None = None
    metadata: dict[str, Any] | None = None


class SessionConfigUpdate(Body, frozen=True, omit_defaults=True, gc=False):
    """Change some of the session's settings."""

    type = "session.config_update"
    needs = Permission.CONFIGURE_SESSION
    while_paused = True

    changes: dict[str, Any]
    reason: ShortText
    metadata: dict[str, Any] | None = None


class SessionEnd(Body, frozen=True, omit_defaults=True, gc=False):
    """End the session; it cannot be reopened."""

    type = "session.end"
    needs = Permission.END_SESSION
    while_paused = True

    reason: ShortText
    final_state: Literal["completed", "aborted", "timeout"]


class SessionCreated(Event, frozen=True, kw_only=True, gc=False):
    """A session began; its creator is its first admin (OPEN-6)."""

    name = "session.created"
    membership = MembershipChange.IN

    said: SessionCreate
    creator: str
    kind: Kind
    workspace: str
    labels: frozenset[str] = frozenset()


class SessionConfigured(Event, frozen=True, kw_only=True, gc=False):
    """The session's settings changed."""

    name = "session.configured"

    said: SessionConfigUpdate
    by_agent: bool | UnsetType = UNSET  # unset means no, as in earlier records


class SessionEnded(Event, frozen=True, kw_only=True, gc=False):
    """The session ended."""

    name = "session.ended"

    said: SessionEnd


def create_session(room: Room, command: Command, body: SessionCreate) -> Iterator[EventOrEffect]:
    """Create a session; an id that was ever used is never reused (OPEN-5).

    Clients that create their session again when they reconnect get the first answer.
    """
    if room.exists:
        actor = command.actor
        is_creator = (actor.workspace, actor.principal) == (room.workspace, room.created_by)
        detail = f"The session id {room.id} is taken; choose another"
        raise Refused(
            Reason.WRONG_STATE, detail, may_repeat=room.created_with if is_creator else ""
        )
    check_config(room, command, body.config, command.actor.workspace)
    gates.check_metadata(command, body.metadata)
    actor = command.actor
    yield SessionCreated(
        said=body,
        creator=actor.principal,
        kind=actor.kind,
        workspace=actor.workspace,
        labels=actor.credential.labels if actor.credential else frozenset(),
        ref=command.message.id,
    )
    requested = ParticipantAnnounce(
        id=actor.principal,
        name=actor.principal,
        kind=wire_kind(actor.kind),
        roles=(),
        transport=transport_of(actor),
    )
    granted = granted_announcement(requested, actor.kind, ADMIN_ROLES, frozenset())
    yield MemberAnnounced(said=granted, ref=command.message.id)


def transport_of(actor: Actor) -> Transport:
    """How the creator is connected; clients that use plain HTTP hold no connection."""
    return HTTP_TRANSPORT if actor.runtime == HTTP_TRANSPORT else "websocket"


def check_config(room: Room, command: Command, config: SessionConfig, workspace: str) -> None:
    """Refuse timers that cannot work and a quorum that can never be met."""
    heartbeat, idle, away = (
        config.heartbeat_interval_seconds,
        config.idle_timeout_seconds,
        config.away_timeout_seconds,
    )
    if not heartbeat < idle <= away:  # OPEN-33
        detail = "Timers must satisfy heartbeat_interval < idle_timeout <= away_timeout"
        raise Refused(Reason.MALFORMED, f"{detail}; got {heartbeat}, {idle}, {away}")
    quorum, most = config.default_gate_quorum, config.max_participants
    electorate.check_quorum(room, command, quorum, most, workspace)


def configure_session(
    room: Room, command: Command, body: SessionConfigUpdate
) -> Iterator[EventOrEffect]:
    """Apply all of the changes or none (OPEN-55); an agent may only make approval stricter."""
    after = apply_changes(room.session_config, body.changes)
    check_config(room, command, after, room.workspace)
    check_agent_loosens_nothing(room, command, after)
    gates.check_metadata(command, body.metadata)
    by_agent = room.members[command.actor.principal].kind is Kind.AGENT
    yield SessionConfigured(said=body, by_agent=by_agent or UNSET)


def check_agent_loosens_nothing(room: Room, command: Command, after: SessionConfig) -> None:
    """Agents may require more approvals, never fewer: approval exists to control agents."""
    before, member = room.session_config, room.members[command.actor.principal]
    gates_no_less = set(before.require_approval_for) <= set(after.require_approval_for)
    same_rules = (before.default_gate_quorum, before.on_participant_timeout) == (
        after.default_gate_quorum,
        after.on_participant_timeout,
    )
    if member.kind is Kind.AGENT and not (gates_no_less and same_rules):
        raise Refused(
            Reason.FORBIDDEN,
            "Only a human can loosen the approval rules; agents can only tighten them",
        )


def apply_changes(config: SessionConfig, changes: dict[str, Any]) -> SessionConfig:
    """The configuration with the changes applied; unknown keys and invalid values are refused."""
    known = msgspec.to_builtins(config)
    if unknown := sorted(changes.keys() - known.keys()):
        raise Refused(Reason.MALFORMED, f"Unknown settings: {', '.join(unknown)}")
    try:
        return msgspec.convert(known | changes, SessionConfig)
    except msgspec.ValidationError as error:
        raise Refused(Reason.MALFORMED, f"Invalid setting: {error}") from error


def end_session(room: Room, command: Command, body: SessionEnd) -> Iterator[EventOrEffect]:
    """Reject the open gates and close the streams first, so nothing keeps running (OPEN-27)."""
    for gate in room.gates.values():
        yield from gate_timeouts.time_out_gate(
            room, command, gate, GateResolution.REJECTED, gate_timeouts.SESSION_ENDED_DETAIL
        )
    yield from thinking.interrupt_streams(room)
    yield from secrets.revoke_all(room, "The session has ended")
    yield SessionEnded(said=body)


def on_created(room: Room, event: SessionCreated, record: Record) -> Room:
    creator = Member(
        id=event.creator,
        name=event.creator,
        kind=event.kind,
        roles=ADMIN_ROLES,
        labels=event.labels,
        since=record.at,
    ).with_permissions()
    room = with_gate_time(room, event.said.metadata, by_agent=event.kind is Kind.AGENT)
    return replace(
        room,
        name=event.said.name or "",
        workspace=event.workspace,
        config=event.said.config,
        created_at=record.at,
        created_by=event.creator,
        created_with=record.id,
        members={creator.id: creator},
    )


def on_configured(room: Room, event: SessionConfigured, record: Record) -> Room:
    """Apply the settings, which may end a pause; ignore those of an incompatible version."""
    if room.config is None:
        return room
    with suppress(Refused):
        room = replace(room, config=apply_changes(room.config, event.said.changes))
    room = with_gate_time(room, event.said.metadata, by_agent=event.by_agent is True)
    return update_pause(room, record.at)


def with_gate_time(room: Room, metadata: dict[str, Any] | None, *, by_agent: bool) -> Room:
    """The room with the gate time that the metadata ask for, if they do."""
    with suppress(Refused):
        seconds = gates.requested_seconds(metadata)
        if seconds is not None:
            return replace(room, gate_seconds=seconds, gate_seconds_by_agent=by_agent)
    return room


def on_ended(room: Room, event: SessionEnded, record: Record) -> Room:
    return replace(
        grants.close_proposals(room, "ended with the session", *room.tools),
        ended=event.said.final_state,
        gates={},
        streams={},
        interrupts={},
        halted={},
        merges={},
        secrets={},
        paused_at=None,
    )


def session_owner(room: Room) -> tuple[str, ...]:
    """Workspace and creator of an open session; nothing if it ended or does not exist."""
    return (room.workspace, room.created_by) if room.exists and not room.ended else ()


DECIDE: Deciders = {
    SessionCreate: create_session,
    SessionConfigUpdate: configure_session,
    SessionEnd: end_session,
}
EVOLVE: Evolvers = {
    SessionCreated: on_created,
    SessionConfigured: on_configured,
    SessionEnded: on_ended,
}


def without_history(room: Room) -> Room:
    """A small copy for lists: enough to show the session, check membership and fold its end."""
    return Room(
        id=room.id,
        name=room.name,
        workspace=room.workspace,
        config=room.config,
        created_at=room.created_at,
        created_by=room.created_by,
        gate_seconds=room.gate_seconds,
        members=room.members,
        former=room.former,
    )
