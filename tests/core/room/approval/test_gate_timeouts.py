"""Gates that nobody passed in time (OPEN-23)."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from accord.core.kernel.ballot import AnyOf, Everyone, Majority, Named, OfRole, Quorum
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Failure
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.gate_timeouts import GateTimedOut, GateTimeout
from accord.core.room.approval.gates import ActionType, GateOpened, GateRequest
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.votes import GatePassed, GateRejected
from accord.core.room.deadlines import due_instants
from accord.core.room.membership.leaving import MemberLeft
from accord.core.room.membership.presence import PresenceChanged
from accord.core.room.room_settings import Category, GateResolution, ServerPolicy
from accord.core.room.state import Presence, Risk, Room
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DEFAULT_POLICY,
    CommandOutcome,
    Step,
    after,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_request,
    given,
    has_grant,
    has_open_gate,
    join_step,
    leave_step,
    presence_step,
    prompt_submit,
    relays_of,
    script_step,
    seconds_after_start,
    session_end,
    tick_at,
    tool_execute,
    tool_propose,
    types_of,
    when,
)
from tests.spec import proves

LATE = seconds_after_start(300)
TRUSTING = ServerPolicy(gate_seconds=300, on_gate_timeout=GateResolution.AUTO_APPROVED)
ESCALATING = ServerPolicy(gate_seconds=300, on_gate_timeout=GateResolution.ESCALATED)


def asking(*script: Step, house: ServerPolicy = DEFAULT_POLICY, **config: Any) -> Room:
    """Alice is admin, Bob approves; Claude has proposed `p` to a house with this policy."""
    return given(
        create_step(by=ALICE, **config),
        join_step(BOB, Role.APPROVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        *script,
        policy=house,
    )


def resolution(facts: CommandOutcome) -> GateResolution:
    (timed_out,) = (fact for fact in facts if isinstance(fact, GateTimedOut))
    return timed_out.said.resolution


@proves("PVP-14.3-3", "PVP-14.3-4", "OPEN-23", "OPEN-25", "UNI-23")
def test_after_five_minutes_a_gate_is_rejected_and_its_action_dead() -> None:
    room = asking(script_step(BOB, gate_approve(BOB, "p")), default_gate_quorum=AnyOf(2))
    gate = gate_on(room, "p").id

    assert tick_at(room, LATE - 1) == []
    facts = tick_at(room, LATE)

    assert [GateTimedOut, Relay] == types_of(facts)
    assert facts[0] == GateTimedOut(said=GateTimeout(gate, 1, 2, GateResolution.REJECTED), ref=gate)
    assert facts.records[0].sender == "system"
    (news,) = relays_of(facts)
    assert news.body == Failure(Reason.GATE_FAILED, "It was not approved in time", "p")
    with expect_refusal(Reason.GATE_FAILED, "timed out"):
        when(after(room, facts), CLAUDE, tool_execute("p"))


def test_the_deadline_of_a_gate_is_known_beforehand() -> None:
    assert list(due_instants(asking(), DEFAULT_POLICY)) == [LATE]


@proves("PVP-14.3-4")
def test_a_timeout_is_written_as_the_specification_has_it() -> None:
    said = GateTimeout("g", 1, 2, GateResolution.AUTO_APPROVED)

    assert msgspec.to_builtins(said) == {
        "gate": "g",
        "approvals_received": 1,
        "approvals_required": 2,
        "resolution": "auto_approved",
    }
    assert {each.value for each in GateResolution} == {"rejected", "auto_approved", "escalated"}


@proves("OPEN-25", "PVP-14.3-4")
@pytest.mark.parametrize(
    ("quorum", "required"),
    [
        (AnyOf(5), 5),
        (Everyone(), 3),
        (Majority(), 2),
        (OfRole(Role.ADMIN, 2), 2),
        (Named(("alice", "zoe", "alice")), 2),
    ],
)
def test_a_timeout_says_how_many_approvals_it_would_have_taken(
    quorum: Quorum, required: int
) -> None:
    room = given(
        create_step(by=ALICE, default_gate_quorum=quorum),
        join_step(BOB, Role.APPROVER),
        join_step(CAROL, Role.NAVIGATOR),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
    )

    (timed_out, _) = tick_at(room, LATE)

    assert isinstance(timed_out, GateTimedOut)
    assert (timed_out.said.approvals_received, timed_out.said.approvals_required) == (0, required)


def test_several_gates_may_be_due_at_once() -> None:
    room = asking(script_step(CLAUDE, tool_propose(), id="p2"))

    facts = tick_at(room, LATE)

    assert [GateTimedOut, Relay, GateTimedOut, Relay] == types_of(facts)
    assert after(room, facts).gates == {}


@proves("OPEN-23")
def test_gate_with_timeout_zero_never_times_out() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(BOB, Role.DRIVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(BOB, prompt_submit(), id="q"),
        script_step(BOB, gate_request("q", timeout=0), id="g"),
    )

    assert room.gates["g"].expires_at is None
    assert list(due_instants(room, DEFAULT_POLICY)) == []
    assert tick_at(room, seconds_after_start(10_000_000)) == []
    assert GateTimedOut in types_of(when(room, ALICE, session_end()))


@proves("OPEN-23")
def test_negative_timeout_is_malformed() -> None:
    body = {**msgspec.to_builtins(gate_request("q")), "timeout_seconds": -1}

    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, GateRequest)


# Races


@proves("OPEN-24")
def test_a_vote_that_is_sequenced_before_the_timeout_wins() -> None:
    room = asking()
    voted = after(room, when(room, BOB, gate_approve(BOB, "p"), at=LATE + 5))

    assert has_grant(voted, "p")
    assert tick_at(voted, LATE + 6) == []


@proves("OPEN-24")
def test_a_vote_that_is_sequenced_after_the_timeout_loses() -> None:
    room = asking()
    room = after(room, tick_at(room, LATE))

    with expect_refusal(Reason.WRONG_STATE, "already closed: timed out, rejected"):
        when(room, BOB, gate_approve(BOB, "p"), at=LATE)


@proves("OPEN-24", "OPEN-32")
@pytest.mark.parametrize("house", [DEFAULT_POLICY, TRUSTING, ESCALATING])
def test_a_gate_and_its_initiator_that_are_due_at_once_end_one_after_the_other(
    house: ServerPolicy,
) -> None:
    house = replace(house, grace_ends_membership=True)
    room = asking(presence_step(CLAUDE, Presence.DISCONNECTED), house=house)
    gate = gate_on(room, "p").id

    first = tick_at(room, LATE, policy=house)
    room = after(room, first)
    second = tick_at(room, LATE, policy=house)

    assert types_of(first)[0] is GateTimedOut
    assert types_of(second)[-2:] == [MemberLeft, PresenceChanged]
    assert gate not in {fact.gate for fact in second if isinstance(fact, GateRejected)}
    room = after(room, second)
    assert (room.gates, room.tools) == ({}, {})


# By silence


@proves("OPEN-23", "PVP-14.3-3")
def test_timeout_auto_approves_if_the_operator_configured_it() -> None:
    room = asking(house=TRUSTING)

    facts = tick_at(room, LATE, policy=TRUSTING)

    assert [GateTimedOut, GatePassed, ToolCleared] == types_of(facts)
    assert resolution(facts) is GateResolution.AUTO_APPROVED
    assert isinstance(facts[2], ToolCleared)
    assert facts[2].said.approved_by == ()
    assert has_grant(after(room, facts), "p")


@proves("OPEN-23")
@pytest.mark.parametrize(
    "risky",
    [
        tool_propose(risk=Risk.HIGH),
        tool_propose(risk=Risk.CRITICAL),
        tool_propose(category=Category.DEPLOY),
        tool_propose(category=Category.DATABASE),
        tool_propose(category=Category.SECRET_ACCESS),
        tool_propose(category=Category.FILE_DELETE),
        tool_propose(category=Category.ALL),
        tool_propose(tool_name="delete_file", category=Category.FILE_WRITE),
        tool_propose(tool_name=" Database ", category=Category.FILE_WRITE),
    ],
)
def test_timeout_never_approves_risky_tools(risky: Any) -> None:
    room = given(
        create_step(by=ALICE),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, risky, id="p"),
        policy=TRUSTING,
    )

    facts = tick_at(room, LATE, policy=TRUSTING)

    assert resolution(facts) is GateResolution.REJECTED
    assert not has_grant(after(room, facts), "p")


@proves("OPEN-23")
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("deploy", GateResolution.REJECTED),
        ("merge", GateResolution.REJECTED),
        ("session_config", GateResolution.REJECTED),
        ("prompt", GateResolution.AUTO_APPROVED),
    ],
)
def test_timeout_never_approves_deploys_merges_and_settings(
    kind: ActionType, expected: GateResolution
) -> None:
    room = given(
        create_step(by=ALICE),
        join_step(BOB, Role.DRIVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(BOB, prompt_submit(), id="q"),
        script_step(BOB, gate_request("q", action_type=kind), id="g"),
        policy=TRUSTING,
    )

    assert resolution(tick_at(room, LATE, policy=TRUSTING)) is expected


@proves("OPEN-15", "OPEN-23")
@pytest.mark.parametrize("house", [TRUSTING, ESCALATING])
@pytest.mark.parametrize("quorum", [Everyone(), Majority(), OfRole(Role.APPROVER, 1), AnyOf(1)])
def test_timeout_rejects_a_gate_without_voters(house: ServerPolicy, quorum: Quorum) -> None:
    room = given(
        create_step(by=CLAUDE, default_gate_quorum=quorum),
        script_step(CLAUDE, tool_propose(), id="p"),
        policy=house,
    )

    assert resolution(tick_at(room, LATE, policy=house)) is GateResolution.REJECTED


@proves("OPEN-15")
def test_voters_are_checked_at_the_timeout_not_at_opening() -> None:
    room = given(
        create_step(by=ALICE, default_gate_quorum=OfRole(Role.APPROVER, 1)),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        policy=TRUSTING,
    )
    joined_in_time = given(join_step(BOB, Role.APPROVER), room=room)
    left_again = given(leave_step(BOB), room=joined_in_time)

    assert (
        resolution(tick_at(joined_in_time, LATE, policy=TRUSTING)) is GateResolution.AUTO_APPROVED
    )
    assert resolution(tick_at(left_again, LATE, policy=TRUSTING)) is GateResolution.REJECTED


@proves("OPEN-27", "OPEN-23")
def test_the_end_of_a_session_rejects_whatever_the_policy() -> None:
    for house in (TRUSTING, ESCALATING):
        facts = when(asking(house=house), ALICE, session_end(), policy=house)

        assert resolution(facts) is GateResolution.REJECTED


# By an admin


@proves("OPEN-23", "PVP-14.3-3")
def test_an_escalation_asks_an_admin_once_more() -> None:
    room = asking(
        script_step(BOB, gate_approve(BOB, "p")), default_gate_quorum=AnyOf(2), house=ESCALATING
    )
    first = gate_on(room, "p").id

    facts = tick_at(room, LATE, policy=ESCALATING)

    assert [GateTimedOut, GateOpened] == types_of(facts)
    assert resolution(facts) is GateResolution.ESCALATED
    room = after(room, facts)
    gate = gate_on(room, "p")
    assert gate.id != first
    assert gate.ballot.quorum == OfRole(Role.ADMIN, 1)
    assert gate.ballot.yes == frozenset()
    assert gate.message.startswith("Escalated: claude wants to run")
    assert gate.expires_at == seconds_after_start(600)
    assert has_open_gate(given(script_step(BOB, gate_approve(BOB, "p")), room=room), "p")
    assert has_grant(given(script_step(ALICE, gate_approve(ALICE, "p")), room=room), "p")


@proves("OPEN-23")
def test_an_escalation_happens_once() -> None:
    room = asking(house=ESCALATING)
    room = after(room, tick_at(room, LATE, policy=ESCALATING))

    facts = tick_at(room, seconds_after_start(600), policy=ESCALATING)

    assert [GateTimedOut, Relay] == types_of(facts)
    assert resolution(facts) is GateResolution.REJECTED


def test_an_escalation_has_as_much_time_as_the_gate_had() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(BOB, Role.DRIVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(BOB, prompt_submit(), id="q"),
        script_step(BOB, gate_request("q", timeout=60), id="g"),
        policy=ESCALATING,
    )

    room = after(room, tick_at(room, seconds_after_start(60), policy=ESCALATING))

    assert gate_on(room, "q").expires_at == seconds_after_start(120)


@proves("OPEN-24")
def test_a_late_vote_on_what_was_escalated_does_not_count_for_the_admins_gate() -> None:
    room = asking(house=ESCALATING)
    first = gate_on(room, "p").id
    room = after(room, tick_at(room, LATE, policy=ESCALATING))

    with expect_refusal(Reason.WRONG_STATE, "timed out, escalated"):
        when(room, ALICE, gate_approve(ALICE, first), ref="p")


@proves("OPEN-23")
def test_an_escalation_without_an_admin_is_rejected_in_the_end() -> None:
    room = given(
        create_step(by=CLAUDE),
        join_step(BOB, Role.APPROVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        policy=ESCALATING,
    )
    room = after(room, tick_at(room, LATE, policy=ESCALATING))

    assert gate_on(room, "p").message.endswith(
        "(cannot be met yet: role admin 1 needs 1 more: no member can approve)"
    )
    assert (
        resolution(tick_at(room, seconds_after_start(600), policy=ESCALATING))
        is GateResolution.REJECTED
    )
