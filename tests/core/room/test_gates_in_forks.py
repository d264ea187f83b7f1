"""Gates and tools inside forks: an affair of their members alone."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import AnyOf, Everyone, Quorum
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Why
from accord.core.room.gates import GateOpened
from accord.core.room.grants import ToolCleared
from accord.core.room.state import Category, House, Resolution
from accord.core.room.timeouts import GateTimedOut
from accord.core.room.tools import ToolExpired
from accord.core.room.votes import GatePassed
from tests.helpers.forks import Talk, failures, seats
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    after_seconds,
    approves,
    approves_tool,
    ends,
    executes,
    finishes,
    gate_on,
    kinds,
    left,
    may_run,
    prints,
    prompts,
    proposes,
    refused,
    rejects,
    rejects_tool,
    requests,
)
from tests.spec import proves

R = Role
INSIDE = seats("bob", "claude")


def a_talk(quorum: Quorum | None = None, **config: Any) -> tuple[Talk, str]:
    """Bob and Claude are in a fork; Alice and Carol could approve, too, but are outside."""
    talk = Talk.of(
        (BOB, R.NAVIGATOR),
        (CAROL, R.APPROVER),
        (CLAUDE, R.DRIVER),
        (CODEX, R.DRIVER),
        default_gate_quorum=quorum or AnyOf(1),
        **config,
    )
    return talk, talk.fork("Aside", CLAUDE, by=BOB)


def asked(quorum: Quorum | None = None) -> tuple[Talk, str]:
    """Claude's proposal `p` waits in the fork."""
    talk, fork = a_talk(quorum)
    talk.says(CLAUDE, proposes(), id="p", fork=fork)
    return talk, fork


def approved() -> tuple[Talk, str]:
    talk, fork = asked()
    talk.says(BOB, approves(BOB, "p"))
    return talk, fork


# Who is asked


@proves("OPEN-47", "PVP-16.1-3")
def test_the_members_are_asked_and_nobody_else_hears_of_it() -> None:
    talk, fork = a_talk(Everyone())

    facts = talk.says(CLAUDE, proposes(), id="p", fork=fork)

    assert talk.hear(facts) == INSIDE
    gate = gate_on(talk.room, "p")
    assert (gate.fork, gate.ballot.roll) == (fork, seats("bob"))


@proves("OPEN-47")
@pytest.mark.parametrize("vote", [approves, approves_tool])
def test_a_member_approves_with_or_without_the_fork_in_the_envelope(vote: Any) -> None:
    for envelope in ({}, {"fork": "aside"}):
        talk, _ = asked(Everyone())

        facts = talk.says(BOB, vote(BOB, "p"), **envelope)

        assert kinds(facts)[1:] == [GatePassed, ToolCleared]
        assert {record.fork for record in facts.records} == {"aside"}
        assert talk.hear(facts) == INSIDE
        assert may_run(talk.room, "p")


@proves("OPEN-47", "OPEN-49")
@pytest.mark.parametrize("who", [ALICE, CAROL])
@pytest.mark.parametrize("say", [approves, rejects, approves_tool, rejects_tool])
def test_for_those_outside_there_is_no_gate_to_vote_on(who: Actor, say: Any) -> None:
    talk, _ = asked()
    gate = gate_on(talk.room, "p").id

    for name in ("p", gate):
        with refused(Why.UNKNOWN, f"^There is no open gate {name}$"):
            talk.tries(who, say(who, name))
        with refused(Why.MALFORMED, f"^No such message here: {name}$"):
            talk.tries(who, say(who, "other"), ref=name)


@proves("OPEN-47", "OPEN-49")
def test_for_those_outside_there_never_was_one() -> None:
    talk, _ = asked()
    gate = gate_on(talk.room, "p").id
    talk.says(BOB, rejects(BOB, "p"))

    for name in ("p", gate):
        with refused(Why.UNKNOWN, "There is no open gate"):
            talk.tries(ALICE, approves(ALICE, name))
        with refused(Why.WRONG_STATE, "is closed already: rejected"):
            talk.tries(BOB, approves(BOB, name))


@proves("OPEN-47", "OPEN-49")
def test_for_those_outside_there_is_no_tool_that_waits_for_nobody() -> None:
    talk, fork = a_talk()
    talk.says(CLAUDE, proposes(category=Category.FILE_READ), id="p", fork=fork)

    with refused(Why.UNKNOWN, "There is no open gate p"):
        talk.tries(ALICE, approves(ALICE, "p"))
    with refused(Why.WRONG_STATE, "p waits for nobody's approval"):
        talk.tries(BOB, approves(BOB, "p"))


@proves("OPEN-47")
def test_approvals_from_outside_are_not_needed_either() -> None:
    talk, _ = asked(AnyOf(2))

    assert "nobody here can approve" in gate_on(talk.room, "p").message


@proves("OPEN-47")
def test_a_vote_is_cast_where_the_gate_is() -> None:
    talk, fork = a_talk()
    talk.says(CLAUDE, proposes(), id="trunk's")
    other = talk.fork("Other", CLAUDE, by=BOB)
    talk.says(CLAUDE, proposes(), id="fork's", fork=fork)

    for name, elsewhere in (("trunk's", fork), ("fork's", other)):
        with refused(Why.WRONG_STATE, f"{name} is not in the fork {elsewhere}"):
            talk.tries(BOB, approves(BOB, name), fork=elsewhere)


def test_the_only_person_in_a_fork_who_can_approve_is_on_their_own() -> None:
    """OPEN-14, in a fork."""
    talk, _ = a_talk()
    alone = talk.fork("Solo", CLAUDE, by=ALICE)
    talk.says(ALICE, prompts(), id="mine", fork=alone)

    talk.says(ALICE, requests("mine"), fork=alone, id="g")
    facts = talk.says(ALICE, approves(ALICE, "g"))

    assert GatePassed in kinds(facts)
    assert talk.hear(facts) == {"alice", "claude"}


def test_a_gate_that_a_member_asks_for_in_a_fork_is_the_forks() -> None:
    talk, fork = a_talk()
    talk.says(CLAUDE, prompts(CLAUDE), id="q", fork=fork)

    facts = talk.says(CLAUDE, requests("q"), id="g", fork=fork)

    assert kinds(facts) == [GateOpened]
    assert talk.readers("g") == INSIDE
    talk.says(BOB, rejects(BOB, "g"))
    with refused(Why.WRONG_STATE, "q is not pending any more"):
        talk.tries(CLAUDE, requests("q"), fork=fork)


def test_a_gate_is_where_its_action_is() -> None:
    """Else those outside would hear what becomes of it."""
    talk, fork = a_talk()
    talk.says(CLAUDE, prompts(CLAUDE), id="inside", fork=fork)
    talk.says(CLAUDE, prompts(CLAUDE), id="outside")

    talk.says(CLAUDE, requests("inside"), id="g")

    assert talk.readers("g") == INSIDE
    with refused(Why.WRONG_STATE, f"outside is not in the fork {fork}"):
        talk.tries(CLAUDE, requests("outside"), fork=fork)


@proves("OPEN-48")
def test_no_gate_is_opened_in_a_merged_fork() -> None:
    talk, fork = a_talk()
    talk.says(CLAUDE, prompts(CLAUDE), id="q", fork=fork)
    talk.merges(fork, by=BOB)

    with refused(Why.WRONG_STATE, "can only be read"):
        talk.tries(CLAUDE, requests("q"))


# What comes of it


@proves("PVP-16.1-3", "OPEN-47", "UNI-12")
def test_everything_about_a_tool_stays_in_its_fork() -> None:
    talk, fork = approved()

    started = talk.says(CLAUDE, executes("p"))
    heard = [talk.says(CLAUDE, body) for body in (prints("p"), finishes("p"))]

    assert talk.hear(started) == {"claude"}
    assert [talk.hear(facts) for facts in heard] == [INSIDE, INSIDE]
    assert all(record.fork == fork for facts in (started, *heard) for record in facts.records)


@proves("OPEN-47", "OPEN-49")
def test_for_an_agent_outside_there_is_no_such_proposal() -> None:
    talk, _ = approved()
    said: list[Body] = [executes("p"), prints("p"), finishes("p")]

    for body in said:
        with refused(Why.UNKNOWN, "There is no open proposal p"):
            talk.tries(CODEX, body)
    talk.says(CLAUDE, executes("p"))
    talk.says(CLAUDE, finishes("p"))
    for body in said:
        with refused(Why.UNKNOWN, "There is no open proposal p"):
            talk.tries(CODEX, body)
        with refused(Why.WRONG_STATE, "p is over: finished"):
            talk.tries(CLAUDE, body)


def test_a_tool_is_run_where_it_was_proposed() -> None:
    talk, fork = a_talk(require_approval_for=())
    talk.says(CLAUDE, proposes(), id="p")

    for body in (executes("p"), prints("p"), finishes("p")):
        with refused(Why.WRONG_STATE, f"p is not in the fork {fork}"):
            talk.tries(CLAUDE, body, fork=fork)


@proves("OPEN-25", "OPEN-47")
@pytest.mark.parametrize("who", [BOB, CLAUDE])
def test_a_rejection_is_told_to_the_fork_only(who: Actor) -> None:
    talk, _ = asked()

    facts = talk.says(who, rejects(who, "p"))

    assert talk.hear(facts) == INSIDE
    assert [(bad.why, bad.related_to, to) for bad, to in failures(facts)] == [
        (Why.GATE_FAILED, "p", INSIDE)
    ]
    with refused(Why.GATE_FAILED, "p was rejected"):
        talk.tries(CLAUDE, executes("p"))


@proves("OPEN-23", "OPEN-47")
def test_a_timeout_is_told_to_the_fork_only() -> None:
    talk, _ = asked()

    facts = talk.passes(after_seconds(300))

    assert [GateTimedOut] == kinds(facts)[:1]
    assert talk.hear(facts) == INSIDE


@proves("OPEN-23", "OPEN-47")
def test_an_escalation_stays_in_the_fork() -> None:
    talk, fork = a_talk()
    house = House(on_gate_timeout=Resolution.ESCALATED)
    talk.says(CLAUDE, proposes(), id="p", fork=fork, house=house)

    facts = talk.passes(after_seconds(300))

    assert kinds(facts) == [GateTimedOut, GateOpened]
    assert talk.hear(facts) == INSIDE
    assert gate_on(talk.room, "p").fork == fork


@proves("OPEN-23", "OPEN-47")
def test_silence_that_approves_does_so_in_the_fork() -> None:
    talk, fork = a_talk()
    house = House(on_gate_timeout=Resolution.AUTO_APPROVED)
    talk.says(CLAUDE, proposes(), id="p", fork=fork, house=house)

    facts = talk.passes(after_seconds(300))

    assert may_run(talk.room, "p")
    assert talk.hear(facts) == INSIDE


@proves("OPEN-47")
def test_a_grant_that_runs_out_is_told_to_the_fork_only() -> None:
    talk, fork = approved()

    facts = talk.passes(after_seconds(3600))

    assert facts[0] == ToolExpired(tool="p", fork=fork)
    assert talk.hear(facts) == INSIDE


@proves("OPEN-27", "OPEN-47")
def test_the_end_of_the_session_rejects_gates_in_forks_for_their_members() -> None:
    talk, _ = asked()

    facts = talk.says(ALICE, ends())

    assert talk.audience(facts.records[0]) == INSIDE
    assert [to for _, to in failures(facts)] == [INSIDE]


def test_when_the_proposer_leaves_the_fork_is_told() -> None:
    talk, fork = asked()

    facts = talk.says(CLAUDE, left(CLAUDE).body)

    assert facts.records[0].fork == fork
    assert [to for _, to in failures(facts)] == [INSIDE]


def test_what_a_leaver_was_running_in_a_fork_is_known_there_alone() -> None:
    talk, fork = approved()

    talk.says(CLAUDE, left(CLAUDE).body)

    assert "p" not in talk.room.past
    with refused(Why.WRONG_STATE, "p is closed already: abandoned"):
        talk.tries(BOB, approves(BOB, "p"), fork=fork)


@proves("OPEN-48")
def test_after_a_merge_the_targets_members_may_know_how_it_ended() -> None:
    talk, fork = asked()
    talk.says(BOB, rejects(BOB, "p"))
    talk.merges(fork, by=BOB)

    with refused(Why.WRONG_STATE, "p is closed already: rejected"):
        talk.tries(ALICE, approves(ALICE, "p"))
