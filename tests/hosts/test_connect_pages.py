"""The how-to pages of the hosts, followed to the letter with the real programs."""

import json
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.page_blocks import HOST_PAGES, parse_steps
from tests.docs.shell import Shell
from tests.docs.test_docs import follow, sign_in
from tests.helpers.hosts.codex import MODEL_THAT_WRITES_CODE
from tests.helpers.hosts.scripted_model.script import Call, Script, Step
from tests.helpers.hosts.scripted_model.server import serve
from tests.helpers.hosts.table import chosen_hosts, gated_hosts
from tests.helpers.hosts.turns import Agent
from tests.helpers.servers.server_process import ServerProcess
from tests.hosts.conftest import MakeAgent

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]

MAKE = "mkdir release-notes"
SHELLS = {
    "claude": Call("Bash", {"command": MAKE}),
    "codex": Call("exec_command", {"cmd": MAKE}),
    "gemini": Call("run_shell_command", {"command": MAKE}),
}


def script_of(name: str) -> Script:
    """A model that looks what waits, tries the command, and tries it again when it is told to."""
    return Script(
        {
            "Make a directory": [
                Step(calls=[Call("whats_waiting", {})]),
                Step(calls=[SHELLS[name]]),
                Step(say="It waits for approval."),
            ],
            "It is approved": [Step(calls=[SHELLS[name]]), Step(say="It is done.")],
        }
    )


def install_program(agent: Agent) -> Path:
    """A directory with the host as a command of its own name."""
    programs = agent.root / "programs"
    programs.mkdir()
    program = programs / agent.host.name
    # The shell's input is the rest of the page; only a protocol needs an input.
    closed = '[ "$1" = app-server ] || exec </dev/null'
    program.write_text(f'#!/bin/sh\n{closed}\nexec {shlex.join(agent.command)} "$@"\n')
    program.chmod(0o755)
    return programs


class Reader:
    """Somebody who follows a page, with the host on the path and its settings in the same home."""

    def __init__(self, agent: Agent, server: ServerProcess) -> None:
        agent.prepare()
        path = f"{install_program(agent)}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = agent.environment() | {"PATH": path, "COLUMNS": "100"}
        self.shell = Shell(agent.setup.home, environment)
        sign_in(self.shell, server, "alice")

    def __enter__(self) -> Shell:
        return self.shell

    def __exit__(self, *_: object) -> None:
        self.shell.close()


@pytest.mark.usefixtures("stopped_daemons")
@pytest.mark.parametrize("name", gated_hosts())
def test_a_reader_connects_a_host_and_approves_its_first_command(
    name: str, server: ServerProcess, make_agent: MakeAgent
) -> None:
    page = HOST_PAGES[name]
    with serve(script_of(name)) as model:
        with Reader(make_agent(name, model, None), server) as shell:
            follow(page, list(parse_steps(page.read_text("utf-8"))), shell)

        assert not model.outside
        shown = [each.request.own_results for each in model.exchanges]
        waiting, refused = max(shown, key=len)
        (done,) = shown[-1]
        assert "gates" in waiting.text, "our MCP server answered"
        assert "Accord" in refused.text, "our hook refused"
        assert "Accord" not in done.text


@pytest.mark.usefixtures("stopped_daemons")
@pytest.mark.skipif("opencode" not in chosen_hosts(), reason="OpenCode is not chosen")
def test_connected_opencode_has_our_tools_and_no_gate(
    server: ServerProcess, make_agent: MakeAgent, tmp_path: Path
) -> None:
    """As `accord connect opencode` and its page say."""
    steps = [
        Step(calls=[Call("whats_waiting", {})]),
        Step(calls=[Call("bash", {"command": MAKE, "description": "Make a directory"})]),
        Step(say="Made."),
    ]
    with serve(Script({"Make a directory": steps})) as model:
        with Reader(make_agent("opencode", model, None), server) as shell:
            assert shell.run("git init -q shop && cd shop").code == 0
            connected = shell.run("accord connect opencode --yes")
            assert "OpenCode is NOT gated" in connected.text
            checked = json.loads(shell.run("accord connect opencode --check --json").text)
            assert {each["about"]: each["state"] for each in checked["checks"]} == {
                "host": "ok",
                "settings": "ok",
                "identity": "ok",
                "mcp": "ok",
                "gate": "warn",
            }
            assert shell.run('opencode run "Make a directory for the release notes."').code == 0

        waiting, *_ = max((each.request.own_results for each in model.exchanges), key=len)
    assert "gates" in waiting.text, "our MCP server answered"
    assert (tmp_path / "opencode" / "home" / "shop" / "release-notes").exists()


@pytest.mark.usefixtures("stopped_daemons")
@pytest.mark.skipif("codex" not in chosen_hosts(), reason="Codex is not chosen")
def test_codex_with_a_model_that_writes_code_is_gated_by_what_connect_wrote(
    server: ServerProcess, make_agent: MakeAgent, tmp_path: Path
) -> None:
    made = tmp_path / "codex" / "home" / "shop" / "release-notes"
    with serve(script_of("codex")) as model:
        agent = replace(make_agent("codex", model, None), model_name=MODEL_THAT_WRITES_CODE)
        with Reader(agent, server) as shell:
            assert shell.run("git init -q shop && cd shop").code == 0
            assert shell.run("accord connect codex --yes").code == 0
            assert shell.run('codex exec "Make a directory for the release notes."').code == 0
            waiting, refused = max((each.request.own_results for each in model.exchanges), key=len)
            assert "gates" in waiting.text, "our MCP server answered"
            assert "Accord" in refused.text, "our hook refused"
            assert not made.exists()
            gates = json.loads(shell.run("accord gates --json").text)["gates"]
            assert shell.run(f"accord approve {gates[0]['id']}").code == 0
            assert shell.run('codex exec resume --last "It is approved: try again."').code == 0
    assert made.exists()
