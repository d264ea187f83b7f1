"""Interrupts: people stop agents, and the server sees to it."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.log import Failure, Say
from accord.core.kernel.refusal import Why
from accord.core.room import deadlines
from accord.core.room.interrupts import (
    InterruptAcknowledge,
    InterruptAcknowledged,
    InterruptLapsed,
    InterruptRaise,
    InterruptRaised,
    ToolAborted,
)
from accord.core.room.prompts import PromptAmend
from accord.core.room.state import (
    Category,
    ContentRef,
    House,
    OnTimeout,
    Presence,
    Resolution,
    Urgency,
)
from accord.core.room.votes import Rejected
from tests.helpers.forks import START, Talk, failures
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    HOUSE,
    after_seconds,
    approves,
    approves_tool,
    ends,
    executes,
    finishes,
    gate_on,
    joined,
    joins,
    kinds,
    left,
    may_run,
    now,
    prints,
    prompts,
    proposes,
    refused,
    waits,
)
from tests.spec import proves

R, U = Role, Urgency
HALTING = [U.STOP, U.EMERGENCY]


def a_talk(**config: object) -> Talk:
    """Alice and Bob, who approves, with two agents."""
    return Talk.of((BOB, R.NAVIGATOR), (CLAUDE, R.DRIVER), (CODEX, R.DRIVER), **config)


def raises(urgency: Urgency = U.STOP, target: Actor | None = CLAUDE) -> InterruptRaise:
    return InterruptRaise(urgency, "Wait", target.seat if target else None)


def answers(
    action: str, by: Actor = CLAUDE, *, reason: str | None = None, to: str = "i"
) -> InterruptAcknowledge:
    return InterruptAcknowledge(to, by.seat, action, reason)  # type: ignore[arg-type]


def stopped(urgency: Urgency = U.STOP) -> Talk:
    """Claude was told to stop."""
    talk = a_talk()
    talk.says(BOB, raises(urgency), id="i")
    return talk


# Whom it is for


@proves("PVP-15.1-1", "PVP-4.3-12")
def test_an_interrupt_says_whom_it_is_for_and_what_to_think_of() -> None:
    talk = a_talk()
    ref = ContentRef("ab" * 32, 3, "text/plain", "inline")
    body = InterruptRaise(U.PAUSE, "Look", "claude", "the spec has changed", ref)

    facts = talk.says(BOB, body, id="i")

    assert facts == [InterruptRaised(said=body, targets=frozenset({"claude"}))]
    assert talk.room.interrupts["i"].waiting == {"claude"}
    assert talk.readers("i") == {"alice", "bob", "claude", "codex"}


@proves("PVP-15.1-1")
def test_without_a_target_all_agents_are_meant() -> None:
    talk = a_talk()

    talk.says(BOB, raises(target=None), id="i")

    assert talk.room.interrupts["i"].waiting == {"claude", "codex"}
    assert set(talk.room.halted) == {"claude", "codex"}


def test_where_there_are_no_agents_nobody_has_to_answer() -> None:
    talk = Talk.of((BOB, R.NAVIGATOR))

    assert kinds(talk.says(BOB, raises(target=None))) == [InterruptRaised]
    assert not talk.room.interrupts


@proves("OPEN-45")
def test_only_agents_can_be_interrupted() -> None:
    with refused(Why.MALFORMED, "alice is not an agent"):
        a_talk().tries(BOB, raises(target=ALICE))


@proves("OPEN-45", "PVP-17-5")
def test_whoever_is_not_here_cannot_be_interrupted() -> None:
    with refused(Why.NO_MEMBER, "nobody is not in this session"):
        a_talk().tries(BOB, raises(target=Actor("nobody", Kind.AGENT)))


def test_an_observer_cannot_interrupt() -> None:
    talk = Talk.of((BOB, R.OBSERVER), (CLAUDE, R.DRIVER))

    with refused(Why.FORBIDDEN):
        talk.tries(BOB, raises())


@proves("OPEN-18")
def test_a_paused_session_can_be_interrupted_and_answered() -> None:
    talk = a_talk(on_participant_timeout=OnTimeout.PAUSE_SESSION)
    talk.says(*now(CODEX, Presence.AWAY)[:2])

    talk.says(BOB, raises(), id="i")
    talk.says(CLAUDE, answers("stopped"))

    assert not talk.room.interrupts


# What is answered


@proves("PVP-15.2-1", "PVP-15.2-3", "OPEN-45")
@pytest.mark.parametrize(
    ("urgency", "action"),
    [
        (U.PAUSE, "paused"),
        (U.PAUSE, "acknowledged"),
        (U.STOP, "stopped"),
        (U.STOP, "acknowledged"),
        (U.EMERGENCY, "stopped"),
        (U.EMERGENCY, "acknowledged"),
    ],
)
def test_an_agent_answers_as_the_urgency_allows(urgency: Urgency, action: str) -> None:
    talk = stopped(urgency)

    facts = talk.says(CLAUDE, answers(action))

    assert facts == [InterruptAcknowledged(said=answers(action), ref="i")]
    assert not talk.room.interrupts


@proves("PVP-15.2-5", "OPEN-45")
@pytest.mark.parametrize("urgency", HALTING)
@pytest.mark.parametrize("action", ["ignored", "paused"])
def test_a_stop_cannot_be_ignored_and_the_block_stays(urgency: Urgency, action: str) -> None:
    talk = stopped(urgency)

    with refused(Why.WRONG_STATE, f"A {urgency} cannot be {action}"):
        talk.says(CLAUDE, answers(action, reason="I know better"))

    assert talk.room.interrupts["i"].waiting == {"claude"}
    with refused(Why.WRONG_STATE, f"claude was told to {urgency}"):
        talk.tries(CLAUDE, proposes())


@proves("PVP-15.2-4")
def test_a_pause_can_be_ignored_with_a_reason() -> None:
    talk = stopped(U.PAUSE)

    talk.says(CLAUDE, answers("ignored", reason="Half way through a migration"))

    assert not talk.room.interrupts


@proves("PVP-15.2-2", "OPEN-45")
@pytest.mark.parametrize("reason", [None, ""])
def test_a_pause_is_not_ignored_without_a_reason(reason: str | None) -> None:
    with refused(Why.MALFORMED, "ignore_reason is needed"):
        stopped(U.PAUSE).tries(CLAUDE, answers("ignored", reason=reason))


def test_a_pause_is_not_a_stop() -> None:
    with refused(Why.WRONG_STATE, "A pause cannot be stopped"):
        stopped(U.PAUSE).tries(CLAUDE, answers("stopped"))


@proves("PVP-15.1-2")
def test_whoever_is_to_pause_can_finish_what_it_is_doing() -> None:
    talk = a_talk(require_approval_for=())
    talk.says(CLAUDE, proposes(), id="p")
    talk.says(CLAUDE, executes("p"))
    talk.says(BOB, raises(U.PAUSE))

    assert talk.allows(CLAUDE, prints("p"))
    assert talk.allows(CLAUDE, finishes("p"))


@proves("PVP-15.2-1")
def test_nobody_answers_for_another() -> None:
    with refused(Why.CLAIM_MISMATCH):
        stopped().tries(CODEX, answers("stopped", by=CLAUDE))


def test_only_whoever_was_asked_answers_and_only_once() -> None:
    talk = a_talk()
    talk.says(BOB, raises(target=None), id="i")
    talk.says(CLAUDE, answers("stopped"))

    assert talk.room.interrupts["i"].waiting == {"codex"}
    with refused(Why.UNKNOWN, "No interrupt i waits for claude"):
        talk.tries(CLAUDE, answers("stopped"))
    with refused(Why.UNKNOWN, "No interrupt other waits for claude"):
        talk.tries(CLAUDE, answers("stopped", to="other"))


def test_people_do_not_answer_interrupts() -> None:
    with refused(Why.FORBIDDEN, "act as an agent"):
        stopped().tries(BOB, answers("acknowledged", by=BOB))


# Deadlines


@proves("OPEN-45", "PVP-15.2-3", "PVP-17-7", "UNI-23")
def test_silence_of_thirty_seconds_is_told_to_the_room() -> None:
    talk = a_talk()
    talk.says(BOB, raises(target=None), id="i")
    talk.says(CLAUDE, answers("stopped"))

    assert after_seconds(30) in deadlines(talk.room, HOUSE)
    assert not talk.passes(after_seconds(30) - 1)
    facts = talk.passes(after_seconds(30))

    assert facts == [
        InterruptLapsed(interrupt="i"),
        Say(Failure(Why.LATE, "No acknowledgement from codex", "i")),
    ]
    assert not talk.room.interrupts
    assert "codex" in talk.room.halted
    assert not talk.passes(after_seconds(31))


def test_nobody_waits_for_the_answer_of_whoever_left() -> None:
    talk = a_talk()
    talk.says(BOB, raises(target=None), id="both")
    talk.says(BOB, raises(), id="one")

    talk.says(CLAUDE, left(CLAUDE).body)

    assert {i: r.waiting for i, r in talk.room.interrupts.items()} == {"both": {"codex"}}


def test_the_end_of_the_session_ends_the_waiting() -> None:
    talk = stopped()

    talk.says(ALICE, ends())

    assert not talk.room.interrupts
    assert not list(deadlines(talk.room, HOUSE))


# Stopped


@proves("OPEN-45", "PVP-15.1-3")
@pytest.mark.parametrize("urgency", HALTING)
def test_a_stopped_agent_proposes_nothing_until_it_is_prompted(urgency: Urgency) -> None:
    talk = stopped(urgency)
    talk.says(CLAUDE, answers("stopped"))

    with refused(Why.WRONG_STATE, "it goes on when it is prompted again"):
        talk.tries(CLAUDE, proposes(category=Category.FILE_READ))
    assert talk.allows(CODEX, proposes(CODEX))

    talk.says(ALICE, prompts(CODEX))
    assert not talk.allows(CLAUDE, proposes())
    talk.says(ALICE, prompts(CLAUDE))
    assert talk.allows(CLAUDE, proposes())


@proves("OPEN-45")
def test_an_amendment_sets_a_stopped_agent_free() -> None:
    talk = stopped()

    talk.says(ALICE, PromptAmend(START, "Only the tests", "Too much"))

    assert talk.allows(CLAUDE, proposes())


@proves("OPEN-45")
def test_the_stopped_do_not_set_themselves_or_each_other_free() -> None:
    talk = a_talk()
    talk.says(BOB, raises(target=None))

    talk.says(CLAUDE, prompts(CLAUDE), id="mine")
    talk.says(CODEX, prompts(CLAUDE))
    talk.says(CLAUDE, PromptAmend("mine", "Go on", "Please"))

    assert set(talk.room.halted) == {"claude", "codex"}
    talk.says(ALICE, prompts(CODEX))
    talk.says(CODEX, prompts(CLAUDE))
    assert set(talk.room.halted) == {"claude"}
    talk.says(ALICE, prompts(CLAUDE))
    assert not talk.room.halted


@proves("OPEN-45")
def test_a_stopped_agent_does_not_begin_what_was_approved() -> None:
    talk = a_talk()
    for proposal in ("p", "running"):
        talk.says(CLAUDE, proposes(), id=proposal)
        talk.says(ALICE, approves(ALICE, proposal))
    talk.says(CLAUDE, executes("running"))
    talk.says(BOB, raises())

    with refused(Why.WRONG_STATE, "told to stop"):
        talk.tries(CLAUDE, executes("p"))
    assert talk.allows(CLAUDE, finishes("running", success=False))

    talk.says(ALICE, prompts())
    assert talk.allows(CLAUDE, executes("p"))


@proves("OPEN-45")
def test_leaving_and_coming_back_lifts_no_stop() -> None:
    talk = stopped()

    talk.says(CLAUDE, left(CLAUDE).body)
    who = joined(CLAUDE, R.DRIVER)
    talk.says(who.actor, who.body)

    assert not talk.allows(CLAUDE, proposes())


@proves("OPEN-45")
def test_votes_cannot_clear_the_tool_of_a_stopped_agent() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="p")
    talk.says(BOB, raises())

    for vote in (approves(ALICE, "p"), approves_tool(ALICE, "p")):
        with refused(Why.WRONG_STATE, "claude is stopped"):
            talk.tries(ALICE, vote)

    talk.says(ALICE, prompts())
    talk.says(ALICE, approves(ALICE, "p"))
    assert may_run(talk.room, "p")


@proves("OPEN-45", "OPEN-23")
@pytest.mark.parametrize("policy", [Resolution.AUTO_APPROVED, Resolution.ESCALATED])
def test_silence_does_not_clear_the_tool_of_a_stopped_agent(policy: Resolution) -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="p", house=House(on_gate_timeout=policy))
    talk.says(BOB, raises())
    talk.says(CLAUDE, answers("stopped", to=next(iter(talk.room.interrupts))))

    talk.passes(after_seconds(300))

    assert (talk.room.tools, talk.room.gates) == ({}, {})


# Emergencies


@proves("PVP-15.1-4", "OPEN-45")
def test_an_emergency_rejects_open_gates_in_all_forks() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE)
    talk.says(CLAUDE, proposes(), id="here")
    talk.says(CLAUDE, proposes(), id="there", fork=fork)
    talk.says(CODEX, proposes(CODEX), id="other")
    gates = {name: gate_on(talk.room, name).id for name in ("here", "there")}

    facts = talk.says(BOB, raises(U.EMERGENCY), id="i")

    assert [InterruptRaised, Rejected, Say, Rejected, Say] == kinds(facts)
    assert set(talk.room.tools) == {"other"}
    assert waits(talk.room, "other")
    assert [(bad.related_to, to) for bad, to in failures(facts)] == [
        ("here", None),
        ("there", {"alice", "claude"}),
    ]
    rejected = {r.said.gate: talk.audience(r) for r in facts.records[1:]}  # type: ignore[union-attr]
    assert rejected == {
        gates["here"]: {"alice", "bob", "claude", "codex"},
        gates["there"]: {"alice", "claude"},
    }
    with refused(Why.GATE_FAILED, "was rejected"):
        talk.tries(CLAUDE, executes("there"))


@proves("PVP-15.1-4", "OPEN-45")
def test_an_emergency_voids_grants_that_are_not_used_yet() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE)
    for proposal in ("unused", "running"):
        talk.says(CLAUDE, proposes(), id=proposal, fork=fork)
        talk.says(ALICE, approves(ALICE, proposal))
    talk.says(CLAUDE, executes("running"))

    facts = talk.says(BOB, raises(U.EMERGENCY))
    talk.says(ALICE, prompts())

    assert kinds(facts) == [InterruptRaised, ToolAborted]
    assert set(talk.room.tools) == {"running"}
    with refused(Why.GATE_FAILED, "rejected by an emergency"):
        talk.tries(CLAUDE, executes("unused"))


def test_an_emergency_for_all_stops_each_of_them() -> None:
    talk = a_talk()
    for agent in (CLAUDE, CODEX):
        talk.says(agent, proposes(agent))

    talk.says(BOB, raises(U.EMERGENCY, None))

    assert (talk.room.tools, talk.room.gates) == ({}, {})


def test_a_stop_leaves_gates_and_grants_as_they_are() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="p")

    assert kinds(talk.says(BOB, raises())) == [InterruptRaised]
    assert waits(talk.room, "p")


def test_a_later_pause_does_not_lift_a_stop() -> None:
    talk = stopped()

    talk.says(BOB, raises(U.PAUSE))

    assert not talk.allows(CLAUDE, proposes())


def test_an_agent_cannot_come_back_as_a_person_to_escape() -> None:
    talk = stopped()
    talk.says(CLAUDE, left(CLAUDE).body)
    person = Actor("claude", Kind.HUMAN)

    with refused(Why.CLAIM_MISMATCH):
        talk.tries(person, joins(person, R.DRIVER))
