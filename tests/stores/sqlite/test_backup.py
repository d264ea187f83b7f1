"""A copy of a file in use is consistent and blocks no writer."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from accord.engine.ports import ForeignStoreError
from accord.stores import open_log
from accord.stores.sqlite import backup
from accord.stores.sqlite.backup import BackupExtras, add_extras, copy_idle, copy_live, take_extras
from tests.contract.rows import rows

HERE = "room/here"
COUNT = 400
INSERT = "INSERT INTO records (stream, version, id, body, hash) VALUES (?, ?, ?, ?, ?)"


@pytest.fixture
async def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    events = await open_log(f"sqlite:{path}")
    await events.append(HERE, 0, rows(HERE, COUNT))
    await events.close()
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    made = tmp_path / "copy.db"
    made.touch(0o600)
    return made


def silent(done: int, pages: int) -> None:
    pass


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        (found,) = db.execute("SELECT count(*) FROM records").fetchone()
    assert isinstance(found, int)
    return found


def test_commits_during_a_copy_neither_wait_nor_appear_in_it(
    log: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "STEP_PAGES", 1)
    steps: list[tuple[int, int]] = []
    with closing(sqlite3.connect(log, timeout=0, isolation_level=None)) as writer:

        def commit(done: int, pages: int) -> None:
            steps.append((done, pages))
            sql = (
                "INSERT INTO records (stream, version, id, body, hash) VALUES (1, ?, ?, x'00', x'')"
            )
            writer.execute(sql, (COUNT + len(steps), f"beside-{len(steps)}"))

        copy_live(str(log), str(target), commit)

    assert count(target) == COUNT
    assert count(log) == COUNT + len(steps)
    # It never began anew, although every step saw a commit.
    assert [done for done, _ in steps] == list(range(1, len(steps) + 1))
    assert not list(target.parent.glob("copy.db-*"))


def test_idle_file_is_copied_without_leaving_files(log: Path, target: Path) -> None:
    log.chmod(0o400)
    before = {each.name: each.read_bytes() for each in log.parent.iterdir() if each != target}

    copy_idle(str(log), str(target), silent)

    assert count(target) == COUNT
    assert {
        each.name: each.read_bytes() for each in log.parent.iterdir() if each != target
    } == before


def test_file_with_a_write_ahead_log_is_refused(log: Path, target: Path) -> None:
    log.with_name("log.db-wal").write_bytes(b"more")

    with pytest.raises(ForeignStoreError, match="accord backup"):
        copy_idle(str(log), str(target), silent)


def test_extras_are_removed_without_a_trace(log: Path, target: Path) -> None:
    copy_live(str(log), str(target), silent)
    add_extras(str(target), BackupExtras(17, {"a.pem": b"very private" * 50}))
    assert b"very private" in target.read_bytes()

    assert take_extras(str(target)) == BackupExtras(17, {"a.pem": b"very private" * 50})

    assert b"very private" not in target.read_bytes()
    assert take_extras(str(target)) == BackupExtras()
    assert count(target) == COUNT
