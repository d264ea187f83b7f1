"""Clients who post, vote, execute, fork and reconnect, and note what they are told."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Self

from accord.client import AcceptedMessage, Client, Envelope, RetryPolicy, ServerRefused, Session
from accord.client.session_defaults import default_config
from accord.core.kernel.ballot import AnyOf
from accord.core.room.approval.tool_proposals import ToolApprove, ToolPropose
from accord.core.room.conversation.prompts import PromptSubmit
from tests.helpers.clients.listener import SessionListener
from tests.helpers.history.checker import Acknowledged, Heard, History, Reading
from tests.helpers.servers.server_group import ServerGroup
from tests.helpers.servers.tcp_proxy import TcpProxy

SOON = RetryPolicy(first_delay_s=0.01, max_delay_s=0.1)
QUORUM = 2
PEOPLE = ("alice", "bob", "carol")
AGENT = "claude"
MEMBERS = (*PEOPLE, AGENT)
# Messages of one sender that wait for their acknowledgement.
AT_ONCE = 4


class Ear(SessionListener):
    """Notes what a member hears."""

    def __init__(self, session: Session, on_proposal: Callable[[str], None] | None) -> None:
        self.heard: list[Heard] = []
        self._on_proposal = on_proposal
        super().__init__(session)

    def on_message(self, envelope: Envelope) -> None:
        self.heard.append(Heard(envelope.id, envelope.seq))
        if self._on_proposal and isinstance(envelope.body, ToolPropose):
            self._on_proposal(envelope.id)

    async def until(self, seq: int) -> None:
        """Wait until this message or a later one was heard."""
        await self._wait_until(
            lambda: self._task.done() or any(heard.seq >= seq for heard in self.heard[-50:])
        )
        if self._task.done():
            self._task.result()


class Member:
    """A member of the session on two connections, each through a balancer of its own."""

    def __init__(self, id: str, session: Session, second: Session, balancer: TcpProxy) -> None:
        self.id = id
        self.session = session
        self.second = second
        self.balancer = balancer
        self.acknowledged: list[AcceptedMessage] = []
        self.joined_at = 0

    async def note(self, sent: Awaitable[AcceptedMessage]) -> AcceptedMessage | None:
        """The acknowledgement, or None if the message was refused."""
        try:
            accepted = await sent
        except ServerRefused:
            return None
        self.acknowledged.append(accepted)
        return accepted


class Workload:
    """A session with three people and an agent on all servers of a group."""

    def __init__(self, group: ServerGroup, rng: random.Random) -> None:
        self.group = group
        self.rng = rng
        self.members: dict[str, Member] = {}
        self.ears: dict[str, Ear] = {}
        self.done = 0
        self.executed = 0
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._enough = asyncio.Event()
        self._numbers = 0

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        config = default_config(default_gate_quorum=AnyOf(QUORUM))
        issue = self.group[0].issue_token  # in a thread: proxies to the database run on this loop
        tokens = {id: await asyncio.to_thread(issue, id, *rights_of(id)) for id in MEMBERS}
        id = ""
        for name, token in tokens.items():
            balancer, client = await self._connect(token)
            session = await (client.join(id) if id else client.create(config))
            id = session.id
            _, other = await self._connect(token)
            second = await other.join(id, listen=False)
            self.members[name] = Member(name, session, second, balancer)
            vote = self._vote_soon(name) if name in PEOPLE[1:] else None
            self.ears[name] = await self._stack.enter_async_context(Ear(session, vote))
        for work in (
            *(self._post(self.members[name]) for name in PEOPLE),
            self._execute(self.members[AGENT]),
            self._fork(self.members["alice"]),
        ):
            self._spawn(work)
        return self

    async def _connect(self, token: str) -> tuple[TcpProxy, Client]:
        """A client behind a balancer that chooses a server for each connection."""
        balancer = TcpProxy(0)
        balancer.choose_target = self._choose_port
        await balancer.start()
        self._stack.push_async_callback(balancer.close)
        client = Client(f"http://127.0.0.1:{balancer.port}", token=token, retry=SOON)
        return balancer, await self._stack.enter_async_context(client)

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    # For the test

    async def progress(self, messages: int, executions: int = 0) -> None:
        """Wait until so many more messages were acknowledged and tools executed."""
        messages, executions = self.done + messages, self.executed + executions
        async with asyncio.timeout(60):
            while self.done < messages or self.executed < executions:
                self._check()
                await asyncio.sleep(0.01)

    def reconnect_one(self) -> None:
        """Cut the connection of a member, who connects again to any server."""
        self.rng.choice(list(self.members.values())).balancer.cut()

    async def finish(self) -> None:
        """Stop sending, and wait until everything sent was acknowledged and heard."""
        self._enough.set()
        async with asyncio.timeout(60):
            await asyncio.gather(*self._tasks)
            # Everyone hears a message of the session itself; the last one so far may be a fork's.
            alice = self.members["alice"]
            last = await alice.note(alice.session.send(prompt("alice", "the last message")))
            assert last is not None
            for ear in self.ears.values():
                await ear.until(last.seq)

    def history(self) -> History:
        """What the clients were told so far."""
        self._check()
        acknowledged = [
            Acknowledged(member.id, member.session.id, each.id, each.seq)
            for member in self.members.values()
            for each in member.acknowledged
        ]
        readings = [
            Reading(name, member.session.id, list(self.ears[name].heard), first_of(self.ears[name]))
            for name, member in self.members.items()
        ]
        return History(acknowledged, readings, frozenset(PEOPLE), QUORUM)

    # What they do

    def _choose_port(self) -> int:
        return self.rng.choice([server.port for server in self.group.running()])

    async def _post(self, member: Member) -> None:
        waiting = list[asyncio.Task[None]]()
        while not self._enough.is_set():
            text = f"{member.id} {self._next_number()}"
            sending = member.session.send(prompt(member.id, text))
            waiting.append(asyncio.create_task(self._count(member, sending)))
            if len(waiting) >= AT_ONCE:
                await waiting.pop(0)
            await asyncio.sleep(self.rng.uniform(0, 0.02))
        await asyncio.gather(*waiting)

    async def _count(self, member: Member, sent: Awaitable[AcceptedMessage]) -> None:
        if await member.note(sent) is not None:
            self.done += 1

    async def _execute(self, member: Member) -> None:
        """Propose, wait for the votes, and try to use the grant on two connections at once."""
        session = member.session
        while not self._enough.is_set():
            proposal = await session.propose("shell", {"command": "make"}, category="shell_execute")
            granted = await session.decision(proposal)
            await asyncio.gather(
                member.note(session.execute(granted)), member.note(member.second.execute(granted))
            )
            await member.note(session.result(granted, success=True, duration_ms=1))
            self.executed += 1

    def _vote_soon(self, name: str) -> Callable[[str], None]:
        return lambda proposal: self._spawn(self._vote(self.members[name], proposal))

    async def _vote(self, member: Member, proposal: str) -> None:
        """Try to vote on two connections at once."""
        vote = ToolApprove(tool_proposal=proposal, approver=member.id)
        sessions = (member.session, member.second)
        await asyncio.gather(*(member.note(each.send(vote, proposal)) for each in sessions))

    async def _fork(self, member: Member) -> None:
        while not self._enough.is_set():
            number = self._next_number()
            fork = await member.session.fork(f"try {number}", ("bob", AGENT))
            inside = member.session.within(fork)
            await self._count(member, inside.send(prompt(member.id, "inside")))
            await asyncio.sleep(self.rng.uniform(0.1, 0.3))

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    def _check(self) -> None:
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error


def prompt(sender: str, text: str) -> PromptSubmit:
    return PromptSubmit(text, AGENT, (sender,), ())


def first_of(ear: Ear) -> int:
    """Behind this message the reader hears everything."""
    return next((heard.seq for heard in ear.heard if heard.seq), 0)


def rights_of(id: str) -> tuple[str, tuple[str, ...]]:
    """Kind and roles of a member."""
    if id == AGENT:
        return "agent", ("driver",)
    return "human", ("admin", "driver", "approver") if id == "alice" else ("driver", "approver")
