"""The door: who is not here, who has no right, who speaks for another, and when nobody may."""

from collections.abc import Callable

import msgspec
import pytest

from accord.core import room as rooms
from accord.core.kernel.actor import PRESENCE, TIMER, Actor
from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import CONTEXT, DECIDE, Tick
from accord.core.room.forks import ForkCreate
from accord.core.room.interrupts import InterruptAcknowledge
from accord.core.room.members import SessionLeave
from accord.core.room.notices import ErrorReport
from accord.core.room.permissions import INWARD
from accord.core.room.presence import PresenceUpdate
from accord.core.room.state import OnTimeout, Presence, Resolution, Room
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.thinking import ThinkingStart
from accord.core.room.timeouts import GateTimeout
from tests.helpers.bodies import more_of_each
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    HOUSE,
    after,
    after_seconds,
    announces,
    approves,
    approves_tool,
    asked,
    changes_roles,
    configures,
    creates,
    ends,
    executes,
    finishes,
    gate_on,
    given,
    joined,
    joins,
    left,
    now,
    opened,
    prints,
    prompts,
    proposes,
    refused,
    rejects,
    rejects_tool,
    requests,
    step,
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
        creates(),
        joins(me),
        SessionLeave(),
        ends(),
        configures(allow_forks=False),
        announces(me),
        changes_roles(me, BOB, [R.DRIVER], [R.OBSERVER]),
        PresenceUpdate(me.seat, ACTIVE, THEN),
        prompts(),
        ResponseStart(me.seat, "prompt"),
        ResponseChunk("so"),
        ResponseEnd("complete"),
        proposes(me),
        approves_tool(me, "p"),
        rejects_tool(me, "p"),
        executes("p"),
        prints("p"),
        finishes("p"),
        requests("prompt"),
        approves(me, "p"),
        rejects(me, "p"),
        ERROR,
        *more_of_each(me),
    ]


def door(room: Room, me: Actor, body: Body, fork: str | None = None) -> Why | None:
    """What the door says."""
    try:
        rooms.admit(room, asked(me, body, fork=fork))
    except Refused as no:
        return no.why
    return None


def test_every_type_that_is_decided_is_tried_here() -> None:
    assert {type(body) for body in some_of_each(ALICE)} == DECIDE.keys() - INWARD


# Who is not here


@proves("OPEN-49", "PVP-17-4")
def test_for_a_stranger_there_is_no_session_whatever_they_say() -> None:
    room = given(opened())
    outside = [creates(), joins(CAROL)]

    for body in some_of_each(CAROL):
        assert door(room, CAROL, body) is (None if body in outside else Why.NO_ROOM), body.type


@proves("PVP-17-4")
def test_in_a_session_that_is_not_there_nothing_is_said() -> None:
    nowhere = CONTEXT.start("room/r")

    for body in some_of_each(ALICE):
        expected = None if isinstance(body, type(creates())) else Why.NO_ROOM
        assert door(nowhere, ALICE, body) is expected, body.type


@proves("OPEN-49", "PVP-17-5")
def test_who_left_is_told_so_until_they_join_again() -> None:
    room = given(opened(), joined(CLAUDE, R.DRIVER), joined(BOB, R.DRIVER), left(BOB))
    with refused(Why.NO_MEMBER, "You left this session"):
        when(room, BOB, prompts())

    room = given(joined(BOB, R.DRIVER), room=room)

    assert when(room, BOB, prompts())


@proves("UNI-1", "OPEN-49")
def test_somebody_of_the_same_name_elsewhere_is_a_stranger() -> None:
    room = given(opened(), joined(BOB), left(BOB))

    for who in (ALICE, BOB):
        other = msgspec.structs.replace(who, workspace="elsewhere")
        for body in some_of_each(other):
            if body.type not in {"session.create", "session.join"}:
                assert door(room, other, body) is Why.NO_ROOM, body.type


@proves("PVP-4.2-5", "UNI-1")
def test_a_member_of_one_session_is_a_stranger_in_another() -> None:
    mine, other = given(opened(by=ALICE)), given(opened(by=BOB))

    assert door(mine, ALICE, ends()) is None
    assert door(other, ALICE, ends()) is Why.NO_ROOM


def test_the_server_is_never_asked_for_its_rights() -> None:
    for body in (Tick(), PresenceUpdate("nobody", ACTIVE, THEN), SessionLeave(participant="bob")):
        assert door(given(opened()), TIMER, body) is None


# Who speaks for another

CLAIMS: list[tuple[str, Actor, Callable[[Actor], Body]]] = [
    ("participant", CAROL, joins),
    ("participant", ALICE, lambda who: SessionLeave(participant=who.seat)),
    ("id", ALICE, announces),
    ("changed_by", ALICE, lambda who: changes_roles(who, BOB, [R.DRIVER], [])),
    ("participant", ALICE, lambda who: PresenceUpdate(who.seat, ACTIVE, THEN)),
    ("agent", CLAUDE, lambda who: ResponseStart(who.seat, "prompt")),
    ("agent", CLAUDE, proposes),
    ("approver", ALICE, lambda who: approves_tool(who, "p")),
    ("rejector", ALICE, lambda who: rejects_tool(who, "p")),
    ("approver", ALICE, lambda who: approves(who, "p")),
    ("rejector", ALICE, lambda who: rejects(who, "p")),
    ("agent", CLAUDE, lambda who: ThinkingStart(who.seat, "prompt", "all")),
    ("by", CLAUDE, lambda who: InterruptAcknowledge("i", who.seat, "paused")),
]


@proves("UNI-1", "OPEN-11", "PVP-17-3", "MSG-1.1-3")
@pytest.mark.parametrize(
    ("field", "me", "body"), CLAIMS, ids=[f"{body(me).type}.{field}" for field, me, body in CLAIMS]
)
@pytest.mark.parametrize("claimed", [BOB, Actor("system", Kind.HUMAN)], ids=lambda who: who.seat)
def test_what_a_payload_says_of_its_sender_must_be_true(
    field: str, me: Actor, body: Callable[[Actor], Body], claimed: Actor
) -> None:
    room = given(opened(), joined(BOB, R.DRIVER), joined(CLAUDE, R.DRIVER))

    assert door(room, me, body(me)) is None
    with refused(Why.CLAIM_MISMATCH, f"You are {me.seat}; the payload speaks for {claimed.seat}"):
        when(room, me, body(claimed))


@proves("UNI-1")
def test_every_body_that_can_make_a_claim_is_tried_here() -> None:
    claiming = {body for body in DECIDE if body.claims is not Body.claims}

    assert {type(body(me)) for _, me, body in CLAIMS} == claiming


def test_a_leave_need_not_say_who_leaves() -> None:
    assert door(given(opened()), ALICE, SessionLeave()) is None


@proves("OPEN-11")
def test_nobody_reports_the_presence_of_another() -> None:
    room = given(opened(), joined(BOB))

    with refused(Why.CLAIM_MISMATCH):
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
        opened(on_participant_timeout=OnTimeout.PAUSE_SESSION),
        joined(BOB, R.DRIVER),
        joined(CLAUDE, R.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        now(BOB, Presence.DISCONNECTED, at=after_seconds(10)),
    )


@proves("OPEN-18")
def test_a_pause_refuses_everything_but_what_ends_it_or_decides() -> None:
    room = paused()
    tried = {}

    for me in (ALICE, CLAUDE):
        for body in some_of_each(me):
            if (why := door(room, me, body)) in {None, Why.WRONG_STATE}:
                tried[body.type] = why

    let_in = {type for type, why in tried.items() if why is None}
    assert let_in - {"session.create"} == IN_A_PAUSE
    assert tried.keys() == {body.type for body in DECIDE.keys() - INWARD}


@proves("OPEN-18", "PVP-17-10")
def test_a_pause_is_told_as_one() -> None:
    with refused(Why.WRONG_STATE, "paused"):
        when(paused(), ALICE, prompts())


@proves("OPEN-18")
def test_in_a_pause_people_still_decide() -> None:
    room = paused()
    gate = gate_on(room, "p").id

    room = after(room, when(room, ALICE, approves(ALICE, gate)))

    assert room.tools["p"].grant is not None
    with refused(Why.WRONG_STATE, "paused"):
        when(room, CLAUDE, executes("p"))


def test_a_pause_does_not_let_anybody_create_what_exists() -> None:
    with refused(Why.WRONG_STATE, "taken"):
        when(paused(), BOB, creates())


# Where nobody is yet


@pytest.mark.parametrize("fork", ["explore", "Main", "x" * 128])
def test_what_is_said_in_a_fork_that_is_not_there_is_refused(fork: str) -> None:
    room = given(opened(), joined(CLAUDE, R.DRIVER))

    with refused(Why.UNKNOWN, f"There is no fork {fork}"):
        when(room, ALICE, prompts(), fork=fork)


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
    start = step(ALICE, prompts(), id="prompt")
    fork = ForkCreate("Try", "prompt", "To see", ("claude",), copy_context=False)
    room = given(opened(), joined(CLAUDE, R.DRIVER), start, step(ALICE, fork))
    said = {}

    for me in (ALICE, CLAUDE):
        for body in some_of_each(me):
            if (why := door(room, me, body, fork="try")) in {None, Why.MALFORMED}:
                said[body.type] = why

    assert {type for type, why in said.items() if why is None} == IN_A_FORK
    assert said.keys() == {body.type for body in DECIDE.keys() - INWARD}


# Time


def test_only_the_server_may_say_that_time_has_passed() -> None:
    room = given(opened())

    with refused(Why.FORBIDDEN, "Only the server sends tick"):
        when(room, ALICE, Tick())
    with refused(Why.FORBIDDEN, "Only the server sends gate.timeout"):
        when(room, ALICE, GateTimeout("g", 0, 1, Resolution.REJECTED))


@proves("OPEN-31", "OPEN-32")
def test_a_room_says_when_something_will_be_due() -> None:
    room = given(
        opened(),
        joined(BOB, R.DRIVER),
        joined(CLAUDE, R.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        now(BOB, Presence.DISCONNECTED, at=after_seconds(10)),
    )
    gate = gate_on(room, "p")
    room = given(step(ALICE, approves(ALICE, gate.id)), room=room)
    unasked = given(step(CLAUDE, proposes(), id="q"), room=room)

    assert list(CONTEXT.deadlines(room, HOUSE)) == [
        room.tools["p"].expires_at,
        after_seconds(310),
    ]
    assert gate.expires_at in list(CONTEXT.deadlines(unasked, HOUSE))


@proves("OPEN-18")
def test_a_paused_room_has_no_deadlines_for_its_gates() -> None:
    room = paused()

    assert list(CONTEXT.deadlines(room, HOUSE)) == [after_seconds(310)]
    assert list(CONTEXT.deadlines(CONTEXT.start("room/r"), HOUSE)) == []


def test_the_state_vouches_for_what_is_open() -> None:
    room = given(
        opened(),
        joined(CLAUDE, R.DRIVER),
        step(ALICE, prompts(), id="prompt"),
        step(CLAUDE, ResponseStart("claude", "prompt"), id="answer"),
        step(CLAUDE, proposes(), id="p"),
    )

    assert all(CONTEXT.knows(room, id, "claude") for id in ("answer", "p", gate_on(room, "p").id))
    assert not CONTEXT.knows(room, "prompt", "claude")


@proves("OPEN-32")
def test_the_server_s_word_on_somebody_unknown_is_nothing() -> None:
    assert when(given(opened()), PRESENCE, PresenceUpdate("nobody", ACTIVE, THEN)) == []


# What the state and the bodies promise


def test_a_room_that_was_never_created_has_no_rules() -> None:
    nowhere = CONTEXT.start("room/r")

    assert not nowhere.exists
    with refused(Why.NO_ROOM):
        assert nowhere.rules.allow_forks


@proves("OPEN-36")
def test_a_body_repeats_itself_and_cites_nothing_unless_it_says_so() -> None:
    assert ERROR.repeats(ERROR)
    assert not ERROR.repeats(SessionLeave())
    assert list(ERROR.cites()) == []
    assert list(requests("prompt").cites()) == ["prompt"]
