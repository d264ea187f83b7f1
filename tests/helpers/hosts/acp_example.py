"""A small ACP agent, made with the protocol's own package: asks, touches a file, waits."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import acp
from acp.schema import PermissionOption, ToolCallUpdate

OPTIONS = [
    PermissionOption(option_id="always", name="Always", kind="allow_always"),
    PermissionOption(option_id="once", name="Once", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class ExampleAgent:
    """Answers "touch" by asking first, and "wait" never."""

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> Any:
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: Any) -> Any:
        self.cwd = Path(cwd)
        self.cancelled = asyncio.Event()
        return acp.NewSessionResponse(session_id=uuid4().hex)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> Any:
        self.cancelled.clear()
        if prompt[0].text.endswith("wait"):
            await self.cancelled.wait()
            return acp.PromptResponse(stop_reason="cancelled")
        call = ToolCallUpdate(
            tool_call_id="c1", title="Touch mark", kind="edit", raw_input={"path": "mark"}
        )
        answer = await self.client.request_permission(
            session_id=session_id, tool_call=call, options=OPTIONS
        )
        allowed = getattr(answer.outcome, "option_id", "") == "once"
        if allowed:
            (self.cwd / "mark").touch()
            done = acp.update_tool_call("c1", status="completed")
            await self.client.session_update(session_id=session_id, update=done)
        said = acp.update_agent_message_text("touched" if allowed else "not allowed")
        await self.client.session_update(session_id=session_id, update=said)
        return acp.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()


if __name__ == "__main__":
    asyncio.run(acp.run_agent(ExampleAgent()))  # type: ignore[arg-type]  # only what it needs
