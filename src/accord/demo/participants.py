"""The two members of the demonstration: Alice, and an agent that follows a script."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

import msgspec

from accord.agents.loop import Agent
from accord.agents.script import load_script
from accord.agents.scripted_behavior import ScriptedBehavior
from accord.client import Client, Envelope, ServerRefused, Session
from accord.core.dialects import pvp
from accord.core.kernel.messages import Body
from accord.demo.narration import Narrator
from accord.demo.processes import GIT_ENVIRONMENT, DemoRepository, ServerProcess

SCRIPT_FILE = Path(__file__).with_name("script.toml")
MESSAGE_TIMEOUT_S = 15.0


class MessageWatcher:
    """Prints and keeps the messages Alice receives, and waits for particular ones."""

    def __init__(self, narrator: Narrator, session: Session) -> None:
        self.received: list[Envelope] = []
        self._narrator = narrator
        self._session = session
        self._news = asyncio.Condition()

    async def listen(self) -> None:
        """Receive messages until the session ends."""
        async for envelope in self._session.messages():
            async with self._news:
                self.received.append(envelope)
                self._narrator.print_message(to_wire(envelope))
                self._news.notify_all()

    async def wait_for(self, test: Callable[[Envelope], bool]) -> Envelope:
        """The first message that matches, whether already received or still to come."""
        matches: list[Envelope] = []

        def is_received() -> bool:
            matches[:] = [envelope for envelope in self.received if test(envelope)][:1]
            return bool(matches)

        async with asyncio.timeout(MESSAGE_TIMEOUT_S), self._news:
            await self._news.wait_for(is_received)
        return matches[0]

    async def wait_for_next(self, *kinds: type[Body]) -> Envelope:
        """The next message with one of these bodies that was not received yet."""
        known = {envelope.id for envelope in self.received}
        return await self.wait_for(
            lambda envelope: isinstance(envelope.body, kinds) and envelope.id not in known
        )


class DemoSession:
    """The server, the repository and both members; closes all of them at the end."""

    def __init__(
        self, narrator: Narrator, server: ServerProcess, repository: DemoRepository
    ) -> None:
        self.narrator = narrator
        self.server = server
        self.repository = repository
        self.early_refusal: asyncio.Future[ServerRefused] = (
            asyncio.get_running_loop().create_future()
        )
        self.alice: Client
        self.session: Session
        self.watcher: MessageWatcher
        self._exit_stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self, url: str, alice: str, claude: str) -> None:
        """Connect both members, each with its own client, and start the agent."""
        self.alice = await self._exit_stack.enter_async_context(Client(url, token=alice))
        self.session = await self.alice.create(name="Fix the title")
        self.watcher = MessageWatcher(self.narrator, self.session)
        self._start(self.watcher.listen())
        agent = await self._exit_stack.enter_async_context(Client(url, token=claude))
        agent_session = await agent.join(self.session.id, name="Claude")
        behavior = ScriptedBehavior(load_script(SCRIPT_FILE))
        env = {**GIT_ENVIRONMENT, "ACCORD_HOME": str(self.server.home)}
        path = self.repository.path
        self._start(
            Agent(agent_session, behavior, path, extra_env=env, on_refused=self._refused).run()
        )

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    def _refused(self, refusal: ServerRefused) -> None:
        self.early_refusal.set_result(refusal)
        self.narrator.print_note("claude does not wait and tries to run it; the server refuses:")
        self.narrator.print_note(f"{refusal.code}: {refusal.message}", bad=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop all tasks and print the errors that ended them early."""
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                self.narrator.print_note(f"{type(outcome).__name__}: {outcome}", bad=True)
        await self._exit_stack.aclose()


def to_wire(envelope: Envelope) -> dict[str, Any]:
    """The envelope as a JSON object, as on the wire."""
    head = (
        envelope.id,
        envelope.ts,
        envelope.session,
        envelope.sender,
        envelope.type,
        envelope.body,
    )
    sent = pvp.OutgoingEnvelope(
        pvp.VERSION, *head, envelope.ref, envelope.seq, envelope.causal_refs, envelope.fork
    )
    wire: dict[str, Any] = msgspec.to_builtins(sent)
    return wire
