"""Presence: who is there, what an absence does, and when it becomes a leave."""

import pytest

from accord.core.kernel.actor import PRESENCE_ACTOR
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Failure
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room import CONTEXT
from accord.core.room.approval.votes import GateRejected
from accord.core.room.conversation.prompts import PromptSubmitted
from accord.core.room.conversation.responses import ResponseEnded, ResponseStart
from accord.core.room.membership.leaving import MemberLeft, SessionLeave
from accord.core.room.membership.presence import (
    PresenceChanged,
    PresenceUpdate,
    disconnect_update,
    reconnect_update,
)
from accord.core.room.room_settings import AbsencePolicy, GateResolution, ServerPolicy
from accord.core.room.state import Presence, Room
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    DEFAULT_POLICY,
    OPEN_POLICY,
    T0,
    after,
    create_step,
    events_of,
    expect_refusal,
    gate_on,
    given,
    join_step,
    leave_step,
    presence_step,
    prompt_submit,
    script_step,
    seconds_after_start,
    session_end,
    tick_at,
    tool_approve,
    tool_propose,
    types_of,
    when,
)
from tests.spec import proves

R, P = Role, Presence
THEN = "2026-01-30T20:00:00.000Z"
PAUSING = AbsencePolicy.PAUSE_SESSION


def a_pair() -> Room:
    """Alice and Bob."""
    return given(create_step(), join_step(BOB, R.DRIVER))


def test_a_member_may_say_whether_they_are_there() -> None:
    room = a_pair()

    facts = when(room, BOB, PresenceUpdate("bob", P.IDLE, THEN), at=seconds_after_start(7))
    bob = after(room, facts).members["bob"]

    assert types_of(facts) == [PresenceChanged]
    assert (bob.presence, bob.since) == (P.IDLE, seconds_after_start(7))


def test_only_the_server_sees_that_somebody_is_disconnected() -> None:
    with expect_refusal(Reason.MALFORMED, "Only the server"):
        when(a_pair(), BOB, PresenceUpdate("bob", P.DISCONNECTED, THEN))


@pytest.mark.parametrize("last_active", ["", "just now", "1769803200000"])
def test_when_somebody_was_last_there_is_a_time(last_active: str) -> None:
    with expect_refusal(Reason.MALFORMED, "last_active"):
        when(a_pair(), BOB, PresenceUpdate("bob", P.IDLE, last_active))


@proves("OPEN-32")
def test_lost_connection_does_not_count_as_leaving() -> None:
    room = a_pair()

    facts = when(room, PRESENCE_ACTOR, disconnect_update("bob", T0))
    room = after(room, facts)

    assert types_of(facts) == [PresenceChanged]
    assert facts.records[0].sender == "system"
    assert room.members["bob"].presence is P.DISCONNECTED
    assert list(CONTEXT.presence.connected_members(room)) == ["alice"]


@proves("OPEN-32")
def test_a_disconnect_is_recorded_once() -> None:
    room = given(presence_step(BOB, P.DISCONNECTED, at=seconds_after_start(1)), room=a_pair())

    assert (
        when(room, PRESENCE_ACTOR, disconnect_update("bob", T0), at=seconds_after_start(100)) == []
    )


@proves("OPEN-32")
@pytest.mark.parametrize("status", [P.IDLE, P.AWAY, P.DISCONNECTED])
def test_an_absence_of_any_length_ends_no_membership(status: Presence) -> None:
    room = given(presence_step(BOB, status), room=a_pair())

    assert list(CONTEXT.deadlines(room, DEFAULT_POLICY)) == []
    assert tick_at(room, seconds_after_start(365 * 86_400)) == []
    assert room.members["bob"].presence is status


@proves("OPEN-32", "UNI-23", "PVP-6.4-2")
def test_without_tokens_the_server_removes_members_after_the_grace_period() -> None:
    room = given(presence_step(BOB, P.DISCONNECTED), room=a_pair())
    assert tick_at(room, seconds_after_start(299), policy=OPEN_POLICY) == []

    facts = tick_at(room, seconds_after_start(300), policy=OPEN_POLICY)
    room = after(room, facts)

    assert facts[0] == MemberLeft(said=SessionLeave("Connection lost", "bob"), seat="bob")
    assert facts.records[0].sender == "system"
    assert list(room.members) == ["alice"]


@proves("UNI-23")
@pytest.mark.parametrize(
    ("away", "grace", "due"), [(300, 300, 300), (900, 300, 900), (300, 600, 600)]
)
def test_the_grace_period_is_the_longer_of_the_server_s_and_the_session_s(
    away: int, grace: int, due: int
) -> None:
    room = given(
        create_step(away_timeout_seconds=away),
        join_step(BOB, R.DRIVER),
        presence_step(BOB, P.DISCONNECTED),
    )

    policy = ServerPolicy(grace_seconds=grace, grace_ends_membership=True)

    assert list(CONTEXT.deadlines(room, policy)) == [seconds_after_start(due)]


@proves("OPEN-32")
def test_who_comes_back_within_the_grace_never_left() -> None:
    back = join_step(BOB, R.DRIVER, at=seconds_after_start(299))
    room = given(presence_step(BOB, P.DISCONNECTED), back, room=a_pair())

    assert tick_at(room, seconds_after_start(1000)) == []
    assert list(CONTEXT.deadlines(room, DEFAULT_POLICY)) == []


@proves("OPEN-32", "UNI-22")
def test_who_is_there_again_without_a_new_join_is_noted_by_the_server() -> None:
    room = given(presence_step(BOB, P.DISCONNECTED), room=a_pair())
    back = reconnect_update(room, "bob", seconds_after_start(9))
    assert back is not None

    room = after(room, when(room, PRESENCE_ACTOR, back, at=seconds_after_start(9)))

    assert room.members["bob"].presence is P.ACTIVE
    assert list(CONTEXT.deadlines(room, DEFAULT_POLICY)) == []


def test_of_strangers_and_after_the_end_there_is_nothing_to_note() -> None:
    room = a_pair()

    assert reconnect_update(room, "nobody", T0) is None
    assert reconnect_update(given(script_step(ALICE, session_end()), room=room), "bob", T0) is None


LASTING = ServerPolicy()  # gates of a day


def an_absent_agent(status: Presence) -> Room:
    """Claude answers a prompt, waits at a gate, holds a grant, and is absent."""
    return given(
        create_step(),
        join_step(CLAUDE, R.DRIVER),
        script_step(ALICE, prompt_submit(), id="prompt"),
        script_step(CLAUDE, ResponseStart("claude", "prompt"), id="answer"),
        script_step(CLAUDE, tool_propose(), id="granted"),
        script_step(ALICE, tool_approve(ALICE, "granted")),
        script_step(CLAUDE, tool_propose(), id="asked"),
        presence_step(CLAUDE, status),
        policy=LASTING,
    )


@proves("OPEN-32")
@pytest.mark.parametrize("status", [P.AWAY, P.DISCONNECTED])
def test_a_long_absence_of_an_agent_ends_its_streams_alone(status: Presence) -> None:
    room = an_absent_agent(status)
    assert seconds_after_start(300) in list(CONTEXT.deadlines(room, DEFAULT_POLICY))
    assert tick_at(room, seconds_after_start(299), policy=LASTING) == []

    facts = tick_at(room, seconds_after_start(300), policy=LASTING)
    room = after(room, facts)

    (ended,) = events_of(facts)
    assert isinstance(ended, ResponseEnded)
    assert ended.said.finish_reason == "interrupted"
    assert room.streams == {}
    assert "claude" in room.members
    assert {gate.action for gate in room.gates.values()} == {"asked"}
    assert room.tools["granted"].grant is not None


@proves("OPEN-32")
def test_a_prompt_to_an_absent_agent_is_accepted_and_its_sender_told() -> None:
    room = an_absent_agent(P.DISCONNECTED)

    facts = when(room, ALICE, prompt_submit(), id="again")

    assert types_of(facts) == [PromptSubmitted, Relay]
    notice = facts[-1]
    assert isinstance(notice, Relay)
    assert notice.to == frozenset({"alice"})
    assert notice.body == Failure(
        Reason.AGENT, "claude is disconnected and reads the prompt when it returns", "again"
    )


@proves("OPEN-18")
def test_an_escalated_gate_of_somebody_lost_does_not_stay_open() -> None:
    house = ServerPolicy(
        gate_seconds=300, on_gate_timeout=GateResolution.ESCALATED, grace_ends_membership=True
    )
    room = given(
        create_step(),
        join_step(CLAUDE, R.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        presence_step(CLAUDE, P.DISCONNECTED),
        policy=house,
    )
    room = after(room, tick_at(room, seconds_after_start(300), policy=house))
    assert gate_on(room, "p").timeout_seconds == 300

    facts = tick_at(room, seconds_after_start(300), policy=house)

    assert GateRejected in types_of(facts)
    assert after(room, facts).gates == {}


# Pausing


@proves("OPEN-18")
@pytest.mark.parametrize("status", [P.AWAY, P.DISCONNECTED])
def test_an_absence_pauses_where_the_policy_says_so(status: Presence) -> None:
    room = given(create_step(on_participant_timeout=PAUSING), join_step(BOB, R.DRIVER))

    room = given(presence_step(BOB, status, at=seconds_after_start(5)), room=room)

    assert room.paused_at == seconds_after_start(5)


@proves("OPEN-18")
@pytest.mark.parametrize("policy", [AbsencePolicy.WAIT, AbsencePolicy.SKIP])
def test_an_absence_pauses_nothing_under_another_policy(policy: AbsencePolicy) -> None:
    room = given(
        create_step(on_participant_timeout=policy),
        join_step(BOB, R.DRIVER),
        presence_step(BOB, P.DISCONNECTED),
    )

    assert room.paused_at is None


@proves("OPEN-18")
def test_an_observer_s_absence_pauses_nothing() -> None:
    room = given(
        create_step(on_participant_timeout=PAUSING),
        join_step(BOB, R.OBSERVER),
        presence_step(BOB, P.DISCONNECTED),
    )

    assert room.paused_at is None


def test_idle_member_does_not_pause_the_session() -> None:
    room = given(
        create_step(on_participant_timeout=PAUSING),
        join_step(BOB, R.DRIVER),
        presence_step(BOB, P.IDLE),
    )

    assert room.paused_at is None


@proves("OPEN-18")
def test_the_pause_began_with_the_first_absence_and_ends_with_the_last() -> None:
    room = given(
        create_step(on_participant_timeout=PAUSING),
        join_step(BOB, R.DRIVER),
        join_step(CLAUDE, R.DRIVER),
        presence_step(BOB, P.DISCONNECTED, at=seconds_after_start(1)),
        presence_step(CLAUDE, P.AWAY, at=seconds_after_start(2)),
    )
    assert room.paused_at == seconds_after_start(1)

    room = given(join_step(BOB, R.DRIVER, at=seconds_after_start(3)), room=room)
    assert room.paused_at == seconds_after_start(1)

    room = given(presence_step(CLAUDE, P.ACTIVE, at=seconds_after_start(4)), room=room)
    assert room.paused_at is None


@proves("OPEN-18")
def test_a_pause_stops_the_clocks_of_gates_and_they_go_on_where_they_stood() -> None:
    room = given(
        create_step(on_participant_timeout=PAUSING),
        join_step(BOB, R.DRIVER),
        join_step(CLAUDE, R.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
    )
    due = gate_on(room, "p").expires_at
    assert due is not None
    room = given(presence_step(BOB, P.DISCONNECTED, at=seconds_after_start(10)), room=room)
    assert tick_at(room, due) == []

    room = given(presence_step(BOB, P.ACTIVE, at=seconds_after_start(70)), room=room)

    assert gate_on(room, "p").expires_at == due + 60_000


def test_a_gate_without_a_clock_still_has_none_after_a_pause() -> None:
    room = given(
        create_step(on_participant_timeout=PAUSING),
        join_step(BOB, R.DRIVER),
        join_step(CLAUDE, R.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
        presence_step(BOB, P.AWAY),
        presence_step(BOB, P.ACTIVE, at=seconds_after_start(60)),
        policy=ServerPolicy(gate_seconds=0),
    )

    assert gate_on(room, "p").expires_at is None


@proves("OPEN-18")
@pytest.mark.parametrize("returns", [False, True])
def test_leaving_ends_the_pause_that_an_absence_began(returns: bool) -> None:
    room = given(
        create_step(on_participant_timeout=PAUSING),
        join_step(BOB, R.DRIVER),
        presence_step(BOB, P.DISCONNECTED),
    )

    room = (
        given(leave_step(BOB), room=room)
        if returns
        else after(room, tick_at(room, seconds_after_start(300), policy=OPEN_POLICY))
    )

    assert "bob" not in room.members
    assert room.paused_at is None


@proves("OPEN-31")
def test_who_is_here_by_the_last_word_is_known_and_nobody_after_the_end() -> None:
    room = given(presence_step(BOB, P.AWAY), room=a_pair())
    assert list(CONTEXT.presence.connected_members(room)) == ["alice", "bob"]

    room = given(script_step(ALICE, session_end()), room=room)

    assert list(CONTEXT.presence.connected_members(room)) == []
