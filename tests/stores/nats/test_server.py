"""A real server on a real NATS."""

from pathlib import Path

import pytest

from tests.helpers.clients.cli import UserShell, run_accord
from tests.helpers.servers.nats_server import SHARED_NATS
from tests.helpers.servers.server_process import run_server
from tests.stores.postgres.test_server import new_session


@pytest.fixture
def stream() -> str:
    return SHARED_NATS.server().new_stream()


async def test_session_outlives_a_killed_server_and_the_log_verifies(
    tmp_path: Path, stream: str
) -> None:
    with run_server(tmp_path, "token", "--store", stream) as server:
        session = await new_session(server, "Is it still there?")
        server.restart()
        shell = UserShell(tmp_path / "home", server, server.issue_token("alice"))
        shown = shell.output_of("session", "show", session)
        # Beside the server, with a copy of its own.
        beside = run_accord("verify", "--store", stream, "--data-dir", str(server.home))
        server.stop()

    assert "Is it still there?" in shown
    after = run_accord("verify", "--store", stream, "--data-dir", str(server.home))
    for ran in (beside, after):
        assert ran.code == 0, ran.err
        assert "The log is intact" in ran.out
    assert not (server.home / "accord.db").exists()


async def test_second_server_on_one_log_is_refused(tmp_path: Path, stream: str) -> None:
    with run_server(tmp_path, "token", "--store", stream):
        flags = ("--port", "0", "--store", stream, "--data-dir", str(tmp_path / "second"))
        ran = run_accord("serve", *flags)

    assert ran.code == 6
    assert "Another server uses nats://127.0.0.1" in ran.err


def test_missing_stream_is_reported_and_not_created(tmp_path: Path, stream: str) -> None:
    for _ in range(2):
        ran = run_accord("verify", "--store", stream, "--data-dir", str(tmp_path))

        assert ran.code == 4
        assert "There is no log at nats://127.0.0.1" in ran.err


async def test_log_moves_from_sqlite_to_nats_and_back(tmp_path: Path, stream: str) -> None:
    with run_server(tmp_path, "token") as server:
        session = await new_session(server, "It moves")
        server.stop()
    first, back = f"sqlite:{server.home / 'accord.db'}", f"sqlite:{tmp_path / 'back.db'}"

    for source, target in ((first, stream), (stream, back)):
        ran = run_accord("store", "copy", source, target)
        assert ran.code == 0, ran.err
    keys = ("--data-dir", str(server.home))
    for store in (stream, back):
        ran = run_accord("verify", session, "--store", store, *keys)
        assert ran.code == 0, ran.err


def test_backup_and_retention_name_what_to_do_instead(tmp_path: Path, stream: str) -> None:
    backup = run_accord("backup", str(tmp_path / "copy"), "--store", stream)

    assert backup.code == 2
    assert "nats stream backup" in backup.err
