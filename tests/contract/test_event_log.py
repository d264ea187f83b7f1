"""What every store promises."""

import asyncio
from collections import defaultdict

import pytest
from msgspec.structs import replace

from accord.core.kernel.chain import Covered, Head
from accord.engine.ports import Conflict, Duplicate, EventLog, Row, Snapshot, StoreError
from accord.stores import open_log
from tests.contract.rows import first, following, head, row, rows

HERE = "room/here"
THERE = "room/there"


# Appending


async def test_what_was_appended_is_read_back_as_it_was(log: EventLog) -> None:
    three = rows(HERE, 3)

    await log.append(HERE, 0, three)

    assert three == await log.read(HERE)


async def test_appends_follow_each_other(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 2))
    await log.append(HERE, 2, rows(HERE, 3, after=2))

    assert rows(HERE, 5) == await log.read(HERE)


async def test_the_second_writer_on_a_version_is_told(log: EventLog) -> None:
    mine, yours = row(HERE, 1, "mine"), row(HERE, 1, "yours")
    await log.append(HERE, 0, [mine])

    with pytest.raises(Conflict):
        await log.append(HERE, 0, [yours])

    assert [mine] == await log.read(HERE)


@pytest.mark.parametrize("expected", [1, 7])
async def test_nothing_is_appended_beyond_the_end(log: EventLog, expected: int) -> None:
    with pytest.raises(Conflict):
        await log.append(HERE, expected, [row(HERE, expected + 1)])

    assert await log.streams() == {}


async def test_an_id_is_kept_once_in_a_stream(log: EventLog) -> None:
    await log.append(HERE, 0, [row(HERE, 1, "twice")])

    with pytest.raises(Duplicate) as told:
        await log.append(HERE, 1, [row(HERE, 2, "once"), row(HERE, 3, "twice")])

    assert (HERE, "twice") == (told.value.stream, told.value.id)
    assert {HERE: 1} == await log.streams()


async def test_an_id_is_kept_once_in_an_append(log: EventLog) -> None:
    with pytest.raises(Duplicate):
        await log.append(HERE, 0, [row(HERE, 1, "twice"), row(HERE, 2, "twice")])

    assert await log.streams() == {}


async def test_another_stream_may_hold_the_same_id(log: EventLog) -> None:
    await log.append(HERE, 0, [row(HERE, 1, "same")])
    await log.append(THERE, 0, [row(THERE, 1, "same")])

    assert [row(THERE, 1, "same")] == await log.find(THERE, ["same"])


async def test_a_stream_goes_on_after_a_refused_append(log: EventLog) -> None:
    await log.append(HERE, 0, [row(HERE, 1, "a")])
    with pytest.raises(Duplicate):
        await log.append(HERE, 1, [row(HERE, 2, "a")])

    await log.append(HERE, 1, [row(HERE, 2, "b")])

    assert ["a", "b"] == [each.id for each in await log.read(HERE)]


async def test_a_failing_append_leaves_those_beside_it_alone(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 1))

    outcomes = await asyncio.gather(
        log.append("room/a", 0, rows("room/a", 2)),
        log.append(HERE, 0, [row(HERE, 1, "late")]),
        log.append(HERE, 1, [row(HERE, 2, f"{HERE}-1")]),
        log.append("room/b", 0, rows("room/b", 1)),
        log.append(HERE, 1, rows(HERE, 2, after=1)),
        return_exceptions=True,
    )

    assert [type(None), Conflict, Duplicate, type(None), type(None)] == [type(o) for o in outcomes]
    assert {HERE: 3, "room/a": 2, "room/b": 1} == await log.streams()


async def test_appends_need_not_wait_for_the_one_before(log: EventLog) -> None:
    await asyncio.gather(*(log.append(HERE, at, [row(HERE, at + 1)]) for at in range(50)))

    assert rows(HERE, 50) == await log.read(HERE)


async def test_what_relied_on_a_failed_append_fails_too(log: EventLog) -> None:
    await log.append(HERE, 0, [row(HERE, 1, "a")])

    outcomes = await asyncio.gather(
        log.append(HERE, 1, [row(HERE, 2, "a")]),
        log.append(HERE, 2, [row(HERE, 3, "b")]),
        return_exceptions=True,
    )

    assert [Duplicate, Conflict] == [type(outcome) for outcome in outcomes]
    assert {HERE: 1} == await log.streams()


async def test_one_of_many_racing_writers_wins(log: EventLog) -> None:
    racing = [log.append(HERE, 0, [row(HERE, 1, f"writer-{name}")]) for name in range(20)]

    outcomes = await asyncio.gather(*racing, return_exceptions=True)

    assert 1 == outcomes.count(None)
    assert 19 == sum(isinstance(outcome, Conflict) for outcome in outcomes)
    assert [f"writer-{outcomes.index(None)}"] == [each.id for each in await log.read(HERE)]


async def test_an_append_of_nothing_keeps_nothing(log: EventLog) -> None:
    await log.append(HERE, 0, [])

    assert await log.streams() == {}
    assert 0 == await log.position()


async def test_an_append_of_nothing_still_tells_of_a_conflict(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 1))

    with pytest.raises(Conflict):
        await log.append(HERE, 0, [])


async def test_rows_of_another_place_are_a_mistake(log: EventLog) -> None:
    with pytest.raises(ValueError, match="does not belong"):
        await log.append(HERE, 0, [row(THERE, 1)])
    with pytest.raises(ValueError, match="does not belong"):
        await log.append(HERE, 0, [row(HERE, 2)])

    assert await log.streams() == {}


async def test_an_append_whose_caller_went_away_harms_nobody(log: EventLog) -> None:
    gone = asyncio.ensure_future(log.append(HERE, 0, rows(HERE, 1)))
    await asyncio.sleep(0)
    gone.cancel()

    await log.append(THERE, 0, rows(THERE, 1))

    assert rows(THERE, 1) == await log.read(THERE)


@pytest.mark.parametrize("count", [1, 2, 1000, 3000])
async def test_an_append_may_be_long(log: EventLog, count: int) -> None:
    await log.append(HERE, 0, rows(HERE, count))

    assert rows(HERE, count) == await log.read(HERE)
    assert count == await log.position()


async def test_bodies_may_be_large(log: EventLog) -> None:
    large = [row(HERE, version, body=bytes([version]) * (1 << 20)) for version in range(1, 11)]

    await log.append(HERE, 0, large)

    assert large == await log.read(HERE)
    assert large == [each for _, each in await first(log, 10)]


@pytest.mark.parametrize("count", [1, 200])
async def test_a_body_may_hold_any_byte(log: EventLog, count: int) -> None:
    odd = [row(HERE, 1 + at, body=bytes(range(256)) + b"\0\xff") for at in range(count)]

    await log.append(HERE, 0, odd)

    assert odd == await log.read(HERE)
    assert odd == [each for _, each in await first(log, count)]


@pytest.mark.parametrize(
    "id_", ["é", "日本語", "👩‍🚀", "a b", "'; DROP", '"\\', "\u202ertl", "ß" * 128]
)
async def test_an_id_is_any_printable_text(log: EventLog, id_: str) -> None:
    odd = row(HERE, 1, id_)

    await log.append(HERE, 0, [odd])

    assert [odd] == await log.find(HERE, [id_])
    assert [(1, odd)] == await first(log, 1)


# Reading


async def test_a_stream_that_is_not_there_is_empty(log: EventLog) -> None:
    assert await log.read("room/nowhere") == []
    assert await log.find("room/nowhere", ["a"]) == []


@pytest.mark.parametrize(
    ("after", "limit", "versions"),
    [
        (0, None, range(1, 301)),
        (298, None, range(299, 301)),
        (300, None, range(0)),
        (400, None, range(0)),
        (0, 0, range(0)),
        (0, 1, range(1, 2)),
        (10, 64, range(11, 75)),
        (10, 65, range(11, 76)),
        (10, 200, range(11, 211)),
        (0, 300, range(1, 301)),
        (299, 999, range(300, 301)),
    ],
)
async def test_a_reader_starts_and_ends_where_it_wants(
    log: EventLog, after: int, limit: int | None, versions: range
) -> None:
    await log.append(HERE, 0, rows(HERE, 300))
    await log.append(THERE, 0, rows(THERE, 3))

    found = await log.read(HERE, after, limit)

    assert list(versions) == [each.version for each in found]


async def test_a_long_stream_is_read_whole(log: EventLog) -> None:
    for at in range(0, 5000, 500):
        await log.append(HERE, at, rows(HERE, 500, after=at))
        await log.append(THERE, at, rows(THERE, 500, after=at))

    assert rows(HERE, 5000) == await log.read(HERE)
    assert rows(THERE, 4999, after=1) == await log.read(THERE, after=1)


async def test_rows_are_found_by_id_in_order_of_version(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 5))

    found = await log.find(HERE, [f"{HERE}-4", "unknown", f"{HERE}-2", f"{HERE}-4"])

    assert [2, 4] == [each.version for each in found]


async def test_many_ids_are_found_at_once(log: EventLog) -> None:
    some = rows(HERE, 500)
    await log.append(HERE, 0, some)

    assert some == await log.find(HERE, [each.id for each in some])


async def test_streams_are_listed_by_the_beginning_of_their_names(log: EventLog) -> None:
    for name in ("room/a", "room/aé", "room/b", "roomy", "work/a", "Room/a", "room/%", "room/_"):
        await log.append(name, 0, rows(name, 2))

    assert {"room/a": 2, "room/aé": 2} == await log.streams("room/a")
    assert {"room/%": 2} == await log.streams("room/%")
    assert {"room/_": 2} == await log.streams("room/_")
    assert await log.streams("nothing") == {}
    assert 8 == len(await log.streams())


async def test_positions_count_rows_over_all_streams(log: EventLog) -> None:
    before = await log.position()
    await log.append(HERE, 0, rows(HERE, 2))
    await log.append(THERE, 0, rows(THERE, 1))

    assert 0 == before
    assert [1, 2, 3] == [at for at, _ in await first(log, 3)]
    assert 3 == await log.position()


# Following


async def test_a_tail_brings_what_is_there_and_what_comes(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 2))
    seeing = asyncio.ensure_future(first(log, 4))
    await asyncio.sleep(0)

    await log.append(THERE, 0, rows(THERE, 1))
    await log.append(HERE, 2, rows(HERE, 1, after=2))

    seen = [(each.stream, each.version) for _, each in await seeing]
    assert [(HERE, 1), (HERE, 2), (THERE, 1), (HERE, 3)] == seen


async def test_a_tail_starts_behind_its_position(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 5))

    seen = await first(log, 2, after=3)

    assert [(4, row(HERE, 4)), (5, row(HERE, 5))] == seen


async def test_a_tail_from_the_end_waits_for_the_next_row(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 5))
    seeing = asyncio.ensure_future(first(log, 1, after=await log.position()))

    await log.append(THERE, 0, rows(THERE, 1))

    assert [(6, row(THERE, 1))] == await seeing


async def test_a_tail_misses_nothing_while_many_write(log: EventLog) -> None:
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


async def test_a_slow_follower_gets_everything_too(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 1))
    seen = list[int]()

    async with following(log, 0) as batches:
        async for batch in batches:
            seen += [at for at, _ in batch]
            if len(seen) > 2000:
                break
            await log.append(HERE, len(seen), rows(HERE, 400, after=len(seen)))

    assert list(range(1, 2002)) == seen


async def test_a_tail_may_be_given_up_while_it_waits(log: EventLog) -> None:
    seeing = asyncio.ensure_future(first(log, 1))
    await asyncio.sleep(0)

    seeing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await seeing
    await log.append(HERE, 0, rows(HERE, 1))
    assert [(1, row(HERE, 1))] == await first(log, 1)


# Cursors, snapshots, heads


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


# The end


async def test_closing_twice_is_closing_once(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 1))

    await asyncio.gather(log.close(), log.close())
    await log.close()


async def test_a_closed_log_says_so(log: EventLog) -> None:
    await log.close()

    with pytest.raises(StoreError, match="closed"):
        await log.append(HERE, 0, rows(HERE, 1))
    with pytest.raises(StoreError, match="closed"):
        await log.read(HERE)
    with pytest.raises(StoreError, match="closed"):
        await log.advance("notes", 1)
    with pytest.raises(StoreError, match="closed"):
        await first(log, 1)


async def test_whoever_follows_a_log_is_told_that_it_was_closed(log: EventLog) -> None:
    seeing = asyncio.ensure_future(first(log, 1))
    await asyncio.sleep(0)

    await log.close()

    with pytest.raises(StoreError, match="closed"):
        await seeing


async def test_what_was_asked_before_the_end_is_answered(url: str) -> None:
    log = await open_log(url)
    asked = [asyncio.ensure_future(log.append(HERE, at, [row(HERE, at + 1)])) for at in range(20)]
    await asyncio.sleep(0)

    await log.close()

    assert [None] * 20 == await asyncio.gather(*asked)


# What lasts


async def test_everything_is_there_after_opening_again(lasting: str) -> None:
    log = await open_log(lasting)
    await log.append(HERE, 0, rows(HERE, 100))
    await log.append(THERE, 0, rows(THERE, 1))
    await log.advance("notes", 4)
    await log.sign(head(HERE, 100))
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


async def test_two_handles_on_one_log_see_each_other(lasting: str) -> None:
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


async def test_two_handles_may_write_at_the_same_time(lasting: str) -> None:
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
