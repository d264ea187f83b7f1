"""Leaving a session, and what ends with a membership."""

from collections.abc import Iterator

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body, MemberIds
from accord.core.kernel.records import Event, MembershipChange, Record
from accord.core.kernel.role_permissions import Permission
from accord.core.room.approval import electorate, grants, votes
from accord.core.room.conversation import interrupts, thinking
from accord.core.room.field_types import Id, ShortText
from accord.core.room.membership.absence_pause import update_pause
from accord.core.room.membership.presence import PresenceChanged, disconnect_update
from accord.core.room.shared_context import secrets
from accord.core.room.state import Member, Room, without_keys


class SessionLeave(Body, frozen=True, omit_defaults=True, gc=False):
    """Leave the session. From the server, `participant` says who left."""

    type = "session.leave"
    needs = Permission.MEMBER
    while_paused = True

    reason: ShortText | None = None
    participant: Id | None = None

    def claimed_ids(self) -> Iterator[str]:
        if self.participant is not None:
            yield self.participant


class MemberLeft(Event, frozen=True, kw_only=True, gc=False):
    """A member left, or was removed by the member that `removed_by` names."""

    name = "member.left"
    membership = MembershipChange.OUT

    said: SessionLeave
    seat: str
    # Unset, not empty: a record without it encodes to the bytes it was stored as.
    removed_by: str | UnsetType = UNSET


def leave(room: Room, command: Command, body: SessionLeave) -> Iterator[EventOrEffect]:
    """Leave; the server says it of members whose last token was revoked."""
    member_id = body.participant or command.actor.principal
    if member_id in room.members and not room.ended:
        yield from remove_member(room, command, member_id, body)


def remove_member(
    room: Room,
    command: Command,
    member_id: str,
    body: SessionLeave,
    gone: MemberIds = frozenset(),
    removed_by: str = "",
) -> Iterator[EventOrEffect]:
    """Close what a member had open; `gone` are members who leave in the same decision."""
    who = room.person(member_id)
    reason = f"{room.person(removed_by)} removed {who}" if removed_by else f"{who} left"
    yield from end_work(room, member_id, reason)
    yield from secrets.revoke_orphaned(room, member_id, gone)
    yield MemberLeft(said=body, seat=member_id, removed_by=removed_by or UNSET)
    # Behind the leave: the room hears it (PVP-8.2-2), the leaver hears nothing more.
    yield PresenceChanged(said=disconnect_update(member_id, command.at))
    member = room.members[member_id]
    yield from electorate.lost_voter_notices(room, member, keeps_vote=not removed_by)


def end_work(room: Room, member_id: str, reason: str) -> Iterator[EventOrEffect]:
    """Fail a member's open gates, and end its unused grants and its streams (OPEN-9)."""
    yield from votes.withdraw_gates(room, member_id, reason)
    yield from grants.end_unused_grants(room, member_id, reason)
    yield from thinking.interrupt_streams(room, member_id)


def on_left(room: Room, event: MemberLeft, record: Record) -> Room:
    """Remember them as a former member, and close their proposals."""
    member = room.members.get(event.seat)
    if member is None:
        return room
    running = [tool.id for tool in room.tools.values() if tool.agent == member.id]
    room = replace(
        grants.close_proposals(room, "abandoned", *running),
        members=without_keys(room.members, member.id),
        former={**room.former, member.id: former_member(member, event, record)},
    )
    room = secrets.without_member(interrupts.stop_waiting_for(room, member.id), member.id)
    return update_pause(electorate.drop_voter(room, member), record.at)


def former_member(member: Member, event: MemberLeft, record: Record) -> Member:
    return replace(member, since=record.at, left=record.version, removed_by=event.removed_by or "")


DECIDE: Deciders = {SessionLeave: leave}
EVOLVE: Evolvers = {MemberLeft: on_left}
