"""Errors that participants report to the room; relayed, never stored."""

from collections.abc import Iterator
from typing import Any, Literal

from accord.core.kernel.context import Command, Deciders, EventOrEffect
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Body, Lifetime
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.room.field_types import Id, ShortText
from accord.core.room.state import Room

ErrorCode = Literal[
    "INVALID_MESSAGE",
    "UNAUTHORIZED",
    "SESSION_NOT_FOUND",
    "PARTICIPANT_NOT_FOUND",
    "GATE_FAILED",
    "TIMEOUT",
    "RATE_LIMITED",
    "CONTEXT_TOO_LARGE",
    "INVALID_STATE",
    "TRANSPORT_ERROR",
    "AGENT_ERROR",
    "INTERNAL_ERROR",
]


class ErrorReport(Body, frozen=True, omit_defaults=True, gc=False):
    """Something went wrong at a participant's end."""

    type = "error"
    needs = Permission.MEMBER
    lifetime = Lifetime.SIGNAL
    while_paused = True
    after_end = True  # PVP 6.5
    forkable = True

    code: ErrorCode
    message: ShortText
    recoverable: bool
    details: dict[str, Any] | None = None
    related_to: Id | None = None


def relay_agent_error(room: Room, command: Command, body: ErrorReport) -> Iterator[EventOrEffect]:
    """Relay an agent's own failure to the room; other errors are not relayed (OPEN-49)."""
    if body.code == "AGENT_ERROR" and room.members[command.actor.principal].kind is Kind.AGENT:
        fork = command.message.fork
        yield Relay(body, None if fork is None else room.members_in(fork))


DECIDE: Deciders = {ErrorReport: relay_agent_error}
