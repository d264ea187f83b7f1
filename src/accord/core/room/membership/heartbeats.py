"""Heartbeats, which are never stored."""

from collections.abc import Iterator

from accord.core.kernel.context import Command, Deciders, EventOrEffect, HeartbeatPolicy, Inactivity
from accord.core.kernel.effects import ServerNotice
from accord.core.kernel.messages import Body, Instant, Lifetime
from accord.core.kernel.role_permissions import Permission
from accord.core.kernel.timestamps import MS_PER_SECOND, to_iso
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.state import Presence, Room

PRESENCE_BY_INACTIVITY: dict[Inactivity, Presence] = {
    Inactivity.ENDED: Presence.ACTIVE,
    Inactivity.IDLE: Presence.IDLE,
    Inactivity.AWAY: Presence.AWAY,
}


class HeartbeatPing(Body, frozen=True, gc=False):
    """Ask whether the other side is alive."""

    type = "heartbeat.ping"
    needs = Permission.MEMBER
    lifetime = Lifetime.SIGNAL
    while_paused = True
    after_end = True
    free_ref = True


class HeartbeatPong(Body, frozen=True, gc=False):
    """The answer to a ping."""

    type = "heartbeat.pong"
    needs = Permission.MEMBER
    lifetime = Lifetime.SIGNAL
    while_paused = True
    after_end = True
    free_ref = True


def answer_ping(room: Room, command: Command, body: HeartbeatPing) -> Iterator[EventOrEffect]:
    """Answer the sender alone (OPEN-33)."""
    yield ServerNotice(HeartbeatPong(), frozenset({command.actor.principal}), command.message.id)


def accept_pong(room: Room, command: Command, body: HeartbeatPong) -> Iterator[EventOrEffect]:
    return iter(())


def presence_after_inactivity(
    member_id: str, last: Instant, inactivity: Inactivity
) -> PresenceUpdate:
    """The presence of a member whose last message came at `last`."""
    return PresenceUpdate(
        participant=member_id, status=PRESENCE_BY_INACTIVITY[inactivity], last_active=to_iso(last)
    )


def heartbeat_policy(room: Room) -> HeartbeatPolicy | None:
    """How often members are pinged, and after which inactivity they count as idle or away."""
    if room.config is None or room.ended:
        return None
    config = room.config
    return HeartbeatPolicy(
        config.heartbeat_interval_seconds * MS_PER_SECOND,
        config.idle_timeout_seconds * MS_PER_SECOND,
        config.away_timeout_seconds * MS_PER_SECOND,
        HeartbeatPing(),
        presence_after_inactivity,
    )


DECIDE: Deciders = {HeartbeatPing: answer_ping, HeartbeatPong: accept_pong}
