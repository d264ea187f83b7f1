"""Contract of every store: cursors, snapshots and signed heads."""

import asyncio

from msgspec.structs import replace

from accord.core.kernel.integrity.hash_chain import SignatureCoverage, SignedHead
from accord.engine.ports import EventLog, Snapshot
from tests.contract.rows import HERE, THERE, head, rows


async def test_unknown_cursor_is_zero(log: EventLog) -> None:
    assert 0 == await log.cursor("notes")


async def test_cursor_never_goes_back(log: EventLog) -> None:
    await log.advance("notes", 5)
    await log.advance("notes", 3)
    await log.advance("mirror", 1)

    assert (5, 1) == (await log.cursor("notes"), await log.cursor("mirror"))


async def test_newer_snapshot_replaces_an_older_one(log: EventLog) -> None:
    await log.save_snapshot(HERE, Snapshot(3, "shape-1", b"three"))
    await log.save_snapshot(HERE, Snapshot(7, "shape-1", b"\0seven"))

    assert Snapshot(7, "shape-1", b"\0seven") == await log.snapshot(HERE)
    assert await log.snapshot(THERE) is None


async def test_older_snapshot_does_not_replace_a_newer_one(log: EventLog) -> None:
    await log.save_snapshot(HERE, Snapshot(7, "shape-1", b"seven"))
    await log.save_snapshot(HERE, Snapshot(3, "shape-1", b"three"))

    assert Snapshot(7, "shape-1", b"seven") == await log.snapshot(HERE)


async def test_snapshot_of_another_shape_replaces_one_of_the_same_version(log: EventLog) -> None:
    await log.save_snapshot(HERE, Snapshot(7, "shape-1", b"old"))
    await log.save_snapshot(HERE, Snapshot(7, "shape-2", b"new"))

    assert Snapshot(7, "shape-2", b"new") == await log.snapshot(HERE)


async def test_heads_are_stored_once_and_in_order(log: EventLog) -> None:
    for each in (head(HERE, 1), head(HERE, 5, at=9), head(THERE, 2), head(HERE, 5, at=9)):
        await log.add_head(each)

    assert [head(HERE, 1), head(HERE, 5, at=9)] == await log.heads(HERE)
    assert await log.heads("room/nowhere") == []


async def test_signature_coverage_is_known_per_stream_and_in_total(log: EventLog) -> None:
    assert SignatureCoverage() == await log.signature_coverage()
    assert 0 == await log.signed_version(HERE)
    counts = replace(head(THERE, 2), total=9)
    fewer = replace(head(HERE, 4), total=7)

    for each in (head(HERE, 5), counts, fewer):
        await log.add_head(each)

    assert (5, 2) == (await log.signed_version(HERE), await log.signed_version(THERE))
    assert SignatureCoverage(7, counts) == await log.signature_coverage()
    assert [head(HERE, 5), fewer] == await log.heads(HERE)


async def test_concurrent_operations_do_not_interfere(log: EventLog) -> None:
    mark = SignedHead(HERE, 1, b"h", 1, "k", b"s")

    await asyncio.gather(
        log.append(HERE, 0, rows(HERE, 1)),
        log.advance("notes", 1),
        log.save_snapshot(HERE, Snapshot(1, "s", b"b")),
        log.add_head(mark),
        log.append(THERE, 0, rows(THERE, 1)),
    )

    assert {HERE: 1, THERE: 1} == await log.streams()
    assert 1 == await log.cursor("notes")
    assert [mark] == await log.heads(HERE)
    assert Snapshot(1, "s", b"b") == await log.snapshot(HERE)
