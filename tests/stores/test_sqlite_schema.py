"""A file of an earlier version becomes one of today, in steps that happen whole or not at all."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from accord.engine.ports import ForeignStoreError, StoreError
from accord.stores import open_log
from accord.stores.sqlite.file import connect, prepare
from accord.stores.sqlite.schema import APPLICATION_ID, MIGRATIONS, Migration, newest, version_of
from tests.contract.rows import rows

HERE = "room/here"
FIRST = [step for step in MIGRATIONS if step[0] == 1]
LATER: list[Migration] = [
    *MIGRATIONS,
    (newest() + 1, "CREATE TABLE colours (name TEXT); INSERT INTO colours VALUES ('red')"),
    (newest() + 2, "ALTER TABLE colours ADD COLUMN warmth INTEGER NOT NULL DEFAULT 7"),
]


def test_versions_count_up_from_one() -> None:
    assert list(range(1, newest() + 1)) == [version for version, _ in MIGRATIONS]


def test_a_new_file_has_the_newest_version(tmp_path: Path) -> None:
    path = str(tmp_path / "log.db")

    prepare(path)

    with closing(connect(path)) as db:
        assert (newest(), APPLICATION_ID) == (version_of(db), db.pragma("application_id"))
        assert "wal" == db.pragma("journal_mode")


async def test_a_file_of_the_first_version_is_brought_up_with_all_that_it_holds(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "log.db")
    prepare(path, FIRST)
    log = await open_log(f"sqlite:{path}")
    await log.append(HERE, 0, rows(HERE, 3))
    await log.close()

    prepare(path, LATER)

    with closing(connect(path)) as db:
        assert newest(LATER) == version_of(db)
        assert ("red", 7) == db.execute("SELECT * FROM colours").get
        assert 3 == db.execute("SELECT count(*) FROM records").get
    with pytest.raises(ForeignStoreError, match="later Accord"):
        await open_log(f"sqlite:{path}")


def test_a_step_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    path = str(tmp_path / "log.db")
    broken = [*LATER, (newest(LATER) + 1, "CREATE TABLE fine (a); CREATE TABLE fine (a)")]

    prepare(path, LATER)
    with pytest.raises(StoreError, match="already exists"):
        prepare(path, broken)

    with closing(connect(path)) as db:
        assert newest(LATER) == version_of(db)
        with pytest.raises(apsw.SQLError):
            db.execute("SELECT * FROM fine")


def test_two_who_bring_up_one_file_do_it_once(tmp_path: Path) -> None:
    path = str(tmp_path / "log.db")

    prepare(path, LATER)
    prepare(path, LATER)

    with closing(connect(path)) as db:
        assert 1 == db.execute("SELECT count(*) FROM colours").get
