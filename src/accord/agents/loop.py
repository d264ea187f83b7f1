"""The life of an agent in a session: prompt, answer, proposal, wait for the gate, run, result."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from accord.agents import hands, shell
from accord.agents.leave import NotGrantedError, check
from accord.agents.prompts import Desk, Prompt
from accord.client import Rejected, ServerRefused, Session, SessionOver
from accord.core.room.grants import ToolExecute
from accord.core.room.interrupts import InterruptRaise
from accord.core.room.notices import ErrorReport
from accord.core.room.state import Urgency
from accord.core.room.tools import ToolPropose

__all__ = ["Agent", "Mind", "Outcome", "Prompt"]

Action = Literal["paused", "stopped", "acknowledged"]
_WORDS = re.compile(r"\s*\S+\s*|\s+")
# An interrupt is answered within 30 s, even where the tool that a pause waits for runs on.
PATIENCE_S = 20.0


class Outcome(NamedTuple):
    """What became of a proposal: it ran, well or badly, or it may not."""

    ran: bool
    success: bool = False
    output: str = ""
    reason: str = ""


class Mind(Protocol):
    """What makes an agent this one: it decides what to say and what to propose."""

    async def answer(self, agent: "Agent", prompt: Prompt) -> None:
        """Everything there is to do about a prompt; `prompt.news()` has what was added since."""
        ...


class Agent:
    """Answers prompts to it, one after the other, until the session ends.

    Runs nothing but what it proposed itself and holds a live grant for. A stop ends at once what
    it does; a pause holds it after the present tool, until somebody prompts or amends. What it
    runs knows the session by `PVP_SESSION_ID`, so that a commit made there is linked to it;
    `told` is what else its commands find in their environment.
    """

    def __init__(
        self,
        session: Session,
        mind: Mind,
        workdir: Path,
        *,
        limits: shell.Limits | None = None,
        told: Mapping[str, str] | None = None,
        refused: Callable[[ServerRefused], None] = lambda _: None,
    ) -> None:
        self.session = session
        self.workdir = workdir
        self.limits = limits or shell.Limits()
        self._told = dict(told or {})
        self._mind = mind
        self._refused = refused
        self._arrived = asyncio.Event()
        self._asked = asyncio.Event()
        self._free = asyncio.Event()
        self._resting = asyncio.Event()
        self._desk = Desk(session.me, self._arrived.set, self._interrupted)
        self._answering: asyncio.Task[None] | None = None
        self._asides: asyncio.TaskGroup
        self._free.set()
        self._resting.set()

    async def run(self) -> None:
        """Until the session is over."""
        async with asyncio.TaskGroup() as self._asides:
            working = self._asides.create_task(self._work())
            async for envelope in self.session.messages():
                if self._desk.hear(envelope):
                    self._free.set()
                    self._asked.set()
            working.cancel()

    async def _work(self) -> None:
        await self._arrived.wait()
        while True:
            await self._asked.wait()
            self._asked.clear()
            while self._desk.waiting:
                await self._answer(self._desk.take())

    async def _answer(self, prompt: Prompt) -> None:
        """In a task of its own, so that a stop ends it and nothing else."""
        self._resting.clear()
        self._answering = asyncio.create_task(self._think(prompt))
        try:
            await asyncio.wait({self._answering})
        finally:
            await over(self._answering)
            self._answering, self._desk.current = None, None
            self._resting.set()

    async def _think(self, prompt: Prompt) -> None:
        try:
            await self._mind.answer(self, prompt)
        except ServerRefused as no:
            await self._complain(prompt.id, f"I could not go on: {no.message}", prompt.fork)
        except SessionOver:
            return

    # Interrupts

    def _interrupted(self, id: str, raised: InterruptRaise) -> None:
        """Called while listening: whatever it takes is done beside that."""
        if raised.urgency is Urgency.PAUSE:
            self._free.clear()
            self._asides.create_task(self._pause(id))
        else:
            self._free.set()
            if self._answering is not None:
                self._answering.cancel()
            self._asides.create_task(self._stop(id, self._answering))

    async def _stop(self, id: str, answering: asyncio.Task[None] | None) -> None:
        """What runs is killed before the answer says so."""
        if answering is not None:
            await asyncio.wait({answering})
        await self._acknowledge(id, "stopped")

    async def _pause(self, id: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._resting.wait()
        except TimeoutError:
            await self._acknowledge(id, "acknowledged")
        else:
            await self._acknowledge(id, "paused")

    async def _acknowledge(
        self, id: str, action: Literal["paused", "stopped", "acknowledged"]
    ) -> None:
        with contextlib.suppress(ServerRefused, SessionOver):
            await self.session.acknowledge(id, action)

    async def breathe(self) -> None:
        """Go on, unless one was told to pause; then as soon as somebody prompts or amends."""
        if not self._free.is_set():
            self._resting.set()
            await self._free.wait()
            self._resting.clear()

    # What a mind can do

    async def say(self, prompt: Prompt, text: str, *, more: bool = False) -> None:
        """Stream an answer, word by word; with `more` to come, the prompt can still be amended."""
        await self.breathe()
        async with self.session.within(prompt.fork).respond(prompt.id) as out:
            out.finish_reason = "tool_use" if more else "complete"
            for word in _WORDS.findall(text):
                await out.write(word)

    async def share(self, prompt: Prompt, key: str, text: str) -> None:
        """Put something on the shelf where one was asked."""
        await self.breathe()
        await self.session.within(prompt.fork).add_context(key, text)

    async def propose(self, body: ToolPropose, prompt: Prompt, *, hasty: bool = False) -> Outcome:
        """Ask to run something, wait for the decision, and run it if that was yes."""
        await self.breathe()
        proposal = (await self.session.within(prompt.fork).send(body, prompt.id)).id
        if hasty:
            await self._try_early(proposal)
        try:
            granted = await self._decision(proposal)
            check(granted, proposal, body, self.session.id)
        except Rejected as no:
            return Outcome(ran=False, reason=no.reason)
        except NotGrantedError as no:
            await self._complain(proposal, str(no), prompt.fork)
            return Outcome(ran=False, reason=str(no))
        await self.breathe()
        place = self.session.within(prompt.fork)
        told = {**self._told, **whose(self.session.id, prompt.fork)}
        done = await hands.run(place, granted, body, self.workdir, self.limits, told)
        return Outcome(done.began, done.success, done.printed, done.problem or "")

    async def _decision(self, proposal: str) -> ToolExecute:
        """Whoever waits for others rests."""
        self._resting.set()
        try:
            return await self.session.decision(proposal)
        finally:
            self._resting.clear()

    async def _try_early(self, proposal: str) -> None:
        try:
            await self.session.execute(ToolExecute(tool_proposal=proposal, approved_by=()))
        except ServerRefused as no:
            self._refused(no)

    async def _complain(self, about: str, what: str, fork: str | None) -> None:
        report = ErrorReport(code="AGENT_ERROR", message=what, recoverable=True, related_to=about)
        await self.session.within(fork).send(report, about)


def whose(session: str, fork: str | None) -> dict[str, str]:
    """What git hooks go by: whose work a commit is."""
    return {"PVP_SESSION_ID": session} | ({"PVP_FORK_ID": fork} if fork else {})


async def over(task: asyncio.Task[None]) -> None:
    """It is over, one way or the other; what went wrong in it is raised."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()):
        raise error
