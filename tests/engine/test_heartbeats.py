"""Heartbeats: everybody is asked, silence is noticed, and a sign of life ends it at once."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import Everyone
from accord.core.kernel.refusal import Refused
from accord.core.kernel.times import iso
from accord.core.room.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.members import SessionLeave
from accord.core.room.presence import PresenceUpdate
from accord.core.room.state import OnTimeout, Presence
from accord.engine import opener
from tests.engine.conftest import Make
from tests.helpers.engine import Stage, Watch
from tests.helpers.room import ALICE, BOB, CLAUDE, T0, approves_tool, ends, joins, prompts, proposes
from tests.spec import proves

EVERY, IDLE, AWAY = 30, 120, 300  # seconds


def pings(stage: Stage, seat: str) -> list[dict[str, Any]]:
    """How often somebody was asked."""
    return [each for each in stage.ears[seat].heard if each["type"] == "heartbeat.ping"]


def news_of(stage: Stage, seat: str) -> list[str]:
    """What Alice heard of somebody's presence."""
    heard = [e for e in stage.ears["alice"].heard if e["type"] == "presence.update"]
    return [e["payload"]["status"] for e in heard if e["payload"]["participant"] == seat]


async def pass_by(stage: Stage, seconds: int, *answering: Actor) -> None:
    """Time passes beat by beat; these answer, the others are silent."""
    for _ in range(seconds // EVERY):
        await stage.beat(EVERY)
        for who in answering:
            await stage.say(who, HeartbeatPong())


async def status(stage: Stage, seat: str) -> Presence:
    return (await stage.state()).members[seat].presence


@proves("PVP-8.1-1", "OPEN-33")
async def test_every_connection_is_asked_at_the_interval(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.beat(EVERY - 1)
    assert [pings(stage, seat) for seat in stage.ears] == [[], [], []]
    await stage.beat(1)
    await stage.beat(EVERY)

    assert [len(pings(stage, seat)) for seat in stage.ears] == [2, 2, 2]
    (first, second) = pings(stage, "bob")
    assert (first["payload"], first["sender"]) == ({}, "system")
    assert first["id"] != second["id"]
    assert first["id"] not in await stage.ids()


@proves("OPEN-33")
async def test_the_answer_to_a_ping_names_it_and_is_neither_kept_nor_told(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.beat(EVERY)
    before, heard = await stage.ids(), len(stage.ears["alice"].heard)

    await stage.say(BOB, HeartbeatPong(), ref=pings(stage, "bob")[0]["id"])

    assert await stage.ids() == before
    assert len(stage.ears["alice"].heard) == heard


@proves("OPEN-33")
async def test_a_ping_of_a_client_is_answered_to_it_alone(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.say(BOB, HeartbeatPing(), "are you there")

    answer = stage.ears["bob"].heard[-1]
    assert (answer["type"], answer["ref"]) == ("heartbeat.pong", "are you there")
    assert "heartbeat.pong" not in stage.ears["alice"].types


@proves("PVP-8.1-4", "PVP-8.1-5", "UNI-22")
async def test_silence_makes_idle_and_then_away_and_each_is_said_once(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
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
@pytest.mark.parametrize("body", [HeartbeatPong(), HeartbeatPing(), prompts()])
@pytest.mark.parametrize("silence", [IDLE, AWAY])
async def test_any_message_makes_active_at_once(stage: Stage, body: Any, silence: int) -> None:
    await stage.open(BOB, CLAUDE)
    await pass_by(stage, silence, ALICE, CLAUDE)

    await stage.say(BOB, body)

    assert await status(stage, "bob") is Presence.ACTIVE
    assert news_of(stage, "bob")[-1] == "active"


@proves("UNI-22")
async def test_a_message_that_is_refused_or_repeated_is_a_sign_of_life_too(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.say(BOB, prompts(), "p")
    for _ in range(2):
        await pass_by(stage, IDLE, ALICE, CLAUDE)
        assert await status(stage, "bob") is Presence.IDLE
        with pytest.raises(Refused):
            await stage.say(BOB, prompts(ALICE))
        assert await status(stage, "bob") is Presence.ACTIVE
        await pass_by(stage, IDLE, ALICE, CLAUDE)
        await stage.say(BOB, prompts(), "p")
        assert await status(stage, "bob") is Presence.ACTIVE


@proves("OPEN-18", "OPEN-17")
async def test_under_skip_a_gate_does_not_wait_for_who_is_away(stage: Stage) -> None:
    skip = OnTimeout.SKIP
    await stage.open(CLAUDE, on_participant_timeout=skip, default_gate_quorum=Everyone())
    await stage.say(BOB, joins(BOB, Role.APPROVER))
    await pass_by(stage, AWAY - EVERY, ALICE, CLAUDE)
    await stage.say(CLAUDE, proposes(), "t")
    await pass_by(stage, EVERY, ALICE, CLAUDE)
    assert await status(stage, "bob") is Presence.AWAY

    await stage.say(ALICE, approves_tool(ALICE, "t"))

    assert (await stage.state()).tools["t"].grant


@proves("OPEN-18")
async def test_under_pause_the_room_stands_still_until_they_are_back(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE, on_participant_timeout=OnTimeout.PAUSE_SESSION)
    await pass_by(stage, AWAY, ALICE, CLAUDE)
    for who in (ALICE, BOB):
        with pytest.raises(Refused, match="paused"):
            await stage.say(who, prompts())

    assert (await stage.state()).paused_at is None, "Bob was heard, though refused"
    await stage.say(BOB, prompts())


@proves("OPEN-18")
async def test_under_wait_nothing_changes(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE, default_gate_quorum=Everyone())
    await pass_by(stage, AWAY, ALICE, CLAUDE)

    await stage.say(ALICE, prompts())

    assert (await stage.state()).paused_at is None


@proves("OPEN-33", "UNI-22")
async def test_who_says_they_are_away_stays_so_while_their_client_answers(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.say(BOB, PresenceUpdate("bob", Presence.AWAY, iso(T0)))
    await pass_by(stage, IDLE, ALICE, BOB, CLAUDE)
    assert news_of(stage, "bob") == ["away"]
    await pass_by(stage, AWAY, ALICE, CLAUDE)

    assert news_of(stage, "bob") == ["away"], "silence is nothing new"


async def test_nobody_is_asked_in_empty_or_ended_rooms(stage: Stage) -> None:
    await stage.open(BOB)
    for seat in ("alice", "bob"):
        stage.ears[seat].hang_up()
    await stage.settle()
    await stage.beat(EVERY)
    assert stage.engine.pulse.scheduler.when == {}
    stage.connect(ALICE)
    await stage.say(ALICE, joins(ALICE, Role.DRIVER))
    assert stage.engine.pulse.scheduler.when
    await stage.say(ALICE, ends())
    await pass_by(stage, AWAY)

    assert pings(stage, "alice") == []
    assert stage.engine.pulse.scheduler.when == {}


async def test_a_question_is_answered_long_after_the_end(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the room is no longer at hand, and nobody is in it."""
    monkeypatch.setattr(opener, "MOST_OVER", 1)
    stage = make()
    for room in ("r", "other", "third"):
        await stage.open(BOB, room=room)
        await stage.say(ALICE, ends(), room=room)
    assert "room/r" not in stage.engine.cells
    assert not stage.engine.peers.hears("room/r", stage.ears["alice"])
    before = len(stage.ears["bob"].heard)

    stage.ask(ALICE, HeartbeatPing(), "ping")
    await stage.settle()

    assert stage.ears["alice"].heard[-1]["type"] == "heartbeat.pong"
    assert len(stage.ears["bob"].heard) == before


async def test_the_load_of_the_timers_does_not_grow(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    for _ in range(20):
        stage.ears.pop("bob").hang_up()
        await stage.say(BOB, joins(BOB, Role.DRIVER))
        await pass_by(stage, EVERY, ALICE, BOB, CLAUDE)

    scheduler, cell = stage.engine.pulse.scheduler, stage.engine.cells["room/r"]
    assert len(scheduler.heap) <= 3
    assert len(scheduler.when) == 1
    assert {*cell.seen} <= {"alice", "bob", "claude", "system", "system:timer", "system:presence"}
    assert cell.quiet == {}


@proves("UNI-22", "UNI-12")
@pytest.mark.parametrize("body", [prompts(), SessionLeave()])
async def test_who_speaks_after_silence_is_heard_in_the_order_of_the_log(
    stage: Stage, body: Any
) -> None:
    await stage.open(BOB, CLAUDE)
    await pass_by(stage, IDLE, ALICE, CLAUDE)

    await stage.say(BOB, body, "at last")

    assert news_of(stage, "bob") == ["idle", "active"]
    for ear in stage.ears.values():
        assert ear.seqs == sorted(ear.seqs)
    assert stage.ears["alice"].ids == await stage.ids()


async def test_time_goes_on_while_somebody_is_put_on_record_as_back(make: Make) -> None:
    class Ticking(Watch):
        def now(self) -> int:
            self.at += 1
            return self.at

    stage = make(clock=Ticking())
    await stage.open(BOB, CLAUDE)
    await pass_by(stage, IDLE + EVERY, ALICE, CLAUDE)
    assert news_of(stage, "bob") == ["idle"]

    await stage.say(BOB, prompts())

    assert news_of(stage, "bob") == ["idle", "active"]
    await stage.records()  # which looks at their times
