"""Prompts: what people ask of agents."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.conversation.prompts import PromptConfig, PromptSubmit, PromptSubmitted
from accord.core.room.state import Room
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    after,
    create_step,
    expect_refusal,
    given,
    join_step,
    leave_step,
    prompt_submit,
    when,
)
from tests.spec import proves

R = Role


def a_team(role: Role = R.DRIVER) -> Room:
    """Alice, Bob in this role, and two agents."""
    return given(
        create_step(by=ALICE),
        join_step(BOB, role),
        join_step(CLAUDE, R.DRIVER),
        join_step(CODEX, R.DRIVER),
    )


@proves("PVP-11.2-1", "PVP-11.2-2", "PVP-2-4")
def test_a_driver_asks_an_agent_with_all_that_a_prompt_can_say() -> None:
    prompt = PromptSubmit(
        content="Implement it",
        target_agent="claude",
        contributors=("alice", "bob", "somebody else"),
        context_keys=("requirements", "nobody has this"),
        config=PromptConfig(
            temperature=0.5,
            max_tokens=100,
            tools_allowed=("bash",),
            model="m",
            provider_params={"top_p": 1},
        ),
    )

    assert when(a_team(), BOB, prompt) == [PromptSubmitted(said=prompt)]


def test_prompt_does_not_change_the_state() -> None:
    room = a_team()

    assert after(room, when(room, BOB, prompt_submit())) is room


@proves("PVP-7.2-1", "PVP-7.2-2", "PVP-7.2-3", "PVP-7.2-4", "PVP-7.2-5", "PVP-2-4", "PVP-2-5")
@pytest.mark.parametrize(
    ("role", "may"),
    [
        (R.DRIVER, True),
        (R.ADVERSARY, True),
        (R.NAVIGATOR, False),
        (R.APPROVER, False),
        (R.OBSERVER, False),
    ],
)
def test_only_some_roles_prompt(role: Role, may: bool) -> None:
    room = a_team(role)

    if may:
        assert when(room, BOB, prompt_submit())
        return
    with expect_refusal(
        Reason.FORBIDDEN, "bob may not send prompt.submit: it needs the right to prompt"
    ):
        when(room, BOB, prompt_submit())


@proves("OPEN-9", "PVP-7.3-1")
def test_the_capability_to_prompt_adds_to_any_role() -> None:
    room = given(
        create_step(),
        join_step(CLAUDE, R.DRIVER),
        join_step(BOB, R.OBSERVER, capabilities=(Capability.PROMPT,)),
    )

    assert when(room, BOB, prompt_submit())


def test_an_agent_may_ask_another_agent() -> None:
    assert when(a_team(), CODEX, prompt_submit(CLAUDE))


@proves("PVP-17-5")
@pytest.mark.parametrize("target", [ALICE, BOB, Actor("nobody", CLAUDE.kind), CODEX])
def test_a_prompt_is_for_an_agent_that_is_here(target: Actor) -> None:
    room = given(leave_step(CODEX), room=a_team())

    with expect_refusal(Reason.NO_MEMBER, f"{target.principal} is not an agent in this session"):
        when(room, BOB, prompt_submit(target))
