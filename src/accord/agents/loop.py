"""An agent in a session: answers prompts, proposes tools, waits for approval, runs them."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from accord.agents import executor, shell
from accord.agents.grant_check import NotGrantedError, check_grant
from accord.agents.prompt_queue import Prompt, PromptQueue
from accord.agents.tools.work_tree_record import WorkTreeRecorder
from accord.client import Envelope, Rejected, ServerRefused, Session, SessionOver
from accord.core.room.approval.grants import ToolExecute
from accord.core.room.approval.tool_proposals import ToolPropose
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.conversation.interrupts import InterruptRaise
from accord.core.room.state import Urgency

__all__ = ["Agent", "AgentBehavior", "BehaviorError", "Prompt", "ToolOutcome"]

InterruptAction = Literal["paused", "stopped", "acknowledged"]
_WORDS = re.compile(r"\s*\S+\s*|\s+")
# The server expects an acknowledgement within 30 s, even if a paused agent's tool runs longer.
PAUSE_ACK_TIMEOUT_S = 20.0


class BehaviorError(Exception):
    """A prompt cannot be answered; the message is told to the session."""


class ToolOutcome(NamedTuple):
    """The outcome of a proposal: it ran (with or without success), or was not allowed to."""

    ran: bool
    success: bool = False
    output: str = ""
    reason: str = ""


class AgentBehavior(Protocol):
    """Decides what an agent says and proposes."""

    async def answer(self, agent: "Agent", prompt: Prompt) -> None:
        """Handle a prompt completely; `prompt.news()` has amendments made meanwhile."""
        ...


class Agent:
    """Answers the prompts addressed to it, one at a time, until the session ends.

    It runs only calls that it proposed itself and has a valid grant for. A stop interrupt ends
    its work at once; a pause takes effect after the current tool, until the next prompt or
    amendment. Its commands see `PVP_SESSION_ID`, so that their commits are linked to the session;
    `extra_env` is added to their environment. `on_message` sees every message first.
    """

    def __init__(
        self,
        session: Session,
        behavior: AgentBehavior,
        workdir: Path,
        *,
        limits: shell.CommandLimits | None = None,
        extra_env: Mapping[str, str] | None = None,
        on_refused: Callable[[ServerRefused], None] = lambda _: None,
        on_message: Callable[[Envelope], None] = lambda _: None,
    ) -> None:
        self.session = session
        self.workdir = workdir
        self.limits = limits or shell.CommandLimits()
        self._extra_env = dict(extra_env or {})
        self._behavior = behavior
        self._on_refused = on_refused
        self._on_message = on_message
        # What records runs in a directory that was made for them.
        self.recorder_of: Callable[[Path], WorkTreeRecorder | None] = lambda _: None
        self._joined = asyncio.Event()
        self._prompt_pending = asyncio.Event()
        self._unpaused = asyncio.Event()
        self._at_rest = asyncio.Event()
        self._prompt_queue = PromptQueue(session.me, self._joined.set, self._on_interrupt)
        self._answering: asyncio.Task[None] | None = None
        self._background: asyncio.TaskGroup
        self._unpaused.set()
        self._at_rest.set()

    async def run(self) -> None:
        """Receive messages and answer prompts until the session ends."""
        async with asyncio.TaskGroup() as self._background:
            working = self._background.create_task(self._answer_prompts())
            async for envelope in self.session.messages():
                self._on_message(envelope)
                if self._prompt_queue.receive(envelope):
                    self._unpaused.set()
                    self._prompt_pending.set()
            working.cancel()

    async def _answer_prompts(self) -> None:
        await self._joined.wait()
        while True:
            await self._prompt_pending.wait()
            self._prompt_pending.clear()
            while self._prompt_queue.pending:
                await self._answer(self._prompt_queue.take())

    async def _answer(self, prompt: Prompt) -> None:
        """Answer in a separate task, so that a stop cancels only that."""
        self._at_rest.clear()
        self._answering = asyncio.create_task(self._run_behavior(prompt))
        try:
            await asyncio.wait({self._answering})
        finally:
            await cancel_and_wait(self._answering)
            self._answering, self._prompt_queue.current = None, None
            self._at_rest.set()

    async def _run_behavior(self, prompt: Prompt) -> None:
        try:
            await self._behavior.answer(self, prompt)
        except ServerRefused as refusal:
            await self.report_error(
                prompt.id, f"The server refused to let me continue: {refusal.message}", prompt.fork
            )
        except BehaviorError as error:
            await self.report_error(prompt.id, str(error), prompt.fork)
        except SessionOver:
            return

    # Interrupts

    def _on_interrupt(self, id: str, raised: InterruptRaise) -> None:
        """Called from the receive loop, so it must not block it: the work is done in a task."""
        if raised.urgency is Urgency.PAUSE:
            self._unpaused.clear()
            self._background.create_task(self._pause(id))
        else:
            self._unpaused.set()
            if self._answering is not None:
                self._answering.cancel()
            self._background.create_task(self._stop(id, self._answering))

    async def _stop(self, id: str, answering: asyncio.Task[None] | None) -> None:
        """Acknowledge only after the running command was killed."""
        if answering is not None:
            await asyncio.wait({answering})
        await self._acknowledge(id, "stopped")

    async def _pause(self, id: str) -> None:
        try:
            async with asyncio.timeout(PAUSE_ACK_TIMEOUT_S):
                await self._at_rest.wait()
        except TimeoutError:
            await self._acknowledge(id, "acknowledged")
        else:
            await self._acknowledge(id, "paused")

    async def _acknowledge(
        self, id: str, action: Literal["paused", "stopped", "acknowledged"]
    ) -> None:
        with contextlib.suppress(ServerRefused, SessionOver):
            await self.session.acknowledge(id, action)

    async def wait_while_paused(self) -> None:
        """Return at once, or after a pause with the next prompt or amendment."""
        if not self._unpaused.is_set():
            self._at_rest.set()
            await self._unpaused.wait()
            self._at_rest.clear()

    # Called by behaviors

    async def say(self, prompt: Prompt, text: str, *, more: bool = False) -> None:
        """Stream a response word by word; with `more` to come, the prompt can still be amended."""
        await self.wait_while_paused()
        async with self.session.within(prompt.fork).respond(prompt.id) as out:
            out.finish_reason = "tool_use" if more else "complete"
            for word in _WORDS.findall(text):
                await out.write(word)

    async def share(self, prompt: Prompt, key: str, text: str) -> None:
        """Add a context item in the fork of the prompt."""
        await self.wait_while_paused()
        await self.session.within(prompt.fork).add_context(key, text)

    async def propose(
        self,
        body: ToolPropose,
        prompt: Prompt,
        *,
        execute_early: bool = False,
        workdir: Path | None = None,
    ) -> ToolOutcome:
        """Propose a tool call, wait for the decision, and run the call if it is granted.

        It runs in `workdir`, by default that of the agent.
        """
        try:
            granted = await self.request_grant(body, prompt, execute_early=execute_early)
        except Rejected as refusal:
            return ToolOutcome(ran=False, reason=refusal.reason)
        await self.wait_while_paused()
        session = self.session.within(prompt.fork)
        env = {**self._extra_env, **session_environment(self.session.id, prompt.fork)}
        where = workdir or self.workdir
        recorder = self.recorder_of(where)
        done = await executor.run_granted(session, granted, body, where, self.limits, env, recorder)
        return ToolOutcome(done.started, done.success, done.output, done.error or "")

    async def request_grant(
        self, body: ToolPropose, prompt: Prompt, *, execute_early: bool = False
    ) -> ToolExecute:
        """Propose a tool call and wait for its grant, which is checked; raises Rejected."""
        await self.wait_while_paused()
        proposal = (await self.session.within(prompt.fork).send(body, prompt.id)).id
        if execute_early:
            await self._execute_early(proposal)
        try:
            granted = await self._decision(proposal)
            check_grant(granted, proposal, body, self.session.id)
        except NotGrantedError as refusal:
            await self.report_error(proposal, str(refusal), prompt.fork)
            raise Rejected(proposal, str(refusal), self.session.me) from None
        return granted

    async def _decision(self, proposal: str) -> ToolExecute:
        """Wait for the decision; the agent is idle meanwhile, so a pause takes effect at once."""
        self._at_rest.set()
        try:
            return await self.session.decision(proposal)
        finally:
            self._at_rest.clear()

    async def _execute_early(self, proposal: str) -> None:
        try:
            await self.session.execute(ToolExecute(tool_proposal=proposal, approved_by=()))
        except ServerRefused as refusal:
            self._on_refused(refusal)

    async def report_error(self, about: str, what: str, fork: str | None) -> None:
        """Tell the session that something about a prompt or proposal failed."""
        report = ErrorReport(code="AGENT_ERROR", message=what, recoverable=True, related_to=about)
        await self.session.within(fork).send(report, about)


def session_environment(session: str, fork: str | None) -> dict[str, str]:
    """The variables by which the git hooks link a commit to its session and fork."""
    return {"PVP_SESSION_ID": session} | ({"PVP_FORK_ID": fork} if fork else {})


async def cancel_and_wait(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end; raises the task's own exception."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()):
        raise error
