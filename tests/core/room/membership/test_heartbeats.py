"""Signs of life: answered, not kept, and what their absence means."""

import json

import pytest

from accord.core.dialects import pvp
from accord.core.kernel.actor import PRESENCE_ACTOR
from accord.core.kernel.context import HeartbeatPolicy, Inactivity
from accord.core.kernel.effects import ServerNotice
from accord.core.kernel.messages import Body, Lifetime
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room import CONTEXT
from accord.core.room.membership.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.membership.presence import PresenceChanged, PresenceUpdate
from accord.core.room.room_settings import AbsencePolicy
from accord.core.room.state import Presence
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    T0,
    after,
    create_step,
    expect_refusal,
    given,
    join_step,
    presence_step,
    script_step,
    session_end,
    when,
)
from tests.spec import proves

HEARTBEATS = [HeartbeatPing(), HeartbeatPong()]


@proves("PVP-8.1-3")
@pytest.mark.parametrize("body", HEARTBEATS, ids=lambda body: body.type)
def test_a_heartbeat_says_nothing_but_itself(body: Body) -> None:
    said = json.loads(pvp.encode_notice("m", T0, "r", body))

    assert said["payload"] == {}
    assert pvp.decode(json.dumps(said | {"payload": {"mood": "fine"}}).encode()).body == body


@proves("OPEN-33")
@pytest.mark.parametrize("who", [ALICE, BOB, CLAUDE], ids=lambda who: who.principal)
def test_whoever_pings_is_answered_alone_and_told_which_ping_it_was(who: object) -> None:
    room = given(create_step(), join_step(BOB, Role.OBSERVER), join_step(CLAUDE, Role.DRIVER))
    (actor,) = (each for each in (ALICE, BOB, CLAUDE) if each is who)

    facts = when(room, actor, HeartbeatPing(), id="ping")

    assert facts == [ServerNotice(HeartbeatPong(), frozenset({actor.principal}), "ping")]
    assert facts.records == ()


@proves("OPEN-33")
def test_a_pong_is_heard_and_that_is_all() -> None:
    assert when(given(create_step()), ALICE, HeartbeatPong()) == []


@proves("OPEN-33")
@pytest.mark.parametrize("body", HEARTBEATS, ids=lambda body: body.type)
def test_heartbeats_are_never_kept_and_always_in_time(body: Body) -> None:
    away = presence_step(BOB, Presence.AWAY)
    paused = given(
        create_step(on_participant_timeout=AbsencePolicy.PAUSE_SESSION),
        join_step(BOB, Role.DRIVER),
        away,
    )
    over = given(create_step(), join_step(BOB, Role.DRIVER), script_step(ALICE, session_end()))

    assert body.lifetime is Lifetime.SIGNAL
    assert paused.paused_at is not None
    for room in (paused, over):
        assert when(room, BOB, body).records == ()


def test_heartbeat_of_a_non_member_is_refused() -> None:
    with expect_refusal(Reason.NO_ROOM):
        when(given(create_step()), CAROL, HeartbeatPing())


@proves("UNI-22")
def test_a_room_is_asked_as_often_as_its_rules_say() -> None:
    beats = CONTEXT.presence.heartbeat_policy(given(create_step()))

    assert isinstance(beats, HeartbeatPolicy)
    assert beats[:4] == (30_000, 120_000, 300_000, HeartbeatPing())


def test_heartbeat_policy_follows_changed_settings() -> None:
    room = given(
        create_step(heartbeat_interval_seconds=1, idle_timeout_seconds=2, away_timeout_seconds=3)
    )

    beats = CONTEXT.presence.heartbeat_policy(room)

    assert beats is not None
    assert beats[:3] == (1000, 2000, 3000)


def test_no_heartbeats_without_a_session_or_after_its_end() -> None:
    assert CONTEXT.presence.heartbeat_policy(CONTEXT.initial_state("room/r")) is None
    assert (
        CONTEXT.presence.heartbeat_policy(given(create_step(), script_step(ALICE, session_end())))
        is None
    )


SILENCES = [
    (Inactivity.IDLE, Presence.IDLE),
    (Inactivity.AWAY, Presence.AWAY),
    (Inactivity.ENDED, Presence.ACTIVE),
]


@proves("PVP-8.2-1", "PVP-8.2-2", "UNI-22")
@pytest.mark.parametrize(("silence", "presence"), SILENCES)
def test_the_room_is_told_what_silence_means_and_since_when(
    silence: Inactivity, presence: Presence
) -> None:
    room = given(
        create_step(), join_step(BOB, Role.DRIVER), presence_step(BOB, Presence.DISCONNECTED)
    )
    beats = CONTEXT.presence.heartbeat_policy(room)
    assert beats is not None

    facts = when(room, PRESENCE_ACTOR, beats.inactivity_body("bob", T0, silence))

    said = PresenceUpdate("bob", presence, "2026-01-30T20:00:00.000Z")
    assert facts == [PresenceChanged(said=said)]
    assert CONTEXT.presence.audience(room, facts.records[0]) is None
    assert after(room, facts).members["bob"].presence is presence


@proves("PVP-8.1-6", "OPEN-18")
def test_whoever_is_silent_for_too_long_is_treated_as_the_rules_say() -> None:
    room = given(
        create_step(on_participant_timeout=AbsencePolicy.PAUSE_SESSION), join_step(BOB, Role.DRIVER)
    )
    beats = CONTEXT.presence.heartbeat_policy(room)
    assert beats is not None

    idle = given(
        script_step(PRESENCE_ACTOR, beats.inactivity_body("bob", T0, Inactivity.IDLE)), room=room
    )
    away = given(
        script_step(PRESENCE_ACTOR, beats.inactivity_body("bob", T0, Inactivity.AWAY)), room=idle
    )
    back = given(
        script_step(PRESENCE_ACTOR, beats.inactivity_body("bob", T0, Inactivity.ENDED)), room=away
    )

    assert [each.paused_at is None for each in (idle, away, back)] == [True, False, True]


def test_repeated_inactivity_is_recorded_once() -> None:
    room = given(create_step(), join_step(BOB, Role.DRIVER), presence_step(BOB, Presence.IDLE))
    beats = CONTEXT.presence.heartbeat_policy(room)
    assert beats is not None

    assert when(room, PRESENCE_ACTOR, beats.inactivity_body("bob", T0, Inactivity.IDLE)) == []
