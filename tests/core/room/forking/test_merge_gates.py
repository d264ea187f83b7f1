"""Who approves a merge, and who may execute it."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.votes import GatePassed
from accord.core.room.conversation.interrupts import InterruptRaise
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.merges import MergeExecuted, MergeProposed
from accord.core.room.room_settings import GateResolution, ServerPolicy
from accord.core.room.state import Urgency
from tests.helpers.room.logged_room import failures_of, merge_execute, merge_propose
from tests.helpers.room.merge_scenarios import room_with_fork
from tests.helpers.room.scenario import (
    BOB,
    CAROL,
    CLAUDE,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_reject,
    gate_request,
    seconds_after_start,
    types_of,
)
from tests.spec import proves


@proves("OPEN-26", "PVP-14.1-2")
@pytest.mark.parametrize(
    ("who", "strategy"),
    [(CLAUDE, MergeStrategy.APPEND), (CLAUDE, MergeStrategy.REPLACE), (BOB, MergeStrategy.REPLACE)],
)
def test_merge_by_an_agent_or_by_replacing_needs_approval(
    who: Actor, strategy: MergeStrategy
) -> None:
    talk = room_with_fork()

    outcome = talk.send(who, merge_propose("aside", strategy=strategy), id="m")

    gate = gate_on(talk.room, "m")
    assert types_of(outcome) == [MergeProposed, GateOpened]
    assert (gate.action_type, gate.initiator, gate.fork) == ("merge", who.principal, None)
    assert f"{who.principal} wants to merge aside into main ({strategy}): It works" == gate.message
    with expect_refusal(Reason.WRONG_STATE, "The merge m is not approved yet"):
        talk.decide(who, merge_execute("m"))

    assert GatePassed in types_of(talk.send(CAROL, gate_approve(CAROL, "m")))
    assert MergeExecuted in types_of(talk.send(who, merge_execute("m")))


@proves("OPEN-26", "OPEN-47")
def test_members_of_the_target_approve_a_merge() -> None:
    talk = room_with_fork()
    talk.fork("Other", CAROL, CLAUDE)

    outcome = talk.send(CLAUDE, merge_propose("aside", "other"), id="m")

    assert talk.audience(outcome.records[1]) == {"alice", "carol", "claude"}
    assert "into other" in gate_on(talk.room, "m").message
    with expect_refusal(Reason.NOT_FOUND):
        talk.decide(BOB, gate_approve(BOB, "m"))
    talk.send(CAROL, gate_approve(CAROL, "m"))
    assert not talk.room.merges["m"].gated


@proves("OPEN-25")
def test_rejected_merge_cannot_be_executed_and_may_be_proposed_again() -> None:
    talk = room_with_fork()
    talk.send(CLAUDE, merge_propose("aside"), id="m")

    outcome = talk.send(CAROL, gate_reject(CAROL, "m"))

    assert [bad.related_to for bad, _ in failures_of(outcome)] == ["m"]
    with expect_refusal(Reason.GATE_FAILED, "The merge m was rejected"):
        talk.decide(CLAUDE, merge_execute("m"))
    assert talk.allows(CLAUDE, merge_propose("aside"))


@proves("OPEN-23", "OPEN-25")
def test_merge_whose_gate_times_out_is_never_approved() -> None:
    talk = room_with_fork()
    house = ServerPolicy(on_gate_timeout=GateResolution.AUTO_APPROVED)
    talk.send(CLAUDE, merge_propose("aside"), id="m", house=house)

    talk.tick(seconds_after_start(86_400))

    with expect_refusal(Reason.GATE_FAILED, "The merge m was timed out"):
        talk.decide(CLAUDE, merge_execute("m"))


@proves("OPEN-26")
def test_gate_that_the_proposer_asked_for_holds_the_merge() -> None:
    talk = room_with_fork()
    talk.send(BOB, merge_propose("aside"), id="m")
    talk.send(BOB, gate_request("m", action_type="merge"), id="g")

    with expect_refusal(Reason.WRONG_STATE, "not approved yet"):
        talk.decide(BOB, merge_execute("m"))
    talk.send(CAROL, gate_approve(CAROL, "g"))
    assert talk.allows(BOB, merge_execute("m"))


def test_merge_that_was_not_proposed_cannot_be_executed() -> None:
    with expect_refusal(Reason.NOT_FOUND, "There is no merge m"):
        room_with_fork().decide(BOB, merge_execute("m"))


def test_only_members_of_both_forks_execute_a_merge() -> None:
    talk = room_with_fork()
    merge = talk.propose_merge("aside")

    with expect_refusal(Reason.NOT_FOUND, "There is no fork aside that you are in"):
        talk.decide(CAROL, merge_execute(merge))
    assert talk.allows(BOB, merge_execute(merge))


@proves("OPEN-45")
def test_stopped_agent_neither_proposes_nor_executes_a_merge() -> None:
    talk = room_with_fork()
    talk.send(CLAUDE, merge_propose("aside"), id="m")
    talk.send(CAROL, gate_approve(CAROL, "m"))
    talk.send(BOB, InterruptRaise(Urgency.STOP, "Wait", "claude"))

    for body in (merge_execute("m"), merge_propose("aside")):
        with expect_refusal(Reason.WRONG_STATE, "claude was stopped by an interrupt"):
            talk.decide(CLAUDE, body)
    assert talk.allows(BOB, merge_execute("m"))


@proves("PVP-15.1-4")
def test_emergency_ends_the_merge_that_an_agent_waits_for() -> None:
    talk = room_with_fork()
    talk.send(CLAUDE, merge_propose("aside"), id="m")

    talk.send(BOB, InterruptRaise(Urgency.EMERGENCY, "Wait", "claude"))

    assert not talk.room.merges


@proves("PVP-16.3-2")
def test_manual_merge_is_executed_by_a_person() -> None:
    talk = room_with_fork()
    merge = talk.propose_merge("aside", strategy=MergeStrategy.MANUAL)

    with expect_refusal(Reason.FORBIDDEN, "Only a human can execute a manual merge"):
        talk.decide(CLAUDE, merge_execute(merge))
    assert talk.allows(BOB, merge_execute(merge))
