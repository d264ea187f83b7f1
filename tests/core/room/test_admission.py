"""The door: who is not here, who has no right, who speaks for another, and when nobody may."""

from collections.abc import Callable

import msgspec
import pytest

from accord.core.kernel.actor import PRESENCE_ACTOR, TIMER_ACTOR, Actor
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room import CONTEXT, DECIDE, admission
from accord.core.room.approval.gate_timeouts import GateTimeout
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.conversation.interrupts import InterruptAcknowledge
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.conversation.thinking import ThinkingStart
from accord.core.room.deadlines import Tick
from accord.core.room.forking.forks import ForkCreate
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.permission_listing import INTERNAL_BODIES
from accord.core.room.room_settings import AbsencePolicy, GateResolution
from accord.core.room.state import Presence, Room
from tests.helpers.room.message_bodies import other_message_bodies
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DEFAULT_POLICY,
    OPEN_POLICY,
    after,
    build_command,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_reject,
    gate_request,
    given,
    join_step,
    leave_step,
    participant_announce,
    presence_step,
    prompt_submit,
    role_change,
    script_step,
    seconds_after_start,
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

R = Role
ERROR = ErrorReport("AGENT_ERROR", "Oh", recoverable=True)
ACTIVE = Presence.ACTIVE
THEN = "2026-01-30T20:00:00Z"


def some_of_each(me: Actor) -> list[Body]:
    """A body of every type that a client can send, all of them true."""
    return [
        session_create(),
        session_join(me),
        SessionLeave(),
        session_end(),
        session_config_update(allow_forks=False),
        participant_announce(me),
        role_change(me, BOB, [R.DRIVER], [R.OBSERVER]),
        PresenceUpdate(me.principal, ACTIVE, THEN),
        prompt_submit(),
        ResponseStart(me.principal, "prompt"),
        ResponseChunk("so"),
        ResponseEnd("complete"),
        tool_propose(me),
        tool_approve(me, "p"),
        tool_reject(me, "p"),
        tool_execute("p"),
        tool_output("p"),
        tool_result("p"),
        gate_request("prompt"),
        gate_approve(me, "p"),
        gate_reject(me, "p"),
        ERROR,
        *other_message_bodies(me),
    ]


def door(room: Room, me: Actor, body: Body, fork: str | None = None) -> Reason | None:
    """What the door says."""
    try:
        admission.admit(room, build_command(me, body, fork=fork))
    except Refused as no:
        return no.reason
    return None


def test_every_type_that_is_decided_is_tried_here() -> None:
    assert {type(body) for body in some_of_each(ALICE)} == DECIDE.keys() - INTERNAL_BODIES


# Who is not here


@proves("OPEN-49", "PVP-17-4")
def test_non_member_is_told_that_the_session_does_not_exist() -> None:
    room = given(create_step())
    outside = [session_create(), session_join(CAROL)]

    for body in some_of_each(CAROL):
        assert door(room, CAROL, body) is (None if body in outside else Reason.NO_ROOM), body.type


@proves("PVP-17-4")
def test_message_to_an_unknown_session_is_refused() -> None:
    nowhere = CONTEXT.initial_state("room/r")

    for body in some_of_each(ALICE):
        expected = None if isinstance(body, type(session_create())) else Reason.NO_ROOM
        assert door(nowhere, ALICE, body) is expected, body.type


@proves("OPEN-49", "PVP-17-5")
def test_former_member_is_refused_until_they_rejoin() -> None:
    room = given(
        create_step(), join_step(CLAUDE, R.DRIVER), join_step(BOB, R.DRIVER), leave_step(BOB)
    )
    with expect_refusal(Reason.NO_MEMBER, "You left this session"):
        when(room, BOB, prompt_submit())

    room = given(join_step(BOB, R.DRIVER), room=room)

    assert when(room, BOB, prompt_submit())


@proves("UNI-1", "OPEN-49")
def test_same_id_in_another_workspace_is_not_a_member() -> None:
    room = given(create_step(), join_step(BOB), leave_step(BOB))

    for who in (ALICE, BOB):
        other = msgspec.structs.replace(who, workspace="elsewhere")
        for body in some_of_each(other):
            if body.type not in {"session.create", "session.join"}:
                assert door(room, other, body) is Reason.NO_ROOM, body.type


@proves("PVP-4.2-5", "UNI-1")
def test_a_member_of_one_session_is_a_stranger_in_another() -> None:
    mine, other = given(create_step(by=ALICE)), given(create_step(by=BOB))

    assert door(mine, ALICE, session_end()) is None
    assert door(other, ALICE, session_end()) is Reason.NO_ROOM


def test_the_server_is_never_asked_for_its_rights() -> None:
    for body in (Tick(), PresenceUpdate("nobody", ACTIVE, THEN), SessionLeave(participant="bob")):
        assert door(given(create_step()), TIMER_ACTOR, body) is None


# Who speaks for another

CLAIMS: list[tuple[str, Actor, Callable[[Actor], Body]]] = [
    ("participant", CAROL, session_join),
    ("participant", ALICE, lambda who: SessionLeave(participant=who.principal)),
    ("id", ALICE, participant_announce),
    ("changed_by", ALICE, lambda who: role_change(who, BOB, [R.DRIVER], [])),
    ("participant", ALICE, lambda who: PresenceUpdate(who.principal, ACTIVE, THEN)),
    ("agent", CLAUDE, lambda who: ResponseStart(who.principal, "prompt")),
    ("agent", CLAUDE, tool_propose),
    ("approver", ALICE, lambda who: tool_approve(who, "p")),
    ("rejector", ALICE, lambda who: tool_reject(who, "p")),
    ("approver", ALICE, lambda who: gate_approve(who, "p")),
    ("rejector", ALICE, lambda who: gate_reject(who, "p")),
    ("agent", CLAUDE, lambda who: ThinkingStart(who.principal, "prompt", "all")),
    ("by", CLAUDE, lambda who: InterruptAcknowledge("i", who.principal, "paused")),
]


@proves("UNI-1", "OPEN-11", "PVP-17-3", "MSG-1.1-3")
@pytest.mark.parametrize(
    ("field", "me", "body"), CLAIMS, ids=[f"{body(me).type}.{field}" for field, me, body in CLAIMS]
)
@pytest.mark.parametrize(
    "claimed", [BOB, Actor("system", Kind.HUMAN)], ids=lambda who: who.principal
)
def test_payload_that_names_another_sender_is_refused(
    field: str, me: Actor, body: Callable[[Actor], Body], claimed: Actor
) -> None:
    room = given(create_step(), join_step(BOB, R.DRIVER), join_step(CLAUDE, R.DRIVER))

    assert door(room, me, body(me)) is None
    with expect_refusal(
        Reason.CLAIM_MISMATCH, f"You are {me.principal}, but the payload names {claimed.principal}"
    ):
        when(room, me, body(claimed))


@proves("UNI-1")
def test_every_body_that_can_make_a_claim_is_tried_here() -> None:
    claiming = {body for body in DECIDE if body.claimed_ids is not Body.claimed_ids}

    assert {type(body(me)) for _, me, body in CLAIMS} == claiming


def test_a_leave_need_not_say_who_leaves() -> None:
    assert door(given(create_step()), ALICE, SessionLeave()) is None


@proves("OPEN-11")
def test_nobody_reports_the_presence_of_another() -> None:
    room = given(create_step(), join_step(BOB))

    with expect_refusal(Reason.CLAIM_MISMATCH):
        when(room, ALICE, PresenceUpdate("bob", Presence.AWAY, THEN))


# When nobody may

# OPEN-18, word for word.
IN_A_PAUSE = {
    *("heartbeat.ping", "heartbeat.pong", "interrupt.raise", "interrupt.acknowledge"),
    *("session.join", "session.leave", "presence.update", "participant.role_change"),
    *("tool.approve", "tool.reject", "gate.approve", "gate.reject"),
    *("session.config_update", "session.end", "error"),
}


def paused() -> Room:
    """Bob, who drives, is away; one gate is open."""
    return given(
        create_step(on_participant_timeout=AbsencePolicy.PAUSE_SESSION),
        join_step(BOB, R.DRIVER),
        join_step(CLAUDE, R.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        presence_step(BOB, Presence.DISCONNECTED, at=seconds_after_start(10)),
    )


@proves("OPEN-18")
def test_a_pause_refuses_everything_but_what_ends_it_or_decides() -> None:
    room = paused()
    tried = {}

    for me in (ALICE, CLAUDE):
        for body in some_of_each(me):
            if (why := door(room, me, body)) in {None, Reason.WRONG_STATE}:
                tried[body.type] = why

    let_in = {type for type, why in tried.items() if why is None}
    assert let_in - {"session.create"} == IN_A_PAUSE
    assert tried.keys() == {body.type for body in DECIDE.keys() - INTERNAL_BODIES}


@proves("OPEN-18", "PVP-17-10")
def test_refusal_during_a_pause_mentions_the_pause() -> None:
    with expect_refusal(Reason.WRONG_STATE, "paused"):
        when(paused(), ALICE, prompt_submit())


@proves("OPEN-18")
def test_in_a_pause_people_still_decide() -> None:
    room = paused()
    gate = gate_on(room, "p").id

    room = after(room, when(room, ALICE, gate_approve(ALICE, gate)))

    assert room.tools["p"].grant is not None
    with expect_refusal(Reason.WRONG_STATE, "paused"):
        when(room, CLAUDE, tool_execute("p"))


def test_a_pause_does_not_let_anybody_create_what_exists() -> None:
    with expect_refusal(Reason.WRONG_STATE, "taken"):
        when(paused(), BOB, session_create())


# Where nobody is yet


@pytest.mark.parametrize("fork", ["explore", "Main", "x" * 128])
def test_what_is_said_in_a_fork_that_is_not_there_is_refused(fork: str) -> None:
    room = given(create_step(), join_step(CLAUDE, R.DRIVER))

    with expect_refusal(Reason.NOT_FOUND, f"There is no fork {fork}"):
        when(room, ALICE, prompt_submit(), fork=fork)


# What can be said inside a fork; the rest is about the whole session.
IN_A_FORK = {
    *("context.add", "context.update", "context.remove"),
    *("prompt.draft", "prompt.submit", "prompt.amend"),
    *("thinking.start", "thinking.chunk", "thinking.end"),
    *("response.start", "response.chunk", "response.end"),
    *("tool.propose", "tool.approve", "tool.reject", "tool.execute", "tool.output", "tool.result"),
    *("gate.request", "gate.approve", "gate.reject", "fork.create", "error"),
}


def test_what_is_about_the_whole_session_is_not_said_in_a_fork() -> None:
    start = script_step(ALICE, prompt_submit(), id="prompt")
    fork = ForkCreate("Try", "prompt", "To see", ("claude",), copy_context=False)
    room = given(create_step(), join_step(CLAUDE, R.DRIVER), start, script_step(ALICE, fork))
    said = {}

    for me in (ALICE, CLAUDE):
        for body in some_of_each(me):
            if (why := door(room, me, body, fork="try")) in {None, Reason.MALFORMED}:
                said[body.type] = why

    assert {type for type, why in said.items() if why is None} == IN_A_FORK
    assert said.keys() == {body.type for body in DECIDE.keys() - INTERNAL_BODIES}


# Time


def test_only_the_server_may_say_that_time_has_passed() -> None:
    room = given(create_step())

    with expect_refusal(Reason.FORBIDDEN, "Only the server sends tick"):
        when(room, ALICE, Tick())
    with expect_refusal(Reason.FORBIDDEN, "Only the server sends gate.timeout"):
        when(room, ALICE, GateTimeout("g", 0, 1, GateResolution.REJECTED))


@proves("OPEN-31", "OPEN-32")
def test_a_room_says_when_something_will_be_due() -> None:
    room = given(
        create_step(),
        join_step(BOB, R.DRIVER),
        join_step(CLAUDE, R.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        presence_step(BOB, Presence.DISCONNECTED, at=seconds_after_start(10)),
    )
    gate = gate_on(room, "p")
    room = given(script_step(ALICE, gate_approve(ALICE, gate.id)), room=room)
    unasked = given(script_step(CLAUDE, tool_propose(), id="q"), room=room)

    assert list(CONTEXT.deadlines(room, DEFAULT_POLICY)) == [room.tools["p"].expires_at]
    assert list(CONTEXT.deadlines(room, OPEN_POLICY)) == [
        room.tools["p"].expires_at,
        seconds_after_start(310),
    ]
    assert gate.expires_at in list(CONTEXT.deadlines(unasked, DEFAULT_POLICY))


@proves("OPEN-18")
def test_a_paused_room_has_no_deadlines_for_its_gates() -> None:
    room = paused()

    assert list(CONTEXT.deadlines(room, DEFAULT_POLICY)) == []
    assert list(CONTEXT.deadlines(CONTEXT.initial_state("room/r"), DEFAULT_POLICY)) == []


def test_open_items_can_be_cited_without_a_log_lookup() -> None:
    room = given(
        create_step(),
        join_step(CLAUDE, R.DRIVER),
        script_step(ALICE, prompt_submit(), id="prompt"),
        script_step(CLAUDE, ResponseStart("claude", "prompt"), id="answer"),
        script_step(CLAUDE, tool_propose(), id="p"),
    )

    assert all(
        CONTEXT.knows_id(room, id, "claude") for id in ("answer", "p", gate_on(room, "p").id)
    )
    assert not CONTEXT.knows_id(room, "prompt", "claude")


@proves("OPEN-32")
def test_presence_of_an_unknown_member_is_ignored() -> None:
    assert when(given(create_step()), PRESENCE_ACTOR, PresenceUpdate("nobody", ACTIVE, THEN)) == []


# What the state and the bodies promise


def test_a_room_that_was_never_created_has_no_rules() -> None:
    nowhere = CONTEXT.initial_state("room/r")

    assert not nowhere.exists
    with expect_refusal(Reason.NO_ROOM):
        assert nowhere.session_config.allow_forks


@proves("OPEN-36")
def test_a_body_repeats_itself_and_cites_nothing_unless_it_says_so() -> None:
    assert ERROR.is_retry_of(ERROR)
    assert not ERROR.is_retry_of(SessionLeave())
    assert list(ERROR.cited_ids()) == []
    assert list(gate_request("prompt").cited_ids()) == ["prompt"]
