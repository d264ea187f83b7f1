"""Members: who joins, who leaves, and what that closes."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Capabilities, Kind, May, Roles
from accord.core.kernel.limits import Limits, reached
from accord.core.kernel.log import Ask, Body, Deciders, Door, Event, Evolvers, Fact, Record, Seats
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import grants, interrupts, rolls, secrets, thinking, votes
from accord.core.room.fields import Id, Number, Short
from accord.core.room.participants import (
    Announced,
    ParticipantAnnounce,
    announcement,
    check_metadata,
    put,
)
from accord.core.room.pauses import repaused
from accord.core.room.roles import granted
from accord.core.room.state import Member, Room, without

VERSIONS = (1,)


class SessionJoin(Body, frozen=True, omit_defaults=True, gc=False):
    """Ask to come in. The token is read at the edge and never gets here."""

    type = "session.join"
    needs = May.ENTER
    while_paused = True

    participant: ParticipantAnnounce
    supported_versions: Annotated[tuple[Number, ...], Meta(max_length=64)]

    def claims(self) -> Iterator[str]:
        """Nobody joins for another."""
        yield self.participant.id

    def repeats(self, said: Body) -> bool:
        """The way they came is the server's to say, so it does not tell two asks apart."""
        if not isinstance(said, SessionJoin):
            return False
        came = replace(said.participant, transport=self.participant.transport)
        return self == replace(said, participant=came)


class SessionLeave(Body, frozen=True, omit_defaults=True, gc=False):
    """Go. From the server, `participant` says who is gone."""

    type = "session.leave"
    needs = May.BELONG
    while_paused = True

    reason: Short | None = None
    participant: Id | None = None

    def claims(self) -> Iterator[str]:
        """Nobody leaves for another."""
        if self.participant is not None:
            yield self.participant


class Joined(Event, frozen=True, kw_only=True, gc=False):
    """Somebody came in, or came back, with what they were granted."""

    name = "member.joined"
    door = Door.IN

    said: SessionJoin
    kind: Kind
    roles: Roles
    capabilities: Capabilities
    labels: frozenset[str]
    settled: bool


class Left(Event, frozen=True, kw_only=True, gc=False):
    """Somebody is gone."""

    name = "member.left"
    door = Door.OUT

    said: SessionLeave
    seat: str


# Joining


def join(room: Room, ask: Ask, body: SessionJoin) -> Iterator[Fact]:
    """In, if the room exists for this principal, has a place and can grant something."""
    seat, now = ask.actor.seat, body.participant
    before = room.members.get(seat)
    if not set(body.supported_versions) & set(VERSIONS):
        detail = "No version in common; this server speaks version 1"
        raise Refused(Why.VERSION, detail, {"supported_versions": list(VERSIONS)})
    if before is None and len(room.members) >= room.rules.max_participants:
        limit = room.rules.max_participants
        detail = f"The session is full: {limit} participants"
        raise Refused(Why.FULL, detail, {"reason": "max_participants", "limit": limit})
    if before is None:
        check_places(room, seat, ask.house.limits)
    check_metadata(now, ask.house.limits)
    known = before or room.former.get(seat)
    kind = kind_of(ask.actor, now, known)
    roles, capabilities = granted(ask.actor, kind, now, known)
    yield Joined(
        said=body,
        kind=kind,
        roles=roles,
        capabilities=capabilities,
        labels=ask.actor.grant.labels if ask.actor.grant else frozenset(),
        settled=known is not None and known.settled,
    )
    yield Announced(said=announcement(now, kind, roles, capabilities), ref=ask.message.id)


def check_places(room: Room, seat: str, limits: Limits) -> None:
    """The house has its own bounds: who may be here at once, and whom a room remembers."""
    if len(room.members) >= (most := limits.participants):
        raise reached("participants", most, f"A session here may have {most} participants")
    strangers = len(room.members) + len(room.former)
    if seat not in room.former and strangers >= (most := limits.seats):
        detail = f"{most} people and agents have been in this session; begin another one"
        raise reached("seats", most, detail)


def kind_of(actor: Actor, now: ParticipantAnnounce, known: Member | None) -> Kind:
    """A human may take an agent's place, never the other way round (OPEN-6)."""
    claimed = Kind(now.kind)
    proven_agent = actor.grant is not None and actor.kind is Kind.AGENT
    was_agent = known is not None and known.kind is Kind.AGENT
    if claimed is Kind.HUMAN and (proven_agent or was_agent):
        raise Refused(Why.CLAIM_MISMATCH, f"{actor.seat} is an agent and cannot join as a human")
    if proven_agent and known is not None and known.kind is Kind.HUMAN:
        raise Refused(Why.CLAIM_MISMATCH, f"{actor.seat} is a person here; use another id")
    return claimed


# Leaving


def leave(room: Room, ask: Ask, body: SessionLeave) -> Iterator[Fact]:
    """Out; what one had open is closed first."""
    yield from leaving(room, body.participant or ask.actor.seat, body)


def leaving(room: Room, seat: str, body: SessionLeave, gone: Seats = frozenset()) -> Iterator[Fact]:
    """Somebody goes, right after these others."""
    yield from votes.withdrawn(room, seat, f"{seat} left")
    yield from thinking.interrupted(room, seat)
    yield from secrets.left(room, seat, gone)
    yield Left(said=body, seat=seat)


# Folding


def on_joined(room: Room, event: Joined, record: Record) -> Room:
    """A member with what was granted; their standing votes follow the new rights."""
    said = event.said.participant
    before = room.members.get(said.id) or room.former.get(said.id)
    member = Member(
        id=said.id,
        name=said.name,
        kind=event.kind,
        roles=event.roles,
        capabilities=event.capabilities,
        labels=event.labels,
        transport=said.transport,
        metadata=said.metadata or {},
        announced=before.announced if before else "",
        since=record.at,
        settled=event.settled,
    ).with_verbs()
    room = put(replace(room, former=without(room.former, said.id)), member)
    return repaused(rolls.member_changed(room, before, member), record.at)


def on_left(room: Room, event: Left, record: Record) -> Room:
    """A former member; what they were running is abandoned."""
    member = room.members.get(event.seat)
    if member is None:
        return room
    running = [tool.id for tool in room.tools.values() if tool.agent == member.id]
    room = replace(
        grants.over(room, "abandoned", *running),
        members=without(room.members, member.id),
        former={**room.former, member.id: replace(member, since=record.at, left=record.version)},
    )
    room = secrets.without_seat(interrupts.member_gone(room, member.id), member.id)
    return repaused(rolls.member_left(room, member), record.at)


DECIDE: Deciders = {SessionJoin: join, SessionLeave: leave}
EVOLVE: Evolvers = {Joined: on_joined, Left: on_left}
