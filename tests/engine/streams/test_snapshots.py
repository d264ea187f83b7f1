"""Snapshots are a cache that may be missing, old, foreign or damaged without any effect."""

import msgspec
import pytest

from accord.core.kernel.role_permissions import Role
from accord.core.room.membership.leaving import SessionLeave
from accord.engine.ports import Snapshot
from accord.engine.streams import snapshots
from accord.engine.streams.snapshots import CHECKSUM_BYTES, checksum
from accord.stores.memory import MemoryLog
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness, FaultyLog
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    DAVE,
    STREAM,
    participant_announce,
    prompt_submit,
    session_join,
    tool_approve,
    tool_propose,
)

EVERY = 10


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot every few records."""
    monkeypatch.setattr(snapshots, "SNAPSHOT_INTERVAL_RECORDS", EVERY)


async def lively(stage: EngineHarness) -> None:
    """A room in which something of everything is open."""
    await stage.open_room(BOB, CLAUDE)
    for n in range(EVERY):
        await stage.send(ALICE, prompt_submit(), f"p{n}")
    await stage.send(CLAUDE, tool_propose(), "t1")
    await stage.send(CLAUDE, tool_propose(), "t2")
    await stage.send(ALICE, tool_approve(ALICE, "t1"))


async def kept(log: MemoryLog) -> Snapshot:
    """The snapshot there is."""
    snapshot = await log.snapshot(STREAM)
    assert snapshot is not None
    return snapshot


async def test_snapshot_is_taken_at_the_interval_and_gives_the_same_state(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)

    assert (await kept(log)).version >= EVERY
    second = make(log)
    assert await second.state() == await first.state()
    await second.send(ALICE, tool_approve(ALICE, "t2"))
    await second.records()


async def test_without_snapshots_the_state_is_the_same(make: Make) -> None:
    log = MemoryLog()
    await lively(make(log))
    with_snapshot = await make(log).state()

    log._snapshots.clear()

    assert await make(log).state() == with_snapshot


async def test_snapshot_of_another_shape_is_ignored(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)
    snapshot = await kept(log)
    blob = msgspec.msgpack.encode({"another": "time"})
    log._snapshots[STREAM] = Snapshot(snapshot.version, "foreign", checksum(blob) + blob)

    assert await make(log).state() == await first.state()


async def test_undecodable_snapshot_is_ignored(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)
    snapshot = await kept(log)
    blob = msgspec.msgpack.encode({"another": "time"})
    log._snapshots[STREAM] = Snapshot(snapshot.version, snapshot.shape, checksum(blob) + blob)

    assert await make(log).state() == await first.state()


async def test_damaged_snapshot_is_ignored(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)
    snapshot, state = await kept(log), await first.state()

    for place in (
        0,
        CHECKSUM_BYTES - 1,
        CHECKSUM_BYTES,
        len(snapshot.blob) // 2,
        len(snapshot.blob) - 1,
    ):
        blob = bytearray(snapshot.blob)
        blob[place] ^= 1
        log._snapshots[STREAM] = Snapshot(snapshot.version, snapshot.shape, bytes(blob))
        assert await make(log).state() == state
    for cut in (b"", b"short"):
        log._snapshots[STREAM] = Snapshot(snapshot.version, snapshot.shape, cut)
        assert await make(log).state() == state


async def test_snapshot_with_invalid_text_is_ignored(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)
    snapshot = await kept(log)
    blob = snapshot.blob[CHECKSUM_BYTES:].replace(b"alice", b"\xff\xfe\xfd\xfc\xfb")
    log._snapshots[STREAM] = Snapshot(snapshot.version, snapshot.shape, checksum(blob) + blob)

    assert await make(log).state() == await first.state()


async def test_snapshot_ahead_of_the_log_is_ignored(make: Make) -> None:
    log, shorter = MemoryLog(), MemoryLog()
    await lively(make(log))
    rows = await log.read(STREAM, 0, 6)
    await shorter.append(STREAM, 0, rows)
    await shorter.save_snapshot(STREAM, await kept(log))

    stage = make(shorter)
    await stage.send(ALICE, prompt_submit(), "new")

    assert (await stage.ids())[-1] == "new"
    assert len(await stage.records()) == 7


async def test_failing_snapshot_store_does_no_harm(make: Make) -> None:
    log = FaultyLog()
    log.failing.add("keep")
    stage = make(log)
    await lively(stage)
    tried = log.calls["keep"]
    log.failing.clear()

    await stage.send(ALICE, prompt_submit())

    assert tried > 1, "the next commit tries again"
    assert await log.snapshot(STREAM)


async def test_integer_over_64_bits_skips_the_snapshot(make: Make) -> None:
    log = MemoryLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    who = msgspec.structs.replace(participant_announce(ALICE), metadata={"big": 10**30})
    await stage.send(ALICE, who)
    for _ in range(2 * EVERY):
        await stage.send(ALICE, prompt_submit())

    assert await log.snapshot(STREAM) is None
    assert await make(log).state() == await stage.state()


@pytest.mark.parametrize("age", [200, 400])
async def test_opening_reads_the_same_number_of_rows_at_any_age(make: Make, age: int) -> None:
    log = MemoryLog()
    first = make(log, window=20, check=False)
    await first.open_room(CLAUDE)
    for _ in range(age):
        await first.send(ALICE, prompt_submit())

    counted = FaultyLog(log)
    second = make(counted, window=20, check=False)
    bob = second.connect(BOB)
    await second.send(BOB, session_join(BOB, Role.DRIVER))

    assert counted.rows_read <= 20 + EVERY + 1
    assert len(bob.ids) == 20, "the newest are at hand for whoever joins"
    assert await second.state() == await make(log, window=20).state()


async def test_window_behind_a_snapshot_is_indexed_by_id(make: Make) -> None:
    log = MemoryLog()
    await lively(make(log))
    second = make(log)
    await second.state()

    cell = second.engine.streams[STREAM]

    assert list(cell.index) == [sealed.record.id for sealed in cell.window]
    assert cell.window_bytes == sum(len(sealed.body) for sealed in cell.window)


async def test_retry_behind_a_snapshot_gets_the_first_outcome(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)
    await first.send(ALICE, prompt_submit(), "p")
    await first.send(BOB, SessionLeave(), "gone")
    second = make(log)

    again = await second.send(BOB, SessionLeave(), "gone")

    assert again[0].record.id == "gone"


async def test_join_behind_a_snapshot_replays_everything_once(make: Make) -> None:
    log = MemoryLog()
    await lively(make(log))
    second = make(log)

    await second.send(DAVE, session_join(DAVE, Role.DRIVER))

    heard = [each["id"] for each in second.peers["dave"].received]
    assert len(heard) == len(set(heard))
