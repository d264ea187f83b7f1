"""Role changes: who may make them, and what they can never do."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import OfRole
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.membership.role_assignment import ParticipantRoleChange, RolesChanged
from accord.core.room.state import Room
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    after,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    given,
    join_step,
    leave_step,
    role_change,
    script_step,
    session_config_update,
    session_end,
    tool_propose,
    when,
)
from tests.spec import proves

R, C = Role, Capability


def staffed() -> Room:
    """Alice is admin, Bob manages without being one, Carol drives, Dave watches."""
    return given(
        create_step(by=ALICE),
        join_step(BOB, R.NAVIGATOR, capabilities=(C.MANAGE_PARTICIPANTS,)),
        join_step(CAROL, R.DRIVER, capabilities=(C.APPROVE,)),
        join_step(DAVE, R.OBSERVER),
        join_step(CLAUDE, R.DRIVER),
    )


@proves("PVP-7.4-1", "PVP-7.4-2", "PVP-7.2-7")
def test_an_admin_gives_a_member_other_roles() -> None:
    room = staffed()
    change = role_change(ALICE, CAROL, [R.DRIVER], [R.DRIVER, R.APPROVER])

    facts = when(room, ALICE, change)
    carol = after(room, facts).members["carol"]

    assert facts == [RolesChanged(said=change)]
    assert carol.roles == {R.DRIVER, R.APPROVER}
    assert carol.settled


@proves("OPEN-9")
def test_a_role_change_takes_capabilities_away() -> None:
    room = staffed()
    assert room.members["carol"].can_vote

    room = given(script_step(ALICE, role_change(ALICE, CAROL, [R.DRIVER], [R.DRIVER])), room=room)

    assert room.members["carol"].capabilities == frozenset()
    assert not room.members["carol"].can_vote


@proves("PVP-7.4-2", "PVP-7.3-2", "PVP-7.3-1")
def test_who_may_manage_participants_changes_roles_without_being_admin() -> None:
    room = staffed()

    facts = when(room, BOB, role_change(BOB, CAROL, [R.DRIVER], [R.APPROVER]))

    assert after(room, facts).members["carol"].roles == {R.APPROVER}


@proves("PVP-7.4-2", "PVP-7.2-8")
@pytest.mark.parametrize("who", [CAROL, DAVE, CLAUDE])
def test_only_an_admin_changes_roles(who: Actor) -> None:
    with expect_refusal(Reason.FORBIDDEN, "manage participants"):
        when(staffed(), who, role_change(who, DAVE, [R.OBSERVER], [R.DRIVER]))


@proves("OPEN-34")
@pytest.mark.parametrize(
    ("who", "old", "new"),
    [
        (CAROL, [R.DRIVER], [R.DRIVER, R.ADMIN]),
        (BOB, [R.NAVIGATOR], [R.ADMIN]),
        (BOB, [R.NAVIGATOR], [R.NAVIGATOR, R.APPROVER]),
        (BOB, [R.NAVIGATOR], [R.OBSERVER]),
        (ALICE, [R.ADMIN], [R.DRIVER]),
    ],
)
def test_who_manages_without_being_admin_neither_touches_admin_nor_itself(
    who: Actor, old: list[Role], new: list[Role]
) -> None:
    room = given(join_step(Actor("erin", BOB.kind), R.ADMIN), room=staffed())

    with expect_refusal(Reason.FORBIDDEN, "Only an admin"):
        when(room, BOB, role_change(BOB, who, old, new))


def test_an_admin_may_change_their_own_roles() -> None:
    room = staffed()

    facts = when(room, ALICE, role_change(ALICE, ALICE, [R.ADMIN], [R.ADMIN, R.DRIVER]))

    assert after(room, facts).members["alice"].roles == {R.ADMIN, R.DRIVER}


@proves("OPEN-34")
@pytest.mark.parametrize("new", [[R.DRIVER], [], [R.OBSERVER, R.APPROVER]])
def test_the_last_admin_cannot_be_demoted_not_even_by_themselves(new: list[Role]) -> None:
    with expect_refusal(Reason.WRONG_STATE, "alice is the last admin"):
        when(staffed(), ALICE, role_change(ALICE, ALICE, [R.ADMIN], new))


@proves("OPEN-34")
def test_an_admin_who_left_does_not_stand_in_for_one_who_is_here() -> None:
    room = given(
        script_step(ALICE, role_change(ALICE, CAROL, [R.DRIVER], [R.ADMIN])), room=staffed()
    )
    assert when(room, CAROL, role_change(CAROL, ALICE, [R.ADMIN], [R.DRIVER]))

    room = given(leave_step(ALICE), room=room)

    with expect_refusal(Reason.WRONG_STATE, "carol is the last admin"):
        when(room, CAROL, role_change(CAROL, CAROL, [R.ADMIN], [R.DRIVER]))


@proves("OPEN-34")
def test_an_admin_makes_another_one_and_may_then_be_demoted() -> None:
    room = given(
        script_step(ALICE, role_change(ALICE, CAROL, [R.DRIVER], [R.ADMIN])), room=staffed()
    )

    room = given(script_step(CAROL, role_change(CAROL, ALICE, [R.ADMIN], [R.OBSERVER])), room=room)

    assert room.members["alice"].roles == {R.OBSERVER}
    with expect_refusal(Reason.FORBIDDEN):
        when(room, ALICE, session_end())


@proves("OPEN-34")
@pytest.mark.parametrize("old", [[], [R.OBSERVER], [R.DRIVER, R.APPROVER], [R.APPROVER]])
def test_old_roles_that_are_not_the_present_ones_are_refused(old: list[Role]) -> None:
    with expect_refusal(Reason.WRONG_STATE, "carol has the roles driver"):
        when(staffed(), ALICE, role_change(ALICE, CAROL, old, [R.OBSERVER]))


@proves("OPEN-34")
@pytest.mark.parametrize("old", [[], [R.OBSERVER], [R.OBSERVER, R.OBSERVER]])
def test_an_observer_s_old_roles_may_be_left_out(old: list[Role]) -> None:
    room = given(script_step(ALICE, role_change(ALICE, DAVE, old, [R.DRIVER])), room=staffed())

    assert room.members["dave"].roles == {R.DRIVER}


@proves("PVP-17-5")
@pytest.mark.parametrize("who", ["nobody", "carol"])
def test_roles_are_for_those_who_are_here(who: str) -> None:
    room = given(leave_step(CAROL), room=staffed())

    with expect_refusal(Reason.NO_MEMBER, f"{who} is not in this session"):
        when(room, ALICE, ParticipantRoleChange(who, (R.DRIVER,), (R.ADMIN,), "alice"))


@proves("OPEN-17", "OPEN-9")
@pytest.mark.parametrize("new", [[R.DRIVER], [R.NAVIGATOR]])
def test_a_demotion_takes_back_the_vote_that_needed_the_role(new: list[Role]) -> None:
    room = given(
        create_step(by=ALICE, default_gate_quorum=OfRole(R.APPROVER, 2)),
        join_step(BOB, R.APPROVER),
        join_step(CAROL, R.APPROVER),
        join_step(CLAUDE, R.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
    )
    gate = gate_on(room, "p").id
    room = given(script_step(BOB, gate_approve(BOB, gate)), room=room)
    assert gate_on(room, "p").ballot.yes == {"bob"}

    room = given(script_step(ALICE, role_change(ALICE, BOB, [R.APPROVER], new)), room=room)

    assert gate_on(room, "p").ballot.yes == frozenset()


@proves("PVP-6.6-2")
def test_managing_participants_is_not_configuring() -> None:
    with expect_refusal(Reason.FORBIDDEN):
        when(staffed(), BOB, session_config_update(max_participants=3))
