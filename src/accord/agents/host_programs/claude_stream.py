"""Claude Code by its stream-json protocol.

A hook that we register makes Claude ask about every call, also about those that its settings allow:
it answers "ask", and the question then comes as a request that may wait as long as people need.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from accord.agents.host_programs.host_turn import HostTurn, RequestedCall
from accord.agents.host_programs.line_program import HostError, HostProcess, host_environment
from accord.agents.loop import session_environment
from accord.core.policy.reported_call import CallKind
from accord.core.room.conversation.responses import UsageStats
from accord.daemon.host_tools import CAPTIONS, KIND_BY_TOOL
from accord.hosts.hook_events import CLAUDE_CODE

PROGRAM = "claude"
OPTIONS = (
    *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
    *("--include-partial-messages", "--permission-prompt-tool", "stdio"),
    *("--permission-mode", "default"),
)
HOOK_ID = "accord-ask"
ASK = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "ask",
        "permissionDecisionReason": "Accord asks the people in the session",
    }
}
MCP_PREFIX = "mcp__"
INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
MAX_NUMBER = 1e15  # of tokens or costs that a host may claim


class ClaudeDriver:
    """One Claude Code process, which keeps its conversation from turn to turn."""

    def __init__(self, host: HostProcess, workdir: Path) -> None:
        self._host = host
        self._workdir = workdir
        self._numbers = count(1)
        self._cost = 0.0
        self._model = ""

    @classmethod
    async def start(
        cls, workdir: Path, session: str, fork: str | None, model: str, program: str = PROGRAM
    ) -> "ClaudeDriver":
        """Start it and register the hook; raises HostError."""
        words = [program, *OPTIONS, *(["--model", model] if model else [])]
        environment = host_environment(session_environment(session, fork))
        driver = cls(await HostProcess.start(words, workdir, environment), workdir)
        hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": [HOOK_ID]}]}
        try:
            await driver._initialize(hooks)
        except BaseException:
            await driver.close()
            raise
        return driver

    async def _initialize(self, hooks: Mapping[str, Any]) -> None:
        id = self._request({"subtype": "initialize", "hooks": hooks})
        while (answer := await self._host.receive()).get("type") != "control_response":
            pass
        response = answer.get("response")
        if not isinstance(response, dict) or response.get("request_id") != id:
            raise HostError("Claude Code answered a question that was not asked")
        if response.get("subtype") != "success":
            raise HostError(f"Claude Code takes no hook: {response.get('error')}")

    @property
    def is_running(self) -> bool:
        """Whether it can take a prompt."""
        return self._host.is_running

    def _request(self, request: Mapping[str, Any]) -> str:
        id = f"accord-{next(self._numbers)}"
        self._host.send({"type": "control_request", "request_id": id, "request": request})
        return id

    def _respond(self, id: object, response: Mapping[str, Any]) -> None:
        answer = {"subtype": "success", "request_id": id, "response": response}
        self._host.send({"type": "control_response", "response": answer})

    async def turn(self, text: str, turn: HostTurn) -> UsageStats | None:
        """Send the text and handle everything until the result; raises HostError."""
        content = [{"type": "text", "text": text}]
        self._host.send({"type": "user", "message": {"role": "user", "content": content}})
        questions: dict[object, asyncio.Task[None]] = {}
        try:
            async with asyncio.TaskGroup() as group:
                while (message := await self._host.receive()).get("type") != "result":
                    for task in [each for each in questions.values() if each.done()]:
                        task.result()
                    await self._handle(message, turn, questions, group)
                for question in questions.values():
                    question.cancel()
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return await self._end(message, turn)

    async def _handle(
        self,
        message: Mapping[str, Any],
        turn: HostTurn,
        questions: dict[object, asyncio.Task[None]],
        group: asyncio.TaskGroup,
    ) -> None:
        match message:
            case {"type": "stream_event", "event": dict(event), "parent_tool_use_id": None}:
                await self._stream(event, turn)
            case {"type": "control_request", "request_id": id, "request": dict(request)}:
                if request.get("subtype") == "can_use_tool":
                    questions[id] = group.create_task(self._ask(id, request, turn))
                elif request.get("subtype") == "hook_callback":
                    self._respond(id, ASK)
                else:
                    self._refuse(id, f"there is no {request.get('subtype')}")
            case {"type": "control_cancel_request", "request_id": id}:
                if (question := questions.get(id)) is not None:
                    question.cancel()
            case {"type": "user", "message": {"content": list(blocks)}}:
                await self._results(blocks, turn)
            case {"type": "system", "subtype": "init", "model": str(model)}:
                self._model = model[:256]
            case _:
                pass

    def _refuse(self, id: object, why: str) -> None:
        answer = {"subtype": "error", "request_id": id, "error": why}
        self._host.send({"type": "control_response", "response": answer})

    async def _stream(self, event: Mapping[str, Any], turn: HostTurn) -> None:
        delta = event.get("delta")
        if event.get("type") != "content_block_delta" or not isinstance(delta, dict):
            return
        if isinstance(text := delta.get("text"), str) and text:
            await turn.text(text)
        elif isinstance(text := delta.get("thinking"), str) and text:
            await turn.thinking(text)

    async def _ask(self, id: object, request: Mapping[str, Any], turn: HostTurn) -> None:
        """Answer a question with what people decide; the input is allowed exactly as it was."""
        tool, given = request.get("tool_name"), request.get("input")
        if not isinstance(tool, str) or not isinstance(given, dict):
            self._respond(id, {"behavior": "deny", "message": "the call cannot be read"})
            return
        permission = await turn.permit(self._call(tool, given, request))
        if permission.allowed:
            self._respond(id, {"behavior": "allow", "updatedInput": given})
        else:
            self._respond(id, {"behavior": "deny", "message": permission.reason})

    def _call(
        self, tool: str, given: Mapping[str, Any], request: Mapping[str, Any]
    ) -> RequestedCall:
        caption = CAPTIONS[CLAUDE_CODE].get(tool, "")
        exact = {key: value for key, value in given.items() if key != caption}
        is_mcp = tool.startswith(MCP_PREFIX)
        kind = CallKind.MCP if is_mcp else KIND_BY_TOOL[CLAUDE_CODE].get(tool, CallKind.OTHER)
        exact.setdefault("cwd", str(self._workdir))
        return RequestedCall(
            id=str(request.get("tool_use_id")),
            kind=kind,
            tool=tool,
            arguments=exact,
            description=str(given.get(caption) or ""),
            mcp_server=tool.removeprefix(MCP_PREFIX).partition("__")[0] if is_mcp else "",
        )

    async def _results(self, blocks: list[Any], turn: HostTurn) -> None:
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                output = result_text(block.get("content"))
                success = not block.get("is_error")
                await turn.finished(str(block.get("tool_use_id")), output, success=success)

    async def _end(self, result: Mapping[str, Any], turn: HostTurn) -> UsageStats:
        """The usage of the turn; a failure that is no interrupt is told in the answer."""
        if result.get("is_error") and isinstance(result.get("result"), str):
            await turn.text(result["result"])
        usage = result.get("usage")
        counts: Mapping[str, Any] = usage if isinstance(usage, dict) else {}
        total, before = number(result.get("total_cost_usd")), self._cost
        self._cost = total
        return UsageStats(
            input_tokens=sum(int(number(counts.get(name))) for name in INPUT_COUNTS),
            output_tokens=int(number(counts.get("output_tokens"))),
            cost_usd=total - before if total >= before else total,
            model=self._model or None,
            latency_ms=int(number(result.get("duration_ms"))),
        )

    async def interrupt(self) -> None:
        """Interrupt the turn, and wait until it has ended."""
        self._request({"subtype": "interrupt"})
        while (await self._host.receive()).get("type") != "result":
            pass

    async def close(self) -> None:
        """Kill it and everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            await self._host.close()


def result_text(content: object) -> str:
    """The text of a tool's result."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(each.get("text", "")) for each in parts if isinstance(each, dict))


def number(value: object) -> float:
    """A number that is not negative; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value < MAX_NUMBER else 0.0
