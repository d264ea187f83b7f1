"""Whoever sends too much, too long or nonsense hurts nobody but themselves."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Refused
from accord.transports.edge.connection_limits import ConnectionLimits
from accord.transports.edge.http_protocol import HEAD_TIMEOUT_S
from accord.transports.rate_limit import Bucket
from tests.helpers.attacks.approval_scene import PROMPT, error, get
from tests.helpers.attacks.bystanders import witnessed
from tests.helpers.attacks.raw_socket import PATIENCE, frame, memory, plug, rest, upgraded
from tests.helpers.clients.http_client import envelope
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server

MIB = 1 << 20
PING = 9
STATUS = {"participant": "alice", "status": "active", "last_active": "2026-01-30T20:00:00Z"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all, which counts."""
    where = tmp_path_factory.mktemp("house")
    with run_server(where, "token", "--rate-limit", "200") as server:
        yield server


async def deaf(wire: WebSocketClient) -> None:
    """Take whatever is said, to the end."""
    with contextlib.suppress(ConnectionClosed):
        async for _ in wire.socket:
            pass


# Heads


async def test_a_head_that_never_ends_is_cut_off(house: ServerProcess) -> None:
    def pour() -> int:
        with plug(house) as opened:
            opened.sendall(b"GET / HTTP/1.1\r\nX: ")
            for sent in range(256):
                try:
                    opened.sendall(b"x" * 65_536)
                except OSError:
                    return sent
        return 256

    assert await asyncio.to_thread(pour) < 256


@pytest.mark.parametrize("lines", [1, 500])
async def test_a_head_too_long_is_told_so(house: ServerProcess, lines: int) -> None:
    def ask() -> bytes:
        line = "X-Long: " + "x" * (Limits().head // lines) + "\r\n"
        with plug(house) as opened:
            opened.sendall(f"GET /healthz HTTP/1.1\r\nHost: x\r\n{line * lines}\r\n".encode())
            return rest(opened)

    assert (await asyncio.to_thread(ask)).startswith(b"HTTP/1.1 431 ")


async def test_a_second_head_is_measured_like_the_first(house: ServerProcess) -> None:
    def ask() -> Iterator[int]:
        with contextlib.closing(HTTPConnection("127.0.0.1", house.port, timeout=PATIENCE)) as line:
            for size in (20_000, 20_000, 40_000):
                line.request("GET", "/healthz", headers={"X-Long": "x" * size})
                answer = line.getresponse()
                answer.read()
                yield answer.status

    assert await asyncio.to_thread(list, ask()) == [200, 200, 431]


@pytest.mark.parametrize("size", [3_000, 15_000])
async def test_an_upgrade_may_have_a_long_head(house: ServerProcess, size: int) -> None:
    async with connect(house.ws_url, additional_headers={"X-Long": "x" * size}) as opened:
        await (await opened.ping())


@pytest.mark.parametrize("size", [17_000, 30_000, 60_000])
async def test_a_long_head_of_an_upgrade_is_answered_and_the_server_stops_as_ever(
    tmp_path: Path, size: int
) -> None:
    with run_server(tmp_path) as server:
        with pytest.raises(InvalidStatus, match="431"):
            await connect(server.ws_url, additional_headers={"Authorization": "x" * size})
        await asyncio.to_thread(server.stop)


async def test_a_head_that_dawdles_is_not_waited_for(
    house: ServerProcess,
) -> None:
    def dawdle() -> bytes:
        with plug(house) as opened:
            opened.settimeout(HEAD_TIMEOUT_S + PATIENCE)
            opened.sendall(b"GET / HTTP/1.1\r\nX:")
            return rest(opened)

    assert (await asyncio.to_thread(dawdle)).startswith(b"HTTP/1.1 408 ")


# Connections


class Plug:
    """A connection that notes its end."""

    ended = False

    def abort(self) -> None:
        """Gone."""
        self.ended = True


def test_those_who_waited_longest_give_way_once_too_many_wait() -> None:
    porch = ConnectionLimits(Limits(connections=100, strangers=3))
    plugs = [Plug() for _ in range(4)]
    for number, each in enumerate(plugs):
        assert porch.admit(each, number)  # type: ignore[arg-type]
    assert [each.ended for each in plugs] == [True, False, False, False]
    assert len(porch.connected) == len(porch.waiting_since) == 3


def test_nobody_is_put_out_within_a_second_or_after_signing_in() -> None:
    porch = ConnectionLimits(Limits(connections=4, strangers=2))
    plugs = [Plug() for _ in range(5)]
    assert porch.admit(plugs[0], 0)  # type: ignore[arg-type]
    porch.mark_active(plugs[0])  # type: ignore[arg-type]
    for each in plugs[1:4]:
        assert porch.admit(each, 100)  # type: ignore[arg-type]
    assert not porch.admit(plugs[4], 100.5)  # type: ignore[arg-type]
    assert not any(each.ended for each in plugs)
    assert porch.admit(plugs[4], 102)  # type: ignore[arg-type]
    assert [each.ended for each in plugs] == [False, True, True, False, False]


async def test_many_silent_connections_keep_nobody_out(house: ServerProcess) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(plug(house))
        await asyncio.sleep(1.1)
        assert (await get(f"{house.url}/healthz"))[0] == 200
        wire = await WebSocketClient.open(house.ws_url, "alice", house.issue_token("alice"))
        assert await wire.create()


# Before signing in


def stubborn(server: ServerProcess) -> socket.socket:
    """A connection that has no room for what it is told."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect(("127.0.0.1", server.port))
    return opened


def test_those_who_ask_and_never_read_keep_nobody_out(tmp_path: Path) -> None:
    limits = ("--limit", "connections=8", "--limit", "strangers=4")
    with run_server(tmp_path, "token", *limits) as server, contextlib.ExitStack() as opened:
        question = f"GET /openapi.json HTTP/1.1\r\nHost: {server.url[7:]}\r\n\r\n".encode()
        beat = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        opened.callback(beat.close)
        plugs = [opened.enter_context(stubborn(server)) for _ in range(7)]
        for _ in range(30):  # one after the other, each once the server has had its turn
            for each in plugs:
                with contextlib.suppress(OSError):  # it was put out
                    each.sendall(question)
            with contextlib.suppress(OSError):
                beat.request("GET", "/healthz")
                beat.getresponse().read()

        answers = set()
        for _ in range(200):
            late = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            late.request("GET", "/healthz")
            answers.add(late.getresponse().status)
            opened.callback(late.close)
            if len(answers) > 1 or 503 not in answers:
                break
            time.sleep(0.02)  # nobody gives way within a second

        assert 200 in answers


async def test_before_signing_in_a_frame_is_small(house: ServerProcess) -> None:
    def pour() -> bytes:
        with upgraded(house) as opened, contextlib.suppress(OSError):
            opened.sendall(frame(b"x" * 100_000, size=4 * MIB))
            return rest(opened)
        return b""

    heard = await asyncio.to_thread(pour)
    assert heard[2:4] == (1009).to_bytes(2)


async def test_before_signing_in_fragments_are_not_collected(house: ServerProcess) -> None:
    def pour() -> bytes:
        with upgraded(house) as opened, contextlib.suppress(OSError):
            opened.sendall(frame(b"x" * 30_000, fin=False))
            for _ in range(3):
                opened.sendall(frame(b"x" * 30_000, 0, fin=False))
            return rest(opened)
        return b""

    heard = await asyncio.to_thread(pour)
    assert heard[2:4] == (1009).to_bytes(2)


async def test_whoever_never_signs_in_is_not_answered_for_ever(house: ServerProcess) -> None:
    nobody = await WebSocketClient.open(house.ws_url, "nobody")
    for number in range(101):
        await nobody.send("prompt.submit", f"room{number}", PROMPT)
    await deaf(nobody)
    assert await nobody.wait_closed() == (1008, "too many invalid messages")


# Messages


async def test_what_is_exempt_from_the_rate_does_not_stop_the_house(house: ServerProcess) -> None:
    leaves = [envelope("session.leave", f"junk{n}", "mallory", {}) for n in range(6000)]
    flood = b"".join(frame(json.dumps(each).encode()) for each in leaves)
    with upgraded(house, house.issue_token("mallory")) as opened:
        async with witnessed(house) as witness:
            # Not in this loop, which would be busy with what the server says to it.
            listening = asyncio.create_task(asyncio.to_thread(rest, opened))
            await asyncio.to_thread(opened.sendall, flood)
            await witness.next()
            opened.shutdown(socket.SHUT_RDWR)
        assert b"RATE_LIMITED" in await listening


async def test_nonsense_without_end_ends_the_connection(house: ServerProcess) -> None:
    mallory = await WebSocketClient.open(house.ws_url, "mallory2", house.issue_token("mallory2"))
    for _ in range(101):
        await mallory.socket.send("nonsense")
    await deaf(mallory)
    assert (await mallory.wait_closed())[0] == 1008


async def test_a_message_between_mistakes_makes_up_for_them(house: ServerProcess) -> None:
    clumsy = await WebSocketClient.open(house.ws_url, "clumsy", house.issue_token("clumsy"))
    session = await clumsy.create()
    for _ in range(2):
        for _ in range(90):
            await clumsy.socket.send("nonsense")
            assert (await error(clumsy))["code"] == "INVALID_MESSAGE"
        await clumsy.send("presence.update", session, STATUS | {"participant": "clumsy"})
        await clumsy.receive_until("presence.update")


async def test_what_is_too_long_is_not_read(house: ServerProcess) -> None:
    long = await WebSocketClient.open(house.ws_url, "long", house.issue_token("long"))
    await long.socket.send('{"a":"' + "1" * MIB + '","id":"x"}')
    heard = await error(long)
    assert heard["code"] == "CONTEXT_TOO_LARGE"
    assert "related_to" not in heard
    said = await long.send("prompt.submit", "nowhere", PROMPT | {"content": "x" * MIB})
    assert (await error(long))["related_to"] == said


async def test_pings_are_answered_within_reason(house: ServerProcess) -> None:
    before = memory(house)

    def flood(opened: socket.socket) -> None:
        """For ten seconds: whoever floods is read ever more slowly, and all of it takes minutes."""
        block, until = frame(b"x" * 125, PING) * 1000, time.monotonic() + 10
        with contextlib.suppress(OSError):
            for _ in range(200):
                opened.sendall(block)
                if time.monotonic() > until:
                    break

    with upgraded(house, house.issue_token("pinger")) as opened:
        opened.settimeout(10)
        await asyncio.to_thread(flood, opened)
        assert memory(house) - before < 24
    async with connect(house.ws_url) as polite:
        await asyncio.wait_for(await polite.ping(), PATIENCE)


async def test_rates_are_counted_for_each_workspace(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--rate-limit", "2") as server:
        alice = await WebSocketClient.open(server.ws_url, "alice", server.issue_token("alice"))
        elsewhere = server.issue_token("alice", workspace="elsewhere")
        other = await WebSocketClient.open(server.ws_url, "alice", elsewhere)
        for _ in range(20):
            await other.send("prompt.submit", "nowhere", PROMPT)
            await other.receive()
        await alice.send("prompt.submit", "nowhere", PROMPT)
        assert (await error(alice))["code"] == "SESSION_NOT_FOUND"


def test_a_stop_works_for_somebody_who_talked_too_much_but_not_without_end() -> None:
    bucket = Bucket(10, 0)
    for _ in range(50):
        bucket.charge_bytes(200, 0)
        bucket.charge_message("prompt.submit", 200)
    with pytest.raises(Refused):
        bucket.charge_message("prompt.submit", 200)
    for _ in range(100):
        bucket.charge_bytes(200, 0)
        bucket.charge_message("interrupt.raise", 200)
    with pytest.raises(Refused):
        bucket.charge_message("interrupt.raise", 200)
    bucket.charge_bytes(200, 0.1)
    bucket.charge_message("interrupt.raise", 200)


def test_a_long_stop_waits_for_its_bytes() -> None:
    bucket = Bucket(10, 0)
    bucket.charge_bytes(17 << 20, 0)
    with pytest.raises(Refused):
        bucket.charge_message("interrupt.raise", MIB)


def test_whoever_owes_too_much_is_read_only_when_short() -> None:
    bucket = Bucket(200, 0)
    bucket.charge_bytes(21 << 20, 0)
    with pytest.raises(Refused):
        bucket.charge_bytes(MIB, 0)
    bucket.charge_bytes(100, 0)
    bucket.charge_bytes(MIB, 1)
