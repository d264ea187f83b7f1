"""An agent in a real session answers, waits for approval, and runs only what was granted."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from accord.agents.loop import Agent
from accord.agents.script import Reply, Script, ScriptStep
from accord.agents.scripted_behavior import ScriptedBehavior
from accord.client import Client, Envelope, ServerRefused, Session
from accord.core.kernel.messages import Body
from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.grants import ToolExecute
from accord.core.room.approval.tool_proposals import ToolOutput, ToolPropose, ToolResult
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

MESSAGE_TIMEOUT_S = 60


class ObservedSession(NamedTuple):
    """Alice's session and the messages she received."""

    alice: Session
    received: list[Envelope]
    changed: asyncio.Condition

    async def wait_for(self, kind: type[Body], number: int = 1) -> Any:
        """The body of the n-th message of this kind."""
        async with asyncio.timeout(MESSAGE_TIMEOUT_S), self.changed:
            await self.changed.wait_for(lambda: self.count(kind) >= number)
        return self.messages_of(kind)[number - 1].body

    def messages_of(self, kind: type[Body]) -> list[Envelope]:
        return [message for message in self.received if isinstance(message.body, kind)]

    def count(self, kind: type[Body]) -> int:
        return len(self.messages_of(kind))


@asynccontextmanager
async def open_session(
    server: ServerProcess, session: str | None = None
) -> AsyncIterator[ObservedSession]:
    """Alice creates a session, or joins it again, and records its messages."""
    async with Client(server.url, token=server.issue_token("alice", roles=["admin"])) as client:
        alice = await (client.join(session) if session else client.create(name="Loop"))
        made = ObservedSession(alice, [], asyncio.Condition())

        async def listen() -> None:
            async for message in made.alice.messages():
                async with made.changed:
                    made.received.append(message)
                    made.changed.notify_all()

        listening = asyncio.create_task(listen())
        try:
            yield made
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


@asynccontextmanager
async def run_agent(
    server: ServerProcess,
    session: str,
    workdir: Path,
    *steps: ScriptStep,
    script: Script | None = None,
    extra_env: Mapping[str, str] | None = None,
    on_refused: Callable[[ServerRefused], None] = lambda _: None,
) -> AsyncIterator[Agent]:
    """Run Claude as an agent that plays these steps for every prompt."""
    token = server.issue_token("claude", "agent", ["driver"])
    async with Client(server.url, token=token) as client:
        seat = await client.join(session)
        mind = ScriptedBehavior(script or Script((Reply(steps),)))
        made = Agent(seat, mind, workdir, extra_env=extra_env, on_refused=on_refused)
        running = asyncio.create_task(made.run())
        try:
            yield made
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def touch_step(name: str, **more: Any) -> ScriptStep:
    """A step that creates a file."""
    return ScriptStep(propose="shell", arguments={"argv": ["touch", name]}, **more)


def file_exists(file: Path) -> bool:
    return file.exists()


@proves("OPEN-22", "PVP-20.4-2")
async def test_tool_runs_only_after_approval(server: ServerProcess, tmp_path: Path) -> None:
    message: asyncio.Future[ServerRefused] = asyncio.get_running_loop().create_future()
    step = touch_step("mark", hasty=True, granted=(ScriptStep(say="Done."),))
    async with (
        open_session(server) as room,
        run_agent(server, room.alice.id, tmp_path, step, on_refused=message.set_result),
    ):
        await room.alice.prompt("Go", "claude")
        await room.wait_for(GateRequest)
        early = await asyncio.wait_for(message, MESSAGE_TIMEOUT_S)
        assert (early.code, file_exists(tmp_path / "mark")) == ("INVALID_STATE", False)

        proposal = next(item.id for item in room.received if isinstance(item.body, ToolPropose))
        await room.alice.approve(proposal)
        result: ToolResult = await room.wait_for(ToolResult)
        await room.wait_for(ResponseEnd)

    assert result.success
    assert result.result == {"exit_code": 0}
    assert file_exists(tmp_path / "mark")


async def test_rejected_tool_does_not_run(server: ServerProcess, tmp_path: Path) -> None:
    step = touch_step("mark", rejected=(ScriptStep(say="Not then: {reason}"),))
    async with open_session(server) as room, run_agent(server, room.alice.id, tmp_path, step):
        await room.alice.prompt("Go", "claude")
        await room.wait_for(GateRequest)
        proposal = next(item.id for item in room.received if isinstance(item.body, ToolPropose))
        await room.alice.reject(proposal, "too early")
        await room.wait_for(ResponseEnd)

    answer = "".join(
        item.body.text for item in room.received if isinstance(item.body, ResponseChunk)
    )
    assert answer == "Not then: too early"
    assert room.count(ToolExecute) == room.count(ToolResult) == 0
    assert not file_exists(tmp_path / "mark")


async def test_output_is_streamed_and_failure_is_reported(
    server: ServerProcess, tmp_path: Path
) -> None:
    step = ScriptStep(propose="shell", arguments={"argv": ["ls", "no-such-file"]})
    async with open_session(server) as room, run_agent(server, room.alice.id, tmp_path, step):
        await room.alice.prompt("Go", "claude")
        await room.wait_for(GateRequest)
        proposal = next(item.id for item in room.received if isinstance(item.body, ToolPropose))
        await room.alice.approve(proposal)
        result: ToolResult = await room.wait_for(ToolResult)

    # A program may write a line in several pieces.
    printed: list[Any] = [each.body for each in room.messages_of(ToolOutput)]
    assert {each.stream for each in printed} == {"stderr"}
    assert "no-such-file" in "".join(each.text for each in printed)
    assert not result.success
    assert str(result.error).startswith("exited with ")


@pytest.mark.parametrize(
    "step",
    [
        ScriptStep(propose="shell", arguments={"command": "touch mark"}),
        ScriptStep(propose="teleport", arguments={"to": "mark"}),
    ],
)
async def test_unknown_tool_or_invalid_command_gives_a_failed_result(
    step: ScriptStep, server: ServerProcess, tmp_path: Path
) -> None:
    async with open_session(server) as room, run_agent(server, room.alice.id, tmp_path, step):
        await room.alice.prompt("Go", "claude")
        await room.wait_for(GateRequest)
        proposal = next(item.id for item in room.received if isinstance(item.body, ToolPropose))
        await room.alice.approve(proposal)
        result: ToolResult = await room.wait_for(ToolResult)

    assert not result.success
    assert not file_exists(tmp_path / "mark")


async def test_agent_ignores_a_grant_for_a_different_call(
    server: ServerProcess, tmp_path: Path
) -> None:
    """An attacker between server and agent must not be able to make it run something."""
    async with (
        open_session(server) as room,
        run_agent(server, room.alice.id, tmp_path, touch_step("mark")) as it,
    ):
        decide = it.session.decision

        async def forged(proposal: str) -> ToolExecute:
            message = await decide(proposal)
            assert message.grant is not None
            return replace(message, grant=replace(message.grant, digest="0" * 64))

        it.session.decision = forged  # type: ignore[method-assign]
        await room.alice.prompt("Go", "claude")
        await room.wait_for(GateRequest)
        proposal = next(item.id for item in room.received if isinstance(item.body, ToolPropose))
        await room.alice.approve(proposal)
        report: ErrorReport = await room.wait_for(ErrorReport)

    assert (report.code, report.related_to) == ("AGENT_ERROR", proposal)
    assert "for a different call" in report.message
    assert not file_exists(tmp_path / "mark")


async def test_restarted_agent_does_not_answer_a_prompt_again(
    server: ServerProcess, tmp_path: Path
) -> None:
    answer = ScriptStep(say="Here I am.")
    async with open_session(server) as room:
        async with run_agent(server, room.alice.id, tmp_path, answer):
            await room.alice.prompt("First", "claude")
            await room.wait_for(ResponseEnd)
        missed = await room.alice.prompt("While you were away", "claude")
        async with run_agent(server, room.alice.id, tmp_path, answer):
            await room.wait_for(ResponseEnd, 2)
            await room.alice.prompt("And now", "claude")
            await room.wait_for(ResponseEnd, 3)

    begun = [item.body.prompt_ref for item in room.received if isinstance(item.body, ResponseStart)]
    assert len(begun) == 3
    assert begun[1] == missed


async def test_agent_ends_with_the_session(server: ServerProcess, tmp_path: Path) -> None:
    token = server.issue_token("claude", "agent", ["driver"])
    async with open_session(server) as room, Client(server.url, token=token) as client:
        seat = await client.join(room.alice.id)
        mind = ScriptedBehavior(Script((Reply((touch_step("mark"),)),)))
        running = asyncio.create_task(Agent(seat, mind, tmp_path).run())
        await room.alice.prompt("Go", "claude")
        await room.wait_for(GateRequest)
        await room.alice.end("Enough")
        await asyncio.wait_for(running, MESSAGE_TIMEOUT_S)

    assert not file_exists(tmp_path / "mark")
