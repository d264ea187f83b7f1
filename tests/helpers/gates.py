"""Rooms in which something waits at a gate, or might."""

from typing import Any

from accord.core.kernel.authority import Role
from accord.core.room.state import Room
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    Step,
    given,
    joined,
    opened,
    prompts,
    proposes,
    step,
    when,
)


def asking(*script: Step, **config: Any) -> Room:
    """Alice is admin, Bob approver; Claude has proposed `p`, which waits at its gate."""
    return given(
        opened(by=ALICE, **config),
        joined(BOB, Role.APPROVER),
        joined(CLAUDE, Role.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        *script,
    )


def prompted(*script: Step) -> Room:
    """Alice is admin and Bob drives; Bob has submitted the prompt `q` and nothing is gated."""
    return given(
        opened(by=ALICE),
        joined(BOB, Role.DRIVER, Role.NAVIGATOR),
        joined(CLAUDE, Role.DRIVER),
        step(BOB, prompts(), id="q"),
        *script,
    )


BOBS_PROMPT = when(
    given(opened(by=ALICE), joined(BOB, Role.DRIVER), joined(CLAUDE, Role.DRIVER)),
    BOB,
    prompts(),
    id="q",
).records
CLAUDES_PROPOSAL = when(
    given(opened(by=ALICE), joined(CLAUDE, Role.DRIVER)), CLAUDE, proposes(), id="p"
).records
