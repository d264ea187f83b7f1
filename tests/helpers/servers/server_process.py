"""A real server process that a test can kill, stop and restart."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.request import Request, urlopen

import msgspec

from tests.helpers.servers.fork_server import FORK_SERVER

SERVER_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.01


class ReadyInfo(msgspec.Struct, frozen=True):
    """The contents of a started server's ready file."""

    url: str
    ws_url: str
    pid: int
    admin_token: str


def serve_command(home: Path, port: int, auth: str, ready: Path, *more: str) -> list[str]:
    """The command line that starts a server."""
    flags = {
        "--data-dir": home,
        "--port": port,
        "--auth": auth,
        "--ready-file": ready,
        "--rate-limit": "off",
        **({} if "--bridge-port" in more else {"--bridge-port": "off"}),
    }
    words = [str(word) for flag in flags.items() for word in flag]
    return [sys.executable, "-m", "accord", "serve", *words, *more]


class Process(Protocol):
    """The part of `subprocess.Popen` that the tests use."""

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit; returns the exit code."""
        ...

    def send_signal(self, which: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        ...


def spawn_process(words: list[str], log: Path) -> Process:
    """Start a process that writes its output to `log`."""
    with log.open("ab") as file:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


def reserve_port(owner: object) -> int:
    """A port that no other test gets while `owner` exists.

    It stays bound, so a server can stop and restart on it; meanwhile nothing responds there.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        weakref.finalize(owner, os.close, held.detach())
    return port


class ServerProcess:
    """A server on one data directory, with the same address across restarts.

    `flags` are added to `accord serve`; `spawn` starts the process, by default as a fork of one
    that has imported the code. `spawn_process` runs the command itself.
    """

    def __init__(self, directory: Path, auth: str = "token", *flags: str) -> None:
        self.home = directory / "home"
        self.auth = auth
        self.flags = flags
        self.port = reserve_port(self)
        self.spawn: Callable[[list[str], Path], Process] = FORK_SERVER.spawn
        self.startup_s = 0.0
        self._ready_file = directory / "ready.json"
        self._log_file = directory / "server.log"
        self._process: Process | None = None
        self._ready: ReadyInfo | None = None
        self.home.mkdir(parents=True, exist_ok=True)

    # State

    @property
    def ready(self) -> ReadyInfo:
        """The ready file of the running server."""
        assert self._ready is not None, "the server was never started"
        return self._ready

    @property
    def url(self) -> str:
        """The server's HTTP URL."""
        return self.ready.url

    @property
    def ws_url(self) -> str:
        """The server's WebSocket URL."""
        return self.ready.ws_url

    @property
    def admin_token(self) -> str:
        """A token with operator rights."""
        return self.ready.admin_token

    @property
    def pid(self) -> int:
        """The id of the current process."""
        return self.ready.pid

    @property
    def log(self) -> str:
        """The server's standard error, of all its runs."""
        return self._log_file.read_text("utf-8") if self._log_file.exists() else ""

    @property
    def stored_bytes(self) -> bytes:
        """The contents of all files in the data directory; the server may be writing."""
        contents = b""
        for file in self.home.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # deleted since it was listed
                contents += file.read_bytes() if file.is_file() else b""
        return contents

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    # Control

    def start(self) -> "ServerProcess":
        """Start the server and wait until it accepts connections; sets `startup_s`."""
        started_at = time.monotonic()
        self._ready = self._wait_until_ready(self.launch())
        self.startup_s = time.monotonic() - started_at
        self.port = int(self._ready.url.rpartition(":")[2])
        return self

    def launch(self) -> Process:
        """Start the process without waiting for it."""
        assert not self.is_running, "the server runs already"
        self._ready_file.unlink(missing_ok=True)
        words = serve_command(self.home, self.port, self.auth, self._ready_file, *self.flags)
        self._process = self.spawn(words, self._log_file)
        return self._process

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        self._signal_and_wait(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server gracefully; asserts that it exits with 0."""
        status = self._signal_and_wait(signal.SIGTERM)
        assert status == 0, f"the server exited with {status}:\n{self.log}"

    def request_stop(self) -> None:
        """Send SIGTERM without waiting."""
        self._signal(signal.SIGTERM)

    def restart(self) -> "ServerProcess":
        """Start it again on the same data and port, after killing it if it runs."""
        if self.is_running:
            self.kill()
        return self.start()

    def send_signal(self, which: signal.Signals) -> None:
        """Send any signal."""
        self._signal(which)

    def suspend(self) -> None:
        """Freeze the process: nothing is lost and nothing responds."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a frozen process."""
        self._signal(signal.SIGCONT)

    # Administration

    def issue_token(
        self,
        id: str,
        kind: str = "human",
        roles: Iterable[str] = ("driver",),
        labels: Iterable[str] = (),
        **more: Any,
    ) -> str:
        """Issue a token for a principal."""
        request = {"id": id, "type": kind, "roles": list(roles), "labels": list(labels), **more}
        token: str = self.admin_request("POST", "/admin/tokens", request)["token"]
        return token

    def admin_request(self, method: str, path: str, body: Any = None) -> Any:
        """Send an HTTP request with the operator's token; returns the decoded response."""
        return self.request_as(self.admin_token, path, method, body)

    def request_as(self, token: str, path: str, method: str = "GET", body: Any = None) -> Any:
        """Send an HTTP request with this token; returns the decoded response."""
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Authorization": f"Bearer {token}"}
        request = Request(self.url + path, data, headers, method=method)  # noqa: S310
        with urlopen(request, timeout=SERVER_TIMEOUT_S) as response:  # noqa: S310 - our own address
            content = response.read()
        return msgspec.json.decode(content) if content else None

    # Internal

    def _wait_until_ready(self, process: Process) -> ReadyInfo:
        deadline = time.monotonic() + SERVER_TIMEOUT_S
        while not self._ready_file.exists():
            status = process.poll()
            assert status is None, f"the server exited with {status}:\n{self.log}"
            assert time.monotonic() < deadline, f"the server is not ready:\n{self.log}"
            time.sleep(POLL_INTERVAL_S)
        return msgspec.json.decode(self._ready_file.read_bytes(), type=ReadyInfo)

    def wait_for_exit(self, *signals: signal.Signals) -> int:
        """Send these signals and wait for the exit; returns the exit code."""
        for which in signals:
            self._signal(which)
        assert self._process is not None
        return self._process.wait(SERVER_TIMEOUT_S)

    def _signal(self, which: signal.Signals) -> None:
        assert self._process is not None, "the server was never started"
        self._process.send_signal(which)

    def _signal_and_wait(self, how: signal.Signals) -> int:
        self._signal(how)
        assert self._process is not None
        return self._process.wait(SERVER_TIMEOUT_S)


@contextlib.contextmanager
def run_server(directory: Path, auth: str = "token", *flags: str) -> Iterator[ServerProcess]:
    """Run a server for a test, and fail the test if the server logged a traceback."""
    server = ServerProcess(directory, auth, *flags)
    try:
        yield server.start()
    finally:
        if server.is_running:
            server.resume()
            server.kill()
    assert "Traceback" not in server.log, server.log
    assert '"stack": [' not in server.log, server.log
