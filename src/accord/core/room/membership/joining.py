"""Joining a session."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.limits import Limits, limit_exceeded
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, MembershipChange, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capabilities, Kind, Permission, Roles
from accord.core.room.approval import electorate
from accord.core.room.field_types import SafeInt
from accord.core.room.membership.absence_pause import update_pause
from accord.core.room.membership.announcements import (
    MemberAnnounced,
    ParticipantAnnounce,
    check_metadata,
    granted_announcement,
    with_member,
)
from accord.core.room.membership.role_assignment import grant_roles, removed_member
from accord.core.room.state import ABSENT_PRESENCES, Member, Room, without_keys

SUPPORTED_VERSIONS = (1,)
MAX_NAMED = 20


class SessionJoin(Body, frozen=True, omit_defaults=True, gc=False):
    """Join a session. The token is checked when the message enters and is not part of the body."""

    type = "session.join"
    needs = Permission.ENTER
    while_paused = True

    participant: ParticipantAnnounce
    supported_versions: Annotated[tuple[SafeInt, ...], Meta(max_length=64)]

    def claimed_ids(self) -> Iterator[str]:
        yield self.participant.id

    def is_retry_of(self, said: Body) -> bool:
        """Ignores the transport, which the server fills in."""
        if not isinstance(said, SessionJoin):
            return False
        participant = replace(said.participant, transport=self.participant.transport)
        return self == replace(said, participant=participant)


class MemberJoined(Event, frozen=True, kw_only=True, gc=False):
    """A principal joined or rejoined, with what was granted."""

    name = "member.joined"
    membership = MembershipChange.IN

    said: SessionJoin
    kind: Kind
    roles: Roles
    capabilities: Capabilities
    labels: frozenset[str]
    settled: bool


# Joining


def join(room: Room, command: Command, body: SessionJoin) -> Iterator[EventOrEffect]:
    """Let a principal in if the session has room and can grant at least one role or capability."""
    member_id, requested = command.actor.principal, body.participant
    before = room.members.get(member_id)
    if (removed := removed_member(room, member_id)) is not None:
        raise removed_refusal(removed)
    if not set(body.supported_versions) & set(SUPPORTED_VERSIONS):
        detail = "No common protocol version; this server supports version 1"
        raise Refused(
            Reason.UNSUPPORTED_VERSION, detail, {"supported_versions": list(SUPPORTED_VERSIONS)}
        )
    if before is None and len(room.members) >= room.session_config.max_participants:
        raise full_refusal(room)
    if before is None:
        check_capacity(room, member_id, command.policy.limits)
    check_metadata(requested, command.policy.limits)
    known = before or room.former.get(member_id)
    kind = member_kind(command.actor, requested, known)
    roles, capabilities = grant_roles(command.actor, kind, requested, known)
    yield MemberJoined(
        said=body,
        kind=kind,
        roles=roles,
        capabilities=capabilities,
        labels=command.actor.credential.labels if command.actor.credential else frozenset(),
        settled=known is not None and known.settled,
    )
    yield MemberAnnounced(
        said=granted_announcement(requested, kind, roles, capabilities), ref=command.message.id
    )


def removed_refusal(member: Member) -> Refused:
    detail = f"{member.removed_by} removed you from this session"
    return Refused(
        Reason.FORBIDDEN, f"{detail}; ask a member who manages participants to let you back in"
    )


def full_refusal(room: Room) -> Refused:
    """The refusal of a full session, which names members who could make room."""
    limit = room.session_config.max_participants
    absent = sorted(m.id for m in room.members.values() if m.presence in ABSENT_PRESENCES)
    detail = f"The session is full: {limit} participants"
    if absent:
        named = ", ".join(absent[:MAX_NAMED]) + (" and others" if absent[MAX_NAMED:] else "")
        detail += f". Absent: {named}; an admin can remove one with `accord session remove`"
    details = {"reason": "max_participants", "limit": limit, "absent": absent[:MAX_NAMED]}
    return Refused(Reason.FULL, detail, details)


def check_capacity(room: Room, member_id: str, limits: Limits) -> None:
    """The server's own limits: members at a time, and members ever."""
    if len(room.members) >= (limit := limits.participants):
        detail = f"On this server a session may have {limit} participants at a time"
        raise limit_exceeded("participants", limit, detail)
    known = len(room.members) + len(room.former)
    if member_id not in room.former and known >= (limit := limits.seats):
        detail = f"{limit} humans and agents have been in this session; create another one"
        raise limit_exceeded("seats", limit, detail)


def member_kind(actor: Actor, requested: ParticipantAnnounce, known: Member | None) -> Kind:
    """A human may take over an agent's membership, never the other way round (OPEN-6)."""
    claimed = Kind(requested.kind)
    proven_agent = actor.credential is not None and actor.kind is Kind.AGENT
    was_agent = known is not None and known.kind is Kind.AGENT
    if claimed is Kind.HUMAN and (proven_agent or was_agent):
        raise Refused(
            Reason.CLAIM_MISMATCH, f"{actor.principal} is an agent and cannot join as a human"
        )
    if proven_agent and known is not None and known.kind is Kind.HUMAN:
        detail = f"{actor.principal} is a human here; join with another id"
        raise Refused(Reason.CLAIM_MISMATCH, detail)
    return claimed


# Folding


def on_joined(room: Room, event: MemberJoined, record: Record) -> Room:
    """Add the member; votes they cast earlier are counted by their new rights."""
    announced = event.said.participant
    before = room.members.get(announced.id) or room.former.get(announced.id)
    member = Member(
        id=announced.id,
        name=announced.name,
        kind=event.kind,
        roles=event.roles,
        capabilities=event.capabilities,
        labels=event.labels,
        transport=announced.transport,
        metadata=announced.metadata or {},
        announced=before.announced if before else "",
        since=record.at,
        settled=event.settled,
    ).with_permissions()
    room = with_member(replace(room, former=without_keys(room.former, announced.id)), member)
    return update_pause(electorate.update_voter(room, before, member), record.at)


DECIDE: Deciders = {SessionJoin: join}
EVOLVE: Evolvers = {MemberJoined: on_joined}
