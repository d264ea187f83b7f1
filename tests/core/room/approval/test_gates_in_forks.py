"""Gates and tools inside forks: an affair of their members alone."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import AnyOf, Everyone, Quorum
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.gate_timeouts import GateTimedOut
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.tool_proposals import ToolExpired
from accord.core.room.approval.votes import GatePassed
from accord.core.room.room_settings import Category, GateResolution, ServerPolicy
from tests.helpers.room.logged_room import LoggedRoom, failures_of, member_ids
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_reject,
    gate_request,
    has_grant,
    leave_step,
    prompt_submit,
    seconds_after_start,
    session_end,
    tool_approve,
    tool_execute,
    tool_output,
    tool_propose,
    tool_reject,
    tool_result,
    types_of,
)
from tests.spec import proves

R = Role
INSIDE = member_ids("bob", "claude")


def a_talk(quorum: Quorum | None = None, **config: Any) -> tuple[LoggedRoom, str]:
    """Bob and Claude are in a fork; Alice and Carol could approve, too, but are outside."""
    talk = LoggedRoom.with_members(
        (BOB, R.NAVIGATOR),
        (CAROL, R.APPROVER),
        (CLAUDE, R.DRIVER),
        (CODEX, R.DRIVER),
        default_gate_quorum=quorum or AnyOf(1),
        **config,
    )
    return talk, talk.fork("Aside", CLAUDE, by=BOB)


def asked(quorum: Quorum | None = None) -> tuple[LoggedRoom, str]:
    """Claude's proposal `p` waits in the fork."""
    talk, fork = a_talk(quorum)
    talk.send(CLAUDE, tool_propose(), id="p", fork=fork)
    return talk, fork


def approved() -> tuple[LoggedRoom, str]:
    talk, fork = asked()
    talk.send(BOB, gate_approve(BOB, "p"))
    return talk, fork


# Who is asked


@proves("OPEN-47", "PVP-16.1-3")
def test_the_members_are_asked_and_nobody_else_hears_of_it() -> None:
    talk, fork = a_talk(Everyone())

    facts = talk.send(CLAUDE, tool_propose(), id="p", fork=fork)

    assert talk.recipients_of(facts) == INSIDE
    gate = gate_on(talk.room, "p")
    assert (gate.fork, gate.ballot.roll) == (fork, member_ids("bob"))


@proves("OPEN-47")
@pytest.mark.parametrize("vote", [gate_approve, tool_approve])
def test_a_member_approves_with_or_without_the_fork_in_the_envelope(vote: Any) -> None:
    for envelope in ({}, {"fork": "aside"}):
        talk, _ = asked(Everyone())

        facts = talk.send(BOB, vote(BOB, "p"), **envelope)

        assert types_of(facts)[1:] == [GatePassed, ToolCleared]
        assert {record.fork for record in facts.records} == {"aside"}
        assert talk.recipients_of(facts) == INSIDE
        assert has_grant(talk.room, "p")


@proves("OPEN-47", "OPEN-49")
@pytest.mark.parametrize("who", [ALICE, CAROL])
@pytest.mark.parametrize("say", [gate_approve, gate_reject, tool_approve, tool_reject])
def test_for_those_outside_there_is_no_gate_to_vote_on(who: Actor, say: Any) -> None:
    talk, _ = asked()
    gate = gate_on(talk.room, "p").id

    for name in ("p", gate):
        with expect_refusal(Reason.NOT_FOUND, f"^There is no open gate {name}$"):
            talk.decide(who, say(who, name))
        with expect_refusal(Reason.MALFORMED, f"^No such message here: {name}$"):
            talk.decide(who, say(who, "other"), ref=name)


@proves("OPEN-47", "OPEN-49")
def test_outsiders_are_not_told_how_a_forks_gate_ended() -> None:
    talk, _ = asked()
    gate = gate_on(talk.room, "p").id
    talk.send(BOB, gate_reject(BOB, "p"))

    for name in ("p", gate):
        with expect_refusal(Reason.NOT_FOUND, "There is no open gate"):
            talk.decide(ALICE, gate_approve(ALICE, name))
        with expect_refusal(Reason.WRONG_STATE, "is already closed: rejected"):
            talk.decide(BOB, gate_approve(BOB, name))


@proves("OPEN-47", "OPEN-49")
def test_outsiders_are_not_told_of_a_forks_granted_tool() -> None:
    talk, fork = a_talk()
    talk.send(CLAUDE, tool_propose(category=Category.FILE_READ), id="p", fork=fork)

    with expect_refusal(Reason.NOT_FOUND, "There is no open gate p"):
        talk.decide(ALICE, gate_approve(ALICE, "p"))
    with expect_refusal(Reason.WRONG_STATE, "p needs no approval"):
        talk.decide(BOB, gate_approve(BOB, "p"))


@proves("OPEN-47")
def test_electorate_of_a_forks_gate_excludes_outsiders() -> None:
    talk, _ = asked(AnyOf(2))

    assert "any 2 needs 1 more: only bob can approve" in gate_on(talk.room, "p").message


@proves("OPEN-47")
def test_a_vote_is_cast_where_the_gate_is() -> None:
    talk, fork = a_talk()
    talk.send(CLAUDE, tool_propose(), id="trunk's")
    other = talk.fork("Other", CLAUDE, by=BOB)
    talk.send(CLAUDE, tool_propose(), id="fork's", fork=fork)

    for name, elsewhere in (("trunk's", fork), ("fork's", other)):
        with expect_refusal(Reason.WRONG_STATE, f"{name} is not in the fork {elsewhere}"):
            talk.decide(BOB, gate_approve(BOB, name), fork=elsewhere)


def test_the_only_person_in_a_fork_who_can_approve_is_on_their_own() -> None:
    """OPEN-14, in a fork."""
    talk, _ = a_talk()
    alone = talk.fork("Solo", CLAUDE, by=ALICE)
    talk.send(ALICE, prompt_submit(), id="mine", fork=alone)

    talk.send(ALICE, gate_request("mine"), fork=alone, id="g")
    facts = talk.send(ALICE, gate_approve(ALICE, "g"))

    assert GatePassed in types_of(facts)
    assert talk.recipients_of(facts) == {"alice", "claude"}


def test_a_gate_that_a_member_asks_for_in_a_fork_is_the_forks() -> None:
    talk, fork = a_talk()
    talk.send(CLAUDE, prompt_submit(CLAUDE), id="q", fork=fork)

    facts = talk.send(CLAUDE, gate_request("q"), id="g", fork=fork)

    assert types_of(facts) == [GateOpened]
    assert talk.readers("g") == INSIDE
    talk.send(BOB, gate_reject(BOB, "g"))
    with expect_refusal(Reason.WRONG_STATE, "q is no longer pending"):
        talk.decide(CLAUDE, gate_request("q"), fork=fork)


def test_gate_belongs_to_the_fork_of_its_action() -> None:
    """Else those outside would hear what becomes of it."""
    talk, fork = a_talk()
    talk.send(CLAUDE, prompt_submit(CLAUDE), id="inside", fork=fork)
    talk.send(CLAUDE, prompt_submit(CLAUDE), id="outside")

    talk.send(CLAUDE, gate_request("inside"), id="g")

    assert talk.readers("g") == INSIDE
    with expect_refusal(Reason.WRONG_STATE, f"outside is not in the fork {fork}"):
        talk.decide(CLAUDE, gate_request("outside"), fork=fork)


@proves("OPEN-48")
def test_no_gate_is_opened_in_a_merged_fork() -> None:
    talk, fork = a_talk()
    talk.send(CLAUDE, prompt_submit(CLAUDE), id="q", fork=fork)
    talk.merge(fork, by=BOB)

    with expect_refusal(Reason.WRONG_STATE, "is read-only"):
        talk.decide(CLAUDE, gate_request("q"))


# What comes of it


@proves("PVP-16.1-3", "OPEN-47", "UNI-12")
def test_everything_about_a_tool_stays_in_its_fork() -> None:
    talk, fork = approved()

    started = talk.send(CLAUDE, tool_execute("p"))
    heard = [talk.send(CLAUDE, body) for body in (tool_output("p"), tool_result("p"))]

    assert talk.recipients_of(started) == {"claude"}
    assert [talk.recipients_of(facts) for facts in heard] == [INSIDE, INSIDE]
    assert all(record.fork == fork for facts in (started, *heard) for record in facts.records)


@proves("OPEN-47", "OPEN-49")
def test_for_an_agent_outside_there_is_no_such_proposal() -> None:
    talk, _ = approved()
    said: list[Body] = [tool_execute("p"), tool_output("p"), tool_result("p")]

    for body in said:
        with expect_refusal(Reason.NOT_FOUND, "There is no open proposal p"):
            talk.decide(CODEX, body)
    talk.send(CLAUDE, tool_execute("p"))
    talk.send(CLAUDE, tool_result("p"))
    for body in said:
        with expect_refusal(Reason.NOT_FOUND, "There is no open proposal p"):
            talk.decide(CODEX, body)
        with expect_refusal(Reason.WRONG_STATE, "p is closed: finished"):
            talk.decide(CLAUDE, body)


def test_a_tool_is_run_where_it_was_proposed() -> None:
    talk, fork = a_talk(require_approval_for=())
    talk.send(CLAUDE, tool_propose(), id="p")

    for body in (tool_execute("p"), tool_output("p"), tool_result("p")):
        with expect_refusal(Reason.WRONG_STATE, f"p is not in the fork {fork}"):
            talk.decide(CLAUDE, body, fork=fork)


@proves("OPEN-25", "OPEN-47")
@pytest.mark.parametrize("who", [BOB, CLAUDE])
def test_a_rejection_is_told_to_the_fork_only(who: Actor) -> None:
    talk, _ = asked()

    facts = talk.send(who, gate_reject(who, "p"))

    assert talk.recipients_of(facts) == INSIDE
    assert [(bad.reason, bad.related_to, to) for bad, to in failures_of(facts)] == [
        (Reason.GATE_FAILED, "p", INSIDE)
    ]
    with expect_refusal(Reason.GATE_FAILED, "p was rejected"):
        talk.decide(CLAUDE, tool_execute("p"))


@proves("OPEN-23", "OPEN-47")
def test_a_timeout_is_told_to_the_fork_only() -> None:
    talk, _ = asked()

    facts = talk.tick(seconds_after_start(300))

    assert [GateTimedOut] == types_of(facts)[:1]
    assert talk.recipients_of(facts) == INSIDE


@proves("OPEN-23", "OPEN-47")
def test_an_escalation_stays_in_the_fork() -> None:
    talk, fork = a_talk()
    house = ServerPolicy(gate_seconds=300, on_gate_timeout=GateResolution.ESCALATED)
    talk.send(CLAUDE, tool_propose(), id="p", fork=fork, house=house)

    facts = talk.tick(seconds_after_start(300))

    assert types_of(facts) == [GateTimedOut, GateOpened]
    assert talk.recipients_of(facts) == INSIDE
    assert gate_on(talk.room, "p").fork == fork


@proves("OPEN-23", "OPEN-47")
def test_auto_approval_in_a_fork_stays_in_the_fork() -> None:
    talk, fork = a_talk()
    house = ServerPolicy(gate_seconds=300, on_gate_timeout=GateResolution.AUTO_APPROVED)
    talk.send(CLAUDE, tool_propose(), id="p", fork=fork, house=house)

    facts = talk.tick(seconds_after_start(300))

    assert has_grant(talk.room, "p")
    assert talk.recipients_of(facts) == INSIDE


@proves("OPEN-47")
def test_a_grant_that_runs_out_is_told_to_the_fork_only() -> None:
    talk, fork = approved()

    facts = talk.tick(seconds_after_start(3600))

    assert facts[0] == ToolExpired(tool="p", fork=fork)
    assert talk.recipients_of(facts) == INSIDE


@proves("OPEN-27", "OPEN-47")
def test_the_end_of_the_session_rejects_gates_in_forks_for_their_members() -> None:
    talk, _ = asked()

    facts = talk.send(ALICE, session_end())

    assert talk.audience(facts.records[0]) == INSIDE
    assert [to for _, to in failures_of(facts)] == [INSIDE]


def test_when_the_proposer_leaves_the_fork_is_told() -> None:
    talk, fork = asked()

    facts = talk.send(CLAUDE, leave_step(CLAUDE).body)

    assert facts.records[0].fork == fork
    assert [to for _, to in failures_of(facts)] == [INSIDE]


def test_what_a_leaver_was_running_in_a_fork_is_known_there_alone() -> None:
    talk, fork = approved()

    talk.send(CLAUDE, leave_step(CLAUDE).body)

    assert "p" not in talk.room.past
    with expect_refusal(Reason.WRONG_STATE, "p is already closed: rejected: claude left"):
        talk.decide(BOB, gate_approve(BOB, "p"), fork=fork)


@proves("OPEN-48")
def test_after_a_merge_the_targets_members_may_know_how_it_ended() -> None:
    talk, fork = asked()
    talk.send(BOB, gate_reject(BOB, "p"))
    talk.merge(fork, by=BOB)

    with expect_refusal(Reason.WRONG_STATE, "p is already closed: rejected"):
        talk.decide(ALICE, gate_approve(ALICE, "p"))
