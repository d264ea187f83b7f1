"""Interrupts are enforced by the server."""

from typing import Any

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.conversation.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.room_settings import Category
from accord.core.room.state import Urgency
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness
from tests.helpers.room.logged_room import START_ID, fork_create
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    prompt_submit,
    tool_approve,
    tool_execute,
    tool_propose,
)
from tests.helpers.room.scenario import expect_refusal as refusing
from tests.spec import proves

READ = Category.FILE_READ


def stops(urgency: Urgency = Urgency.STOP, target: str | None = "claude") -> InterruptRaise:
    return InterruptRaise(urgency=urgency, message="Enough", target=target)


def errors(stage: EngineHarness, seat: str) -> list[dict[str, Any]]:
    """The errors somebody was told."""
    return [each["payload"] for each in stage.peers[seat].received if each["type"] == "error"]


@proves("OPEN-45", "PVP-15.1-4")
@pytest.mark.parametrize("urgency", [Urgency.STOP, Urgency.EMERGENCY])
async def test_interrupted_agent_is_blocked_even_without_an_acknowledgement(
    stage: EngineHarness, urgency: Urgency
) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.send(CLAUDE, tool_propose(), "t")
    await stage.send(ALICE, tool_approve(ALICE, "t"))
    await stage.send(BOB, stops(urgency), "i")

    for body in (tool_propose(category=READ), tool_execute("t")):
        with pytest.raises(Refused) as no:
            await stage.send(CLAUDE, body)
        assert no.value.reason in {Reason.WRONG_STATE, Reason.GATE_FAILED}
    await stage.advance_time(3600)
    with refusing(Reason.WRONG_STATE):
        await stage.send(CLAUDE, tool_propose(category=READ))
    await stage.send(ALICE, prompt_submit())
    await stage.send(CLAUDE, tool_propose(category=READ), "u")
    assert (await stage.state()).tools["u"].grant


@proves("OPEN-45", "UNI-23")
async def test_missing_acknowledgement_is_announced_once_after_thirty_seconds(
    stage: EngineHarness,
) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.send(BOB, stops(), "i")
    await stage.advance_time(29)
    assert errors(stage, "alice") == []
    await stage.advance_time(1)
    await stage.advance_time(60)

    for seat in ("alice", "bob", "claude"):
        (error,) = errors(stage, seat)
        assert (error["code"], error["related_to"]) == ("TIMEOUT", "i")
    with refusing(Reason.WRONG_STATE):
        await stage.send(CLAUDE, tool_propose())


@proves("OPEN-45")
async def test_acknowledgement_in_time_does_not_lift_the_interrupt(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.send(BOB, stops(), "i")
    await stage.send(CLAUDE, InterruptAcknowledge("i", "claude", "stopped"))
    await stage.advance_time(60)

    assert errors(stage, "alice") == []
    with refusing(Reason.WRONG_STATE):
        await stage.send(CLAUDE, tool_propose())


@proves("OPEN-45", "OPEN-31")
async def test_interrupt_survives_a_restart(make: Make) -> None:
    one = make()
    await one.open_room(BOB, CLAUDE)
    await one.send(BOB, stops(), "i")
    two = make(one.log, clock=one.clock)
    await two.engine.start()

    with refusing(Reason.WRONG_STATE):
        await two.send(CLAUDE, tool_propose())


@proves("OPEN-45", "OPEN-47", "UNI-12")
async def test_emergency_stop_closes_fork_gates_and_notifies_their_readers_only(
    stage: EngineHarness,
) -> None:
    await stage.open_room(BOB, CLAUDE, CODEX)
    await stage.send(ALICE, prompt_submit(), START_ID)
    await stage.send(ALICE, fork_create("Aside", CLAUDE))
    await stage.send(CLAUDE, tool_propose(), "t", fork="aside")
    await stage.send(CLAUDE, tool_propose(), "u")
    heard = len(stage.peers["alice"].received)

    await stage.send(BOB, stops(Urgency.EMERGENCY, None), "i")
    again = await stage.send(BOB, stops(Urgency.EMERGENCY, None), "i")

    assert (await stage.state()).gates == {}
    assert "aside" in {each.get("fork") for each in stage.peers["alice"].received[heard:]}
    inside = [
        e for e in stage.peers["bob"].received if e.get("fork") and e["type"] != "fork.create"
    ]
    assert inside == []
    assert {sealed.record.fork for sealed in again} == {None}
    assert {*(await stage.state()).halted} == {"claude", "codex"}
