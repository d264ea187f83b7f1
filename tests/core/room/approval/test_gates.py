"""Gates: how they open, and how they end with whoever asked."""

from typing import Any

import msgspec
import pytest

from accord.core.kernel.ballot import AllOf, AnyOf, Named, Quorum
from accord.core.kernel.effects import Relay
from accord.core.kernel.limits import Limits
from accord.core.kernel.messages import Failure
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.gate_timeouts import GateTimedOut
from accord.core.room.approval.gates import GateOpened, GateRequest
from accord.core.room.approval.tool_proposals import ToolProposed
from accord.core.room.approval.votes import GateRejected
from accord.core.room.membership.leaving import MemberLeft, SessionLeave
from accord.core.room.membership.presence import PresenceChanged
from accord.core.room.room_settings import ServerPolicy
from accord.core.room.session_lifecycle import SessionEnded
from tests.helpers.room.gate_scenarios import (
    BOBS_PROMPT,
    CLAUDES_PROPOSAL,
    room_with_open_gate,
    room_with_prompt,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    T0,
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
    prompt_submit,
    script_step,
    seconds_after_start,
    session_config_update,
    session_end,
    tick_at,
    tool_execute,
    tool_propose,
    types_of,
    when,
)
from tests.spec import proves

# Opening


@proves("PVP-13.2-1", "OPEN-22", "PVP-2-6")
def test_the_server_opens_a_gate_after_the_proposal_and_under_an_id_of_its_own() -> None:
    room = given(create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER))

    facts = when(room, CLAUDE, tool_propose(), id="p")

    assert [ToolProposed, GateOpened] == types_of(facts)
    proposal, gate = facts.records
    assert (proposal.id, proposal.sender) == ("p", "claude")
    assert (gate.sender, gate.ref, gate.cause) == ("system", "p", "p")
    assert gate.id != "p"


@proves("PVP-14-1", "PVP-1.2-2")
def test_nothing_runs_while_its_gate_is_open() -> None:
    room = room_with_open_gate()

    assert has_open_gate(room, "p")
    with expect_refusal(Reason.WRONG_STATE, "not approved yet"):
        when(room, CLAUDE, tool_execute("p"))


@proves("PVP-14.4-1")
def test_a_gate_is_kept_with_its_request_its_votes_and_its_times() -> None:
    room = room_with_open_gate(
        script_step(BOB, gate_approve(BOB, "p")), default_gate_quorum=AnyOf(2)
    )

    gate = gate_on(room, "p")

    assert (gate.action_type, gate.action, gate.ballot.quorum) == ("tool", "p", AnyOf(2))
    assert (gate.timeout_seconds, gate.message) == (
        300,
        "claude wants to run run_tests: to see whether it works",
    )
    assert gate.ballot.yes == {"bob"}
    assert (gate.opened_at, gate.expires_at) == (T0, seconds_after_start(300))


@proves("PVP-14.1-1")
@pytest.mark.parametrize(
    "missing", ["action_type", "action_ref", "quorum", "timeout_seconds", "message"]
)
def test_a_request_has_all_five_fields(missing: str) -> None:
    whole = {
        "action_type": "prompt",
        "action_ref": "q",
        "quorum": {"type": "any", "count": 1},
        "timeout_seconds": 60,
        "message": "May I?",
    }
    assert msgspec.convert(whole, GateRequest) == gate_request("q")

    with pytest.raises(msgspec.ValidationError, match=missing):
        msgspec.convert({k: v for k, v in whole.items() if k != missing}, GateRequest)


@proves("PVP-14.1-2", "OPEN-26")
@pytest.mark.parametrize(
    "kind",
    [
        *("tool", "deploy", "prompt", "context_change"),
        *("session_config", "participant_add", "fork", "merge"),
    ],
)
def test_a_member_may_ask_for_a_gate_on_an_action_of_its_own(kind: Any) -> None:
    room = room_with_prompt()

    facts = when(room, BOB, gate_request("q", action_type=kind), id="g", known=BOBS_PROMPT)

    assert [GateOpened] == types_of(facts)
    gate = after(room, facts).gates["g"]
    assert (gate.action_type, gate.initiator, gate.expires_at) == (
        kind,
        "bob",
        seconds_after_start(60),
    )


@proves("PVP-14.1-2")
def test_no_other_kind_of_action_is_gated() -> None:
    body = {**msgspec.to_builtins(gate_request("q")), "action_type": "lunch"}

    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, GateRequest)


@proves("OPEN-26")
def test_a_prompt_is_not_gated_by_itself() -> None:
    assert room_with_prompt().gates == {}


@proves("OPEN-10", "OPEN-26")
def test_nobody_asks_for_a_gate_on_somebody_elses_action() -> None:
    with expect_refusal(Reason.FORBIDDEN, "an action of your own"):
        when(room_with_prompt(), ALICE, gate_request("q"), known=BOBS_PROMPT)


@proves("OPEN-10")
def test_an_observer_asks_for_no_gate() -> None:
    room = given(create_step(by=ALICE), join_step(BOB, Role.OBSERVER))

    with expect_refusal(Reason.FORBIDDEN):
        when(room, BOB, gate_request("q"), known=BOBS_PROMPT)


def test_a_gate_on_nothing_is_refused() -> None:
    with expect_refusal(Reason.MALFORMED):
        when(room_with_prompt(), BOB, gate_request("nowhere"))


@proves("OPEN-19")
def test_an_action_has_one_open_gate() -> None:
    room = room_with_prompt(script_step(BOB, gate_request("q"), id="g"))

    with expect_refusal(Reason.WRONG_STATE, "already has an open gate"):
        when(room, BOB, gate_request("q"), known=BOBS_PROMPT)
    with expect_refusal(Reason.WRONG_STATE, "already has an open gate"):
        when(room_with_open_gate(), CLAUDE, gate_request("p"), known=CLAUDES_PROPOSAL)


@proves("OPEN-25")
def test_a_dead_action_gets_no_second_gate() -> None:
    room = room_with_open_gate(script_step(BOB, gate_reject(BOB, "p")))

    with expect_refusal(Reason.WRONG_STATE, "no longer pending"):
        when(room, CLAUDE, gate_request("p"), known=CLAUDES_PROPOSAL)


def test_a_tool_that_may_run_is_not_gated_afterwards() -> None:
    room = room_with_open_gate(script_step(BOB, gate_approve(BOB, "p")))

    with expect_refusal(Reason.WRONG_STATE, "no longer pending"):
        when(room, CLAUDE, gate_request("p"), known=CLAUDES_PROPOSAL)


def test_a_room_has_a_bounded_number_of_open_gates() -> None:
    room = room_with_prompt(
        script_step(BOB, prompt_submit(), id="q2"), script_step(BOB, gate_request("q2"), id="g2")
    )

    with expect_refusal(Reason.WRONG_STATE, "1 gates are open"):
        when(
            room,
            BOB,
            gate_request("q"),
            known=BOBS_PROMPT,
            policy=ServerPolicy(limits=Limits(gates=1)),
        )


@proves("OPEN-15")
@pytest.mark.parametrize(
    "quorum",
    [
        Named(("alice", "claude")),
        AllOf((AnyOf(1), AllOf((Named(("claude",)),)))),
        AllOf((AllOf((AllOf((AllOf((AnyOf(1),)),)),)),)),
        AllOf((AllOf((AnyOf(1),) * 5), AllOf((AnyOf(1),) * 4))),
    ],
)
def test_a_quorum_that_could_never_count_is_refused(quorum: Quorum) -> None:
    with expect_refusal(Reason.MALFORMED):
        when(room_with_prompt(), BOB, gate_request("q", quorum=quorum), known=BOBS_PROMPT)
    with expect_refusal(Reason.MALFORMED):
        when(room_with_prompt(), ALICE, session_config_update(default_gate_quorum=quorum))


@proves("OPEN-15")
def test_a_gate_that_nobody_can_pass_yet_says_so() -> None:
    room = room_with_open_gate(default_gate_quorum=AnyOf(3))

    assert gate_on(room, "p").message.endswith(
        "(cannot be met yet: any 3 needs 1 more: only alice, bob can approve)"
    )
    assert has_open_gate(room, "p")


@proves("OPEN-15")
def test_the_note_fits_into_the_longest_message() -> None:
    ask = gate_request("q", quorum=Named(("zoe",)), message="x" * 4096)

    facts = when(room_with_prompt(), BOB, ask, known=BOBS_PROMPT)

    (gate,) = facts
    assert isinstance(gate, GateOpened)
    assert len(gate.said.message) == 4096
    after(room_with_prompt(), facts)


@proves("OPEN-36")
def test_a_retry_is_known_as_one_though_the_server_added_a_note() -> None:
    ask = gate_request("q", quorum=Named(("zoe",)))

    (gate,) = when(room_with_prompt(), BOB, ask, known=BOBS_PROMPT)

    assert isinstance(gate, GateOpened)
    assert gate.said != ask
    assert ask.is_retry_of(gate.said)
    assert not gate_request("q", message="Another").is_retry_of(gate.said)
    assert not ask.is_retry_of(prompt_submit())


@proves("OPEN-26")
def test_the_quorum_is_that_of_the_moment_when_the_gate_was_opened() -> None:
    room = room_with_open_gate(
        script_step(
            ALICE, session_config_update(default_gate_quorum=AnyOf(1), require_approval_for=[])
        ),
        default_gate_quorum=AnyOf(2),
    )

    room = given(script_step(BOB, gate_approve(BOB, "p")), room=room)

    assert has_open_gate(room, "p")


# Gates end with their initiator and with the session


@proves("OPEN-25")
def test_when_an_agent_goes_the_server_closes_its_gates_first() -> None:
    room = room_with_open_gate()

    facts = when(room, CLAUDE, SessionLeave(), id="bye")

    assert [GateRejected, Relay, MemberLeft, PresenceChanged] == types_of(facts)
    rejection, leave, _ = facts.records
    assert (rejection.sender, leave.sender, leave.id) == ("system", "claude", "bye")
    room = after(room, facts)
    assert (room.gates, room.tools) == ({}, {})
    with expect_refusal(Reason.WRONG_STATE, "already closed"):
        when(room, BOB, gate_approve(BOB, "p"))


def test_when_somebody_else_goes_the_gate_stays() -> None:
    assert has_open_gate(room_with_open_gate(leave_step(BOB)), "p")


@proves("OPEN-27")
def test_the_end_of_a_session_rejects_its_gates_first() -> None:
    room = room_with_open_gate(script_step(CLAUDE, tool_propose(), id="p2"))

    facts = when(room, ALICE, session_end())

    assert [GateTimedOut, Relay, GateTimedOut, Relay, SessionEnded] == types_of(facts)
    timeouts = [fact.said for fact in facts if isinstance(fact, GateTimedOut)]
    assert [said.resolution.value for said in timeouts] == ["rejected", "rejected"]
    told = [fact.body for fact in facts if isinstance(fact, Relay)]
    assert {each.detail for each in told if isinstance(each, Failure)} == {
        "The session ended before it was approved"
    }
    room = after(room, facts)
    assert (room.gates, room.tools) == ({}, {})


@proves("OPEN-27")
def test_ended_session_has_no_deadlines() -> None:
    room = room_with_open_gate(script_step(ALICE, session_end()))

    assert tick_at(room, seconds_after_start(10_000)) == []
    with expect_refusal(Reason.ENDED):
        when(room, CLAUDE, tool_execute("p"))


# Folding what is no longer there


def test_events_about_an_unknown_gate_change_nothing() -> None:
    waiting = room_with_open_gate()
    yes = when(waiting, BOB, gate_approve(BOB, "p"))
    no = when(waiting, BOB, gate_reject(BOB, "p"))
    late = tick_at(waiting, seconds_after_start(300))
    over = given(script_step(BOB, gate_reject(BOB, "p")), room=waiting)

    assert after(over, yes) == after(over, no) == after(over, late) == over
