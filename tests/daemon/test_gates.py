"""Gates before calls, with a real server, a real daemon and real hook processes."""

import json
from typing import Any

import pytest

from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from accord.core.room.conversation.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.state import Urgency
from tests.daemon.conftest import MakeAgent
from tests.helpers.hosts.gated_agent import GatedAgent, HookAnswer, People, wait_until
from tests.helpers.hosts.samples import read_sample
from tests.spec import proves

RISKY = "git push origin main"


def proposals(people: People) -> list[ToolPropose]:
    return [
        each.body for each in people.history("tool.propose") if isinstance(each.body, ToolPropose)
    ]


def results(people: People) -> list[ToolResult]:
    return [
        each.body for each in people.history("tool.result") if isinstance(each.body, ToolResult)
    ]


def test_read_gets_no_decision_and_leaves_nothing_in_the_session(
    agent: GatedAgent, people: People
) -> None:
    assert agent.ask("ls -la && git status") == HookAnswer(0, "", "")

    assert proposals(people) == []


@proves("PVP-13-1", "PVP-13.3-1", "PVP-14-1", "OPEN-22")
def test_risky_call_is_refused_approved_passes_once_and_is_refused_again(
    agent: GatedAgent, people: People
) -> None:
    first = agent.ask(RISKY)
    gate = people.only_gate
    again = agent.ask(RISKY)

    assert first.decision == again.decision == "deny"
    assert f"accord approve {gate}" in first.reason
    assert f"accord approve {gate}" in again.reason
    assert "exactly the same call again" in first.reason
    assert len(proposals(people)) == 1

    people.approve(gate)
    payload = agent.shell_payload(RISKY)
    assert agent.hook("pre-tool", payload).decision == "allow"
    response = {"stdout": "pushed", "stderr": "", "interrupted": False}
    agent.hook("post-tool", {**payload, "tool_response": response, "duration_ms": 7})

    (result,) = results(people)
    assert (result.success, result.duration_ms) == (True, 7)
    assert [each.body.text for each in people.history("tool.output")] == ["pushed"]  # type: ignore[attr-defined]
    third = agent.ask(RISKY)
    assert third.decision == "deny"
    assert people.only_gate != gate


def test_call_whose_first_result_was_lost_is_proposed_and_granted_again(
    agent: GatedAgent, people: People
) -> None:
    for _ in range(2):
        assert agent.ask(RISKY).decision == "deny"
        assert agent.ask(RISKY).decision == "deny"
        people.approve()
        assert agent.ask(RISKY).decision == "allow"

    assert len(proposals(people)) == 2


@proves("PVP-20.4-3")
def test_proposal_shows_the_exact_call_and_what_it_is(agent: GatedAgent, people: People) -> None:
    agent.ask(RISKY, tool_input={"command": RISKY, "description": "Publish it"})

    (proposal,) = proposals(people)
    assert proposal.tool_name == "Bash"
    assert proposal.arguments == {"command": RISKY, "cwd": str(agent.root)}
    assert proposal.description == "Publish it"
    assert (proposal.category, proposal.risk_level) == ("deploy", "high")


def test_caption_written_anew_is_the_same_call(agent: GatedAgent, people: People) -> None:
    agent.ask(RISKY, tool_input={"command": RISKY, "description": "Publish it"})
    people.approve()

    given = agent.ask(RISKY, tool_input={"command": RISKY, "description": "Push again"})

    assert given.decision == "allow"


@pytest.mark.parametrize(
    "change",
    [
        {"tool_input": {"command": f"{RISKY} --force"}},
        {"tool_input": {"command": RISKY, "run_in_background": True}},
    ],
)
def test_approval_is_not_for_other_arguments(
    agent: GatedAgent, people: People, change: dict[str, Any]
) -> None:
    agent.ask(RISKY)
    people.approve()

    assert agent.ask(RISKY, **change).decision == "deny"
    assert agent.ask(RISKY).decision == "allow"


def test_approval_is_not_for_another_directory(agent: GatedAgent, people: People) -> None:
    other = agent.root / "other"
    other.mkdir()
    agent.ask(RISKY)
    people.approve()

    assert agent.ask(RISKY, cwd=str(other)).decision == "deny"
    assert len(proposals(people)) == 2


def test_approval_is_not_for_another_agent(make_agent: MakeAgent, people: People) -> None:
    one, other = make_agent(), make_agent()
    one.ask(RISKY)
    people.approve()

    assert other.ask(RISKY).decision == "deny"
    assert one.ask(RISKY).decision == "allow"


def test_path_that_became_a_link_is_another_call(agent: GatedAgent, people: People) -> None:
    call = {"file_path": str(agent.root / "notes.txt"), "content": "hello"}
    payload = agent.shell_payload("", tool_name="Write", tool_input=call)
    assert agent.hook("pre-tool", payload).decision == "deny"
    people.approve()
    (agent.root / "notes.txt").symlink_to(agent.home / ".bashrc")

    answer = agent.hook("pre-tool", payload)

    assert answer.decision == "deny"
    assert str(agent.home / ".bashrc") in json.dumps(proposals(people)[-1].arguments)


def test_link_out_of_the_repository_is_no_read(agent: GatedAgent, people: People) -> None:
    secret = agent.home / "secret.txt"
    secret.write_text("it")
    (agent.root / "harmless.txt").symlink_to(secret)

    assert agent.ask("cat harmless.txt").decision == "deny"
    assert proposals(people)[0].category == "secret_access"


@pytest.mark.parametrize(
    "command",
    ["accord approve", "accord token issue --id x", "bash", "cat {config}/profiles.toml"],
)
def test_what_agents_may_never_do_is_refused_without_a_gate(
    agent: GatedAgent, people: People, command: str
) -> None:
    answer = agent.ask(command.format(config=agent.config))

    assert answer.decision == "deny"
    assert "No approval would change that" in answer.reason
    assert proposals(people) == []


def test_rejection_reaches_the_model_with_its_reason(agent: GatedAgent, people: People) -> None:
    agent.ask(RISKY)
    people.reject("not before the tests pass")
    wait_until(lambda: not people.state.gates)

    answer = agent.ask(RISKY)

    assert answer.decision == "deny"
    assert "ann rejected it: not before the tests pass" in answer.reason
    assert len(proposals(people)) == 1


def test_grant_that_was_taken_back_lets_nothing_pass(agent: GatedAgent, people: People) -> None:
    from accord.core.room.approval.grants import ToolReject

    agent.ask(RISKY)
    people.approve()
    proposal = people.history("tool.propose")[0].id
    people.send(ToolReject(proposal, "bob", "changed my mind"), proposal, "bob")

    assert agent.ask(RISKY).decision == "deny"


@proves("PVP-15.1-3", "PVP-15.1-4", "PVP-15.2-3", "PVP-15.2-5", "OPEN-45")
@pytest.mark.parametrize("urgency", [Urgency.STOP, Urgency.EMERGENCY])
def test_stopped_agent_is_refused_reads_too_until_it_is_prompted(
    agent: GatedAgent, people: People, urgency: Urgency
) -> None:
    agent.ask(RISKY)
    people.approve()
    interrupt = people.send(InterruptRaise(urgency, "wrong branch", agent.connection.agent))

    wait_until(lambda: agent.ask("ls").decision == "deny")
    answer = agent.ask(RISKY)

    assert f"people stopped this agent ({urgency})" in answer.reason
    acknowledged = people.history("interrupt.acknowledge")
    assert [each.ref for each in acknowledged] == [interrupt]
    people.send(PromptSubmit("go on", agent.connection.agent, ("ann",), ()))
    wait_until(lambda: agent.ask("ls").decision == "")


@proves("PVP-15.1-2", "PVP-15.2-3")
def test_pause_refuses_one_call_with_what_people_said(agent: GatedAgent, people: People) -> None:
    agent.ask("ls")
    people.send(InterruptRaise(Urgency.PAUSE, "look at the tests first"))

    wait_until(lambda: "look at the tests first" in agent.ask("ls").reason)

    assert agent.ask("ls").decision == ""
    (acknowledged,) = (each.body for each in people.history("interrupt.acknowledge"))
    assert isinstance(acknowledged, InterruptAcknowledge)
    assert acknowledged.action_taken == "paused"


def test_two_hooks_that_race_for_one_grant_pass_once(agent: GatedAgent, people: People) -> None:
    agent.ask(RISKY)
    people.approve()

    hooks = [agent.start_hook("pre-tool", agent.shell_payload(RISKY)) for _ in range(4)]
    answers = [HookAnswer(0, *each.communicate()) for each in hooks]

    assert sorted(each.decision for each in answers) == ["allow", "deny", "deny", "deny"]


def test_two_hooks_that_race_propose_once(agent: GatedAgent, people: People) -> None:
    hooks = [agent.start_hook("pre-tool", agent.shell_payload(RISKY)) for _ in range(4)]
    answers = [HookAnswer(0, *each.communicate()) for each in hooks]

    assert {each.decision for each in answers} == {"deny"}
    assert len(proposals(people)) == 1


@pytest.mark.parametrize(
    ("host", "name", "category"),
    [
        ("claude-code", "PreToolUse-Write", "file_write"),
        ("claude-code", "PreToolUse-Edit", "file_write"),
        ("claude-code", "PreToolUse-mcp", "external_api"),
        ("codex", "PreToolUse-apply_patch", "file_write"),
        ("codex", "PreToolUse-mcp", "external_api"),
        ("gemini", "BeforeTool-write_file", "file_write"),
        ("gemini", "BeforeTool-replace", "file_write"),
        ("gemini", "BeforeTool-mcp", "external_api"),
    ],
)
def test_recorded_calls_of_hosts_are_understood(
    make_agent: MakeAgent, people: People, host: str, name: str, category: str
) -> None:
    agent = make_agent(host)
    payload = read_sample(host, name, agent.home, agent.root)

    answer = agent.hook("pre-tool", payload)

    (proposal,) = proposals(people)
    assert answer.decision == "deny"
    assert (proposal.tool_name, proposal.category) == (payload["tool_name"], category)
    assert proposal.arguments == {**payload["tool_input"], "cwd": str(agent.root)}


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("claude-code", "PreToolUse-shell"),
        ("codex", "PreToolUse-shell"),
        ("gemini", "BeforeTool-shell"),
    ],
)
def test_recorded_echo_is_a_read(make_agent: MakeAgent, host: str, name: str) -> None:
    agent = make_agent(host)

    assert agent.hook("pre-tool", read_sample(host, name, agent.home, agent.root)).output == ""


@pytest.mark.parametrize(
    ("tool", "more"),
    [
        ("mcp__accord__post_message", {"mcp_server": {"name": "accord"}}),
        ("mcp__accord__post_message", {}),
        (
            "mcp_accord_whats_waiting",
            {"mcp_context": {"server_name": "accord", "tool_name": "whats_waiting"}},
        ),
    ],
)
def test_our_own_tools_answer_for_themselves(
    agent: GatedAgent, people: People, tool: str, more: dict[str, Any]
) -> None:
    payload = agent.shell_payload("", tool_name=tool, tool_input={"body": "x"}, **more)

    assert agent.hook("pre-tool", payload).output == ""
    other = agent.shell_payload("", tool_name="mcp__accord__wipe", tool_input={})
    assert agent.hook("pre-tool", other).decision == "deny"


@pytest.mark.parametrize("tool", ["mcp__evil__post_message", "post_message", "Bash"])
def test_tool_of_another_name_is_not_ours_whatever_its_server_is_called(
    agent: GatedAgent, tool: str
) -> None:
    call = {"command": "touch made"}
    payload = agent.shell_payload("", tool_name=tool, tool_input=call)
    context = {"name": "accord", "tool_name": "post_message"}

    assert agent.hook("pre-tool", {**payload, "mcp_server": context}).decision == "deny"


def test_call_without_a_directory_is_refused(agent: GatedAgent) -> None:
    process = agent.start_hook("pre-tool", agent.shell_payload("ls", cwd="relative"))

    answer = HookAnswer(0, *process.communicate())

    assert answer.decision == "deny"
    assert "in which directory" in answer.reason


def test_cursor_s_call_runs_in_its_only_workspace(make_agent: MakeAgent, people: People) -> None:
    agent = make_agent("cursor")
    payload = agent.shell_payload("git push")
    del payload["cwd"]

    agent.hook("pre-tool", {**payload, "workspace_roots": [str(agent.root)]})
    answer = agent.hook("pre-tool", payload)

    assert answer.json["permission"] == "deny"
    assert answer.json["agent_message"] == answer.json["user_message"]
    (proposal,) = proposals(people)
    assert proposal.arguments["cwd"] == str(agent.root)


def test_calls_of_an_agent_in_a_fork_wait_there_and_end_with_its_merge(
    make_agent: MakeAgent, people: People
) -> None:
    agent = make_agent()
    assert not agent.ask("ls").decision
    fork = people.fork("Aside", agent.connection.agent)
    agent.connect_again(fork=fork)

    refused = agent.ask("touch made")
    assert "accord approve" in refused.reason
    (gate,) = people.state.gates
    assert gate.fork == fork
    people.approve(gate.id)
    assert agent.ask("touch made").decision == "allow"
    people.merge(fork)
    wait_until(lambda: "was merged" in agent.ask("ls").reason)

    told = agent.ask("touch made").reason
    assert "accord connect claude-code --fork main" in told
    assert not people.state.gates
