"""Migrations: each step happens completely or not at all."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from accord.engine.ports import ForeignStoreError, StoreError
from accord.stores import open_log
from accord.stores.sqlite.database_file import connect, prepare_file
from accord.stores.sqlite.schema import (
    APPLICATION_ID,
    MIGRATIONS,
    Migration,
    newest_version,
    version_of,
)
from tests.contract.rows import rows

HERE = "room/here"
FIRST = [step for step in MIGRATIONS if step[0] == 1]
LATER: list[Migration] = [
    *MIGRATIONS,
    (newest_version() + 1, "CREATE TABLE colours (name TEXT); INSERT INTO colours VALUES ('red')"),
    (newest_version() + 2, "ALTER TABLE colours ADD COLUMN warmth INTEGER NOT NULL DEFAULT 7"),
]


def test_migration_versions_count_from_one() -> None:
    assert list(range(1, newest_version() + 1)) == [version for version, _ in MIGRATIONS]


def test_new_file_has_the_newest_version(tmp_path: Path) -> None:
    path = str(tmp_path / "log.db")

    prepare_file(path)

    with closing(connect(path)) as db:
        assert (newest_version(), APPLICATION_ID) == (version_of(db), db.pragma("application_id"))
        assert "wal" == db.pragma("journal_mode")


async def test_file_of_version_one_is_migrated_with_its_data(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "log.db")
    prepare_file(path, FIRST)
    log = await open_log(f"sqlite:{path}")
    await log.append(HERE, 0, rows(HERE, 3))
    await log.close()

    prepare_file(path, LATER)

    with closing(connect(path)) as db:
        assert newest_version(LATER) == version_of(db)
        assert ("red", 7) == db.execute("SELECT * FROM colours").get
        assert 3 == db.execute("SELECT count(*) FROM records").get
    with pytest.raises(ForeignStoreError, match="later Accord"):
        await open_log(f"sqlite:{path}")


def test_failed_migration_leaves_the_previous_version(tmp_path: Path) -> None:
    path = str(tmp_path / "log.db")
    broken = [*LATER, (newest_version(LATER) + 1, "CREATE TABLE fine (a); CREATE TABLE fine (a)")]

    prepare_file(path, LATER)
    with pytest.raises(StoreError, match="already exists"):
        prepare_file(path, broken)

    with closing(connect(path)) as db:
        assert newest_version(LATER) == version_of(db)
        with pytest.raises(apsw.SQLError):
            db.execute("SELECT * FROM fine")


def test_concurrent_migrations_run_once(tmp_path: Path) -> None:
    path = str(tmp_path / "log.db")

    prepare_file(path, LATER)
    prepare_file(path, LATER)

    with closing(connect(path)) as db:
        assert 1 == db.execute("SELECT count(*) FROM colours").get
