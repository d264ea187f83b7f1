"""Roles that are granted at the door, and what kind of member comes in."""

import msgspec
import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Capability, Kind, Role
from tests.helpers.room.join_results import granted_rights
from tests.helpers.room.scenario import (
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    after,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    given,
    join_step,
    leave_step,
    script_step,
    session_join,
    tool_propose,
    when,
    with_credential,
)
from tests.spec import proves

R, C = Role, Capability


def as_agent(actor: Actor) -> Actor:
    """The same principal, saying that it is an agent."""
    return msgspec.structs.replace(actor, kind=Kind.AGENT)


# What is granted


@proves("OPEN-8")
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_on_trust_a_human_gets_every_role_but_admin(role: Role) -> None:
    facts = when(given(create_step()), BOB, session_join(BOB, role))

    assert granted_rights(facts) == ({role}, set())


@proves("OPEN-8")
@pytest.mark.parametrize("who", [BOB, CLAUDE])
def test_on_trust_nobody_becomes_admin(who: Actor) -> None:
    with expect_refusal(Reason.FORBIDDEN, "may not join as admin"):
        when(given(create_step()), who, session_join(who, R.ADMIN))


@proves("OPEN-8")
def test_on_trust_an_agent_does_not_become_approver() -> None:
    facts = when(given(create_step()), CLAUDE, session_join(CLAUDE, R.APPROVER, R.DRIVER))

    assert granted_rights(facts) == ({R.DRIVER}, set())


@proves("OPEN-8")
def test_on_trust_no_capability_is_had_that_could_do_harm() -> None:
    facts = when(given(create_step()), BOB, session_join(BOB, R.DRIVER, caps=tuple(Capability)))

    assert granted_rights(facts) == ({R.DRIVER}, {C.PROMPT, C.INTERRUPT, C.FORK, C.ADD_CONTEXT})


@proves("OPEN-8", "PVP-20.1-1")
def test_a_credential_grants_what_it_names_and_no_more() -> None:
    who = with_credential(BOB, R.DRIVER, capabilities=(C.APPROVE,))
    asked = session_join(
        BOB, R.DRIVER, R.ADMIN, R.APPROVER, caps=(C.APPROVE, C.FORK, C.END_SESSION)
    )

    facts = when(given(create_step()), who, asked)

    assert granted_rights(facts) == ({R.DRIVER}, {C.APPROVE, C.FORK})


@proves("OPEN-8")
def test_nobody_gets_more_than_they_asked_for() -> None:
    facts = when(given(create_step()), with_credential(BOB, *R), session_join(BOB, R.OBSERVER))

    assert granted_rights(facts) == ({R.OBSERVER}, set())


@proves("OPEN-8")
def test_the_credential_of_a_human_admin_gives_any_role() -> None:
    facts = when(
        given(create_step()), with_credential(BOB, R.ADMIN), session_join(BOB, R.ADMIN, R.APPROVER)
    )

    assert granted_rights(facts) == ({R.ADMIN, R.APPROVER}, set())


@proves("OPEN-8")
def test_the_credential_of_an_agent_gives_only_its_own_roles() -> None:
    facts = when(
        given(create_step()),
        with_credential(CLAUDE, R.ADMIN),
        session_join(CLAUDE, R.ADMIN, R.APPROVER),
    )

    assert granted_rights(facts) == ({R.ADMIN}, set())


@proves("OPEN-8", "PVP-17-3")
def test_a_join_of_which_nothing_can_be_granted_is_refused() -> None:
    asked = session_join(BOB, R.APPROVER, caps=(C.END_SESSION,))

    with expect_refusal(Reason.FORBIDDEN, "bob may not join as approver"):
        when(given(create_step()), with_credential(BOB, R.DRIVER), asked)


@proves("OPEN-8", "OPEN-9")
def test_a_capability_alone_is_enough_to_come_in() -> None:
    facts = when(given(create_step()), BOB, session_join(BOB, R.ADMIN, caps=(C.PROMPT,)))

    assert granted_rights(facts) == ({R.OBSERVER}, {C.PROMPT})


@proves("OPEN-34")
def test_who_asks_for_no_role_is_an_observer() -> None:
    for who in (BOB, with_credential(CAROL, R.DRIVER)):
        assert granted_rights(when(given(create_step()), who, session_join(who))) == (
            {R.OBSERVER},
            set(),
        )


def test_labels_come_from_the_credential_alone() -> None:
    room = given(create_step(), join_step(BOB, R.APPROVER, labels=("security",)), join_step(CAROL))
    assert room.members["bob"].labels == {"security"}

    room = given(script_step(BOB, session_join(BOB)), room=room)

    assert room.members["bob"].labels == room.members["carol"].labels == frozenset()


# What somebody is


@proves("OPEN-6", "UNI-4")
def test_a_human_may_take_an_agent_s_place_and_loses_the_vote() -> None:
    room = given(create_step(), join_step(BOB, R.APPROVER), join_step(CLAUDE, R.DRIVER))
    room = given(script_step(CLAUDE, tool_propose(), id="p"), room=room)
    gate = gate_on(room, "p").id
    assert room.members["bob"].can_vote

    room = after(
        room, when(room, with_credential(BOB, R.APPROVER), session_join(as_agent(BOB), R.APPROVER))
    )

    assert room.members["bob"].kind is Kind.AGENT
    assert not room.members["bob"].can_vote
    with expect_refusal(Reason.FORBIDDEN):
        when(room, BOB, gate_approve(BOB, gate))


@proves("OPEN-6")
@pytest.mark.parametrize("gone", [False, True])
def test_an_agent_never_becomes_human_not_even_by_leaving(gone: bool) -> None:
    room = given(
        create_step(), join_step(CLAUDE, R.DRIVER), *([leave_step(CLAUDE)] if gone else [])
    )
    human = msgspec.structs.replace(CLAUDE, kind=Kind.HUMAN)

    with expect_refusal(Reason.CLAIM_MISMATCH, "cannot join as a human"):
        when(room, human, session_join(human, R.DRIVER))


@proves("OPEN-6", "OPEN-11")
def test_the_credential_of_an_agent_lets_nobody_in_as_a_human() -> None:
    human = msgspec.structs.replace(CODEX, kind=Kind.HUMAN)

    with expect_refusal(Reason.CLAIM_MISMATCH, "cannot join as a human"):
        when(given(create_step()), with_credential(CODEX, R.DRIVER), session_join(human, R.DRIVER))
