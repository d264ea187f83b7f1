"""`accord doctor` on machines that are not well: it goes on, names the cause, and cures that."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from accord.cli.doctor import data_directory
from accord.cli.doctor.check_result import FAIL, OK, WARN, CheckResult
from accord.cli.doctor.command import TEXT_MARGIN, render_check
from accord.data_dir import DATABASE_NAME
from tests.helpers.clients.cli import CommandRun, run_accord
from tests.helpers.clients.unprivileged_cli import run_accord_unprivileged
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.stores.sample_log import build_log
from tests.helpers.stores.small_disk import fill_disk, mount_small_disk, remount_read_only

PAGE = 4096
RESTORE = "accord restore --force FILE"


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    await build_log(tmp_path / "home")
    (tmp_path / "home").chmod(0o700)
    return tmp_path / "home"


def words(home: Path) -> tuple[str, ...]:
    return ("doctor", "--json", "--url", "http://127.0.0.1:1", "--data-dir", str(home))


def found(ran: CommandRun) -> dict[str, CheckResult]:
    return {each["about"]: CheckResult(**each) for each in ran.json["checks"]}


@pytest.fixture
def closed(home: Path) -> Iterator[Path]:
    home.chmod(0)
    yield home
    home.chmod(0o700)


def test_a_folder_that_is_closed_is_named_and_the_rest_is_looked_at(closed: Path) -> None:
    ran = run_accord_unprivileged(*words(closed))

    assert (ran.code, ran.err) == (5, "")
    said = found(ran)
    assert said["data"] == CheckResult(
        FAIL, "data", f"you have no permission to use {closed}", f"chmod 700 {closed}"
    )
    assert said["settings"].found.endswith("accord.toml cannot be read: Permission denied")
    assert {"clock", "server", "token"} <= said.keys()
    assert not {"keys", "store"} & said.keys()


def test_keys_that_cannot_be_read_are_not_said_to_be_missing(home: Path) -> None:
    (pem,) = (home / "keys").glob("*.pem")
    pem.chmod(0)
    one = found(run_accord_unprivileged(*words(home)))["keys"]
    (home / "keys").chmod(0)
    all_ = found(run_accord_unprivileged(*words(home)))["keys"]
    (home / "keys").chmod(0o700)

    assert (one.state, one.fix) == (FAIL, f"chmod 600 {pem}")
    assert (all_.state, all_.fix) == (FAIL, f"chmod 700 {home / 'keys'}")


def test_a_disk_that_may_only_be_read_is_the_matter_and_not_the_log(
    home: Path, tmp_path: Path
) -> None:
    with mount_small_disk(tmp_path / "disk", "8m") as disk:
        home.rename(tmp_path / "moved")
        run_accord(
            "restore", str(tmp_path / "moved" / DATABASE_NAME), "--data-dir", str(disk / "home")
        )
        remount_read_only(disk)
        ran = run_accord(*words(disk / "home"))
        served = run_accord("serve", "--port", "0", "--data-dir", str(disk / "home"))

    said = found(ran)
    assert said["data"].found == f"{disk / 'home'} is on a read-only disk"
    assert "store" not in said
    assert served.code == 6
    assert "Read-only file system; use another path, or mount this one" in served.err


def test_a_full_disk_is_said_to_be_full_and_not_to_fail(home: Path, tmp_path: Path) -> None:
    with mount_small_disk(tmp_path / "disk", "2m") as disk:
        run_accord("backup", str(tmp_path / "copy"), "--data-dir", str(home))
        run_accord("restore", str(tmp_path / "copy"), "--data-dir", str(disk / "home"))
        fill_disk(disk / "filler")
        ran = run_accord(*words(disk / "home"))
        served = run_accord("serve", "--port", "0", "--data-dir", str(disk / "home"))
        fresh = run_accord("serve", "--port", "0", "--data-dir", str(disk / "new"))
        copy = run_accord("backup", str(disk / "copy"), "--data-dir", str(home))

    said = found(ran)
    assert said["disk"].state == FAIL
    assert said["store"].found == f"No disk space left for {disk / 'home' / DATABASE_NAME}"
    assert said["store"].fix.startswith("Free some space and try again")
    assert (served.code, fresh.code, copy.code) == (6, 6, 6)
    assert "free some disk space and try again" in served.err
    assert "free some disk space and try again" in fresh.err
    assert f"No disk space left for {disk / 'copy'}; free some space and try again\n" in copy.err


def test_a_damaged_page_is_told_in_one_line_with_a_cure(home: Path) -> None:
    with closing(sqlite3.connect(home / DATABASE_NAME)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = bytearray((home / DATABASE_NAME).read_bytes())
    for page in range(1, len(whole) // PAGE):
        torn = bytearray(whole)
        torn[page * PAGE : (page + 1) * PAGE] = b"\xff" * PAGE
        (home / DATABASE_NAME).write_bytes(torn)

        (store, *_) = data_directory.check_log(home)

        assert store.state == FAIL, page
        assert "damaged" in store.found
        assert "\n" not in store.found
        assert store.fix.startswith(RESTORE)


def test_a_log_of_a_later_version_is_not_to_be_replaced(home: Path) -> None:
    with closing(sqlite3.connect(home / DATABASE_NAME)) as db:
        db.execute("PRAGMA user_version = 99")

    (store,) = data_directory.check_log(home)

    assert "was written by a later Accord (format 99" in store.found
    assert store.fix == "Use the version of Accord that wrote it, or a newer one."


@pytest.mark.parametrize("empty", [True, False])
def test_keys_without_a_log_are_remarked_before_a_server_makes_a_new_one(
    home: Path, *, empty: bool
) -> None:
    (home / DATABASE_NAME).write_bytes(b"") if empty else (home / DATABASE_NAME).unlink()

    (store,) = data_directory.check_log(home)

    assert store.state == WARN
    assert store.found.startswith("the log is empty, but there are keys from ")
    assert "accord restore FILE" in store.fix


def test_keys_are_as_old_as_the_oldest_of_them(home: Path) -> None:
    (home / DATABASE_NAME).unlink()
    newest = home / "keys" / "0.pub"
    newest.write_bytes(b"")
    (oldest,) = {*(home / "keys").glob("*.pub")} - {newest}
    os.utime(oldest, (0, datetime(2025, 2, 3, tzinfo=UTC).timestamp()))

    (store,) = data_directory.check_log(home)

    assert store.found == "the log is empty, but there are keys from 2025-02-03"


def test_a_log_that_nobody_may_look_for_is_named_and_the_rest_is_looked_at(
    home: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0)

    ran = run_accord_unprivileged(*words(home), ACCORD_STORE=f"sqlite:{elsewhere / DATABASE_NAME}")

    assert (ran.code, ran.err) == (5, "")
    said = found(ran)
    assert said["store"].state == FAIL
    assert said["store"].found == f"{elsewhere / DATABASE_NAME}: Permission denied"
    assert said["store"].fix == "Run this as its owner, or change its permissions"
    assert {"keys", "clock", "server", "token"} <= said.keys()


def test_keys_that_are_seen_and_cannot_be_reached_tell_nothing_of_a_log(home: Path) -> None:
    (home / DATABASE_NAME).unlink()
    (home / "keys").chmod(0o400)
    ran = run_accord_unprivileged(*words(home))
    (home / "keys").chmod(0o700)

    assert (ran.code, ran.err) == (5, "")
    said = found(ran)
    assert (said["keys"].state, said["keys"].fix) == (FAIL, f"chmod 700 {home / 'keys'}")
    assert (said["store"].state, said["store"].found) == (OK, data_directory.NONE_YET)


def test_a_clock_that_was_set_back_is_noticed_by_the_log(home: Path) -> None:
    with closing(sqlite3.connect(home / DATABASE_NAME)) as db, db:
        (body,) = db.execute("SELECT body FROM records ORDER BY pos DESC LIMIT 1").fetchone()
    at = data_directory.record_time_s(body)
    an_hour_before = at - 3600

    said = data_directory.check_clock_behind(at, an_hour_before)

    assert said == [
        CheckResult(
            WARN,
            "clock",
            "1 h behind the newest record of the log",
            data_directory.SET_CLOCK_ADVICE,
        )
    ]
    assert data_directory.check_clock_behind(at, at - data_directory.CLOCK_SKEW_S) == []
    assert abs(at - time.time()) < 20 * 365 * 86400


def test_a_server_is_found_by_the_directory_it_uses(server: ServerProcess) -> None:
    ran = run_accord("doctor", "--json", "--data-dir", str(server.home))

    assert found(ran)["server"] == CheckResult(OK, "server", f"answers at {server.url}")


def test_the_note_of_a_server_that_was_killed_misleads_nobody(home: Path) -> None:
    (home / "server.lock").write_text("http://127.0.0.1:1\n")

    ran = run_accord("doctor", "--json", "--data-dir", str(home), ACCORD_PORT="2")

    assert found(ran)["server"].found.startswith("port 2 ") or "port 2 is free" in ran.out


def test_on_a_narrow_screen_what_was_found_is_folded_and_what_to_type_is_not() -> None:
    said, cure = "one word after another " * 8, "chmod 700 " + "long/" * 30
    lines = list(render_check(CheckResult(OK, "settings", said.strip(), cure), 80))

    assert all(len(line) <= 80 for line in lines[:-1])
    assert all(line[:TEXT_MARGIN].isspace() for line in lines[1:-1])
    assert lines[-1].endswith(cure)
    assert len(list(render_check(CheckResult(OK, "settings", said, ""), None))) == 1
