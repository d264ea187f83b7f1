"""Who approves a merge, and who may do it."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Why
from accord.core.room.gates import GateOpened
from accord.core.room.interrupts import InterruptRaise
from accord.core.room.merges import MergeExecuted, MergeProposed
from accord.core.room.state import House, Strategy, Urgency
from accord.core.room.state import Resolution as Timeout
from accord.core.room.votes import GatePassed
from tests.helpers.forks import executes_merge, failures, merges
from tests.helpers.merging import aside
from tests.helpers.room import (
    BOB,
    CAROL,
    CLAUDE,
    after_seconds,
    approves,
    gate_on,
    kinds,
    refused,
    rejects,
    requests,
)
from tests.spec import proves


@proves("OPEN-26", "PVP-14.1-2")
@pytest.mark.parametrize(
    ("who", "strategy"),
    [(CLAUDE, Strategy.APPEND), (CLAUDE, Strategy.REPLACE), (BOB, Strategy.REPLACE)],
)
def test_agents_and_replacing_need_approval(who: Actor, strategy: Strategy) -> None:
    talk = aside()

    facts = talk.says(who, merges("aside", strategy=strategy), id="m")

    gate = gate_on(talk.room, "m")
    assert kinds(facts) == [MergeProposed, GateOpened]
    assert (gate.action_type, gate.initiator, gate.fork) == ("merge", who.seat, None)
    assert f"{who.seat} wants to merge aside into main ({strategy}): It works" == gate.message
    with refused(Why.WRONG_STATE, "The merge m is not approved yet"):
        talk.tries(who, executes_merge("m"))

    assert GatePassed in kinds(talk.says(CAROL, approves(CAROL, "m")))
    assert MergeExecuted in kinds(talk.says(who, executes_merge("m")))


@proves("OPEN-26", "OPEN-47")
def test_the_members_of_the_target_approve() -> None:
    talk = aside()
    talk.fork("Other", CAROL, CLAUDE)

    facts = talk.says(CLAUDE, merges("aside", "other"), id="m")

    assert talk.audience(facts.records[1]) == {"alice", "carol", "claude"}
    assert "into other" in gate_on(talk.room, "m").message
    with refused(Why.UNKNOWN):
        talk.tries(BOB, approves(BOB, "m"))
    talk.says(CAROL, approves(CAROL, "m"))
    assert not talk.room.merges["m"].gated


@proves("OPEN-25")
def test_a_rejected_merge_is_dead() -> None:
    talk = aside()
    talk.says(CLAUDE, merges("aside"), id="m")

    facts = talk.says(CAROL, rejects(CAROL, "m"))

    assert [bad.related_to for bad, _ in failures(facts)] == ["m"]
    with refused(Why.GATE_FAILED, "The merge m was rejected"):
        talk.tries(CLAUDE, executes_merge("m"))
    assert talk.allows(CLAUDE, merges("aside"))


@proves("OPEN-23", "OPEN-25")
def test_silence_never_merges() -> None:
    talk = aside()
    house = House(on_gate_timeout=Timeout.AUTO_APPROVED)
    talk.says(CLAUDE, merges("aside"), id="m", house=house)

    talk.passes(after_seconds(300))

    with refused(Why.GATE_FAILED, "The merge m was timed out"):
        talk.tries(CLAUDE, executes_merge("m"))


@proves("OPEN-26")
def test_a_gate_that_its_proposer_asked_for_counts() -> None:
    talk = aside()
    talk.says(BOB, merges("aside"), id="m")
    talk.says(BOB, requests("m", action_type="merge"), id="g")

    with refused(Why.WRONG_STATE, "not approved yet"):
        talk.tries(BOB, executes_merge("m"))
    talk.says(CAROL, approves(CAROL, "g"))
    assert talk.allows(BOB, executes_merge("m"))


def test_there_is_no_merge_that_was_not_proposed() -> None:
    with refused(Why.UNKNOWN, "There is no merge m"):
        aside().tries(BOB, executes_merge("m"))


def test_whoever_is_not_in_both_cannot_do_it() -> None:
    talk = aside()
    merge = talk.proposes_merge("aside")

    with refused(Why.UNKNOWN, "There is no fork aside for you here"):
        talk.tries(CAROL, executes_merge(merge))
    assert talk.allows(BOB, executes_merge(merge))


@proves("OPEN-45")
def test_a_stopped_agent_merges_nothing() -> None:
    talk = aside()
    talk.says(CLAUDE, merges("aside"), id="m")
    talk.says(CAROL, approves(CAROL, "m"))
    talk.says(BOB, InterruptRaise(Urgency.STOP, "Wait", "claude"))

    for body in (executes_merge("m"), merges("aside")):
        with refused(Why.WRONG_STATE, "claude was told to stop"):
            talk.tries(CLAUDE, body)
    assert talk.allows(BOB, executes_merge("m"))


@proves("PVP-15.1-4")
def test_an_emergency_ends_the_merge_that_an_agent_waits_for() -> None:
    talk = aside()
    talk.says(CLAUDE, merges("aside"), id="m")

    talk.says(BOB, InterruptRaise(Urgency.EMERGENCY, "Wait", "claude"))

    assert not talk.room.merges


@proves("PVP-16.3-2")
def test_a_manual_merge_is_done_by_a_person() -> None:
    talk = aside()
    merge = talk.proposes_merge("aside", strategy=Strategy.MANUAL)

    with refused(Why.FORBIDDEN, "A manual merge is for a person"):
        talk.tries(CLAUDE, executes_merge(merge))
    assert talk.allows(BOB, executes_merge(merge))
