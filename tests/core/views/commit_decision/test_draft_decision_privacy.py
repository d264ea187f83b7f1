"""What a decision tells of a conversation, and what it never does."""

from collections.abc import Sequence

from msgspec.structs import replace

from accord.core.kernel.records import Record
from accord.core.room.approval.tool_proposals import ToolResult
from accord.core.room.conversation.prompts import PromptAmend
from accord.core.room.conversation.thinking import ThinkingChunk, ThinkingStart
from accord.core.room.shared_context.secrets import SecretShare
from accord.core.views.commit_decision.decision_builder import CommitRange, records_in_range
from accord.core.views.commit_decision.draft_decision import draft_decision
from tests.helpers.room.commit_decisions import (
    decision_of,
    records_with_seq,
    room_with_approver_and_agent,
    run_approved_tool,
    written_text,
)
from tests.helpers.room.logged_room import START_ID, context_add, fork_create
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    prompt_submit,
    tool_approve,
    tool_output,
    tool_propose,
    tool_reject,
)
from tests.spec import proves


@proves("OPEN-74", "UNI-29")
def test_thinking_context_secrets_and_output_are_never_told() -> None:
    """The arguments of what ran are told, and redacted before they are stored."""
    talk = room_with_approver_and_agent()
    talk.send(CLAUDE, ThinkingStart("claude", START_ID, ("bob",)), id="th")
    talk.send(CLAUDE, ThinkingChunk("HIDDEN-THOUGHT"), ref="th")
    talk.send(CAROL, context_add("plan", "RESTRICTED-CONTEXT", to=["bob"]))
    talk.send(CAROL, context_add("open", "OPEN-CONTEXT"))
    talk.send(CAROL, SecretShare("key", ("claude",), "SECRET-VALUE"))
    hidden = {"path": "a.py", "content": "ARGUMENT-CONTENT"}
    talk.send(CLAUDE, tool_propose(tool_name="write_file", arguments=hidden), id="t")
    talk.send(BOB, tool_approve(BOB, "t"))
    talk.send(CLAUDE, tool_output("t", "TOOL-OUTPUT"))
    talk.send(CLAUDE, ToolResult("t", success=True, duration_ms=1, result={"said": "TOOL-RESULT"}))

    text = written_text(talk)

    assert "ARGUMENT-CONTENT" in text
    for word in ("THOUGHT", "CONTEXT", "SECRET", "OUTPUT", "RESULT"):
        assert word not in text


def test_the_talk_of_a_fork_is_told_only_by_commits_of_that_fork() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CAROL, fork_create("Try", BOB, CLAUDE), id="f")
    talk.send(CAROL, prompt_submit(content="IN-THE-FORK"), id="p", fork="try")
    talk.send(CAROL, prompt_submit(content="IN-THE-TRUNK"), id="q")
    run_approved_tool(talk, "t", ref="q")

    inside, outside = written_text(talk, fork="try"), written_text(talk)

    assert "IN-THE-FORK" in inside
    assert "IN-THE-TRUNK" not in inside
    assert "IN-THE-FORK" not in outside
    assert decision_of(talk, fork="try").fork == "try"


def test_what_another_place_said_is_not_told_though_it_is_cited() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CAROL, fork_create("Try", BOB, CLAUDE), id="f")
    run_approved_tool(talk, "t")
    records = [
        replace(r, to=frozenset({"bob"})) if r.id == START_ID else r for r in records_with_seq(talk)
    ]
    stretch = CommitRange(talk.room, "repo", None, 1)
    told = records_in_range(stretch, records)

    found = draft_decision(stretch, told, {START_ID: records[0]})

    assert found is not None
    assert START_ID not in found.decision.pvp_messages


def test_a_grant_for_what_nobody_knows_is_passed_by() -> None:
    talk = room_with_approver_and_agent()
    run_approved_tool(talk, "t")
    kept: Sequence[Record] = [r for r in records_with_seq(talk) if r.id not in {"t", "t.yes"}]
    stretch = CommitRange(talk.room, "repo")

    found = draft_decision(stretch, records_in_range(stretch, kept), {})

    assert found is not None
    assert found.decision.tool_executions == ()


def test_a_no_to_what_nobody_knows_is_said_and_is_no_alternative() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CLAUDE, tool_propose(), id="t")
    talk.send(BOB, tool_reject(BOB, "t", "No"), id="no")
    kept = [r for r in records_with_seq(talk) if r.event.name != "gate.opened"]
    stretch = CommitRange(talk.room, "repo")

    found = draft_decision(stretch, records_in_range(stretch, kept), {})

    assert found is not None
    assert found.decision.alternatives_considered == ()
    assert "no" in {each.id for each in found.thread.messages}


def test_amendments_count_and_agents_with_a_model_are_called_ai() -> None:
    talk = room_with_approver_and_agent()
    talk.send(ALICE, PromptAmend(START_ID, "And test it", "Forgot"), id="a")
    run_approved_tool(talk, "t")
    claude = replace(talk.room.members["claude"], metadata={"model": "m-1"})
    talk.room = replace(talk.room, members={**talk.room.members, "claude": claude})

    made = decision_of(talk)

    assert made.pvp_messages[:2] == (START_ID, "a")
    assert made.decided_by == ("ai:claude", "human:alice")
    gone = replace(talk.room, members={}, former={"alice": talk.room.members["alice"]})
    talk.room = gone
    assert decision_of(talk).decided_by == ("agent:claude", "human:alice")


@proves("OPEN-72")
def test_no_name_can_pass_for_two_people() -> None:
    talk = room_with_approver_and_agent()
    run_approved_tool(talk, "t")
    name = "alice,human:boss"
    alice = replace(talk.room.members["alice"], id=name)
    talk.room = replace(talk.room, members={**talk.room.members, name: alice})
    talk.log = [replace(each, sender=name) if each.id == START_ID else each for each in talk.log]

    assert decision_of(talk).decided_by == ("agent:claude", "human:alice%2Chuman%3Aboss")


@proves("PVP-5.2-1")
def test_the_hash_of_a_tools_output_tells_a_changed_one() -> None:
    def sealed(*texts: str, result: object = None) -> str:
        talk = room_with_approver_and_agent()
        talk.send(CLAUDE, tool_propose(tool_name="write_file"), id="t")
        talk.send(BOB, tool_approve(BOB, "t"))
        for text in texts:
            talk.send(CLAUDE, tool_output("t", text))
        talk.send(CLAUDE, ToolResult("t", success=True, duration_ms=1, result=result))
        (tool,) = decision_of(talk).tool_executions
        return tool.output_hash

    assert sealed() == ""
    assert sealed("a", "b").startswith("sha256:")
    assert sealed("a", "b") == sealed("a", "b")
    assert len({sealed("a", "b"), sealed("ab"), sealed("a", "c"), sealed("a", "b", result=1)}) == 4
