"""Rooms in which an agent proposes tools."""

from typing import Any

from accord.core.kernel.role_permissions import Role
from accord.core.room.state import Room
from tests.helpers.room.scenario import (
    ALICE,
    CLAUDE,
    CODEX,
    Step,
    create_step,
    gate_approve,
    given,
    join_step,
    script_step,
    tool_propose,
)


def room_with_two_agents(*script: Step, **config: Any) -> Room:
    """A room where Alice is admin, and Claude and Codex drive."""
    return given(
        create_step(by=ALICE, **config),
        join_step(CLAUDE, Role.DRIVER),
        join_step(CODEX, Role.DRIVER),
        *script,
    )


def room_with_approved_tool(*script: Step) -> Room:
    """The same room with Claude's proposal `p` approved."""
    return room_with_two_agents(
        script_step(CLAUDE, tool_propose(), id="p"),
        script_step(ALICE, gate_approve(ALICE, "p")),
        *script,
    )
