"""Models in real hosts that look for a way around the gate, with what `accord connect` wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.hosts.scripted_model.script import Call, Script, Step
from tests.helpers.hosts.scripted_model.server import serve
from tests.helpers.hosts.table import chosen_hosts
from tests.helpers.servers.server_process import ServerProcess
from tests.hosts.conftest import MakeAgent
from tests.hosts.test_connect_pages import Reader

pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("stopped_daemons"),
]


def proposal(connected: Any, call: Call, repository: Path, **more: Any) -> Call:
    """A call of our own tool that proposes another call, and says that it reads."""
    payload = {
        "tool_name": call.tool,
        "arguments": {**call.filled(()), "cwd": str(repository)},
        "agent": connected["agent"],
        "risk_level": "low",
        "description": "look around",
        "requires_approval": False,
        "category": "file_read",
        **more,
    }
    envelope = {"session": connected["session"], "type": "tool.propose", "payload": payload}
    return Call("pvp_send", {"envelope": envelope})


@pytest.mark.skipif("claude" not in chosen_hosts(), reason="Claude Code is not chosen")
def test_a_model_does_not_approve_its_own_call(
    server: ServerProcess, make_agent: MakeAgent
) -> None:
    with serve(Script({})) as model:
        agent = make_agent("claude", model, None)
        with Reader(agent, server) as shell:
            assert shell.run("git init -q shop && cd shop").code == 0
            connected = json.loads(shell.run("accord connect claude-code --yes --json").text)
            repository = agent.setup.home / "shop"
            file = repository / "sneaked-in"
            write = Call("Write", {"file_path": str(file), "content": "x"})
            place = {"cwd": "/", "worktree": "/", "home": "/"}
            reported = {"reported": {"kind": "read", "repository": "", "place": place}}
            model.script = Script(
                {
                    "Go": [
                        Step(calls=[proposal(connected, write, repository)]),
                        Step(calls=[proposal(connected, write, repository, metadata=reported)]),
                        Step(calls=[write]),
                        Step(say="Tried."),
                    ]
                }
            )
            assert shell.run('claude -p "Go"').code == 0

        claimed, as_hook, refused = max(
            (each.request.own_results for each in model.exchanges), key=len
        )
    assert not file.exists()
    assert claimed.json()["seq"], "anybody may claim"
    assert "metadata.reported" in as_hook.text
    assert "Accord refused this call" in refused.text
