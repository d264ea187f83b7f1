"""Deadlines: what the passing of time changes in a room, and when the next change is due."""

from collections.abc import Iterator

from accord.core.kernel.context import Command, EventOrEffect
from accord.core.kernel.messages import Body, Instant, MemberIds
from accord.core.kernel.role_permissions import Permission
from accord.core.kernel.timestamps import MS_PER_SECOND
from accord.core.room.approval import gate_timeouts, standing_grants, tool_proposals
from accord.core.room.conversation import interrupts, thinking
from accord.core.room.membership import leaving
from accord.core.room.room_settings import ServerPolicy
from accord.core.room.shared_context import secrets
from accord.core.room.state import ABSENT_PRESENCES, Member, Presence, Room

LOST_VALUE_DETAIL = "The server restarted and lost its value; share it again"


class Tick(Body, frozen=True, gc=False):
    """The server's clock reached a deadline of the room."""

    type = "tick"
    needs = Permission.SERVER_ONLY
    while_paused = True

    after_restart: bool = False  # the server was down when the deadline passed


def end_long_absences(room: Room, command: Command) -> Iterator[EventOrEffect]:
    """End the open streams of agents absent for the whole grace period (OPEN-32).

    Where the policy says so, members whose connection was lost for as long leave.
    """
    gone: MemberIds = frozenset()
    for member in room.members.values():
        if member.presence not in ABSENT_PRESENCES:
            continue
        if grace_end(room, member, command.policy) > command.at:
            continue
        if leaves_after_grace(member, command.policy):
            body = leaving.SessionLeave(reason="Connection lost", participant=member.id)
            yield from leaving.remove_member(room, command, member.id, body, gone)
            gone |= {member.id}
        else:
            yield from thinking.interrupt_streams(room, member.id)


def absence_deadlines(room: Room, policy: ServerPolicy) -> Iterator[Instant]:
    """When the absences end that have something to end."""
    streaming = {stream.agent for stream in room.streams.values()}
    for member in room.members.values():
        absent = member.presence in ABSENT_PRESENCES
        if leaves_after_grace(member, policy) or (absent and member.id in streaming):
            yield grace_end(room, member, policy)


def leaves_after_grace(member: Member, policy: ServerPolicy) -> bool:
    """Whether this absence ends the membership: only without tokens."""
    return policy.grace_ends_membership and member.presence is Presence.DISCONNECTED


def grace_end(room: Room, member: Member, policy: ServerPolicy) -> Instant:
    """When an absence has lasted for the grace period (UNI-23)."""
    seconds = max(room.session_config.away_timeout_seconds, policy.grace_seconds)
    return member.since + seconds * MS_PER_SECOND


def tick(room: Room, command: Command, body: Tick) -> Iterator[EventOrEffect]:
    """Everything that is due by now."""
    if room.ended:
        return
    # A gate may end only once: absences end at the next tick, when gates that timed out are closed.
    late = (
        *gate_timeouts.time_out_gates(room, command, after_restart=body.after_restart),
        *tool_proposals.expire_grants(room, command),
        *(standing_grants.expire_standing_grants(room, command) if room.standing_grants else ()),
    )
    due = late or tuple(end_long_absences(room, command))
    yield from due
    yield from interrupts.lapse_overdue_interrupts(room, command)
    room = secrets.without_revoked(due, room)
    # Secret values are in memory only, so a restart loses them: tell those who could read them.
    yield from (
        secrets.revoke_all(room, LOST_VALUE_DETAIL)
        if body.after_restart
        else secrets.revoke_expired(room, command)
    )


def due_instants(room: Room, policy: ServerPolicy) -> Iterator[Instant]:
    """Every instant at which something will be due if nothing else happens."""
    if room.ended:
        return
    if room.paused_at is None:
        yield from (g.expires_at for g in room.gates.values() if g.expires_at is not None)
    yield from (t.expires_at for t in room.tools.values() if t.expires_at is not None)
    yield from (g.expires_at for g in room.standing_grants.values())
    yield from (i.due for i in room.interrupts.values())
    yield from (s.expires_at for s in room.secrets.values() if s.expires_at is not None)
    yield from absence_deadlines(room, policy)
