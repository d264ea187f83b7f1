"""Whoever waits for an answer gets one, whatever another does with its own."""

import asyncio

import pytest

from accord.core.kernel.log import Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import iso
from accord.engine.cell import Asked
from accord.engine.ports import StoreError
from tests.engine.conftest import Make
from tests.helpers.engine import Stage, Tricky, turns
from tests.helpers.room import ALICE, CLAUDE, T0, prompts


def asks_and_breaks(stage: Stage, id: str = "first") -> None:
    """Somebody asks who cannot be told anything."""

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    message = Message(id, iso(T0), "r", "alice", prompts())
    stage.engine.submit("room/r", Asked(message, ALICE, breaks))


def broke_once(stage: Stage) -> bool:
    """Whether that, and nothing else, was noticed as a surprise."""
    found = [type(error) for error in stage.engine.failures]
    stage.engine.failures.clear()
    return found == [ZeroDivisionError]


async def test_of_a_stream_that_cannot_be_read_everybody_who_waits_is_told(make: Make) -> None:
    log = Tricky()
    await make(log).open(CLAUDE)
    stage = make(log)
    log.failing.add("read")

    asks_and_breaks(stage)
    others = [stage.ask(ALICE, prompts()) for _ in range(3)]
    await stage.settle()

    for reply in others:
        assert reply.refused
        assert reply.refused.why is Why.UNAVAILABLE
    assert broke_once(stage)
    log.failing.clear()
    assert await stage.say(ALICE, prompts())


async def test_who_is_cut_off_for_it_hears_the_answer_first(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    ear, told = stage.ears["alice"], list[str | None]()
    await make(log).say(ALICE, prompts(), "of another process")
    log.failing.add("read")
    message = Message("lost", iso(T0), "r", "alice", prompts())

    stage.engine.submit("room/r", Asked(message, ALICE, lambda _: told.append(ear.closed)))
    await stage.settle()

    assert told == [None]
    assert ear.closed
    assert ear.invited
    log.failing.clear()


async def test_when_nothing_is_waited_for_any_more_everybody_is_told(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    log.hold("append")

    asks_and_breaks(stage)
    others = [stage.ask(ALICE, prompts()) for _ in range(3)]
    await turns()
    stage.engine.abandon(Refused(Why.UNAVAILABLE, "Not in time"))

    for reply in others:
        assert reply.refused
        assert reply.refused.detail == "Not in time"
    assert broke_once(stage)
    log.release()


async def test_nor_does_a_reader_wait_for_ever(make: Make) -> None:
    log = Tricky()
    await make(log).open(CLAUDE)
    stage = make(log)
    log.hold("read")

    reading = asyncio.create_task(stage.engine.state("room/r"))
    await turns()
    stage.engine.abandon(Refused(Why.UNAVAILABLE, "Not in time"))

    with pytest.raises(StoreError, match="Not in time"):
        await asyncio.wait_for(reading, 60)
    log.release()


async def test_an_answer_that_breaks_does_not_keep_those_behind_it_waiting(make: Make) -> None:
    log = Tricky()
    await make(log).open(CLAUDE)
    stage = make(log)
    log.hold("read")

    refused = Message("first", iso(T0), "r", "mallory", prompts())  # she is alice

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    stage.engine.submit("room/r", Asked(refused, ALICE, breaks))
    behind = stage.ask(ALICE, prompts(), "second")
    await turns()
    log.release()
    await stage.settle()

    assert behind.sealed
    assert await stage.say(ALICE, prompts(), "third")
    assert broke_once(stage)
