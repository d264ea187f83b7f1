"""Presence: who is there, what an absence does, and when it becomes a leave."""

import pytest

from accord.core.kernel.actor import PRESENCE
from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Why
from accord.core.room import CONTEXT
from accord.core.room.members import Left, SessionLeave
from accord.core.room.presence import PresenceChanged, PresenceUpdate, disconnected, reconnected
from accord.core.room.state import House, OnTimeout, Presence, Resolution, Room
from accord.core.room.streams import ResponseEnded, ResponseStart
from accord.core.room.timeouts import GateTimedOut
from accord.core.room.votes import Rejected
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    HOUSE,
    T0,
    after,
    after_seconds,
    ends,
    events,
    gate_on,
    given,
    joined,
    kinds,
    left,
    now,
    opened,
    prompts,
    proposes,
    refused,
    step,
    ticks,
    when,
)
from tests.spec import proves

R, P = Role, Presence
THEN = "2026-01-30T20:00:00.000Z"
PAUSING = OnTimeout.PAUSE_SESSION


def a_pair() -> Room:
    """Alice and Bob."""
    return given(opened(), joined(BOB, R.DRIVER))


def test_a_member_may_say_whether_they_are_there() -> None:
    room = a_pair()

    facts = when(room, BOB, PresenceUpdate("bob", P.IDLE, THEN), at=after_seconds(7))
    bob = after(room, facts).members["bob"]

    assert kinds(facts) == [PresenceChanged]
    assert (bob.presence, bob.since) == (P.IDLE, after_seconds(7))


def test_only_the_server_sees_that_somebody_is_disconnected() -> None:
    with refused(Why.MALFORMED, "Only the server"):
        when(a_pair(), BOB, PresenceUpdate("bob", P.DISCONNECTED, THEN))


@pytest.mark.parametrize("last_active", ["", "just now", "1769803200000"])
def test_when_somebody_was_last_there_is_a_time(last_active: str) -> None:
    with refused(Why.MALFORMED, "last_active"):
        when(a_pair(), BOB, PresenceUpdate("bob", P.IDLE, last_active))


@proves("OPEN-32")
def test_a_lost_connection_is_no_leave() -> None:
    room = a_pair()

    facts = when(room, PRESENCE, disconnected("bob", T0))
    room = after(room, facts)

    assert kinds(facts) == [PresenceChanged]
    assert facts.records[0].sender == "system"
    assert room.members["bob"].presence is P.DISCONNECTED
    assert list(CONTEXT.present(room)) == ["alice"]


@proves("OPEN-32", "UNI-23")
def test_the_server_s_word_is_noted_once_and_the_time_runs_from_then() -> None:
    room = given(now(BOB, P.DISCONNECTED, at=after_seconds(1)), room=a_pair())

    assert when(room, PRESENCE, disconnected("bob", T0), at=after_seconds(100)) == []
    assert list(CONTEXT.deadlines(room, HOUSE)) == [after_seconds(301)]


@proves("OPEN-32", "UNI-23", "PVP-6.4-2")
def test_after_the_grace_the_server_says_that_somebody_left() -> None:
    room = given(now(BOB, P.DISCONNECTED), room=a_pair())
    assert ticks(room, after_seconds(299)) == []

    facts = ticks(room, after_seconds(300))
    room = after(room, facts)

    assert facts == [Left(said=SessionLeave("Connection lost", "bob"), seat="bob")]
    assert facts.records[0].sender == "system"
    assert list(room.members) == ["alice"]


@proves("UNI-23")
@pytest.mark.parametrize(
    ("away", "grace", "due"), [(300, 300, 300), (900, 300, 900), (300, 600, 600)]
)
def test_the_grace_is_the_longer_of_the_house_s_and_the_room_s(
    away: int, grace: int, due: int
) -> None:
    room = given(opened(away_timeout_seconds=away), joined(BOB, R.DRIVER), now(BOB, P.DISCONNECTED))

    deadlines = CONTEXT.deadlines(room, House(grace_seconds=grace))

    assert list(deadlines) == [after_seconds(due)]


@proves("OPEN-32")
def test_who_comes_back_within_the_grace_never_left() -> None:
    back = joined(BOB, R.DRIVER, at=after_seconds(299))
    room = given(now(BOB, P.DISCONNECTED), back, room=a_pair())

    assert ticks(room, after_seconds(1000)) == []
    assert list(CONTEXT.deadlines(room, HOUSE)) == []


@proves("OPEN-32", "UNI-22")
def test_who_is_there_again_without_a_new_join_is_noted_by_the_server() -> None:
    room = given(now(BOB, P.DISCONNECTED), room=a_pair())
    back = reconnected(room, "bob", after_seconds(9))
    assert back is not None

    room = after(room, when(room, PRESENCE, back, at=after_seconds(9)))

    assert room.members["bob"].presence is P.ACTIVE
    assert list(CONTEXT.deadlines(room, HOUSE)) == []


def test_of_strangers_and_after_the_end_there_is_nothing_to_note() -> None:
    room = a_pair()

    assert reconnected(room, "nobody", T0) is None
    assert reconnected(given(step(ALICE, ends()), room=room), "bob", T0) is None


@proves("OPEN-32", "PVP-6.4-2")
def test_a_lost_agent_s_work_is_closed_by_the_server() -> None:
    room = given(
        opened(),
        joined(CLAUDE, R.DRIVER),
        step(ALICE, prompts(), id="prompt"),
        step(CLAUDE, ResponseStart("claude", "prompt"), id="answer"),
        now(CLAUDE, P.DISCONNECTED),
    )

    facts = ticks(room, after_seconds(300))

    assert kinds(facts) == [ResponseEnded, Left]
    assert [record.sender for record in facts.records] == ["system", "system"]


@proves("OPEN-24")
def test_a_gate_whose_initiator_and_time_are_both_gone_ends_once() -> None:
    room = given(
        opened(),
        joined(CLAUDE, R.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        now(CLAUDE, P.DISCONNECTED),
    )
    gate = gate_on(room, "p").id

    first = ticks(room, after_seconds(300))
    room = after(room, first)
    second = ticks(room, after_seconds(300))

    (timed_out,) = events(first)
    assert isinstance(timed_out, GateTimedOut)
    assert (timed_out.said.gate, timed_out.said.resolution) == (gate, Resolution.REJECTED)
    assert kinds(second) == [Left]


@proves("OPEN-18")
def test_an_escalated_gate_of_somebody_lost_does_not_stay_open() -> None:
    house = House(on_gate_timeout=Resolution.ESCALATED)
    room = given(
        opened(),
        joined(CLAUDE, R.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        now(CLAUDE, P.DISCONNECTED),
        house=house,
    )
    room = after(room, ticks(room, after_seconds(300), house=house))
    assert gate_on(room, "p").timeout_seconds == 300

    facts = ticks(room, after_seconds(300), house=house)

    assert Rejected in kinds(facts)
    assert after(room, facts).gates == {}


# Pausing


@proves("OPEN-18")
@pytest.mark.parametrize("status", [P.AWAY, P.DISCONNECTED])
def test_an_absence_pauses_where_the_policy_says_so(status: Presence) -> None:
    room = given(opened(on_participant_timeout=PAUSING), joined(BOB, R.DRIVER))

    room = given(now(BOB, status, at=after_seconds(5)), room=room)

    assert room.paused_at == after_seconds(5)


@proves("OPEN-18")
@pytest.mark.parametrize("policy", [OnTimeout.WAIT, OnTimeout.SKIP])
def test_an_absence_pauses_nothing_under_another_policy(policy: OnTimeout) -> None:
    room = given(
        opened(on_participant_timeout=policy), joined(BOB, R.DRIVER), now(BOB, P.DISCONNECTED)
    )

    assert room.paused_at is None


@proves("OPEN-18")
def test_an_observer_s_absence_pauses_nothing() -> None:
    room = given(
        opened(on_participant_timeout=PAUSING), joined(BOB, R.OBSERVER), now(BOB, P.DISCONNECTED)
    )

    assert room.paused_at is None


def test_being_idle_is_no_absence() -> None:
    room = given(opened(on_participant_timeout=PAUSING), joined(BOB, R.DRIVER), now(BOB, P.IDLE))

    assert room.paused_at is None


@proves("OPEN-18")
def test_the_pause_began_with_the_first_absence_and_ends_with_the_last() -> None:
    room = given(
        opened(on_participant_timeout=PAUSING),
        joined(BOB, R.DRIVER),
        joined(CLAUDE, R.DRIVER),
        now(BOB, P.DISCONNECTED, at=after_seconds(1)),
        now(CLAUDE, P.AWAY, at=after_seconds(2)),
    )
    assert room.paused_at == after_seconds(1)

    room = given(joined(BOB, R.DRIVER, at=after_seconds(3)), room=room)
    assert room.paused_at == after_seconds(1)

    room = given(now(CLAUDE, P.ACTIVE, at=after_seconds(4)), room=room)
    assert room.paused_at is None


@proves("OPEN-18")
def test_a_pause_stops_the_clocks_of_gates_and_they_go_on_where_they_stood() -> None:
    room = given(
        opened(on_participant_timeout=PAUSING),
        joined(BOB, R.DRIVER),
        joined(CLAUDE, R.DRIVER),
        step(CLAUDE, proposes(), id="p"),
    )
    due = gate_on(room, "p").expires_at
    assert due is not None
    room = given(now(BOB, P.DISCONNECTED, at=after_seconds(10)), room=room)
    assert ticks(room, due) == []

    room = given(now(BOB, P.ACTIVE, at=after_seconds(70)), room=room)

    assert gate_on(room, "p").expires_at == due + 60_000


def test_a_gate_without_a_clock_still_has_none_after_a_pause() -> None:
    room = given(
        opened(on_participant_timeout=PAUSING),
        joined(BOB, R.DRIVER),
        joined(CLAUDE, R.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        now(BOB, P.AWAY),
        now(BOB, P.ACTIVE, at=after_seconds(60)),
        house=House(gate_seconds=0),
    )

    assert gate_on(room, "p").expires_at is None


@proves("OPEN-18")
@pytest.mark.parametrize("returns", [False, True])
def test_leaving_ends_the_pause_that_an_absence_began(returns: bool) -> None:
    room = given(
        opened(on_participant_timeout=PAUSING), joined(BOB, R.DRIVER), now(BOB, P.DISCONNECTED)
    )

    room = given(left(BOB), room=room) if returns else after(room, ticks(room, after_seconds(300)))

    assert "bob" not in room.members
    assert room.paused_at is None


@proves("OPEN-31")
def test_who_is_here_by_the_last_word_is_known_and_nobody_after_the_end() -> None:
    room = given(now(BOB, P.AWAY), room=a_pair())
    assert list(CONTEXT.present(room)) == ["alice", "bob"]

    room = given(step(ALICE, ends()), room=room)

    assert list(CONTEXT.present(room)) == []
