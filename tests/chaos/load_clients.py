"""Clients that keep a server busy, however often it is killed."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from accord.client import AcceptedMessage, Client, Session
from accord.client.connection.backoff import RetryPolicy
from accord.core.kernel.messages import Body
from accord.core.room.approval.tool_proposals import ToolPropose
from accord.core.room.conversation.prompts import PromptSubmit
from tests.helpers.servers.server_process import ServerProcess

AT_ONCE = 8
SOON = RetryPolicy(first_delay_s=0.01, max_delay_s=0.05)
PEOPLE = {
    "alice": ("human", ("admin", "driver")),
    "bob": ("human", ("driver",)),
    "claude": ("agent", ("driver",)),
}


@asynccontextmanager
async def people(server: ServerProcess) -> AsyncIterator[dict[str, Client]]:
    """Everybody, with a token each; they reconnect by themselves."""
    async with AsyncExitStack() as stack:
        made = {}
        for id, (kind, roles) in PEOPLE.items():
            token = server.issue_token(id, kind, roles)
            client = Client(server.url, token=token, retry=SOON)
            made[id] = await stack.enter_async_context(client)
        yield made


def prompt(who: str) -> Callable[[int], Body]:
    """The n-th thing that somebody asks."""
    return lambda n: PromptSubmit(f"{who}:{n}", "claude", (who,), ())


class AcknowledgedCount:
    """Counts what was acknowledged by anybody."""

    def __init__(self) -> None:
        self.count = 0
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def add(self) -> None:
        """One more."""
        self.count += 1
        self._news.set()

    async def reach(self, count: int) -> None:
        """Until there are that many; raises what kept somebody from going on."""
        while self.count < count:
            self._news.clear()
            self._check()
            await self._news.wait()

    def watch(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        """Whoever fails is heard of at once."""
        self._tasks.append(task)
        task.add_done_callback(lambda _: self._news.set())
        return task

    def _check(self) -> None:
        for task in self._tasks:
            if task.done() and (error := task.exception()):
                raise error


class Speaker:
    """Says one thing after another, several at once, and notes what was acknowledged."""

    def __init__(self, session: Session, words: Callable[[int], Body], ref: str | None) -> None:
        self.session = session
        self.words = words
        self.ref = ref
        self.said = 0
        self.acknowledged: list[AcceptedMessage] = []

    async def speak(self, tally: AcknowledgedCount, enough: asyncio.Event) -> None:
        """Until it is enough; then until everything is acknowledged."""
        waiting: deque[asyncio.Future[AcceptedMessage]] = deque()
        while waiting or not enough.is_set():
            if len(waiting) < AT_ONCE and not enough.is_set():
                waiting.append(self.session.say(self.words(self.said), self.ref))
                self.said += 1
            else:
                self.acknowledged.append(await waiting.popleft())
                tally.add()


class Worker:
    """An agent that asks before each risky thing it does, and does it once it may."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.acknowledged: list[AcceptedMessage] = []
        self.done: list[str] = []

    async def speak(self, tally: AcknowledgedCount, enough: asyncio.Event) -> None:
        """Propose, wait for the grant, use it, report; until it is enough."""
        while not enough.is_set():
            proposal = await self.session.propose(
                "shell", {"command": "make"}, category="shell_execute", risk="high"
            )
            granted = await self.session.decision(proposal)
            self.acknowledged.append(await self.session.execute(granted))
            result = await self.session.result(granted, success=True, duration_ms=1)
            self.acknowledged.append(result)
            self.done.append(proposal)
            tally.add()


class Approver:
    """Says yes to whatever is proposed."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.acknowledged: list[AcceptedMessage] = []

    async def approve(self) -> None:
        """For ever."""
        async for envelope in self.session.messages():
            if isinstance(envelope.body, ToolPropose):
                self.acknowledged.append(await self.session.approve(envelope.id))
