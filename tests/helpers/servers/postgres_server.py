"""A real PostgreSQL server for tests, with a database of its own for each test."""

import asyncio
import atexit
import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import pytest

from tests.helpers.servers.other_user import as_other_user, give_to_other_user
from tools.test_programs import POSTGRES

START_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.02
USER = "tester"
# Nothing here has to survive a power cut, and kills of processes lose nothing without it.
SETTINGS = {
    "fsync": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "fatal",
    "autovacuum": "off",
}


def program(name: str) -> str:
    """The path of a program of PostgreSQL."""
    server = POSTGRES.find()
    if server is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(POSTGRES.how_to_install)
    return str(Path(server).resolve().with_name(name))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """One server process with its own data directory, run as an unprivileged user."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.data = give_to_other_user(directory / "data")
        self.port = free_port()
        self.settings = SETTINGS | settings | {"unix_socket_directories": str(self.data)}
        self._process: subprocess.Popen[bytes] | None = None
        self._names = (f"test_{number}" for number in itertools.count())
        initdb = (program("initdb"), "-D", str(self.data), "-U", USER, "-A", "trust")
        options = ("-E", "UTF8", "--locale", "C", "--no-sync")
        done = subprocess.run(as_other_user(*initdb, *options), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()

    def start(self) -> "PostgresServer":
        """Start the server and wait until it accepts connections."""
        flags = [flag for key, value in self.settings.items() for flag in ("-c", f"{key}={value}")]
        words = (program("postgres"), "-D", str(self.data), "-p", str(self.port), *flags)
        log = (self.data / "test.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                as_other_user(*words), stdout=log, stderr=log, cwd=self.data
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._accepts():
            text = (self.data / "test.log").read_text()
            assert self._process.poll() is None, f"PostgreSQL ended:\n{text}"
            assert time.monotonic() < deadline, f"PostgreSQL does not answer:\n{text}"
            time.sleep(POLL_INTERVAL_S)
        return self

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it at once, or with another signal (SIGINT: disconnect all, then stop)."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(START_TIMEOUT_S)

    def kill(self) -> None:
        """Kill the server and all its processes with SIGKILL."""
        assert self._process
        for child in children_of(self._process.pid):
            with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(child, signal.SIGKILL)
        self.stop(signal.SIGKILL)

    def url(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = next(self._names)
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)

    def run(self, sql: str, database: str = "postgres") -> list[asyncpg.Record]:
        """Run a statement as the owner of the server, whether or not the caller has a loop."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(self._execute(sql, database))).result()

    async def _execute(self, sql: str, database: str) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.url(database))
        try:
            return list(await connection.fetch(sql))
        finally:
            await connection.close()

    def _accepts(self) -> bool:
        try:
            self.run("SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True


def children_of(pid: int) -> list[int]:
    """The processes that this one has started."""
    found = subprocess.run(
        ["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return [int(line) for line in found.split()]


class SharedPostgres:
    """One server for a whole test run; it starts with the first test that needs it."""

    def __init__(self) -> None:
        self._server: PostgresServer | None = None
        self._directory: Path | None = None

    def server(self) -> PostgresServer:
        if self._server is None:
            # Not in pytest's directory, which only its own user can enter.
            self._directory = Path(tempfile.mkdtemp(prefix="accord-postgres-"))
            self._directory.chmod(0o755)
            self._server = PostgresServer(self._directory).start()
            atexit.register(self.close)
        return self._server

    def close(self) -> None:
        if self._server and self._directory:
            self._server.stop()
            shutil.rmtree(self._directory, ignore_errors=True)
            self._server = None


SHARED_POSTGRES = SharedPostgres()
