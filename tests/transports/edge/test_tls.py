"""TLS: who does not finish a handshake is let go, who does not read is cut off."""

import asyncio
import contextlib
import select
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accord.transports.edge.http_protocol import HEAD_TIMEOUT_S
from accord.transports.edge.tls import DRAIN_TIMEOUT_S, PLAIN_HTTP_REFUSAL
from tests.helpers.attacks.raw_socket import memory, plug, rest
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.certificates import run_tls_server
from tests.helpers.servers.server_process import ServerProcess

SLACK_S = 30.0
BACKLOG = 256 << 10
MESSAGES = 400
TEXT = "x" * 8000
HALF_A_RECORD = bytes((23, 3, 3, 16, 0)) + bytes(100)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that speaks TLS."""
    with run_tls_server(tmp_path_factory.mktemp("house")) as running:
        yield running


def hello() -> bytes:
    """What a client begins a handshake with."""
    out = ssl.MemoryBIO()
    talk = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        talk.do_handshake()
    return out.read()


def secured(server: ServerProcess, context: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    """A connection on which the handshake is done."""
    context = context or ssl.create_default_context()
    return context.wrap_socket(plug(server), server_hostname="localhost")


def asked(opened: socket.socket, server: ServerProcess) -> bytes:
    """What a sound request is answered with, on this connection."""
    line = f"GET /healthz HTTP/1.1\r\nHost: localhost:{server.port}\r\nConnection: close\r\n\r\n"
    opened.sendall(line.encode())
    return rest(opened)


def test_half_a_record_is_not_waited_for(house: ServerProcess) -> None:
    with secured(house) as opened:
        assert opened.version()
        socket.socket.send(opened, HALF_A_RECORD)
        opened.shutdown(socket.SHUT_WR)
        began = time.monotonic()
        rest(opened)

    assert time.monotonic() - began < DRAIN_TIMEOUT_S - 1


def test_a_started_server_says_that_it_speaks_tls(house: ServerProcess) -> None:
    assert house.url == f"https://127.0.0.1:{house.port}"
    assert house.ws_url == f"wss://127.0.0.1:{house.port}/ws"
    with secured(house) as opened:
        assert asked(opened, house).endswith(b"ok\n")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_supported_tls_versions_are_accepted(house: ServerProcess, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context()
    context.minimum_version = context.maximum_version = version

    with secured(house, context) as opened:
        assert (opened.version() or "").replace(".", "_") == version.name
        assert asked(opened, house).endswith(b"ok\n")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_older_tls_versions_are_refused(house: ServerProcess) -> None:
    context = ssl.create_default_context()
    context.set_ciphers("ALL:@SECLEVEL=0")  # or our own side would refuse
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1

    with pytest.raises(ssl.SSLError):
        secured(house, context)


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0", b"hello\n"])
def test_plain_http_on_a_tls_port_is_answered_in_plain_text(
    house: ServerProcess, sent: bytes
) -> None:
    with plug(house) as opened:
        opened.sendall(sent)
        answer = rest(opened)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert PLAIN_HTTP_REFUSAL.encode() in answer


@pytest.mark.parametrize("cut", [0, 1, 3, 40, 10_000], ids=lambda cut: f"{cut} bytes")
def test_a_broken_handshake_ends_cleanly(house: ServerProcess, cut: int) -> None:
    opening = bytearray(hello())
    opening[5 + cut : 9 + cut] = b"\xff" * len(opening[5 + cut : 9 + cut])
    with plug(house) as opened:
        opened.sendall(opening)
        opened.shutdown(socket.SHUT_WR)
        assert b"HTTP" not in rest(opened)
    with secured(house) as opened:
        assert asked(opened, house).endswith(b"ok\n")


def test_a_handshake_comes_byte_by_byte(house: ServerProcess) -> None:
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk = ssl.create_default_context().wrap_bio(into, out, server_hostname="localhost")
    with plug(house) as opened:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        done = False
        while not done:
            try:
                talk.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            for byte in out.read():
                opened.sendall(bytes((byte,)))
            if not done:
                into.write(opened.recv(1 << 16))

        assert talk.version() == "TLSv1.3"


def test_whoever_does_not_finish_a_handshake_is_let_go_in_time(house: ServerProcess) -> None:
    opening, began = hello(), time.monotonic()
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(plug(house)) for _ in range(3)]
        waiting[1].sendall(opening[: len(opening) // 2])
        waiting[2].sendall(opening)  # and never the rest
        for opened in waiting:
            opened.settimeout(HEAD_TIMEOUT_S + SLACK_S)
            rest(opened)
        took = time.monotonic() - began

    assert HEAD_TIMEOUT_S - 1 < took < HEAD_TIMEOUT_S + SLACK_S


def test_a_handshake_that_trickles_in_gains_no_time(house: ServerProcess) -> None:
    opening, began = hello(), time.monotonic()
    with plug(house) as opened, contextlib.suppress(ConnectionError):
        for byte in opening:
            opened.sendall(bytes((byte,)))
            if select.select([opened], [], [], 1.0)[0]:
                break
        assert not opened.recv(1)

    assert time.monotonic() - began < HEAD_TIMEOUT_S + SLACK_S


def test_those_in_a_handshake_count_as_strangers_and_give_way(tmp_path: Path) -> None:
    with (
        run_tls_server(tmp_path, "--limit", "strangers=2") as server,
        contextlib.ExitStack() as stack,
    ):
        first = stack.enter_context(plug(server))
        first.sendall(hello())
        first.recv(1)  # it is in the middle of it
        deadline = time.monotonic() + HEAD_TIMEOUT_S - 2  # before its time is up
        gone = False
        while not gone:
            assert time.monotonic() < deadline, "nobody gave way"
            stack.enter_context(plug(server))
            first.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                try:
                    gone = not first.recv(1 << 16)
                except ConnectionError:
                    gone = True
        with secured(server) as opened:
            assert asked(opened, server).endswith(b"ok\n")


async def test_a_reader_that_stops_slows_nobody_and_is_cut_off(tmp_path: Path) -> None:
    with run_tls_server(tmp_path, "--limit", f"backlog={BACKLOG}") as server:
        alice = await WebSocketClient.open(
            server.ws_url, "alice", server.issue_token("alice", roles=["admin", "driver"])
        )
        session = await alice.create()
        bob, lazy = [
            await WebSocketClient.open(server.ws_url, n, server.issue_token(n))
            for n in ("bob", "lazy")
        ]
        await bob.join(session)
        await lazy.join(session)
        lazy.socket.transport.pause_reading()
        before = memory(server)

        for number in range(MESSAGES):
            body = {"key": "k", "content_type": "text", "content": f"{number}:{2 * TEXT}"}
            await alice.send("context.add", session, body)
            heard = await bob.receive_until("context.add")
            assert heard["payload"]["content"].startswith(f"{number}:"), "in order, none missing"
            await alice.receive_until("context.add")

        assert "reader.cut_off" in server.log
        assert memory(server) - before < 64
        await asyncio.gather(alice.socket.close(), bob.socket.close())
        lazy.socket.transport.abort()


async def test_what_waits_for_all_readers_together_is_bounded(tmp_path: Path) -> None:
    flags = ("--limit", "unread=2MiB", "--limit", "backlog=64MiB")
    with run_tls_server(tmp_path, *flags) as server:
        alice = await WebSocketClient.open(
            server.ws_url, "alice", server.issue_token("alice", roles=["admin", "driver"])
        )
        session = await alice.create(max_participants=20)
        deaf = [
            await WebSocketClient.open(server.ws_url, n, server.issue_token(n))
            for n in ("d1", "d2", "d3", "d4")
        ]
        for each in deaf:
            await each.join(session)
            await each.receive_until("participant.announce", id=each.seat)
            each.socket.transport.pause_reading()

        for number in range(150):
            body = {"key": "k", "content_type": "text", "content": f"{number}:{8 * TEXT}"}
            await alice.send("context.add", session, body)
            await alice.receive_until("context.add")

        assert "readers.cut_off" in server.log
        assert '"reader.cut_off"' not in server.log, "none alone was too far behind"
        await alice.socket.close()
        for each in deaf:
            each.socket.transport.abort()


async def test_a_stopping_server_says_goodbye(tmp_path: Path) -> None:
    with run_tls_server(tmp_path) as server:
        alice = await WebSocketClient.open(
            server.ws_url, "alice", server.issue_token("alice", roles=["admin", "driver"])
        )
        await alice.create()
        with secured(server) as idle, plug(server):
            await asyncio.to_thread(server.stop)
            await asyncio.wait_for(alice.socket.wait_closed(), SLACK_S)
            assert alice.socket.close_code == 1012
            assert not rest(idle)
