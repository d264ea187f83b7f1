"""Presence: whether members are reachable, by their own word or as the server sees it."""

from collections.abc import Iterator

from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.kernel.timestamps import is_iso, to_iso
from accord.core.room.field_types import Id, ShortText
from accord.core.room.membership.absence_pause import update_pause
from accord.core.room.membership.announcements import with_member
from accord.core.room.state import Presence, Room

# The server reports no change to these: a member who set `away` is not merely idle.
REDUNDANT_STATUSES: dict[Presence, frozenset[Presence]] = {
    Presence.ACTIVE: frozenset({Presence.ACTIVE}),
    Presence.IDLE: frozenset({Presence.IDLE}),
    Presence.AWAY: frozenset({Presence.IDLE, Presence.AWAY}),
    Presence.DISCONNECTED: frozenset({Presence.DISCONNECTED}),
}


class PresenceUpdate(Body, frozen=True, omit_defaults=True, gc=False):
    """Report whether a member is reachable."""

    type = "presence.update"
    needs = Permission.MEMBER
    while_paused = True

    participant: Id
    status: Presence
    last_active: ShortText

    def claimed_ids(self) -> Iterator[str]:
        yield self.participant


class PresenceChanged(Event, frozen=True, kw_only=True, gc=False):
    """A member's presence changed."""

    name = "member.presence"

    said: PresenceUpdate


def update_presence(room: Room, command: Command, body: PresenceUpdate) -> Iterator[EventOrEffect]:
    """A member's own report, or a change that the server observed."""
    by_server = command.actor.kind is Kind.SYSTEM
    member = room.members.get(body.participant)
    if by_server and (
        room.ended or member is None or body.status in REDUNDANT_STATUSES[member.presence]
    ):
        return
    if not by_server and body.status is Presence.DISCONNECTED:
        detail = "Only the server sets `disconnected`; use session.leave to leave"
        raise Refused(Reason.MALFORMED, detail)
    if not is_iso(body.last_active):
        raise Refused(Reason.MALFORMED, "last_active must be an ISO 8601 timestamp")
    yield PresenceChanged(said=body)


def on_presence(room: Room, event: PresenceChanged, record: Record) -> Room:
    """Set the presence, which may pause or resume the room."""
    member = room.members.get(event.said.participant)
    if member is None:
        return room
    member = replace(member, presence=event.said.status, since=record.at)
    return update_pause(with_member(room, member), record.at)


def disconnect_update(member_id: str, at: int) -> PresenceUpdate:
    """The server's report that a member's last connection is gone."""
    return PresenceUpdate(
        participant=member_id, status=Presence.DISCONNECTED, last_active=to_iso(at)
    )


def reconnect_update(room: Room, member_id: str, at: int) -> PresenceUpdate | None:
    """The server's report that a member is connected again; None if there is nothing to report."""
    if room.ended or member_id not in room.members:
        return None
    return PresenceUpdate(participant=member_id, status=Presence.ACTIVE, last_active=to_iso(at))


DECIDE: Deciders = {PresenceUpdate: update_presence}
EVOLVE: Evolvers = {PresenceChanged: on_presence}
