"""Reading a whole stream in pages."""

import asyncio

import pytest

from accord.engine.ports import DamagedError
from accord.engine.streams.verified_reads import read_pages, read_rows, verified
from tests.engine.conftest import Make
from tests.engine.streams.test_verified_reads import Rotten
from tests.helpers.room.scenario import ALICE, CLAUDE, ROOM, prompt_submit

STREAM = f"room/{ROOM}"


async def log_of_a_room(make: Make) -> Rotten:
    log = Rotten()
    stage = make(log, check=False)
    await stage.open_room(CLAUDE)
    for n in range(5):
        await stage.send(ALICE, prompt_submit(content=f"word {n}"), f"p{n}")
    return log


@pytest.mark.parametrize("rows", [1, 2, 100])
async def test_every_row_is_read_once_and_in_order(make: Make, rows: int) -> None:
    log = await log_of_a_room(make)
    stored = await log.read(STREAM)

    assert [row async for row in read_rows(log.read, STREAM, 0, rows)] == stored
    assert [row async for row in read_rows(verified(log), STREAM, 3, rows)] == stored[3:]
    assert [row async for row in read_rows(log.read, STREAM, stored[-1].version)] == []


async def test_pages_have_at_most_the_given_rows(make: Make) -> None:
    log = await log_of_a_room(make)
    count = len(await log.read(STREAM))

    sizes = [len(page) async for page in read_pages(verified(log), STREAM, 0, 2)]

    assert sizes == [2] * (count // 2) + [1] * (count % 2)


async def test_other_tasks_get_a_turn_after_each_page(make: Make) -> None:
    log = await log_of_a_room(make)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    pages = 0
    async for _ in read_pages(log.read, STREAM, 0, 1):
        assert turns >= pages
        pages += 1
    counting.cancel()

    assert turns >= pages > 1


async def test_verified_rows_end_at_the_damage(make: Make) -> None:
    log = await log_of_a_room(make)
    log.rot(b"word 3", b"word 4")
    rows = read_rows(verified(log), STREAM, 0, 1)
    intact = [await anext(rows) for _ in range(len(await log.read(STREAM)) - 2)]

    with pytest.raises(DamagedError, match="is not what was stored"):
        await anext(rows)

    assert b"word 2" in intact[-1].body
