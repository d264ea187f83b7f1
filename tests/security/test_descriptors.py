"""Where the system allows few open files, those who come too many are told, and the store works."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.helpers.server import PATIENCE, Process, ServerProcess
from tests.security.raw import plug

LITTLE = 256
POLL = 0.05


@contextlib.contextmanager
def confined(folder: Path, soft: int, hard: int, *flags: str) -> Iterator[ServerProcess]:
    """A server that may open so many files, and may ask for so many."""
    server = ServerProcess(folder, "token", *flags)

    def spawn(words: list[str], log: Path) -> Process:
        limited = ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$@"', "sh", *words]
        with log.open("ab") as file:
            return subprocess.Popen(limited, stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    server.spawn = spawn
    try:
        yield server.start()
    finally:
        server.kill()
    assert "Traceback" not in server.log, server.log


def allowed(server: ServerProcess) -> int:
    """How many files the system lets it open."""
    lines = Path(f"/proc/{server.pid}/limits").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("Max open files")).split()[3])


def test_a_server_asks_for_what_its_connections_need(tmp_path: Path) -> None:
    with confined(tmp_path, LITTLE, 8000) as server:
        assert allowed(server) > 4096
        assert "connections.few" not in server.log


def test_what_is_enough_is_left_as_it_is(tmp_path: Path) -> None:
    with confined(tmp_path, 300, 8000, "--limit", "connections=100") as server:
        assert allowed(server) == 300


@pytest.mark.timeout(120)
def test_where_it_gets_less_it_says_so_and_lets_in_fewer(tmp_path: Path) -> None:
    with confined(tmp_path, LITTLE, LITTLE) as server, contextlib.ExitStack() as stack:
        assert "connections.few" in server.log
        assert f"the system allows {LITTLE} open files" in server.log

        for _ in range(2 * LITTLE):  # within a second nobody gives way
            stack.enter_context(plug(server))

        with httpx.Client(timeout=PATIENCE) as web:
            answers = set[int]()
            deadline = time.monotonic() + PATIENCE
            while 200 not in answers:
                assert time.monotonic() < deadline, answers
                answers.add(web.get(f"{server.url}/readyz").status_code)
                time.sleep(POLL)
            assert answers <= {200, 503}, "nobody is dropped without a word"
        assert server.issue("alice"), "and the store has what it needs"
