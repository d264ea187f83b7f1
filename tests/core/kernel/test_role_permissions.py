"""Roles, capabilities and the verbs they give."""

import pytest

from accord.core.kernel.role_permissions import (
    CAPABILITY_PERMISSION,
    ROLE_CAPABILITIES,
    SESSION_CAPABILITIES,
    Capability,
    Kind,
    Permission,
    Role,
    capabilities_of,
    permissions_for,
)
from tests.spec import proves

COLUMNS = (
    Capability.PROMPT,
    Capability.APPROVE,
    Capability.INTERRUPT,
    Capability.FORK,
    Capability.MANAGE_PARTICIPANTS,
    Capability.END_SESSION,
)
YES, NO = True, False


@proves("PVP-7.2-1", "PVP-7.2-2", "PVP-7.2-3", "PVP-7.2-4", "PVP-7.2-5", "PVP-7.2-6", "PVP-20.2-1")
@pytest.mark.parametrize(
    ("role", "row"),
    [
        #                 prompt approve interrupt fork manage end
        (Role.DRIVER, (YES, NO, YES, YES, NO, NO)),
        (Role.NAVIGATOR, (NO, YES, YES, YES, NO, NO)),
        (Role.ADVERSARY, (YES, YES, YES, YES, NO, NO)),
        (Role.OBSERVER, (NO, NO, NO, NO, NO, NO)),
        (Role.APPROVER, (NO, YES, YES, NO, NO, NO)),
        (Role.ADMIN, (YES, YES, YES, YES, YES, YES)),
    ],
)
def test_the_matrix_is_the_one_of_the_specification(role: Role, row: tuple[bool, ...]) -> None:
    assert row == tuple(column in ROLE_CAPABILITIES[role] for column in COLUMNS)


@proves("PVP-7.2-7")
@pytest.mark.parametrize("one", Role)
@pytest.mark.parametrize("other", Role)
def test_several_roles_give_the_rights_of_each(one: Role, other: Role) -> None:
    assert capabilities_of({one, other}) == ROLE_CAPABILITIES[one] | ROLE_CAPABILITIES[other]


@proves("PVP-7.3-1")
def test_there_are_seven_capabilities_in_a_session() -> None:
    assert {
        "prompt",
        "approve",
        "interrupt",
        "fork",
        "add_context",
        "manage_participants",
        "end_session",
    } == SESSION_CAPABILITIES


def test_supervising_is_of_tokens_alone_and_permits_nothing_in_a_session() -> None:
    observer = frozenset({Role.OBSERVER})
    supervise = frozenset({Capability.SUPERVISE})

    assert set(Capability) - SESSION_CAPABILITIES == supervise
    assert Capability.SUPERVISE not in capabilities_of(Role)
    assert permissions_for(Kind.AGENT, observer, supervise) == permissions_for(
        Kind.AGENT, observer, frozenset()
    )


@proves("PVP-7.3-1", "PVP-7.3-2")
@pytest.mark.parametrize("right", sorted(SESSION_CAPABILITIES))
def test_a_capability_gives_an_observer_its_one_right(right: Capability) -> None:
    before = permissions_for(Kind.HUMAN, frozenset({Role.OBSERVER}), frozenset())
    given = permissions_for(Kind.HUMAN, frozenset({Role.OBSERVER}), frozenset({right}))

    assert CAPABILITY_PERMISSION[right] not in before
    assert given - before - {Permission.PARTICIPATE} == {CAPABILITY_PERMISSION[right]}


@proves("PVP-7.3-2")
def test_capabilities_and_rights_mean_the_same_verbs() -> None:
    assert CAPABILITY_PERMISSION[Capability.MANAGE_PARTICIPANTS] is Permission.MANAGE_PARTICIPANTS
    assert CAPABILITY_PERMISSION[Capability.ADD_CONTEXT] is Permission.ADD_CONTEXT
    assert len(set(CAPABILITY_PERMISSION.values())) == len(SESSION_CAPABILITIES)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("right", Capability)
def test_a_capability_never_takes_anything_away(role: Role, right: Capability) -> None:
    plain = permissions_for(Kind.HUMAN, frozenset({role}), frozenset())

    assert plain <= permissions_for(Kind.HUMAN, frozenset({role}), frozenset({right}))


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.OBSERVER}))
def test_only_an_agent_that_takes_part_acts_as_one(role: Role) -> None:
    assert Permission.ACT_AS_AGENT in permissions_for(Kind.AGENT, frozenset({role}), frozenset())
    assert Permission.ACT_AS_AGENT not in permissions_for(
        Kind.HUMAN, frozenset({role}), frozenset()
    )


def test_a_capability_does_not_make_an_agent_of_an_observer() -> None:
    everything = frozenset(Capability)

    assert Permission.ACT_AS_AGENT not in permissions_for(
        Kind.AGENT, frozenset({Role.OBSERVER}), everything
    )


@proves("OPEN-13")
def test_who_may_approve_by_capability_alone_may_also_reject() -> None:
    given = permissions_for(Kind.HUMAN, frozenset({Role.OBSERVER}), frozenset({Capability.APPROVE}))

    assert {Permission.APPROVE, Permission.PARTICIPATE} <= given


def test_no_role_and_no_capability_makes_a_server() -> None:
    everything = permissions_for(Kind.AGENT, frozenset(Role), frozenset(Capability))

    assert frozenset(Permission) - everything == {Permission.SERVER_ONLY}
