"""Votes: saying yes, saying no, and what comes of it."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from accord.core.kernel.ballot import AnyOf, Named, OfRole
from accord.core.kernel.effects import Relay, ServerNotice
from accord.core.kernel.messages import Failure
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.gate_timeouts import GateTimedOut
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.votes import (
    GateApprove,
    GateApproved,
    GatePassed,
    GateReject,
    GateRejected,
)
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.room_settings import Category
from tests.helpers.room.gate_scenarios import room_with_open_gate, room_with_prompt
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    after,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_reject,
    gate_request,
    given,
    has_grant,
    has_open_gate,
    join_step,
    prompt_submit,
    relays_of,
    script_step,
    seconds_after_start,
    tick_at,
    tool_approve,
    tool_execute,
    tool_propose,
    tool_reject,
    tool_result,
    types_of,
    when,
)
from tests.spec import proves

# Saying yes


@proves("PVP-14.3-1", "PVP-13.3-1", "OPEN-22")
def test_when_the_quorum_is_met_the_gate_passes_and_the_server_says_execute_once() -> None:
    room = room_with_open_gate()

    facts = when(room, BOB, gate_approve(BOB, gate_on(room, "p").id), id="v")

    assert [GateApproved, GatePassed, ToolCleared] == types_of(facts)
    vote, _, execute = facts.records
    assert (vote.id, vote.sender) == ("v", "bob")
    assert (execute.sender, execute.ref) == ("system", "p")
    assert isinstance(execute.event, ToolCleared)
    assert execute.event.said.approved_by == ("bob",)
    room = after(room, facts)
    assert has_grant(room, "p")
    assert not has_open_gate(room, "p")


def test_gate_on_a_prompt_passes_without_a_grant() -> None:
    room = room_with_prompt(script_step(BOB, gate_request("q"), id="g"))

    facts = when(room, ALICE, gate_approve(ALICE, "g"))

    assert [GateApproved, GatePassed, ServerNotice] == types_of(facts)
    assert after(room, facts).gates == {}


@proves("PVP-14.2-1", "OPEN-24")
def test_an_approval_that_is_not_enough_leaves_the_gate_open_and_a_repeat_changes_nothing() -> None:
    room = room_with_open_gate(default_gate_quorum=AnyOf(2))

    once = given(script_step(BOB, gate_approve(BOB, "p")), room=room)
    twice = given(script_step(BOB, gate_approve(BOB, "p")), room=once)

    assert [GateApproved] == types_of(when(room, BOB, gate_approve(BOB, "p")))
    assert once == twice
    assert has_open_gate(twice, "p")


@proves("OPEN-19")
def test_a_gate_is_known_by_its_id_and_by_its_action() -> None:
    room = room_with_open_gate()
    gate = gate_on(room, "p").id

    by_id = when(room, BOB, gate_approve(BOB, gate))
    by_action = when(room, BOB, gate_approve(BOB, "p"))
    by_ref = when(room, BOB, gate_approve(BOB, "some-name-of-mine"), ref="p")
    by_gate_in_ref = when(room, BOB, gate_approve(BOB, "some-name-of-mine"), ref=gate)

    for facts in (by_id, by_action, by_ref, by_gate_in_ref):
        assert isinstance(facts[0], GateApproved)
        assert facts[0].gate == gate


@proves("OPEN-19", "PVP-4.2-7")
def test_a_vote_refers_to_its_gate_unless_the_voter_says_otherwise() -> None:
    room = room_with_open_gate()
    gate = gate_on(room, "p").id

    assert when(room, BOB, gate_approve(BOB, "p")).records[0].ref == gate
    assert when(room, BOB, gate_approve(BOB, "p"), ref="p").records[0].ref == "p"


@proves("OPEN-19")
def test_the_server_calls_a_gate_by_its_id_alone() -> None:
    room = room_with_open_gate()
    gate = gate_on(room, "p").id

    (timed_out, _) = tick_at(room, seconds_after_start(300))
    (withdrawn, *_) = when(room, CLAUDE, SessionLeave())

    assert isinstance(timed_out, GateTimedOut)
    assert isinstance(withdrawn, GateRejected)
    assert isinstance(withdrawn.said, GateReject)
    assert timed_out.said.gate == withdrawn.said.gate == gate


@proves("OPEN-24")
def test_a_vote_never_lands_on_another_gate_than_the_one_it_names() -> None:
    room = room_with_open_gate(script_step(CLAUDE, tool_propose(), id="p2"))
    resolved = gate_on(room, "p").id
    room = given(script_step(BOB, gate_reject(BOB, "p")), room=room)

    with expect_refusal(Reason.WRONG_STATE, "already closed: rejected"):
        when(room, BOB, gate_approve(BOB, resolved), ref="p2")


def test_a_vote_on_nothing_is_refused() -> None:
    with expect_refusal(Reason.NOT_FOUND, "no open gate nowhere"):
        when(room_with_open_gate(), BOB, gate_approve(BOB, "nowhere"))


@proves("OPEN-20")
def test_tool_approve_is_a_vote_on_the_proposals_gate() -> None:
    facts = when(room_with_open_gate(), BOB, tool_approve(BOB, "p"))

    assert [GateApproved, GatePassed, ToolCleared] == types_of(facts)


@proves("OPEN-20")
def test_gate_approve_and_tool_approve_by_one_member_are_one_vote() -> None:
    room = room_with_open_gate(
        script_step(BOB, tool_approve(BOB, "p")),
        script_step(BOB, gate_approve(BOB, "p")),
        default_gate_quorum=AnyOf(2),
    )

    assert has_open_gate(room, "p")
    assert gate_on(room, "p").ballot.yes == {"bob"}


@proves("OPEN-20")
def test_without_an_open_gate_there_is_nothing_to_approve() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(category=Category.FILE_READ), id="p"),
    )

    with expect_refusal(Reason.WRONG_STATE, "needs no approval"):
        when(room, ALICE, tool_approve(ALICE, "p"))
    for vote in (tool_approve, tool_reject):
        with expect_refusal(Reason.NOT_FOUND):
            when(room, ALICE, vote(ALICE, "nowhere"))


@proves("PVP-14.3-1", "OPEN-14")
def test_whoever_prompted_the_agent_may_approve_its_tool() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(CLAUDE, Role.DRIVER),
        script_step(ALICE, prompt_submit(), id="q"),
        script_step(CLAUDE, tool_propose(), id="p", ref="q"),
        script_step(ALICE, gate_approve(ALICE, "p")),
    )

    assert has_grant(room, "p")


def test_approved_by_names_those_whose_approval_counted() -> None:
    room = room_with_open_gate(
        script_step(BOB, gate_approve(BOB, "p")), default_gate_quorum=OfRole(Role.ADMIN, 1)
    )

    facts = when(room, ALICE, gate_approve(ALICE, "p"))

    assert isinstance(facts[1], GatePassed)
    assert facts[1].approved_by == ("alice",)


def test_more_people_may_approve_than_a_list_on_the_wire_usually_holds() -> None:
    seats = [f"s{number}" for number in range(300)]
    voters = [replace(BOB, principal=seat) for seat in seats]
    room = given(
        create_step(by=ALICE, max_participants=400, default_gate_quorum=AnyOf(300)),
        join_step(CLAUDE, Role.DRIVER),
        *(join_step(voter, Role.APPROVER) for voter in voters),
        script_step(CLAUDE, tool_propose(), id="p"),
        *(script_step(voter, gate_approve(voter, "p")) for voter in voters),
    )

    assert has_grant(room, "p")


# Saying no


@proves("PVP-14.3-2", "OPEN-25", "OPEN-49")
def test_one_rejection_fails_the_gate_and_the_room_hears_of_it() -> None:
    room = room_with_open_gate(
        script_step(ALICE, gate_approve(ALICE, "p")), default_gate_quorum=AnyOf(3)
    )

    facts = when(room, BOB, gate_reject(BOB, "p"))

    assert [GateRejected, Relay] == types_of(facts)
    (news,) = relays_of(facts)
    assert news.to is None
    assert news.body == Failure(Reason.GATE_FAILED, "Rejected by bob", "p")
    assert not has_open_gate(after(room, facts), "p")


@proves("OPEN-25")
def test_rejected_proposal_cannot_be_used_again() -> None:
    room = room_with_open_gate(script_step(BOB, gate_reject(BOB, "p")))

    with expect_refusal(Reason.GATE_FAILED, "p was rejected; propose again under a new id"):
        when(room, CLAUDE, tool_execute("p"))
    with expect_refusal(Reason.GATE_FAILED):
        when(room, CLAUDE, tool_result("p"))


@proves("OPEN-24")
def test_rejecting_after_approving_rejects_the_gate() -> None:
    room = room_with_open_gate(
        script_step(BOB, gate_approve(BOB, "p")), default_gate_quorum=AnyOf(2)
    )

    room = given(script_step(BOB, gate_reject(BOB, "p")), room=room)

    assert not has_open_gate(room, "p")
    with expect_refusal(Reason.WRONG_STATE, "already closed: rejected"):
        when(room, ALICE, gate_approve(ALICE, "p"))


@proves("OPEN-13")
def test_somebody_whom_the_quorum_does_not_ask_may_still_reject() -> None:
    room = room_with_open_gate(
        join_step(CAROL, Role.NAVIGATOR), default_gate_quorum=Named(("alice",))
    )

    assert [GateRejected, Relay] == types_of(when(room, CAROL, gate_reject(CAROL, "p")))


@proves("OPEN-13")
def test_an_agent_with_the_right_may_reject() -> None:
    room = room_with_open_gate(join_step(CODEX, Role.NAVIGATOR))

    assert [GateRejected, Relay] == types_of(when(room, CODEX, gate_reject(CODEX, "p")))


@proves("OPEN-20")
def test_tool_reject_is_a_vote_too() -> None:
    assert [GateRejected, Relay] == types_of(
        when(room_with_open_gate(), BOB, tool_reject(BOB, "p"))
    )


@proves("OPEN-24")
@pytest.mark.parametrize("vote", [gate_approve, gate_reject])
def test_a_vote_on_a_gate_that_is_over_is_refused(vote: Any) -> None:
    waiting = room_with_open_gate()
    gate = gate_on(waiting, "p").id
    passed = given(script_step(BOB, gate_approve(BOB, "p")), room=waiting)
    rejected = given(script_step(BOB, gate_reject(BOB, "p")), room=waiting)
    timed_out = after(waiting, tick_at(waiting, seconds_after_start(300)))

    for room in (passed, rejected, timed_out):
        with expect_refusal(Reason.WRONG_STATE, "already closed"):
            when(room, ALICE, vote(ALICE, gate))
        with expect_refusal(Reason.WRONG_STATE):
            when(room, ALICE, vote(ALICE, "p"))


# What a vote says


def test_votes_name_the_voter_and_leave_room_for_a_comment() -> None:
    assert msgspec.convert(
        {"gate": "g", "approver": "bob", "comment": "Good"}, GateApprove
    ) == gate_approve(BOB, "g", "Good")
    assert msgspec.convert(
        {"gate": "g", "rejector": "bob", "reason": "No"}, GateReject
    ) == gate_reject(BOB, "g")
