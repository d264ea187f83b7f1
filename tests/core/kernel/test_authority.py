"""Roles, capabilities and the verbs they give."""

import pytest

from accord.core.kernel.authority import RIGHTS, VERB, Capability, Kind, May, Role, rights, verbs
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
    assert row == tuple(column in RIGHTS[role] for column in COLUMNS)


@proves("PVP-7.2-7")
@pytest.mark.parametrize("one", Role)
@pytest.mark.parametrize("other", Role)
def test_several_roles_give_the_rights_of_each(one: Role, other: Role) -> None:
    assert rights({one, other}) == RIGHTS[one] | RIGHTS[other]


@proves("PVP-7.3-1")
def test_there_are_seven_capabilities() -> None:
    assert {
        "prompt",
        "approve",
        "interrupt",
        "fork",
        "add_context",
        "manage_participants",
        "end_session",
    } == set(Capability)


@proves("PVP-7.3-1", "PVP-7.3-2")
@pytest.mark.parametrize("right", Capability)
def test_a_capability_gives_an_observer_its_one_right(right: Capability) -> None:
    before = verbs(Kind.HUMAN, frozenset({Role.OBSERVER}), frozenset())
    given = verbs(Kind.HUMAN, frozenset({Role.OBSERVER}), frozenset({right}))

    assert VERB[right] not in before
    assert given - before - {May.TAKE_PART} == {VERB[right]}


@proves("PVP-7.3-2")
def test_capabilities_and_rights_mean_the_same_verbs() -> None:
    assert VERB[Capability.MANAGE_PARTICIPANTS] is May.MANAGE
    assert VERB[Capability.ADD_CONTEXT] is May.ADD_CONTEXT
    assert len(set(VERB.values())) == len(Capability)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("right", Capability)
def test_a_capability_never_takes_anything_away(role: Role, right: Capability) -> None:
    plain = verbs(Kind.HUMAN, frozenset({role}), frozenset())

    assert plain <= verbs(Kind.HUMAN, frozenset({role}), frozenset({right}))


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.OBSERVER}))
def test_only_an_agent_that_takes_part_acts_as_one(role: Role) -> None:
    assert May.ACT in verbs(Kind.AGENT, frozenset({role}), frozenset())
    assert May.ACT not in verbs(Kind.HUMAN, frozenset({role}), frozenset())


def test_a_capability_does_not_make_an_agent_of_an_observer() -> None:
    everything = frozenset(Capability)

    assert May.ACT not in verbs(Kind.AGENT, frozenset({Role.OBSERVER}), everything)


@proves("OPEN-13")
def test_who_may_approve_by_capability_alone_may_also_reject() -> None:
    given = verbs(Kind.HUMAN, frozenset({Role.OBSERVER}), frozenset({Capability.APPROVE}))

    assert {May.APPROVE, May.TAKE_PART} <= given


def test_no_role_and_no_capability_makes_a_server() -> None:
    everything = verbs(Kind.AGENT, frozenset(Role), frozenset(Capability))

    assert frozenset(May) - everything == {May.SERVE}
