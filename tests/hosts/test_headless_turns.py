"""Each host offers the tools of an MCP server to its model, calls one, and shows the result."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.hosts import note_server
from tests.helpers.hosts.codex import MODEL_THAT_WRITES_CODE
from tests.helpers.hosts.host import StdioMcp
from tests.helpers.hosts.scripted_model.script import Call, Script, Step
from tests.helpers.hosts.scripted_model.server import serve
from tests.helpers.hosts.table import chosen_hosts
from tests.hosts.conftest import MakeAgent

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]

SCRIPT = Script(
    {
        "add a note": [
            Step(say="Adding.", calls=[Call("add_note", {"text": "the build is green"})]),
            Step(say="Added."),
        ]
    }
)


NOTE = {"number": note_server.FIRST_NUMBER + 1, "text": "the build is green"}


def notes(log: Path) -> StdioMcp:
    """The server of the tool; `log` has what it was asked."""
    return StdioMcp([sys.executable, note_server.__file__, str(log)])


def called_with(log: Path) -> list[Any]:
    """The arguments of all calls that reached the server."""
    requests = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    return [each["params"]["arguments"] for each in requests if each["method"] == "tools/call"]


@pytest.mark.parametrize("name", chosen_hosts())
def test_a_host_calls_a_tool_and_shows_its_structured_result(
    name: str, make_agent: MakeAgent, tmp_path: Path
) -> None:
    log = tmp_path / "requests"
    with serve(SCRIPT) as model:
        turn = make_agent(name, model, notes(log)).run("add a note")

    assert turn.answer.text == "Added."
    assert turn.result_of("add_note").json() == NOTE
    assert called_with(log) == [{"text": "the build is green"}]


@pytest.mark.skipif("codex" not in chosen_hosts(), reason="Codex is not chosen")
def test_codex_calls_a_tool_from_javascript_and_shows_its_structured_result(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    log = tmp_path / "requests"
    with serve(SCRIPT) as model:
        agent = make_agent("codex", model, notes(log))
        turn = replace(agent, model_name=MODEL_THAT_WRITES_CODE).run("add a note")

    assert [call.tool.name for call in turn.calls] == ["exec"]
    assert turn.answer.text == "Added."
    assert turn.result_of("add_note").json() == NOTE
    assert called_with(log) == [{"text": "the build is green"}]
