"""Nobody else's process, and no page of any site, gets anything through the git bridge."""

import asyncio
import json
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.transports.bridge.actions import (
    MAX_REQUEST_BYTES,
    REQUEST_BURST,
    ActionResponse,
    RequestRate,
)
from accord.transports.bridge.listeners import ListenAddresses
from accord.transports.bridge.socket_files import UnusableSocket, bind_socket
from accord.transports.bridge.token_file import TOKEN_FILE, load_or_create_token
from accord.transports.bridge.unix_server import UnixServer
from tests.helpers.clients import bridge_client
from tests.helpers.clients.bridge_client import REPO_ID, http_request
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

BIND = {"repo": REPO_ID, "session": "s"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose name is short enough for a socket."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


class House:
    """A server with a bridge port of its own."""

    def __init__(self, server: ServerProcess, port: int) -> None:
        self.server, self.port = server, port
        self.token = (server.home / TOKEN_FILE).read_text("ascii").strip()

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, Any], dict[str, str]]:
        return http_request(self.port, "GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
        return http_request(self.port, "POST", path, body, **headers)[:2]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One server for all attacks; the places that all servers share are this test's own."""
    port, place = bridge_client.free_port(), tmp_path_factory.mktemp("b")
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(place)
    try:
        with run_server(place, "token", "--bridge-port", str(port)) as server:
            yield House(server, port)
    finally:
        os.environ.pop("XDG_RUNTIME_DIR")
        if before is not None:
            os.environ["XDG_RUNTIME_DIR"] = before


# Over HTTP


@proves("OPEN-56", "PVP-18.1-2")
def test_the_port_answers_this_machine_and_says_which_server_it_is(house: House) -> None:
    status, told, headers = house.get("/status")

    assert (status, told["bridge"]) == (200, "accord")
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9847", "127.0.0.1.evil.example", "127.0.0.1:1", ""]
)
def test_another_name_for_this_machine_is_refused(house: House, host: str) -> None:
    """DNS rebinding: the page's own name leads here, and the browser sends that name."""
    status, told, _ = house.get("/status", Host=host)

    assert (status, "bridge" in told) == (403, False)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9847"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-origin"},
    ],
)
def test_pages_get_nothing_wherever_they_come_from(house: House, headers: dict[str, str]) -> None:
    got, told, _ = house.get(f"/commit-context?repo={REPO_ID}", **headers)
    owner = {"Authorization": f"Bearer {house.token}", **headers}
    posted, _ = house.post("/session-started", BIND, **owner)

    assert (got, posted) == (403, 403)
    assert "session" not in told


def test_no_page_is_told_that_it_may(house: House) -> None:
    status, _, headers = http_request(house.port, "OPTIONS", "/session-started")

    assert status == 405
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize("token", [None, "", "wrong", "Bearer", "0" * 43])
def test_whoever_cannot_read_the_token_file_changes_nothing(
    house: House, token: str | None
) -> None:
    shown = {} if token is None else {"Authorization": f"Bearer {token}"}

    for path in (
        "commit-created",
        "session-started",
        "session-ended",
        "pact-changed",
        "place-removed",
        "message",
        "reset",
    ):
        status, told = house.post(f"/{path}", BIND, **shown)
        assert (status, told["error"]["code"]) == (401, "UNAUTHORIZED"), path
    for path in (f"/extended-metadata?repo={REPO_ID}&sha={'a' * 40}", f"/places?repo={REPO_ID}"):
        status, _, _ = house.get(path, **shown)
        assert status == 401


def test_an_operators_token_is_not_the_token_file(house: House) -> None:
    shown = {"Authorization": f"Bearer {house.server.admin_token}"}

    assert house.post("/reset", BIND, **shown)[0] == 401


def test_the_owner_is_let_in_and_what_makes_no_sense_is_refused(house: House) -> None:
    shown = {"Authorization": f"Bearer {house.token}"}

    assert house.post("/session-started", BIND, **shown)[0] == 404
    assert house.post("/session-started", [1], **shown)[0] == 400
    assert house.post("/session-started", BIND | {"repo": "../x"}, **shown)[0] == 400
    assert house.get(f"/commits?repo={REPO_ID}&limit=9999")[0] == 400
    assert house.get(f"/commits?repo={REPO_ID}&limit=5")[0] == 200
    assert house.get(f"/commits?repo={REPO_ID}&repo=other")[0] == 400
    assert house.get("/session-started")[0] == 405
    status, told, headers = house.get("/admin/keys")
    assert (status, told["error"]["code"]) == (404, "INVALID_MESSAGE")
    assert "/commit-context, " in told["error"]["message"]
    assert headers["content-type"] == "application/json"
    large = {"files": ["x" * 1000] * 1100}
    assert house.post("/commit-created", BIND | large, **shown)[0] == 413


def test_only_this_machine_can_reach_it(house: House) -> None:
    rows = Path("/proc/net/tcp").read_text("ascii").splitlines()
    listening = [row.split()[1] for row in rows[1:] if row.split()[3] == "0A"]

    assert f"0100007F:{house.port:04X}" in listening
    assert f"00000000:{house.port:04X}" not in listening


# The socket


def test_the_sockets_and_the_token_are_their_owners_alone(house: House, tmp_path: Path) -> None:
    runtime = Path(os.environ["XDG_RUNTIME_DIR"]) / "accord" / "bridge.sock"
    for path in (house.server.home / "bridge.sock", runtime):
        info = path.lstat()
        assert stat.S_ISSOCK(info.st_mode)
        assert stat.S_IMODE(info.st_mode) == 0o600
        assert bridge_client.send_action(path, "status")["bridge"] == "accord"
    assert stat.S_IMODE((house.server.home / TOKEN_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"not json\n",
        b"[]\n",
        b'{"action":"approve"}\n',
        b'{"action":["status"]}\n',
        b'{"action":"__init__"}\n',
        b'{"action":"commit-created","repo":"r","sha":"HEAD"}\n',
        b'{"action":"commit-context","repo":"../../etc"}\n',
        b'{"action":' + b"[" * 5000 + b"\n",
    ],
)
def test_a_line_that_makes_no_sense_is_answered_and_harms_nothing(
    house: House, line: bytes
) -> None:
    told = json.loads(bridge_client.send_raw(house.server.home / "bridge.sock", line))

    assert told["error"]["code"] == "INVALID_MESSAGE"


def test_a_line_without_end_is_refused(house: House) -> None:
    path = house.server.home / "bridge.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(bridge_client.BRIDGE_TIMEOUT_S)
        line.connect(str(path))
        with pytest.raises(OSError, match=r"pipe|reset"):
            line.sendall(b"x" * MAX_REQUEST_BYTES * 64)
    assert bridge_client.send_action(path, "status")["bridge"] == "accord"


class Witness:
    """A clerk who notes whether anybody got as far as to ask."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def handler_of(self, name: str) -> Any:
        async def answer(_: object) -> ActionResponse:
            self.asked.append(name)
            return {"fine": True}

        return answer


@pytest.mark.parametrize("who", [os.geteuid() + 1, 0xFFFF_FFFE, None])
async def test_another_users_process_is_refused_even_if_it_can_open_the_file(
    folder: Path, who: int | None
) -> None:
    clerk = Witness()
    lines = UnixServer(clerk, uid=lambda _: who)
    await lines.listen(bind_socket(folder / "s"))
    try:
        told = await asyncio.to_thread(bridge_client.send_action, folder / "s", "status")
    finally:
        lines.close()

    assert told["error"]["code"] == "UNAUTHORIZED"
    assert clerk.asked == []


async def test_the_kernel_says_who_connects(folder: Path) -> None:
    clerk = Witness()
    lines = UnixServer(clerk)
    await lines.listen(bind_socket(folder / "s"))
    told = await asyncio.to_thread(bridge_client.send_action, folder / "s", "status")
    lines.close()

    assert told == {"fine": True}
    assert not (folder / "s").exists()


# Squatters


def test_a_socket_that_a_killed_server_left_is_replaced(folder: Path) -> None:
    bind_socket(folder / "s").sock.close()

    again = bind_socket(folder / "s")

    assert stat.S_ISSOCK((folder / "s").lstat().st_mode)
    again.sock.close()


def test_a_socket_that_lives_is_left_alone(folder: Path) -> None:
    first = bind_socket(folder / "s")

    with pytest.raises(UnusableSocket, match="another server"):
        bind_socket(folder / "s")

    first.sock.close()


def test_a_link_is_not_followed_and_not_removed(folder: Path) -> None:
    (folder / "precious").write_text("keep")
    (folder / "s").symlink_to(folder / "precious")
    (folder / "t").symlink_to(folder / "nowhere")

    for name in ("s", "t"):
        with pytest.raises(UnusableSocket):
            bind_socket(folder / name)

    assert (folder / "precious").read_text() == "keep"
    assert not (folder / "nowhere").exists()


def test_somebody_elses_socket_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = bind_socket(folder / "s")
    theirs.sock.close()
    me = os.geteuid()
    monkeypatch.setattr("accord.transports.bridge.socket_files.os.geteuid", lambda: me + 1)
    folder.chmod(0o1777)

    with pytest.raises(UnusableSocket, match="belongs to another user"):
        bind_socket(folder / "s")

    assert (folder / "s").exists()


def test_a_folder_that_others_can_change_holds_no_socket(folder: Path) -> None:
    folder.chmod(0o777)

    with pytest.raises(UnusableSocket, match="only you can write to"):
        bind_socket(folder / "s")


def test_a_folder_that_is_a_link_holds_no_socket(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "link").symlink_to(folder / "real")

    with pytest.raises(UnusableSocket):
        bind_socket(folder / "link" / "s")


def test_at_the_end_only_our_own_file_is_removed(folder: Path) -> None:
    ours = bind_socket(folder / "s")
    (folder / "s").unlink()
    (folder / "s").write_text("another's")

    ours.remove()

    assert (folder / "s").read_text() == "another's"
    ours.sock.close()


def test_a_name_that_is_too_long_is_said_so(folder: Path) -> None:
    with pytest.raises(UnusableSocket, match="shorter"):
        bind_socket(folder / ("x" * 120))


def test_without_a_port_only_the_servers_own_folder_has_a_socket(folder: Path) -> None:
    env = {"XDG_RUNTIME_DIR": "/run/user/1"}
    own, common = folder / "bridge.sock", Path("/tmp/pvp-git-bridge.sock")

    assert list(ListenAddresses(folder, None, env).sockets()) == [own]
    assert list(ListenAddresses(folder, 9847, env).sockets()) == [
        own,
        Path("/run/user/1/accord/bridge.sock"),
        common,
    ]
    assert list(ListenAddresses(folder, 9847, {"XDG_RUNTIME_DIR": "here"}).sockets()) == [
        own,
        common,
    ]


# Bounds and the rest


def test_the_token_is_kept_and_one_that_others_could_read_is_not(folder: Path) -> None:
    first = load_or_create_token(folder)
    assert load_or_create_token(folder) == first
    (folder / TOKEN_FILE).chmod(0o644)
    second = load_or_create_token(folder)
    (folder / TOKEN_FILE).unlink()
    (folder / "elsewhere").write_text("a" * 43)
    (folder / TOKEN_FILE).symlink_to(folder / "elsewhere")

    third = load_or_create_token(folder)

    assert len({first, second, third, "a" * 43}) == 4
    assert not (folder / TOKEN_FILE).is_symlink()


def test_bridge_rate_limit_refuses_with_a_wait() -> None:
    now = [0.0]
    meter = RequestRate(lambda: now[0])
    for _ in range(int(REQUEST_BURST)):
        meter.charge()

    with pytest.raises(Refused) as no:
        meter.charge()

    assert no.value.reason is Reason.TOO_MANY
    now[0] += 1
    meter.charge()


def test_a_port_that_is_taken_is_a_warning_and_everything_is_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        with run_server(tmp_path / "s", "token", "--bridge-port", str(port)) as server:
            path = server.home / "bridge.sock"
            assert bridge_client.send_action(path, "status")["bridge"] == "accord"
            assert "bridge.without" in server.log
            server.stop()

    assert not path.exists()
    assert not (tmp_path / "accord" / "bridge.sock").exists()
