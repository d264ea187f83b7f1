"""Members: who joins with which rights, who leaves, and whether they are there."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import (
    Capabilities,
    Capability,
    Kind,
    May,
    Role,
    Roles,
    rights,
)
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.limits import Limits, reached
from accord.core.kernel.log import (
    Ask,
    Body,
    Deciders,
    Door,
    Event,
    Evolvers,
    Fact,
    Recall,
    Record,
    Seats,
)
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import SECOND, is_iso, iso
from accord.core.room import grants, interrupts, rolls, secrets, thinking, votes
from accord.core.room.state import (
    ABSENT,
    House,
    Id,
    Member,
    Number,
    OnTimeout,
    Presence,
    Room,
    Short,
    without,
)

Transport = Literal["websocket", "mcp", "http", "stdio"]
VERSIONS = (1,)
ADMIN = frozenset({Role.ADMIN})
OBSERVER = frozenset({Role.OBSERVER})
# OPEN-8: these are never had for the asking.
GIVEN_ONLY = frozenset({Capability.APPROVE, Capability.MANAGE_PARTICIPANTS, Capability.END_SESSION})
# What silence says nothing new about: whoever said they are away is not merely idle.
NO_NEWS: dict[Presence, frozenset[Presence]] = {
    Presence.ACTIVE: frozenset({Presence.ACTIVE}),
    Presence.IDLE: frozenset({Presence.IDLE}),
    Presence.AWAY: frozenset({Presence.IDLE, Presence.AWAY}),
    Presence.DISCONNECTED: frozenset({Presence.DISCONNECTED}),
}


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


class ParticipantRoleChange(Body, frozen=True, omit_defaults=True, gc=False):
    """Give a member other roles."""

    type = "participant.role_change"
    needs = May.MANAGE
    while_paused = True

    participant: Id
    old_roles: tuple[Role, ...]
    new_roles: tuple[Role, ...]
    changed_by: Id
    reason: Short | None = None

    def claims(self) -> Iterator[str]:
        """Everybody acts for themselves."""
        yield self.changed_by


class PresenceUpdate(Body, frozen=True, omit_defaults=True, gc=False):
    """Whether somebody is there."""

    type = "presence.update"
    needs = May.BELONG
    while_paused = True

    participant: Id
    status: Presence
    last_active: Short

    def claims(self) -> Iterator[str]:
        """Everybody reports themselves."""
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


class Announced(Event, frozen=True, kw_only=True, gc=False):
    """The room was told who a member is."""

    name = "member.announced"

    said: ParticipantAnnounce


class Left(Event, frozen=True, kw_only=True, gc=False):
    """Somebody is gone."""

    name = "member.left"
    door = Door.OUT

    said: SessionLeave
    seat: str


class RolesChanged(Event, frozen=True, kw_only=True, gc=False):
    """A member has other roles, and no capabilities beyond them (OPEN-9)."""

    name = "member.roles_changed"

    said: ParticipantRoleChange


class PresenceChanged(Event, frozen=True, kw_only=True, gc=False):
    """A member came or went without leaving."""

    name = "member.presence"

    said: PresenceUpdate


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


def granted(
    actor: Actor, kind: Kind, now: ParticipantAnnounce, known: Member | None
) -> tuple[Roles, Capabilities]:
    """What this joiner gets: roles are asked for, credential and policy grant (OPEN-8)."""
    if known is not None and known.settled:
        return known.roles, known.capabilities
    asked = frozenset(now.roles) or OBSERVER
    roles = asked & grantable_roles(actor, kind)
    capabilities = frozenset(now.capabilities or ()) & grantable_capabilities(actor)
    held = known.roles & ADMIN if known is not None else frozenset()
    if not roles | capabilities | held:
        wanted = ", ".join(sorted(asked))
        raise Refused(Why.FORBIDDEN, f"{actor.seat} may not join as {wanted}")
    return roles | held or OBSERVER, capabilities


def grantable_roles(actor: Actor, kind: Kind) -> Roles:
    """Every role but admin on trust; with a credential, its own, and all for a human admin."""
    if actor.grant is None:
        barred = ADMIN | ({Role.APPROVER} if kind is Kind.AGENT else frozenset())
        return frozenset(Role) - barred
    if actor.is_operator:
        return frozenset(Role)
    return actor.grant.roles | OBSERVER


def grantable_capabilities(actor: Actor) -> Capabilities:
    """What a credential's roles imply or it names; on trust, what could not do harm."""
    if actor.grant is None:
        return frozenset(Capability) - GIVEN_ONLY
    return rights(actor.grant.roles, actor.grant.capabilities)


def word(kind: Kind) -> Literal["human", "agent"]:
    """The kind as PVP writes it."""
    return "agent" if kind is Kind.AGENT else "human"


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


# Leaving and changing


def leave(room: Room, ask: Ask, body: SessionLeave) -> Iterator[Fact]:
    """Out; what one had open is closed first."""
    yield from leaving(room, body.participant or ask.actor.seat, body)


def leaving(room: Room, seat: str, body: SessionLeave, gone: Seats = frozenset()) -> Iterator[Fact]:
    """Somebody goes, right after these others."""
    yield from votes.withdrawn(room, seat, f"{seat} left")
    yield from thinking.interrupted(room, seat)
    yield from secrets.left(room, seat, gone)
    yield Left(said=body, seat=seat)


def change_roles(room: Room, ask: Ask, body: ParticipantRoleChange) -> Iterator[Fact]:
    """Other roles for a member; nobody rises by accident and an admin always remains."""
    member = room.members.get(body.participant)
    if member is None:
        raise Refused(Why.NO_MEMBER, f"{body.participant} is not in this session")
    if (frozenset(body.old_roles) or OBSERVER) != member.roles:
        held = ", ".join(sorted(member.roles))
        raise Refused(Why.WRONG_STATE, f"{member.id} holds {held}; old_roles must say so")
    check_agent_manages(room, ask, member, body)
    touches_admin = Role.ADMIN in member.roles ^ frozenset(body.new_roles)
    is_admin = Role.ADMIN in room.members[ask.actor.seat].roles
    if not is_admin and (touches_admin or member.id == ask.actor.seat):
        raise Refused(
            Why.FORBIDDEN, "Only an admin gives or takes admin or changes their own roles"
        )
    others = [m for m in room.members.values() if Role.ADMIN in m.roles and m.id != member.id]
    if touches_admin and Role.ADMIN in member.roles and not others:
        raise Refused(Why.WRONG_STATE, f"{member.id} is the last admin; make another one first")
    yield RolesChanged(said=body)


def check_agent_manages(room: Room, ask: Ask, member: Member, body: ParticipantRoleChange) -> None:
    """An agent has no say in who of the people may approve, nor makes approvers (UNI-13)."""
    by_agent = ask.actor.kind is not Kind.SYSTEM and room.members[ask.actor.seat].kind is Kind.AGENT
    raises = frozenset(body.new_roles) & {Role.ADMIN, Role.APPROVER}
    if by_agent and (member.kind is Kind.HUMAN or raises):
        raise Refused(Why.FORBIDDEN, "An agent cannot change people's roles or make approvers")


def update_presence(room: Room, ask: Ask, body: PresenceUpdate) -> Iterator[Fact]:
    """A member's own word, or the server's observation of a change."""
    by_server = ask.actor.kind is Kind.SYSTEM
    member = room.members.get(body.participant)
    if by_server and (room.ended or member is None or body.status in NO_NEWS[member.presence]):
        return
    if not by_server and body.status is Presence.DISCONNECTED:
        raise Refused(Why.MALFORMED, "Only the server can see that somebody is disconnected")
    if not is_iso(body.last_active):
        raise Refused(Why.MALFORMED, "last_active must be an ISO 8601 timestamp")
    yield PresenceChanged(said=body)


def overstayed(room: Room, ask: Ask) -> Iterator[Fact]:
    """Whoever has been disconnected for the whole grace period has left (OPEN-32)."""
    gone: Seats = frozenset()
    for member in room.members.values():
        if (
            member.presence is Presence.DISCONNECTED
            and grace_end(room, member, ask.house) <= ask.at
        ):
            body = SessionLeave(reason="Connection lost", participant=member.id)
            yield from leaving(room, member.id, body, gone)
            gone |= {member.id}


def grace_end(room: Room, member: Member, house: House) -> int:
    """When a lost connection becomes a leave (UNI-23)."""
    seconds = max(room.rules.away_timeout_seconds, house.grace_seconds)
    return member.since + seconds * SECOND


# Folding


def put(room: Room, member: Member) -> Room:
    """The room with this member as they are now."""
    return replace(room, members={**room.members, member.id: member.with_verbs()})


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


def on_roles_changed(room: Room, event: RolesChanged, record: Record) -> Room:
    """The new roles and nothing beside them."""
    before = room.members.get(event.said.participant)
    if before is None:
        return room
    roles = frozenset(event.said.new_roles) or OBSERVER
    now = replace(before, roles=roles, capabilities=frozenset(), settled=True).with_verbs()
    return repaused(rolls.member_changed(put(room, now), before, now), record.at)


def on_presence(room: Room, event: PresenceChanged, record: Record) -> Room:
    """There or not; an absence may pause the room."""
    member = room.members.get(event.said.participant)
    if member is None:
        return room
    member = replace(member, presence=event.said.status, since=record.at)
    return repaused(put(room, member), record.at)


def repaused(room: Room, at: int) -> Room:
    """OPEN-18: paused while policy says so and somebody who takes part is absent."""
    config = room.config
    policy = config is not None and config.on_participant_timeout is OnTimeout.PAUSE_SESSION
    absent = any(m.presence in ABSENT and May.TAKE_PART in m.may for m in room.members.values())
    if policy and absent:
        return room if room.paused_at is not None else replace(room, paused_at=at)
    return room if room.paused_at is None else resumed(room, at - room.paused_at)


def resumed(room: Room, pause: int) -> Room:
    """The clocks of open gates go on where they stood."""
    later = {
        gate.id: replace(gate, expires_at=gate.expires_at + pause)
        for gate in room.gates.values()
        if gate.expires_at is not None
    }
    return replace(room, gates={**room.gates, **later}, paused_at=None)


def disconnected(seat: str, at: int) -> PresenceUpdate:
    """What the server says when the last connection of a member is gone."""
    return PresenceUpdate(participant=seat, status=Presence.DISCONNECTED, last_active=iso(at))


def reconnected(room: Room, seat: str, at: int) -> PresenceUpdate | None:
    """What the server says when a member is there again without a new join; None: no member."""
    if room.ended or seat not in room.members:
        return None
    return PresenceUpdate(participant=seat, status=Presence.ACTIVE, last_active=iso(at))


def connected(room: Room) -> Iterator[str]:
    """Those of a room that goes on who are not known to be disconnected."""
    if room.ended:
        return
    for member in room.members.values():
        if member.presence is not Presence.DISCONNECTED:
            yield member.id


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


DECIDE: Deciders = {
    SessionJoin: join,
    SessionLeave: leave,
    ParticipantAnnounce: announce,
    ParticipantRoleChange: change_roles,
    PresenceUpdate: update_presence,
}
EVOLVE: Evolvers = {
    Joined: on_joined,
    Announced: on_announced,
    Left: on_left,
    RolesChanged: on_roles_changed,
    PresenceChanged: on_presence,
}
