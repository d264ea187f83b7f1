"""An agent in a real session: it answers, waits for the gate, runs what was granted, no more."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from accord.agents.loop import Agent
from accord.agents.script import Reply, Script, Step
from accord.agents.scripted import Scripted
from accord.client import Client, Envelope, ServerRefused, Session
from accord.core.kernel.log import Body
from accord.core.room.gates import GateRequest
from accord.core.room.grants import ToolExecute
from accord.core.room.notices import ErrorReport
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.tools import ToolOutput, ToolPropose, ToolResult
from tests.helpers.server import ServerProcess
from tests.spec import proves

PATIENCE = 60


class Stage(NamedTuple):
    """Alice in a session, and what she has heard there."""

    alice: Session
    heard: list[Envelope]
    news: asyncio.Condition

    async def until(self, kind: type[Body], number: int = 1) -> Any:
        """The body of that many-th message of this kind."""
        async with asyncio.timeout(PATIENCE), self.news:
            await self.news.wait_for(lambda: self.count(kind) >= number)
        return self.said(kind)[number - 1].body

    def said(self, kind: type[Body]) -> list[Envelope]:
        return [said for said in self.heard if isinstance(said.body, kind)]

    def count(self, kind: type[Body]) -> int:
        return len(self.said(kind))


@asynccontextmanager
async def stage(server: ServerProcess, session: str | None = None) -> AsyncIterator[Stage]:
    """Alice opens a session, or comes into hers, and listens."""
    async with Client(server.url, token=server.issue("alice", roles=["admin"])) as client:
        alice = await (client.join(session) if session else client.create(name="Loop"))
        made = Stage(alice, [], asyncio.Condition())

        async def listen() -> None:
            async for said in made.alice.messages():
                async with made.news:
                    made.heard.append(said)
                    made.news.notify_all()

        listening = asyncio.create_task(listen())
        try:
            yield made
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


@asynccontextmanager
async def agent(
    server: ServerProcess,
    session: str,
    workdir: Path,
    *steps: Step,
    script: Script | None = None,
    told: Mapping[str, str] | None = None,
    refused: Callable[[ServerRefused], None] = lambda _: None,
) -> AsyncIterator[Agent]:
    """Claude, who follows these steps at every prompt."""
    token = server.issue("claude", "agent", ["driver"])
    async with Client(server.url, token=token) as client:
        seat = await client.join(session)
        mind = Scripted(script or Script((Reply(steps),)))
        made = Agent(seat, mind, workdir, told=told, refused=refused)
        running = asyncio.create_task(made.run())
        try:
            yield made
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def touch(name: str, **more: Any) -> Step:
    """A command that leaves a mark."""
    return Step(propose="shell", arguments={"argv": ["touch", name]}, **more)


def exists(file: Path) -> bool:
    return file.exists()


@proves("OPEN-22", "PVP-20.4-2")
async def test_what_people_agree_to_runs_and_nothing_before(
    server: ServerProcess, tmp_path: Path
) -> None:
    said: asyncio.Future[ServerRefused] = asyncio.get_running_loop().create_future()
    step = touch("mark", hasty=True, granted=(Step(say="Done."),))
    async with (
        stage(server) as room,
        agent(server, room.alice.id, tmp_path, step, refused=said.set_result),
    ):
        await room.alice.prompt("Go", "claude")
        await room.until(GateRequest)
        early = await asyncio.wait_for(said, PATIENCE)
        assert (early.code, exists(tmp_path / "mark")) == ("INVALID_STATE", False)

        proposal = next(each.id for each in room.heard if isinstance(each.body, ToolPropose))
        await room.alice.approve(proposal)
        result: ToolResult = await room.until(ToolResult)
        await room.until(ResponseEnd)

    assert result.success
    assert result.result == {"exit_code": 0}
    assert exists(tmp_path / "mark")


async def test_a_no_is_taken_for_one(server: ServerProcess, tmp_path: Path) -> None:
    step = touch("mark", rejected=(Step(say="Not then: {reason}"),))
    async with stage(server) as room, agent(server, room.alice.id, tmp_path, step):
        await room.alice.prompt("Go", "claude")
        await room.until(GateRequest)
        proposal = next(each.id for each in room.heard if isinstance(each.body, ToolPropose))
        await room.alice.reject(proposal, "too early")
        await room.until(ResponseEnd)

    answer = "".join(each.body.text for each in room.heard if isinstance(each.body, ResponseChunk))
    assert answer == "Not then: too early"
    assert room.count(ToolExecute) == room.count(ToolResult) == 0
    assert not exists(tmp_path / "mark")


async def test_output_is_told_as_it_comes_and_failure_with_its_reason(
    server: ServerProcess, tmp_path: Path
) -> None:
    step = Step(propose="shell", arguments={"argv": ["ls", "no-such-file"]})
    async with stage(server) as room, agent(server, room.alice.id, tmp_path, step):
        await room.alice.prompt("Go", "claude")
        await room.until(GateRequest)
        proposal = next(each.id for each in room.heard if isinstance(each.body, ToolPropose))
        await room.alice.approve(proposal)
        output: ToolOutput = await room.until(ToolOutput)
        result: ToolResult = await room.until(ToolResult)

    assert output.stream == "stderr"
    assert "no-such-file" in output.text
    assert not result.success
    assert str(result.error).startswith("ended with ")


@pytest.mark.parametrize(
    "step",
    [
        Step(propose="shell", arguments={"command": "touch mark"}),
        Step(propose="teleport", arguments={"to": "mark"}),
    ],
)
async def test_what_it_cannot_do_is_a_result_too(
    step: Step, server: ServerProcess, tmp_path: Path
) -> None:
    async with stage(server) as room, agent(server, room.alice.id, tmp_path, step):
        await room.alice.prompt("Go", "claude")
        await room.until(GateRequest)
        proposal = next(each.id for each in room.heard if isinstance(each.body, ToolPropose))
        await room.alice.approve(proposal)
        result: ToolResult = await room.until(ToolResult)

    assert not result.success
    assert not exists(tmp_path / "mark")


async def test_a_grant_that_is_not_its_own_is_not_believed(
    server: ServerProcess, tmp_path: Path
) -> None:
    """Whoever stands between server and agent cannot make it run something."""
    async with stage(server) as room, agent(server, room.alice.id, tmp_path, touch("mark")) as it:
        decide = it.session.decision

        async def forged(proposal: str) -> ToolExecute:
            said = await decide(proposal)
            assert said.grant is not None
            return replace(said, grant=replace(said.grant, digest="0" * 64))

        it.session.decision = forged  # type: ignore[method-assign]
        await room.alice.prompt("Go", "claude")
        await room.until(GateRequest)
        proposal = next(each.id for each in room.heard if isinstance(each.body, ToolPropose))
        await room.alice.approve(proposal)
        report: ErrorReport = await room.until(ErrorReport)

    assert (report.code, report.related_to) == ("AGENT_ERROR", proposal)
    assert "for something else" in report.message
    assert not exists(tmp_path / "mark")


async def test_a_prompt_is_answered_once_even_by_an_agent_that_comes_back(
    server: ServerProcess, tmp_path: Path
) -> None:
    answer = Step(say="Here I am.")
    async with stage(server) as room:
        async with agent(server, room.alice.id, tmp_path, answer):
            await room.alice.prompt("First", "claude")
            await room.until(ResponseEnd)
        missed = await room.alice.prompt("While you were away", "claude")
        async with agent(server, room.alice.id, tmp_path, answer):
            await room.until(ResponseEnd, 2)
            await room.alice.prompt("And now", "claude")
            await room.until(ResponseEnd, 3)

    begun = [each.body.prompt_ref for each in room.heard if isinstance(each.body, ResponseStart)]
    assert len(begun) == 3
    assert begun[1] == missed


async def test_it_goes_when_the_session_ends(server: ServerProcess, tmp_path: Path) -> None:
    token = server.issue("claude", "agent", ["driver"])
    async with stage(server) as room, Client(server.url, token=token) as client:
        seat = await client.join(room.alice.id)
        mind = Scripted(Script((Reply((touch("mark"),)),)))
        running = asyncio.create_task(Agent(seat, mind, tmp_path).run())
        await room.alice.prompt("Go", "claude")
        await room.until(GateRequest)
        await room.alice.end("Enough")
        await asyncio.wait_for(running, PATIENCE)

    assert not exists(tmp_path / "mark")
