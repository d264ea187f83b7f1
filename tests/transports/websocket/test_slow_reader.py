"""A slow reader never slows another, and costs no more memory than its limit."""

import asyncio
import socket
import time
from pathlib import Path

from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server

BACKLOG = 256 << 10
MESSAGES = 600
# Who would wait for a reader would wait for ever.
LONGEST = 20
TEXT = "x" * 8000


def memory(server: ServerProcess) -> int:
    """Resident bytes of the server."""
    fields = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    (line,) = (each for each in fields if each.startswith("VmRSS:"))
    return int(line.split()[1]) << 10


async def test_a_reader_that_stops_slows_nobody_and_is_cut_off(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--limit", f"backlog={BACKLOG}") as server:
        alice = await WebSocketClient.open(
            server.ws_url, "alice", server.issue_token("alice", roles=["admin", "driver"])
        )
        session = await alice.create()
        bob = await WebSocketClient.open(server.ws_url, "bob", server.issue_token("bob"))
        await bob.join(session)
        lazy = await WebSocketClient.open(server.ws_url, "lazy", server.issue_token("lazy"))
        await lazy.join(session)
        lazy.socket.transport.pause_reading()
        before, slowest = memory(server), 0.0

        for number in range(MESSAGES):
            began = time.monotonic()
            body = {"key": "k", "content_type": "text", "content": f"{number}:{TEXT}"}
            await alice.send("context.add", session, body)
            heard = await bob.receive_until("context.add")
            slowest = max(slowest, time.monotonic() - began)
            assert heard["payload"]["content"].startswith(f"{number}:"), "in order, none missing"
            await alice.receive_until("context.add")

        assert slowest < LONGEST, "nobody waited for the one who does not read"
        assert memory(server) - before < 64 << 20
        assert "reader.cut_off" in server.log
        assert "lazy" in server.log
        await asyncio.gather(alice.socket.close(), bob.socket.close())


async def a_deaf_one(server: ServerProcess, session: str, seat: str) -> WebSocketClient:
    """Comes in, has little room for what it is told, and reads no more."""
    wire = await WebSocketClient.open(server.ws_url, seat, server.issue_token(seat))
    await wire.join(session)
    await wire.receive_until("participant.announce", id=seat)
    transport = wire.socket.transport
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    transport.pause_reading()
    return wire


async def test_what_waits_for_all_readers_together_is_bounded(tmp_path: Path) -> None:
    flags = ("--limit", "unread=4MiB", "--limit", "backlog=64MiB")
    with run_server(tmp_path, "token", *flags) as server:
        alice = await WebSocketClient.open(
            server.ws_url, "alice", server.issue_token("alice", roles=["admin", "driver"])
        )
        session = await alice.create(max_participants=20)
        bob = await WebSocketClient.open(server.ws_url, "bob", server.issue_token("bob"))
        await bob.join(session)
        deaf = [await a_deaf_one(server, session, f"deaf{number}") for number in range(8)]
        before = memory(server)

        for number in range(200):
            body = {"key": "k", "content_type": "text", "content": f"{number}:{8 * TEXT}"}
            await alice.send("context.add", session, body)
            heard = await bob.receive_until("context.add")
            assert heard["payload"]["content"].startswith(f"{number}:"), "in order, none missing"
            await alice.receive_until("context.add")

        assert "readers.cut_off" in server.log
        assert '"reader.cut_off"' not in server.log, "none alone was too far behind"
        grown = (memory(server) - before) >> 20
        assert grown < 64, f"{grown} MiB where 8 who do not read had 12 each to come"
        again = await WebSocketClient.open(server.ws_url, "deaf0", server.issue_token("deaf0"))
        await again.join(session)
        await again.receive_until("participant.announce", id="deaf0")
        await asyncio.gather(*(each.socket.close() for each in (alice, bob, again)))
        for each in deaf:
            each.socket.transport.abort()
