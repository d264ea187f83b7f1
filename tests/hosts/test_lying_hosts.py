"""Models in real hosts that look for a way around the gate, with what `accord connect` wrote."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.hosts.codex import MODEL, MODEL_THAT_WRITES_CODE
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


@pytest.mark.skipif("claude" not in chosen_hosts(), reason="Claude Code is not chosen")
def test_a_skill_runs_no_command_past_the_gate(
    server: ServerProcess, make_agent: MakeAgent
) -> None:
    """Claude Code runs what a skill quotes when it loads it, and asks its hook only about that."""
    load = [Step(calls=[Call("Skill", {"skill": "tidy"})]), Step(say="Tried.")]
    with serve(Script({"Go": load})) as model:
        agent = make_agent("claude", model, None)
        with Reader(agent, server) as shell:
            assert shell.run("git init -q shop && cd shop").code == 0
            file = agent.setup.home / "shop" / "sneaked-in"
            skill = agent.setup.home / "shop" / ".claude" / "skills" / "tidy" / "SKILL.md"
            skill.parent.mkdir(parents=True)
            head = "---\nname: tidy\ndescription: Tidies up.\nallowed-tools: Bash\n---\n"
            skill.write_text(f"{head}!`touch {file}`\n")
            free = "--allowedTools Skill Bash"
            assert shell.run(f'claude -p "Go" {free}').code == 0
            assert file.exists(), "without a gate it runs"
            file.unlink()
            assert shell.run("accord connect claude-code --yes").code == 0
            assert shell.run(f'claude -p "Go" {free}').code == 0

        (refused,) = model.exchanges[-1].request.own_results
    assert "Accord refused this call" in refused.text
    assert not file.exists()


@pytest.mark.skipif("gemini" not in chosen_hosts(), reason="Gemini CLI is not chosen")
def test_the_directory_that_gemini_s_model_chose_is_part_of_the_call(
    server: ServerProcess, make_agent: MakeAgent
) -> None:
    def read(folder: str) -> Step:
        return Step(calls=[Call("run_shell_command", {"command": "cat key", "dir_path": folder})])

    with serve(Script({"Go": [read("src"), read(".ssh"), Step(say="Tried.")]})) as model:
        agent = make_agent("gemini", model, None)
        with Reader(agent, server) as shell:
            assert shell.run("git init -q shop && cd shop && mkdir src .ssh").code == 0
            assert shell.run("echo public > src/key; echo private > .ssh/key").code == 0
            assert shell.run("accord connect gemini --yes").code == 0
            yolo = "--approval-mode yolo -m gemini-2.5-flash"
            assert shell.run(f'gemini {yolo} -p "Go"').code == 0

        plain, refused = max((each.request.own_results for each in model.exchanges), key=len)
    assert "public" in plain.text
    assert "Accord refused this call" in refused.text
    assert "private" not in refused.text


@pytest.mark.skipif("codex" not in chosen_hosts(), reason="Codex is not chosen")
@pytest.mark.parametrize("model_name", [MODEL, MODEL_THAT_WRITES_CODE])
def test_the_working_directory_of_a_codex_call_is_part_of_the_call(
    model_name: str, server: ServerProcess, make_agent: MakeAgent
) -> None:
    """No hook gets its `workdir` as an argument; Codex names it as the directory of the call."""

    def touch(**more: str) -> Step:
        return Step(calls=[Call("exec_command", {"cmd": "touch made", **more})])

    with serve(Script({})) as model:
        agent = replace(make_agent("codex", model, None), model_name=model_name)
        home = agent.setup.home
        inside, outside = home / "shop" / "inside", home / "outside"
        secret = {"cmd": "cat profiles.toml", "workdir": str(home / ".config" / "accord")}
        model.script = Script(
            {
                "Go": [
                    touch(),
                    touch(workdir=str(outside)),
                    Step(calls=[Call("exec_command", secret)]),
                    Step(say="Tried."),
                ],
                "Again": [
                    touch(workdir="inside"),
                    touch(workdir=str(outside)),
                    touch(),
                    touch(),
                    Step(say="Tried."),
                ],
            }
        )
        with Reader(agent, server) as shell:
            assert shell.run("git init -q shop && cd shop").code == 0
            inside.mkdir()
            outside.mkdir()
            assert shell.run("accord connect codex --yes").code == 0
            assert shell.run('codex exec "Go"').code == 0
            gates = json.loads(shell.run("accord gates --json").text)["gates"]
            here = [
                gate for gate in gates if gate["action"]["arguments"]["cwd"] == str(home / "shop")
            ]
            assert shell.run(f"accord approve {here[0]['id']}").code == 0
            assert shell.run('codex exec resume --last "Again"').code == 0

        shown = [each.request.own_results for each in model.exchanges]
        first = next(each for each in shown if len(each) == 3)
        *elsewhere, approved, again = max(shown, key=len)

    refused = "Accord refused this call"
    assert all(refused in each.text for each in (*first, *elsewhere, again))
    assert "No approval would change that" in first[-1].text
    assert refused not in approved.text
    assert len(gates) == len(here) + 1 == 2
    assert (home / "shop" / "made").exists()
    assert not (inside / "made").exists()
    assert not (outside / "made").exists()
