"""Participants: who somebody says they are, and what the room tells of them."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from accord.core.kernel.authority import Capabilities, Capability, Kind, May, Role, Roles
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.limits import Limits, reached
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Fact, Recall, Record
from accord.core.room.fields import Id, Short
from accord.core.room.state import Member, Room

Transport = Literal["websocket", "mcp", "http", "stdio"]


class ParticipantAnnounce(Body, frozen=True, omit_defaults=True, gc=False):
    """Who one is; from the server, what one was granted."""

    type = "participant.announce"
    needs = May.BELONG

    id: Id
    name: Short
    kind: Literal["human", "agent"] = msgspec.field(name="type")
    roles: tuple[Role, ...]
    transport: Transport
    capabilities: tuple[Capability, ...] | None = None
    metadata: dict[str, Any] | None = None

    def claims(self) -> Iterator[str]:
        """Nobody announces another."""
        yield self.id

    def repeats(self, said: Body) -> bool:
        """What was granted is the server's to say, so it does not tell two asks apart."""
        return isinstance(said, ParticipantAnnounce) and said == replace(
            self, kind=said.kind, roles=said.roles, capabilities=said.capabilities
        )


class Announced(Event, frozen=True, kw_only=True, gc=False):
    """The room was told who a member is."""

    name = "member.announced"

    said: ParticipantAnnounce


def announce(room: Room, ask: Ask, body: ParticipantAnnounce) -> Iterator[Fact]:
    """One's own name, transport and metadata; everything else stays as granted (OPEN-9)."""
    check_metadata(body, ask.house.limits)
    member = room.members[ask.actor.seat]
    yield Announced(said=announcement(body, member.kind, member.roles, member.capabilities))


def check_metadata(who: ParticipantAnnounce, limits: Limits) -> None:
    """Whoever comes is told all of it about everybody, so it is short."""
    most = limits.metadata
    if who.metadata and len(msgspec.json.encode(who.metadata)) > most:
        detail = f"metadata may have {most} bytes; send what is longer as content"
        raise reached("metadata", most, detail)


def announcement(
    now: ParticipantAnnounce, kind: Kind, roles: Roles, capabilities: Capabilities
) -> ParticipantAnnounce:
    """The announcement with what was granted in place of what was asked."""
    return replace(
        now,
        kind=word(kind),
        roles=tuple(sorted(roles)),
        capabilities=tuple(sorted(capabilities)) or None,
    )


def word(kind: Kind) -> Literal["human", "agent"]:
    """The kind as PVP writes it."""
    return "agent" if kind is Kind.AGENT else "human"


def roll_call(room: Room) -> Iterator[Recall]:
    """Everybody who is here, for somebody who comes in (OPEN-30)."""
    for member in room.members.values():
        who = ParticipantAnnounce(
            id=member.id,
            name=member.name,
            kind=word(member.kind),
            roles=(),
            transport=member.transport,
            metadata=member.metadata or None,
        )
        said = announcement(who, member.kind, member.roles, member.capabilities)
        yield Recall(member.announced, SYSTEM, said)


def put(room: Room, member: Member) -> Room:
    """The room with this member as they are now."""
    return replace(room, members={**room.members, member.id: member.with_verbs()})


def on_announced(room: Room, event: Announced, record: Record) -> Room:
    """Name, transport and metadata as announced."""
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
    return put(room, member)


DECIDE: Deciders = {ParticipantAnnounce: announce}
EVOLVE: Evolvers = {Announced: on_announced}
