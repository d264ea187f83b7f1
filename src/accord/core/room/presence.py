"""Presence: whether members are there, and when an absence becomes a leave."""

from collections.abc import Iterator

from msgspec.structs import replace

from accord.core.kernel.authority import Kind, May
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Fact, Record, Seats
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import SECOND, is_iso, iso
from accord.core.room import members
from accord.core.room.fields import Id, Short
from accord.core.room.participants import put
from accord.core.room.pauses import repaused
from accord.core.room.state import House, Member, Presence, Room

# What silence says nothing new about: whoever said they are away is not merely idle.
NO_NEWS: dict[Presence, frozenset[Presence]] = {
    Presence.ACTIVE: frozenset({Presence.ACTIVE}),
    Presence.IDLE: frozenset({Presence.IDLE}),
    Presence.AWAY: frozenset({Presence.IDLE, Presence.AWAY}),
    Presence.DISCONNECTED: frozenset({Presence.DISCONNECTED}),
}


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


class PresenceChanged(Event, frozen=True, kw_only=True, gc=False):
    """A member came or went without leaving."""

    name = "member.presence"

    said: PresenceUpdate


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
            body = members.SessionLeave(reason="Connection lost", participant=member.id)
            yield from members.leaving(room, member.id, body, gone)
            gone |= {member.id}


def grace_end(room: Room, member: Member, house: House) -> int:
    """When a lost connection becomes a leave (UNI-23)."""
    seconds = max(room.rules.away_timeout_seconds, house.grace_seconds)
    return member.since + seconds * SECOND


def on_presence(room: Room, event: PresenceChanged, record: Record) -> Room:
    """There or not; an absence may pause the room."""
    member = room.members.get(event.said.participant)
    if member is None:
        return room
    member = replace(member, presence=event.said.status, since=record.at)
    return repaused(put(room, member), record.at)


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


DECIDE: Deciders = {PresenceUpdate: update_presence}
EVOLVE: Evolvers = {PresenceChanged: on_presence}
