"""Who is on the stage: Alice, driven by the story, and an agent that follows a script."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

import msgspec

from accord.agents.loop import Agent
from accord.agents.script import load
from accord.agents.scripted import Scripted
from accord.client import Client, Envelope, ServerRefused, Session
from accord.core.dialects import pvp
from accord.core.kernel.log import Body
from accord.demo.props import QUIET, Repository, ServerProcess
from accord.demo.stage import Stage

SCRIPT = Path(__file__).with_name("script.toml")
PATIENCE_S = 15.0


class Ears:
    """What Alice hears: shown at once, kept, and waited for."""

    def __init__(self, stage: Stage, room: Session) -> None:
        self.heard: list[Envelope] = []
        self._stage = stage
        self._room = room
        self._news = asyncio.Condition()

    async def listen(self) -> None:
        """Until the session is over."""
        async for said in self._room.messages():
            async with self._news:
                self.heard.append(said)
                self._stage.hear(wire(said))
                self._news.notify_all()

    async def until(self, test: Callable[[Envelope], bool]) -> Envelope:
        """The first message like that, however long ago."""
        found: list[Envelope] = []

        def there() -> bool:
            found[:] = [said for said in self.heard if test(said)][:1]
            return bool(found)

        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(there)
        return found[0]

    async def next(self, *kinds: type[Body]) -> Envelope:
        """The next message of these kinds that was not there yet."""
        known = {said.id for said in self.heard}
        return await self.until(lambda said: isinstance(said.body, kinds) and said.id not in known)


class Cast:
    """Everybody and everything the story needs, let go of in the end."""

    def __init__(self, stage: Stage, server: ServerProcess, repository: Repository) -> None:
        self.stage = stage
        self.server = server
        self.repository = repository
        self.too_early: asyncio.Future[ServerRefused] = asyncio.get_running_loop().create_future()
        self.alice: Client
        self.room: Session
        self.ears: Ears
        self._doors = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    async def enter(self, url: str, alice: str, claude: str) -> None:
        """Both come in, each on a connection of their own."""
        self.alice = await self._doors.enter_async_context(Client(url, token=alice))
        self.room = await self.alice.create(name="Fix the title")
        self.ears = Ears(self.stage, self.room)
        self._start(self.ears.listen())
        agent = await self._doors.enter_async_context(Client(url, token=claude))
        seat = await agent.join(self.room.id, name="Claude")
        mind = Scripted(load(SCRIPT))
        told = {**QUIET, "ACCORD_HOME": str(self.server.home)}
        path = self.repository.path
        self._start(Agent(seat, mind, path, told=told, refused=self._refused).run())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    def _refused(self, no: ServerRefused) -> None:
        self.too_early.set_result(no)
        self.stage.aside("claude does not wait and tries to run it; the server answers:")
        self.stage.aside(f"{no.code}: {no.message}", bad=True)

    async def __aenter__(self) -> Self:
        """An empty stage."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Everybody goes home; what went wrong beside the story is told."""
        for task in self._tasks:
            task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                self.stage.aside(f"{type(ended).__name__}: {ended}", bad=True)
        await self._doors.aclose()


def wire(said: Envelope) -> dict[str, Any]:
    """An envelope as it is on the wire."""
    head = (said.id, said.ts, said.session, said.sender, said.type, said.body)
    sent = pvp.Sent(pvp.VERSION, *head, said.ref, said.seq, said.causal_refs, said.fork)
    found: dict[str, Any] = msgspec.to_builtins(sent)
    return found
