"""A session's beginning, its rules and its end."""

from typing import Any

import msgspec
import pytest

from accord.core.kernel.actor import PRESENCE, Actor
from accord.core.kernel.authority import Capability, Kind, Role
from accord.core.kernel.ballot import AllOf, AnyOf, Majority, Named
from accord.core.kernel.log import Body, Door
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import CONTEXT
from accord.core.room.lifecycle import (
    SessionConfigUpdate,
    SessionConfigured,
    SessionCreated,
    SessionEnd,
    SessionEnded,
)
from accord.core.room.members import SessionLeave
from accord.core.room.notices import ErrorReport
from accord.core.room.participants import Announced
from accord.core.room.presence import PresenceUpdate
from accord.core.room.state import Category, OnTimeout, Presence, Resolution, Room
from accord.core.room.streams import ResponseEnded, ResponseStart
from accord.core.room.timeouts import GateTimedOut
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CONFIG,
    HOUSE,
    after,
    after_seconds,
    announces,
    approves,
    changes_roles,
    config,
    configures,
    creates,
    ends,
    executes,
    finishes,
    gate_on,
    given,
    holding,
    joined,
    joins,
    kinds,
    left,
    now,
    opened,
    prompts,
    proposes,
    refused,
    says,
    step,
    ticks,
    when,
)
from tests.spec import proves

R, C = Role, Capability


# Beginning


@proves("OPEN-6", "PVP-6.1-3", "PVP-6.1-1", "PVP-2-2", "OPEN-5")
def test_a_session_begins_with_its_creator_as_admin() -> None:
    facts = when(given(), ALICE, creates(name="Auth"), id="c", at=after_seconds(5))
    room = after(given(), facts)

    assert kinds(facts) == [SessionCreated, Announced]
    assert [record.ref for record in facts.records] == ["c", "c"]
    assert (room.name, room.created_by, room.created_at) == ("Auth", "alice", after_seconds(5))
    assert room.rules == CONFIG
    assert room.members["alice"].roles == {R.ADMIN}
    assert room.members["alice"].name == "alice"
    assert SessionCreated.door is Door.IN


@proves("OPEN-6")
@pytest.mark.parametrize("who", [ALICE, CLAUDE])
def test_the_creator_is_what_the_credential_says(who: Actor) -> None:
    facts = when(given(), holding(who, R.DRIVER, labels=("security",)), creates())
    creator = after(given(), facts).members[who.seat]

    assert creator.kind is who.kind
    assert creator.labels == {"security"}
    assert isinstance(facts[1], Announced)
    assert facts[1].said.kind == who.kind.value


def test_a_session_belongs_to_its_creator_s_workspace() -> None:
    alice = msgspec.structs.replace(ALICE, workspace="acme")

    assert given(opened(by=alice)).workspace == "acme"


@proves("OPEN-5", "PVP-6.1-2")
@pytest.mark.parametrize("who", [ALICE, BOB])
@pytest.mark.parametrize("over", [False, True])
def test_a_session_id_is_never_used_twice(who: Actor, over: bool) -> None:
    room = given(opened(by=ALICE), *([step(ALICE, ends())] if over else []))

    with refused(Why.WRONG_STATE, "The session id r is taken"):
        when(room, who, creates())


TIMERS = ("heartbeat_interval_seconds", "idle_timeout_seconds", "away_timeout_seconds")


@proves("PVP-6.2-7")
@pytest.mark.parametrize("timers", [(30, 30, 300), (31, 30, 300), (30, 301, 300), (500, 120, 300)])
def test_timers_that_could_not_work_are_refused(timers: tuple[int, int, int]) -> None:
    wrong: dict[str, Any] = dict(zip(TIMERS, timers, strict=True))

    with refused(Why.MALFORMED, "heartbeat_interval < idle_timeout <= away_timeout"):
        when(given(), ALICE, creates(**wrong))
    with refused(Why.MALFORMED, "heartbeat_interval < idle_timeout <= away_timeout"):
        when(given(opened()), ALICE, configures(**wrong))


@proves("PVP-6.2-7")
@pytest.mark.parametrize("timers", [(1, 2, 2), (30, 120, 300)])
def test_timers_that_can_work_are_taken(timers: tuple[int, int, int]) -> None:
    right: dict[str, Any] = dict(zip(TIMERS, timers, strict=True))

    room = given(opened(**right))

    assert tuple(getattr(room.rules, name) for name in TIMERS) == timers


@proves("PVP-6.2-2", "OPEN-15")
def test_a_quorum_that_nests_too_deep_is_refused() -> None:
    deep = AllOf((AllOf((AllOf((AllOf((AnyOf(1),)),)),)),))

    with refused(Why.MALFORMED, "nest"):
        when(given(), ALICE, creates(default_gate_quorum=deep))


# Rules


@proves("PVP-6.6-1", "PVP-6.6-3", "OPEN-55")
def test_an_admin_changes_some_rules_and_the_others_stay() -> None:
    room = given(opened())
    update = configures(
        max_participants=3,
        require_approval_for=[Category.ALL],
        default_gate_quorum=Majority(),
        ordering_mode="causal",
    )

    facts = when(room, ALICE, update)

    assert facts == [SessionConfigured(said=update)]
    assert facts.records[0].to is None
    assert after(room, facts).rules == config(
        max_participants=3,
        require_approval_for=(Category.ALL,),
        default_gate_quorum=Majority(),
        ordering_mode="causal",
    )


@proves("PVP-6.6-2")
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_nobody_but_an_admin_changes_the_rules(role: Role) -> None:
    room = given(opened(), joined(BOB, role, capabilities=tuple(Capability)))

    with refused(Why.FORBIDDEN, "configure the session"):
        when(room, BOB, configures(max_participants=3))


@proves("OPEN-55", "PVP-6.2-6")
@pytest.mark.parametrize(
    "changes",
    [
        {"max_participants": 3, "colour": "blue"},
        {"max_participants": 0},
        {"max_participants": "3"},
        {"max_participants": None},
        {"max_participants": 10**30},
        {"allow_forks": 1},
        {"ordering_mode": "random"},
        {"on_participant_timeout": "panic"},
        {"require_approval_for": ["rocket_launch"]},
        {"default_gate_quorum": {"type": "any", "count": 0}},
        {"default_gate_quorum": {"type": "specific", "participants": []}},
        {"default_gate_quorum": {"type": "none"}},
        {"idle_timeout_seconds": 1},
    ],
)
def test_a_change_that_is_wrong_in_one_thing_changes_nothing(changes: dict[str, object]) -> None:
    update = SessionConfigUpdate(changes={"allow_forks": False, **changes}, reason="Because")

    with refused(Why.MALFORMED):
        when(given(opened()), ALICE, update)


@proves("OPEN-55")
def test_unknown_rules_are_named() -> None:
    with refused(Why.MALFORMED, "Unknown configuration: colour, shape"):
        when(given(opened()), ALICE, configures(shape=1, colour=2))


@proves("OPEN-15")
def test_a_quorum_may_not_come_to_name_an_agent() -> None:
    room = given(opened(), joined(CLAUDE, R.DRIVER))

    with refused(Why.MALFORMED, "claude"):
        when(room, ALICE, configures(default_gate_quorum=Named(("alice", "claude"))))


@proves("OPEN-55")
def test_lowering_the_number_of_participants_puts_nobody_out() -> None:
    room = given(opened(), joined(BOB), joined(CLAUDE, R.DRIVER))

    room = given(step(ALICE, configures(max_participants=1)), room=room)

    assert len(room.members) == 3
    assert when(room, BOB, joins(BOB))
    with refused(Why.FULL):
        when(room, CAROL, joins(CAROL))


@proves("OPEN-26")
def test_new_rules_do_not_weaken_a_gate_that_is_open() -> None:
    room = given(
        opened(default_gate_quorum=AnyOf(2)),
        joined(CLAUDE, R.DRIVER),
        step(CLAUDE, proposes(), id="p"),
    )

    room = given(
        step(ALICE, configures(default_gate_quorum=AnyOf(1), require_approval_for=[])), room=room
    )

    assert gate_on(room, "p").ballot.quorum == AnyOf(2)


@proves("OPEN-18")
def test_a_change_of_policy_ends_a_pause_and_may_begin_one() -> None:
    room = given(opened(), joined(BOB, R.DRIVER), now(BOB, Presence.DISCONNECTED))
    assert room.paused_at is None

    pausing = configures(on_participant_timeout=OnTimeout.PAUSE_SESSION)
    room = given(step(ALICE, pausing, at=after_seconds(1)), room=room)
    assert room.paused_at == after_seconds(1)

    waiting = configures(on_participant_timeout=OnTimeout.WAIT)
    room = given(step(ALICE, waiting, at=after_seconds(2)), room=room)
    assert room.paused_at is None


# End


def at_work() -> Room:
    """One open gate, one running tool, one answer being written."""
    return given(
        opened(),
        joined(BOB, R.APPROVER, capabilities=(C.END_SESSION,)),
        joined(CLAUDE, R.DRIVER),
        step(ALICE, prompts(), id="prompt"),
        step(CLAUDE, ResponseStart("claude", "prompt"), id="answer"),
        step(CLAUDE, proposes(), id="asked"),
        step(CLAUDE, proposes(category=Category.FILE_READ), id="run"),
    )


def over() -> Room:
    """A session that has ended; Carol had left it before."""
    return given(joined(CAROL, R.DRIVER), left(CAROL), step(ALICE, ends()), room=at_work())


@proves("PVP-6.5-1", "PVP-6.5-2", "OPEN-27", "PVP-7.3-1")
@pytest.mark.parametrize("who", [ALICE, BOB])
def test_an_admin_or_who_may_end_sessions_ends_one(who: Actor) -> None:
    room = at_work()

    room = after(room, when(room, who, SessionEnd("Enough", "aborted")))

    assert room.ended == "aborted"


@proves("PVP-6.5-2")
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_nobody_else_ends_a_session(role: Role) -> None:
    room = given(opened(), joined(BOB, role))

    with refused(Why.FORBIDDEN, "end the session"):
        when(room, BOB, ends())


@proves("OPEN-27")
def test_the_end_rejects_open_gates_and_closes_streams_first() -> None:
    room = at_work()
    gate = gate_on(room, "asked")

    facts = when(room, ALICE, ends(), id="end")
    room = after(room, facts)

    (timed_out, closed, end) = facts.records
    assert isinstance(timed_out.event, GateTimedOut)
    assert timed_out.event.said.gate == gate.id
    assert timed_out.event.said.resolution is Resolution.REJECTED
    assert isinstance(closed.event, ResponseEnded)
    assert (closed.ref, closed.event.said.finish_reason) == ("answer", "interrupted")
    assert isinstance(end.event, SessionEnded)
    assert [record.sender for record in facts.records] == ["system", "system", "alice"]
    assert end.id == "end"
    assert len(says(facts)) == 1
    assert (room.gates, room.tools, room.streams) == ({}, {}, {})


@proves("PVP-6.5-3", "OPEN-27")
@pytest.mark.parametrize(
    ("who", "body"),
    [
        (ALICE, ends()),
        (ALICE, prompts()),
        (ALICE, configures(max_participants=3)),
        (ALICE, SessionLeave()),
        (ALICE, announces(ALICE)),
        (ALICE, joins(ALICE)),
        (ALICE, changes_roles(ALICE, BOB, [R.APPROVER], [R.ADMIN])),
        (BOB, approves(BOB, "asked")),
        (CLAUDE, executes("run")),
        (CLAUDE, finishes("run")),
        (CAROL, joins(CAROL, R.DRIVER)),
    ],
)
def test_after_the_end_nothing_is_accepted(who: Actor, body: Body) -> None:
    with pytest.raises(Refused, match="The session is over") as no:
        when(over(), who, body)

    assert no.value.why is Why.ENDED


@proves("PVP-6.5-3")
def test_after_the_end_errors_may_still_be_told() -> None:
    trouble = ErrorReport("AGENT_ERROR", "The model is gone", recoverable=False)

    assert [said.body for said in says(when(over(), CLAUDE, trouble))] == [trouble]


@proves("OPEN-27", "OPEN-49")
def test_an_ended_session_does_not_exist_for_strangers() -> None:
    stranger = Actor("erin", Kind.HUMAN)

    for body in (joins(stranger), prompts()):
        with refused(Why.NO_ROOM):
            when(over(), stranger, body)


@proves("OPEN-27")
def test_after_the_end_nothing_is_due_and_nobody_s_coming_or_going_is_noted() -> None:
    room = over()
    gone = PresenceUpdate("alice", Presence.DISCONNECTED, "2026-01-30T20:00:00Z")

    assert list(CONTEXT.deadlines(room, HOUSE)) == []
    assert ticks(room, after_seconds(10**6)) == []
    assert when(room, PRESENCE, gone) == []


def test_the_end_ends_a_pause() -> None:
    room = given(
        opened(on_participant_timeout=OnTimeout.PAUSE_SESSION),
        joined(BOB, R.DRIVER),
        now(BOB, Presence.DISCONNECTED),
    )
    assert room.paused_at is not None

    assert given(step(ALICE, ends()), room=room).paused_at is None


def test_an_open_session_has_an_owner() -> None:
    room = given(opened(by=ALICE))

    assert CONTEXT.gist(room) == (room.workspace, "alice")
    assert CONTEXT.gist(given(step(ALICE, ends()), room=room)) == ()
    assert CONTEXT.gist(CONTEXT.start("room/nowhere")) == ()
