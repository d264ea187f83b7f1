"""What a credential allows today bounds what a seat was given in the past."""

from msgspec.structs import replace

from accord.core.kernel.actor import Actor, Grant, ceiling
from accord.core.kernel.authority import Kind, May, Role
from accord.core.kernel.refusal import Why
from accord.core.room.lifecycle import SessionConfigured
from accord.core.room.roles import RolesChanged
from accord.core.room.state import Category, OnTimeout
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    after,
    approves_tool,
    changes_roles,
    configures,
    given,
    joined,
    joins,
    kinds,
    opened,
    prompts,
    proposes,
    refused,
    when,
)
from tests.spec import proves


def signed(who: Actor, *roles: Role, kind: Kind | None = None) -> Actor:
    """The same seat with a credential for these roles."""
    grant, kind = Grant(frozenset(roles)), kind or who.kind
    return replace(who, kind=kind, grant=grant, ceiling=ceiling(kind, grant))


@proves("OPEN-12", "UNI-4")
def test_an_agents_credential_cannot_use_a_persons_seat() -> None:
    room = given(opened(by=ALICE), joined(CLAUDE, Role.DRIVER))
    room = after(room, when(room, CLAUDE, proposes(), id="p"))
    impostor = signed(ALICE, Role.ADMIN, kind=Kind.AGENT)

    with refused(Why.CLAIM_MISMATCH, "person"):
        when(room, impostor, approves_tool(ALICE, "p"))
    with refused(Why.CLAIM_MISMATCH, "person"):
        when(room, impostor, joins(replace(ALICE, kind=Kind.AGENT), Role.DRIVER))


@proves("OPEN-8")
def test_a_weaker_credential_takes_back_what_a_stronger_one_gave() -> None:
    room = given(opened(by=ALICE), joined(signed(BOB, Role.APPROVER), Role.APPROVER))
    room = given(joined(CLAUDE, Role.DRIVER), room=room)
    room = after(room, when(room, CLAUDE, proposes(), id="p"))

    with refused(Why.FORBIDDEN, "approve"):
        when(room, signed(BOB, Role.OBSERVER), approves_tool(BOB, "p"))
    assert when(room, signed(BOB, Role.APPROVER), approves_tool(BOB, "p"))


def test_what_the_room_gave_is_the_rooms_to_take() -> None:
    """The creator's admin, and roles that were changed in the session (OPEN-6, OPEN-9)."""
    room = given(opened(by=ALICE), joined(signed(BOB, Role.OBSERVER), Role.OBSERVER))
    room = given(joined(CLAUDE, Role.DRIVER), room=room)
    change = changes_roles(ALICE, BOB, (Role.OBSERVER,), (Role.DRIVER,))
    room = after(room, when(room, ALICE, change))

    assert when(room, signed(BOB, Role.OBSERVER), prompts(CLAUDE))
    assert when(room, signed(ALICE, Role.OBSERVER), prompts(CLAUDE))


def test_an_operators_credential_allows_every_role() -> None:
    admin = Grant(frozenset({Role.ADMIN}))

    assert May.CONFIGURE in ceiling(Kind.HUMAN, admin)
    assert May.PROMPT not in ceiling(Kind.HUMAN, Grant())


def test_an_agent_that_is_admin_gates_more_and_never_less() -> None:
    agent = replace(CLAUDE, kind=Kind.AGENT)
    room = given(opened(by=agent, require_approval_for=(Category.DEPLOY,)))

    more = configures(require_approval_for=["deploy", "shell_execute"])
    assert kinds(when(room, agent, more)) == [SessionConfigured]
    for less in (
        configures(require_approval_for=[]),
        configures(default_gate_quorum={"type": "any", "count": 2}),
        configures(on_participant_timeout=OnTimeout.SKIP.value),
    ):
        with refused(Why.FORBIDDEN, "person"):
            when(room, agent, less)


def test_an_agent_has_no_say_in_who_of_the_people_may_approve() -> None:
    agent = replace(CLAUDE, kind=Kind.AGENT)
    room = given(opened(by=agent), joined(BOB, Role.APPROVER), joined(CODEX, Role.DRIVER))

    with refused(Why.FORBIDDEN, "people"):
        when(room, agent, changes_roles(agent, BOB, (Role.APPROVER,), (Role.OBSERVER,)))
    with refused(Why.FORBIDDEN, "approvers"):
        when(room, agent, changes_roles(agent, CODEX, (Role.DRIVER,), (Role.APPROVER,)))
    fine = changes_roles(agent, CODEX, (Role.DRIVER,), (Role.NAVIGATOR,))
    assert kinds(when(room, agent, fine)) == [RolesChanged]


def test_what_a_member_says_of_itself_has_a_bound() -> None:
    room = given(opened(by=ALICE))
    much = replace(joins(BOB, Role.DRIVER).participant, metadata={"x": "y" * 20_000})

    with refused(Why.TOO_LARGE, "metadata"):
        when(room, BOB, replace(joins(BOB, Role.DRIVER), participant=much))
