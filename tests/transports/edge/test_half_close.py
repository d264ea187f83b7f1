"""What was sent before the other end closed its side is heard, over TLS as without it."""

import asyncio
import json
import socket
import ssl
import uuid
from collections.abc import Iterator

import pytest

from accord.transports.edge.tls import MAX_STALLED_POLLS, Drain
from tests.helpers.attacks.raw_socket import frame, plug, rest, upgraded
from tests.helpers.clients.websocket_client import RECEIVE_TIMEOUT_S, WebSocketClient
from tests.helpers.servers.certificates import run_tls_server
from tests.helpers.servers.server_process import ServerProcess, run_server

# More than one read takes, and than one turn.
MESSAGES = 400
TEXT = "x" * 1000


@pytest.fixture(scope="module", params=[run_server, run_tls_server], ids=["plain", "tls"])
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server without TLS and with it."""
    with request.param(tmp_path_factory.mktemp("house")) as running:
        yield running


def burst(session: str, count: int) -> bytes:
    """So many messages at once."""
    common = {"v": 1, "ts": "2026-01-30T20:00:00.000Z", "session": session, "sender": "alice"}
    said = ({"key": f"k{n}", "content_type": "text", "content": TEXT} for n in range(count))
    envelopes = (
        {**common, "id": uuid.uuid4().hex, "type": "context.add", "payload": each} for each in said
    )
    return b"".join(frame(json.dumps(each).encode()) for each in envelopes)


def sent(server: ServerProcess, token: str, data: bytes) -> None:
    """Say it, then close this side of TCP and nothing else; hear the server hang up."""
    opened = plug(server)
    if server.url.startswith("https"):
        opened = ssl.create_default_context().wrap_socket(opened, server_hostname="localhost")
    with upgraded(server, token, opened) as line:
        line.sendall(data)
        line.shutdown(socket.SHUT_WR)
        rest(line)


@pytest.mark.parametrize("count", [1, MESSAGES])
async def test_half_close_delivers_the_whole_burst(house: ServerProcess, count: int) -> None:
    token = house.issue_token("alice", roles=["admin", "driver"])
    alice = await WebSocketClient.open(house.ws_url, "alice", token)
    session = await alice.create()

    sending = asyncio.to_thread(sent, house, token, burst(session, count))
    await asyncio.wait_for(sending, 2 * RECEIVE_TIMEOUT_S)
    await alice.receive_until("context.add", key=f"k{count - 1}")

    await alice.socket.close()


def test_drain_survives_polls_that_come_before_the_scheduled_read() -> None:
    drain = Drain(1000, deadline=10.0)
    for now in range(MAX_STALLED_POLLS - 1):
        assert not drain.is_over(1000, now, is_paused=False)

    assert not drain.is_over(900, 5.0, is_paused=False), "it was read on"
    assert not drain.is_over(900, 5.1, is_paused=False), "counted anew"
    assert drain.is_over(0, 5.2, is_paused=False)


def test_drain_gives_up_on_an_incomplete_record() -> None:
    drain = Drain(1000, deadline=10.0)
    over = [drain.is_over(1000, 0.0, is_paused=False) for _ in range(MAX_STALLED_POLLS)]
    assert over == [False] * (MAX_STALLED_POLLS - 1) + [True]


def test_drain_waits_for_a_paused_connection_until_the_deadline() -> None:
    drain = Drain(1000, deadline=10.0)
    assert not any(drain.is_over(1000, 9.9, is_paused=True) for _ in range(100))
    assert drain.is_over(1000, 10.0, is_paused=True)
