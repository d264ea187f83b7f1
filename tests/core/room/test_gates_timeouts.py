"""Gates that nobody passed in time (OPEN-23)."""

from typing import Any

import msgspec
import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import AnyOf, Everyone, Majority, Named, OfRole, Quorum
from accord.core.kernel.log import Failure, Say
from accord.core.kernel.refusal import Why
from accord.core.room import deadlines
from accord.core.room.gates import ActionType, GateOpened, GateRequest
from accord.core.room.grants import ToolCleared
from accord.core.room.members import Left
from accord.core.room.state import Category, House, Presence, Resolution, Risk, Room
from accord.core.room.timeouts import GateTimedOut, GateTimeout
from accord.core.room.votes import GatePassed, Rejected
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    HOUSE,
    Facts,
    Step,
    after,
    after_seconds,
    approves,
    ends,
    executes,
    gate_on,
    given,
    joined,
    kinds,
    left,
    may_run,
    now,
    opened,
    prompts,
    proposes,
    refused,
    requests,
    says,
    step,
    ticks,
    waits,
    when,
)
from tests.spec import proves

LATE = after_seconds(300)
TRUSTING = House(on_gate_timeout=Resolution.AUTO_APPROVED)
ESCALATING = House(on_gate_timeout=Resolution.ESCALATED)


def asking(*script: Step, house: House = HOUSE, **config: Any) -> Room:
    """Alice is admin, Bob approves; Claude has proposed `p` to a house with this policy."""
    return given(
        opened(by=ALICE, **config),
        joined(BOB, Role.APPROVER),
        joined(CLAUDE, Role.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        *script,
        house=house,
    )


def resolution(facts: Facts) -> Resolution:
    (timed_out,) = (fact for fact in facts if isinstance(fact, GateTimedOut))
    return timed_out.said.resolution


@proves("PVP-14.3-3", "PVP-14.3-4", "OPEN-23", "OPEN-25", "UNI-23")
def test_after_five_minutes_a_gate_is_rejected_and_its_action_dead() -> None:
    room = asking(step(BOB, approves(BOB, "p")), default_gate_quorum=AnyOf(2))
    gate = gate_on(room, "p").id

    assert ticks(room, LATE - 1) == []
    facts = ticks(room, LATE)

    assert [GateTimedOut, Say] == kinds(facts)
    assert facts[0] == GateTimedOut(said=GateTimeout(gate, 1, 2, Resolution.REJECTED), ref=gate)
    assert facts.records[0].sender == "system"
    (news,) = says(facts)
    assert news.body == Failure(Why.GATE_FAILED, "Nobody approved it in time", "p")
    with refused(Why.GATE_FAILED, "timed out"):
        when(after(room, facts), CLAUDE, executes("p"))


def test_the_deadline_of_a_gate_is_known_beforehand() -> None:
    assert list(deadlines(asking(), HOUSE)) == [LATE]


@proves("PVP-14.3-4")
def test_a_timeout_is_written_as_the_specification_has_it() -> None:
    said = GateTimeout("g", 1, 2, Resolution.AUTO_APPROVED)

    assert msgspec.to_builtins(said) == {
        "gate": "g",
        "approvals_received": 1,
        "approvals_required": 2,
        "resolution": "auto_approved",
    }
    assert {each.value for each in Resolution} == {"rejected", "auto_approved", "escalated"}


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
        opened(by=ALICE, default_gate_quorum=quorum),
        joined(BOB, Role.APPROVER),
        joined(CAROL, Role.NAVIGATOR),
        joined(CLAUDE, Role.DRIVER),
        step(CLAUDE, proposes(), id="p"),
    )

    (timed_out, _) = ticks(room, LATE)

    assert isinstance(timed_out, GateTimedOut)
    assert (timed_out.said.approvals_received, timed_out.said.approvals_required) == (0, required)


def test_several_gates_may_be_due_at_once() -> None:
    room = asking(step(CLAUDE, proposes(), id="p2"))

    facts = ticks(room, LATE)

    assert [GateTimedOut, Say, GateTimedOut, Say] == kinds(facts)
    assert after(room, facts).gates == {}


@proves("OPEN-23")
def test_a_gate_of_no_time_waits_for_ever() -> None:
    room = given(
        opened(by=ALICE),
        joined(BOB, Role.DRIVER),
        joined(CLAUDE, Role.DRIVER),
        step(BOB, prompts(), id="q"),
        step(BOB, requests("q", timeout=0), id="g"),
    )

    assert room.gates["g"].expires_at is None
    assert list(deadlines(room, HOUSE)) == []
    assert ticks(room, after_seconds(10_000_000)) == []
    assert GateTimedOut in kinds(when(room, ALICE, ends()))


@proves("OPEN-23")
def test_a_negative_time_is_no_message() -> None:
    body = {**msgspec.to_builtins(requests("q")), "timeout_seconds": -1}

    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, GateRequest)


# Races


@proves("OPEN-24")
def test_a_vote_that_is_sequenced_before_the_timeout_wins() -> None:
    room = asking()
    voted = after(room, when(room, BOB, approves(BOB, "p"), at=LATE + 5))

    assert may_run(voted, "p")
    assert ticks(voted, LATE + 6) == []


@proves("OPEN-24")
def test_a_vote_that_is_sequenced_after_the_timeout_loses() -> None:
    room = asking()
    room = after(room, ticks(room, LATE))

    with refused(Why.WRONG_STATE, "closed already: timed out, rejected"):
        when(room, BOB, approves(BOB, "p"), at=LATE)


@proves("OPEN-24", "OPEN-32")
@pytest.mark.parametrize("house", [HOUSE, TRUSTING, ESCALATING])
def test_a_gate_and_its_initiator_that_are_due_at_once_end_one_after_the_other(
    house: House,
) -> None:
    room = asking(now(CLAUDE, Presence.DISCONNECTED), house=house)
    gate = gate_on(room, "p").id

    first = ticks(room, LATE, house=house)
    room = after(room, first)
    second = ticks(room, LATE, house=house)

    assert kinds(first)[0] is GateTimedOut
    assert kinds(second)[-1] is Left
    assert gate not in {fact.gate for fact in second if isinstance(fact, Rejected)}
    room = after(room, second)
    assert (room.gates, room.tools) == ({}, {})


# By silence


@proves("OPEN-23", "PVP-14.3-3")
def test_silence_approves_where_the_operator_says_so() -> None:
    room = asking(house=TRUSTING)

    facts = ticks(room, LATE, house=TRUSTING)

    assert [GateTimedOut, GatePassed, ToolCleared] == kinds(facts)
    assert resolution(facts) is Resolution.AUTO_APPROVED
    assert isinstance(facts[2], ToolCleared)
    assert facts[2].said.approved_by == ()
    assert may_run(after(room, facts), "p")


@proves("OPEN-23")
@pytest.mark.parametrize(
    "risky",
    [
        proposes(risk=Risk.HIGH),
        proposes(risk=Risk.CRITICAL),
        proposes(category=Category.DEPLOY),
        proposes(category=Category.DATABASE),
        proposes(category=Category.SECRET_ACCESS),
        proposes(category=Category.FILE_DELETE),
        proposes(category=Category.ALL),
        proposes(tool_name="delete_file", category=Category.FILE_WRITE),
        proposes(tool_name=" Database ", category=Category.FILE_WRITE),
    ],
)
def test_silence_never_approves_what_could_do_harm(risky: Any) -> None:
    room = given(
        opened(by=ALICE),
        joined(CLAUDE, Role.DRIVER),
        step(CLAUDE, risky, id="p"),
        house=TRUSTING,
    )

    facts = ticks(room, LATE, house=TRUSTING)

    assert resolution(facts) is Resolution.REJECTED
    assert not may_run(after(room, facts), "p")


@proves("OPEN-23")
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("deploy", Resolution.REJECTED),
        ("merge", Resolution.REJECTED),
        ("session_config", Resolution.REJECTED),
        ("prompt", Resolution.AUTO_APPROVED),
    ],
)
def test_silence_never_approves_deploys_merges_and_configuration(
    kind: ActionType, expected: Resolution
) -> None:
    room = given(
        opened(by=ALICE),
        joined(BOB, Role.DRIVER),
        joined(CLAUDE, Role.DRIVER),
        step(BOB, prompts(), id="q"),
        step(BOB, requests("q", action_type=kind), id="g"),
        house=TRUSTING,
    )

    assert resolution(ticks(room, LATE, house=TRUSTING)) is expected


@proves("OPEN-15", "OPEN-23")
@pytest.mark.parametrize("house", [TRUSTING, ESCALATING])
@pytest.mark.parametrize("quorum", [Everyone(), Majority(), OfRole(Role.APPROVER, 1), AnyOf(1)])
def test_the_silence_of_nobody_rejects(house: House, quorum: Quorum) -> None:
    room = given(
        opened(by=CLAUDE, default_gate_quorum=quorum),
        step(CLAUDE, proposes(), id="p"),
        house=house,
    )

    assert resolution(ticks(room, LATE, house=house)) is Resolution.REJECTED


@proves("OPEN-15")
def test_whether_somebody_could_have_answered_is_asked_at_the_end() -> None:
    room = given(
        opened(by=ALICE, default_gate_quorum=OfRole(Role.APPROVER, 1)),
        joined(CLAUDE, Role.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        house=TRUSTING,
    )
    joined_in_time = given(joined(BOB, Role.APPROVER), room=room)
    left_again = given(left(BOB), room=joined_in_time)

    assert resolution(ticks(joined_in_time, LATE, house=TRUSTING)) is Resolution.AUTO_APPROVED
    assert resolution(ticks(left_again, LATE, house=TRUSTING)) is Resolution.REJECTED


@proves("OPEN-27", "OPEN-23")
def test_the_end_of_a_session_rejects_whatever_the_policy() -> None:
    for house in (TRUSTING, ESCALATING):
        facts = when(asking(house=house), ALICE, ends(), house=house)

        assert resolution(facts) is Resolution.REJECTED


# By an admin


@proves("OPEN-23", "PVP-14.3-3")
def test_an_escalation_asks_an_admin_once_more() -> None:
    room = asking(step(BOB, approves(BOB, "p")), default_gate_quorum=AnyOf(2), house=ESCALATING)
    first = gate_on(room, "p").id

    facts = ticks(room, LATE, house=ESCALATING)

    assert [GateTimedOut, GateOpened] == kinds(facts)
    assert resolution(facts) is Resolution.ESCALATED
    room = after(room, facts)
    gate = gate_on(room, "p")
    assert gate.id != first
    assert gate.ballot.quorum == OfRole(Role.ADMIN, 1)
    assert gate.ballot.yes == frozenset()
    assert gate.message.startswith("Escalated: claude wants to run")
    assert gate.expires_at == after_seconds(600)
    assert waits(given(step(BOB, approves(BOB, "p")), room=room), "p")
    assert may_run(given(step(ALICE, approves(ALICE, "p")), room=room), "p")


@proves("OPEN-23")
def test_an_escalation_happens_once() -> None:
    room = asking(house=ESCALATING)
    room = after(room, ticks(room, LATE, house=ESCALATING))

    facts = ticks(room, after_seconds(600), house=ESCALATING)

    assert [GateTimedOut, Say] == kinds(facts)
    assert resolution(facts) is Resolution.REJECTED


def test_an_escalation_has_as_much_time_as_the_gate_had() -> None:
    room = given(
        opened(by=ALICE),
        joined(BOB, Role.DRIVER),
        joined(CLAUDE, Role.DRIVER),
        step(BOB, prompts(), id="q"),
        step(BOB, requests("q", timeout=60), id="g"),
        house=ESCALATING,
    )

    room = after(room, ticks(room, after_seconds(60), house=ESCALATING))

    assert gate_on(room, "q").expires_at == after_seconds(120)


@proves("OPEN-24")
def test_a_late_vote_on_what_was_escalated_does_not_count_for_the_admins_gate() -> None:
    room = asking(house=ESCALATING)
    first = gate_on(room, "p").id
    room = after(room, ticks(room, LATE, house=ESCALATING))

    with refused(Why.WRONG_STATE, "timed out, escalated"):
        when(room, ALICE, approves(ALICE, first), ref="p")


@proves("OPEN-23")
def test_an_escalation_without_an_admin_is_rejected_in_the_end() -> None:
    room = given(
        opened(by=CLAUDE),
        joined(BOB, Role.APPROVER),
        step(CLAUDE, proposes(), id="p"),
        house=ESCALATING,
    )
    room = after(room, ticks(room, LATE, house=ESCALATING))

    assert gate_on(room, "p").message.endswith("(nobody here can approve this yet)")
    assert resolution(ticks(room, after_seconds(600), house=ESCALATING)) is Resolution.REJECTED
