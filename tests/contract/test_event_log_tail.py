"""Contract of every store: following the log."""

import asyncio
from collections import defaultdict

import pytest

from accord.engine.ports import EventLog, Row
from tests.contract.rows import HERE, THERE, first, following, row, rows


async def test_tail_yields_existing_and_new_rows(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 2))
    seeing = asyncio.ensure_future(first(log, 4))
    await asyncio.sleep(0)

    await log.append(THERE, 0, rows(THERE, 1))
    await log.append(HERE, 2, rows(HERE, 1, after=2))

    seen = [(each.stream, each.version) for _, each in await seeing]
    assert [(HERE, 1), (HERE, 2), (THERE, 1), (HERE, 3)] == seen


async def test_tail_starts_behind_its_position(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 5))

    seen = await first(log, 2, after=3)

    assert [(4, row(HERE, 4)), (5, row(HERE, 5))] == seen


async def test_tail_from_the_end_waits_for_the_next_row(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 5))
    seeing = asyncio.ensure_future(first(log, 1, after=await log.position()))

    await log.append(THERE, 0, rows(THERE, 1))

    assert [(6, row(THERE, 1))] == await seeing


async def test_tail_misses_nothing_under_concurrent_writes(log: EventLog) -> None:
    streams = [f"room/{name}" for name in range(8)]
    tails = [asyncio.ensure_future(first(log, 8 * 60)) for _ in range(3)]

    await asyncio.gather(*(write(log, stream, 60) for stream in streams))

    for seen in await asyncio.gather(*tails):
        assert list(range(1, 481)) == [at for at, _ in seen]
        by_stream = defaultdict[str, list[Row]](list)
        for _, each in seen:
            by_stream[each.stream].append(each)
        assert {stream: rows(stream, 60) for stream in streams} == by_stream


async def write(log: EventLog, stream: str, count: int) -> None:
    for at in range(count):
        await log.append(stream, at, [row(stream, at + 1)])


async def test_slow_follower_gets_every_row(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 1))
    seen = list[int]()

    async with following(log, 0) as batches:
        async for batch in batches:
            seen += [at for at, _ in batch]
            if len(seen) > 2000:
                break
            await log.append(HERE, len(seen), rows(HERE, 400, after=len(seen)))

    assert list(range(1, 2002)) == seen


async def test_waiting_tail_can_be_cancelled(log: EventLog) -> None:
    seeing = asyncio.ensure_future(first(log, 1))
    await asyncio.sleep(0)

    seeing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await seeing
    await log.append(HERE, 0, rows(HERE, 1))
    assert [(1, row(HERE, 1))] == await first(log, 1)
