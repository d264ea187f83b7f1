"""What hosts report becomes part of the session: prompts, answers, usage, results, subagents."""

import json
from pathlib import Path
from typing import Any

import pytest

from accord.core.attention.waking.prompt import wake_prompt
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd
from accord.core.room.state import Presence
from accord.daemon.transcripts import read_complete_usage
from tests.daemon.conftest import MakeAgent
from tests.helpers.hosts.gated_agent import PERSON, GatedAgent, People, wait_until
from tests.helpers.hosts.samples import read_sample
from tests.spec import proves

# The samples of one turn, for each host: prompt, stop.
TURNS = {
    "claude-code": ("UserPromptSubmit", "Stop"),
    "codex": ("UserPromptSubmit", "Stop"),
    "gemini": ("BeforeAgent", "AfterAgent"),
}
RESULTS = [
    ("claude-code", "PostToolUse-Write", "Write"),
    ("claude-code", "PostToolUse-Edit", "Edit"),
    ("codex", "PostToolUse-apply_patch", "apply_patch"),
    ("gemini", "AfterTool-write_file", "write_file"),
    ("gemini", "AfterTool-replace", "replace"),
]


def presence_of(people: People, agent: GatedAgent) -> Presence | None:
    members = {each.id: each.presence for each in people.state.members}
    return members.get(agent.connection.agent)


@proves("PVP-12.2-1", "PVP-12.2-2", "PVP-12.2-3")
@pytest.mark.parametrize("host", sorted(TURNS))
def test_turn_is_a_prompt_and_its_answer(make_agent: MakeAgent, people: People, host: str) -> None:
    agent = make_agent(host)
    asked, stopped = (read_sample(host, name, agent.home, agent.root) for name in TURNS[host])

    agent.hook("prompt", asked)
    agent.hook("stop", stopped)

    (prompt,), (start,) = people.history("prompt.submit"), people.history("response.start")
    assert isinstance(prompt.body, PromptSubmit)
    assert prompt.body.content == "sh echo ran-it"
    assert start.ref == prompt.id
    chunks = [each.body for each in people.history("response.chunk")]
    text = "".join(each.text for each in chunks if isinstance(each, ResponseChunk))
    assert text == stopped.get("last_assistant_message", stopped.get("prompt_response"))


def test_prompt_is_the_agent_s_own_report_and_names_no_person(
    agent: GatedAgent, people: People
) -> None:
    agent.hook("prompt", read_sample("claude-code", "UserPromptSubmit", agent.home, agent.root))

    (prompt,) = people.history("prompt.submit")
    assert isinstance(prompt.body, PromptSubmit)
    me = agent.connection.agent
    assert (prompt.sender, prompt.body.target_agent, prompt.body.contributors) == (me, me, (me,))
    assert prompt.body.config is not None
    assert prompt.body.config.provider_params == {
        "source": "claude-code",
        "authorship": "typed in the host, reported by its hook",
    }


def test_answer_without_its_prompt_on_record_brings_gemini_s_along(
    make_agent: MakeAgent, people: People
) -> None:
    agent = make_agent("gemini")

    agent.hook("stop", read_sample("gemini", "AfterAgent", agent.home, agent.root))

    assert len(people.history("prompt.submit")) == len(people.history("response.end")) == 1


def test_call_names_the_prompt_that_it_serves(agent: GatedAgent, people: People) -> None:
    asked = read_sample("claude-code", "UserPromptSubmit", agent.home, agent.root)
    agent.hook("prompt", asked)
    agent.ask("git push", session_id=asked["session_id"])

    (prompt,), (proposal,) = people.history("prompt.submit"), people.history("tool.propose")
    assert proposal.ref == prompt.id


def write_transcript(payload: dict[str, Any], *entries: dict[str, Any]) -> None:
    path = Path(payload["transcript_path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in entries))


def claude_entry(id: str, **usage: int) -> dict[str, Any]:
    message = {"id": id, "model": "claude-opus-5", "role": "assistant", "usage": usage}
    return {"type": "assistant", "message": message}


def codex_count(**usage: int) -> dict[str, Any]:
    info = {"last_token_usage": usage}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


TRANSCRIPTS: dict[str, tuple[tuple[dict[str, Any], ...], str, tuple[int, int]]] = {
    "claude-code": (
        (
            {"type": "user", "message": {"content": "before"}},
            claude_entry("m0", input_tokens=500, output_tokens=500),
            {"type": "user", "message": {"content": "sh echo ran-it"}},
            claude_entry("m1", input_tokens=10, output_tokens=2, cache_read_input_tokens=100),
            claude_entry("m1", input_tokens=10, output_tokens=5, cache_read_input_tokens=100),
            {"type": "user", "message": {"content": [{"type": "tool_result"}]}},
            claude_entry("m2", input_tokens=20, output_tokens=7),
        ),
        "claude-opus-5",
        (130, 12),
    ),
    "codex": (
        (
            codex_count(input_tokens=500, output_tokens=500),
            {"type": "event_msg", "payload": {"type": "task_started"}},
            {"type": "turn_context", "payload": {"model": "gpt-5.5"}},
            codex_count(input_tokens=30, output_tokens=4),
            codex_count(input_tokens=40, output_tokens=5),
        ),
        "gpt-5.5",
        (70, 9),
    ),
    "gemini": (
        (
            {"type": "user", "content": "sh echo ran-it"},
            {
                "type": "gemini",
                "id": "g1",
                "model": "gemini-2.5-flash",
                "tokens": {"input": 8, "output": 3},
            },
            {"type": "user", "content": [{"functionResponse": {"name": "run_shell_command"}}]},
            {"type": "gemini", "id": "g2", "tokens": {"input": 9, "output": 1}},
        ),
        "gemini-2.5-flash",
        (17, 4),
    ),
}


@proves("PVP-12.2-5")
@pytest.mark.parametrize("host", sorted(TRANSCRIPTS))
def test_usage_and_model_come_from_the_transcript(
    make_agent: MakeAgent, people: People, host: str
) -> None:
    agent = make_agent(host, price=(3.0, 15.0))
    asked, stopped = (read_sample(host, name, agent.home, agent.root) for name in TURNS[host])
    entries, model, tokens = TRANSCRIPTS[host]
    write_transcript(stopped, *entries)

    agent.hook("prompt", asked)
    agent.hook("stop", stopped)

    (end,) = people.history("response.end")
    assert isinstance(end.body, ResponseEnd)
    assert end.body.usage is not None
    assert end.body.usage.model == model
    assert (end.body.usage.input_tokens, end.body.usage.output_tokens) == tokens
    assert end.body.usage.cost_usd == (3 * tokens[0] + 15 * tokens[1]) / 1_000_000


INCOMPLETE = {
    "claude-code": {**claude_entry("m3"), "message": {"id": "m3", "stop_reason": "tool_use"}},
    "codex": {"type": "response_item", "payload": {"type": "message", "role": "assistant"}},
    "gemini": {"type": "gemini", "id": "g3", "toolCalls": [{"id": "c1"}]},
}


@pytest.mark.parametrize("host", sorted(TRANSCRIPTS))
def test_usage_waits_for_the_answer_that_the_host_still_writes(host: str, tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    entries, model, (input_tokens, output_tokens) = TRANSCRIPTS[host]
    write_transcript({"transcript_path": str(path)}, *entries)
    whole = read_complete_usage(host, str(path), str(tmp_path))
    write_transcript({"transcript_path": str(path)}, *entries, INCOMPLETE[host])

    cut = read_complete_usage(host, str(path), str(tmp_path))

    assert whole[:3] == cut[:3] == (model, input_tokens, output_tokens)
    assert (whole.is_complete, cut.is_complete) == (True, False)


def test_transcript_outside_the_home_directory_is_not_read(
    agent: GatedAgent, people: People, tmp_path: Path
) -> None:
    asked, stopped = (
        read_sample("claude-code", name, agent.home, agent.root) for name in TURNS["claude-code"]
    )
    stopped["transcript_path"] = str(tmp_path / "t.jsonl")
    write_transcript(stopped, *TRANSCRIPTS["claude-code"][0])

    agent.hook("prompt", asked)
    agent.hook("stop", stopped)

    (end,) = people.history("response.end")
    assert isinstance(end.body, ResponseEnd)
    assert end.body.usage is None


@pytest.mark.parametrize(("host", "name", "tool"), RESULTS)
def test_approved_edit_is_reported_as_the_host_says(
    make_agent: MakeAgent, people: People, host: str, name: str, tool: str
) -> None:
    agent = make_agent(host)
    done = read_sample(host, name, agent.home, agent.root)
    asked = {key: value for key, value in done.items() if key != "tool_response"}
    assert agent.hook("pre-tool", asked).decision == "deny"
    people.approve()
    assert agent.hook("pre-tool", asked).decision != "deny"

    agent.hook("post-tool", done)

    (result,) = (each.body for each in people.history("tool.result"))
    assert isinstance(result, ToolResult)
    assert result.success
    (proposal,) = (each.body for each in people.history("tool.propose"))
    assert isinstance(proposal, ToolPropose)
    assert proposal.tool_name == tool


@pytest.mark.parametrize(
    ("host", "response", "code"),
    [
        ("claude-code", {"stdout": "", "stderr": "", "interrupted": True}, None),
        ("codex", "Exit code: 3\nWall time: 0 seconds\nOutput:\nno", 3),
        ("gemini", {"llmContent": "Output: no\nExit Code: 2", "returnDisplay": "no"}, 2),
        ("gemini", {"error": {"message": "failed"}, "llmContent": "no"}, None),
    ],
)
def test_failed_call_is_reported_as_failed(
    make_agent: MakeAgent, people: People, host: str, response: Any, code: int | None
) -> None:
    agent = make_agent(host)
    payload = agent.shell_payload("make deploy")
    agent.hook("pre-tool", payload)
    people.approve()
    agent.hook("pre-tool", payload)

    agent.hook("post-tool", {**payload, "tool_response": response})

    (result,) = (each.body for each in people.history("tool.result"))
    assert isinstance(result, ToolResult)
    assert not result.success
    assert result.result == {"exit_code": code}


def test_failure_event_of_claude_is_a_failed_result(agent: GatedAgent, people: People) -> None:
    payload = agent.shell_payload("make deploy")
    agent.hook("pre-tool", payload)
    people.approve()
    agent.hook("pre-tool", payload)

    failure = {"hook_event_name": "PostToolUseFailure", "error": "Exit code 1\nboom"}
    agent.hook("post-tool", {**payload, **failure})

    (result,) = (each.body for each in people.history("tool.result"))
    assert isinstance(result, ToolResult)
    assert (result.success, result.error) == (False, "Exit code 1\nboom")


@proves("UNI-22")
def test_presence_follows_the_host(agent: GatedAgent, people: People) -> None:
    agent.hook("session-start", read_sample("claude-code", "SessionStart", agent.home, agent.root))
    wait_until(lambda: presence_of(people, agent) is Presence.ACTIVE)

    agent.hook("session-end", read_sample("claude-code", "SessionEnd", agent.home, agent.root))

    wait_until(lambda: presence_of(people, agent) is not Presence.ACTIVE)


def test_subagents_are_told_apart_from_their_parent(agent: GatedAgent, people: People) -> None:
    asked = read_sample("claude-code", "UserPromptSubmit", agent.home, agent.root)
    agent.hook("prompt", asked)
    subagent = {"agent_id": "sub-7", "agent_type": "reviewer"}

    agent.ask("git push", **subagent)
    agent.hook("subagent-stop", {**asked, **subagent, "last_assistant_message": "looks fine"})

    (proposal,) = (each.body for each in people.history("tool.propose"))
    assert isinstance(proposal, ToolPropose)
    assert (proposal.metadata or {})["subagent"] == {"id": "sub-7", "type": "reviewer"}
    (end,) = (each.body for each in people.history("response.end"))
    assert isinstance(end, ResponseEnd)
    assert (end.metadata or {})["subagent"] == {"id": "sub-7", "type": "reviewer"}
    assert end.finish_reason == "tool_use"


def test_model_of_codex_is_declared_with_the_call(make_agent: MakeAgent, people: People) -> None:
    agent = make_agent("codex")

    agent.hook("pre-tool", read_sample("codex", "PreToolUse-apply_patch", agent.home, agent.root))

    (proposal,) = (each.body for each in people.history("tool.propose"))
    assert isinstance(proposal, ToolPropose)
    assert (proposal.metadata or {})["model"] == "gpt-5.5"


# Hosts that were woken

WORDS = "Which part is yours?"


def turn_of(agent: GatedAgent, prompt: str) -> None:
    """A whole turn of the host with this prompt."""
    names = TURNS[agent.host]
    asked, stopped = (read_sample(agent.host, name, agent.home, agent.root) for name in names)
    if "prompt" in stopped:  # Gemini CLI says it again at the end
        stopped = {**stopped, "prompt": prompt}
    agent.hook("prompt", {**asked, "prompt": prompt})
    agent.hook("stop", stopped)


@pytest.mark.parametrize("host", sorted(TURNS))
def test_woken_host_answers_the_prompt_it_was_woken_for_and_records_no_other(
    make_agent: MakeAgent, people: People, host: str
) -> None:
    agent = make_agent(host)
    assert not agent.ask("ls").decision
    id = agent.connection.agent
    asked = [people.send(PromptSubmit(words, id, (PERSON,), ())) for words in ("Hello?", WORDS)]

    turn_of(agent, wake_prompt(thread=people.session, unread=2, by=PERSON, words=WORDS))
    proposed = agent.ask("touch made")

    assert "accord approve" in proposed.reason
    assert [each.id for each in people.history("prompt.submit")] == asked
    assert [each.ref for each in people.history("response.start")] == asked[-1:]
    assert [each.sender for each in people.history("response.end")] == [id]


def test_proposal_of_a_woken_host_cites_the_person_s_prompt(
    agent: GatedAgent, people: People
) -> None:
    asked_sample, _ = TURNS[agent.host]
    assert not agent.ask("ls").decision
    asked = people.send(PromptSubmit(WORDS, agent.connection.agent, (PERSON,), ()))
    sample = read_sample(agent.host, asked_sample, agent.home, agent.root)
    words = wake_prompt(thread=people.session, unread=1, by=PERSON, words=WORDS)

    agent.hook("prompt", {**sample, "prompt": words})
    agent.hook(
        "pre-tool", {**agent.shell_payload("touch made"), "session_id": sample["session_id"]}
    )

    (proposal,) = people.history("tool.propose")
    assert proposal.ref == asked


@pytest.mark.parametrize("thread", ["th_01M7GMJP1Y4T7CP7A3QNGAT9X2", ""])
def test_wake_for_something_else_is_recorded_without_what_it_quotes(
    agent: GatedAgent, people: People, thread: str
) -> None:
    """Words of another thread are not for all members of the session."""
    first = f"[accord wake] You have 1 unread message in thread {thread or people.session}."

    turn_of(agent, wake_prompt(thread=thread or people.session, unread=1, by="eve", words=WORDS))

    (prompt,) = people.history("prompt.submit")
    assert isinstance(prompt.body, PromptSubmit)
    assert prompt.body.content == first
    assert [each.ref for each in people.history("response.start")] == [prompt.id]
    assert all(WORDS not in repr(each.body) for each in people.history())
