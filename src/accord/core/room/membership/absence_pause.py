"""Pauses: with the policy `pause_session`, a session waits for absent members (OPEN-18)."""

from msgspec.structs import replace

from accord.core.kernel.role_permissions import Permission
from accord.core.room.room_settings import AbsencePolicy
from accord.core.room.state import ABSENT_PRESENCES, Room


def update_pause(room: Room, at: int) -> Room:
    """Pause or resume as the policy and the members' presence require."""
    config = room.config
    enabled = config is not None and config.on_participant_timeout is AbsencePolicy.PAUSE_SESSION
    somebody_absent = any(
        m.presence in ABSENT_PRESENCES and Permission.PARTICIPATE in m.may
        for m in room.members.values()
    )
    if enabled and somebody_absent:
        return room if room.paused_at is not None else replace(room, paused_at=at)
    return room if room.paused_at is None else resume_gates(room, at - room.paused_at)


def resume_gates(room: Room, pause: int) -> Room:
    """Resume, with the deadlines of open gates moved by the length of the pause."""
    gates = {
        gate.id: replace(gate, expires_at=gate.expires_at + pause)
        for gate in room.gates.values()
        if gate.expires_at is not None
    }
    return replace(room, gates={**room.gates, **gates}, paused_at=None)
