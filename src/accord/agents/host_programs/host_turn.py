"""One turn of a host in the session: what it says is streamed, what it wants to run is a gate."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from accord.agents.executor import INTERRUPTED_MESSAGE
from accord.agents.loop import Agent, Prompt
from accord.agents.reply_stream import MAX_CHUNK_CHARS, ReplyStream
from accord.agents.tools.call_report import CallReporter
from accord.client import ClientError, Rejected, ServerRefused
from accord.client.response_stream import FinishReason
from accord.core.policy.reported_call import CallKind
from accord.core.room.approval.grants import ToolExecute
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from accord.core.room.conversation.responses import UsageStats

MAX_OUTPUT_CHARS = 256 << 10


class RequestedCall(NamedTuple):
    """A call that a host wants to make; `id` is the host's own id of it."""

    id: str
    kind: CallKind
    tool: str
    arguments: Mapping[str, Any]
    description: str = ""
    mcp_server: str = ""


class CallPermission(NamedTuple):
    """Whether a call may run, and if not, why; the words are for the model."""

    allowed: bool
    reason: str = ""


class RunningCall(NamedTuple):
    """A call that the host runs now."""

    granted: ToolExecute
    started_at: float


class HostTurn:
    """Answers one prompt through a host; always ends what it opened."""

    def __init__(self, agent: Agent, prompt: Prompt, reporter: CallReporter, workdir: Path) -> None:
        self._agent = agent
        self._prompt = prompt
        self._reporter = reporter
        self._workdir = workdir
        self.session = agent.session.within(prompt.fork)
        self._stream = ReplyStream(self.session, prompt.id)
        self._running: dict[str, RunningCall] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Report calls whose end is unknown as failed, and end the streams."""
        why = INTERRUPTED_MESSAGE if isinstance(error, asyncio.CancelledError) else "its host ended"
        for call in self._running.values():
            with contextlib.suppress(ClientError):
                _ = self.session.say(
                    result_of(call, success=False, error=why), call.granted.tool_proposal
                )
        self._running.clear()
        await self._stream.__aexit__(kind, error, trace)

    # Words

    async def text(self, text: str) -> None:
        """Add to the answer."""
        await self._stream.text(text)

    async def thinking(self, text: str) -> None:
        """Add to the thinking."""
        await self._stream.thinking(text)

    async def end_reply(
        self, reason: FinishReason = "tool_use", usage: UsageStats | None = None
    ) -> None:
        """End what was said so far; the next words begin another reply to the same prompt."""
        if reason != "tool_use" or self._stream.has_begun:
            await self._stream.finish(reason, usage)
            self._stream = ReplyStream(self.session, self._prompt.id)

    # Calls

    async def permit(self, call: RequestedCall) -> CallPermission:
        """Propose exactly this call and wait; an allowed call has used its grant up."""
        await self.end_reply()
        proposal = await self._proposal(call)
        try:
            granted = await self._agent.request_grant(proposal, self._prompt)
            await self._agent.wait_while_paused()
            await self.session.execute(granted)
        except Rejected as refusal:
            return CallPermission(allowed=False, reason=f"People rejected it: {refusal.reason}")
        except ServerRefused as refusal:
            return CallPermission(allowed=False, reason=f"Accord refused it: {refusal.message}")
        self._running[call.id] = RunningCall(granted, time.monotonic())
        return CallPermission(allowed=True)

    async def _proposal(self, call: RequestedCall) -> ToolPropose:
        return await self._reporter.proposal(
            call.kind,
            call.tool,
            call.arguments,
            self._workdir,
            description=call.description,
            mcp_server=call.mcp_server,
        )

    async def finished(self, id: str, output: str, *, success: bool) -> None:
        """Report how a permitted call ended; ends of other calls are no news."""
        call = self._running.pop(id, None)
        if call is None:
            return
        with contextlib.suppress(ServerRefused):  # such as: the grant expired meanwhile
            shown = output[:MAX_OUTPUT_CHARS]
            for start in range(0, len(shown), MAX_CHUNK_CHARS):
                await self.session.output(call.granted, shown[start : start + MAX_CHUNK_CHARS])
            error = None if success else (output.strip() or "the host reports a failure")[:2000]
            await self.session.send(
                result_of(call, success=success, error=error), call.granted.tool_proposal
            )


def result_of(call: RunningCall, *, success: bool, error: str | None) -> ToolResult:
    """The `tool.result` of a call that a host ran."""
    return ToolResult(
        tool_proposal=call.granted.tool_proposal,
        success=success,
        duration_ms=int((time.monotonic() - call.started_at) * 1000),
        error=error,
        grant=call.granted.grant.id if call.granted.grant else None,
    )
