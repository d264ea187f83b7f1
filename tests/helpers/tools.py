"""A meeting in which an agent proposes tools."""

from typing import Any

from accord.core.kernel.authority import Role
from accord.core.room.state import Room
from tests.helpers.room import (
    ALICE,
    CLAUDE,
    CODEX,
    Step,
    approves,
    given,
    joined,
    opened,
    proposes,
    step,
)


def meeting(*script: Step, **config: Any) -> Room:
    """Alice is admin; Claude and Codex drive."""
    return given(
        opened(by=ALICE, **config),
        joined(CLAUDE, Role.DRIVER),
        joined(CODEX, Role.DRIVER),
        *script,
    )


def approved(*script: Step) -> Room:
    """Claude's proposal `p` was approved."""
    return meeting(step(CLAUDE, proposes(), id="p"), step(ALICE, approves(ALICE, "p")), *script)
