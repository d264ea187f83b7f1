"""Rooms with an open gate, or without one."""

from typing import Any

from accord.core.kernel.role_permissions import Role
from accord.core.room.state import Room
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    Step,
    create_step,
    given,
    join_step,
    prompt_submit,
    script_step,
    tool_propose,
    when,
)


def room_with_open_gate(*script: Step, **config: Any) -> Room:
    """A room where Alice is admin, Bob approver, and Claude's proposal `p` waits at its gate."""
    return given(
        create_step(by=ALICE, **config),
        join_step(BOB, Role.APPROVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        *script,
    )


def room_with_prompt(*script: Step) -> Room:
    """A room where Alice is admin and Bob submitted prompt `q`; nothing is gated."""
    return given(
        create_step(by=ALICE),
        join_step(BOB, Role.DRIVER, Role.NAVIGATOR),
        join_step(CLAUDE, Role.DRIVER),
        script_step(BOB, prompt_submit(), id="q"),
        *script,
    )


BOBS_PROMPT = when(
    given(create_step(by=ALICE), join_step(BOB, Role.DRIVER), join_step(CLAUDE, Role.DRIVER)),
    BOB,
    prompt_submit(),
    id="q",
).records
CLAUDES_PROPOSAL = when(
    given(create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER)), CLAUDE, tool_propose(), id="p"
).records
