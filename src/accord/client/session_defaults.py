"""The settings of a session that is created without any."""

from typing import Any

import msgspec

from accord.core.kernel.ballot import AnyOf
from accord.core.room.approval.gates import GATE_TIMEOUT_KEY
from accord.core.room.room_settings import AbsencePolicy, Category, SessionConfig

DEFAULT_CONFIG = SessionConfig(
    require_approval_for=tuple(
        category for category in Category if category not in {Category.FILE_READ, Category.ALL}
    ),
    default_gate_quorum=AnyOf(1),
    allow_forks=True,
    max_participants=10,
    ordering_mode="total",
    on_participant_timeout=AbsencePolicy.WAIT,
    heartbeat_interval_seconds=30,
    idle_timeout_seconds=120,
    away_timeout_seconds=300,
)


def default_config(**changes: Any) -> SessionConfig:
    """Everything but reading files needs one person's approval; `changes` override settings."""
    return msgspec.convert({**msgspec.to_builtins(DEFAULT_CONFIG), **changes}, SessionConfig)


def gate_time_metadata(seconds: int | None) -> dict[str, Any] | None:
    """The metadata that set how long gates stay open; None for the default."""
    return None if seconds is None else {GATE_TIMEOUT_KEY: seconds}
