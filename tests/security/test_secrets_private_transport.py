"""Secrets and connections that others may read along: none goes in, none comes out."""

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from accord.transports.edge.http_protocol import is_secure
from tests.helpers.clients.http_client import HttpClient
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.certificates import LOCAL_NAMES, run_tls_server
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

VALUE = "hunter2-hunter2"
# No packet is sent there: the kernel only says from which address one would be.
ELSEWHERE = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))


def own_address() -> str | None:
    """An address of this machine that is not the loopback's."""
    for there, family in ELSEWHERE:
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            try:
                asking.connect((there, 9))
            except OSError:
                continue
            found: str = asking.getsockname()[0]
            return found
    return None


@pytest.fixture(scope="module")
def outside() -> str:
    """Whoever connects to it looks like somebody from another machine."""
    if (found := own_address()) is None:
        pytest.skip("this machine has no address but the loopback's")
    return found


@pytest.fixture(scope="module")
def everywhere(
    outside: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ServerProcess, str, str]]:
    """A server without TLS on every address; its addresses on the loopback and from outside."""
    host = "::" if ":" in outside else "0.0.0.0"  # noqa: S104 - that is the point
    with run_server(tmp_path_factory.mktemp("everywhere"), "token", "--host", host) as running:
        near = f"127.0.0.1:{running.port}" if host != "::" else f"[::1]:{running.port}"
        far = f"{outside}:{running.port}" if host != "::" else f"[{outside}]:{running.port}"
        yield running, near, far


def shared(*scope: str, value: str = VALUE) -> dict[str, Any]:
    return {"key": "db", "scope": list(scope), "value_ref": value}


class Pair(NamedTuple):
    """Two in a session."""

    alice: WebSocketClient
    bob: WebSocketClient
    session: str


@asynccontextmanager
async def two(server: ServerProcess, alices: str, bobs: str) -> AsyncIterator[Pair]:
    """Alice and Bob in a session, each from their own side."""
    alice = await WebSocketClient.open(
        alices, "alice", server.issue_token("alice", roles=["admin", "driver"])
    )
    bob = await WebSocketClient.open(bobs, "bob", server.issue_token("bob"))
    try:
        session = await alice.create()
        await bob.join(session)
        await bob.receive_until("participant.announce", id="bob")
        await alice.receive_until("participant.announce", id="bob")
        yield Pair(alice, bob, session)
    finally:
        await alice.socket.close()
        await bob.socket.close()


@proves("PVP-20.3-3")
async def test_a_secret_from_another_machine_comes_over_tls_or_not_at_all(
    everywhere: tuple[ServerProcess, str, str],
) -> None:
    server, near, far = everywhere
    async with two(server, f"ws://{far}/ws", f"ws://{near}/ws") as pair:
        id = await pair.alice.send("secret.share", pair.session, shared("bob"))
        no = await pair.alice.receive_until("error")
        assert (no["payload"]["code"], no["payload"]["related_to"]) == ("UNAUTHORIZED", id)
        assert "not encrypted" in no["payload"]["message"]

        web = HttpClient(f"http://{far}", "alice", server.issue_token("alice"))
        posted = {"v": 1, "id": "s1", "ts": "2026-01-30T20:00:00.000Z", "session": pair.session}
        posted |= {"sender": "alice", "type": "secret.share", "payload": shared("bob")}
        answer = await web.post(pair.session, posted)
        assert answer.status_code == 403
        assert "not encrypted" in answer.json()["payload"]["message"]
        await web.close()

        await pair.alice.send("context.add", pair.session, note("still"))
        await pair.bob.receive_until(
            "context.add", key="still"
        )  # and nothing of a secret before it
        assert VALUE not in server.log


@proves("PVP-20.3-3")
async def test_on_the_servers_own_machine_a_secret_is_shared(
    everywhere: tuple[ServerProcess, str, str],
) -> None:
    server, near, _ = everywhere
    async with two(server, f"ws://{near}/ws", f"ws://{near}/ws") as pair:
        await pair.alice.send("secret.share", pair.session, shared("bob"))
        heard = await pair.bob.receive_until("secret.share")
        assert heard["payload"]["value_ref"] == VALUE


@proves("PVP-20.3-3")
async def test_its_value_goes_to_nobody_over_a_way_that_others_can_read(
    everywhere: tuple[ServerProcess, str, str],
) -> None:
    server, near, far = everywhere
    async with two(server, f"ws://{near}/ws", f"ws://{far}/ws") as pair:
        web = HttpClient(f"http://{far}", "bob", server.issue_token("bob"))
        async with web.open_events(pair.session) as events:
            await pair.alice.send("secret.share", pair.session, shared("bob"))
            hers = await pair.alice.receive_until("secret.share")
            his = await pair.bob.receive_until("secret.share")
            streamed = await events.wait_for("secret.share")
        assert hers["payload"]["value_ref"] == VALUE
        assert his["payload"]["value_ref"] == streamed.envelope["payload"]["value_ref"] == ""

        again = await WebSocketClient.open(f"ws://{far}/ws", "bob", server.issue_token("bob"))
        await again.join(pair.session)
        await pair.alice.send("context.add", pair.session, note("end"))
        told = [await again.receive()]
        while told[-1]["type"] != "context.add":
            told.append(await again.receive())
        assert VALUE not in str(told)
        home = await WebSocketClient.open(f"ws://{near}/ws", "bob", server.issue_token("bob"))
        await home.join(pair.session)
        while (heard := await home.receive_until("secret.share"))["payload"]["value_ref"] != VALUE:
            pass  # the record of it, which has none
        assert heard["ref"]
        for each in (again.socket, home.socket):
            await each.close()
        await web.close()


@proves("PVP-20.3-3")
async def test_over_tls_it_is_shared_from_any_machine(outside: str, tmp_path: Path) -> None:
    flags, names = ("--host", outside), (*LOCAL_NAMES, outside)
    with run_tls_server(tmp_path, *flags, names=names) as server:
        async with two(server, server.ws_url, server.ws_url) as pair:
            await pair.alice.send("secret.share", pair.session, shared("bob"))
            heard = await pair.bob.receive_until("secret.share")
            assert heard["payload"]["value_ref"] == VALUE

            web = HttpClient(
                server.url, "alice", server.issue_token("alice", roles=["admin", "driver"])
            )
            other = {**shared("bob", value="second"), "key": "b"}
            await web.send("secret.share", pair.session, other)
            heard = await pair.bob.receive_until("secret.share")
            assert heard["payload"]["value_ref"] == "second"
            await web.close()


def note(key: str) -> dict[str, Any]:
    return {"key": key, "content_type": "text", "content": key}


class Wired:
    """A transport that knows only who is at its other end."""

    def __init__(self, peer: Any, context: Any = None) -> None:
        self.known = {"peername": peer, "sslcontext": context}

    def get_extra_info(self, name: str) -> Any:
        return self.known[name]


@pytest.mark.parametrize(
    ("peer", "private"),
    [
        (("127.0.0.1", 5), True),
        (("127.8.8.8", 5), True),
        (("::1", 5, 0, 0), True),
        (("::ffff:127.0.0.1", 5, 0, 0), True),
        (("::ffff:192.0.2.7", 5, 0, 0), False),
        (("192.0.2.7", 5), False),
        (("10.0.0.1", 5), False),
        (("fe80::1%eth0", 5, 0, 2), False),
        (("2001:db8::1", 5, 0, 0), False),
        ("", False),
        (None, False),
        (("localhost", 5), False),
    ],
)
@proves("PVP-20.3-3")
def test_is_secure_for_tls_and_loopback_only(peer: Any, private: bool) -> None:
    assert is_secure(Wired(peer)) is private  # type: ignore[arg-type]
    assert is_secure(Wired(peer, object()))  # type: ignore[arg-type]
