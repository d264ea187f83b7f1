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

from accord.core.kernel.refusal import Refused, Why
from accord.transports.bridge.lines import Lines
from accord.transports.bridge.listening import Places
from accord.transports.bridge.meter import BURST, Meter
from accord.transports.bridge.place import Unusable, bind
from accord.transports.bridge.table import LARGEST_ASK, Answer
from accord.transports.bridge.ticket import FILE, ticket
from tests.helpers import bridge
from tests.helpers.bridge import REPO, over_http
from tests.helpers.server import ServerProcess, a_server
from tests.spec import proves

BIND = {"repo": REPO, "session": "s"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose name is short enough for a socket."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


class House:
    """A server with a bridge port of its own."""

    def __init__(self, server: ServerProcess, port: int) -> None:
        self.server, self.port = server, port
        self.token = (server.home / FILE).read_text("ascii").strip()

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, Any], dict[str, str]]:
        return over_http(self.port, "GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
        return over_http(self.port, "POST", path, body, **headers)[:2]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One server for all attacks; the places that all servers share are this test's own."""
    port, place = bridge.free_port(), tmp_path_factory.mktemp("b")
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(place)
    try:
        with a_server(place, "token", "--bridge-port", str(port)) as server:
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
    got, told, _ = house.get(f"/commit-context?repo={REPO}", **headers)
    owner = {"Authorization": f"Bearer {house.token}", **headers}
    posted, _ = house.post("/session-started", BIND, **owner)

    assert (got, posted) == (403, 403)
    assert "session" not in told


def test_no_page_is_told_that_it_may(house: House) -> None:
    status, _, headers = over_http(house.port, "OPTIONS", "/session-started")

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
    for path in (f"/extended-metadata?repo={REPO}&sha={'a' * 40}", f"/places?repo={REPO}"):
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
    assert house.get(f"/commits?repo={REPO}&limit=9999")[0] == 400
    assert house.get(f"/commits?repo={REPO}&limit=5")[0] == 200
    assert house.get(f"/commits?repo={REPO}&repo=other")[0] == 400
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
        assert bridge.ask(path, "status")["bridge"] == "accord"
    assert stat.S_IMODE((house.server.home / FILE).stat().st_mode) == 0o600


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
    told = json.loads(bridge.raw(house.server.home / "bridge.sock", line))

    assert told["error"]["code"] == "INVALID_MESSAGE"


def test_a_line_without_end_is_refused(house: House) -> None:
    path = house.server.home / "bridge.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(bridge.PATIENCE)
        line.connect(str(path))
        with pytest.raises(OSError, match=r"pipe|reset"):
            line.sendall(b"x" * LARGEST_ASK * 64)
    assert bridge.ask(path, "status")["bridge"] == "accord"


class Witness:
    """A clerk who notes whether anybody got as far as to ask."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def method(self, name: str) -> Any:
        async def answer(_: object) -> Answer:
            self.asked.append(name)
            return {"fine": True}

        return answer


@pytest.mark.parametrize("who", [os.geteuid() + 1, 0xFFFF_FFFE, None])
async def test_another_users_process_is_refused_even_if_it_can_open_the_file(
    folder: Path, who: int | None
) -> None:
    clerk = Witness()
    lines = Lines(clerk, uid=lambda _: who)
    await lines.listen(bind(folder / "s"))
    try:
        told = await asyncio.to_thread(bridge.ask, folder / "s", "status")
    finally:
        lines.close()

    assert told["error"]["code"] == "UNAUTHORIZED"
    assert clerk.asked == []


async def test_the_kernel_says_who_connects(folder: Path) -> None:
    clerk = Witness()
    lines = Lines(clerk)
    await lines.listen(bind(folder / "s"))
    told = await asyncio.to_thread(bridge.ask, folder / "s", "status")
    lines.close()

    assert told == {"fine": True}
    assert not (folder / "s").exists()


# Squatters


def test_a_socket_that_a_killed_server_left_is_replaced(folder: Path) -> None:
    bind(folder / "s").sock.close()

    again = bind(folder / "s")

    assert stat.S_ISSOCK((folder / "s").lstat().st_mode)
    again.sock.close()


def test_a_socket_that_lives_is_left_alone(folder: Path) -> None:
    first = bind(folder / "s")

    with pytest.raises(Unusable, match="another server"):
        bind(folder / "s")

    first.sock.close()


def test_a_link_is_not_followed_and_not_removed(folder: Path) -> None:
    (folder / "precious").write_text("keep")
    (folder / "s").symlink_to(folder / "precious")
    (folder / "t").symlink_to(folder / "nowhere")

    for name in ("s", "t"):
        with pytest.raises(Unusable):
            bind(folder / name)

    assert (folder / "precious").read_text() == "keep"
    assert not (folder / "nowhere").exists()


def test_somebody_elses_socket_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = bind(folder / "s")
    theirs.sock.close()
    me = os.geteuid()
    monkeypatch.setattr("accord.transports.bridge.place.os.geteuid", lambda: me + 1)
    folder.chmod(0o1777)

    with pytest.raises(Unusable, match="somebody else's"):
        bind(folder / "s")

    assert (folder / "s").exists()


def test_a_folder_that_others_can_change_holds_no_socket(folder: Path) -> None:
    folder.chmod(0o777)

    with pytest.raises(Unusable, match="only you can change"):
        bind(folder / "s")


def test_a_folder_that_is_a_link_holds_no_socket(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "link").symlink_to(folder / "real")

    with pytest.raises(Unusable):
        bind(folder / "link" / "s")


def test_at_the_end_only_our_own_file_is_removed(folder: Path) -> None:
    ours = bind(folder / "s")
    (folder / "s").unlink()
    (folder / "s").write_text("another's")

    ours.remove()

    assert (folder / "s").read_text() == "another's"
    ours.sock.close()


def test_a_name_that_is_too_long_is_said_so(folder: Path) -> None:
    with pytest.raises(Unusable, match="shorter"):
        bind(folder / ("x" * 120))


def test_without_a_port_only_the_servers_own_folder_has_a_socket(folder: Path) -> None:
    env = {"XDG_RUNTIME_DIR": "/run/user/1"}
    own, common = folder / "bridge.sock", Path("/tmp/pvp-git-bridge.sock")

    assert list(Places(folder, None, env).sockets()) == [own]
    assert list(Places(folder, 9847, env).sockets()) == [
        own,
        Path("/run/user/1/accord/bridge.sock"),
        common,
    ]
    assert list(Places(folder, 9847, {"XDG_RUNTIME_DIR": "here"}).sockets()) == [own, common]


# Bounds and the rest


def test_the_token_is_kept_and_one_that_others_could_read_is_not(folder: Path) -> None:
    first = ticket(folder)
    assert ticket(folder) == first
    (folder / FILE).chmod(0o644)
    second = ticket(folder)
    (folder / FILE).unlink()
    (folder / "elsewhere").write_text("a" * 43)
    (folder / FILE).symlink_to(folder / "elsewhere")

    third = ticket(folder)

    assert len({first, second, third, "a" * 43}) == 4
    assert not (folder / FILE).is_symlink()


def test_whoever_asks_too_often_waits() -> None:
    now = [0.0]
    meter = Meter(lambda: now[0])
    for _ in range(int(BURST)):
        meter.count()

    with pytest.raises(Refused) as no:
        meter.count()

    assert no.value.why is Why.TOO_MANY
    now[0] += 1
    meter.count()


def test_a_port_that_is_taken_is_a_warning_and_everything_is_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        with a_server(tmp_path / "s", "token", "--bridge-port", str(port)) as server:
            path = server.home / "bridge.sock"
            assert bridge.ask(path, "status")["bridge"] == "accord"
            assert "bridge.without" in server.log
            server.stop()

    assert not path.exists()
    assert not (tmp_path / "accord" / "bridge.sock").exists()
