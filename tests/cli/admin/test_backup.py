"""`accord backup` and `accord restore`: real processes, real files."""

import asyncio
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from accord.client import Client
from accord.core.room.conversation.prompts import PromptSubmit
from accord.data_dir import DATABASE_NAME
from accord.stores.sqlite import backup as copying
from tests.helpers.clients.cli import COMMAND_TIMEOUT_S, run_accord
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.helpers.stores.backup_commands import (
    backup,
    query_database,
    replaced_databases,
    restore,
    stream_heads,
    verify,
)
from tests.helpers.stores.sample_log import build_log

MEANWHILE = 4  # things that are said while a copy is made

# A copy


def test_a_backup_is_one_file_for_its_owner_alone_and_says_what_it_holds(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "copies" / "one.backup"
    file.parent.mkdir()

    ran = backup(home, file)

    assert ran.code == 0, ran
    assert [each.name for each in file.parent.iterdir()] == ["one.backup"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "2 sessions, 28 records; verified, head " in ran.out
    assert "no private key" in ran.out


def test_private_keys_are_in_it_only_on_request(home: Path, tmp_path: Path) -> None:
    plain, full = tmp_path / "plain", tmp_path / "full"
    backup(home, plain)
    said = backup(home, full, "--with-keys")

    assert "PRIVATE KEYS" in said.out
    assert b"PRIVATE KEY" not in plain.read_bytes()
    assert b"PRIVATE KEY" in full.read_bytes()
    assert b"PUBLIC KEY" in plain.read_bytes()


def test_another_file_is_replaced_only_by_force_and_a_link_is_not_followed(
    home: Path, tmp_path: Path
) -> None:
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("mine")
    link.symlink_to(precious)

    refused = backup(home, link)
    forced = backup(home, link, "--force")

    assert refused.code == 5
    assert "--force" in refused.err
    assert forced.code == 0, forced
    assert precious.read_text() == "mine"
    assert not link.is_symlink()


def test_a_backup_cannot_take_the_place_of_its_own_log(home: Path) -> None:
    for name in (DATABASE_NAME, f"{DATABASE_NAME}-wal"):
        ran = backup(home, home / name, "--force")
        assert (ran.code, "part of the log" in ran.err) == (2, True), ran
    assert verify(home).code == 0


def test_where_there_is_no_log_there_is_no_backup(tmp_path: Path) -> None:
    ran = backup(tmp_path, tmp_path / "copy")

    assert ran.code == 4
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_does_not_hold_is_not_backed_up(home: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home / DATABASE_NAME)) as db, db:
        db.execute("UPDATE records SET body = CAST(replace(body, 'Number', 'Member') AS BLOB)")
    folder = tmp_path / "copies"
    folder.mkdir()

    ran = backup(home, folder / "copy")

    assert ran.code == 5
    assert "room/r1 5 does not follow" in ran.err
    assert list(folder.iterdir()) == []


# And back


def test_a_restored_log_is_the_one_that_was_copied(home: Path, tmp_path: Path) -> None:
    file, elsewhere = tmp_path / "copy", tmp_path / "elsewhere"
    made = backup(home, file, "--with-keys", "--json").json
    bytes_before = file.read_bytes()

    ran = restore(elsewhere, file, "--json")

    assert ran.code == 0, ran
    assert ran.json["head"] == made["head"]
    assert ran.json["keys_now"] == "restored"
    assert stream_heads(elsewhere) == stream_heads(home)
    assert file.read_bytes() == bytes_before
    names = {each.name for each in (elsewhere / "keys").iterdir()}
    assert names == {each.name for each in (home / "keys").iterdir()}
    assert all(
        stat.S_IMODE(each.stat().st_mode) == 0o600 for each in (elsewhere / "keys").iterdir()
    )
    assert b"PRIVATE KEY" not in (elsewhere / DATABASE_NAME).read_bytes()
    assert (
        query_database(
            elsewhere / DATABASE_NAME, "SELECT name FROM sqlite_schema WHERE name = 'keyring'"
        )
        == []
    )


def test_a_log_that_is_there_gives_way_only_to_force_and_is_moved_aside(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "copy"
    backup(home, file)
    asyncio.run(build_log(home, rounds=1))  # more tokens: the log moved on
    later = stream_heads(home)

    refused = restore(home, file)
    assert refused.code == 5
    assert stream_heads(home) == later

    forced = restore(home, file, "--force")
    assert forced.code == 0, forced
    assert stream_heads(home) != later
    (old,) = replaced_databases(home)
    assert str(old) in forced.out
    assert "The existing keys are kept" in forced.out
    old_home = tmp_path / "old"
    shutil.copytree(home / "keys", old_home / "keys")
    shutil.copy(old, old_home / DATABASE_NAME)
    assert stream_heads(old_home) == later


def test_a_damaged_backup_is_refused_before_anything_is_touched(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy"
    backup(home, file)
    before = stream_heads(home)
    data = bytearray(file.read_bytes())
    place = data.index(b"Number 1")
    data[place] ^= 1
    file.write_bytes(data)

    ran = restore(home, file, "--force")

    assert ran.code == 5
    assert "failed verification" in ran.err
    assert stream_heads(home) == before
    assert replaced_databases(home) == []


@pytest.mark.parametrize("content", [b"", b"not a database " * 1000], ids=["empty", "text"])
def test_what_is_no_backup_is_refused(content: bytes, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy"
    file.write_bytes(content)

    ran = restore(home, file, "--force")

    assert ran.code == 5, ran
    assert "not a log of Accord" in ran.err
    assert verify(home).code == 0
    assert not list(home.glob(".*.part*"))


def test_a_backup_cannot_write_outside_the_keys(home: Path, tmp_path: Path) -> None:
    file, elsewhere = tmp_path / "copy", tmp_path / "elsewhere"
    backup(home, file)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT INTO keyring VALUES ('../../escaped.pub', x'00')")

    ran = restore(elsewhere, file)

    assert ran.code == 5
    assert not (elsewhere / DATABASE_NAME).exists()
    assert not list(tmp_path.glob("**/escaped*"))


HOSTILE = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM heads; END",
    "view for a table": """
        ALTER TABLE records RENAME TO others; CREATE VIEW records AS SELECT * FROM others
    """,
    "view beside": "DROP TABLE backup; CREATE VIEW backup AS SELECT 1 AS made_at",
    "lost index": "DROP INDEX records_version",
    "another table": "ALTER TABLE records ADD COLUMN more",
    "earlier version": "PRAGMA user_version = 1",
    "no keyring": "DROP TABLE keyring",
    "bytes for a name": "INSERT INTO keyring VALUES (x'61', x'00')",
    "text for a key": "UPDATE keyring SET content = 'AAAA'",
    "no time": "UPDATE backup SET made_at = 'yesterday'",
    "a time beyond all": "UPDATE backup SET made_at = 9223372036854775807",
    "no public key": "UPDATE keyring SET content = x'00' WHERE name LIKE '%.pub'",
    "no private key": "UPDATE keyring SET content = x'00' WHERE name LIKE '%.pem'",
    "half a key": "DELETE FROM keyring WHERE name LIKE '%.pub'",
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_backup_that_somebody_changed_is_refused_and_leaves_nothing(
    change: str, home: Path, tmp_path: Path
) -> None:
    file, elsewhere = tmp_path / "copy", tmp_path / "elsewhere"
    backup(home, file, "--with-keys")
    with closing(sqlite3.connect(file)) as db:
        db.executescript(change)

    ran = restore(elsewhere, file)

    assert ran.code == 5, ran
    assert {each.name for each in elsewhere.iterdir()} == {"server.lock", ".gitignore"}


def test_a_log_that_would_change_itself_is_not_opened(home: Path) -> None:
    with closing(sqlite3.connect(home / DATABASE_NAME)) as db, db:
        db.execute(HOSTILE["trigger"])

    ran = verify(home)

    assert (ran.code, "the trigger t in it is not ours" in ran.err) == (5, True), ran


def test_a_key_that_was_rotated_away_does_not_come_back(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy"
    backup(home, file, "--with-keys")
    assert run_accord("keys", "rotate", "--data-dir", str(home)).code == 0
    keys = {each.name for each in (home / "keys").iterdir()}

    ran = restore(home, file, "--force", "--json")

    assert ran.json["keys_now"] == "kept"
    assert {each.name for each in (home / "keys").iterdir()} == keys


# With a server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with run_server(tmp_path / "server") as running:
        yield running


def test_a_restore_waits_for_no_running_server(server: ServerProcess, tmp_path: Path) -> None:
    file = tmp_path / "copy"
    assert backup(server.home, file).code == 0

    ran = restore(server.home, file, "--force")

    assert ran.code == 6
    assert "stop it first" in ran.err


async def test_a_backup_under_load_holds_all_that_was_acknowledged_before_it_and_tokens_stay_good(
    server: ServerProcess, tmp_path: Path
) -> None:
    token = server.issue_token("alice", roles=("admin", "driver"))
    agent = server.issue_token("claude", "agent")
    async with Client(server.url, token=token) as alice, Client(server.url, token=agent) as claude:
        room = await alice.create()
        await claude.join(room.id, listen=False)
        acknowledged: list[int] = []

        async def talk() -> None:
            while True:
                number = len(acknowledged)
                said = [
                    PromptSubmit(f"alice:{number + n}", "claude", ("alice",), ()) for n in range(16)
                ]
                answers = await asyncio.gather(*(room.say(each) for each in said))
                acknowledged.extend(each.seq for each in answers)

        talking = asyncio.create_task(talk())
        try:
            for copy in range(3):
                before = len(acknowledged)
                ran = await asyncio.to_thread(backup, server.home, tmp_path / f"{copy}", "--json")
                assert ran.code == 0, ran
                await check_prefix(tmp_path / f"{copy}", acknowledged[:before])
        finally:
            talking.cancel()
    server.stop()
    assert restore(server.home, tmp_path / "2", "--force").code == 0
    server.start()
    async with Client(server.url, token=token) as alice:
        read = [each.seq async for each in alice.history(room.id)]
    assert read == list(range(1, len(read) + 1))
    server.stop()


async def test_writers_wait_for_no_copy(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy does not go on before somebody has said something more."""
    monkeypatch.setattr(copying, "STEP_PAGES", 1)
    loop, target, left = asyncio.get_running_loop(), tmp_path / "copy", list[int]()
    target.touch()
    token = server.issue_token("alice", roles=("admin", "driver"))
    async with Client(server.url, token=token) as alice:
        room = await alice.create()

        def goes_on(done: int, pages: int) -> None:
            left.append(pages - done)
            if len(left) <= MEANWHILE:
                said = room.presence("idle" if len(left) % 2 else "active")
                asyncio.run_coroutine_threadsafe(said, loop).result(COMMAND_TIMEOUT_S)

        source = str(server.home / DATABASE_NAME)
        await asyncio.to_thread(copying.copy_live, source, str(target), goes_on)
        said = [each.type async for each in alice.history(room.id)]

    assert left[MEANWHILE] > 0, "it was still being copied"
    assert said.count("presence.update") == MEANWHILE
    assert b"presence.update" not in target.read_bytes()


async def check_prefix(file: Path, acknowledged: list[int]) -> None:
    """Positions without a gap from the first on, and everything said before it began."""
    ((newest, count),) = query_database(file, "SELECT max(pos), count(*) FROM records")
    assert newest == count
    seqs = {
        seq
        for (seq,) in query_database(file, "SELECT json_extract(body, '$.said.seq') FROM records")
        if seq is not None
    }
    assert set(acknowledged) <= seqs


def test_without_private_keys_tokens_stay_good_and_a_new_key_signs(
    server: ServerProcess, tmp_path: Path
) -> None:
    token = server.issue_token("alice", roles=("admin", "driver"))
    file = tmp_path / "copy"
    backup(server.home, file)
    server.stop()
    old_keys = {each.stem for each in (server.home / "keys").glob("*.pem")}
    shutil.rmtree(server.home)

    ran = restore(server.home, file)
    assert ran.code == 0, ran
    assert "makes a new key" in ran.out
    server.start()

    listed = run_accord("session", "list", ACCORD_URL=server.url, ACCORD_TOKEN=token)
    assert listed.code == 0, listed
    assert {each.stem for each in (server.home / "keys").glob("*.pem")}.isdisjoint(old_keys)
    server.stop()
    assert verify(server.home).code == 0
