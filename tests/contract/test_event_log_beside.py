"""What every store keeps beside the log: cursors, snapshots, heads."""

import asyncio

from msgspec.structs import replace

from accord.core.kernel.chain import Covered, Head
from accord.engine.ports import EventLog, Snapshot
from tests.contract.rows import HERE, THERE, head, rows


async def test_a_worker_that_never_moved_is_at_the_start(log: EventLog) -> None:
    assert 0 == await log.cursor("notes")


async def test_a_cursor_never_goes_back(log: EventLog) -> None:
    await log.advance("notes", 5)
    await log.advance("notes", 3)
    await log.advance("mirror", 1)

    assert (5, 1) == (await log.cursor("notes"), await log.cursor("mirror"))


async def test_a_newer_snapshot_takes_the_place_of_an_older_one(log: EventLog) -> None:
    await log.keep(HERE, Snapshot(3, "shape-1", b"three"))
    await log.keep(HERE, Snapshot(7, "shape-1", b"\0seven"))

    assert Snapshot(7, "shape-1", b"\0seven") == await log.snapshot(HERE)
    assert await log.snapshot(THERE) is None


async def test_an_older_snapshot_does_not_take_the_place_of_a_newer_one(log: EventLog) -> None:
    await log.keep(HERE, Snapshot(7, "shape-1", b"seven"))
    await log.keep(HERE, Snapshot(3, "shape-1", b"three"))

    assert Snapshot(7, "shape-1", b"seven") == await log.snapshot(HERE)


async def test_a_snapshot_of_another_shape_replaces_its_equal(log: EventLog) -> None:
    await log.keep(HERE, Snapshot(7, "shape-1", b"old"))
    await log.keep(HERE, Snapshot(7, "shape-2", b"new"))

    assert Snapshot(7, "shape-2", b"new") == await log.snapshot(HERE)


async def test_heads_are_kept_once_and_in_order(log: EventLog) -> None:
    for each in (head(HERE, 1), head(HERE, 5, at=9), head(THERE, 2), head(HERE, 5, at=9)):
        await log.sign(each)

    assert [head(HERE, 1), head(HERE, 5, at=9)] == await log.heads(HERE)
    assert await log.heads("room/nowhere") == []


async def test_how_far_heads_reach_is_known_of_each_stream_and_of_all(log: EventLog) -> None:
    assert Covered() == await log.covered()
    assert 0 == await log.signed(HERE)
    counts = replace(head(THERE, 2), total=9)
    fewer = replace(head(HERE, 4), total=7)

    for each in (head(HERE, 5), counts, fewer):
        await log.sign(each)

    assert (5, 2) == (await log.signed(HERE), await log.signed(THERE))
    assert Covered(7, counts) == await log.covered()
    assert [head(HERE, 5), fewer] == await log.heads(HERE)


async def test_everything_at_once_does_not_get_in_its_own_way(log: EventLog) -> None:
    mark = Head(HERE, 1, b"h", 1, "k", b"s")

    await asyncio.gather(
        log.append(HERE, 0, rows(HERE, 1)),
        log.advance("notes", 1),
        log.keep(HERE, Snapshot(1, "s", b"b")),
        log.sign(mark),
        log.append(THERE, 0, rows(THERE, 1)),
    )

    assert {HERE: 1, THERE: 1} == await log.streams()
    assert 1 == await log.cursor("notes")
    assert [mark] == await log.heads(HERE)
    assert Snapshot(1, "s", b"b") == await log.snapshot(HERE)
