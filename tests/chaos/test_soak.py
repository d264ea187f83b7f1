"""Ordinary use over time: memory, files and threads of a server must not grow with work done.

Ten seconds by default; `ACCORD_SOAK=30m` sets another duration.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import pytest

from accord.cli.durations import parse_duration
from accord.client import Client, Session
from accord.stores.append import MAX_TAIL_ROWS
from accord.stores.sqlite.writer import CACHE_KIB
from tests.chaos.load_clients import Approver, people
from tests.chaos.test_kill import chain_holds
from tests.helpers.servers.server_process import ServerProcess, run_server

SOAK = os.environ.get("ACCORD_SOAK", "")
LASTS = float(parse_duration(SOAK)) if SOAK else 10.0
# The first part fills caches, windows and pools; measurements begin after it.
WARM_UP = 0.25 * LASTS
SAMPLES = 20
GROWTH = 1.1
PACE = 0.03 if SOAK else 0.005
# Enough messages to fill SQLite's page cache and the tail cache, so that neither grows later.
FILLER, FILLERS, AT_ONCE = "word " * 800, 9000, 64
PATIENCE = 60.0
RARELY, FEW = 3, 4
CONNECTED = re.compile(rb"^accord_connections\{transport=\"websocket\"\} (\d+)", re.MULTILINE)


class Weight(NamedTuple):
    """Memory, open files and threads of a process."""

    rss_kib: int
    files: int
    threads: int


def weigh(pid: int) -> Weight:
    """Read from /proc."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Weight(int(fields["VmRSS"].split()[0]), files, int(fields["Threads"]))


def connected(server: ServerProcess) -> int:
    """Number of connections according to the server's metrics."""
    headers = {"Authorization": f"Bearer {server.admin_token}"}
    request = Request(f"{server.url}/metrics", headers=headers)  # noqa: S310 - our own
    with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - our own
        found = CONNECTED.search(answer.read())
    assert found
    return int(found[1])


class Room:
    """A session that lasts as long as the test, with its permanent members."""

    def __init__(self, who: dict[str, Client], alice: Session, claude: Session) -> None:
        self.who, self.alice, self.claude = who, alice, claude
        self.steps = 0
        self.token = ""
        self.agent = ""

    @classmethod
    @asynccontextmanager
    async def open(cls, who: dict[str, Client]) -> AsyncIterator["Room"]:
        """Alice approves every proposal in it."""
        alice = await who["alice"].create()
        claude = await who["claude"].join(alice.id, listen=False)
        approving = asyncio.create_task(Approver(alice).approve())
        try:
            yield cls(who, alice, claude)
        finally:
            approving.cancel()
            await asyncio.gather(approving, return_exceptions=True)

    async def live(self, server: ServerProcess, until: float) -> None:
        """Run the activities in turn."""
        ways = (self.answer, self.work, self.visit, self.read, self.branch, self.share, self.listen)
        while time.monotonic() < until:
            await ways[self.steps % len(ways)](server)
            self.steps += 1
            await asyncio.sleep(PACE)

    async def answer(self, server: ServerProcess) -> None:
        """A prompt and a streamed answer."""
        asked = await self.alice.prompt("Please", "claude")
        async with self.claude.respond(asked) as out:
            for n in range(20):
                await out.write(f"word {n} ")

    async def work(self, server: ServerProcess) -> None:
        """A risky tool call with a gate."""
        proposal = await self.claude.propose(
            "shell", {"command": "make"}, category="shell_execute", risk="high"
        )
        granted = await self.claude.decision(proposal)
        await self.claude.execute(granted)
        await self.claude.output(granted, "done\n" * 20, complete=True)
        await self.claude.result(granted, success=True, duration_ms=1)

    async def visit(self, server: ServerProcess) -> None:
        """Join, lose the connection, join again, send and leave."""
        self.token = self.token or server.issue_token("bob", "human", ("driver",))
        for leaves in (False, True):
            async with Client(server.url, token=self.token) as bob:
                session = await bob.join(self.alice.id, listen=False)
                await session.prompt("Hello", "claude")
                if leaves:
                    await session.leave()

    async def read(self, server: ServerProcess) -> None:
        """Read the transcript as a polling client does."""
        await self.who["alice"].transcript(self.alice.id, limit=50)
        await self.who["alice"].session(self.alice.id)
        if self.steps % 100 == RARELY:
            await self.who["alice"].sessions()

    async def branch(self, server: ServerProcess) -> None:
        """A second session with a fork, which ends."""
        if self.steps % 3:
            return
        alice = await self.who["alice"].create(listen=False)
        await self.who["claude"].join(alice.id, listen=False)
        first = await alice.prompt("Look", "claude")
        fork = await alice.fork("aside", ("claude",), from_point=first)
        await alice.within(fork).prompt("And here", "claude")
        await alice.end("enough")

    async def share(self, server: ServerProcess) -> None:
        """Add and remove a context item and a secret."""
        await self.alice.add_context(f"file-{self.steps}", "a line\n" * 50)
        await self.alice.share_secret("key", f"value {self.steps}", ["claude"])
        await self.alice.revoke_secret("key", "used")
        await self.alice.remove_context(f"file-{self.steps}", "read")

    async def listen(self, server: ServerProcess) -> None:
        """Poll once, and open and close an event stream."""
        self.agent = self.agent or server.issue_token("claude", "agent", ("driver",))
        where = f"/sessions/{self.alice.id}"
        for path, end in ((f"{where}/messages?limit=20", b"200 OK"), (f"{where}/events", b"data:")):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            head = (
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.agent}\r\n"
            )
            writer.write(f"{head}\r\n".encode())
            async with asyncio.timeout(PATIENCE):
                await reader.readuntil(end)
            writer.close()
            await writer.wait_closed()


async def fill(who: dict[str, Client]) -> None:
    """Fill the caches of the server."""
    assert len(FILLER) * FILLERS > CACHE_KIB << 10
    assert FILLERS > MAX_TAIL_ROWS
    alice = await who["alice"].create(listen=False)
    await who["claude"].join(alice.id, listen=False)
    for _ in range(0, FILLERS, AT_ONCE):
        await asyncio.gather(*(alice.prompt(FILLER, "claude") for _ in range(AT_ONCE)))
    await alice.end("full")


async def watched(pid: int, until: float) -> list[Weight]:
    """Measurements after the warm-up."""
    began = time.monotonic()
    await asyncio.sleep(WARM_UP)
    seen = [weigh(pid)]
    while time.monotonic() < until:
        await asyncio.sleep((LASTS - WARM_UP) / SAMPLES)
        seen.append(weigh(pid))
        print(f"{time.monotonic() - began:8.0f} s {seen[-1]}", flush=True)
    return seen


@pytest.mark.timeout(LASTS * 2 + 120)
async def test_memory_files_and_threads_do_not_grow_with_use(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        before = weigh(server.pid)
        async with people(server) as who, AsyncExitStack() as stack:
            await fill(who)
            rooms = [await stack.enter_async_context(Room.open(who)) for _ in range(3)]
            until = time.monotonic() + LASTS
            living = [asyncio.create_task(room.live(server, until)) for room in rooms]
            seen = await watched(server.pid, until)
            await asyncio.gather(*living)
        with suppress(TimeoutError):
            await nobody_left(server, before.files + FEW)
        after, counted = weigh(server.pid), await asyncio.to_thread(connected, server)
        steps = sum(room.steps for room in rooms)
        print(f"{steps} steps; before {before}, warm {seen[0]}, end {seen[-1]}, left {after}")
        server.stop()
    warm, end = seen[0], seen[-1]
    assert steps > LASTS
    assert end.rss_kib < warm.rss_kib * GROWTH, [each.rss_kib for each in seen]
    assert end.threads <= warm.threads + 2
    assert after.files <= before.files + FEW, "files are left open"
    assert counted == 0, "who is gone is still counted"
    await chain_holds(server.home)


async def nobody_left(server: ServerProcess, files: int) -> None:
    """Wait until the server counts no connection and has closed their files."""
    async with asyncio.timeout(PATIENCE):
        while (  # noqa: ASYNC110 - it is elsewhere
            await asyncio.to_thread(connected, server) or weigh(server.pid).files > files
        ):
            await asyncio.sleep(PACE)
