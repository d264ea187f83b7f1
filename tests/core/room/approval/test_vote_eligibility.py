"""Who may vote at a gate, and whose own action it is."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.ballot import AnyOf, Everyone, Named
from accord.core.kernel.effects import Relay
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Capability, Kind, Role
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.votes import GateApproved, GatePassed, GateRejected
from accord.core.room.state import Presence
from tests.helpers.room.gate_scenarios import room_with_open_gate, room_with_prompt
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    after,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_reject,
    gate_request,
    given,
    has_open_gate,
    join_step,
    leave_step,
    presence_step,
    prompt_submit,
    script_step,
    session_join,
    tool_approve,
    tool_propose,
    tool_reject,
    types_of,
    when,
    with_credential,
)
from tests.spec import proves

# Who may vote


@proves("OPEN-12", "UNI-14")
@pytest.mark.parametrize("role", [Role.NAVIGATOR, Role.ADVERSARY, Role.APPROVER, Role.ADMIN])
@pytest.mark.parametrize("vote", [gate_approve, tool_approve])
def test_an_agents_approval_is_refused_whatever_its_roles(role: Role, vote: Any) -> None:
    room = room_with_open_gate(join_step(CODEX, role))

    with expect_refusal(Reason.FORBIDDEN, "Only humans approve"):
        when(room, CODEX, vote(CODEX, "p"))


@proves("OPEN-12")
def test_an_agents_capability_to_approve_is_worth_nothing() -> None:
    room = room_with_open_gate(join_step(CODEX, Role.DRIVER, capabilities=(Capability.APPROVE,)))

    with expect_refusal(Reason.FORBIDDEN, "Only humans approve"):
        when(room, CODEX, gate_approve(CODEX, "p"))


@proves("OPEN-12")
def test_a_human_who_comes_back_as_an_agent_has_no_vote_left() -> None:
    room = room_with_open_gate(
        script_step(BOB, gate_approve(BOB, "p")), default_gate_quorum=AnyOf(2)
    )
    as_agent = session_join(replace(BOB, kind=Kind.AGENT), Role.APPROVER)
    back = script_step(with_credential(BOB, Role.APPROVER), as_agent)

    room = given(back, script_step(ALICE, gate_approve(ALICE, "p")), room=room)

    assert has_open_gate(room, "p")
    assert gate_on(room, "p").ballot.yes == {"alice"}


@proves("PVP-7.2-1", "OPEN-13")
def test_a_driver_neither_approves_nor_rejects() -> None:
    room = room_with_open_gate(join_step(CAROL, Role.DRIVER))

    with expect_refusal(Reason.FORBIDDEN):
        when(room, CAROL, gate_approve(CAROL, "p"))
    with expect_refusal(Reason.FORBIDDEN, "may not reject; to stop an agent, raise an interrupt"):
        when(room, CAROL, gate_reject(CAROL, "p"))


@proves("PVP-2-5", "OPEN-13")
def test_an_observer_neither_approves_nor_rejects() -> None:
    room = room_with_open_gate(join_step(CAROL, Role.OBSERVER))

    with expect_refusal(Reason.FORBIDDEN):
        when(room, CAROL, gate_approve(CAROL, "p"))
    with expect_refusal(Reason.FORBIDDEN):
        when(room, CAROL, gate_reject(CAROL, "p"))


@proves("PVP-7.3-1", "OPEN-13")
def test_an_observer_with_the_capability_both_approves_and_rejects() -> None:
    room = room_with_open_gate(join_step(CAROL, Role.OBSERVER, capabilities=(Capability.APPROVE,)))

    assert [GateApproved, GatePassed, ToolCleared] == types_of(
        when(room, CAROL, gate_approve(CAROL, "p"))
    )
    assert [GateRejected, Relay] == types_of(when(room, CAROL, gate_reject(CAROL, "p")))


@proves("OPEN-11")
def test_nobody_votes_in_anothers_name() -> None:
    with expect_refusal(Reason.CLAIM_MISMATCH):
        when(room_with_open_gate(), BOB, gate_approve(ALICE, "p"))
    with expect_refusal(Reason.CLAIM_MISMATCH):
        when(room_with_open_gate(), BOB, gate_reject(ALICE, "p"))
    with expect_refusal(Reason.CLAIM_MISMATCH):
        when(room_with_open_gate(), BOB, tool_approve(ALICE, "p"))
    with expect_refusal(Reason.CLAIM_MISMATCH):
        when(room_with_open_gate(), BOB, tool_reject(ALICE, "p"))


# One's own action


@proves("OPEN-14", "UNI-15")
def test_initiator_cannot_approve_its_own_action() -> None:
    room = room_with_prompt(script_step(BOB, gate_request("q"), id="g"))

    with expect_refusal(Reason.FORBIDDEN, "You cannot approve your own action"):
        when(room, BOB, gate_approve(BOB, "g"))


@proves("OPEN-14")
def test_a_human_alone_may_approve_their_own_action_and_the_log_says_so() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(CLAUDE, Role.DRIVER),
        join_step(BOB, Role.DRIVER),
        script_step(ALICE, prompt_submit(), id="q"),
        script_step(ALICE, gate_request("q", quorum=Everyone()), id="g"),
    )

    facts = when(room, ALICE, gate_approve(ALICE, "g"))

    assert [GateApproved, GatePassed] == types_of(facts)[:2]
    assert isinstance(facts[0], GateApproved)
    assert facts[0].self_approved


@proves("OPEN-14")
def test_self_approval_is_decided_when_the_gate_opens() -> None:
    alone = given(
        create_step(by=ALICE),
        join_step(CLAUDE, Role.DRIVER),
        script_step(ALICE, prompt_submit(), id="q"),
        script_step(ALICE, gate_request("q"), id="g"),
        join_step(BOB, Role.APPROVER),
    )

    by_another = when(alone, BOB, gate_approve(BOB, "g"))

    assert GatePassed in types_of(when(alone, ALICE, gate_approve(ALICE, "g")))
    assert isinstance(by_another[0], GateApproved)
    assert not by_another[0].self_approved


@proves("OPEN-14")
def test_initiator_left_alone_later_still_cannot_approve() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(BOB, Role.APPROVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(ALICE, prompt_submit(), id="q"),
        script_step(ALICE, gate_request("q"), id="g"),
        leave_step(BOB),
    )

    with expect_refusal(Reason.FORBIDDEN, "You cannot approve your own action"):
        when(room, ALICE, gate_approve(ALICE, "g"))


@proves("OPEN-14")
def test_absent_voter_still_prevents_self_approval() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(BOB, Role.APPROVER),
        join_step(CLAUDE, Role.DRIVER),
        presence_step(BOB, Presence.DISCONNECTED),
        script_step(ALICE, prompt_submit(), id="q"),
        script_step(ALICE, gate_request("q"), id="g"),
    )

    with expect_refusal(Reason.FORBIDDEN, "You cannot approve your own action"):
        when(room, ALICE, gate_approve(ALICE, "g"))


@proves("OPEN-14")
def test_an_agent_alone_with_itself_never_approves() -> None:
    room = given(
        create_step(by=CLAUDE),
        script_step(CLAUDE, tool_propose(), id="p"),
    )

    with expect_refusal(Reason.FORBIDDEN):
        when(room, CLAUDE, gate_approve(CLAUDE, "p"))
    assert gate_on(room, "p").message.endswith("(no participant can approve this yet)")


@proves("OPEN-14", "OPEN-15")
def test_an_initiator_whom_the_quorum_names_blocks_its_own_gate() -> None:
    room = room_with_prompt(
        script_step(BOB, gate_request("q", quorum=Named(("alice", "bob"))), id="g")
    )

    room = given(script_step(ALICE, gate_approve(ALICE, "g")), room=room)

    assert has_open_gate(room, "q")


@proves("OPEN-13")
def test_an_initiator_may_withdraw_its_own_action() -> None:
    facts = when(room_with_open_gate(), CLAUDE, gate_reject(CLAUDE, "p", "I have a better idea"))

    assert [GateRejected, Relay] == types_of(facts)
    assert not after(room_with_open_gate(), facts).tools
