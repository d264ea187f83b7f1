"""A slow reader never slows another, and costs no more memory than its limit."""

import asyncio
import time
from pathlib import Path

from tests.helpers.server import ServerProcess, a_server
from tests.helpers.wire import Wire

BACKLOG = 256 << 10
MESSAGES = 600
TEXT = "x" * 8000


def memory(server: ServerProcess) -> int:
    """Resident bytes of the server."""
    fields = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    (line,) = (each for each in fields if each.startswith("VmRSS:"))
    return int(line.split()[1]) << 10


async def test_a_reader_that_stops_slows_nobody_and_is_cut_off(tmp_path: Path) -> None:
    with a_server(tmp_path, "token", "--limit", f"backlog={BACKLOG}") as server:
        alice = await Wire.open(
            server.ws_url, "alice", server.issue("alice", roles=["admin", "driver"])
        )
        session = await alice.create()
        bob = await Wire.open(server.ws_url, "bob", server.issue("bob"))
        await bob.join(session)
        lazy = await Wire.open(server.ws_url, "lazy", server.issue("lazy"))
        await lazy.join(session)
        lazy.socket.transport.pause_reading()
        before, slowest = memory(server), 0.0

        for number in range(MESSAGES):
            began = time.monotonic()
            body = {"key": "k", "content_type": "text", "content": f"{number}:{TEXT}"}
            await alice.say("context.add", session, body)
            heard = await bob.hear_until("context.add")
            slowest = max(slowest, time.monotonic() - began)
            assert heard["payload"]["content"].startswith(f"{number}:"), "in order, none missing"
            await alice.hear_until("context.add")

        assert slowest < 5, "nobody waited for the one who does not read"
        assert memory(server) - before < 64 << 20
        assert "reader.cut_off" in server.log
        assert "lazy" in server.log
        await asyncio.gather(alice.socket.close(), bob.socket.close())
