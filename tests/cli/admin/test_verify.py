"""`accord verify`: what it prints, what it proves, and how it ends."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from accord.data_dir import DATABASE_NAME, store_url_of
from accord.engine.scheduling import SystemClock
from accord.engine.workers import HeadSigner
from accord.identity.token_signing import Keyring
from accord.operations.local_log import open_existing_log
from tests.helpers.clients.cli import UserShell, run_accord
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.stores.sample_log import ROOM_IDS, build_log

ROOM = ROOM_IDS[0]


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A log that is signed to its last record."""
    made = tmp_path / "home"
    await build_log(made)
    return made


def tamper(home: Path) -> None:
    with closing(sqlite3.connect(home / DATABASE_NAME)) as db, db:
        db.execute("UPDATE records SET body = CAST(replace(body, 'Number', 'Member') AS BLOB)")


def head(home: Path, stream: str = ROOM) -> str:
    (found,) = run_accord("verify", stream, "--data-dir", str(home), "--json").json["streams"]
    return f"{found['version']}:{found['hash']}"


async def test_a_log_that_holds_says_what_that_means(home: Path) -> None:
    ran = run_accord("verify", "--data-dir", str(home))

    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "holds    people/default  2 records, all signed"
    assert lines[2] == "holds    room/r1  13 records, all signed"
    assert lines[3].strip() == head(home)
    assert lines[-1].startswith("The log is intact. Signed records are as the server wrote them")


async def test_no_sentence_is_wider_than_the_screen(home: Path) -> None:
    for spoil in (False, True):
        if spoil:
            tamper(home)
        ran = run_accord("verify", ROOM, "--data-dir", str(home), COLUMNS="80")
        said = [line for line in ran.out.splitlines() if not re.search("[0-9a-f]{64}", line)]
        assert max(map(len, said)) <= 80, ran.out


async def test_a_broken_chain_names_the_first_bad_record(home: Path) -> None:
    before = head(home)
    tamper(home)

    ran = run_accord("verify", ROOM, "--data-dir", str(home))

    assert ran.code == 5
    lines = ran.out.splitlines()
    assert lines[:2] == [
        "broken   room/r1",
        "         record 5 does not follow from the one before it",
    ]
    assert lines[2].strip().startswith("good up to 4:")
    assert "The log is broken." in lines[-1]
    told = run_accord("verify", "--data-dir", str(home), "--json")
    assert told.code == 5
    assert told.json["holds"] is False
    assert before not in told.out


async def test_a_head_that_was_noted_is_compared(home: Path) -> None:
    noted = head(home)
    other = f"13:{'0' * 64}"

    assert run_accord("verify", ROOM, "--data-dir", str(home), "--expect", noted).code == 0
    wrong = run_accord("verify", ROOM, "--data-dir", str(home), "--expect", other)
    assert wrong.code == 5
    assert "record 13 differs from the head you noted" in wrong.out


async def test_what_makes_no_sense_is_bad_input(home: Path) -> None:
    assert run_accord("verify", ROOM, "--data-dir", str(home), "--expect", "13:short").code == 2
    assert run_accord("verify", "--data-dir", str(home), "--expect", head(home)).code == 2


async def test_what_is_not_there_is_not_found_and_not_made(home: Path, tmp_path: Path) -> None:
    ran = run_accord("verify", "nowhere", "--data-dir", str(home))
    where = f"the log of {home}; --data-dir selects another log"
    assert (ran.code, ran.err) == (4, f"accord: There is no session nowhere in {where}\n")
    assert run_accord("verify", "--data-dir", str(tmp_path / "none")).code == 4
    assert not (tmp_path / "none").exists()


async def test_keys_that_only_the_log_names_are_told_apart(home: Path) -> None:
    for file in (home / "keys").iterdir():
        file.unlink()

    ran = run_accord("verify", "--data-dir", str(home))

    assert ran.code == 0
    assert "keys that only the log itself contains" in ran.out


def test_it_reads_beside_a_server_that_runs(
    server: ServerProcess, alice: UserShell, session: str
) -> None:
    ran = run_accord("verify", session, "--data-dir", str(server.home))

    assert ran.code == 0
    assert f"room/{session}" in ran.out
    assert alice.output_of("session", "end", session)


async def test_signatures_that_were_taken_away_are_missed(home: Path) -> None:
    with closing(sqlite3.connect(home / DATABASE_NAME)) as db, db:
        db.execute("DELETE FROM heads WHERE stream = ?", (f"room/{ROOM}",))

    ran = run_accord("verify", ROOM, "--data-dir", str(home))

    assert ran.code == 5
    assert ran.out.splitlines()[:2] == [
        (
            "damaged  13 records were signed, but the signatures are missing; "
            "check the records shown as unsigned"
        ),
        "holds    room/r1  13 records, not yet signed",
    ]


async def test_signatures_of_an_earlier_version_are_no_fault_and_are_told_apart(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    await build_log(home, signed=False)
    async with open_existing_log(store_url_of(home)) as events:
        signer = HeadSigner(events, Keyring.open(home / "keys"), SystemClock())
        for stream in await events.streams():
            await events.add_head(signer.head((await events.read(stream))[-1], 0))

    ran = run_accord("verify", "--data-dir", str(home))

    assert (ran.code, ran.err) == (0, "")
    assert "The log is intact." in ran.out
    assert "All signatures are from an earlier version of Accord" in ran.out
    assert run_accord("verify", "--data-dir", str(home), "--json").json["counted"] is False
