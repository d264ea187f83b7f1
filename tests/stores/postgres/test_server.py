"""A real server on a real PostgreSQL."""

import asyncio
import sqlite3
from pathlib import Path

import asyncpg
import pytest

from accord.client import Client
from accord.stores.postgres import PostgresLog, schema
from accord.stores.postgres.errors import DatabaseName
from tests.helpers.clients.cli import UserShell, run_accord
from tests.helpers.servers.postgres_server import SHARED_POSTGRES
from tests.helpers.servers.server_process import ServerProcess, run_server


@pytest.fixture
def database() -> str:
    return SHARED_POSTGRES.server().new_database()


async def new_session(server: ServerProcess, name: str) -> str:
    """A session of alice with this name; returns its id."""
    token = server.issue_token("alice", roles=("admin", "driver"))
    async with Client(server.url, token=token) as alice:
        session = await alice.create(name=name)
        return session.id


async def test_session_outlives_a_killed_server_and_the_log_verifies(
    tmp_path: Path, database: str
) -> None:
    with run_server(tmp_path, "token", "--store", database) as server:
        session = await new_session(server, "Is it still there?")
        server.restart()
        shell = UserShell(tmp_path / "home", server, server.issue_token("alice"))
        shown = shell.output_of("session", "show", session)
        server.stop()

    assert "Is it still there?" in shown
    ran = run_accord("verify", "--store", database, "--data-dir", str(server.home))
    assert ran.code == 0, ran.err
    assert "The log is intact" in ran.out
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(f"file:{server.home / 'accord.db'}?mode=ro", uri=True).execute("SELECT 1")


async def test_log_that_is_being_copied_is_refused(tmp_path: Path, database: str) -> None:
    flags = ("--port", "0", "--store", database, "--data-dir", str(tmp_path / "second"))
    log = await PostgresLog.open(database)
    try:
        await log.claim_server()
        ran = await asyncio.to_thread(run_accord, "serve", *flags)
    finally:
        await log.close()

    assert ran.code == 6
    assert "uses postgresql://127.0.0.1" in ran.err
    assert "stop it first" in ran.err


async def test_log_of_a_running_server_is_not_copied(tmp_path: Path, database: str) -> None:
    with run_server(tmp_path, "token", "--store", database):
        target = f"sqlite:{tmp_path / 'copy.db'}"
        ran = await asyncio.to_thread(run_accord, "store", "copy", database, target)

    assert ran.code == 6
    assert "A server uses postgresql://127.0.0.1" in ran.err


@pytest.mark.parametrize("command", [["verify"], ["compact", "--keep-ended", "1d"]])
def test_empty_database_is_reported_and_not_changed(
    command: list[str], tmp_path: Path, database: str
) -> None:
    ran = run_accord(*command, "--store", database, "--data-dir", str(tmp_path))

    assert ran.code == 4
    assert "There is no log at postgresql://127.0.0.1" in ran.err
    server = SHARED_POSTGRES.server()
    name = database.rpartition("/")[2]
    assert [] == server.run("SELECT 1 FROM pg_namespace WHERE nspname = 'accord'", name)


def test_backup_names_the_tool_of_the_database(tmp_path: Path, database: str) -> None:
    ran = run_accord("backup", str(tmp_path / "copy"), "--store", database)

    assert ran.code == 2
    assert "pg_dump --schema=accord" in ran.err


async def test_tables_of_the_version_before_are_migrated_with_their_records(database: str) -> None:
    name = DatabaseName.from_url(database)
    connection = await asyncpg.connect(database)
    await schema.prepare(connection, name, schema.MIGRATIONS[:-1])
    await connection.execute("UPDATE accord.head SET position = 7")
    await connection.close()

    log = await PostgresLog.open(database)
    try:
        assert await log.position() == 7
        link = await log.link_servers()
        assert await link.find_others() == frozenset()
        await link.stop(hand_over=False)
    finally:
        await log.close()
