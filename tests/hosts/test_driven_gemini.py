"""The real Gemini CLI, driven over ACP by `accord agent --host gemini`."""

import shlex
from pathlib import Path

import pytest

from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from accord.core.room.conversation.responses import ResponseEnd
from tests.agents.test_interrupts import response_text
from tests.agents.test_loop import file_exists, open_session
from tests.cli.agent.test_agent import joined
from tests.helpers.clients.agent_process import agent_process
from tests.helpers.hosts.gemini import MODEL
from tests.helpers.hosts.scripted_model.script import Call, Script, Step
from tests.helpers.hosts.scripted_model.server import serve
from tests.helpers.hosts.table import chosen_hosts
from tests.helpers.servers.server_process import ServerProcess
from tests.hosts.conftest import MakeAgent

pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(600),
    pytest.mark.skipif("gemini" not in chosen_hosts(), reason="Gemini CLI is not chosen"),
]
TOUCH = Call("run_shell_command", {"command": "touch mark", "description": "Make a mark"})


async def test_a_call_is_a_gate_and_runs_after_its_approval(
    server: ServerProcess, make_agent: MakeAgent, tmp_path: Path
) -> None:
    with serve(Script({"Go": [Step(calls=[TOUCH]), Step(say="Done.")]})) as model:
        host = make_agent("gemini", model, None)
        host.prepare()
        programs = tmp_path / "bin"
        programs.mkdir()
        (programs / "gemini").write_text(f'#!/bin/sh\nexec {shlex.join(host.command)} "$@"\n')
        (programs / "gemini").chmod(0o755)
        env = host.environment()
        env |= {
            "PATH": f"{programs}:{env['PATH']}",
            "ACCORD_URL": server.url,
            "ACCORD_TOKEN": server.issue_token("gemini", "agent", ["driver"]),
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
        }
        async with open_session(server) as room:
            words = (room.alice.id, "--host", "gemini", "--model", MODEL)
            with agent_process(*words, cwd=host.setup.project, log=tmp_path / "log", env=env):
                await joined(room, "gemini")
                await room.alice.prompt("Go", "gemini")
                await room.wait_for(GateRequest)
                assert not file_exists(host.setup.project / "mark")
                proposal = room.messages_of(ToolPropose)[0]
                await room.alice.approve(proposal.id)
                result: ToolResult = await room.wait_for(ToolResult)
                await room.wait_for(ResponseEnd)

    assert result.success
    assert file_exists(host.setup.project / "mark")
    asked: ToolPropose = await room.wait_for(ToolPropose)
    assert asked.tool_name == "acp_execute"
    assert "touch mark" in str(asked.arguments)
    assert response_text(room).endswith("Done.")
