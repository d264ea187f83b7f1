"""A log whose bytes are damaged, and commands that are killed: there is always a whole one."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accord.data_dir import DATABASE_NAME
from tests.helpers.clients.cli import clean_environment, run_accord
from tests.helpers.stores.backup_commands import (
    backup,
    query_database,
    replaced_databases,
    restore,
    stream_heads,
    verify,
)
from tests.helpers.stores.sample_log import ROOM_IDS, build_log

# Damage to the bytes of the file


def flip(file: Path, place: int, length: int = 1) -> None:
    with file.open("r+b") as raw:
        raw.seek(place)
        was = raw.read(length)
        raw.seek(place)
        raw.write(bytes(byte ^ 0x5A for byte in was))


def a_body(home: Path) -> int:
    return (home / DATABASE_NAME).read_bytes().index(b"Number 1")


def a_page(home: Path) -> int:
    """The head of the page that a row lies on."""
    return a_body(home) // 4096 * 4096


@pytest.mark.parametrize(("where", "length"), [(a_body, 1), (a_page, 64)], ids=["body", "page"])
def test_damage_in_the_live_file_is_found_refused_and_mended_by_a_restore(
    where: Any, length: int, home: Path, tmp_path: Path
) -> None:
    file, good = tmp_path / "copy", stream_heads(home)
    backup(home, file)
    flip(home / DATABASE_NAME, where(home), length)

    assert verify(home).code == 5
    read = [run_accord("session", "log", room, "--data-dir", str(home)) for room in ROOM_IDS]
    assert 5 in {each.code for each in read}, read
    assert all(each.code == 0 or "accord restore" in each.err for each in read), read
    assert backup(home, tmp_path / "another").code == 5
    if length > 1:
        doctor = run_accord("doctor", "--data-dir", str(home))
        assert doctor.code == 5
        assert "accord restore" in doctor.out

    ran = restore(home, file, "--force")

    assert ran.code == 0, ran
    assert stream_heads(home) == good
    assert len(replaced_databases(home)) == 1


# Killed at any moment
KILLED = """
import os, signal, sys
from pathlib import Path
from accord.cli.main import main

left = int(sys.argv[1])

def hook(event, args):
    global left
    watched = {"os.rename", "os.link", "os.remove", "os.mkdir", "open"}
    if event in watched and any("accord.db" in str(each) or ".pub" in str(each) for each in args):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.timeout(300)
def test_a_restore_that_is_killed_anywhere_leaves_the_old_log_or_the_new_one_whole(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "copy"
    backup(home, file)
    new = stream_heads(home)
    asyncio.run(build_log(home, rounds=1))
    old = stream_heads(home)
    leave_a_log_beside(home)
    seen, code = set(), None
    for moment in range(1, 100):
        there = tmp_path / "there"
        shutil.rmtree(there, ignore_errors=True)
        shutil.copytree(home, there)
        words = ["restore", str(file), "--force", "--data-dir", str(there)]
        ran = subprocess.run(
            [sys.executable, "-c", KILLED, str(moment), *words],
            env=clean_environment(),
            capture_output=True,
            check=False,
        )
        found = stream_heads(there)
        assert found in (old, new), moment
        seen.add(found == new)
        if found == new:
            (kept,) = replaced_databases(there)
            assert query_database(kept, "SELECT count(*) FROM cursors WHERE name = 'beside'") == [
                (1,)
            ]
        code = ran.returncode
        if code == 0:
            break
        assert code == -signal.SIGKILL, ran
    assert seen == {True, False}
    assert code == 0, "never came to its end"


def leave_a_log_beside(home: Path) -> None:
    """As a killed server does: a committed change that is only in the write-ahead log."""
    code = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA wal_autocheckpoint = 0")
db.execute("INSERT INTO cursors VALUES ('beside', 1)")
db.commit()
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code, str(home / DATABASE_NAME)], check=True)
    assert (home / f"{DATABASE_NAME}-wal").stat().st_size > 0


@pytest.mark.parametrize("moment", range(1, 8))
def test_a_backup_that_is_killed_leaves_no_file_of_that_name(
    moment: int, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "copies" / "accord.db.copy"
    file.parent.mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(moment), "backup", str(file), "--data-dir", str(home)],
        env=clean_environment(),
        capture_output=True,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL or file.exists()
    if file.exists():
        assert restore(tmp_path / "elsewhere", file).code == 0
    assert verify(home).code == 0


def test_a_half_written_draft_of_a_killed_restore_is_cleared_away(
    home: Path, tmp_path: Path
) -> None:
    file, left = tmp_path / "copy", home / f".{DATABASE_NAME}.0a0b0c0d.part"
    backup(home, file)
    left.write_bytes(os.urandom(100))

    assert restore(home, file, "--force").code == 0

    assert not left.exists()
    assert set(stream_heads(home)) == {"people/default", *(f"room/{room}" for room in ROOM_IDS)}
