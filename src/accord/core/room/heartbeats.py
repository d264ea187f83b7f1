"""Heartbeats: signs of life that nobody keeps."""

from collections.abc import Iterator

from accord.core.kernel.authority import May
from accord.core.kernel.log import (
    Ask,
    Beats,
    Body,
    Deciders,
    Fact,
    Instant,
    Lifetime,
    Silence,
    Tell,
)
from accord.core.kernel.times import SECOND, iso
from accord.core.room.presence import PresenceUpdate
from accord.core.room.state import Presence, Room

PRESENCE: dict[Silence, Presence] = {
    Silence.OVER: Presence.ACTIVE,
    Silence.IDLE: Presence.IDLE,
    Silence.AWAY: Presence.AWAY,
}


class HeartbeatPing(Body, frozen=True, gc=False):
    """A question: are you there."""

    type = "heartbeat.ping"
    needs = May.BELONG
    lifetime = Lifetime.SIGNAL
    while_paused = True
    after_end = True
    refs_freely = True


class HeartbeatPong(Body, frozen=True, gc=False):
    """The answer: yes."""

    type = "heartbeat.pong"
    needs = May.BELONG
    lifetime = Lifetime.SIGNAL
    while_paused = True
    after_end = True
    refs_freely = True


def ping(room: Room, ask: Ask, body: HeartbeatPing) -> Iterator[Fact]:
    """Answered to its sender alone (OPEN-33)."""
    yield Tell(HeartbeatPong(), frozenset({ask.actor.seat}), ask.message.id)


def pong(room: Room, ask: Ask, body: HeartbeatPong) -> Iterator[Fact]:
    """That it came is all it says."""
    return iter(())


def silent(seat: str, last: Instant, silence: Silence) -> PresenceUpdate:
    """What silence, or the end of it, makes of a member who was `last` heard then."""
    return PresenceUpdate(participant=seat, status=PRESENCE[silence], last_active=iso(last))


def beats(room: Room) -> Beats | None:
    """How often this room is asked, and what silence means in it."""
    if room.config is None or room.ended:
        return None
    config = room.config
    return Beats(
        config.heartbeat_interval_seconds * SECOND,
        config.idle_timeout_seconds * SECOND,
        config.away_timeout_seconds * SECOND,
        HeartbeatPing(),
        silent,
    )


DECIDE: Deciders = {HeartbeatPing: ping, HeartbeatPong: pong}
