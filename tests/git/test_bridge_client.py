"""The hook's side of the bridge: whom it asks, what it shows, and when it gives up."""

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from accord.git import bridge_client
from accord.transports.bridge.member_handlers import MEMBER_ACTIONS
from tests.helpers.clients.bridge_client import free_port
from tests.helpers.git.hook_timeout import HOOK_TIMEOUT_S
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

SHA = "a" * 40


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    place = tmp_path_factory.mktemp("b")
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(place)
    try:
        with run_server(place, "token", "--bridge-port", str(port)) as running:
            yield running
    finally:
        os.environ.pop("XDG_RUNTIME_DIR")
        if before is not None:
            os.environ["XDG_RUNTIME_DIR"] = before


@pytest.fixture
def env(
    server: ServerProcess, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Somebody who can read the token, and has no socket to go to."""
    monkeypatch.setattr(bridge_client, "BRIDGE_PORT", port)
    monkeypatch.setattr(bridge_client.request, "__defaults__", (HOOK_TIMEOUT_S,))
    shutil.copy(server.home / "bridge.token", tmp_path / "bridge.token")
    return {"ACCORD_HOME": str(tmp_path), "HOME": str(tmp_path)}


# Over HTTP, where there is no socket


@proves("OPEN-56")
def test_without_a_socket_the_port_is_asked(env: dict[str, str]) -> None:
    told = bridge_client.request("status", env, {"repo": "repo-1"})

    assert told is not None
    assert (told["bridge"], told["sessions"]) == ("accord", [])
    assert bridge_client.is_reachable(env)


def test_what_needs_the_token_is_shown_it(
    env: dict[str, str], server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer, be it that nothing is known, means that we were let in."""
    heard: list[bytes] = []
    received = bridge_client._receive

    def hear(*words: object) -> bytes:
        heard.append(received(*words))  # type: ignore[arg-type]
        return heard[-1]

    monkeypatch.setattr(bridge_client, "_receive", hear)
    bridge_client.request("extended-metadata", env, {"repo": "repo-1", "sha": SHA})
    bridge_client.request("session-started", env, {"repo": "repo-1", "session": "ses_none"})

    assert [each.split(b"\r\n")[0].split()[1] for each in heard] == [b"404", b"404"]


def test_without_the_token_another_data_directory_is_not_meant(env: dict[str, str]) -> None:
    (Path(env["ACCORD_HOME"]) / "bridge.token").unlink()

    assert bridge_client.request("status", env, {}) is None
    assert not bridge_client.is_reachable(env)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_a_token_that_others_can_read_is_not_shown(env: dict[str, str], mode: int) -> None:
    (Path(env["ACCORD_HOME"]) / "bridge.token").chmod(mode)

    assert bridge_client.request("status", env, {}) is None


def test_a_port_of_another_user_is_not_asked(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token would be theirs, and so would what they say of the commit."""
    own = os.getuid()
    monkeypatch.setattr("accord.git.bridge_client.os.getuid", lambda: own + 1)

    assert bridge_client.request("status", env, {}) is None
    assert not bridge_client.is_reachable(env)


def test_where_the_system_does_not_say_whose_a_port_is_it_is_not_asked(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_client, "TCP_TABLE", "/nowhere/tcp")

    assert bridge_client.request("status", env, {}) is None


# A bridge that is no help


@contextmanager
def listener(
    line: socket.socket, answers: Callable[[socket.socket, threading.Event], None]
) -> Iterator[None]:
    """A real socket, where whoever connects is treated so until the test is over."""
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                peer, _ = line.accept()
            except OSError:
                return
            with peer:
                answers(peer, over)

    line.listen()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        line.close()


def silent(peer: socket.socket, over: threading.Event) -> None:
    """Takes what it is told and says nothing."""
    over.wait()


def dribbling(peer: socket.socket, over: threading.Event) -> None:
    """Always says a little more, and never all of it."""
    try:
        while not over.wait(0.1):
            peer.sendall(b" ")
    except OSError:
        pass


def busy(peer: socket.socket, over: threading.Event) -> None:
    del over
    peer.recv(65536)
    peer.sendall(b'{"error": {"code": "INTERNAL_ERROR", "message": "busy"}}\n')


def test_the_refusal_of_the_socket_is_not_replaced_by_that_of_the_port(
    env: dict[str, str],
) -> None:
    """The port may belong to another server, which knows nothing of the commit."""
    path = Path(env["ACCORD_HOME"]) / "bridge.sock"
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.bind(str(path))
    path.chmod(0o600)
    line.listen()
    facts = {"repo": "repo-1", "sha": SHA}
    with listener(line, busy):
        response = bridge_client.request_or_error("extended-metadata", env, facts, HOOK_TIMEOUT_S)

    assert response == {"error": {"code": "INTERNAL_ERROR", "message": "busy"}}


def flooding(peer: socket.socket, over: threading.Event) -> None:
    """Says more than anybody should read."""
    try:
        while not over.is_set():
            peer.sendall(b"x" * 65536)
    except OSError:
        pass


@proves("OPEN-57")
@pytest.mark.parametrize("answers", [silent, dribbling, flooding])
@pytest.mark.parametrize("family", ["socket", "port"])
def test_bridge_client_gives_up_after_one_second(
    family: str,
    answers: Callable[[socket.socket, threading.Event], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if family == "socket":
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.bind(str(tmp_path / "bridge.sock"))
    else:
        line = socket.socket()
        line.bind(("127.0.0.1", 0))
        (tmp_path / "bridge.token").write_text("x" * 43)
        (tmp_path / "bridge.token").chmod(0o600)
        monkeypatch.setattr(bridge_client, "BRIDGE_PORT", line.getsockname()[1])
    with listener(line, answers):
        told = bridge_client.request(
            "commit-context", {"ACCORD_HOME": str(tmp_path)}, {"repo": "r"}
        )

    assert told is None


class Line:
    """Somebody who always says a little more; what they were given time for is kept."""

    def __init__(self) -> None:
        self.given: list[float] = []

    def settimeout(self, seconds: float) -> None:
        self.given.append(seconds)

    def recv(self, _: int) -> bytes:
        return b" "


@proves("OPEN-57")
def test_the_second_is_one_for_all_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of it goes by whenever somebody looks at the clock."""
    quarters = count(start=400)
    monkeypatch.setattr("accord.git.bridge_client.time.monotonic", lambda: next(quarters) / 4)
    line = Line()

    with pytest.raises(TimeoutError):
        bridge_client._receive(line, next(quarters) / 4 + bridge_client.BRIDGE_TIMEOUT_S)  # type: ignore[arg-type]

    assert bridge_client.BRIDGE_TIMEOUT_S == 1.0
    assert line.given == [0.75, 0.5, 0.25]


def test_a_socket_that_another_user_serves_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may be ours while somebody else answers behind it."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.bind(str(tmp_path / "bridge.sock"))
    asked: list[bytes] = []

    def answers(peer: socket.socket, _: threading.Event) -> None:
        asked.append(peer.recv(4096))
        if asked[-1]:
            peer.sendall(b'{"decision":"dec_forged"}\n')

    env = {"ACCORD_HOME": str(tmp_path)}
    asking = ("commit-context", env, {"repo": "r"}, HOOK_TIMEOUT_S)
    with listener(line, answers):
        assert bridge_client.request(*asking) == {"decision": "dec_forged"}
        monkeypatch.setattr(bridge_client, "_peer_uid", lambda _: os.getuid() + 1)
        assert bridge_client.request(*asking) is None

    assert len([each for each in asked if each]) == 1


@pytest.mark.parametrize(
    ("chosen", "seconds"),
    [
        ("", 1.0),
        ("5", 5.0),
        ("3600", bridge_client.MAX_TIMEOUT_S),
        ("-5", 1.0),
        ("1e9", 1.0),
        ("inf", 1.0),
        ("soon", 1.0),
    ],
)
def test_the_environment_gives_a_hook_more_time_and_never_more_than_a_minute(
    chosen: str, seconds: float
) -> None:
    assert bridge_client.response_timeout({"ACCORD_TIMEOUT": chosen}) == seconds


def test_what_is_asked_of_a_server_elsewhere_is_what_it_answers_to_members() -> None:
    assert bridge_client.REMOTE_ACTIONS == MEMBER_ACTIONS
