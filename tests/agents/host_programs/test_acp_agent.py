"""An agent made with the ACP package itself, in a session: its permission requests are gates."""

import sys
from pathlib import Path

import pytest

from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.conversation.interrupts import InterruptAcknowledge
from accord.core.room.conversation.responses import ResponseEnd
from tests.agents.test_interrupts import response_text
from tests.agents.test_loop import file_exists, open_session
from tests.cli.agent.test_agent import agent_env, joined
from tests.helpers.clients.agent_process import agent_process
from tests.helpers.servers.server_process import ServerProcess

AGENT = Path(__file__).parents[2] / "helpers" / "hosts" / "acp_example.py"


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_permission_is_a_gate_and_only_what_is_allowed_happens(
    decision: str, server: ServerProcess, tmp_path: Path
) -> None:
    env = agent_env(server, tmp_path / "home")
    command = f"{sys.executable} {AGENT}"
    async with open_session(server) as room:
        words = (room.alice.id, "--acp", command)
        with agent_process(*words, cwd=tmp_path, log=tmp_path / "log", env=env):
            await joined(room, "helper")
            await room.alice.prompt("touch", "helper")
            gate = (await room.wait_for(GateRequest)).action_ref
            assert not file_exists(tmp_path / "mark")
            await (
                room.alice.approve(gate)
                if decision == "approve"
                else room.alice.reject(gate, "too early")
            )
            if decision == "approve":
                result: ToolResult = await room.wait_for(ToolResult)
                assert result.success
            await room.wait_for(ResponseEnd)
            await room.alice.prompt("wait", "helper")
            await room.wait_for(ResponseEnd, 1)
            await room.alice.interrupt("stop", "Enough", "helper")
            answer: InterruptAcknowledge = await room.wait_for(InterruptAcknowledge)

    asked: ToolPropose = await room.wait_for(ToolPropose)
    assert asked.arguments["rawInput"] == {"path": "mark"}
    assert file_exists(tmp_path / "mark") is (decision == "approve")
    assert ("touched" if decision == "approve" else "not allowed") in response_text(room)
    assert answer.action_taken == "stopped"


async def test_a_program_that_is_no_acp_agent_is_told(
    server: ServerProcess, tmp_path: Path
) -> None:
    env = agent_env(server, tmp_path / "home")
    async with open_session(server) as room:
        words = (room.alice.id, "--acp", f"{sys.executable} -c 'import sys; sys.exit(\"no ACP\")'")
        with agent_process(*words, cwd=tmp_path, log=tmp_path / "log", env=env):
            await joined(room, "helper")
            await room.alice.prompt("Go", "helper")
            report: ErrorReport = await room.wait_for(ErrorReport)

    assert "no ACP" in report.message
