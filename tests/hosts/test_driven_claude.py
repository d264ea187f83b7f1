"""The real Claude Code, driven by `accord agent --host claude`: every call is a gate."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from accord.core.room.conversation.interrupts import InterruptAcknowledge
from accord.core.room.conversation.responses import ResponseEnd
from tests.agents.test_interrupts import response_text
from tests.agents.test_loop import ObservedSession, file_exists, open_session
from tests.cli.agent.test_agent import joined, programs_in
from tests.helpers.clients.agent_process import agent_process
from tests.helpers.hosts.gated_agent import wait_until
from tests.helpers.hosts.scripted_model.script import Call, Script, Step
from tests.helpers.hosts.scripted_model.server import ScriptedModel, serve
from tests.helpers.hosts.table import chosen_hosts
from tests.helpers.hosts.turns import Agent
from tests.helpers.servers.server_process import ServerProcess
from tests.hosts.conftest import MakeAgent
from tests.spec import proves

pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(600),
    pytest.mark.skipif("claude" not in chosen_hosts(), reason="Claude Code is not chosen"),
]
TOUCH = Call("Bash", {"command": "touch mark", "description": "Make a mark"})
WAIT = Call("Bash", {"command": "tail -f notes.txt", "description": "Wait"})


@asynccontextmanager
async def driven(
    server: ServerProcess, host: Agent, tmp_path: Path, session: str
) -> AsyncIterator[None]:
    """Claude Code is in the session until the end of the block."""
    host.prepare()
    (host.setup.project / "notes.txt").write_text("one\n")
    # What the user's own settings allow is asked all the same.
    settings = host.setup.home / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"permissions": {"allow": ["Bash", "Write", "Edit"]}}))
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "claude").symlink_to(host.command[0])
    env = host.environment()
    env |= {
        "PATH": f"{programs}:{env['PATH']}",
        "ACCORD_URL": server.url,
        "ACCORD_TOKEN": server.issue_token("claude", "agent", ["driver"]),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "NO_PROXY": "127.0.0.1,localhost",
    }
    words = (session, "--host", "claude")
    with agent_process(*words, cwd=host.setup.project, log=tmp_path / "log", env=env):
        yield


async def approve_next(room: ObservedSession, number: int = 1) -> ToolPropose:
    """Alice approves the n-th gate; returns what was proposed."""
    gate = (await room.wait_for(GateRequest, number)).action_ref
    proposed: ToolPropose = next(m.body for m in room.messages_of(ToolPropose) if m.id == gate)  # type: ignore[assignment]
    await room.alice.approve(gate)
    return proposed


def script_of(*steps: Step) -> Script:
    return Script({"Go on": [Step(say="Still here.")], "Go": steps})


@proves("PVP-13-1", "PVP-15.1-3")
async def test_calls_are_gates_with_the_exact_call_and_a_stop_ends_the_turn(
    server: ServerProcess, make_agent: MakeAgent, tmp_path: Path
) -> None:
    read = Call("Read", {"file_path": "notes.txt"})
    steps = (Step("I look.", [read]), Step(calls=[TOUCH]), Step(calls=[WAIT]), Step(say="Done."))
    with serve(script_of(*steps)) as model:
        host = make_agent("claude", model, None)
        async with open_session(server) as room, driven(server, host, tmp_path, room.alice.id):
            await joined(room, "claude")
            await room.alice.prompt("Go", "claude")
            touched = await approve_next(room)
            assert not file_exists(host.setup.project / "mark")
            await room.wait_for(ToolResult, 2)
            assert file_exists(host.setup.project / "mark")

            await approve_next(room, 2)
            await wait_for_program(host, "tail")
            await room.alice.interrupt("stop", "That never ends", "claude")
            answer: InterruptAcknowledge = await room.wait_for(InterruptAcknowledge)
            stopped: ToolResult = await room.wait_for(ToolResult, 3)
            await wait_for_program(host, "tail", gone=True)

            asked = len(model.exchanges)
            await room.alice.prompt("Go on", "claude")
            await wait_for_text(room, "Still here.")
            usage = room.messages_of(ResponseEnd)[-1]
        assert len(model.exchanges) == asked + 1

    assert touched.tool_name == "Bash"
    assert touched.arguments["command"] == "touch mark"
    assert touched.description == "Make a mark"
    assert answer.action_taken == "stopped"
    assert not stopped.success
    assert usage.body.usage is not None  # type: ignore[attr-defined]
    assert programs_in(host.setup.project) == []
    assert_spoke_of_conversation(model)


def assert_spoke_of_conversation(model: ScriptedModel) -> None:
    assert "You take part in a session" in model.exchanges[0].body
    assert "alice: Go" in model.exchanges[0].body


async def wait_for_text(room: ObservedSession, text: str) -> None:
    async with asyncio.timeout(120), room.changed:
        await room.changed.wait_for(
            lambda: text in response_text(room) and isinstance(room.received[-1].body, ResponseEnd)
        )


async def wait_for_program(host: Agent, name: str, *, gone: bool = False) -> None:
    """Wait until this program runs in the project, or no longer does."""
    await asyncio.to_thread(
        wait_until, lambda: (name in programs_in(host.setup.project)) is not gone
    )


async def test_a_rejected_call_does_not_run_and_the_model_reads_why(
    server: ServerProcess, make_agent: MakeAgent, tmp_path: Path
) -> None:
    with serve(script_of(Step(calls=[TOUCH]), Step(say="Then not."))) as model:
        host = make_agent("claude", model, None)
        async with open_session(server) as room, driven(server, host, tmp_path, room.alice.id):
            await joined(room, "claude")
            await room.alice.prompt("Go", "claude")
            gate = (await room.wait_for(GateRequest)).action_ref
            await room.alice.reject(gate, "too early")
            await wait_for_text(room, "Then not.")

    assert not file_exists(host.setup.project / "mark")
    assert "too early" in model.exchanges[-1].request.results[0].text
    assert room.count(ToolResult) == 0
