"""The life of an agent in a session: prompt, answer, proposal, wait for the gate, run, result."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from accord.agents import shell
from accord.agents.leave import NotGrantedError, check
from accord.client import Envelope, Rejected, ServerRefused, Session, SessionOver
from accord.core.room.grants import ToolExecute
from accord.core.room.members import ParticipantAnnounce
from accord.core.room.notices import ErrorReport
from accord.core.room.prompts import PromptSubmit
from accord.core.room.streams import ResponseStart
from accord.core.room.tools import ToolPropose

_WORDS = re.compile(r"\s*\S+\s*|\s+")


class Prompt(NamedTuple):
    """What somebody asked."""

    id: str
    by: str
    content: str


class Outcome(NamedTuple):
    """What became of a proposal: it ran, well or badly, or it may not."""

    ran: bool
    success: bool = False
    output: str = ""
    reason: str = ""


class Mind(Protocol):
    """What makes an agent this one: it decides what to say and what to propose."""

    async def answer(self, agent: "Agent", prompt: Prompt) -> None:
        """Everything there is to do about a prompt."""
        ...


class Agent:
    """Answers prompts to it, one after the other, until the session ends.

    Runs nothing but what it proposed itself and holds a live grant for.
    """

    def __init__(
        self,
        session: Session,
        mind: Mind,
        workdir: Path,
        *,
        limits: shell.Limits | None = None,
        refused: Callable[[ServerRefused], None] = lambda _: None,
    ) -> None:
        self.session = session
        self.workdir = workdir
        self.limits = limits or shell.Limits()
        self._mind = mind
        self._refused = refused
        self._open: dict[str, Prompt] = {}
        self._arrived = asyncio.Event()
        self._asked = asyncio.Event()

    async def run(self) -> None:
        """Until the session is over."""
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(self._work())
            async for envelope in self.session.messages():
                self._hear(envelope)
            working.cancel()

    def _hear(self, said: Envelope) -> None:
        me = self.session.me
        match said.body:
            case PromptSubmit(content=content, target_agent=target) if target == me:
                self._open[said.id] = Prompt(said.id, said.sender, content)
                self._asked.set()
            case ResponseStart(agent=agent, prompt_ref=prompt) if agent == me:
                self._open.pop(prompt, None)
            case ParticipantAnnounce(id=id) if id == me:
                # On joining, history comes first: what was answered in it is not answered again.
                self._arrived.set()
            case _:
                pass

    async def _work(self) -> None:
        await self._arrived.wait()
        while True:
            await self._asked.wait()
            self._asked.clear()
            while self._open:
                await self._answer(self._open.pop(next(iter(self._open))))

    async def _answer(self, prompt: Prompt) -> None:
        try:
            await self._mind.answer(self, prompt)
        except ServerRefused as no:
            await self._complain(prompt.id, f"I could not go on: {no.message}")
        except SessionOver:
            return

    # What a mind can do

    async def say(self, prompt: Prompt, text: str) -> None:
        """Stream an answer, word by word."""
        async with self.session.respond(prompt.id) as out:
            for word in _WORDS.findall(text):
                await out.write(word)

    async def propose(self, body: ToolPropose, prompt: Prompt, *, hasty: bool = False) -> Outcome:
        """Ask to run something, wait for the decision, and run it if that was yes."""
        proposal = (await self.session.send(body, prompt.id)).id
        if hasty:
            await self._try_early(proposal)
        try:
            granted = await self.session.decision(proposal)
            check(granted, proposal, body, self.session.id)
        except Rejected as no:
            return Outcome(ran=False, reason=no.reason)
        except NotGrantedError as no:
            await self._complain(proposal, str(no))
            return Outcome(ran=False, reason=str(no))
        return await self._run(granted, body)

    async def _try_early(self, proposal: str) -> None:
        try:
            await self.session.execute(ToolExecute(tool_proposal=proposal, approved_by=()))
        except ServerRefused as no:
            self._refused(no)

    async def _complain(self, about: str, what: str) -> None:
        report = ErrorReport(code="AGENT_ERROR", message=what, recoverable=True, related_to=about)
        await self.session.send(report, about)

    async def _run(self, granted: ToolExecute, body: ToolPropose) -> Outcome:
        """The one place where anything is run; the server is told first, and counts the use."""
        try:
            await self.session.execute(granted)
        except ServerRefused as no:
            return Outcome(ran=False, reason=no.message)
        printed: list[str] = []

        async def hear(stream: shell.Stream, text: str) -> None:
            printed.append(text)
            await self.session.output(granted, text, stream)

        done = await self._perform(body, hear)
        cut = " (output was cut)" if done.cut else ""
        await self.session.result(
            granted,
            success=done.success,
            duration_ms=done.duration_ms,
            result={"exit_code": done.code},
            error=f"{done.problem}{cut}" if done.problem else None,
        )
        output = "".join(printed).strip()
        return Outcome(ran=True, success=done.success, output=output, reason=done.problem or "")

    async def _perform(self, body: ToolPropose, hear: shell.Listener) -> shell.Done:
        if body.tool_name != "shell":
            return shell.Done(None, 0, f"there is no tool {body.tool_name} here")
        try:
            made = shell.call(body.arguments)
        except shell.NotACommandError as no:
            return shell.Done(None, 0, str(no))
        return await shell.run(made, self.workdir, hear, self.limits)
