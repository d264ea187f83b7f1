"""Which files the store opens, and that it never changes any other."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from accord.engine.ports import ForeignStoreError, StoreError
from accord.stores import open_log
from accord.stores.sqlite import SqliteLog
from accord.stores.sqlite.schema import APPLICATION_ID, newest_version
from tests.contract.rows import rows

HERE = "room/here"


async def written(path: Path, count: int = 500) -> None:
    """A log of ours with something in it."""
    log = await open_log(f"sqlite:{path}")
    await log.append(HERE, 0, rows(HERE, count))
    await log.close()


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in the folder, byte for byte."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def other_program(path: Path) -> None:
    with apsw.Connection(str(path)) as db:
        db.pragma("application_id", 0x12345678)
        db.execute("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")


def nameless_program(path: Path) -> None:
    with apsw.Connection(str(path)) as db:
        db.execute("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")


def nameless_program_with_a_log(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    db.execute("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
    db.close()


def no_database(path: Path) -> None:
    path.write_bytes(b"Dear diary, today I was not a database. " * 300)


def a_short_text(path: Path) -> None:
    path.write_text("short")


def a_beginning_alone(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + bytes(5000))


@pytest.mark.parametrize(
    "somebody",
    [
        other_program,
        nameless_program,
        nameless_program_with_a_log,
        no_database,
        a_short_text,
        a_beginning_alone,
    ],
)
async def test_foreign_file_is_not_changed(
    tmp_path: Path, somebody: Callable[[Path], None]
) -> None:
    somebody(tmp_path / "log.db")
    before = contents(tmp_path)

    with pytest.raises(ForeignStoreError, match="not changed"):
        await open_log(f"sqlite:{tmp_path / 'log.db'}")

    assert before == contents(tmp_path)


async def test_file_of_a_later_version_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await written(path)
    with apsw.Connection(str(path)) as db:
        db.pragma("user_version", newest_version() + 1)
    db.close()
    before = contents(tmp_path)

    with pytest.raises(ForeignStoreError, match="later Accord"):
        await open_log(f"sqlite:{path}")

    assert before == contents(tmp_path)


async def test_later_version_in_the_write_ahead_log_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "theirs" / "log.db"
    await written(path)
    db = apsw.Connection(str(path))
    db.pragma("user_version", newest_version() + 1)
    copy = tmp_path / "copy"
    shutil.copytree(path.parent, copy)  # as if their machine had lost power here
    db.close()
    before = contents(copy)

    with pytest.raises(ForeignStoreError, match="later Accord"):
        await open_log(f"sqlite:{copy / 'log.db'}")

    assert before["log.db"] == (copy / "log.db").read_bytes()
    assert before["log.db-wal"] == (copy / "log.db-wal").read_bytes()


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_to_the_header(path: Path) -> None:
    os.truncate(path, 4096)


def scribble_on_the_schema(path: Path) -> None:
    overwrite(path, 200, b"\xff" * 3000)


def empty_all_but_the_first_page(path: Path) -> None:
    overwrite(path, 4096, bytes(path.stat().st_size - 4096))


def wrong_page_size(path: Path) -> None:
    overwrite(path, 16, b"\x12\x34")


def overwrite(path: Path, at: int, what: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(what)


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        cut_to_the_header,
        scribble_on_the_schema,
        empty_all_but_the_first_page,
        wrong_page_size,
    ],
)
async def test_damaged_file_is_not_changed(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = tmp_path / "log.db"
    await written(path)
    damage(path)
    before = contents(tmp_path)

    with pytest.raises(ForeignStoreError, match="damaged"):
        await open_log(f"sqlite:{path}")

    assert before == contents(tmp_path)


async def test_missing_table_is_reported_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await written(path)
    with apsw.Connection(str(path)) as db:
        db.execute("DROP TABLE cursors")
    db.close()

    with pytest.raises(ForeignStoreError, match="damaged"):
        await open_log(f"sqlite:{path}")


async def test_full_check_finds_damage_deep_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await written(path, 2000)
    log = await SqliteLog.open(str(path))
    sound = await log.check()
    await log.close()
    overwrite(path, path.stat().st_size // 2, b"\xff" * 4096)

    log = await SqliteLog.open(str(path))
    found = await log.check()
    await log.close()

    assert sound == []
    assert found


async def test_check_of_a_closed_log_raises(tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.close()

    with pytest.raises(StoreError, match="closed"):
        await log.check()


async def test_missing_file_is_created_with_private_permissions(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "log.db"

    log = await open_log(f"sqlite:{path}")
    await log.append(HERE, 0, rows(HERE, 1))

    assert {"0o600"} == {mode(each) for each in path.parent.iterdir()}
    assert {"0o700"} == {mode(path.parent), mode(path.parent.parent)}
    await log.close()


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


async def test_empty_file_is_initialised(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.touch()

    await written(path)

    with apsw.Connection(str(path)) as db:
        assert APPLICATION_ID == db.pragma("application_id")


async def test_database_without_tables_is_initialised(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with apsw.Connection(str(path)) as db:
        db.execute("CREATE TABLE gone (a); DROP TABLE gone")
    db.close()

    await written(path)

    assert {HERE: 500} == await streams(path)


async def streams(path: Path) -> dict[str, int]:
    log = await open_log(f"sqlite:{path}")
    found = await log.streams()
    await log.close()
    return found


async def test_close_leaves_no_companion_files(tmp_path: Path) -> None:
    await written(tmp_path / "log.db")

    assert {"log.db"} == contents(tmp_path).keys()


async def test_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=str(tmp_path)):
        await open_log(f"sqlite:{tmp_path}")


async def test_file_in_place_of_the_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreError, match="file"):
        await open_log(f"sqlite:{tmp_path / 'file' / 'log.db'}")


async def test_rows_in_a_leftover_write_ahead_log_are_read(tmp_path: Path) -> None:
    log = await open_log(f"sqlite:{tmp_path / 'first' / 'log.db'}")
    await log.append(HERE, 0, rows(HERE, 500))
    shutil.copytree(tmp_path / "first", tmp_path / "second")  # as if power had failed here
    await log.close()

    assert {HERE: 500} == await streams(tmp_path / "second" / "log.db")
