"""Two people who talk while somebody attacks, and must not notice."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

from tests.helpers.server import ServerProcess
from tests.helpers.wire import Wire
from tests.security.machine import Machine
from tests.security.scene import PROMPT

PAUSE = 0.01
# So often they talk before anything happens, to learn how slow this machine is by itself.
QUIET = 10
# An attack that holds the server up takes far longer; a machine with other things to do gets as
# much more as it took when nobody attacked, and what it stood still for by itself.
LONGEST = 2.0
SLACK = 20


class Heard(NamedTuple):
    """A number, and from when to when it was under way."""

    number: int
    said: float
    heard: float

    @property
    def seconds(self) -> float:
        """How long it took to arrive."""
        return self.heard - self.said


class Witness:
    """Alice counts, bob listens."""

    def __init__(self, session: str, alice: Wire, bob: Wire) -> None:
        self.session = session
        self.alice = alice
        self.bob = bob
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
        number, began = self.said, time.monotonic()
        self.said += 1
        await self.alice.say("prompt.submit", self.session, PROMPT | {"content": str(number)})
        told = await self.bob.hear_until("prompt.submit")
        self.heard.append(Heard(int(told["payload"]["content"]), began, time.monotonic()))
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
            allowed = LONGEST + SLACK * self.usual + machine.stood_still(each.said, each.heard)
            assert each.seconds < allowed


@contextlib.asynccontextmanager
async def witnessed(server: ServerProcess) -> AsyncIterator[Witness]:
    """What happens inside goes unnoticed by both."""
    alice = await Wire.open(server.ws_url, "alice", server.issue("alice", roles=["admin"]))
    session = await alice.create()
    bot = await Wire.open(server.ws_url, "bot", server.issue("bot", "agent"))
    await bot.join(session, "agent")
    await bot.hear_until("participant.announce", id="bot")
    witness = Witness(session, alice, bot)
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
