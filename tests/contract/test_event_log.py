"""Contract of every store: appending and reading."""

import asyncio

import pytest

from accord.engine.ports import Conflict, Duplicate, EventLog
from tests.contract.rows import HERE, THERE, first, row, rows

# Appending


async def test_appended_rows_are_read_back_unchanged(log: EventLog) -> None:
    three = rows(HERE, 3)

    await log.append(HERE, 0, three)

    assert three == await log.read(HERE)


async def test_appends_continue_the_stream(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 2))
    await log.append(HERE, 2, rows(HERE, 3, after=2))

    assert rows(HERE, 5) == await log.read(HERE)


async def test_second_append_at_a_version_raises_conflict(log: EventLog) -> None:
    mine, yours = row(HERE, 1, "mine"), row(HERE, 1, "yours")
    await log.append(HERE, 0, [mine])

    with pytest.raises(Conflict):
        await log.append(HERE, 0, [yours])

    assert [mine] == await log.read(HERE)


@pytest.mark.parametrize("expected", [1, 7])
async def test_append_beyond_the_end_raises_conflict(log: EventLog, expected: int) -> None:
    with pytest.raises(Conflict):
        await log.append(HERE, expected, [row(HERE, expected + 1)])

    assert await log.streams() == {}


async def test_repeated_id_in_a_stream_raises_duplicate(log: EventLog) -> None:
    await log.append(HERE, 0, [row(HERE, 1, "twice")])

    with pytest.raises(Duplicate) as told:
        await log.append(HERE, 1, [row(HERE, 2, "once"), row(HERE, 3, "twice")])

    assert (HERE, "twice") == (told.value.stream, told.value.id)
    assert {HERE: 1} == await log.streams()


async def test_repeated_id_in_one_append_raises_duplicate(log: EventLog) -> None:
    with pytest.raises(Duplicate):
        await log.append(HERE, 0, [row(HERE, 1, "twice"), row(HERE, 2, "twice")])

    assert await log.streams() == {}


async def test_same_id_is_allowed_in_another_stream(log: EventLog) -> None:
    await log.append(HERE, 0, [row(HERE, 1, "same")])
    await log.append(THERE, 0, [row(THERE, 1, "same")])

    assert [row(THERE, 1, "same")] == await log.find(THERE, ["same"])


async def test_stream_accepts_appends_after_a_refused_one(log: EventLog) -> None:
    await log.append(HERE, 0, [row(HERE, 1, "a")])
    with pytest.raises(Duplicate):
        await log.append(HERE, 1, [row(HERE, 2, "a")])

    await log.append(HERE, 1, [row(HERE, 2, "b")])

    assert ["a", "b"] == [each.id for each in await log.read(HERE)]


async def test_failing_append_does_not_affect_concurrent_ones(log: EventLog) -> None:
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


async def test_appends_can_be_pipelined(log: EventLog) -> None:
    await asyncio.gather(*(log.append(HERE, at, [row(HERE, at + 1)]) for at in range(50)))

    assert rows(HERE, 50) == await log.read(HERE)


async def test_append_behind_a_failed_one_fails(log: EventLog) -> None:
    await log.append(HERE, 0, [row(HERE, 1, "a")])

    outcomes = await asyncio.gather(
        log.append(HERE, 1, [row(HERE, 2, "a")]),
        log.append(HERE, 2, [row(HERE, 3, "b")]),
        return_exceptions=True,
    )

    assert [Duplicate, Conflict] == [type(outcome) for outcome in outcomes]
    assert {HERE: 1} == await log.streams()


async def test_exactly_one_of_many_racing_appends_wins(log: EventLog) -> None:
    racing = [log.append(HERE, 0, [row(HERE, 1, f"writer-{name}")]) for name in range(20)]

    outcomes = await asyncio.gather(*racing, return_exceptions=True)

    assert 1 == outcomes.count(None)
    assert 19 == sum(isinstance(outcome, Conflict) for outcome in outcomes)
    assert [f"writer-{outcomes.index(None)}"] == [each.id for each in await log.read(HERE)]


async def test_empty_append_stores_nothing(log: EventLog) -> None:
    await log.append(HERE, 0, [])

    assert await log.streams() == {}
    assert 0 == await log.position()


async def test_empty_append_still_raises_conflict(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 1))

    with pytest.raises(Conflict):
        await log.append(HERE, 0, [])


async def test_append_rejects_rows_of_another_stream_or_version(log: EventLog) -> None:
    with pytest.raises(ValueError, match="does not belong"):
        await log.append(HERE, 0, [row(THERE, 1)])
    with pytest.raises(ValueError, match="does not belong"):
        await log.append(HERE, 0, [row(HERE, 2)])

    assert await log.streams() == {}


async def test_cancelled_append_does_not_affect_others(log: EventLog) -> None:
    gone = asyncio.ensure_future(log.append(HERE, 0, rows(HERE, 1)))
    await asyncio.sleep(0)
    gone.cancel()

    await log.append(THERE, 0, rows(THERE, 1))

    assert rows(THERE, 1) == await log.read(THERE)


@pytest.mark.parametrize("count", [1, 2, 1000, 3000])
async def test_append_accepts_thousands_of_rows(log: EventLog, count: int) -> None:
    await log.append(HERE, 0, rows(HERE, count))

    assert rows(HERE, count) == await log.read(HERE)
    assert count == await log.position()


async def test_append_accepts_large_bodies(log: EventLog) -> None:
    large = [row(HERE, version, body=bytes([version]) * (1 << 20)) for version in range(1, 11)]

    await log.append(HERE, 0, large)

    assert large == await log.read(HERE)
    assert large == [each for _, each in await first(log, 10)]


@pytest.mark.parametrize("count", [1, 200])
async def test_body_may_contain_any_byte(log: EventLog, count: int) -> None:
    odd = [row(HERE, 1 + at, body=bytes(range(256)) + b"\0\xff") for at in range(count)]

    await log.append(HERE, 0, odd)

    assert odd == await log.read(HERE)
    assert odd == [each for _, each in await first(log, count)]


@pytest.mark.parametrize(
    "id_", ["é", "日本語", "👩‍🚀", "a b", "'; DROP", '"\\', "\u202ertl", "ß" * 128]
)
async def test_id_may_be_any_printable_text(log: EventLog, id_: str) -> None:
    odd = row(HERE, 1, id_)

    await log.append(HERE, 0, [odd])

    assert [odd] == await log.find(HERE, [id_])
    assert [(1, odd)] == await first(log, 1)


# Reading


async def test_unknown_stream_reads_as_empty(log: EventLog) -> None:
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
async def test_read_respects_after_and_limit(
    log: EventLog, after: int, limit: int | None, versions: range
) -> None:
    await log.append(HERE, 0, rows(HERE, 300))
    await log.append(THERE, 0, rows(THERE, 3))

    found = await log.read(HERE, after, limit)

    assert list(versions) == [each.version for each in found]


async def test_long_stream_is_read_completely(log: EventLog) -> None:
    for at in range(0, 5000, 500):
        await log.append(HERE, at, rows(HERE, 500, after=at))
        await log.append(THERE, at, rows(THERE, 500, after=at))

    assert rows(HERE, 5000) == await log.read(HERE)
    assert rows(THERE, 4999, after=1) == await log.read(THERE, after=1)


async def test_find_returns_rows_in_order_of_version(log: EventLog) -> None:
    await log.append(HERE, 0, rows(HERE, 5))

    found = await log.find(HERE, [f"{HERE}-4", "unknown", f"{HERE}-2", f"{HERE}-4"])

    assert [2, 4] == [each.version for each in found]


async def test_find_accepts_many_ids(log: EventLog) -> None:
    some = rows(HERE, 500)
    await log.append(HERE, 0, some)

    assert some == await log.find(HERE, [each.id for each in some])


async def test_streams_are_listed_by_prefix(log: EventLog) -> None:
    for name in ("room/a", "room/aé", "room/b", "roomy", "work/a", "Room/a", "room/%", "room/_"):
        await log.append(name, 0, rows(name, 2))

    assert {"room/a": 2, "room/aé": 2} == await log.streams("room/a")
    assert {"room/%": 2} == await log.streams("room/%")
    assert {"room/_": 2} == await log.streams("room/_")
    assert await log.streams("nothing") == {}
    assert 8 == len(await log.streams())


async def test_position_counts_rows_of_all_streams(log: EventLog) -> None:
    before = await log.position()
    await log.append(HERE, 0, rows(HERE, 2))
    await log.append(THERE, 0, rows(THERE, 1))

    assert 0 == before
    assert [1, 2, 3] == [at for at, _ in await first(log, 3)]
    assert 3 == await log.position()
