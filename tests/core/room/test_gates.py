"""Gates: how they open, and how they end with whoever asked."""

from typing import Any

import msgspec
import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import AllOf, AnyOf, Named, Quorum
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import Failure, Say
from accord.core.kernel.refusal import Why
from accord.core.room.gates import GateOpened, GateRequest
from accord.core.room.lifecycle import SessionEnded
from accord.core.room.members import Left, SessionLeave
from accord.core.room.state import House
from accord.core.room.timeouts import GateTimedOut
from accord.core.room.tools import ToolProposed
from accord.core.room.votes import Rejected
from tests.helpers.gates import BOBS_PROMPT, CLAUDES_PROPOSAL, asking, prompted
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    T0,
    after,
    after_seconds,
    approves,
    configures,
    ends,
    executes,
    gate_on,
    given,
    joined,
    kinds,
    left,
    opened,
    prompts,
    proposes,
    refused,
    rejects,
    requests,
    step,
    ticks,
    waits,
    when,
)
from tests.spec import proves

# Opening


@proves("PVP-13.2-1", "OPEN-22", "PVP-2-6")
def test_the_server_opens_a_gate_after_the_proposal_and_under_an_id_of_its_own() -> None:
    room = given(opened(by=ALICE), joined(CLAUDE, Role.DRIVER))

    facts = when(room, CLAUDE, proposes(), id="p")

    assert [ToolProposed, GateOpened] == kinds(facts)
    proposal, gate = facts.records
    assert (proposal.id, proposal.sender) == ("p", "claude")
    assert (gate.sender, gate.ref, gate.cause) == ("system", "p", "p")
    assert gate.id != "p"


@proves("PVP-14-1", "PVP-1.2-2")
def test_nothing_runs_while_its_gate_is_open() -> None:
    room = asking()

    assert waits(room, "p")
    with refused(Why.WRONG_STATE, "not approved yet"):
        when(room, CLAUDE, executes("p"))


@proves("PVP-14.4-1")
def test_a_gate_is_kept_with_its_request_its_votes_and_its_times() -> None:
    room = asking(step(BOB, approves(BOB, "p")), default_gate_quorum=AnyOf(2))

    gate = gate_on(room, "p")

    assert (gate.action_type, gate.action, gate.ballot.quorum) == ("tool", "p", AnyOf(2))
    assert (gate.timeout_seconds, gate.message) == (
        300,
        "claude wants to run run_tests: to see whether it works",
    )
    assert gate.ballot.yes == {"bob"}
    assert (gate.opened_at, gate.expires_at) == (T0, after_seconds(300))


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
    assert msgspec.convert(whole, GateRequest) == requests("q")

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
    room = prompted()

    facts = when(room, BOB, requests("q", action_type=kind), id="g", known=BOBS_PROMPT)

    assert [GateOpened] == kinds(facts)
    gate = after(room, facts).gates["g"]
    assert (gate.action_type, gate.initiator, gate.expires_at) == (kind, "bob", after_seconds(60))


@proves("PVP-14.1-2")
def test_no_other_kind_of_action_is_gated() -> None:
    body = {**msgspec.to_builtins(requests("q")), "action_type": "lunch"}

    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, GateRequest)


@proves("OPEN-26")
def test_a_prompt_is_not_gated_by_itself() -> None:
    assert prompted().gates == {}


@proves("OPEN-10", "OPEN-26")
def test_nobody_asks_for_a_gate_on_somebody_elses_action() -> None:
    with refused(Why.FORBIDDEN, "an action of one's own"):
        when(prompted(), ALICE, requests("q"), known=BOBS_PROMPT)


@proves("OPEN-10")
def test_an_observer_asks_for_no_gate() -> None:
    room = given(opened(by=ALICE), joined(BOB, Role.OBSERVER))

    with refused(Why.FORBIDDEN):
        when(room, BOB, requests("q"), known=BOBS_PROMPT)


def test_a_gate_on_nothing_is_refused() -> None:
    with refused(Why.MALFORMED):
        when(prompted(), BOB, requests("nowhere"))


@proves("OPEN-19")
def test_an_action_has_one_open_gate() -> None:
    room = prompted(step(BOB, requests("q"), id="g"))

    with refused(Why.WRONG_STATE, "open gate already"):
        when(room, BOB, requests("q"), known=BOBS_PROMPT)
    with refused(Why.WRONG_STATE, "open gate already"):
        when(asking(), CLAUDE, requests("p"), known=CLAUDES_PROPOSAL)


@proves("OPEN-25")
def test_a_dead_action_gets_no_second_gate() -> None:
    room = asking(step(BOB, rejects(BOB, "p")))

    with refused(Why.WRONG_STATE, "not pending any more"):
        when(room, CLAUDE, requests("p"), known=CLAUDES_PROPOSAL)


def test_a_tool_that_may_run_is_not_gated_afterwards() -> None:
    room = asking(step(BOB, approves(BOB, "p")))

    with refused(Why.WRONG_STATE, "not pending any more"):
        when(room, CLAUDE, requests("p"), known=CLAUDES_PROPOSAL)


def test_a_room_has_a_bounded_number_of_open_gates() -> None:
    room = prompted(step(BOB, prompts(), id="q2"), step(BOB, requests("q2"), id="g2"))

    with refused(Why.WRONG_STATE, "1 gates are open"):
        when(room, BOB, requests("q"), known=BOBS_PROMPT, house=House(limits=Limits(gates=1)))


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
    with refused(Why.MALFORMED):
        when(prompted(), BOB, requests("q", quorum=quorum), known=BOBS_PROMPT)
    with refused(Why.MALFORMED):
        when(prompted(), ALICE, configures(default_gate_quorum=quorum))


@proves("OPEN-15")
def test_a_gate_that_nobody_can_pass_yet_says_so() -> None:
    room = asking(default_gate_quorum=AnyOf(3))

    assert gate_on(room, "p").message.endswith("(nobody here can approve this yet)")
    assert waits(room, "p")


@proves("OPEN-15")
def test_the_note_fits_into_the_longest_message() -> None:
    ask = requests("q", quorum=Named(("zoe",)), message="x" * 4096)

    facts = when(prompted(), BOB, ask, known=BOBS_PROMPT)

    (gate,) = facts
    assert isinstance(gate, GateOpened)
    assert len(gate.said.message) == 4096
    after(prompted(), facts)


@proves("OPEN-36")
def test_a_retry_is_known_as_one_though_the_server_added_a_note() -> None:
    ask = requests("q", quorum=Named(("zoe",)))

    (gate,) = when(prompted(), BOB, ask, known=BOBS_PROMPT)

    assert isinstance(gate, GateOpened)
    assert gate.said != ask
    assert ask.repeats(gate.said)
    assert not requests("q", message="Another").repeats(gate.said)
    assert not ask.repeats(prompts())


@proves("OPEN-26")
def test_the_quorum_is_that_of_the_moment_when_the_gate_was_opened() -> None:
    room = asking(
        step(ALICE, configures(default_gate_quorum=AnyOf(1), require_approval_for=[])),
        default_gate_quorum=AnyOf(2),
    )

    room = given(step(BOB, approves(BOB, "p")), room=room)

    assert waits(room, "p")


# Gates end with their initiator and with the session


@proves("OPEN-25")
def test_when_an_agent_goes_the_server_closes_its_gates_first() -> None:
    room = asking()

    facts = when(room, CLAUDE, SessionLeave(), id="bye")

    assert [Rejected, Say, Left] == kinds(facts)
    rejection, leave = facts.records
    assert (rejection.sender, leave.sender, leave.id) == ("system", "claude", "bye")
    room = after(room, facts)
    assert (room.gates, room.tools) == ({}, {})
    with refused(Why.WRONG_STATE, "closed already"):
        when(room, BOB, approves(BOB, "p"))


def test_when_somebody_else_goes_the_gate_stays() -> None:
    assert waits(asking(left(BOB)), "p")


@proves("OPEN-27")
def test_the_end_of_a_session_rejects_its_gates_first() -> None:
    room = asking(step(CLAUDE, proposes(), id="p2"))

    facts = when(room, ALICE, ends())

    assert [GateTimedOut, Say, GateTimedOut, Say, SessionEnded] == kinds(facts)
    timeouts = [fact.said for fact in facts if isinstance(fact, GateTimedOut)]
    assert [said.resolution.value for said in timeouts] == ["rejected", "rejected"]
    told = [fact.body for fact in facts if isinstance(fact, Say)]
    assert {each.detail for each in told if isinstance(each, Failure)} == {
        "The session ended first"
    }
    room = after(room, facts)
    assert (room.gates, room.tools) == ({}, {})


@proves("OPEN-27")
def test_nothing_is_due_after_the_end() -> None:
    room = asking(step(ALICE, ends()))

    assert ticks(room, after_seconds(10_000)) == []
    with refused(Why.ENDED):
        when(room, CLAUDE, executes("p"))


# Folding what is no longer there


def test_a_fact_about_a_gate_that_is_gone_changes_nothing() -> None:
    waiting = asking()
    yes = when(waiting, BOB, approves(BOB, "p"))
    no = when(waiting, BOB, rejects(BOB, "p"))
    late = ticks(waiting, after_seconds(300))
    over = given(step(BOB, rejects(BOB, "p")), room=waiting)

    assert after(over, yes) == after(over, no) == after(over, late) == over
