"""Agents that propose with their own token what their hook would propose otherwise."""

import asyncio
from typing import Any

import pytest

from accord.client import Client
from accord.core.policy.reported_call import CallKind, Place, ReportedCall, reported_metadata
from accord.core.room.approval.tool_proposals import ToolPropose
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk
from accord.hosts.connection_token import ConnectionToken
from tests.daemon.conftest import MakeAgent
from tests.helpers.hosts.gated_agent import GatedAgent, HookAnswer, People
from tests.spec import proves


def propose_itself(agent: GatedAgent, body: ToolPropose) -> str:
    """Propose with the agent's own token, past hook and daemon; returns the proposal's id."""
    client = Client(agent.people.server.url, token=ConnectionToken(agent.connection))
    return asyncio.run(client.post(agent.connection.session, body)).id


def claim(agent: GatedAgent, tool: str, arguments: dict[str, Any], **fields: Any) -> ToolPropose:
    """A proposal of this call that calls it a harmless read."""
    named = {
        "tool_name": tool,
        "arguments": {**arguments, "cwd": str(agent.root)},
        "agent": agent.connection.agent,
        "risk_level": Risk.LOW,
        "description": "reads a file",
        "requires_approval": False,
        "category": Category.FILE_READ,
        **fields,
    }
    return ToolPropose(**named)


def call(agent: GatedAgent, tool: str, arguments: dict[str, Any]) -> HookAnswer:
    """What the hook says when the host is about to run it."""
    return agent.hook(
        "pre-tool", agent.shell_payload("", tool_name=tool, tool_input=dict(arguments))
    )


CALLS = {
    "shell of Gemini": ("gemini", "run_shell_command", {"command": "rm -rf src"}),
    "shell of Claude": ("claude-code", "Bash", {"command": "git push --force"}),
    "unknown tool": ("claude-code", "Launch", {"what": "everything"}),
    "MCP": ("claude-code", "mcp__shop__sell", {"item": "everything"}),
}


@proves("PVP-13-1", "PVP-20.4-3")
@pytest.mark.parametrize(("host", "tool", "arguments"), CALLS.values(), ids=CALLS)
def test_agent_that_claims_a_read_has_not_approved_its_call(
    make_agent: MakeAgent, people: People, host: str, tool: str, arguments: dict[str, Any]
) -> None:
    agent = make_agent(host)
    call(agent, tool, {**arguments, "first": True})  # the agent is a member from now on
    propose_itself(agent, claim(agent, tool, arguments))

    answer = call(agent, tool, arguments)

    assert answer.decision == "deny"
    assert "accord approve" in answer.reason


@pytest.mark.parametrize(("tool", "key"), [("Write", "file_path"), ("replace", "file_path")])
def test_agent_has_not_approved_what_it_writes(
    make_agent: MakeAgent, people: People, tool: str, key: str
) -> None:
    agent = make_agent("gemini" if tool == "replace" else "claude-code")
    arguments = {key: str(agent.root / "notes.txt"), "content": "x"}
    call(agent, tool, {**arguments, "first": True})
    propose_itself(agent, claim(agent, tool, arguments))

    assert call(agent, tool, arguments).decision == "deny"


def report(agent: GatedAgent, command: str, kind: CallKind, place: Place) -> dict[str, Any]:
    """What only a hook says: where a call runs, and what its host's tool does."""
    reported = ReportedCall(kind, "Bash", {"command": command}, place)
    return reported_metadata(reported, agent.connection.repository, agent.host)


@pytest.mark.parametrize("asks", [False, True], ids=["no gate", "a gate for something milder"])
@pytest.mark.parametrize("kind", [CallKind.SHELL, CallKind.READ])
def test_forged_report_does_not_make_a_read_of_what_is_outside(
    agent: GatedAgent, people: People, *, kind: CallKind, asks: bool
) -> None:
    secret = agent.home / "diary.txt"
    secret.write_text("private")
    command = f"cat {secret}"
    agent.ask("ls")
    place = Place(
        cwd=str(agent.root), worktree="/", home=str(agent.home), resolved={str(secret): ()}
    )
    forged = report(agent, command, kind, place)
    propose_itself(
        agent, claim(agent, "Bash", {"command": command}, metadata=forged, requires_approval=asks)
    )
    for gate in people.state.gates:
        people.approve(gate.id)

    answer = agent.ask(command)

    assert answer.decision == "deny"
    assert "outside the worktree" in answer.reason


def test_what_people_approve_passes_whoever_proposed_it(agent: GatedAgent, people: People) -> None:
    """A report that says no less than the hook does is one that people were asked about."""
    command = "touch made"
    agent.ask("ls")
    place = Place(cwd=str(agent.root), worktree=str(agent.root), home=str(agent.home))
    body = claim(
        agent,
        "Bash",
        {"command": command},
        category=Category.SHELL_EXECUTE,
        risk_level=Risk.HIGH,
        metadata=report(agent, command, CallKind.SHELL, place),
    )
    propose_itself(agent, body)
    assert agent.ask(command).decision == "deny"
    people.approve()

    assert agent.ask(command).decision == "allow"
