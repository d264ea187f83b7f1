"""What a credential allows today bounds what a seat was given in the past."""

from msgspec.structs import replace

from accord.core.kernel.actor import Actor, CredentialRights, max_permissions_of
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Kind, Permission, Role
from accord.core.room.membership.role_assignment import RolesChanged
from accord.core.room.room_settings import AbsencePolicy, Category
from accord.core.room.session_lifecycle import SessionConfigured
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    after,
    create_step,
    expect_refusal,
    given,
    join_step,
    prompt_submit,
    role_change,
    session_config_update,
    session_join,
    tool_approve,
    tool_propose,
    types_of,
    when,
)
from tests.spec import proves


def signed(who: Actor, *roles: Role, kind: Kind | None = None) -> Actor:
    """The same seat with a credential for these roles."""
    grant, kind = CredentialRights(frozenset(roles)), kind or who.kind
    return replace(
        who, kind=kind, credential=grant, max_permissions=max_permissions_of(kind, grant)
    )


@proves("OPEN-12", "UNI-4")
def test_an_agents_credential_cannot_use_a_persons_seat() -> None:
    room = given(create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER))
    room = after(room, when(room, CLAUDE, tool_propose(), id="p"))
    impostor = signed(ALICE, Role.ADMIN, kind=Kind.AGENT)

    with expect_refusal(Reason.CLAIM_MISMATCH, "human"):
        when(room, impostor, tool_approve(ALICE, "p"))
    with expect_refusal(Reason.CLAIM_MISMATCH, "human"):
        when(room, impostor, session_join(replace(ALICE, kind=Kind.AGENT), Role.DRIVER))


@proves("OPEN-8")
def test_a_weaker_credential_takes_back_what_a_stronger_one_gave() -> None:
    room = given(create_step(by=ALICE), join_step(signed(BOB, Role.APPROVER), Role.APPROVER))
    room = given(join_step(CLAUDE, Role.DRIVER), room=room)
    room = after(room, when(room, CLAUDE, tool_propose(), id="p"))

    with expect_refusal(Reason.FORBIDDEN, "approve"):
        when(room, signed(BOB, Role.OBSERVER), tool_approve(BOB, "p"))
    assert when(room, signed(BOB, Role.APPROVER), tool_approve(BOB, "p"))


def test_rights_granted_by_the_room_need_no_credential() -> None:
    """The creator's admin, and roles that were changed in the session (OPEN-6, OPEN-9)."""
    room = given(create_step(by=ALICE), join_step(signed(BOB, Role.OBSERVER), Role.OBSERVER))
    room = given(join_step(CLAUDE, Role.DRIVER), room=room)
    change = role_change(ALICE, BOB, (Role.OBSERVER,), (Role.DRIVER,))
    room = after(room, when(room, ALICE, change))

    assert when(room, signed(BOB, Role.OBSERVER), prompt_submit(CLAUDE))
    assert when(room, signed(ALICE, Role.OBSERVER), prompt_submit(CLAUDE))


def test_an_operators_credential_allows_every_role() -> None:
    admin = CredentialRights(frozenset({Role.ADMIN}))

    assert Permission.CONFIGURE_SESSION in max_permissions_of(Kind.HUMAN, admin)
    assert Permission.PROMPT not in max_permissions_of(Kind.HUMAN, CredentialRights())


def test_an_agent_that_is_admin_gates_more_and_never_less() -> None:
    agent = replace(CLAUDE, kind=Kind.AGENT)
    room = given(create_step(by=agent, require_approval_for=(Category.DEPLOY,)))

    more = session_config_update(require_approval_for=["deploy", "shell_execute"])
    assert types_of(when(room, agent, more)) == [SessionConfigured]
    for less in (
        session_config_update(require_approval_for=[]),
        session_config_update(default_gate_quorum={"type": "any", "count": 2}),
        session_config_update(on_participant_timeout=AbsencePolicy.SKIP.value),
    ):
        with expect_refusal(Reason.FORBIDDEN, "human"):
            when(room, agent, less)


def test_an_agent_has_no_say_in_who_of_the_people_may_approve() -> None:
    agent = replace(CLAUDE, kind=Kind.AGENT)
    room = given(
        create_step(by=agent), join_step(BOB, Role.APPROVER), join_step(CODEX, Role.DRIVER)
    )

    with expect_refusal(Reason.FORBIDDEN, "a human's roles"):
        when(room, agent, role_change(agent, BOB, (Role.APPROVER,), (Role.OBSERVER,)))
    with expect_refusal(Reason.FORBIDDEN, "approver"):
        when(room, agent, role_change(agent, CODEX, (Role.DRIVER,), (Role.APPROVER,)))
    fine = role_change(agent, CODEX, (Role.DRIVER,), (Role.NAVIGATOR,))
    assert types_of(when(room, agent, fine)) == [RolesChanged]


def test_what_a_member_says_of_itself_has_a_bound() -> None:
    room = given(create_step(by=ALICE))
    much = replace(session_join(BOB, Role.DRIVER).participant, metadata={"x": "y" * 20_000})

    with expect_refusal(Reason.TOO_LARGE, "metadata"):
        when(room, BOB, replace(session_join(BOB, Role.DRIVER), participant=much))
