"""Announcements: how participants describe themselves, and what they were granted."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.effects import ReplayedMessage
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.limits import Limits, limit_exceeded
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.role_permissions import (
    Capabilities,
    Capability,
    Kind,
    Permission,
    Role,
    Roles,
)
from accord.core.room.field_types import Id, ShortText
from accord.core.room.state import Member, Room

Transport = Literal["websocket", "mcp", "http", "stdio"]


class ParticipantAnnounce(Body, frozen=True, omit_defaults=True, gc=False):
    """Describe yourself; from the server, the description with what was granted."""

    type = "participant.announce"
    needs = Permission.MEMBER

    id: Id
    name: ShortText
    kind: Literal["human", "agent"] = msgspec.field(name="type")
    roles: tuple[Role, ...]
    transport: Transport
    capabilities: tuple[Capability, ...] | None = None
    metadata: dict[str, Any] | None = None

    def claimed_ids(self) -> Iterator[str]:
        yield self.id

    def is_retry_of(self, said: Body) -> bool:
        """Ignores kind, roles and capabilities, which the server fills in."""
        return isinstance(said, ParticipantAnnounce) and said == replace(
            self, kind=said.kind, roles=said.roles, capabilities=said.capabilities
        )


class MemberAnnounced(Event, frozen=True, kw_only=True, gc=False):
    """A member's description was announced to the room."""

    name = "member.announced"

    said: ParticipantAnnounce


def announce(room: Room, command: Command, body: ParticipantAnnounce) -> Iterator[EventOrEffect]:
    """Update one's own name, transport and metadata; what was granted does not change (OPEN-9)."""
    check_metadata(body, command.policy.limits)
    member = room.members[command.actor.principal]
    yield MemberAnnounced(
        said=granted_announcement(body, member.kind, member.roles, member.capabilities)
    )


def check_metadata(announcement: ParticipantAnnounce, limits: Limits) -> None:
    """Limit the metadata: it is sent to everybody who joins."""
    limit, metadata = limits.metadata, announcement.metadata
    if metadata and len(msgspec.json.encode(metadata)) > limit:
        detail = f"metadata may have at most {limit} bytes; share longer data as context"
        raise limit_exceeded("metadata", limit, detail)


def granted_announcement(
    requested: ParticipantAnnounce, kind: Kind, roles: Roles, capabilities: Capabilities
) -> ParticipantAnnounce:
    """The announcement with the granted roles and capabilities instead of the requested ones."""
    return replace(
        requested,
        kind=wire_kind(kind),
        roles=tuple(sorted(roles)),
        capabilities=tuple(sorted(capabilities)) or None,
    )


def wire_kind(kind: Kind) -> Literal["human", "agent"]:
    """The kind as PVP spells it."""
    return "agent" if kind is Kind.AGENT else "human"


def member_announcements(room: Room) -> Iterator[ReplayedMessage]:
    """The announcements of all members, for a member who joins (OPEN-30)."""
    for member in room.members.values():
        requested = ParticipantAnnounce(
            id=member.id,
            name=member.name,
            kind=wire_kind(member.kind),
            roles=(),
            transport=member.transport,
            metadata=member.metadata or None,
        )
        granted = granted_announcement(requested, member.kind, member.roles, member.capabilities)
        yield ReplayedMessage(member.announced, SYSTEM, granted)


def with_member(room: Room, member: Member) -> Room:
    return replace(room, members={**room.members, member.id: member.with_permissions()})


def on_announced(room: Room, event: MemberAnnounced, record: Record) -> Room:
    member = room.members.get(event.said.id)
    if member is None:
        return room
    member = replace(
        member,
        name=event.said.name,
        transport=event.said.transport,
        metadata=event.said.metadata or {},
        announced=record.id,
    )
    return with_member(room, member)


DECIDE: Deciders = {ParticipantAnnounce: announce}
EVOLVE: Evolvers = {MemberAnnounced: on_announced}
