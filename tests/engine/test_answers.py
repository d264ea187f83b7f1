"""Every sender is answered, even if the callback of another one fails."""

import asyncio

import pytest

from accord.core.kernel.messages import Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import to_iso
from accord.engine.ports import StoreError
from accord.engine.streams.stream import Submission
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness, FaultyLog, yield_to_loop
from tests.helpers.room.scenario import ALICE, CLAUDE, T0, prompt_submit


def asks_and_breaks(stage: EngineHarness, id: str = "first") -> None:
    """Somebody asks who cannot be told anything."""

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    message = Message(id, to_iso(T0), "r", "alice", prompt_submit())
    stage.engine.submit("room/r", Submission(message, ALICE, breaks))


def broke_once(stage: EngineHarness) -> bool:
    """Whether that, and nothing else, was noticed as a surprise."""
    found = [type(error) for error in stage.engine.failures]
    stage.engine.failures.clear()
    return found == [ZeroDivisionError]


async def test_unreadable_stream_refuses_all_queued_messages(make: Make) -> None:
    log = FaultyLog()
    await make(log).open_room(CLAUDE)
    stage = make(log)
    log.failing.add("read")

    asks_and_breaks(stage)
    others = [stage.submit(ALICE, prompt_submit()) for _ in range(3)]
    await stage.wait_until_idle()

    for reply in others:
        assert reply.refusal
        assert reply.refusal.reason is Reason.UNAVAILABLE
    assert broke_once(stage)
    log.failing.clear()
    assert await stage.send(ALICE, prompt_submit())


async def test_refusal_is_sent_before_the_disconnect(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    ear, told = stage.peers["alice"], list[str | None]()
    await make(log).send(ALICE, prompt_submit(), "of another process")
    log.failing.add("read")
    message = Message("lost", to_iso(T0), "r", "alice", prompt_submit())

    stage.engine.submit(
        "room/r", Submission(message, ALICE, lambda _: told.append(ear.close_reason))
    )
    await stage.wait_until_idle()

    assert told == [None]
    assert ear.close_reason
    assert ear.reconnect_invited
    log.failing.clear()


async def test_abandon_pending_refuses_all_messages(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    log.hold("append")

    asks_and_breaks(stage)
    others = [stage.submit(ALICE, prompt_submit()) for _ in range(3)]
    await yield_to_loop()
    stage.engine.abandon_pending(Refused(Reason.UNAVAILABLE, "Not in time"))

    for reply in others:
        assert reply.refusal
        assert reply.refusal.detail == "Not in time"
    assert broke_once(stage)
    log.release()


async def test_abandon_pending_wakes_readers_with_an_error(make: Make) -> None:
    log = FaultyLog()
    await make(log).open_room(CLAUDE)
    stage = make(log)
    log.hold("read")

    reading = asyncio.create_task(stage.engine.state("room/r"))
    await yield_to_loop()
    stage.engine.abandon_pending(Refused(Reason.UNAVAILABLE, "Not in time"))

    with pytest.raises(StoreError, match="Not in time"):
        await asyncio.wait_for(reading, 60)
    log.release()


async def test_failing_callback_does_not_block_later_answers(make: Make) -> None:
    log = FaultyLog()
    await make(log).open_room(CLAUDE)
    stage = make(log)
    log.hold("read")

    refused = Message("first", to_iso(T0), "r", "mallory", prompt_submit())  # she is alice

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    stage.engine.submit("room/r", Submission(refused, ALICE, breaks))
    behind = stage.submit(ALICE, prompt_submit(), "second")
    await yield_to_loop()
    log.release()
    await stage.wait_until_idle()

    assert behind.records
    assert await stage.send(ALICE, prompt_submit(), "third")
    assert broke_once(stage)
