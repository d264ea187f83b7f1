"""Interrupts: the server itself sees to it that a stop is obeyed."""

from typing import Any

import pytest

from accord.core.kernel.refusal import Refused, Why
from accord.core.room.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.state import Category, Urgency
from tests.engine.conftest import Make
from tests.helpers.engine import Stage
from tests.helpers.forks import START, forks
from tests.helpers.room import ALICE, BOB, CLAUDE, CODEX, approves_tool, executes, prompts, proposes
from tests.helpers.room import refused as refusing
from tests.spec import proves

READ = Category.FILE_READ


def stops(urgency: Urgency = Urgency.STOP, target: str | None = "claude") -> InterruptRaise:
    return InterruptRaise(urgency=urgency, message="Enough", target=target)


def errors(stage: Stage, seat: str) -> list[dict[str, Any]]:
    """The errors somebody was told."""
    return [each["payload"] for each in stage.ears[seat].heard if each["type"] == "error"]


@proves("OPEN-45", "PVP-15.1-4")
@pytest.mark.parametrize("urgency", [Urgency.STOP, Urgency.EMERGENCY])
async def test_a_stopped_agent_can_do_nothing_though_it_never_answers(
    stage: Stage, urgency: Urgency
) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.say(CLAUDE, proposes(), "t")
    await stage.say(ALICE, approves_tool(ALICE, "t"))
    await stage.say(BOB, stops(urgency), "i")

    for body in (proposes(category=READ), executes("t")):
        with pytest.raises(Refused) as no:
            await stage.say(CLAUDE, body)
        assert no.value.why in {Why.WRONG_STATE, Why.GATE_FAILED}
    await stage.wait(3600)
    with refusing(Why.WRONG_STATE):
        await stage.say(CLAUDE, proposes(category=READ))
    await stage.say(ALICE, prompts())
    await stage.say(CLAUDE, proposes(category=READ), "u")
    assert (await stage.state()).tools["u"].grant


@proves("OPEN-45", "UNI-23")
async def test_silence_for_thirty_seconds_is_told_to_the_room_once(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.say(BOB, stops(), "i")
    await stage.wait(29)
    assert errors(stage, "alice") == []
    await stage.wait(1)
    await stage.wait(60)

    for seat in ("alice", "bob", "claude"):
        (error,) = errors(stage, seat)
        assert (error["code"], error["related_to"]) == ("TIMEOUT", "i")
    with refusing(Why.WRONG_STATE):
        await stage.say(CLAUDE, proposes())


@proves("OPEN-45")
async def test_an_answer_in_time_is_enough_and_sets_nobody_free(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.say(BOB, stops(), "i")
    await stage.say(CLAUDE, InterruptAcknowledge("i", "claude", "stopped"))
    await stage.wait(60)

    assert errors(stage, "alice") == []
    with refusing(Why.WRONG_STATE):
        await stage.say(CLAUDE, proposes())


@proves("OPEN-45", "OPEN-31")
async def test_a_stop_outlives_a_restart(make: Make) -> None:
    one = make()
    await one.open(BOB, CLAUDE)
    await one.say(BOB, stops(), "i")
    two = make(one.log, clock=one.clock)
    await two.engine.start()

    with refusing(Why.WRONG_STATE):
        await two.say(CLAUDE, proposes())


@proves("OPEN-45", "OPEN-47", "UNI-12")
async def test_an_emergency_ends_open_gates_in_forks_and_tells_only_their_readers(
    stage: Stage,
) -> None:
    await stage.open(BOB, CLAUDE, CODEX)
    await stage.say(ALICE, prompts(), START)
    await stage.say(ALICE, forks("Aside", CLAUDE))
    await stage.say(CLAUDE, proposes(), "t", fork="aside")
    await stage.say(CLAUDE, proposes(), "u")
    heard = len(stage.ears["alice"].heard)

    await stage.say(BOB, stops(Urgency.EMERGENCY, None), "i")
    again = await stage.say(BOB, stops(Urgency.EMERGENCY, None), "i")

    assert (await stage.state()).gates == {}
    assert "aside" in {each.get("fork") for each in stage.ears["alice"].heard[heard:]}
    inside = [e for e in stage.ears["bob"].heard if e.get("fork") and e["type"] != "fork.create"]
    assert inside == []
    assert {sealed.record.fork for sealed in again} == {None}
    assert {*(await stage.state()).halted} == {"claude", "codex"}
