"""The write-ahead log has room ahead, which is nobody's record and costs nobody one."""

import asyncio
import resource
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from accord.stores.sqlite import SqliteLog, runway, writer
from accord.stores.sqlite.swap import swap
from tests.contract.rows import row
from tests.stores.appender import STREAMS, body
from tests.stores.test_sqlite_processes import appender

HERE = "room/here"
LARGE = b"x" * 4000
FAR = 4 << 20  # more than any of these tests writes


def wal(path: Path) -> bytes:
    """The write-ahead log as it lies there."""
    return Path(f"{path}-wal").read_bytes()


async def append(log: SqliteLog, commits: int, after: int = 0) -> None:
    """So many commits of a page or two."""
    for version in range(after, after + commits):
        await log.append(HERE, version, [row(HERE, version + 1, body=LARGE)])


async def test_a_short_log_has_no_more_than_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(str(path))

    await append(log, 3)

    assert len(wal(path)) < runway.FIRST
    await log.close()


async def test_a_long_log_is_written_over_zeros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runway, "STEP", FAR)
    path = tmp_path / "log.db"
    log = await SqliteLog.open(str(path))
    await append(log, 80)
    long = wal(path)

    await append(log, 20, after=80)

    assert len(long) >= runway.STEP
    assert not any(long[-runway.FIRST :])
    assert len(wal(path)) == len(long)
    await log.close()


async def test_the_room_is_made_a_little_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit waits until the zeros before it are durable."""
    fills: list[int] = []
    fill = runway.fill

    def counted(file: int, start: int, end: int) -> None:
        fills.append(end - start)
        fill(file, start, end)

    monkeypatch.setattr(runway, "fill", counted)
    path = tmp_path / "log.db"
    log = await SqliteLog.open(str(path))

    await append(log, 100)

    assert len(fills) > 1
    assert 0 < min(fills) <= max(fills) <= runway.FIRST + runway.STEP
    assert not any(wal(path)[-runway.FIRST // 2 :])
    await log.close()


async def test_a_log_as_long_as_it_gets_is_let_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "KEEP_BYTES", 3 * runway.FIRST)
    ends: list[int] = []
    monkeypatch.setattr(runway, "fill", lambda _file, _start, end: ends.append(end))
    log = await SqliteLog.open(str(tmp_path / "log.db"))

    await append(log, 80)

    assert ends == [3 * runway.FIRST]
    await log.close()


async def test_what_lies_there_after_a_kill_is_read_up_to_the_zeros(tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await append(log, 100)
    left = tmp_path / "left"
    left.mkdir()
    for part in ("log.db", "log.db-wal"):  # what a killed process leaves behind
        shutil.copy(tmp_path / part, left / part)
    await log.close()

    again = await SqliteLog.open(str(left / "log.db"))

    assert [each.version for each in await again.read(HERE)] == list(range(1, 101))
    assert await again.check() == []
    await again.close()


async def test_nothing_is_written_over_what_another_process_appends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runway, "FIRST", 8 << 10)
    monkeypatch.setattr(runway, "STEP", 12 << 10)  # with every second commit or so
    path = tmp_path / "log.db"
    log = await SqliteLog.open(str(path))

    with appender(path, rounds=60) as child:
        await append(log, 200)
        await asyncio.to_thread(child.communicate, timeout=60)

    assert child.returncode == 0
    assert [each.version for each in await log.read(HERE)] == list(range(1, 201))
    for stream in STREAMS:
        kept = await log.read(stream)
        assert [body(stream, each.version) for each in kept] == [each.body for each in kept]
        assert kept
    assert await log.check() == []
    await log.close()


async def test_nobody_can_write_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(str(path))
    tries: list[type[Exception] | None] = []

    def fill(*_: int) -> None:
        with closing(apsw.Connection(str(path))) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
                tries.append(None)
            except apsw.Error as error:
                tries.append(type(error))

    monkeypatch.setattr(runway, "fill", fill)
    await append(log, 80)
    await log.close()

    assert tries
    assert set(tries) == {apsw.BusyError}


async def test_a_disk_without_room_for_it_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runway, "STEP", FAR)
    path = tmp_path / "log.db"
    log = await SqliteLog.open(str(path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FAR // 2, hard))
    try:
        await append(log, 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert len(wal(path)) < FAR // 2
    assert [each.version for each in await log.read(HERE)] == list(range(1, 101))
    await log.close()


async def test_a_store_that_came_in_its_place_is_left_alone(tmp_path: Path) -> None:
    path, new = tmp_path / "log.db", tmp_path / "new.db"
    await (await SqliteLog.open(str(new))).close()
    old = await SqliteLog.open(str(path))
    await append(old, 10)
    swap(path, new, "now")
    here = await SqliteLog.open(str(path))
    await append(here, 3)
    before = wal(path)

    await append(old, 80, after=10)  # whose writers wait for no lock of the new one

    assert wal(path) == before
    await here.close()
    await old.close()


async def test_a_log_that_another_process_cut_is_lengthened_again(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(str(path))
    await append(log, 100)
    with closing(apsw.Connection(str(path))) as other:
        other.pragma("schema_version")  # before it has looked, it knows of no log
        other.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert wal(path) == b""

    await append(log, 80, after=100)

    assert not any(wal(path)[-runway.FIRST // 2 :])
    await log.close()
