"""Heartbeats: pings, idle and away members, and their return."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import Everyone
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import to_iso
from accord.core.room.membership.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.room_settings import AbsencePolicy
from accord.core.room.state import Presence
from accord.engine.streams import stream_cache
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness, ManualClock
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    T0,
    prompt_submit,
    session_end,
    session_join,
    tool_approve,
    tool_propose,
)
from tests.spec import proves

EVERY, IDLE, AWAY = 30, 120, 300  # seconds


def pings(stage: EngineHarness, seat: str) -> list[dict[str, Any]]:
    """How often somebody was asked."""
    return [each for each in stage.peers[seat].received if each["type"] == "heartbeat.ping"]


def news_of(stage: EngineHarness, seat: str) -> list[str]:
    """What Alice heard of somebody's presence."""
    heard = [e for e in stage.peers["alice"].received if e["type"] == "presence.update"]
    return [e["payload"]["status"] for e in heard if e["payload"]["participant"] == seat]


async def pass_by(stage: EngineHarness, seconds: int, *answering: Actor) -> None:
    """Time passes beat by beat; these answer, the others are silent."""
    for _ in range(seconds // EVERY):
        await stage.run_heartbeats(EVERY)
        for who in answering:
            await stage.send(who, HeartbeatPong())


async def status(stage: EngineHarness, seat: str) -> Presence:
    return (await stage.state()).members[seat].presence


@proves("PVP-8.1-1", "OPEN-33")
async def test_every_connection_is_pinged_at_the_interval(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.run_heartbeats(EVERY - 1)
    assert [pings(stage, seat) for seat in stage.peers] == [[], [], []]
    await stage.run_heartbeats(1)
    await stage.run_heartbeats(EVERY)

    assert [len(pings(stage, seat)) for seat in stage.peers] == [2, 2, 2]
    (first, second) = pings(stage, "bob")
    assert (first["payload"], first["sender"]) == ({}, "system")
    assert first["id"] != second["id"]
    assert first["id"] not in await stage.ids()


@proves("OPEN-33")
async def test_pong_refers_to_its_ping_and_is_not_stored_or_relayed(
    stage: EngineHarness,
) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.run_heartbeats(EVERY)
    before, heard = await stage.ids(), len(stage.peers["alice"].received)

    await stage.send(BOB, HeartbeatPong(), ref=pings(stage, "bob")[0]["id"])

    assert await stage.ids() == before
    assert len(stage.peers["alice"].received) == heard


@proves("OPEN-33")
async def test_client_ping_is_answered_to_the_client_only(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.send(BOB, HeartbeatPing(), "are you there")

    answer = stage.peers["bob"].received[-1]
    assert (answer["type"], answer["ref"]) == ("heartbeat.pong", "are you there")
    assert "heartbeat.pong" not in stage.peers["alice"].types


@proves("PVP-8.1-4", "PVP-8.1-5", "UNI-22")
async def test_silent_member_becomes_idle_then_away_each_recorded_once(
    stage: EngineHarness,
) -> None:
    await stage.open_room(BOB, CLAUDE)
    await pass_by(stage, IDLE - EVERY, ALICE, CLAUDE)
    assert news_of(stage, "bob") == []
    await pass_by(stage, EVERY, ALICE, CLAUDE)
    assert await status(stage, "bob") is Presence.IDLE
    await pass_by(stage, AWAY - IDLE, ALICE, CLAUDE)
    assert await status(stage, "bob") is Presence.AWAY
    await pass_by(stage, AWAY, ALICE, CLAUDE)

    assert news_of(stage, "bob") == ["idle", "away"]
    assert news_of(stage, "alice") == news_of(stage, "claude") == []
    kinds = [s.record.event.name for s in await stage.records()]
    assert kinds.count("member.presence") == 2


@proves("UNI-22", "OPEN-33")
@pytest.mark.parametrize("body", [HeartbeatPong(), HeartbeatPing(), prompt_submit()])
@pytest.mark.parametrize("silence", [IDLE, AWAY])
async def test_any_message_makes_a_member_active(
    stage: EngineHarness, body: Any, silence: int
) -> None:
    await stage.open_room(BOB, CLAUDE)
    await pass_by(stage, silence, ALICE, CLAUDE)

    await stage.send(BOB, body)

    assert await status(stage, "bob") is Presence.ACTIVE
    assert news_of(stage, "bob")[-1] == "active"


@proves("UNI-22")
async def test_refused_and_repeated_messages_count_as_activity(
    stage: EngineHarness,
) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.send(BOB, prompt_submit(), "p")
    for _ in range(2):
        await pass_by(stage, IDLE, ALICE, CLAUDE)
        assert await status(stage, "bob") is Presence.IDLE
        with pytest.raises(Refused):
            await stage.send(BOB, prompt_submit(ALICE))
        assert await status(stage, "bob") is Presence.ACTIVE
        await pass_by(stage, IDLE, ALICE, CLAUDE)
        await stage.send(BOB, prompt_submit(), "p")
        assert await status(stage, "bob") is Presence.ACTIVE


@proves("OPEN-18", "OPEN-17")
async def test_skip_policy_gate_does_not_wait_for_away_members(stage: EngineHarness) -> None:
    skip = AbsencePolicy.SKIP
    await stage.open_room(CLAUDE, on_participant_timeout=skip, default_gate_quorum=Everyone())
    await stage.send(BOB, session_join(BOB, Role.APPROVER))
    await pass_by(stage, AWAY - EVERY, ALICE, CLAUDE)
    await stage.send(CLAUDE, tool_propose(), "t")
    await pass_by(stage, EVERY, ALICE, CLAUDE)
    assert await status(stage, "bob") is Presence.AWAY

    await stage.send(ALICE, tool_approve(ALICE, "t"))

    assert (await stage.state()).tools["t"].grant


@proves("OPEN-18")
async def test_pause_policy_blocks_the_session_until_the_member_returns(
    stage: EngineHarness,
) -> None:
    await stage.open_room(BOB, CLAUDE, on_participant_timeout=AbsencePolicy.PAUSE_SESSION)
    await pass_by(stage, AWAY, ALICE, CLAUDE)
    for who in (ALICE, BOB):
        with pytest.raises(Refused, match="paused"):
            await stage.send(who, prompt_submit())

    assert (await stage.state()).paused_at is None, "Bob was heard, though refused"
    await stage.send(BOB, prompt_submit())


@proves("OPEN-18")
async def test_wait_policy_changes_nothing(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE, default_gate_quorum=Everyone())
    await pass_by(stage, AWAY, ALICE, CLAUDE)

    await stage.send(ALICE, prompt_submit())

    assert (await stage.state()).paused_at is None


@proves("OPEN-33", "UNI-22")
async def test_member_who_set_away_stays_away_while_the_client_pongs(
    stage: EngineHarness,
) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.send(BOB, PresenceUpdate("bob", Presence.AWAY, to_iso(T0)))
    await pass_by(stage, IDLE, ALICE, BOB, CLAUDE)
    assert news_of(stage, "bob") == ["away"]
    await pass_by(stage, AWAY, ALICE, CLAUDE)

    assert news_of(stage, "bob") == ["away"], "silence is nothing new"


async def test_empty_and_ended_sessions_are_not_pinged(stage: EngineHarness) -> None:
    await stage.open_room(BOB)
    for seat in ("alice", "bob"):
        stage.peers[seat].disconnect()
    await stage.wait_until_idle()
    await stage.run_heartbeats(EVERY)
    assert stage.engine.heartbeat.scheduler.deadlines == {}
    stage.connect(ALICE)
    await stage.send(ALICE, session_join(ALICE, Role.DRIVER))
    assert stage.engine.heartbeat.scheduler.deadlines
    await stage.send(ALICE, session_end())
    await pass_by(stage, AWAY)

    assert pings(stage, "alice") == []
    assert stage.engine.heartbeat.scheduler.deadlines == {}


async def test_ping_is_answered_long_after_the_session_ended(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the room is no longer at hand, and nobody is in it."""
    monkeypatch.setattr(stream_cache, "MAX_ENDED_STREAMS", 1)
    stage = make()
    for room in ("r", "other", "third"):
        await stage.open_room(BOB, room=room)
        await stage.send(ALICE, session_end(), room=room)
    assert "room/r" not in stage.engine.streams
    assert not stage.engine.delivery.is_subscribed("room/r", stage.peers["alice"])
    before = len(stage.peers["bob"].received)

    stage.submit(ALICE, HeartbeatPing(), "ping")
    await stage.wait_until_idle()

    assert stage.peers["alice"].received[-1]["type"] == "heartbeat.pong"
    assert len(stage.peers["bob"].received) == before


async def test_number_of_timers_does_not_grow(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    for _ in range(20):
        stage.peers.pop("bob").disconnect()
        await stage.send(BOB, session_join(BOB, Role.DRIVER))
        await pass_by(stage, EVERY, ALICE, BOB, CLAUDE)

    scheduler, cell = stage.engine.heartbeat.scheduler, stage.engine.streams["room/r"]
    assert len(scheduler.heap) <= 3
    assert len(scheduler.deadlines) == 1
    assert {*cell.last_seen} <= {
        "alice",
        "bob",
        "claude",
        "system",
        "system:timer",
        "system:presence",
    }
    assert cell.inactive == {}


@proves("UNI-22", "UNI-12")
@pytest.mark.parametrize("body", [prompt_submit(), SessionLeave()])
async def test_return_is_delivered_before_the_message_in_log_order(
    stage: EngineHarness, body: Any
) -> None:
    await stage.open_room(BOB, CLAUDE)
    await pass_by(stage, IDLE, ALICE, CLAUDE)

    await stage.send(BOB, body, "at last")

    gone = ["disconnected"] if isinstance(body, SessionLeave) else []
    assert news_of(stage, "bob") == ["idle", "active", *gone]
    for ear in stage.peers.values():
        assert ear.seqs == sorted(ear.seqs)
    assert stage.peers["alice"].ids == await stage.ids()


async def test_record_times_increase_when_a_return_is_recorded(make: Make) -> None:
    class Ticking(ManualClock):
        def now(self) -> int:
            self.at += 1
            return self.at

    stage = make(clock=Ticking())
    await stage.open_room(BOB, CLAUDE)
    await pass_by(stage, IDLE + EVERY, ALICE, CLAUDE)
    assert news_of(stage, "bob") == ["idle"]

    await stage.send(BOB, prompt_submit())

    assert news_of(stage, "bob") == ["idle", "active"]
    await stage.records()  # which looks at their times
