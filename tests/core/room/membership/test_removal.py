"""Removing members, letting them back in, and what a demotion of an agent ends."""

from typing import Any

import pytest

from accord.core.kernel.actor import TIMER_ACTOR
from accord.core.kernel.ballot import AnyOf, Everyone
from accord.core.kernel.effects import Relay
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.approval.grants import GrantEnded
from accord.core.room.approval.votes import GateRejected
from accord.core.room.conversation.responses import ResponseEnded, ResponseStart
from accord.core.room.membership.leaving import MemberLeft, SessionLeave
from accord.core.room.membership.presence import PresenceChanged
from accord.core.room.membership.role_assignment import ParticipantRoleChange, RolesChanged
from accord.core.room.room_settings import AbsencePolicy
from accord.core.room.state import Presence, Room
from accord.core.views import sessions
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    DAVE,
    Step,
    after,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    given,
    has_open_gate,
    join_step,
    leave_step,
    presence_step,
    prompt_submit,
    role_change,
    script_step,
    session_end,
    session_join,
    tool_approve,
    tool_propose,
    types_of,
    when,
)
from tests.spec import proves

R, C = Role, Capability
NO_ROLES: list[Role] = []


def staffed(*script: Step, **config: Any) -> Room:
    """Alice is admin, Bob and Carol approve, Dave observes, Claude drives; Codex manages."""
    return given(
        create_step(by=ALICE, **config),
        join_step(BOB, R.APPROVER),
        join_step(CAROL, R.APPROVER),
        join_step(DAVE, R.OBSERVER),
        join_step(CLAUDE, R.DRIVER),
        *script,
    )


def removes_bob(reason: str | None = None) -> Step:
    """A step in which Alice removes Bob."""
    change = ParticipantRoleChange("bob", (R.APPROVER,), (), "alice", reason)
    return script_step(ALICE, change)


def lets_bob_in() -> Step:
    """A step in which Alice lets Bob back in, as a driver."""
    return script_step(ALICE, role_change(ALICE, BOB, NO_ROLES, [R.DRIVER]))


@proves("OPEN-34")
def test_a_role_change_without_new_roles_removes_the_member() -> None:
    room = staffed()

    facts = when(room, ALICE, removes_bob("Left the team").body, id="out")
    room = after(room, facts)

    assert types_of(facts) == [RolesChanged, MemberLeft, PresenceChanged]
    assert [(record.sender, record.to) for record in facts.records] == [
        ("alice", None),
        ("system", None),
        ("system", None),
    ]
    assert facts.records[1].said == SessionLeave("Removed by alice: Left the team", "bob")
    assert "bob" not in room.members
    assert room.former["bob"].removed_by == "alice"


@proves("OPEN-34")
def test_a_removed_member_cannot_come_back_or_speak() -> None:
    room = staffed(removes_bob())

    for body in (session_join(BOB, R.APPROVER), prompt_submit()):
        with expect_refusal(Reason.FORBIDDEN, "alice removed you from this session"):
            when(room, BOB, body)


@proves("OPEN-34")
def test_a_removed_member_who_is_let_back_in_joins_with_the_new_roles() -> None:
    room = staffed(removes_bob(), lets_bob_in())
    assert "bob" not in room.members

    room = given(join_step(BOB, R.APPROVER), room=room)

    assert room.members["bob"].roles == {R.DRIVER}
    assert room.members["bob"].settled


@proves("OPEN-34")
@pytest.mark.parametrize(("old", "new"), [([R.APPROVER], [R.DRIVER]), ([], [])])
def test_letting_back_in_takes_empty_old_roles_and_new_ones(
    old: list[Role], new: list[Role]
) -> None:
    with expect_refusal(Reason.WRONG_STATE, "alice removed bob"):
        when(staffed(removes_bob()), ALICE, role_change(ALICE, BOB, old, new))


def test_only_an_admin_lets_somebody_back_in_as_admin() -> None:
    manages = join_step(CAROL, R.APPROVER, capabilities=(C.MANAGE_PARTICIPANTS,))
    room = given(create_step(), join_step(BOB, R.APPROVER), manages, removes_bob())

    with expect_refusal(Reason.FORBIDDEN, "Only an admin"):
        when(room, CAROL, role_change(CAROL, BOB, NO_ROLES, [R.ADMIN]))
    assert when(room, CAROL, role_change(CAROL, BOB, NO_ROLES, [R.DRIVER]))


def test_a_member_who_left_by_themselves_needs_nobody_to_come_back() -> None:
    room = staffed(leave_step(BOB))

    with expect_refusal(Reason.NO_MEMBER, "bob is not in this session"):
        when(room, ALICE, role_change(ALICE, BOB, NO_ROLES, [R.DRIVER]))
    assert when(room, BOB, session_join(BOB, R.APPROVER))


@proves("OPEN-34", "UNI-13")
def test_an_agent_never_removes_a_person() -> None:
    manages = join_step(CODEX, R.DRIVER, capabilities=(C.MANAGE_PARTICIPANTS,))
    room = staffed(manages)

    with expect_refusal(Reason.FORBIDDEN, "An agent cannot change a human's roles"):
        when(room, CODEX, role_change(CODEX, BOB, [R.APPROVER], NO_ROLES))
    facts = when(room, CODEX, role_change(CODEX, CLAUDE, [R.DRIVER], NO_ROLES))
    assert "claude" not in after(room, facts).members


@proves("OPEN-17")
def test_an_approval_of_a_removed_member_no_longer_counts_and_the_gate_says_who_removed_them() -> (
    None
):
    room = staffed(
        script_step(CLAUDE, tool_propose(), id="p"),
        script_step(BOB, tool_approve(BOB, "p")),
        removes_bob(),
        default_gate_quorum=AnyOf(2),
    )

    (gate,) = sessions.session_detail(room, "alice")["gates"]
    assert (gate["approvals"], gate["approvals_received"]) == ([], 0)
    assert gate["notes"] == ["alice removed bob, whose approval does not count"]
    facts = when(room, CAROL, gate_approve(CAROL, "p"))
    assert has_open_gate(after(room, facts), "p")


@proves("OPEN-17")
def test_everybody_means_those_who_remain_after_a_removal() -> None:
    room = staffed(
        script_step(CLAUDE, tool_propose(), id="p"),
        script_step(ALICE, tool_approve(ALICE, "p")),
        removes_bob(),
        default_gate_quorum=Everyone(),
    )
    assert has_open_gate(room, "p")  # a removal passes no gate

    room = given(script_step(CAROL, gate_approve(CAROL, "p")), room=room)

    assert room.tools["p"].grant is not None


def test_the_removal_of_an_observer_is_no_news_for_gates() -> None:
    room = staffed(
        script_step(CLAUDE, tool_propose(), id="p"),
        script_step(ALICE, role_change(ALICE, DAVE, [R.OBSERVER], NO_ROLES)),
    )

    assert gate_on(room, "p").notes == ()


def test_a_removal_ends_the_pause_of_an_absence() -> None:
    room = staffed(
        presence_step(BOB, Presence.DISCONNECTED),
        removes_bob(),
        on_participant_timeout=AbsencePolicy.PAUSE_SESSION,
    )

    assert room.paused_at is None


@proves("OPEN-34")
def test_a_full_session_names_its_absent_members() -> None:
    room = staffed(presence_step(BOB, Presence.DISCONNECTED), max_participants=5)

    with pytest.raises(Refused, match="Absent: bob; an admin can remove one") as refused:
        when(room, CODEX, session_join(CODEX, R.DRIVER))

    assert refused.value.reason is Reason.FULL
    assert refused.value.details == {"reason": "max_participants", "limit": 5, "absent": ["bob"]}


def at_work() -> Room:
    """Claude answers a prompt, waits at a gate, and holds one unused and one used grant."""
    run = [
        step
        for id in ("unused", "used")
        for step in (
            script_step(CLAUDE, tool_propose(), id=id),
            script_step(ALICE, tool_approve(ALICE, id)),
        )
    ]
    room = staffed(
        script_step(ALICE, prompt_submit(), id="prompt"),
        script_step(CLAUDE, ResponseStart("claude", "prompt"), id="answer"),
        *run,
        script_step(CLAUDE, tool_propose(), id="asked"),
    )
    return given(script_step(CLAUDE, execute(room, "used")), room=room)


def execute(room: Room, proposal: str) -> Any:
    from accord.core.room.approval.grants import ToolExecute

    return ToolExecute(proposal, (), room.tools[proposal].grant)


@proves("OPEN-9")
@pytest.mark.parametrize(
    ("new_roles", "sentence"),
    [([R.OBSERVER], "alice made claude an observer"), (NO_ROLES, "alice removed claude")],
)
def test_a_demotion_or_removal_of_an_agent_ends_its_work_with_the_reason(
    new_roles: list[Role], sentence: str
) -> None:
    room = at_work()
    answer = next(iter(room.streams))

    facts = when(room, ALICE, role_change(ALICE, CLAUDE, [R.DRIVER], new_roles))

    (rejected,) = (fact for fact in facts if isinstance(fact, GateRejected))
    (ended,) = (fact for fact in facts if isinstance(fact, GrantEnded))
    (stream,) = (fact for fact in facts if isinstance(fact, ResponseEnded))
    assert rejected.said.reason == sentence  # type: ignore[attr-defined]
    assert (ended.tool, ended.reason) == ("unused", sentence)
    assert (stream.ref, stream.said.finish_reason) == (answer, "interrupted")
    notices = [fact.body.detail for fact in facts if isinstance(fact, Relay)]  # type: ignore[union-attr]
    assert notices == [sentence, f"Its grant ended: {sentence}"]
    room = after(room, facts)
    assert (room.gates, room.streams) == ({}, {})
    assert {*room.tools} == ({"used"} if new_roles else set())


@proves("OPEN-9")
def test_a_leave_of_an_agent_ends_its_unused_grants_with_the_reason() -> None:
    facts = when(at_work(), CLAUDE, SessionLeave())

    assert [fact.reason for fact in facts if isinstance(fact, GrantEnded)] == ["claude left"]


@proves("OPEN-9")
def test_a_change_that_leaves_an_agent_its_work_ends_nothing() -> None:
    change = role_change(ALICE, CLAUDE, [R.DRIVER], [R.NAVIGATOR])

    assert types_of(when(at_work(), ALICE, change)) == [RolesChanged]


@proves("OPEN-9")
def test_an_agent_that_is_let_back_in_as_observer_has_nothing_to_end() -> None:
    room = staffed(script_step(ALICE, role_change(ALICE, CLAUDE, [R.DRIVER], NO_ROLES)))

    facts = when(room, ALICE, role_change(ALICE, CLAUDE, NO_ROLES, [R.OBSERVER]))

    assert types_of(facts) == [RolesChanged]


def test_a_leave_that_the_server_says_of_a_member_who_already_left_changes_nothing() -> None:
    says_bob_left = SessionLeave(participant="bob")

    assert types_of(when(staffed(), TIMER_ACTOR, says_bob_left))[-2:] == [
        MemberLeft,
        PresenceChanged,
    ]
    assert not [*when(staffed(leave_step(BOB)), TIMER_ACTOR, says_bob_left)]
    assert not [*when(staffed(script_step(ALICE, session_end())), TIMER_ACTOR, says_bob_left)]
