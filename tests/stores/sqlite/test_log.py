"""Settings, batching, checkpoints and caches of the SQLite store."""

import asyncio
from pathlib import Path

import apsw
import pytest

from accord.engine.ports import Row, StoreError
from accord.stores import append
from accord.stores.append import TailCache
from accord.stores.sqlite import SqliteLog, reader, writer
from accord.stores.sqlite import log as log_module
from accord.stores.sqlite.reader import Reader
from accord.stores.sqlite.writer import BatchCommitter, CommitResult, Job
from tests.contract.rows import first, row, rows
from tests.helpers.engine.harness import yield_to_loop
from tests.stores.writer_connection import with_writing

HERE = "room/here"


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1)])
async def test_durability_sets_the_synchronous_pragma(
    tmp_path: Path, durability: str, synchronous: int
) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"), durability=durability)

    assert synchronous == await with_writing(log, lambda db: db.pragma("synchronous"))
    await log.close()


async def test_appends_during_a_commit_share_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = list[int]()
    commit = BatchCommitter.commit

    def counted(committer: BatchCommitter, jobs: list[Job]) -> CommitResult:
        sizes.append(len(jobs))
        return commit(committer, jobs)

    monkeypatch.setattr(BatchCommitter, "commit", counted)
    log = await SqliteLog.open(str(tmp_path / "log.db"))

    await asyncio.gather(*(log.append(f"room/{n}", 0, rows(f"room/{n}", 1)) for n in range(50)))

    assert [50] == sizes
    await log.close()


async def test_invalid_append_does_not_affect_others(tmp_path: Path) -> None:
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


async def test_unexpected_exception_answers_all_appends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    monkeypatch.setattr(BatchCommitter, "commit", lambda *_: 1 // 0)

    with pytest.raises(Exception, match="ZeroDivisionError"):
        await log.append(HERE, 0, rows(HERE, 1))
    await log.close()


async def test_write_ahead_log_does_not_grow_without_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_INTERVAL_PAGES", 20)
    monkeypatch.setattr(writer, "RESTART_WAL_PAGES", 100)
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    waiting = tmp_path / "log.db-wal"

    for at in range(0, 4000, 10):
        await log.append(HERE, at, [row(HERE, at + n, body=b"x" * 2000) for n in range(1, 11)])

    assert waiting.stat().st_size < (tmp_path / "log.db").stat().st_size / 2
    assert 4000 == len(await log.read(HERE))
    await log.close()


async def test_busy_query_moves_to_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    position = Reader.position

    def busy(asked: Reader) -> int:
        if asked is log._loop_reader:
            raise apsw.BusyError("locked")
        return position(asked)

    monkeypatch.setattr(Reader, "position", busy)

    assert 0 == await log.position()
    await log.close()


@pytest.mark.parametrize("question", ["position", "streams"])
async def test_damage_is_reported_to_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    def torn(*_: object) -> None:
        raise apsw.CorruptError("malformed")

    log = await SqliteLog.open(str(tmp_path / "log.db"))
    monkeypatch.setattr(Reader, question, torn)

    with pytest.raises(StoreError, match="damaged"):
        await getattr(log, question)()
    await log.close()


async def test_reader_falls_back_when_bodies_are_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.append(HERE, 0, rows(HERE, 200))
    cast = reader._JOINED.replace("length(body)", "1 + length(body)")
    monkeypatch.setattr(reader, "_JOINED", cast)

    assert rows(HERE, 200) == await log.read(HERE)
    await log.close()


async def test_many_rows_append_to_an_existing_stream(tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.append(HERE, 0, rows(HERE, 1))
    await log.append(HERE, 1, rows(HERE, 2500, after=1))

    assert rows(HERE, 2501) == await log.read(HERE)
    await log.close()


async def test_oversized_row_fails_alone(tmp_path: Path) -> None:
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


async def test_more_streams_than_the_cache_holds_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.stores.sqlite.writer.MAX_CACHED_STREAMS", 2)
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    names = [f"room/{n}" for n in range(10)]

    for at in range(3):
        for name in names:
            await log.append(name, at, rows(name, 1, after=at))

    assert dict.fromkeys(names, 3) == await log.streams()
    await log.close()


async def test_poll_of_a_locked_file_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    locks, look = [apsw.BusyError("locked")], log._loop_reader.data_version

    def changes() -> int:
        if locks:
            raise locks.pop()
        return look()

    monkeypatch.setattr("accord.stores.sqlite.log.FOREIGN_COMMIT_POLL_S", 0)
    monkeypatch.setattr(log._tail_watch, "_data_version", changes)
    seeing = asyncio.ensure_future(first(log, 1))
    other = await SqliteLog.open(str(tmp_path / "log.db"))
    await other.append(HERE, 0, rows(HERE, 1))

    assert [(1, row(HERE, 1))] == await seeing
    await asyncio.gather(log.close(), other.close())


async def test_no_polling_without_followers(tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.append(HERE, 0, rows(HERE, 1))

    await asyncio.gather(first(log, 1), first(log, 1))

    assert log._tail_watch._watch is None
    assert log._tail_watch.cache.after(0, 1) is None
    await log.close()


def test_tail_cache_returns_rows_behind_a_position() -> None:
    memory = TailCache()
    memory.add(rows(HERE, 3), last=13)

    assert [(12, row(HERE, 2)), (13, row(HERE, 3))] == memory.after(11, 9)
    assert [(11, row(HERE, 1))] == memory.after(10, 1)
    assert memory.after(13, 9) == []
    assert memory.after(9, 9) is None


def test_tail_cache_is_bypassed_by_a_follower_ahead_of_it() -> None:
    memory = TailCache()
    memory.add(rows(HERE, 3), last=13)

    assert memory.after(14, 9) is None


def test_tail_cache_has_no_gap() -> None:
    memory = TailCache()
    memory.add(rows(HERE, 3), last=3)
    memory.add(rows("room/there", 1), last=9)

    assert memory.after(2, 9) is None
    assert [(9, row("room/there", 1))] == memory.after(8, 9)


def test_tail_cache_is_bounded_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append, "MAX_TAIL_ROWS", 2)
    memory = TailCache()
    memory.add(rows(HERE, 5), last=5)

    assert memory.after(2, 9) is None
    assert [4, 5] == [at for at, _ in memory.after(3, 9) or ()]


def test_tail_cache_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append, "MAX_TAIL_BYTES", 10)
    memory = TailCache()

    memory.add([row(HERE, 1, body=b"x" * 6), row(HERE, 2, body=b"x" * 6)], last=2)
    assert memory.after(0, 9) is None
    assert memory.after(1, 9)

    memory.add([row(HERE, 3, body=b"x" * 11)], last=3)
    assert memory.after(2, 9) is None


async def test_follower_of_own_commits_does_not_read_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every commit of ours looks like one of somebody else to the connection that reads."""
    looks, reads = list[int](), list[int]()
    changes, after = Reader.data_version, Reader.read_after

    def looked(asked: Reader) -> int:
        looks.append(changes(asked))
        return looks[-1]

    def counted(asked: Reader, position: int, limit: int) -> list[tuple[int, Row]]:
        reads.append(position)
        return after(asked, position, limit)

    monkeypatch.setattr(Reader, "data_version", looked)
    monkeypatch.setattr(Reader, "read_after", counted)
    monkeypatch.setattr(log_module, "FOREIGN_COMMIT_POLL_S", 0)
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    beside = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.append(HERE, 0, rows(HERE, 1))
    followed = log.tail(0)
    assert [position for position, _ in await anext(followed)] == [1]
    reads.clear()

    for version in range(1, 6):
        await log.append(HERE, version, [row(HERE, version + 1)])
        assert [position for position, _ in await anext(followed)] == [version + 1]
        await yield_to_loop()
    assert (reads, len(set(looks)) > 5) == ([], True)

    await beside.append(HERE, 6, [row(HERE, 7)])
    assert [position for position, _ in await anext(followed)] == [7]
    assert reads
    await log.append(HERE, 7, [row(HERE, 8)])
    assert [position for position, _ in await anext(followed)] == [8]
    await followed.aclose()
    await beside.close()
    await log.close()
