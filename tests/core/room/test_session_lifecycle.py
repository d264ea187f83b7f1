"""A session's beginning, its rules and its end."""

from typing import Any

import msgspec
import pytest

from accord.core.kernel.actor import PRESENCE_ACTOR, Actor
from accord.core.kernel.ballot import AllOf, AnyOf, Majority, Named
from accord.core.kernel.messages import Body
from accord.core.kernel.records import MembershipChange
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capability, Kind, Role
from accord.core.room import CONTEXT
from accord.core.room.approval.gate_timeouts import GateTimedOut
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.conversation.responses import ResponseEnded, ResponseStart
from accord.core.room.membership.announcements import MemberAnnounced
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.room_settings import AbsencePolicy, Category, GateResolution
from accord.core.room.session_lifecycle import (
    SessionConfigUpdate,
    SessionConfigured,
    SessionCreated,
    SessionEnd,
    SessionEnded,
)
from accord.core.room.state import Presence, Room
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CONFIG,
    DEFAULT_POLICY,
    after,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    given,
    join_step,
    leave_step,
    participant_announce,
    presence_step,
    prompt_submit,
    relays_of,
    role_change,
    script_step,
    seconds_after_start,
    session_config,
    session_config_update,
    session_create,
    session_end,
    session_join,
    tick_at,
    tool_execute,
    tool_propose,
    tool_result,
    types_of,
    when,
    with_credential,
)
from tests.spec import proves

R, C = Role, Capability


# Beginning


@proves("OPEN-6", "PVP-6.1-3", "PVP-6.1-1", "PVP-2-2", "OPEN-5")
def test_a_session_begins_with_its_creator_as_admin() -> None:
    facts = when(given(), ALICE, session_create(name="Auth"), id="c", at=seconds_after_start(5))
    room = after(given(), facts)

    assert types_of(facts) == [SessionCreated, MemberAnnounced]
    assert [record.ref for record in facts.records] == ["c", "c"]
    assert (room.name, room.created_by, room.created_at) == (
        "Auth",
        "alice",
        seconds_after_start(5),
    )
    assert room.session_config == CONFIG
    assert room.members["alice"].roles == {R.ADMIN}
    assert room.members["alice"].name == "alice"
    assert SessionCreated.membership is MembershipChange.IN


@proves("OPEN-6")
@pytest.mark.parametrize("who", [ALICE, CLAUDE])
def test_the_creator_is_what_the_credential_says(who: Actor) -> None:
    facts = when(given(), with_credential(who, R.DRIVER, labels=("security",)), session_create())
    creator = after(given(), facts).members[who.principal]

    assert creator.kind is who.kind
    assert creator.labels == {"security"}
    assert isinstance(facts[1], MemberAnnounced)
    assert facts[1].said.kind == who.kind.value


def test_a_session_belongs_to_its_creator_s_workspace() -> None:
    alice = msgspec.structs.replace(ALICE, workspace="acme")

    assert given(create_step(by=alice)).workspace == "acme"


@proves("OPEN-5", "PVP-6.1-2")
@pytest.mark.parametrize("who", [ALICE, BOB])
@pytest.mark.parametrize("over", [False, True])
def test_a_session_id_is_never_used_twice(who: Actor, over: bool) -> None:
    room = given(create_step(by=ALICE), *([script_step(ALICE, session_end())] if over else []))

    with expect_refusal(Reason.WRONG_STATE, "The session id r is taken"):
        when(room, who, session_create())


TIMERS = ("heartbeat_interval_seconds", "idle_timeout_seconds", "away_timeout_seconds")


@proves("PVP-6.2-7")
@pytest.mark.parametrize("timers", [(30, 30, 300), (31, 30, 300), (30, 301, 300), (500, 120, 300)])
def test_timers_that_could_not_work_are_refused(timers: tuple[int, int, int]) -> None:
    wrong: dict[str, Any] = dict(zip(TIMERS, timers, strict=True))

    with expect_refusal(Reason.MALFORMED, "heartbeat_interval < idle_timeout <= away_timeout"):
        when(given(), ALICE, session_create(**wrong))
    with expect_refusal(Reason.MALFORMED, "heartbeat_interval < idle_timeout <= away_timeout"):
        when(given(create_step()), ALICE, session_config_update(**wrong))


@proves("PVP-6.2-7")
@pytest.mark.parametrize("timers", [(1, 2, 2), (30, 120, 300)])
def test_timers_that_can_work_are_taken(timers: tuple[int, int, int]) -> None:
    right: dict[str, Any] = dict(zip(TIMERS, timers, strict=True))

    room = given(create_step(**right))

    assert tuple(getattr(room.session_config, name) for name in TIMERS) == timers


@proves("PVP-6.2-2", "OPEN-15")
def test_a_quorum_that_nests_too_deep_is_refused() -> None:
    deep = AllOf((AllOf((AllOf((AllOf((AnyOf(1),)),)),)),))

    with expect_refusal(Reason.MALFORMED, "nest"):
        when(given(), ALICE, session_create(default_gate_quorum=deep))


# Rules


@proves("PVP-6.6-1", "PVP-6.6-3", "OPEN-55")
def test_an_admin_changes_some_rules_and_the_others_stay() -> None:
    room = given(create_step())
    update = session_config_update(
        max_participants=3,
        require_approval_for=[Category.ALL],
        default_gate_quorum=Majority(),
        ordering_mode="causal",
    )

    facts = when(room, ALICE, update)

    assert facts == [SessionConfigured(said=update)]
    assert facts.records[0].to is None
    assert after(room, facts).session_config == session_config(
        max_participants=3,
        require_approval_for=(Category.ALL,),
        default_gate_quorum=Majority(),
        ordering_mode="causal",
    )


@proves("PVP-6.6-2")
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_nobody_but_an_admin_changes_the_rules(role: Role) -> None:
    room = given(create_step(), join_step(BOB, role, capabilities=tuple(Capability)))

    with expect_refusal(Reason.FORBIDDEN, "configure the session"):
        when(room, BOB, session_config_update(max_participants=3))


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

    with expect_refusal(Reason.MALFORMED):
        when(given(create_step()), ALICE, update)


@proves("OPEN-55")
def test_unknown_rules_are_named() -> None:
    with expect_refusal(Reason.MALFORMED, "Unknown settings: colour, shape"):
        when(given(create_step()), ALICE, session_config_update(shape=1, colour=2))


@proves("OPEN-15")
def test_a_quorum_may_not_come_to_name_an_agent() -> None:
    room = given(create_step(), join_step(CLAUDE, R.DRIVER))

    with expect_refusal(Reason.MALFORMED, "claude"):
        when(room, ALICE, session_config_update(default_gate_quorum=Named(("alice", "claude"))))


@proves("OPEN-55")
def test_lowering_the_number_of_participants_puts_nobody_out() -> None:
    room = given(create_step(), join_step(BOB), join_step(CLAUDE, R.DRIVER))

    room = given(script_step(ALICE, session_config_update(max_participants=1)), room=room)

    assert len(room.members) == 3
    assert when(room, BOB, session_join(BOB))
    with expect_refusal(Reason.FULL):
        when(room, CAROL, session_join(CAROL))


@proves("OPEN-26")
def test_new_rules_do_not_weaken_a_gate_that_is_open() -> None:
    room = given(
        create_step(default_gate_quorum=AnyOf(2)),
        join_step(CLAUDE, R.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
    )

    room = given(
        script_step(
            ALICE, session_config_update(default_gate_quorum=AnyOf(1), require_approval_for=[])
        ),
        room=room,
    )

    assert gate_on(room, "p").ballot.quorum == AnyOf(2)


@proves("OPEN-18")
def test_a_change_of_policy_ends_a_pause_and_may_begin_one() -> None:
    room = given(create_step(), join_step(BOB, R.DRIVER), presence_step(BOB, Presence.DISCONNECTED))
    assert room.paused_at is None

    pausing = session_config_update(on_participant_timeout=AbsencePolicy.PAUSE_SESSION)
    room = given(script_step(ALICE, pausing, at=seconds_after_start(1)), room=room)
    assert room.paused_at == seconds_after_start(1)

    waiting = session_config_update(on_participant_timeout=AbsencePolicy.WAIT)
    room = given(script_step(ALICE, waiting, at=seconds_after_start(2)), room=room)
    assert room.paused_at is None


# End


def at_work() -> Room:
    """One open gate, one running tool, one answer being written."""
    return given(
        create_step(),
        join_step(BOB, R.APPROVER, capabilities=(C.END_SESSION,)),
        join_step(CLAUDE, R.DRIVER),
        script_step(ALICE, prompt_submit(), id="prompt"),
        script_step(CLAUDE, ResponseStart("claude", "prompt"), id="answer"),
        script_step(CLAUDE, tool_propose(), id="asked"),
        script_step(CLAUDE, tool_propose(category=Category.FILE_READ), id="run"),
    )


def over() -> Room:
    """A session that has ended; Carol had left it before."""
    return given(
        join_step(CAROL, R.DRIVER),
        leave_step(CAROL),
        script_step(ALICE, session_end()),
        room=at_work(),
    )


@proves("PVP-6.5-1", "PVP-6.5-2", "OPEN-27", "PVP-7.3-1")
@pytest.mark.parametrize("who", [ALICE, BOB])
def test_an_admin_or_who_may_end_sessions_ends_one(who: Actor) -> None:
    room = at_work()

    room = after(room, when(room, who, SessionEnd("Enough", "aborted")))

    assert room.ended == "aborted"


@proves("PVP-6.5-2")
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_only_an_admin_ends_a_session(role: Role) -> None:
    room = given(create_step(), join_step(BOB, role))

    with expect_refusal(Reason.FORBIDDEN, "end the session"):
        when(room, BOB, session_end())


@proves("OPEN-27")
def test_the_end_rejects_open_gates_and_closes_streams_first() -> None:
    room = at_work()
    gate = gate_on(room, "asked")

    facts = when(room, ALICE, session_end(), id="end")
    room = after(room, facts)

    (timed_out, closed, end) = facts.records
    assert isinstance(timed_out.event, GateTimedOut)
    assert timed_out.event.said.gate == gate.id
    assert timed_out.event.said.resolution is GateResolution.REJECTED
    assert isinstance(closed.event, ResponseEnded)
    assert (closed.ref, closed.event.said.finish_reason) == ("answer", "interrupted")
    assert isinstance(end.event, SessionEnded)
    assert [record.sender for record in facts.records] == ["system", "system", "alice"]
    assert end.id == "end"
    assert len(relays_of(facts)) == 1
    assert (room.gates, room.tools, room.streams) == ({}, {}, {})


@proves("PVP-6.5-3", "OPEN-27")
@pytest.mark.parametrize(
    ("who", "body"),
    [
        (ALICE, session_end()),
        (ALICE, prompt_submit()),
        (ALICE, session_config_update(max_participants=3)),
        (ALICE, SessionLeave()),
        (ALICE, participant_announce(ALICE)),
        (ALICE, session_join(ALICE)),
        (ALICE, role_change(ALICE, BOB, [R.APPROVER], [R.ADMIN])),
        (BOB, gate_approve(BOB, "asked")),
        (CLAUDE, tool_execute("run")),
        (CLAUDE, tool_result("run")),
        (CAROL, session_join(CAROL, R.DRIVER)),
    ],
)
def test_after_the_end_nothing_is_accepted(who: Actor, body: Body) -> None:
    with pytest.raises(Refused, match="The session has ended") as no:
        when(over(), who, body)

    assert no.value.reason is Reason.ENDED


@proves("PVP-6.5-3")
def test_after_the_end_errors_may_still_be_told() -> None:
    trouble = ErrorReport("AGENT_ERROR", "The model is gone", recoverable=False)

    assert [said.body for said in relays_of(when(over(), CLAUDE, trouble))] == [trouble]


@proves("OPEN-27", "OPEN-49")
def test_an_ended_session_does_not_exist_for_strangers() -> None:
    stranger = Actor("erin", Kind.HUMAN)

    for body in (session_join(stranger), prompt_submit()):
        with expect_refusal(Reason.NO_ROOM):
            when(over(), stranger, body)


@proves("OPEN-27")
def test_after_the_end_nothing_is_due_and_nobody_s_coming_or_going_is_noted() -> None:
    room = over()
    gone = PresenceUpdate("alice", Presence.DISCONNECTED, "2026-01-30T20:00:00Z")

    assert list(CONTEXT.deadlines(room, DEFAULT_POLICY)) == []
    assert tick_at(room, seconds_after_start(10**6)) == []
    assert when(room, PRESENCE_ACTOR, gone) == []


def test_ending_a_session_ends_its_pause() -> None:
    room = given(
        create_step(on_participant_timeout=AbsencePolicy.PAUSE_SESSION),
        join_step(BOB, R.DRIVER),
        presence_step(BOB, Presence.DISCONNECTED),
    )
    assert room.paused_at is not None

    assert given(script_step(ALICE, session_end()), room=room).paused_at is None


def test_an_open_session_has_an_owner() -> None:
    room = given(create_step(by=ALICE))

    assert CONTEXT.presence.dormant_summary(room) == (room.workspace, "alice")
    assert (
        CONTEXT.presence.dormant_summary(given(script_step(ALICE, session_end()), room=room)) == ()
    )
    assert CONTEXT.presence.dormant_summary(CONTEXT.initial_state("room/nowhere")) == ()
