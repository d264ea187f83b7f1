"""Interrupts: people stop agents, and the server sees to it."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Failure
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room.approval.votes import GateRejected
from accord.core.room.conversation.interrupts import (
    InterruptAcknowledge,
    InterruptAcknowledged,
    InterruptLapsed,
    InterruptRaise,
    InterruptRaised,
    ToolAborted,
)
from accord.core.room.conversation.prompts import PromptAmend
from accord.core.room.deadlines import due_instants
from accord.core.room.room_settings import AbsencePolicy, Category, GateResolution, ServerPolicy
from accord.core.room.state import ContentRef, Presence, Urgency
from tests.helpers.room.logged_room import START_ID, LoggedRoom, failures_of
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    DEFAULT_POLICY,
    expect_refusal,
    gate_approve,
    gate_on,
    has_grant,
    has_open_gate,
    join_step,
    leave_step,
    presence_step,
    prompt_submit,
    seconds_after_start,
    session_end,
    session_join,
    tool_approve,
    tool_execute,
    tool_output,
    tool_propose,
    tool_result,
    types_of,
)
from tests.spec import proves

R, U = Role, Urgency
HALTING = [U.STOP, U.EMERGENCY]


def a_talk(**config: object) -> LoggedRoom:
    """Alice and Bob, who approves, with two agents."""
    return LoggedRoom.with_members(
        (BOB, R.NAVIGATOR), (CLAUDE, R.DRIVER), (CODEX, R.DRIVER), **config
    )


def raises(urgency: Urgency = U.STOP, target: Actor | None = CLAUDE) -> InterruptRaise:
    return InterruptRaise(urgency, "Wait", target.principal if target else None)


def answers(
    action: str, by: Actor = CLAUDE, *, reason: str | None = None, to: str = "i"
) -> InterruptAcknowledge:
    return InterruptAcknowledge(to, by.principal, action, reason)  # type: ignore[arg-type]


def stopped(urgency: Urgency = U.STOP) -> LoggedRoom:
    """Claude was was stopped by an interrupt."""
    talk = a_talk()
    talk.send(BOB, raises(urgency), id="i")
    return talk


# Whom it is for


@proves("PVP-15.1-1", "PVP-4.3-12")
def test_an_interrupt_says_whom_it_is_for_and_what_to_think_of() -> None:
    talk = a_talk()
    ref = ContentRef("ab" * 32, 3, "text/plain", "inline")
    body = InterruptRaise(U.PAUSE, "Look", "claude", "the spec has changed", ref)

    facts = talk.send(BOB, body, id="i")

    assert facts == [InterruptRaised(said=body, targets=frozenset({"claude"}))]
    assert talk.room.interrupts["i"].waiting == {"claude"}
    assert talk.readers("i") == {"alice", "bob", "claude", "codex"}


@proves("PVP-15.1-1")
def test_without_a_target_all_agents_are_meant() -> None:
    talk = a_talk()

    talk.send(BOB, raises(target=None), id="i")

    assert talk.room.interrupts["i"].waiting == {"claude", "codex"}
    assert set(talk.room.halted) == {"claude", "codex"}


def test_where_there_are_no_agents_nobody_has_to_answer() -> None:
    talk = LoggedRoom.with_members((BOB, R.NAVIGATOR))

    assert types_of(talk.send(BOB, raises(target=None))) == [InterruptRaised]
    assert not talk.room.interrupts


@proves("OPEN-45")
def test_only_agents_can_be_interrupted() -> None:
    with expect_refusal(Reason.MALFORMED, "alice is not an agent"):
        a_talk().decide(BOB, raises(target=ALICE))


@proves("OPEN-45", "PVP-17-5")
def test_whoever_is_not_here_cannot_be_interrupted() -> None:
    with expect_refusal(Reason.NO_MEMBER, "nobody is not in this session"):
        a_talk().decide(BOB, raises(target=Actor("nobody", Kind.AGENT)))


def test_an_observer_cannot_interrupt() -> None:
    talk = LoggedRoom.with_members((BOB, R.OBSERVER), (CLAUDE, R.DRIVER))

    with expect_refusal(Reason.FORBIDDEN):
        talk.decide(BOB, raises())


@proves("OPEN-18")
def test_a_paused_session_can_be_interrupted_and_answered() -> None:
    talk = a_talk(on_participant_timeout=AbsencePolicy.PAUSE_SESSION)
    talk.send(*presence_step(CODEX, Presence.AWAY)[:2])

    talk.send(BOB, raises(), id="i")
    talk.send(CLAUDE, answers("stopped"))

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

    facts = talk.send(CLAUDE, answers(action))

    assert facts == [InterruptAcknowledged(said=answers(action), ref="i")]
    assert not talk.room.interrupts


@proves("PVP-15.2-5", "OPEN-45")
@pytest.mark.parametrize("urgency", HALTING)
@pytest.mark.parametrize("action", ["ignored", "paused"])
def test_a_stop_cannot_be_ignored_and_the_block_stays(urgency: Urgency, action: str) -> None:
    talk = stopped(urgency)

    with expect_refusal(Reason.WRONG_STATE, f"A {urgency} interrupt cannot be {action}"):
        talk.send(CLAUDE, answers(action, reason="I know better"))

    assert talk.room.interrupts["i"].waiting == {"claude"}
    with expect_refusal(Reason.WRONG_STATE, f"claude was stopped by an interrupt .{urgency}"):
        talk.decide(CLAUDE, tool_propose())


@proves("PVP-15.2-4")
def test_a_pause_can_be_ignored_with_a_reason() -> None:
    talk = stopped(U.PAUSE)

    talk.send(CLAUDE, answers("ignored", reason="Half way through a migration"))

    assert not talk.room.interrupts


@proves("PVP-15.2-2", "OPEN-45")
@pytest.mark.parametrize("reason", [None, ""])
def test_a_pause_is_not_ignored_without_a_reason(reason: str | None) -> None:
    with expect_refusal(Reason.MALFORMED, "requires ignore_reason"):
        stopped(U.PAUSE).decide(CLAUDE, answers("ignored", reason=reason))


def test_a_pause_is_not_a_stop() -> None:
    with expect_refusal(Reason.WRONG_STATE, "A pause interrupt cannot be stopped"):
        stopped(U.PAUSE).decide(CLAUDE, answers("stopped"))


@proves("PVP-15.1-2")
def test_whoever_is_to_pause_can_finish_what_it_is_doing() -> None:
    talk = a_talk(require_approval_for=())
    talk.send(CLAUDE, tool_propose(), id="p")
    talk.send(CLAUDE, tool_execute("p"))
    talk.send(BOB, raises(U.PAUSE))

    assert talk.allows(CLAUDE, tool_output("p"))
    assert talk.allows(CLAUDE, tool_result("p"))


@proves("PVP-15.2-1")
def test_nobody_answers_for_another() -> None:
    with expect_refusal(Reason.CLAIM_MISMATCH):
        stopped().decide(CODEX, answers("stopped", by=CLAUDE))


def test_only_whoever_was_asked_answers_and_only_once() -> None:
    talk = a_talk()
    talk.send(BOB, raises(target=None), id="i")
    talk.send(CLAUDE, answers("stopped"))

    assert talk.room.interrupts["i"].waiting == {"codex"}
    with expect_refusal(Reason.NOT_FOUND, "No interrupt i waits for claude"):
        talk.decide(CLAUDE, answers("stopped"))
    with expect_refusal(Reason.NOT_FOUND, "No interrupt other waits for claude"):
        talk.decide(CLAUDE, answers("stopped", to="other"))


def test_people_do_not_answer_interrupts() -> None:
    with expect_refusal(Reason.FORBIDDEN, "act as an agent"):
        stopped().decide(BOB, answers("acknowledged", by=BOB))


# Deadlines


@proves("OPEN-45", "PVP-15.2-3", "PVP-17-7", "UNI-23")
def test_missing_acknowledgement_is_reported_after_thirty_seconds() -> None:
    talk = a_talk()
    talk.send(BOB, raises(target=None), id="i")
    talk.send(CLAUDE, answers("stopped"))

    assert seconds_after_start(30) in due_instants(talk.room, DEFAULT_POLICY)
    assert not talk.tick(seconds_after_start(30) - 1)
    facts = talk.tick(seconds_after_start(30))

    assert facts == [
        InterruptLapsed(interrupt="i"),
        Relay(Failure(Reason.TIMED_OUT, "No acknowledgement from codex", "i")),
    ]
    assert not talk.room.interrupts
    assert "codex" in talk.room.halted
    assert not talk.tick(seconds_after_start(31))


def test_nobody_waits_for_the_answer_of_whoever_left() -> None:
    talk = a_talk()
    talk.send(BOB, raises(target=None), id="both")
    talk.send(BOB, raises(), id="one")

    talk.send(CLAUDE, leave_step(CLAUDE).body)

    assert {i: r.waiting for i, r in talk.room.interrupts.items()} == {"both": {"codex"}}


def test_the_end_of_the_session_ends_the_waiting() -> None:
    talk = stopped()

    talk.send(ALICE, session_end())

    assert not talk.room.interrupts
    assert not list(due_instants(talk.room, DEFAULT_POLICY))


# Stopped


@proves("OPEN-45", "PVP-15.1-3")
@pytest.mark.parametrize("urgency", HALTING)
def test_a_stopped_agent_proposes_nothing_until_it_is_prompted(urgency: Urgency) -> None:
    talk = stopped(urgency)
    talk.send(CLAUDE, answers("stopped"))

    with expect_refusal(Reason.WRONG_STATE, "prompt it again first"):
        talk.decide(CLAUDE, tool_propose(category=Category.FILE_READ))
    assert talk.allows(CODEX, tool_propose(CODEX))

    talk.send(ALICE, prompt_submit(CODEX))
    assert not talk.allows(CLAUDE, tool_propose())
    talk.send(ALICE, prompt_submit(CLAUDE))
    assert talk.allows(CLAUDE, tool_propose())


@proves("OPEN-45")
def test_an_amendment_sets_a_stopped_agent_free() -> None:
    talk = stopped()

    talk.send(ALICE, PromptAmend(START_ID, "Only the tests", "Too much"))

    assert talk.allows(CLAUDE, tool_propose())


@proves("OPEN-45")
def test_the_stopped_do_not_set_themselves_or_each_other_free() -> None:
    talk = a_talk()
    talk.send(BOB, raises(target=None))

    talk.send(CLAUDE, prompt_submit(CLAUDE), id="mine")
    talk.send(CODEX, prompt_submit(CLAUDE))
    talk.send(CLAUDE, PromptAmend("mine", "Go on", "Please"))

    assert set(talk.room.halted) == {"claude", "codex"}
    talk.send(ALICE, prompt_submit(CODEX))
    talk.send(CODEX, prompt_submit(CLAUDE))
    assert set(talk.room.halted) == {"claude"}
    talk.send(ALICE, prompt_submit(CLAUDE))
    assert not talk.room.halted


@proves("OPEN-45")
def test_a_stopped_agent_does_not_begin_what_was_approved() -> None:
    talk = a_talk()
    for proposal in ("p", "running"):
        talk.send(CLAUDE, tool_propose(), id=proposal)
        talk.send(ALICE, gate_approve(ALICE, proposal))
    talk.send(CLAUDE, tool_execute("running"))
    talk.send(BOB, raises())

    with expect_refusal(Reason.WRONG_STATE, "was stopped by an interrupt"):
        talk.decide(CLAUDE, tool_execute("p"))
    assert talk.allows(CLAUDE, tool_result("running", success=False))

    talk.send(ALICE, prompt_submit())
    assert talk.allows(CLAUDE, tool_execute("p"))


@proves("OPEN-45")
def test_rejoining_does_not_lift_a_stop() -> None:
    talk = stopped()

    talk.send(CLAUDE, leave_step(CLAUDE).body)
    who = join_step(CLAUDE, R.DRIVER)
    talk.send(who.actor, who.body)

    assert not talk.allows(CLAUDE, tool_propose())


@proves("OPEN-45")
def test_votes_cannot_clear_the_tool_of_a_stopped_agent() -> None:
    talk = a_talk()
    talk.send(CLAUDE, tool_propose(), id="p")
    talk.send(BOB, raises())

    for vote in (gate_approve(ALICE, "p"), tool_approve(ALICE, "p")):
        with expect_refusal(Reason.WRONG_STATE, "claude was stopped by an interrupt"):
            talk.decide(ALICE, vote)

    talk.send(ALICE, prompt_submit())
    talk.send(ALICE, gate_approve(ALICE, "p"))
    assert has_grant(talk.room, "p")


@proves("OPEN-45", "OPEN-23")
@pytest.mark.parametrize("policy", [GateResolution.AUTO_APPROVED, GateResolution.ESCALATED])
def test_timeout_does_not_grant_the_tool_of_a_stopped_agent(policy: GateResolution) -> None:
    talk = a_talk()
    talk.send(
        CLAUDE, tool_propose(), id="p", house=ServerPolicy(gate_seconds=300, on_gate_timeout=policy)
    )
    talk.send(BOB, raises())
    talk.send(CLAUDE, answers("stopped", to=next(iter(talk.room.interrupts))))

    talk.tick(seconds_after_start(300))

    assert (talk.room.tools, talk.room.gates) == ({}, {})


# Emergencies


@proves("PVP-15.1-4", "OPEN-45")
def test_an_emergency_rejects_open_gates_in_all_forks() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE)
    talk.send(CLAUDE, tool_propose(), id="here")
    talk.send(CLAUDE, tool_propose(), id="there", fork=fork)
    talk.send(CODEX, tool_propose(CODEX), id="other")
    gates = {name: gate_on(talk.room, name).id for name in ("here", "there")}

    facts = talk.send(BOB, raises(U.EMERGENCY), id="i")

    assert [InterruptRaised, GateRejected, Relay, GateRejected, Relay] == types_of(facts)
    assert set(talk.room.tools) == {"other"}
    assert has_open_gate(talk.room, "other")
    assert [(bad.related_to, to) for bad, to in failures_of(facts)] == [
        ("here", None),
        ("there", {"alice", "claude"}),
    ]
    rejected = {r.said.gate: talk.audience(r) for r in facts.records[1:]}  # type: ignore[union-attr]
    assert rejected == {
        gates["here"]: {"alice", "bob", "claude", "codex"},
        gates["there"]: {"alice", "claude"},
    }
    with expect_refusal(Reason.GATE_FAILED, "was rejected"):
        talk.decide(CLAUDE, tool_execute("there"))


@proves("PVP-15.1-4", "OPEN-45")
def test_an_emergency_voids_grants_that_are_not_used_yet() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE)
    for proposal in ("unused", "running"):
        talk.send(CLAUDE, tool_propose(), id=proposal, fork=fork)
        talk.send(ALICE, gate_approve(ALICE, proposal))
    talk.send(CLAUDE, tool_execute("running"))

    facts = talk.send(BOB, raises(U.EMERGENCY))
    talk.send(ALICE, prompt_submit())

    assert types_of(facts) == [InterruptRaised, ToolAborted]
    assert set(talk.room.tools) == {"running"}
    with expect_refusal(Reason.GATE_FAILED, "rejected by an emergency"):
        talk.decide(CLAUDE, tool_execute("unused"))


def test_an_emergency_for_all_stops_each_of_them() -> None:
    talk = a_talk()
    for agent in (CLAUDE, CODEX):
        talk.send(agent, tool_propose(agent))

    talk.send(BOB, raises(U.EMERGENCY, None))

    assert (talk.room.tools, talk.room.gates) == ({}, {})


def test_a_stop_leaves_gates_and_grants_as_they_are() -> None:
    talk = a_talk()
    talk.send(CLAUDE, tool_propose(), id="p")

    assert types_of(talk.send(BOB, raises())) == [InterruptRaised]
    assert has_open_gate(talk.room, "p")


def test_a_later_pause_does_not_lift_a_stop() -> None:
    talk = stopped()

    talk.send(BOB, raises(U.PAUSE))

    assert not talk.allows(CLAUDE, tool_propose())


def test_an_agent_cannot_come_back_as_a_person_to_escape() -> None:
    talk = stopped()
    talk.send(CLAUDE, leave_step(CLAUDE).body)
    person = Actor("claude", Kind.HUMAN)

    with expect_refusal(Reason.CLAIM_MISMATCH):
        talk.decide(person, session_join(person, R.DRIVER))
