"""Pauses: a room waits for those it cannot go on without (OPEN-18)."""

from msgspec.structs import replace

from accord.core.kernel.authority import May
from accord.core.room.state import ABSENT, OnTimeout, Room


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
