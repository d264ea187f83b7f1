"""Several options of which one is chosen."""

from typing import Any

import pytest

from accord.core.kernel.ballot import AnyOf
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.votes import GateReject, GateRejected
from accord.core.room.room_settings import Category, GateResolution, ServerPolicy
from accord.core.room.state import Room
from tests.helpers.room.logged_room import LoggedRoom
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    Step,
    after,
    expect_refusal,
    gate_on,
    gate_reject,
    given,
    has_open_gate,
    script_step,
    seconds_after_start,
    tick_at,
    tool_approve,
    tool_propose,
    when,
)
from tests.helpers.room.tool_scenarios import room_with_two_agents
from tests.spec import proves


def option(of: Any, **more: Any) -> Any:
    """A proposal that is an alternative to another."""
    return tool_propose(metadata={"option_of": of}, **more)


def three_options(*script: Step, policy: ServerPolicy | None = None, **config: Any) -> Room:
    """Claude proposes `a`, or `b`, or `c`."""
    steps = (
        script_step(CLAUDE, tool_propose(), id="a"),
        script_step(CLAUDE, option("a"), id="b"),
        script_step(CLAUDE, option("a"), id="c"),
        *script,
    )
    room = room_with_two_agents(**config)
    return given(*steps, room=room) if policy is None else given(*steps, room=room, policy=policy)


@proves("OPEN-21")
def test_every_option_is_gated() -> None:
    room = room_with_two_agents(script_step(CLAUDE, tool_propose(), id="a"))

    facts = when(room, CLAUDE, option("a", category=Category.FILE_READ, tool_name="read_file"))

    assert any(isinstance(fact, GateOpened) for fact in facts)


@pytest.mark.parametrize("chosen", ["a", "b", "c"])
def test_when_one_passes_the_others_are_rejected(chosen: str) -> None:
    room = three_options()

    facts = when(room, ALICE, tool_approve(ALICE, chosen))
    rejected = [f.said for f in facts if isinstance(f, GateRejected)]
    room = after(room, facts)

    reasons = {said.reason for said in rejected if isinstance(said, GateReject)}
    assert reasons == {"chose: run_tests: to see whether it works"}
    assert {*room.tools} == {chosen}
    assert room.tools[chosen].grant is not None
    assert room.gates == {}


def test_a_vote_that_is_not_enough_chooses_nothing() -> None:
    room = three_options(default_gate_quorum=AnyOf(2))
    room = given(script_step(ALICE, tool_approve(ALICE, "b")), room=room)

    assert len(room.gates) == 3


def test_a_rejected_option_leaves_the_others() -> None:
    room = three_options(script_step(ALICE, gate_reject(ALICE, "b")))

    assert {gate.action for gate in room.gates.values()} == {"a", "c"}


def test_other_proposals_of_the_agent_are_no_options() -> None:
    room = three_options(script_step(CLAUDE, tool_propose(), id="other"))

    room = given(script_step(ALICE, tool_approve(ALICE, "a")), room=room)

    assert has_open_gate(room, "other")


@pytest.mark.parametrize("of", ["unknown", "b", "decided", "codex", 7, None, ["a"]])
def test_an_option_names_the_agent_s_own_first_undecided_proposal(of: Any) -> None:
    room = three_options(
        script_step(CODEX, tool_propose(CODEX), id="codex"),
        script_step(CLAUDE, tool_propose(), id="decided"),
        script_step(ALICE, tool_approve(ALICE, "decided")),
    )

    with expect_refusal(Reason.MALFORMED, "option_of must name your first proposal"):
        when(room, CLAUDE, option(of))


def test_an_option_is_in_the_fork_of_the_first() -> None:
    talk = LoggedRoom.with_members((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.send(CLAUDE, tool_propose(), id="a")

    with expect_refusal(Reason.MALFORMED, "in this fork"):
        talk.decide(CLAUDE, option("a"), fork=fork)


@proves("OPEN-23")
def test_silence_chooses_none_of_several_options() -> None:
    policy = ServerPolicy(gate_seconds=300, on_gate_timeout=GateResolution.AUTO_APPROVED)
    room = three_options(policy=policy)
    assert gate_on(room, "a").on_timeout is GateResolution.AUTO_APPROVED

    room = after(room, tick_at(room, seconds_after_start(300), policy=policy))

    assert (room.gates, room.tools) == ({}, {})
