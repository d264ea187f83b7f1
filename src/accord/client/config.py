"""The rules of a session that nobody has thought about yet."""

from typing import Any

import msgspec

from accord.core.kernel.ballot import AnyOf
from accord.core.room.state import Category, OnTimeout, SessionConfig

USUAL = SessionConfig(
    require_approval_for=tuple(
        each for each in Category if each not in {Category.FILE_READ, Category.ALL}
    ),
    default_gate_quorum=AnyOf(1),
    allow_forks=True,
    max_participants=10,
    ordering_mode="total",
    on_participant_timeout=OnTimeout.SKIP,
    heartbeat_interval_seconds=30,
    idle_timeout_seconds=120,
    away_timeout_seconds=300,
)


def usual_config(**changes: Any) -> SessionConfig:
    """Everything but reading files is gated and any one person may approve, save for `changes`."""
    return msgspec.convert({**msgspec.to_builtins(USUAL), **changes}, SessionConfig)
