"""What was sent before the other end closed its side is heard, over TLS as without it."""

import asyncio
import json
import socket
import ssl
import uuid
from collections.abc import Iterator

import pytest

from tests.helpers.certificates import a_tls_server
from tests.helpers.server import ServerProcess, a_server
from tests.helpers.wire import PATIENCE, Wire
from tests.security.raw import frame, plug, rest, upgraded

# More than one read takes, and than one turn.
MESSAGES = 400
TEXT = "x" * 1000


@pytest.fixture(scope="module", params=[a_server, a_tls_server], ids=["plain", "tls"])
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
async def test_all_of_a_burst_is_heard(house: ServerProcess, count: int) -> None:
    token = house.issue("alice", roles=["admin", "driver"])
    alice = await Wire.open(house.ws_url, "alice", token)
    session = await alice.create()

    sending = asyncio.to_thread(sent, house, token, burst(session, count))
    await asyncio.wait_for(sending, 2 * PATIENCE)
    await alice.hear_until("context.add", key=f"k{count - 1}")

    await alice.socket.close()
