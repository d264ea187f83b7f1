"""Where the system allows few open files, those who come too many are told, and the store works."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from accord.cli.doctor.check_result import CheckResult
from accord.settings.server.open_files import OpenFileLimit
from tests.helpers.attacks.raw_socket import plug, upgraded
from tests.helpers.clients.cli import clean_environment
from tests.helpers.servers.server_process import SERVER_TIMEOUT_S, Process, ServerProcess

LITTLE = 256
POLL = 0.05


def limited(words: list[str], soft: int, hard: int) -> list[str]:
    """The same for a process that may open so many files, and may ask for so many."""
    return ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$@"', "sh", *words]


@contextlib.contextmanager
def confined(folder: Path, soft: int, hard: int, *flags: str) -> Iterator[ServerProcess]:
    """A server that may open so many files, and may ask for so many."""
    server = ServerProcess(folder, "token", *flags)

    def spawn(words: list[str], log: Path) -> Process:
        confined = limited(words, soft, hard)
        with log.open("ab") as file:
            return subprocess.Popen(confined, stdin=subprocess.DEVNULL, stdout=file, stderr=file)

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


def test_sufficient_file_limit_is_not_changed(tmp_path: Path) -> None:
    with confined(tmp_path, 300, 8000, "--limit", "connections=100") as server:
        assert allowed(server) == 300


@pytest.mark.parametrize(
    ("now", "most", "connections", "room"),
    [
        (None, None, 4096, 4096),
        (LITTLE, None, 4096, 4096),
        (LITTLE, 4224, 4096, 4096),
        (LITTLE, 4223, 4096, 4095),
        (LITTLE, LITTLE, 4096, LITTLE - 128),
        (100, 100, 4096, 50),
        (100, 100, 10, 10),
        (64, 64, 4096, 16),
        (40, 40, 4096, 1),
        (1, 1, 4096, 1),
        (LITTLE, LITTLE, 100, 100),
    ],
)
def test_connections_within_the_file_limit(
    now: int | None, most: int | None, connections: int, room: int
) -> None:
    assert OpenFileLimit(now, most).connections_within(connections) == room
    assert OpenFileLimit(now, most).connections_within(room) == room, (
        "whoever asks for that gets it"
    )


SAYS = "the system allows 256 open files: enough for 128 of 4096 connections"
TOO_FEW = [
    "fail",
    "files",
    "the system allows 48 open files, but a server needs more than 48",
    "Raise it (LimitNOFILE=4224 in systemd, ulimit -Hn 4224).",
]
RAISE = "Raise it (LimitNOFILE=4224 in systemd, ulimit -Hn 4224), or set limits.connections = 128."


@pytest.mark.parametrize(
    ("hard", "found"), [(8000, []), (LITTLE, [["warn", "files", SAYS, RAISE]]), (48, [TOO_FEW])]
)
def test_the_doctor_tells_before_a_server_starts(
    tmp_path: Path, hard: int, found: list[list[str]]
) -> None:
    words = [sys.executable, "-m", "accord", "doctor", "--json", "--data-dir", str(tmp_path / "d")]
    ran = subprocess.run(
        limited(words, min(LITTLE, hard), hard),
        capture_output=True,
        check=False,
        env=clean_environment(),
    )

    checks = json.loads(ran.stdout)["checks"]
    told = [[*CheckResult(**each)] for each in checks if each["about"] == "files"]
    assert told == found


def test_where_it_gets_too_little_it_says_so_and_makes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "d"
    words = [sys.executable, "-m", "accord", "serve", "--port", "0", "--data-dir", str(home)]
    ran = subprocess.run(
        limited(words, 48, 48), capture_output=True, text=True, check=False, env=clean_environment()
    )

    why = "Too few open files: the system allows 48 open files, but a server needs more than 48"
    cure = "raise the limit (LimitNOFILE in systemd, ulimit -n)"
    assert (ran.returncode, ran.stderr) == (6, f"accord: {why}; {cure}\n")
    assert not home.exists()


def test_where_it_gets_very_little_there_is_room_for_as_many_as_it_says(tmp_path: Path) -> None:
    with confined(tmp_path, 64, 64) as server, contextlib.ExitStack() as stack:
        token = server.issue_token("alice")
        for _ in range(16):  # of those who have signed in nobody gives way, however long this takes
            stack.enter_context(upgraded(server, token))

        assert httpx.get(f"{server.url}/healthz", timeout=SERVER_TIMEOUT_S).status_code == 503


@pytest.mark.timeout(120)
def test_where_it_gets_less_it_says_so_and_lets_in_fewer(tmp_path: Path) -> None:
    with confined(tmp_path, LITTLE, LITTLE) as server, contextlib.ExitStack() as stack:
        assert "connections.few" in server.log
        assert f"the system allows {LITTLE} open files" in server.log

        for _ in range(2 * LITTLE):  # within a second nobody gives way
            stack.enter_context(plug(server))

        with httpx.Client(timeout=SERVER_TIMEOUT_S) as web:
            answers = set[int]()
            deadline = time.monotonic() + SERVER_TIMEOUT_S
            while 200 not in answers:
                assert time.monotonic() < deadline, answers
                answers.add(web.get(f"{server.url}/readyz").status_code)
                time.sleep(POLL)
            assert answers <= {200, 503}, "nobody is dropped without a word"
        assert server.issue_token("alice"), "and the store has what it needs"
