"""What a participant reports to the room and nobody keeps."""

from collections.abc import Iterator
from typing import Any, Literal

from accord.core.kernel.authority import Kind, May
from accord.core.kernel.log import Ask, Body, Deciders, Fact, Lifetime, Say
from accord.core.room.fields import Id, Short
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
    needs = May.BELONG
    lifetime = Lifetime.SIGNAL
    while_paused = True
    after_end = True  # PVP 6.5
    scoped = True

    code: ErrorCode
    message: Short
    recoverable: bool
    details: dict[str, Any] | None = None
    related_to: Id | None = None


def report(room: Room, ask: Ask, body: ErrorReport) -> Iterator[Fact]:
    """An agent's own failure concerns the room; any other error is its sender's (OPEN-49)."""
    if body.code == "AGENT_ERROR" and room.members[ask.actor.seat].kind is Kind.AGENT:
        fork = ask.message.fork
        yield Say(body, None if fork is None else room.seats(fork))


DECIDE: Deciders = {ErrorReport: report}
