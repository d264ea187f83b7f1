"""Votes: saying yes, saying no, and what comes of it."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import AnyOf, Named, OfRole
from accord.core.kernel.log import Failure, Say
from accord.core.kernel.refusal import Why
from accord.core.room.grants import ToolCleared
from accord.core.room.members import SessionLeave
from accord.core.room.state import Category
from accord.core.room.timeouts import GateTimedOut
from accord.core.room.votes import Approved, GateApprove, GatePassed, GateReject, Rejected
from tests.helpers.gates import asking, prompted
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    after,
    after_seconds,
    approves,
    approves_tool,
    executes,
    finishes,
    gate_on,
    given,
    joined,
    kinds,
    may_run,
    opened,
    prompts,
    proposes,
    refused,
    rejects,
    rejects_tool,
    requests,
    says,
    step,
    ticks,
    waits,
    when,
)
from tests.spec import proves

# Saying yes


@proves("PVP-14.3-1", "PVP-13.3-1", "OPEN-22")
def test_when_the_quorum_is_met_the_gate_passes_and_the_server_says_execute_once() -> None:
    room = asking()

    facts = when(room, BOB, approves(BOB, gate_on(room, "p").id), id="v")

    assert [Approved, GatePassed, ToolCleared] == kinds(facts)
    vote, _, execute = facts.records
    assert (vote.id, vote.sender) == ("v", "bob")
    assert (execute.sender, execute.ref) == ("system", "p")
    assert isinstance(execute.event, ToolCleared)
    assert execute.event.said.approved_by == ("bob",)
    room = after(room, facts)
    assert may_run(room, "p")
    assert not waits(room, "p")


def test_a_gate_on_no_tool_passes_without_further_ado() -> None:
    room = prompted(step(BOB, requests("q"), id="g"))

    facts = when(room, ALICE, approves(ALICE, "g"))

    assert [Approved, GatePassed] == kinds(facts)
    assert after(room, facts).gates == {}


@proves("PVP-14.2-1", "OPEN-24")
def test_an_approval_that_is_not_enough_leaves_the_gate_open_and_a_repeat_changes_nothing() -> None:
    room = asking(default_gate_quorum=AnyOf(2))

    once = given(step(BOB, approves(BOB, "p")), room=room)
    twice = given(step(BOB, approves(BOB, "p")), room=once)

    assert [Approved] == kinds(when(room, BOB, approves(BOB, "p")))
    assert once == twice
    assert waits(twice, "p")


@proves("OPEN-19")
def test_a_gate_is_known_by_its_id_and_by_its_action() -> None:
    room = asking()
    gate = gate_on(room, "p").id

    by_id = when(room, BOB, approves(BOB, gate))
    by_action = when(room, BOB, approves(BOB, "p"))
    by_ref = when(room, BOB, approves(BOB, "some-name-of-mine"), ref="p")
    by_gate_in_ref = when(room, BOB, approves(BOB, "some-name-of-mine"), ref=gate)

    for facts in (by_id, by_action, by_ref, by_gate_in_ref):
        assert isinstance(facts[0], Approved)
        assert facts[0].gate == gate


@proves("OPEN-19", "PVP-4.2-7")
def test_a_vote_refers_to_its_gate_unless_the_voter_says_otherwise() -> None:
    room = asking()
    gate = gate_on(room, "p").id

    assert when(room, BOB, approves(BOB, "p")).records[0].ref == gate
    assert when(room, BOB, approves(BOB, "p"), ref="p").records[0].ref == "p"


@proves("OPEN-19")
def test_the_server_calls_a_gate_by_its_id_alone() -> None:
    room = asking()
    gate = gate_on(room, "p").id

    (timed_out, _) = ticks(room, after_seconds(300))
    (withdrawn, _, _) = when(room, CLAUDE, SessionLeave())

    assert isinstance(timed_out, GateTimedOut)
    assert isinstance(withdrawn, Rejected)
    assert isinstance(withdrawn.said, GateReject)
    assert timed_out.said.gate == withdrawn.said.gate == gate


@proves("OPEN-24")
def test_a_vote_never_lands_on_another_gate_than_the_one_it_names() -> None:
    room = asking(step(CLAUDE, proposes(), id="p2"))
    resolved = gate_on(room, "p").id
    room = given(step(BOB, rejects(BOB, "p")), room=room)

    with refused(Why.WRONG_STATE, "closed already: rejected"):
        when(room, BOB, approves(BOB, resolved), ref="p2")


def test_a_vote_on_nothing_is_refused() -> None:
    with refused(Why.UNKNOWN, "no open gate nowhere"):
        when(asking(), BOB, approves(BOB, "nowhere"))


@proves("OPEN-20")
def test_tool_approve_is_a_vote_on_the_proposals_gate() -> None:
    facts = when(asking(), BOB, approves_tool(BOB, "p"))

    assert [Approved, GatePassed, ToolCleared] == kinds(facts)


@proves("OPEN-20")
def test_two_spellings_by_one_person_are_one_vote() -> None:
    room = asking(
        step(BOB, approves_tool(BOB, "p")),
        step(BOB, approves(BOB, "p")),
        default_gate_quorum=AnyOf(2),
    )

    assert waits(room, "p")
    assert gate_on(room, "p").ballot.yes == {"bob"}


@proves("OPEN-20")
@pytest.mark.parametrize("vote", [approves_tool, rejects_tool])
def test_without_an_open_gate_there_is_nothing_to_vote_on(vote: Any) -> None:
    room = given(
        opened(by=ALICE),
        joined(CLAUDE, Role.DRIVER),
        step(CLAUDE, proposes(category=Category.FILE_READ), id="p"),
    )

    with refused(Why.WRONG_STATE, "waits for nobody"):
        when(room, ALICE, vote(ALICE, "p"))
    with refused(Why.UNKNOWN):
        when(room, ALICE, vote(ALICE, "nowhere"))


@proves("PVP-14.3-1", "OPEN-14")
def test_whoever_prompted_the_agent_may_approve_its_tool() -> None:
    room = given(
        opened(by=ALICE),
        joined(CLAUDE, Role.DRIVER),
        step(ALICE, prompts(), id="q"),
        step(CLAUDE, proposes(), id="p", ref="q"),
        step(ALICE, approves(ALICE, "p")),
    )

    assert may_run(room, "p")


def test_approved_by_names_those_whose_approval_counted() -> None:
    room = asking(step(BOB, approves(BOB, "p")), default_gate_quorum=OfRole(Role.ADMIN, 1))

    facts = when(room, ALICE, approves(ALICE, "p"))

    assert isinstance(facts[1], GatePassed)
    assert facts[1].approved_by == ("alice",)


def test_more_people_may_approve_than_a_list_on_the_wire_usually_holds() -> None:
    seats = [f"s{number}" for number in range(300)]
    voters = [replace(BOB, seat=seat) for seat in seats]
    room = given(
        opened(by=ALICE, max_participants=400, default_gate_quorum=AnyOf(300)),
        joined(CLAUDE, Role.DRIVER),
        *(joined(voter, Role.APPROVER) for voter in voters),
        step(CLAUDE, proposes(), id="p"),
        *(step(voter, approves(voter, "p")) for voter in voters),
    )

    assert may_run(room, "p")


# Saying no


@proves("PVP-14.3-2", "OPEN-25", "OPEN-49")
def test_one_rejection_fails_the_gate_and_the_room_hears_of_it() -> None:
    room = asking(step(ALICE, approves(ALICE, "p")), default_gate_quorum=AnyOf(3))

    facts = when(room, BOB, rejects(BOB, "p"))

    assert [Rejected, Say] == kinds(facts)
    (news,) = says(facts)
    assert news.to is None
    assert news.body == Failure(Why.GATE_FAILED, "Rejected by bob", "p")
    assert not waits(after(room, facts), "p")


@proves("OPEN-25")
def test_what_was_rejected_is_dead_under_its_id() -> None:
    room = asking(step(BOB, rejects(BOB, "p")))

    with refused(Why.GATE_FAILED, "p was rejected; propose again under a new id"):
        when(room, CLAUDE, executes("p"))
    with refused(Why.GATE_FAILED):
        when(room, CLAUDE, finishes("p"))


@proves("OPEN-24")
def test_to_approve_and_then_reject_is_to_reject() -> None:
    room = asking(step(BOB, approves(BOB, "p")), default_gate_quorum=AnyOf(2))

    room = given(step(BOB, rejects(BOB, "p")), room=room)

    assert not waits(room, "p")
    with refused(Why.WRONG_STATE, "closed already: rejected"):
        when(room, ALICE, approves(ALICE, "p"))


@proves("OPEN-13")
def test_somebody_whom_the_quorum_does_not_ask_may_still_reject() -> None:
    room = asking(joined(CAROL, Role.NAVIGATOR), default_gate_quorum=Named(("alice",)))

    assert [Rejected, Say] == kinds(when(room, CAROL, rejects(CAROL, "p")))


@proves("OPEN-13")
def test_an_agent_with_the_right_may_reject() -> None:
    room = asking(joined(CODEX, Role.NAVIGATOR))

    assert [Rejected, Say] == kinds(when(room, CODEX, rejects(CODEX, "p")))


@proves("OPEN-20")
def test_tool_reject_is_a_vote_too() -> None:
    assert [Rejected, Say] == kinds(when(asking(), BOB, rejects_tool(BOB, "p")))


@proves("OPEN-24")
@pytest.mark.parametrize("vote", [approves, rejects])
def test_a_vote_on_a_gate_that_is_over_is_refused(vote: Any) -> None:
    waiting = asking()
    gate = gate_on(waiting, "p").id
    passed = given(step(BOB, approves(BOB, "p")), room=waiting)
    rejected = given(step(BOB, rejects(BOB, "p")), room=waiting)
    timed_out = after(waiting, ticks(waiting, after_seconds(300)))

    for room in (passed, rejected, timed_out):
        with refused(Why.WRONG_STATE, "closed already"):
            when(room, ALICE, vote(ALICE, gate))
        with refused(Why.WRONG_STATE):
            when(room, ALICE, vote(ALICE, "p"))


# What a vote says


def test_votes_name_the_voter_and_leave_room_for_a_comment() -> None:
    assert msgspec.convert(
        {"gate": "g", "approver": "bob", "comment": "Good"}, GateApprove
    ) == approves(BOB, "g", "Good")
    assert msgspec.convert({"gate": "g", "rejector": "bob", "reason": "No"}, GateReject) == rejects(
        BOB, "g"
    )
