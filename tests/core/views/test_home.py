"""What concerns a member: gates to vote on, stalls, and how gates ended."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import AnyOf, Everyone
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.gates import MAX_ENDED_GATES
from accord.core.room.conversation.interrupts import InterruptRaise
from accord.core.room.conversation.responses import ResponseEnd, ResponseStart
from accord.core.room.forking.forks import ForkCreate
from accord.core.room.room_settings import GateResolution, ServerPolicy
from accord.core.room.state import Presence, Room, Urgency
from accord.core.views import home
from tests.core.room.decisions.test_rulings import a_room, bound, submits
from tests.helpers.room.gate_scenarios import room_with_open_gate
from tests.helpers.room.logged_room import LoggedRoom
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    Step,
    after,
    create_step,
    gate_approve,
    gate_reject,
    gate_request,
    given,
    join_step,
    leave_step,
    presence_step,
    prompt_submit,
    script_step,
    seconds_after_start,
    session_end,
    tick_at,
    tool_propose,
    tool_reject,
    tool_result,
    when,
)

LATE = seconds_after_start(366 * 24 * 3600)
TWO = {"default_gate_quorum": AnyOf(2)}


def concerns(room: Room, who: Actor | str, since: int = 0) -> home.SessionConcerns:
    return home.session_concerns(room, who if isinstance(who, str) else who.principal, since)


def test_a_gate_is_shown_to_those_who_may_vote_on_it_with_all_they_need() -> None:
    room = room_with_open_gate(script_step(BOB, gate_approve(BOB, "p")), **TWO)

    (card,) = concerns(room, ALICE).gates

    assert (card["session"], card["session_name"]) == (room.id, room.name)
    assert card["action"]["arguments"] == {"argv": ["make", "test"]}
    assert (card["may_approve"], card["may_reject"], card["my_vote"]) == (True, True, None)
    assert (card["approvals"], card["waits_for"]) == (["bob"], ["alice"])
    assert concerns(room, BOB).gates[0]["my_vote"] == "approved"


@pytest.mark.parametrize("who", ["nobody", "carol"])
def test_somebody_outside_is_shown_nothing(who: str) -> None:
    room = room_with_open_gate(join_step(CAROL, Role.APPROVER), leave_step(CAROL))

    assert concerns(room, who) == home.SessionConcerns([], [], [], 0)


def test_a_member_who_may_not_vote_only_hears_that_gates_are_open() -> None:
    room = room_with_open_gate(join_step(CAROL, Role.DRIVER))

    assert (concerns(room, CAROL).gates, concerns(room, CAROL).other_gates) == ([], 1)


def test_the_initiator_may_withdraw_and_not_approve() -> None:
    (card,) = concerns(room_with_open_gate(), CLAUDE).gates

    assert (card["may_approve"], card["may_reject"]) == (False, True)


def test_a_gate_of_a_fork_concerns_its_members_and_names_the_fork() -> None:
    talk = LoggedRoom.with_members((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    fork = talk.fork("Try", CLAUDE, by=ALICE)
    talk.send(CLAUDE, tool_propose(), id="p", fork=fork)

    (card,) = concerns(talk.room, ALICE).gates

    assert (card["fork"], card["fork_name"]) == (fork, "Try")
    assert card["waits_for"] == ["alice"]
    assert concerns(talk.room, BOB) == home.SessionConcerns([], [], [], 0)
    talk.send(ALICE, gate_reject(ALICE, "p"))
    assert [gate["fork_name"] for gate in concerns(talk.room, ALICE).ended_gates] == ["Try"]
    assert concerns(talk.room, BOB).ended_gates == []


def room_with_request(**request: Any) -> Room:
    """Claude asks for approval of a prompt of its own."""
    talk = LoggedRoom.with_members((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    talk.send(CLAUDE, prompt_submit(CLAUDE), id="q")
    talk.send(CLAUDE, gate_request("q", **request), id="g")
    return talk.room


def test_names_stand_beside_ids() -> None:
    room = room_with_open_gate()
    claude = replace(room.members["claude"], name="Claude of CI")
    room = replace(room, members={**room.members, "claude": claude})

    (card,) = concerns(room, ALICE).gates

    assert card["people"] == {"bob": "Bob", "claude": "Claude of CI"}


# How gates ended


def outcome(room: Room, **expected: Any) -> None:
    (ended,) = concerns(room, ALICE).ended_gates
    assert {name: ended[name] for name in expected} == expected


def test_an_approved_gate_says_by_whom() -> None:
    room = room_with_open_gate(script_step(BOB, gate_approve(BOB, "p")))

    outcome(room, outcome="approved", by=["bob"], tool_name="run_tests", action_ref="p")
    assert concerns(room, ALICE).gates == []


def test_an_approval_that_was_taken_back_stays_so_after_the_call_ran_anyway() -> None:
    room = room_with_open_gate(
        script_step(BOB, gate_approve(BOB, "p")), script_step(BOB, tool_reject(BOB, "p"))
    )
    outcome(room, outcome="approved", taken_back=True)

    room = given(Step(CLAUDE, tool_result("p")), room=room)

    outcome(room, outcome="approved", taken_back=True)


def test_taking_back_an_approval_marks_only_the_gate_that_gave_it() -> None:
    policy = ServerPolicy(on_gate_timeout=GateResolution.ESCALATED)
    room = given(
        create_step(by=ALICE),
        join_step(BOB, Role.APPROVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        policy=policy,
    )
    room = after(room, tick_at(room, LATE, policy=policy))
    (escalated,) = room.gates
    room = given(
        Step(ALICE, gate_approve(ALICE, escalated)),
        Step(CLAUDE, tool_propose(), "q"),
        Step(BOB, gate_approve(BOB, "q")),
        Step(ALICE, tool_reject(ALICE, "p")),
        room=room,
    )

    ended = concerns(room, ALICE).ended_gates
    assert {(gate["action_ref"], gate["outcome"], gate["taken_back"]) for gate in ended} == {
        ("p", "escalated", False),
        ("p", "approved", True),
        ("q", "approved", False),
    }


def test_a_rejected_gate_says_by_whom_and_why() -> None:
    room = room_with_open_gate(script_step(BOB, gate_reject(BOB, "p", "Not now")))

    outcome(room, outcome="rejected", by=["bob"], reason="Not now")


@pytest.mark.parametrize(
    ("resolution", "ended"),
    [
        (GateResolution.REJECTED, "timed_out"),
        (GateResolution.AUTO_APPROVED, "auto_approved"),
        (GateResolution.ESCALATED, "escalated"),
    ],
)
def test_a_timed_out_gate_says_how_it_was_resolved(resolution: GateResolution, ended: str) -> None:
    house = ServerPolicy(on_gate_timeout=resolution)
    room = given(
        create_step(by=ALICE),
        join_step(BOB, Role.APPROVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        policy=house,
    )

    room = after(room, tick_at(room, LATE, policy=house))

    outcome(room, outcome=ended, by=[])


def test_a_gate_that_ended_with_its_session_was_not_too_late() -> None:
    room = room_with_open_gate()
    room = after(room, when(room, ALICE, session_end(), id="e"))

    outcome(room, outcome="session_ended")
    assert concerns(room, ALICE).stalls == []
    assert not room.needs_attention


def test_a_gate_without_a_deadline_ends_with_its_session() -> None:
    room = room_with_request(timeout=0)
    room = after(room, when(room, ALICE, session_end(), id="e"))

    outcome(room, outcome="session_ended", tool_name="", action_type="prompt")


def test_old_outcomes_are_left_out_and_only_the_newest_kept() -> None:
    room = room_with_open_gate()
    for number in range(MAX_ENDED_GATES + 3):
        at = seconds_after_start(number)
        room = after(room, when(room, CLAUDE, tool_propose(), id=f"p{number}", at=at))
        room = after(room, when(room, BOB, gate_reject(BOB, f"p{number}"), at=at))

    ended = room.last_gate_ended_at
    assert ended == seconds_after_start(MAX_ENDED_GATES + 2)
    assert len(concerns(room, ALICE).ended_gates) == MAX_ENDED_GATES
    assert [gate["action_ref"] for gate in concerns(room, ALICE, ended).ended_gates] == ["p34"]
    assert concerns(room, ALICE, ended + 1).ended_gates == []
    assert room_with_open_gate().last_gate_ended_at == 0


# Stalls


def test_a_held_proposal_is_a_stall_with_its_reason() -> None:
    room = a_room((CLAUDE, submits(), "b"), (CLAUDE, bound(), "p"))

    (stall,) = concerns(room, BOB).stalls

    assert (stall["kind"], stall["id"], stall["agents"]) == ("proposal_held", "p", ["claude"])
    assert stall["proposal"]["held"]["why"].startswith("DEPLOY is STANDBY")


def test_an_unanswered_interrupt_and_a_stopped_agent_are_stalls() -> None:
    room = given(create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER))
    assert not room.needs_attention

    room = given(Step(ALICE, InterruptRaise(Urgency.STOP, "Wait", "claude")), room=room)

    kinds = [(stall["kind"], stall["agents"]) for stall in concerns(room, ALICE).stalls]
    assert kinds == [("interrupt_unanswered", ["claude"]), ("agent_stopped", ["claude"])]
    assert room.needs_attention


def failing(*steps: Step) -> Room:
    """Claude's answer to the prompt `q` ended with an error."""
    return given(
        create_step(by=ALICE),
        join_step(CLAUDE, Role.DRIVER),
        join_step(BOB, Role.NAVIGATOR),
        *steps,
        Step(ALICE, prompt_submit(), "q"),
        Step(CLAUDE, ResponseStart("claude", "q"), "r"),
        Step(CLAUDE, ResponseEnd("error"), ref="r"),
    )


def kinds_of(room: Room, who: Actor) -> list[str]:
    return [stall["kind"] for stall in concerns(room, who).stalls]


def test_an_agent_whose_last_answer_failed_is_a_stall_until_it_answers_again() -> None:
    room = failing()

    (stall,) = concerns(room, BOB).stalls
    assert (stall["kind"], stall["id"], stall["agents"]) == ("agent_failed", "claude", ["claude"])
    assert room.needs_attention

    room = given(
        Step(ALICE, prompt_submit(), "q2"),
        Step(CLAUDE, ResponseStart("claude", "q2"), "r2"),
        room=room,
    )
    assert kinds_of(room, BOB) == []
    room = given(Step(CLAUDE, ResponseEnd("complete"), ref="r2"), room=room)
    assert kinds_of(room, BOB) == []
    assert not room.needs_attention


def test_a_failed_agent_that_left_is_no_stall() -> None:
    assert kinds_of(given(leave_step(CLAUDE), room=failing()), BOB) == []


def test_the_failure_of_an_agent_in_a_fork_is_not_told_to_those_who_may_not_read_it() -> None:
    fork = ForkCreate("Try", "p", "", ("claude",), copy_context=False)
    room = failing(Step(ALICE, prompt_submit(), "p"), Step(ALICE, fork))

    assert kinds_of(room, BOB) == []
    assert kinds_of(room, ALICE) == ["agent_failed"]


def test_a_call_that_was_allowed_is_a_stall_while_its_agent_is_away() -> None:
    room = room_with_open_gate(script_step(BOB, gate_approve(BOB, "p")))
    assert kinds_of(room, ALICE) == []

    room = given(presence_step(CLAUDE, Presence.DISCONNECTED), room=room)

    (stall,) = concerns(room, ALICE).stalls
    assert (stall["kind"], stall["id"], stall["agents"]) == ("agent_away", "p", ["claude"])
    assert stall["proposal"]["tool_name"] == "run_tests"


def test_a_paused_session_is_a_stall() -> None:
    room = replace(given(create_step(by=ALICE)), paused_at=1)

    (stall,) = concerns(room, ALICE).stalls
    assert (stall["kind"], stall["id"], stall["agents"]) == ("session_paused", room.id, [])
    assert room.needs_attention


# Several sessions at once


def test_the_gate_that_ends_first_comes_first() -> None:
    parts = [concerns(room_with_open_gate(), ALICE) for _ in range(3)]
    for part, expires_at in zip(parts, [None, "2026-02-02", "2026-02-01"], strict=True):
        part.gates[0]["expires_at"] = expires_at

    whole = home.combine(parts)

    assert [gate["expires_at"] for gate in whole["gates"]] == ["2026-02-01", "2026-02-02", None]
    counts = {"gates": 3, "awaiting_my_vote": 3, "other_gates": 0, "stalls": 0, "silences": 0}
    counts |= {"questions": 0, "unread_threads": 0}
    assert whole["counts"] == counts
    assert not whole["has_more"]


def test_beyond_the_limit_there_is_more() -> None:
    parts = [concerns(room_with_open_gate(), ALICE) for _ in range(3)]

    whole = home.combine(parts, home.HomeLimits(gates=2))

    assert (len(whole["gates"]), whole["counts"]["gates"], whole["has_more"]) == (2, 3, True)
    assert home.combine([], more=True)["has_more"]


def test_large_arguments_are_omitted_and_the_gate_is_not() -> None:
    parts = [concerns(room_with_open_gate(), ALICE) for _ in range(2)]

    cards = home.combine(parts, home.HomeLimits(argument_bytes=30))["gates"]

    omitted = [card["action"]["arguments_omitted"] for card in cards]
    assert omitted == [False, True]
    assert cards[1]["action"]["arguments"] == {}


def test_a_gate_that_is_not_about_a_tool_has_no_arguments_to_omit() -> None:
    room = room_with_request(quorum=Everyone())

    (card,) = home.combine([concerns(room, ALICE)], home.HomeLimits(argument_bytes=0))["gates"]

    assert card["action"] is None
    assert card["waits_for"] == ["alice", "bob"]


def test_questions_are_counted_also_when_they_do_not_fit() -> None:
    found = home.combine([], home.HomeLimits(questions=1), questions=({"seq": 1}, {"seq": 2}))
    assert (found["questions"], found["counts"]["questions"]) == ([{"seq": 1}], 2)
    assert found["has_more"]


def test_unread_threads_are_counted_also_when_they_do_not_fit() -> None:
    found = home.combine([], home.HomeLimits(unread_threads=1), unread_threads=("one", "two"))
    assert found["unread_threads"] == ["one"]
    assert found["counts"]["unread_threads"] == 2
    assert found["has_more"]
