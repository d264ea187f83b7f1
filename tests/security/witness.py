"""Two people who talk while somebody attacks, and must not notice."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

from tests.helpers.server import ServerProcess
from tests.helpers.wire import Wire
from tests.security.scene import PROMPT

PAUSE = 0.01
# So often they talk before anything happens, to learn how slow this machine is by itself.
QUIET = 10
# An attack that holds the server up takes far longer; a machine with other things to do gets as
# much more as it took when nobody attacked.
LONGEST = 2.0
SLACK = 20


class Heard(NamedTuple):
    """A number, and how long it took to arrive."""

    number: int
    seconds: float


class Witness:
    """Alice counts, bob listens."""

    def __init__(self, session: str, alice: Wire, bob: Wire) -> None:
        self.session = session
        self.alice = alice
        self.bob = bob
        self.said: dict[int, float] = {}
        self.heard: list[Heard] = []
        self.done = False
        self.usual = 0.0

    async def talk(self) -> None:
        """Until it is over; never more than one number is under way."""
        while not self.done:
            await self.count()
            await asyncio.sleep(PAUSE)

    async def count(self) -> None:
        """The next number."""
        number = len(self.said)
        self.said[number] = time.monotonic()
        await self.alice.say("prompt.submit", self.session, PROMPT | {"content": str(number)})
        told = await self.bob.hear_until("prompt.submit")
        seconds = time.monotonic() - self.said[number]
        self.heard.append(Heard(int(told["payload"]["content"]), seconds))

    async def calm(self) -> None:
        """How long it takes while nobody attacks."""
        for _ in range(QUIET):
            await self.count()
        self.usual = max(each.seconds for each in self.heard)

    def check(self) -> None:
        """Everything arrived, once, in order and in time."""
        assert [each.number for each in self.heard] == list(self.said)
        assert max(each.seconds for each in self.heard) < LONGEST + SLACK * self.usual


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
    talking = asyncio.create_task(witness.talk())
    try:
        yield witness
    finally:
        witness.done = True
        await talking
        for wire in (alice, bot):  # what nobody read is in the way of a goodbye
            wire.socket.transport.abort()
    witness.check()
