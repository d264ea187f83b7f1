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
# On a machine with other things to do; an attack that holds the server up takes far longer.
LONGEST = 2.0


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

    async def talk(self) -> None:
        """Until it is over; never more than one number is under way."""
        while not self.done:
            number = len(self.said)
            self.said[number] = time.monotonic()
            await self.alice.say("prompt.submit", self.session, PROMPT | {"content": str(number)})
            told = await self.bob.hear_until("prompt.submit")
            seconds = time.monotonic() - self.said[number]
            self.heard.append(Heard(int(told["payload"]["content"]), seconds))
            await asyncio.sleep(PAUSE)

    def check(self) -> None:
        """Everything arrived, once, in order and in time."""
        assert [each.number for each in self.heard] == list(self.said)
        assert max(each.seconds for each in self.heard) < LONGEST


@contextlib.asynccontextmanager
async def witnessed(server: ServerProcess) -> AsyncIterator[Witness]:
    """What happens inside goes unnoticed by both."""
    alice = await Wire.open(server.ws_url, "alice", server.issue("alice", roles=["admin"]))
    session = await alice.create()
    bot = await Wire.open(server.ws_url, "bot", server.issue("bot", "agent"))
    await bot.join(session, "agent")
    await bot.hear_until("participant.announce", id="bot")
    witness = Witness(session, alice, bot)
    talking = asyncio.create_task(witness.talk())
    try:
        yield witness
    finally:
        witness.done = True
        await talking
        for wire in (alice, bot):  # what nobody read is in the way of a goodbye
            wire.socket.transport.abort()
    witness.check()
