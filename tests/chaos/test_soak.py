"""Hours of ordinary use, made short: what a server holds must not grow with what it has done.

`ACCORD_SOAK` says for how long, as in `ACCORD_SOAK=30m`; a few seconds by default.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import pytest

from accord.cli.durations import seconds
from accord.client import Client, Session
from accord.stores.sqlite.writer import CACHE_KIB
from tests.chaos.speakers import Approver, people
from tests.chaos.test_kill import chain_holds
from tests.helpers.server import ServerProcess, a_server

SOAK = os.environ.get("ACCORD_SOAK", "")
LASTS = float(seconds(SOAK)) if SOAK else 25.0
# The first part fills caches, windows and pools; nothing is compared with it.
WARM_UP = 0.4 * LASTS
SAMPLES = 20
# What may be added meanwhile: the pages that SQLite keeps at hand, until it has so many, and the
# rooms that ended, which stay at hand for a while.
GROWTH, SLACK_KIB = 1.1, CACHE_KIB + (8 << 10)
PACE = 0.005
PATIENCE = 30.0
CONNECTED = re.compile(rb"^accord_connections\{transport=\"websocket\"\} (\d+)", re.MULTILINE)


class Weight(NamedTuple):
    """What a process holds."""

    rss_kib: int
    files: int
    threads: int


def weigh(pid: int) -> Weight:
    """As the kernel says."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Weight(int(fields["VmRSS"].split()[0]), files, int(fields["Threads"]))


def connected(server: ServerProcess) -> int:
    """How many connections the server counts."""
    headers = {"Authorization": f"Bearer {server.admin_token}"}
    request = Request(f"{server.url}/metrics", headers=headers)  # noqa: S310 - our own
    with urlopen(request, timeout=10) as answer:  # noqa: S310 - our own
        found = CONNECTED.search(answer.read())
    assert found
    return int(found[1])


class Room:
    """A room that lives as long as the test, and those who are always in it."""

    def __init__(self, who: dict[str, Client], alice: Session, claude: Session) -> None:
        self.who, self.alice, self.claude = who, alice, claude
        self.steps = 0
        self.token = ""

    @classmethod
    @asynccontextmanager
    async def open(cls, who: dict[str, Client]) -> AsyncIterator["Room"]:
        """Alice says yes to everything in it."""
        alice = await who["alice"].create()
        claude = await who["claude"].join(alice.id, listen=False)
        approving = asyncio.create_task(Approver(alice).approve())
        try:
            yield cls(who, alice, claude)
        finally:
            approving.cancel()
            await asyncio.gather(approving, return_exceptions=True)

    async def live(self, server: ServerProcess, until: float) -> None:
        """One ordinary thing after another."""
        ways = (self.answer, self.work, self.visit, self.read, self.branch)
        while time.monotonic() < until:
            await ways[self.steps % len(ways)](server)
            self.steps += 1
            await asyncio.sleep(PACE)

    async def answer(self, server: ServerProcess) -> None:
        """A prompt, and its answer bit by bit."""
        asked = await self.alice.prompt("Please", "claude")
        async with self.claude.respond(asked) as out:
            for n in range(20):
                await out.write(f"word {n} ")

    async def work(self, server: ServerProcess) -> None:
        """A risky thing, with a gate before it."""
        proposal = await self.claude.propose(
            "shell", {"command": "make"}, category="shell_execute", risk="high"
        )
        granted = await self.claude.decision(proposal)
        await self.claude.execute(granted)
        await self.claude.output(granted, "done\n" * 20, complete=True)
        await self.claude.result(granted, success=True, duration_ms=1)

    async def visit(self, server: ServerProcess) -> None:
        """Somebody comes, is cut off, comes back, says something and leaves."""
        self.token = self.token or server.issue("bob", "human", ("driver",))
        for leaves in (False, True):
            async with Client(server.url, token=self.token) as bob:
                session = await bob.join(self.alice.id, listen=False)
                await session.prompt("Hello", "claude")
                if leaves:
                    await session.leave()

    async def read(self, server: ServerProcess) -> None:
        """The archive, as somebody polls it."""
        await self.who["alice"].transcript(self.alice.id, limit=50)
        await self.who["alice"].session(self.alice.id)
        await self.who["alice"].sessions()

    async def branch(self, server: ServerProcess) -> None:
        """A room of its own with a fork in it, which ends."""
        if self.steps % 20 > 5:
            return
        alice = await self.who["alice"].create(listen=False)
        await self.who["claude"].join(alice.id, listen=False)
        first = await alice.prompt("Look", "claude")
        fork = await alice.fork("aside", ("claude",), from_point=first)
        await alice.within(fork).prompt("And here", "claude")
        await alice.end("enough")


async def watched(pid: int, until: float) -> list[Weight]:
    """From the end of the warm-up on."""
    await asyncio.sleep(WARM_UP)
    seen = [weigh(pid)]
    while time.monotonic() < until:
        await asyncio.sleep((LASTS - WARM_UP) / SAMPLES)
        seen.append(weigh(pid))
    return seen


@pytest.mark.timeout(LASTS * 2 + 120)
async def test_a_server_holds_no_more_after_long_use_than_after_short(tmp_path: Path) -> None:
    with a_server(tmp_path) as server:
        before = weigh(server.pid)
        async with people(server) as who, AsyncExitStack() as stack:
            rooms = [await stack.enter_async_context(Room.open(who)) for _ in range(3)]
            until = time.monotonic() + LASTS
            living = [asyncio.create_task(room.live(server, until)) for room in rooms]
            seen = await watched(server.pid, until)
            await asyncio.gather(*living)
        await nobody_left(server)
        after = weigh(server.pid)
        steps = sum(room.steps for room in rooms)
        print(f"{steps} steps; before {before}, warm {seen[0]}, end {seen[-1]}, left {after}")
        server.stop()
    warm, end = seen[0], seen[-1]
    assert steps > LASTS
    assert end.rss_kib < warm.rss_kib * GROWTH + SLACK_KIB, [each.rss_kib for each in seen]
    assert end.threads <= warm.threads + 2
    assert after.files <= before.files + 4, "files are left open"
    await chain_holds(server.home)


async def nobody_left(server: ServerProcess) -> None:
    """Everybody is gone, as the server sees it."""
    async with asyncio.timeout(PATIENCE):
        while await asyncio.to_thread(connected, server):  # noqa: ASYNC110 - it is elsewhere
            await asyncio.sleep(PACE)
