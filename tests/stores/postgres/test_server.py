"""A real server on a real PostgreSQL."""

import sqlite3
from pathlib import Path

import pytest

from accord.client import Client
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


async def test_second_server_on_one_log_is_refused(tmp_path: Path, database: str) -> None:
    with run_server(tmp_path, "token", "--store", database):
        flags = ("--port", "0", "--store", database, "--data-dir", str(tmp_path / "second"))
        ran = run_accord("serve", *flags)

    assert ran.code == 6
    assert "Another server uses postgresql://127.0.0.1" in ran.err


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
