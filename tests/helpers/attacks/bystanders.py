"""Two people who talk while somebody attacks, and must not notice."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

from tests.helpers.attacks.approval_scene import PROMPT
from tests.helpers.attacks.machine_stalls import Machine, processor_wait
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.measure.cpu_time import machine_slowdown
from tests.helpers.servers.server_process import ServerProcess

PAUSE = 0.01
# So often they talk before anything happens, to learn how slow this machine is by itself.
QUIET = 10
# An attack that holds the server up takes far longer. A slow machine gets more time in proportion,
# and a busy one as much more as it took when nobody attacked, what it stood still for by itself,
# and what server and test waited for a processor.
LONGEST = 2.0
SLACK = 20


class Heard(NamedTuple):
    """A number, and from when to when it was under way."""

    number: int
    said: float
    heard: float
    waited: float = 0.0

    @property
    def seconds(self) -> float:
        """How long it took to arrive."""
        return self.heard - self.said


class Witness:
    """Alice counts, bob listens."""

    def __init__(
        self,
        session: str,
        alice: WebSocketClient,
        bob: WebSocketClient,
        slowdown: float = 1.0,
        pids: tuple[int, ...] = (),
    ) -> None:
        self.session = session
        self.alice = alice
        self.bob = bob
        self.slowdown = slowdown
        self.pids = pids
        self.said = 0
        self.heard: list[Heard] = []
        self.news = asyncio.Event()
        self.done = False
        self.usual = 0.0

    async def talk(self) -> None:
        """Until it is over; never more than one number is under way."""
        while not self.done:
            await self.count()
            await asyncio.sleep(PAUSE)

    async def count(self) -> None:
        """The next number."""
        number, began, before = self.said, time.monotonic(), processor_wait(self.pids)
        self.said += 1
        await self.alice.send("prompt.submit", self.session, PROMPT | {"content": str(number)})
        told = await self.bob.receive_until("prompt.submit")
        waited = processor_wait(self.pids) - before
        self.heard.append(Heard(int(told["payload"]["content"]), began, time.monotonic(), waited))
        self.news.set()

    async def next(self) -> None:
        """A number was said from now on, and heard."""
        for _ in range(2):
            self.news.clear()
            await self.news.wait()

    async def calm(self) -> None:
        """How long it takes while nobody attacks."""
        for _ in range(QUIET):
            await self.count()
        self.usual = max(each.seconds for each in self.heard)

    def check(self, machine: Machine) -> None:
        """Everything arrived, once, in order and in time."""
        assert [each.number for each in self.heard] == list(range(self.said))
        for each in self.heard:
            stalled = machine.stood_still(each.said, each.heard) + each.waited
            assert each.seconds < LONGEST * self.slowdown + SLACK * self.usual + stalled


@contextlib.asynccontextmanager
async def witnessed(server: ServerProcess) -> AsyncIterator[Witness]:
    """What happens inside goes unnoticed by both."""
    alice = await WebSocketClient.open(
        server.ws_url, "alice", server.issue_token("alice", roles=["admin"])
    )
    session = await alice.create()
    bot = await WebSocketClient.open(server.ws_url, "bot", server.issue_token("bot", "agent"))
    await bot.join(session, "agent")
    await bot.receive_until("participant.announce", id="bot")
    slowdown = await asyncio.to_thread(machine_slowdown)
    witness = Witness(session, alice, bot, slowdown, (server.pid, os.getpid()))
    await witness.calm()
    with Machine(server.home.parent) as machine:
        talking = asyncio.create_task(witness.talk())
        try:
            yield witness
        finally:
            witness.done = True
            await talking
            for wire in (alice, bot):  # what nobody read is in the way of a goodbye
                wire.socket.transport.abort()
    witness.check(machine)
