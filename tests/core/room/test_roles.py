"""Role changes: who may make them, and what they can never do."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Capability, Role
from accord.core.kernel.ballot import OfRole
from accord.core.kernel.refusal import Why
from accord.core.room.roles import ParticipantRoleChange, RolesChanged
from accord.core.room.state import Room
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    after,
    approves,
    changes_roles,
    configures,
    ends,
    gate_on,
    given,
    joined,
    left,
    opened,
    prompts,
    proposes,
    refused,
    step,
    when,
)
from tests.spec import proves

R, C = Role, Capability


def staffed() -> Room:
    """Alice is admin, Bob manages without being one, Carol drives, Dave watches."""
    return given(
        opened(by=ALICE),
        joined(BOB, R.NAVIGATOR, capabilities=(C.MANAGE_PARTICIPANTS,)),
        joined(CAROL, R.DRIVER, capabilities=(C.APPROVE,)),
        joined(DAVE, R.OBSERVER),
        joined(CLAUDE, R.DRIVER),
    )


@proves("PVP-7.4-1", "PVP-7.4-2", "PVP-7.2-7")
def test_an_admin_gives_a_member_other_roles() -> None:
    room = staffed()
    change = changes_roles(ALICE, CAROL, [R.DRIVER], [R.DRIVER, R.APPROVER])

    facts = when(room, ALICE, change)
    carol = after(room, facts).members["carol"]

    assert facts == [RolesChanged(said=change)]
    assert carol.roles == {R.DRIVER, R.APPROVER}
    assert carol.settled


@proves("OPEN-9")
def test_a_role_change_takes_capabilities_away() -> None:
    room = staffed()
    assert room.members["carol"].votes

    room = given(step(ALICE, changes_roles(ALICE, CAROL, [R.DRIVER], [R.DRIVER])), room=room)

    assert room.members["carol"].capabilities == frozenset()
    assert not room.members["carol"].votes


@proves("PVP-7.4-2", "PVP-7.3-2", "PVP-7.3-1")
def test_who_may_manage_participants_changes_roles_without_being_admin() -> None:
    room = staffed()

    facts = when(room, BOB, changes_roles(BOB, CAROL, [R.DRIVER], [R.APPROVER]))

    assert after(room, facts).members["carol"].roles == {R.APPROVER}


@proves("PVP-7.4-2", "PVP-7.2-8")
@pytest.mark.parametrize("who", [CAROL, DAVE, CLAUDE])
def test_nobody_else_changes_roles(who: Actor) -> None:
    with refused(Why.FORBIDDEN, "manage participants"):
        when(staffed(), who, changes_roles(who, DAVE, [R.OBSERVER], [R.DRIVER]))


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
    room = given(joined(Actor("erin", BOB.kind), R.ADMIN), room=staffed())

    with refused(Why.FORBIDDEN, "Only an admin"):
        when(room, BOB, changes_roles(BOB, who, old, new))


def test_an_admin_may_change_their_own_roles() -> None:
    room = staffed()

    facts = when(room, ALICE, changes_roles(ALICE, ALICE, [R.ADMIN], [R.ADMIN, R.DRIVER]))

    assert after(room, facts).members["alice"].roles == {R.ADMIN, R.DRIVER}


@proves("OPEN-34")
@pytest.mark.parametrize("new", [[R.DRIVER], [], [R.OBSERVER, R.APPROVER]])
def test_the_last_admin_cannot_be_demoted_not_even_by_themselves(new: list[Role]) -> None:
    with refused(Why.WRONG_STATE, "alice is the last admin"):
        when(staffed(), ALICE, changes_roles(ALICE, ALICE, [R.ADMIN], new))


@proves("OPEN-34")
def test_an_admin_who_left_does_not_stand_in_for_one_who_is_here() -> None:
    room = given(step(ALICE, changes_roles(ALICE, CAROL, [R.DRIVER], [R.ADMIN])), room=staffed())
    assert when(room, CAROL, changes_roles(CAROL, ALICE, [R.ADMIN], [R.DRIVER]))

    room = given(left(ALICE), room=room)

    with refused(Why.WRONG_STATE, "carol is the last admin"):
        when(room, CAROL, changes_roles(CAROL, CAROL, [R.ADMIN], [R.DRIVER]))


@proves("OPEN-34")
def test_an_admin_makes_another_one_and_may_then_be_demoted() -> None:
    room = given(step(ALICE, changes_roles(ALICE, CAROL, [R.DRIVER], [R.ADMIN])), room=staffed())

    room = given(step(CAROL, changes_roles(CAROL, ALICE, [R.ADMIN], [R.OBSERVER])), room=room)

    assert room.members["alice"].roles == {R.OBSERVER}
    with refused(Why.FORBIDDEN):
        when(room, ALICE, ends())


@proves("OPEN-34")
@pytest.mark.parametrize("old", [[], [R.OBSERVER], [R.DRIVER, R.APPROVER], [R.APPROVER]])
def test_old_roles_that_are_not_the_present_ones_are_refused(old: list[Role]) -> None:
    with refused(Why.WRONG_STATE, "carol holds driver"):
        when(staffed(), ALICE, changes_roles(ALICE, CAROL, old, [R.OBSERVER]))


@proves("OPEN-34")
@pytest.mark.parametrize("old", [[], [R.OBSERVER], [R.OBSERVER, R.OBSERVER]])
def test_no_roles_and_observer_are_the_same(old: list[Role]) -> None:
    room = staffed()

    promoted = given(step(ALICE, changes_roles(ALICE, DAVE, old, [R.DRIVER])), room=room)
    demoted = given(step(ALICE, changes_roles(ALICE, CAROL, [R.DRIVER], [])), room=room)

    assert promoted.members["dave"].roles == {R.DRIVER}
    assert demoted.members["carol"].roles == {R.OBSERVER}
    with refused(Why.FORBIDDEN):
        when(demoted, CAROL, prompts())


@proves("PVP-17-5")
@pytest.mark.parametrize("who", ["nobody", "carol"])
def test_roles_are_for_those_who_are_here(who: str) -> None:
    room = given(left(CAROL), room=staffed())

    with refused(Why.NO_MEMBER, f"{who} is not in this session"):
        when(room, ALICE, ParticipantRoleChange(who, (R.DRIVER,), (R.ADMIN,), "alice"))


@proves("OPEN-17", "OPEN-9")
@pytest.mark.parametrize("new", [[R.DRIVER], [R.NAVIGATOR]])
def test_a_demotion_takes_back_the_vote_that_needed_the_role(new: list[Role]) -> None:
    room = given(
        opened(by=ALICE, default_gate_quorum=OfRole(R.APPROVER, 2)),
        joined(BOB, R.APPROVER),
        joined(CAROL, R.APPROVER),
        joined(CLAUDE, R.DRIVER),
        step(CLAUDE, proposes(), id="p"),
    )
    gate = gate_on(room, "p").id
    room = given(step(BOB, approves(BOB, gate)), room=room)
    assert gate_on(room, "p").ballot.yes == {"bob"}

    room = given(step(ALICE, changes_roles(ALICE, BOB, [R.APPROVER], new)), room=room)

    assert gate_on(room, "p").ballot.yes == frozenset()


@proves("PVP-6.6-2")
def test_managing_participants_is_not_configuring() -> None:
    with refused(Why.FORBIDDEN):
        when(staffed(), BOB, configures(max_participants=3))
