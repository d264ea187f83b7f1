"""A real server in a process of its own, which a test may kill, stop and start again."""

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

PATIENCE = 60.0
POLL = 0.01


class Ready(msgspec.Struct, frozen=True):
    """What a started server writes into its ready file."""

    url: str
    ws_url: str
    pid: int
    admin_token: str


def command(home: Path, port: int, auth: str, ready: Path, *more: str) -> list[str]:
    """How a server is started."""
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
    """What is looked at of a process."""

    def poll(self) -> int | None:
        """What it ended with, if it has."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """What it ends with."""
        ...

    def send_signal(self, which: signal.Signals) -> None:
        """Unless it has ended."""
        ...


def spawned(words: list[str], log: Path) -> Process:
    """A process of its own, started as everybody starts it."""
    with log.open("ab") as file:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


def held_port(owner: object) -> int:
    """A port of this machine that nobody else is given while the owner lives.

    Whoever listens there may stop and come back; meanwhile it is bound, and nobody answers.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        weakref.finalize(owner, os.close, held.detach())
    return port


class ServerProcess:
    """One server on one data directory; its address stays the same over restarts.

    `flags` are further words for `accord serve`; `spawn` is how a process is made of words.
    """

    def __init__(self, directory: Path, auth: str = "token", *flags: str) -> None:
        self.home = directory / "home"
        self.auth = auth
        self.flags = flags
        self.port = held_port(self)
        self.spawn: Callable[[list[str], Path], Process] = spawned
        self.took = 0.0
        self._ready_file = directory / "ready.json"
        self._log_file = directory / "server.log"
        self._process: Process | None = None
        self._ready: Ready | None = None
        self.home.mkdir(parents=True, exist_ok=True)

    # What it tells

    @property
    def ready(self) -> Ready:
        """What the running server wrote when it was ready."""
        assert self._ready is not None, "the server was never started"
        return self._ready

    @property
    def url(self) -> str:
        """Where it speaks HTTP."""
        return self.ready.url

    @property
    def ws_url(self) -> str:
        """Where it speaks PVP."""
        return self.ready.ws_url

    @property
    def admin_token(self) -> str:
        """An operator's token."""
        return self.ready.admin_token

    @property
    def pid(self) -> int:
        """The process that serves now."""
        return self.ready.pid

    @property
    def log(self) -> str:
        """Everything the server complained about, over all its lives."""
        return self._log_file.read_text("utf-8") if self._log_file.exists() else ""

    @property
    def kept(self) -> bytes:
        """Every byte that it keeps, while it may be writing."""
        found = b""
        for file in self.home.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # it is gone since it was listed
                found += file.read_bytes() if file.is_file() else b""
        return found

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.poll() is None

    # What is done to it

    def start(self) -> "ServerProcess":
        """Start it and wait until it accepts connections; `took` says how long that was."""
        began = time.monotonic()
        self._ready = self._wait_until_ready(self.launch())
        self.took = time.monotonic() - began
        self.port = int(self._ready.url.rpartition(":")[2])
        return self

    def launch(self) -> Process:
        """Start it and wait for nothing."""
        assert not self.running, "the server runs already"
        self._ready_file.unlink(missing_ok=True)
        words = command(self.home, self.port, self.auth, self._ready_file, *self.flags)
        self._process = self.spawn(words, self._log_file)
        return self._process

    def kill(self) -> None:
        """End it without a chance to say goodbye (`kill -9`)."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to stop, which it must do properly."""
        status = self._end(signal.SIGTERM)
        assert status == 0, f"the server ended with {status}:\n{self.log}"

    def ask_to_stop(self) -> None:
        """Ask it to stop, and wait for nothing."""
        self._signal(signal.SIGTERM)

    def restart(self) -> "ServerProcess":
        """Start it again on the same data and the same port; a living one is killed first."""
        if self.running:
            self.kill()
        return self.start()

    def send(self, which: signal.Signals) -> None:
        """Tell it something by a signal."""
        self._signal(which)

    def freeze(self) -> None:
        """Let it hang: nothing is lost and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    # What operators do

    def issue(
        self,
        id: str,
        kind: str = "human",
        roles: Iterable[str] = ("driver",),
        labels: Iterable[str] = (),
        **more: Any,
    ) -> str:
        """A token for somebody."""
        wish = {"id": id, "type": kind, "roles": list(roles), "labels": list(labels), **more}
        token: str = self.admin("POST", "/admin/tokens", wish)["token"]
        return token

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Ask something as an operator over HTTP."""
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Authorization": f"Bearer {self.admin_token}"}
        request = Request(self.url + path, data, headers, method=method)  # noqa: S310
        with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - our own address
            said = answer.read()
        return msgspec.json.decode(said) if said else None

    # Inside

    def _wait_until_ready(self, process: Process) -> Ready:
        deadline = time.monotonic() + PATIENCE
        while not self._ready_file.exists():
            ended = process.poll()
            assert ended is None, f"the server ended with {ended}:\n{self.log}"
            assert time.monotonic() < deadline, f"the server is not ready:\n{self.log}"
            time.sleep(POLL)
        return msgspec.json.decode(self._ready_file.read_bytes(), type=Ready)

    def ended(self, *how: signal.Signals) -> int:
        """What it ends with, after these signals."""
        for each in how:
            self._signal(each)
        assert self._process is not None
        return self._process.wait(PATIENCE)

    def _signal(self, which: signal.Signals) -> None:
        assert self._process is not None, "the server was never started"
        self._process.send_signal(which)

    def _end(self, how: signal.Signals) -> int:
        self._signal(how)
        assert self._process is not None
        return self._process.wait(PATIENCE)


@contextlib.contextmanager
def a_server(directory: Path, auth: str = "token", *flags: str) -> Iterator[ServerProcess]:
    """A server for one test; whatever it could not handle fails the test."""
    server = ServerProcess(directory, auth, *flags)
    try:
        yield server.start()
    finally:
        if server.running:
            server.thaw()
            server.kill()
    assert "Traceback" not in server.log, server.log
    assert '"stack": [' not in server.log, server.log
