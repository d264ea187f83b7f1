"""Who may send what: 41 message types, six roles, people and agents, and nothing else."""

from collections.abc import Iterator

import pytest

from accord.core import room as rooms
from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission, Role, permissions_for
from accord.core.room import admission
from accord.core.room.approval.gate_timeouts import GateTimeout
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.permission_listing import PERMISSIONS
from accord.core.room.room_settings import GateResolution
from accord.core.room.state import Presence, Room
from tests.helpers.room.message_bodies import other_message_bodies
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    T0,
    build_command,
    create_step,
    expect_refusal,
    gate_approve,
    gate_reject,
    gate_request,
    given,
    join_step,
    participant_announce,
    presence_step,
    prompt_submit,
    role_change,
    session_config_update,
    session_create,
    session_end,
    session_join,
    tool_approve,
    tool_execute,
    tool_output,
    tool_propose,
    tool_reject,
    tool_result,
    when,
)
from tests.spec import proves

# The specification's matrix and OPEN-10, written out by hand: who may send each type.
EVERYBODY = {"driver", "navigator", "adversary", "observer", "approver", "admin"}
WHO_TAKES_PART = {"driver", "navigator", "adversary", "approver", "admin"}
WHO_PROMPTS = {"driver", "adversary", "admin"}
WHO_APPROVES = {"navigator", "adversary", "approver", "admin"}
WHO_FORKS = {"driver", "navigator", "adversary", "admin"}
WHO_INTERRUPTS = {"driver", "navigator", "adversary", "approver", "admin"}
ADMINS = {"admin"}
NOBODY: set[str] = set()

# Each for any kind of member, or for agents alone.
MEMBERS: dict[str, set[str]] = {
    "session.create": EVERYBODY,
    "session.join": EVERYBODY,
    "session.leave": EVERYBODY,
    "session.end": ADMINS,
    "session.config_update": ADMINS,
    "participant.announce": EVERYBODY,
    "participant.role_change": ADMINS,
    "heartbeat.ping": EVERYBODY,
    "heartbeat.pong": EVERYBODY,
    "presence.update": EVERYBODY,
    "context.add": WHO_TAKES_PART,
    "context.update": WHO_TAKES_PART,
    "context.remove": WHO_TAKES_PART,
    "secret.share": WHO_TAKES_PART,
    "secret.revoke": WHO_TAKES_PART,
    "prompt.draft": WHO_PROMPTS,
    "prompt.submit": WHO_PROMPTS,
    "prompt.amend": WHO_PROMPTS,
    "tool.approve": WHO_APPROVES,
    "tool.reject": WHO_TAKES_PART,  # and then approvers, or the initiator: OPEN-13
    "gate.request": WHO_TAKES_PART,
    "gate.approve": WHO_APPROVES,
    "gate.reject": WHO_TAKES_PART,  # the same
    "gate.timeout": NOBODY,
    "interrupt.raise": WHO_INTERRUPTS,
    "fork.create": WHO_FORKS,
    "fork.switch": EVERYBODY,
    "merge.propose": WHO_FORKS,
    "merge.execute": WHO_FORKS,
    "error": EVERYBODY,
}
AGENTS: dict[str, set[str]] = {
    "thinking.start": WHO_TAKES_PART,
    "thinking.chunk": WHO_TAKES_PART,
    "thinking.end": WHO_TAKES_PART,
    "response.start": WHO_TAKES_PART,
    "response.chunk": WHO_TAKES_PART,
    "response.end": WHO_TAKES_PART,
    "tool.propose": WHO_TAKES_PART,
    "tool.execute": WHO_TAKES_PART,
    "tool.output": WHO_TAKES_PART,
    "tool.result": WHO_TAKES_PART,
    "interrupt.acknowledge": WHO_TAKES_PART,
}


def may_send(type: str, kind: Kind, role: Role) -> bool:
    if type in AGENTS:
        return kind is Kind.AGENT and role in AGENTS[type]
    return role in MEMBERS[type]


@proves("OPEN-10", "PVP-7.2-8")
def test_the_table_has_every_type_and_no_other() -> None:
    assert len(PERMISSIONS) == 41
    assert PERMISSIONS.keys() == MEMBERS.keys() | AGENTS.keys()


@proves("OPEN-10", "PVP-7.2-8", "PVP-20.2-1")
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("kind", [Kind.HUMAN, Kind.AGENT])
def test_each_type_is_for_those_whom_the_specification_names(role: Role, kind: Kind) -> None:
    able = permissions_for(kind, frozenset({role}), frozenset())

    assert {type for type in PERMISSIONS if may_send(type, kind, role)} == {
        type for type, needs in PERMISSIONS.items() if needs in able
    }


# The same through the door


def some_of_each(me: Actor) -> Iterator[Body]:
    """A well-formed body of every type that a member can send."""
    yield session_join(me, Role.OBSERVER)
    yield SessionLeave()
    yield session_end()
    yield session_config_update(max_participants=11)
    yield participant_announce(me)
    yield role_change(me, ALICE, [Role.ADMIN], [Role.ADMIN])
    yield presence_step(me, Presence.ACTIVE).body
    yield prompt_submit()
    yield ResponseStart(agent=me.principal, prompt_ref="p")
    yield ResponseChunk(text="so")
    yield ResponseEnd(finish_reason="complete")
    yield tool_propose(me)
    yield tool_approve(me, "p")
    yield tool_reject(me, "p")
    yield tool_execute("p")
    yield tool_output("p")
    yield tool_result("p")
    yield gate_request("p")
    yield gate_approve(me, "g")
    yield gate_reject(me, "g")
    yield GateTimeout("g", 0, 1, GateResolution.REJECTED)
    yield ErrorReport(code="AGENT_ERROR", message="Oh", recoverable=True)
    yield from other_message_bodies(me)


def admitted(room: Room, me: Actor, body: Body) -> bool:
    try:
        admission.admit(room, build_command(me, body))
    except Refused as no:
        return no.reason is not Reason.FORBIDDEN
    return True


@proves("PVP-7.2-8", "PVP-20.2-1", "OPEN-10")
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("me", [BOB, CLAUDE], ids=lambda who: who.kind.value)
def test_the_server_asks_the_table_for_every_type(role: Role, me: Actor) -> None:
    room = given(create_step(by=ALICE), join_step(me, role))

    for body in some_of_each(me):
        assert admitted(room, me, body) is may_send(body.type, me.kind, role), body.type


def test_every_type_that_is_decided_is_tried_here() -> None:
    decided = {body.type for body in rooms.DECIDE if body.type in PERMISSIONS}

    tried = {body.type for body in some_of_each(ALICE)}
    assert decided | {"gate.timeout"} == tried | {"session.create"}


@proves("OPEN-10")
def test_anybody_whom_the_edge_let_in_may_create() -> None:
    room = rooms.CONTEXT.initial_state("room/r")

    admission.admit(room, build_command(BOB, session_create()))


@proves("OPEN-10")
def test_only_the_server_says_that_a_gate_timed_out() -> None:
    room = given(create_step(by=ALICE))

    with expect_refusal(Reason.FORBIDDEN, "Only the server sends gate.timeout"):
        when(room, ALICE, GateTimeout("g", 0, 1, GateResolution.AUTO_APPROVED), at=T0)


def test_a_refusal_names_the_right_that_is_missing() -> None:
    room = given(create_step(by=ALICE), join_step(BOB, Role.DRIVER))

    with expect_refusal(
        Reason.FORBIDDEN, "bob may not send gate.approve: it needs the right to approve"
    ):
        when(room, BOB, gate_approve(BOB, "g"))


def test_each_verb_is_needed_by_some_type() -> None:
    assert set(PERMISSIONS.values()) == set(Permission)
