"""Signs of life: answered, not kept, and what their absence means."""

import json

import pytest

from accord.core.dialects import pvp
from accord.core.kernel.actor import PRESENCE
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Beats, Body, Lifetime, Silence, Tell
from accord.core.kernel.refusal import Why
from accord.core.room import CONTEXT
from accord.core.room.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.presence import PresenceChanged, PresenceUpdate
from accord.core.room.state import OnTimeout, Presence
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    T0,
    after,
    ends,
    given,
    joined,
    now,
    opened,
    refused,
    step,
    when,
)
from tests.spec import proves

HEARTBEATS = [HeartbeatPing(), HeartbeatPong()]


@proves("PVP-8.1-3")
@pytest.mark.parametrize("body", HEARTBEATS, ids=lambda body: body.type)
def test_a_heartbeat_says_nothing_but_itself(body: Body) -> None:
    said = json.loads(pvp.told("m", T0, "r", body))

    assert said["payload"] == {}
    assert pvp.decode(json.dumps(said | {"payload": {"mood": "fine"}}).encode()).body == body


@proves("OPEN-33")
@pytest.mark.parametrize("who", [ALICE, BOB, CLAUDE], ids=lambda who: who.seat)
def test_whoever_pings_is_answered_alone_and_told_which_ping_it_was(who: object) -> None:
    room = given(opened(), joined(BOB, Role.OBSERVER), joined(CLAUDE, Role.DRIVER))
    (actor,) = (each for each in (ALICE, BOB, CLAUDE) if each is who)

    facts = when(room, actor, HeartbeatPing(), id="ping")

    assert facts == [Tell(HeartbeatPong(), frozenset({actor.seat}), "ping")]
    assert facts.records == ()


@proves("OPEN-33")
def test_a_pong_is_heard_and_that_is_all() -> None:
    assert when(given(opened()), ALICE, HeartbeatPong()) == []


@proves("OPEN-33")
@pytest.mark.parametrize("body", HEARTBEATS, ids=lambda body: body.type)
def test_heartbeats_are_never_kept_and_always_in_time(body: Body) -> None:
    away = now(BOB, Presence.AWAY)
    paused = given(
        opened(on_participant_timeout=OnTimeout.PAUSE_SESSION), joined(BOB, Role.DRIVER), away
    )
    over = given(opened(), joined(BOB, Role.DRIVER), step(ALICE, ends()))

    assert body.lifetime is Lifetime.SIGNAL
    assert paused.paused_at is not None
    for room in (paused, over):
        assert when(room, BOB, body).records == ()


def test_a_stranger_s_heart_beats_elsewhere() -> None:
    with refused(Why.NO_ROOM):
        when(given(opened()), CAROL, HeartbeatPing())


@proves("UNI-22")
def test_a_room_is_asked_as_often_as_its_rules_say() -> None:
    beats = CONTEXT.beats(given(opened()))

    assert isinstance(beats, Beats)
    assert beats[:4] == (30_000, 120_000, 300_000, HeartbeatPing())


def test_other_rules_beat_otherwise() -> None:
    room = given(
        opened(heartbeat_interval_seconds=1, idle_timeout_seconds=2, away_timeout_seconds=3)
    )

    beats = CONTEXT.beats(room)

    assert beats is not None
    assert beats[:3] == (1000, 2000, 3000)


def test_where_nobody_is_or_all_is_over_no_heart_beats() -> None:
    assert CONTEXT.beats(CONTEXT.start("room/r")) is None
    assert CONTEXT.beats(given(opened(), step(ALICE, ends()))) is None


SILENCES = [
    (Silence.IDLE, Presence.IDLE),
    (Silence.AWAY, Presence.AWAY),
    (Silence.OVER, Presence.ACTIVE),
]


@proves("PVP-8.2-1", "PVP-8.2-2", "UNI-22")
@pytest.mark.parametrize(("silence", "presence"), SILENCES)
def test_the_room_is_told_what_silence_means_and_since_when(
    silence: Silence, presence: Presence
) -> None:
    room = given(opened(), joined(BOB, Role.DRIVER), now(BOB, Presence.DISCONNECTED))
    beats = CONTEXT.beats(room)
    assert beats is not None

    facts = when(room, PRESENCE, beats.silent("bob", T0, silence))

    said = PresenceUpdate("bob", presence, "2026-01-30T20:00:00.000Z")
    assert facts == [PresenceChanged(said=said)]
    assert CONTEXT.audience(room, facts.records[0]) is None
    assert after(room, facts).members["bob"].presence is presence


@proves("PVP-8.1-6", "OPEN-18")
def test_whoever_is_silent_for_too_long_is_treated_as_the_rules_say() -> None:
    room = given(opened(on_participant_timeout=OnTimeout.PAUSE_SESSION), joined(BOB, Role.DRIVER))
    beats = CONTEXT.beats(room)
    assert beats is not None

    idle = given(step(PRESENCE, beats.silent("bob", T0, Silence.IDLE)), room=room)
    away = given(step(PRESENCE, beats.silent("bob", T0, Silence.AWAY)), room=idle)
    back = given(step(PRESENCE, beats.silent("bob", T0, Silence.OVER)), room=away)

    assert [each.paused_at is None for each in (idle, away, back)] == [True, False, True]


def test_to_be_told_of_a_silence_twice_is_to_be_told_once() -> None:
    room = given(opened(), joined(BOB, Role.DRIVER), now(BOB, Presence.IDLE))
    beats = CONTEXT.beats(room)
    assert beats is not None

    assert when(room, PRESENCE, beats.silent("bob", T0, Silence.IDLE)) == []
