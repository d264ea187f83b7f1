"""Contract of every store: closing and reopening."""

import asyncio

import pytest

from accord.engine.ports import Conflict, Duplicate, EventLog, StoreError
from accord.stores import open_log
from tests.contract.rows import HERE, THERE, first, head, row, rows

# The end


async def test_close_is_idempotent(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 1))

    await asyncio.gather(log.close(), log.close())
    await log.close()


async def test_closed_log_raises_store_error(log: EventLog) -> None:
    await log.close()

    with pytest.raises(StoreError, match="closed"):
        await log.append(HERE, 0, rows(HERE, 1))
    with pytest.raises(StoreError, match="closed"):
        await log.read(HERE)
    with pytest.raises(StoreError, match="closed"):
        await log.advance("notes", 1)
    with pytest.raises(StoreError, match="closed"):
        await first(log, 1)


async def test_tail_raises_when_the_log_is_closed(log: EventLog) -> None:
    seeing = asyncio.ensure_future(first(log, 1))
    await asyncio.sleep(0)

    await log.close()

    with pytest.raises(StoreError, match="closed"):
        await seeing


async def test_pending_appends_are_answered_before_close(url: str) -> None:
    log = await open_log(url)
    asked = [asyncio.ensure_future(log.append(HERE, at, [row(HERE, at + 1)])) for at in range(20)]
    await asyncio.sleep(0)

    await log.close()

    assert [None] * 20 == await asyncio.gather(*asked)


# What lasts


async def test_reopened_log_has_all_data(lasting: str) -> None:
    log = await open_log(lasting)
    await log.append(HERE, 0, rows(HERE, 100))
    await log.append(THERE, 0, rows(THERE, 1))
    await log.advance("notes", 4)
    await log.add_head(head(HERE, 100))
    await log.close()

    log = await open_log(lasting)

    assert rows(HERE, 100) == await log.read(HERE)
    assert {HERE: 100, THERE: 1} == await log.streams()
    assert 101 == await log.position()
    assert 4 == await log.cursor("notes")
    assert [head(HERE, 100)] == await log.heads(HERE)
    await log.append(HERE, 100, rows(HERE, 1, after=100))
    assert 102 == (await first(log, 1, after=101))[0][0]
    await log.close()


async def test_two_handles_on_one_log_see_each_others_rows(lasting: str) -> None:
    mine, yours = await open_log(lasting), await open_log(lasting)
    await mine.append(HERE, 0, rows(HERE, 1))
    await yours.append(HERE, 1, rows(HERE, 1, after=1))

    with pytest.raises(Conflict):
        await mine.append(HERE, 1, [row(HERE, 2, "late")])
    with pytest.raises(Duplicate):
        await mine.append(HERE, 2, [row(HERE, 3, f"{HERE}-2")])
    await mine.append(HERE, 2, rows(HERE, 1, after=2))

    assert rows(HERE, 3) == await yours.read(HERE) == await mine.read(HERE)
    await mine.close()
    assert rows(HERE, 3) == await yours.read(HERE)
    await yours.close()


async def test_two_handles_can_write_concurrently(lasting: str) -> None:
    mine, yours = await open_log(lasting), await open_log(lasting)

    won = await asyncio.gather(*(compete(log, 40) for log in (mine, yours)))

    assert {HERE: 80} == await mine.streams()
    assert 80 == sum(won)
    assert list(range(1, 81)) == [each.version for each in await yours.read(HERE)]
    await asyncio.gather(mine.close(), yours.close())


async def compete(log: EventLog, count: int) -> int:
    """Append so many rows, each as often as it takes."""
    won = 0
    while won < count:
        at = (await log.streams()).get(HERE, 0)
        try:
            await log.append(HERE, at, [row(HERE, at + 1, f"{id(log)}-{won}")])
        except Conflict:
            continue
        won += 1
    return won


async def test_a_tail_sees_what_another_handle_appends(lasting: str) -> None:
    mine, yours = await open_log(lasting), await open_log(lasting)
    seeing = asyncio.ensure_future(first(mine, 4))
    await mine.append(HERE, 0, rows(HERE, 1))
    await yours.append(THERE, 0, rows(THERE, 2))
    await mine.append(HERE, 1, rows(HERE, 1, after=1))

    seen = [(at, each.stream, each.version) for at, each in await seeing]

    assert [(1, HERE, 1), (2, THERE, 1), (3, THERE, 2), (4, HERE, 2)] == seen
    await asyncio.gather(mine.close(), yours.close())
