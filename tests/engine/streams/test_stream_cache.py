"""Unknown streams, and more streams than the cache holds."""

import asyncio

import pytest

from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Reason, Refused
from accord.engine.streams import stream_cache
from tests.engine.conftest import Make
from tests.helpers.engine.harness import FaultyLog, RecordingPeer, yield_to_loop
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    prompt_submit,
    session_create,
    session_join,
)


async def test_unknown_room_is_not_cached(make: Make) -> None:
    stage = make()

    for n in range(20):
        with pytest.raises(Refused) as no:
            await stage.send(BOB, session_join(BOB), room=f"nowhere-{n}")
        assert no.value.reason is Reason.NO_ROOM
        assert not (await stage.state(f"nowhere-{n}")).exists

    assert stage.engine.streams == {}
    assert stage.engine.scheduler.deadlines == {}
    assert stage.engine.delivery.subscribers == {}


async def test_concurrent_requests_while_a_stream_is_read_are_all_answered(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    log.hold("read")
    looking = asyncio.create_task(stage.engine.state("room/r"))
    await yield_to_loop()
    made = stage.submit(ALICE, session_create())
    log.release()
    await looking
    await stage.wait_until_idle()

    assert made.records
    assert "room/r" in stage.engine.streams


async def test_streams_without_connections_are_evicted(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_cache, "MAX_STREAMS", 8)
    stage = make()
    for n in range(4):
        await stage.open_room(room=f"heard-{n}")
    quiet = RecordingPeer(stage.engine, CAROL, "away")
    for n in range(20):
        await stage.send(CAROL, session_create(), room=f"quiet-{n}", ear=quiet)
        stage.engine.delivery.unsubscribe(f"room/quiet-{n}", quiet)

    assert len(stage.engine.streams) <= 8
    assert {f"room/heard-{n}" for n in range(4)} <= stage.engine.streams.keys()
    assert (await stage.state("quiet-0")).exists


async def test_peeked_stream_is_never_evicted(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_cache, "MAX_STREAMS", 4)
    stage = make()
    await stage.open_room()
    stage.engine.delivery.unsubscribe("room/r", stage.peers["alice"])
    stage.engine.peek("room/r")
    for n in range(10):
        await stage.open_room(room=f"other-{n}")
        stage.engine.delivery.unsubscribe(f"room/other-{n}", stage.peers["alice"])

    seen = stage.engine.peek("room/r")

    assert seen is not None
    assert seen.exists


async def test_peek_does_not_wait_for_the_store(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    log.hold("find")
    stage.submit(ALICE, prompt_submit(), ref="unknown")
    await yield_to_loop()

    seen = stage.engine.peek("room/r")

    assert seen is not None
    log.release()


async def test_full_queue_refuses_messages(make: Make) -> None:
    log = FaultyLog()
    await make(log).open_room(CLAUDE)
    stage = make(log)
    stage.engine.backpressure.limits = Limits(queue=3)

    log.hold("read")
    replies = [stage.submit(ALICE, prompt_submit()) for _ in range(5)]

    assert [bool(reply) for reply in replies] == [False, False, False, True, True]
    assert replies[4].refusal
    assert replies[4].refusal.reason is Reason.TOO_MANY
    assert replies[4].refusal.details == {"limit": "queue", "most": 3, "retry_after_ms": 1000}
    log.release()
    await stage.wait_until_idle()
    assert all(reply.records for reply in replies[:3])


async def test_cache_size_in_bytes_is_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_cache, "MAX_CACHE_BYTES", 20_000)
    monkeypatch.setattr(stream_cache, "SIZE_CHECK_EVERY_OPENS", 1)
    stage = make()
    for n in range(30):
        await stage.open_room(CLAUDE, room=f"r{n}")
        for ear in list(stage.peers.values()):
            ear.disconnect()
        stage.peers.clear()
        await stage.wait_until_idle()

    heaviest = max(cell.window_bytes for cell in stage.engine.streams.values())
    assert sum(cell.window_bytes for cell in stage.engine.streams.values()) < 20_000 + 2 * heaviest
    assert (await stage.state("r0")).exists
