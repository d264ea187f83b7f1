"""Snapshots: a cache that may be missing, old, foreign or damaged, and nobody could tell."""

import msgspec
import pytest

from accord.core.kernel.authority import Role
from accord.core.room.members import SessionLeave
from accord.engine import snapshots
from accord.engine.ports import Snapshot
from accord.engine.snapshots import CHECKSUM, checksum
from accord.stores.memory import MemoryLog
from tests.engine.conftest import Make
from tests.helpers.engine import Stage, Tricky
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    DAVE,
    STREAM,
    announces,
    approves_tool,
    joins,
    prompts,
    proposes,
)

EVERY = 10


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot every few records."""
    monkeypatch.setattr(snapshots, "EVERY", EVERY)


async def lively(stage: Stage) -> None:
    """A room in which something of everything is open."""
    await stage.open(BOB, CLAUDE)
    for n in range(EVERY):
        await stage.say(ALICE, prompts(), f"p{n}")
    await stage.say(CLAUDE, proposes(), "t1")
    await stage.say(CLAUDE, proposes(), "t2")
    await stage.say(ALICE, approves_tool(ALICE, "t1"))


async def kept(log: MemoryLog) -> Snapshot:
    """The snapshot there is."""
    snapshot = await log.snapshot(STREAM)
    assert snapshot is not None
    return snapshot


async def test_a_snapshot_is_taken_every_so_often_and_gives_the_same_state(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)

    assert (await kept(log)).version >= EVERY
    second = make(log)
    assert await second.state() == await first.state()
    await second.say(ALICE, approves_tool(ALICE, "t2"))
    await second.records()


async def test_without_snapshots_the_state_is_the_same(make: Make) -> None:
    log = MemoryLog()
    await lively(make(log))
    with_snapshot = await make(log).state()

    log._snapshots.clear()

    assert await make(log).state() == with_snapshot


async def test_a_snapshot_of_another_shape_is_not_read(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)
    snapshot = await kept(log)
    blob = msgspec.msgpack.encode({"another": "time"})
    log._snapshots[STREAM] = Snapshot(snapshot.version, "foreign", checksum(blob) + blob)

    assert await make(log).state() == await first.state()


async def test_a_snapshot_of_our_shape_that_is_something_else_is_not_read(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)
    snapshot = await kept(log)
    blob = msgspec.msgpack.encode({"another": "time"})
    log._snapshots[STREAM] = Snapshot(snapshot.version, snapshot.shape, checksum(blob) + blob)

    assert await make(log).state() == await first.state()


async def test_a_damaged_snapshot_is_not_read(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)
    snapshot, state = await kept(log), await first.state()

    for place in (0, CHECKSUM - 1, CHECKSUM, len(snapshot.blob) // 2, len(snapshot.blob) - 1):
        blob = bytearray(snapshot.blob)
        blob[place] ^= 1
        log._snapshots[STREAM] = Snapshot(snapshot.version, snapshot.shape, bytes(blob))
        assert await make(log).state() == state
    for cut in (b"", b"short"):
        log._snapshots[STREAM] = Snapshot(snapshot.version, snapshot.shape, cut)
        assert await make(log).state() == state


async def test_a_snapshot_in_which_text_is_no_text_is_not_read(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)
    snapshot = await kept(log)
    blob = snapshot.blob[CHECKSUM:].replace(b"alice", b"\xff\xfe\xfd\xfc\xfb")
    log._snapshots[STREAM] = Snapshot(snapshot.version, snapshot.shape, checksum(blob) + blob)

    assert await make(log).state() == await first.state()


async def test_a_snapshot_that_is_ahead_of_the_log_is_not_read(make: Make) -> None:
    log, shorter = MemoryLog(), MemoryLog()
    await lively(make(log))
    rows = await log.read(STREAM, 0, 6)
    await shorter.append(STREAM, 0, rows)
    await shorter.keep(STREAM, await kept(log))

    stage = make(shorter)
    await stage.say(ALICE, prompts(), "new")

    assert (await stage.ids())[-1] == "new"
    assert len(await stage.records()) == 7


async def test_a_store_that_keeps_no_snapshots_is_no_trouble(make: Make) -> None:
    log = Tricky()
    log.failing.add("keep")
    stage = make(log)
    await lively(stage)
    tried = log.calls["keep"]
    log.failing.clear()

    await stage.say(ALICE, prompts())

    assert tried > 1, "the next commit tries again"
    assert await log.snapshot(STREAM)


async def test_a_number_no_snapshot_can_hold_is_no_trouble(make: Make) -> None:
    log = MemoryLog()
    stage = make(log)
    await stage.open(CLAUDE)
    who = msgspec.structs.replace(announces(ALICE), metadata={"big": 10**30})
    await stage.say(ALICE, who)
    for _ in range(2 * EVERY):
        await stage.say(ALICE, prompts())

    assert await log.snapshot(STREAM) is None
    assert await make(log).state() == await stage.state()


@pytest.mark.parametrize("age", [200, 400])
async def test_opening_a_room_takes_as_long_whatever_its_age(make: Make, age: int) -> None:
    log = MemoryLog()
    first = make(log, window=20, check=False)
    await first.open(CLAUDE)
    for _ in range(age):
        await first.say(ALICE, prompts())

    counted = Tricky(log)
    second = make(counted, window=20, check=False)
    bob = second.connect(BOB)
    await second.say(BOB, joins(BOB, Role.DRIVER))

    assert counted.rows_read <= 20 + EVERY + 1
    assert len(bob.ids) == 20, "the newest are at hand for whoever joins"
    assert await second.state() == await make(log, window=20).state()


async def test_what_is_at_hand_behind_a_snapshot_is_known_by_its_id(make: Make) -> None:
    log = MemoryLog()
    await lively(make(log))
    second = make(log)
    await second.state()

    cell = second.engine.cells[STREAM]

    assert list(cell.index) == [sealed.record.id for sealed in cell.window]
    assert cell.weight == sum(len(sealed.body) for sealed in cell.window)


async def test_what_is_tried_again_behind_a_snapshot_gets_the_first_outcome(make: Make) -> None:
    log = MemoryLog()
    first = make(log)
    await lively(first)
    await first.say(ALICE, prompts(), "p")
    await first.say(BOB, SessionLeave(), "gone")
    second = make(log)

    (again,) = await second.say(BOB, SessionLeave(), "gone")

    assert again.record.id == "gone"


async def test_who_comes_in_behind_a_snapshot_is_told_everything_once(make: Make) -> None:
    log = MemoryLog()
    await lively(make(log))
    second = make(log)

    await second.say(DAVE, joins(DAVE, Role.DRIVER))

    heard = [each["id"] for each in second.ears["dave"].heard]
    assert len(heard) == len(set(heard))
