"""How the store keeps its promises cheaply: settings, batches, checkpoints, memory."""

import asyncio
from pathlib import Path

import apsw
import pytest

from accord.engine.ports import Row, StoreError
from accord.stores.sqlite import SqliteLog, checkpoint, follow, reader, recent
from accord.stores.sqlite.committer import Committer
from accord.stores.sqlite.jobs import Commit, Job
from accord.stores.sqlite.reader import Reader
from accord.stores.sqlite.recent import Recent
from tests.contract.rows import first, row, rows
from tests.helpers.engine import turns
from tests.stores.writing import with_writing

HERE = "room/here"


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1)])
async def test_durability_is_what_was_asked_for(
    tmp_path: Path, durability: str, synchronous: int
) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"), durability=durability)

    assert synchronous == await with_writing(log, lambda db: db.pragma("synchronous"))
    await log.close()


async def test_what_arrives_during_a_commit_shares_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = list[int]()
    commit = Committer.commit

    def counted(committer: Committer, jobs: list[Job]) -> Commit:
        sizes.append(len(jobs))
        return commit(committer, jobs)

    monkeypatch.setattr(Committer, "commit", counted)
    log = await SqliteLog.open(str(tmp_path / "log.db"))

    await asyncio.gather(*(log.append(f"room/{n}", 0, rows(f"room/{n}", 1)) for n in range(50)))

    assert [50] == sizes
    await log.close()


async def test_a_mistake_in_one_append_is_its_own(tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    wrong = Row(HERE, 1, "\ud800", b"", b"")
    worse = Row("room/b", 1, "b", None, b"")  # type: ignore[arg-type]

    outcomes = await asyncio.gather(
        log.append(HERE, 0, [wrong]),
        log.append("room/a", 0, rows("room/a", 1)),
        log.append("room/b", 0, [worse]),
        log.advance("notes", None),  # type: ignore[arg-type]
        return_exceptions=True,
    )

    assert [True, False, True, True] == [isinstance(each, Exception) for each in outcomes]
    assert {"room/a": 1} == await log.streams()
    await log.close()


async def test_a_mistake_of_ours_leaves_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    monkeypatch.setattr(Committer, "commit", lambda *_: 1 // 0)

    with pytest.raises(Exception, match="ZeroDivisionError"):
        await log.append(HERE, 0, rows(HERE, 1))
    await log.close()


async def test_the_log_beside_the_file_does_not_grow_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "OFTEN", 20)
    monkeypatch.setattr(checkpoint, "LARGE", 100)
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    waiting = tmp_path / "log.db-wal"

    for at in range(0, 4000, 10):
        await log.append(HERE, at, [row(HERE, at + n, body=b"x" * 2000) for n in range(1, 11)])

    assert waiting.stat().st_size < (tmp_path / "log.db").stat().st_size / 2
    assert 4000 == len(await log.read(HERE))
    await log.close()


async def test_a_question_that_would_wait_is_asked_in_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    position = Reader.position

    def busy(asked: Reader) -> int:
        if asked is log._near:
            raise apsw.BusyError("locked")
        return position(asked)

    monkeypatch.setattr(Reader, "position", busy)

    assert 0 == await log.position()
    await log.close()


@pytest.mark.parametrize("question", ["position", "streams"])
async def test_what_is_wrong_with_the_file_is_told_to_whoever_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    def torn(*_: object) -> None:
        raise apsw.CorruptError("malformed")

    log = await SqliteLog.open(str(tmp_path / "log.db"))
    monkeypatch.setattr(Reader, question, torn)

    with pytest.raises(StoreError, match="damaged"):
        await getattr(log, question)()
    await log.close()


async def test_bodies_that_do_not_come_joined_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.append(HERE, 0, rows(HERE, 200))
    cast = reader._JOINED.replace("length(body)", "1 + length(body)")
    monkeypatch.setattr(reader, "_JOINED", cast)

    assert rows(HERE, 200) == await log.read(HERE)
    await log.close()


async def test_many_rows_go_into_a_stream_that_is_known(tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.append(HERE, 0, rows(HERE, 1))
    await log.append(HERE, 1, rows(HERE, 2500, after=1))

    assert rows(HERE, 2501) == await log.read(HERE)
    await log.close()


async def test_a_row_that_is_too_large_fails_alone(tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await with_writing(log, lambda db: db.limit(apsw.SQLITE_LIMIT_LENGTH, 10_000))

    outcomes = await asyncio.gather(
        log.append(HERE, 0, [row(HERE, 1, body=b"x" * 20_000)]),
        log.append("room/a", 0, rows("room/a", 1)),
        return_exceptions=True,
    )

    assert [StoreError, type(None)] == [type(outcome) for outcome in outcomes]
    assert {"room/a": 1} == await log.streams()
    await log.close()


async def test_streams_may_be_more_than_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.stores.sqlite.places.BOUND", 2)
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    names = [f"room/{n}" for n in range(10)]

    for at in range(3):
        for name in names:
            await log.append(name, at, rows(name, 1, after=at))

    assert dict.fromkeys(names, 3) == await log.streams()
    await log.close()


async def test_a_look_at_a_locked_file_is_made_up_for_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    locks, look = [apsw.BusyError("locked")], log._near.changes

    def changes() -> int:
        if locks:
            raise locks.pop()
        return look()

    monkeypatch.setattr("accord.stores.sqlite.follow.EVERY_S", 0)
    monkeypatch.setattr(log._follow, "_changes", changes)
    seeing = asyncio.ensure_future(first(log, 1))
    other = await SqliteLog.open(str(tmp_path / "log.db"))
    await other.append(HERE, 0, rows(HERE, 1))

    assert [(1, row(HERE, 1))] == await seeing
    await asyncio.gather(log.close(), other.close())


async def test_nobody_looks_for_others_when_nobody_follows(tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.append(HERE, 0, rows(HERE, 1))

    await asyncio.gather(first(log, 1), first(log, 1))

    assert log._follow._watch is None
    assert log._follow.recent.after(0, 1) is None
    await log.close()


def test_recent_rows_are_those_behind_a_position() -> None:
    memory = Recent()
    memory.add(rows(HERE, 3), last=13)

    assert [(12, row(HERE, 2)), (13, row(HERE, 3))] == memory.after(11, 9)
    assert [(11, row(HERE, 1))] == memory.after(10, 1)
    assert memory.after(13, 9) == []
    assert memory.after(9, 9) is None


def test_whoever_is_ahead_of_the_recent_rows_asks_the_file() -> None:
    memory = Recent()
    memory.add(rows(HERE, 3), last=13)

    assert memory.after(14, 9) is None


def test_recent_rows_have_no_gap() -> None:
    memory = Recent()
    memory.add(rows(HERE, 3), last=3)
    memory.add(rows("room/there", 1), last=9)

    assert memory.after(2, 9) is None
    assert [(9, row("room/there", 1))] == memory.after(8, 9)


def test_recent_rows_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "ROWS", 2)
    memory = Recent()
    memory.add(rows(HERE, 5), last=5)

    assert memory.after(2, 9) is None
    assert [4, 5] == [at for at, _ in memory.after(3, 9) or ()]


def test_recent_rows_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "BYTES", 10)
    memory = Recent()

    memory.add([row(HERE, 1, body=b"x" * 6), row(HERE, 2, body=b"x" * 6)], last=2)
    assert memory.after(0, 9) is None
    assert memory.after(1, 9)

    memory.add([row(HERE, 3, body=b"x" * 11)], last=3)
    assert memory.after(2, 9) is None


async def test_whoever_follows_what_this_process_writes_does_not_read_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every commit of ours looks like one of somebody else to the connection that reads."""
    looks, reads = list[int](), list[int]()
    changes, after = Reader.changes, Reader.after

    def looked(asked: Reader) -> int:
        looks.append(changes(asked))
        return looks[-1]

    def counted(asked: Reader, position: int, limit: int) -> list[tuple[int, Row]]:
        reads.append(position)
        return after(asked, position, limit)

    monkeypatch.setattr(Reader, "changes", looked)
    monkeypatch.setattr(Reader, "after", counted)
    monkeypatch.setattr(follow, "EVERY_S", 0)
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    beside = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.append(HERE, 0, rows(HERE, 1))
    followed = log.tail(0)
    assert [position for position, _ in await anext(followed)] == [1]
    reads.clear()

    for version in range(1, 6):
        await log.append(HERE, version, [row(HERE, version + 1)])
        assert [position for position, _ in await anext(followed)] == [version + 1]
        await turns()
    assert (reads, len(set(looks)) > 5) == ([], True)

    await beside.append(HERE, 6, [row(HERE, 7)])
    assert [position for position, _ in await anext(followed)] == [7]
    assert reads
    await log.append(HERE, 7, [row(HERE, 8)])
    assert [position for position, _ in await anext(followed)] == [8]
    await followed.aclose()
    await beside.close()
    await log.close()
