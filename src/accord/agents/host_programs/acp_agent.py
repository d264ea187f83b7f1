"""Any agent of the Agent Client Protocol, through the protocol's own package.

The agent alone says what its call does, so nothing that it says lowers a gate: every permission
that it asks for waits for people. It gets no files and no terminal from us.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import acp
from acp.exceptions import RequestError
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallUpdate,
)

from accord.agents.host_programs.host_turn import HostTurn, RequestedCall
from accord.agents.host_programs.line_program import HostError, HostProcess, host_environment
from accord.agents.loop import session_environment
from accord.core.policy.reported_call import CallKind
from accord.core.room.conversation.responses import UsageStats

ENDED_STATUSES = {"completed": True, "failed": False}
MAX_TITLE = 200


class AcpDriver:
    """One ACP agent with one session; it is also the client whose methods the agent calls."""

    def __init__(self, host: HostProcess, workdir: Path) -> None:
        self._host = host
        self._workdir = workdir
        self._turn: HostTurn | None = None
        self._session = ""
        self._prompting: asyncio.Task[Any] | None = None
        process = host.process
        self._connection = acp.connect_to_agent(self, process.stdin, process.stdout)  # type: ignore[arg-type]  # the methods that we do not offer are missing

    @classmethod
    async def start(
        cls, workdir: Path, session: str, fork: str | None, words: Sequence[str]
    ) -> "AcpDriver":
        """Start it and open a session; raises HostError."""
        environment = host_environment(session_environment(session, fork))
        driver = cls(await HostProcess.start(words, workdir, environment), workdir)
        try:
            await driver._initialize()
        except BaseException:
            await driver.close()
            raise
        return driver

    async def _initialize(self) -> None:
        await self._answered(self._connection.initialize(protocol_version=acp.PROTOCOL_VERSION))
        opened = await self._answered(
            self._connection.new_session(cwd=str(self._workdir), mcp_servers=[])
        )
        self._session = opened.session_id

    async def _answered(self, request: Any) -> Any:
        """The answer to a request; an agent that ends or refuses is a HostError."""
        asked = asyncio.ensure_future(request)
        gone = asyncio.create_task(self._host.process.wait())
        try:
            await asyncio.wait({asked, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise await self._host.ended()
            return asked.result()
        except RequestError as error:
            raise HostError(f"{self._host.name} refused: {error}") from None
        except ConnectionError:
            raise await self._host.ended() from None
        except ValueError as error:
            raise HostError(f"{self._host.name} does not keep to ACP: {error}") from None
        finally:
            gone.cancel()
            if not asked.done():
                asked.cancel()

    @property
    def is_running(self) -> bool:
        """Whether it can take a prompt."""
        return self._host.is_running

    async def turn(self, text: str, turn: HostTurn) -> UsageStats | None:
        """Prompt the agent and handle everything until its answer; raises HostError."""
        self._turn = turn
        block = TextContentBlock(type="text", text=text)
        prompting = asyncio.ensure_future(
            self._connection.prompt(session_id=self._session, prompt=[block])
        )
        self._prompting = prompting
        try:
            await self._answered(asyncio.shield(prompting))
        finally:
            self._turn = None
        return None

    async def interrupt(self) -> None:
        """Cancel the turn, and wait until the agent has confirmed it."""
        await self._connection.cancel(session_id=self._session)
        if self._prompting is not None:
            await self._answered(asyncio.shield(self._prompting))

    async def close(self) -> None:
        """Kill it and everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            await self._host.close()
        with contextlib.suppress(Exception):  # nothing is left to say to it
            await self._connection.close()
        if self._prompting is not None:
            self._prompting.cancel()
            await asyncio.gather(self._prompting, return_exceptions=True)

    # What the agent calls

    async def request_permission(
        self,
        session_id: str,
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **_: Any,
    ) -> RequestPermissionResponse:
        """Ask the people; only an option that allows once is ever chosen."""
        turn = self._turn
        once = next((each for each in options if each.kind == "allow_once"), None)
        if turn is None or session_id != self._session or once is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        permission = await turn.permit(self._call(tool_call))
        chosen = once if permission.allowed else rejecting(options)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        outcome = AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return RequestPermissionResponse(outcome=outcome)

    def _call(self, call: ToolCallUpdate) -> RequestedCall:
        given = call.model_dump(mode="json", by_alias=True, exclude_none=True)
        arguments: Mapping[str, Any] = {
            **{key: value for key, value in given.items() if key not in {"status", "_meta"}},
            "cwd": str(self._workdir),
        }
        title = " ".join((call.title or "").split())[:MAX_TITLE]
        return RequestedCall(
            id=call.tool_call_id,
            kind=CallKind.OTHER,
            tool=f"acp_{call.kind or 'other'}",
            arguments=arguments,
            description="".join(each for each in title if each.isprintable()),
        )

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Stream what the agent says, and report how its calls ended."""
        turn = self._turn
        if turn is None or session_id != self._session:
            return
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text)) if text:
                await turn.text(text)
            case AgentThoughtChunk(content=TextContentBlock(text=text)) if text:
                await turn.thinking(text)
            case ToolCallProgress(tool_call_id=id, status=status) if status in ENDED_STATUSES:
                success = ENDED_STATUSES[status]
                await turn.finished(id, content_text(update.content), success=success)
            case _:
                pass

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """There are no extensions."""
        del params
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """There are no extensions."""

    def on_connect(self, conn: Any) -> None:
        """The connection is known already."""


def rejecting(options: Sequence[PermissionOption]) -> PermissionOption | None:
    """The option that rejects this call alone."""
    return next((each for each in options if each.kind == "reject_once"), None)


def content_text(content: Sequence[Any] | None) -> str:
    """The text in the content of a call."""
    blocks = [getattr(each, "content", None) for each in content or ()]
    return "\n".join(each.text for each in blocks if isinstance(each, TextContentBlock))
