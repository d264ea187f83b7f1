"""From a conversation to the decision behind a commit: who asked, and who agreed."""

import pytest

from accord.core.kernel.authority import Role
from accord.core.provenance import decision as decisions
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart, UsageStats
from accord.core.room.tools import ToolResult
from accord.core.views.chain import drafted
from accord.core.views.stretch import Stretch, decision_id, heard
from tests.helpers.chain import a_talk, a_tool, decided, decision, numbered, words
from tests.helpers.forks import START, Talk, adds, forks, merges
from tests.helpers.room import (
    BOB,
    CAROL,
    CLAUDE,
    approves,
    approves_tool,
    finishes,
    gate_on,
    prints,
    prompts,
    proposes,
    rejects_tool,
    requests,
)
from tests.spec import proves


@proves("PVP-18.2-1", "PVP-18.2-4", "GIT-MAP-1", "GIT-MAP-3")
def test_a_decision_is_the_chain_from_the_prompt_to_the_tool() -> None:
    talk = a_talk()
    a_tool(talk, "t")

    made = decision(talk)

    execute = next(r.id for r in talk.log if r.event.name == "tool.cleared")
    assert made.pvp_messages == (START, "t.yes", "t", execute)
    assert made.decided_by == ("agent:claude", "human:alice")
    (tool,) = made.tool_executions
    assert (tool.name, tool.path, tool.outcome, tool.duration_ms) == (
        "write_file",
        "a.py",
        "success",
        12,
    )
    assert tool.approved_by == ("human:bob",)
    assert tool.output_hash.startswith("sha256:")


@proves("GIT-MAP-2", "UNI-14")
def test_who_approved_is_who_voted_and_the_gate_passed() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="t")
    gate = gate_on(talk.room, "t").id
    talk.says(BOB, approves(BOB, gate, "Looks fine"), id="yes")

    (approval,) = decision(talk).approvals

    assert (approval.by, approval.action, approval.comment) == ("human:bob", "t", "Looks fine")
    assert approval.at


def test_what_was_refused_is_an_alternative_with_its_reason() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="bad")
    talk.says(BOB, rejects_tool(BOB, "bad", "Too risky"), id="no")

    made = decision(talk)

    (other,) = made.alternatives_considered
    assert (other.kind, other.id, other.reason, other.by) == (
        "proposal",
        "bad",
        "Too risky",
        ("human:bob",),
    )
    assert not made.tool_executions
    assert not made.approvals


def test_a_gate_on_a_prompt_that_is_refused_says_what_it_was() -> None:
    talk = a_talk()
    talk.says(CAROL, prompts(content="Drop the table"), id="p")
    talk.says(CAROL, requests("p"), id="g")
    talk.says(BOB, rejects_tool(BOB, "p", "Never"))

    (other,) = decision(talk).alternatives_considered

    assert (other.kind, other.id, other.description) == ("proposal", "p", "")


@proves("PVP-18.5-1")
def test_a_fork_that_has_not_come_back_is_an_alternative() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try OAuth", BOB, CLAUDE, reason="Maybe simpler"), id="f")

    (other,) = decision(talk).alternatives_considered

    assert (other.kind, other.id, other.description, other.branch) == (
        "fork",
        "try-oauth",
        "Maybe simpler",
        "pvp/try-oauth",
    )
    talk.says(CAROL, merges("try-oauth"), id="m")
    assert "It works" in words(talk)


def test_a_merge_that_was_refused_is_an_alternative_too() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try", BOB, CLAUDE), id="f")
    talk.says(CLAUDE, merges("try"), id="m")
    gate = gate_on(talk.room, "m").id
    talk.says(BOB, rejects_tool(BOB, "m", "Not yet"), id="no")

    kinds = [(each.kind, each.id, each.reason) for each in decision(talk).alternatives_considered]

    assert kinds == [("fork", "try", ""), ("merge", "m", "Not yet")]
    assert gate not in talk.room.gates


@proves("OPEN-60", "PVP-18.2-3")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"confidence": 0.9}, 0.9),
        ({"confidence": 1}, 1.0),
        ({"confidence": 1.1}, None),
        ({"confidence": True}, None),
        ({"confidence": "high"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_confidence_is_the_agents_own_number_or_none(
    said: dict[str, object] | None, told: float | None
) -> None:
    by_answer, by_tool = a_talk(), a_talk()
    by_answer.says(CLAUDE, ResponseStart("claude", START), id="r")
    by_answer.says(CLAUDE, ResponseEnd("complete", metadata=said), ref="r")
    by_tool.says(CLAUDE, proposes(), id="t")
    by_tool.says(BOB, approves_tool(BOB, "t"))
    by_tool.says(CLAUDE, ToolResult("t", success=False, duration_ms=1, metadata=said, result=[1]))

    assert decision(by_answer).confidence_score == told
    assert decision(by_tool).confidence_score == told
    assert decision(by_tool).tool_executions[0].outcome == "failure"


def test_an_answer_is_told_whole_and_what_it_cost_is_added_up() -> None:
    talk = a_talk()
    for name in ("r1", "r2"):
        talk.says(CLAUDE, ResponseStart("claude", START), id=name)
        talk.says(CLAUDE, ResponseChunk("Let "), ref=name)
        talk.says(CLAUDE, ResponseChunk("us see"), ref=name)
        usage = UsageStats(1, 20, latency_ms=300)
        talk.says(CLAUDE, ResponseEnd("complete", usage), ref=name, id=f"{name}.end")

    found = decided(talk)

    assert found is not None
    assert found.decision.metrics is not None
    assert decisions.to_json(found.decision.metrics) == {"output_tokens": 40, "latency_ms": 600}
    said = {each.id: each for each in found.thread.messages}
    assert (said["r1.end"].content, said["r1.end"].type) == ("Let us see", "response.end")


def test_an_answer_that_goes_on_while_one_commits_is_told_as_far_as_it_got() -> None:
    talk = a_talk()
    talk.says(CLAUDE, ResponseStart("claude", START), id="r")
    talk.says(CLAUDE, ResponseChunk("First this. "), ref="r")
    first = decision(talk)
    talk.says(CLAUDE, ResponseChunk("Then that."), ref="r")
    half = decided(talk, 2)
    talk.says(CLAUDE, ResponseEnd("complete"), ref="r", id="end")
    second = decided(talk, first.until)
    alone = decided(talk, 4)

    assert "First this. " in words(talk, 0)
    assert half is None  # more of an answer decides nothing by itself
    assert second is not None
    assert [each.content for each in second.thread.messages] == ["Then that."]
    assert alone is not None
    assert [each.content for each in alone.thread.messages] == [""]


def test_what_an_agent_says_of_its_own_commit_is_no_reason_for_the_next() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(arguments={"argv": ["git", "commit"]}), id="commit", ref=START)
    talk.says(BOB, approves_tool(BOB, "commit"))
    first = decision(talk)
    talk.says(CLAUDE, finishes("commit"))
    talk.says(CLAUDE, ResponseStart("claude", START), id="r")
    talk.says(CLAUDE, ResponseEnd("complete"), ref="r")
    report = decided(talk, first.until)
    a_tool(talk, "next")
    second = decision(talk, first.until)

    assert first.tool_executions[0].outcome == "unfinished"
    assert report is None
    assert [tool.id for tool in second.tool_executions] == ["next"]


def test_the_second_commit_covers_only_what_came_after_the_first() -> None:
    talk = a_talk()
    a_tool(talk, "one")
    first = decision(talk)
    a_tool(talk, "two")

    second = decision(talk, first.until)

    assert [tool.id for tool in first.tool_executions] == ["one"]
    assert [tool.id for tool in second.tool_executions] == ["two"]
    assert [each.action for each in second.approvals] == ["two"]
    assert (first.since, second.since) == (0, first.until)
    assert START in second.pvp_messages  # what both were asked for
    assert first.id != second.id


def test_a_tool_that_was_running_at_the_first_commit_is_not_run_again_by_the_second() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="commit")
    talk.says(BOB, approves_tool(BOB, "commit"))
    first = decision(talk)
    talk.says(CLAUDE, prints("commit"))
    talk.says(CLAUDE, finishes("commit"))

    assert [(t.id, t.outcome) for t in first.tool_executions] == [("commit", "unfinished")]
    assert decided(talk, first.until) is None


def test_what_was_proposed_before_a_commit_and_approved_after_it_is_known() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="t", ref=START)
    gate = gate_on(talk.room, "t").id
    first = decision(talk)
    talk.says(BOB, approves(BOB, gate))

    second = decision(talk, first.until)

    assert [(t.id, t.name) for t in second.tool_executions] == [("t", "run_tests")]
    assert [(each.by, each.action) for each in second.approvals] == [("human:bob", "t")]


def test_a_vote_from_before_the_last_commit_still_counts() -> None:
    talk = Talk.of((BOB, Role.APPROVER), (CAROL, Role.APPROVER), (CLAUDE, Role.DRIVER))
    talk.says(CLAUDE, proposes(), id="t")
    gate = gate_on(talk.room, "t").id
    talk.says(BOB, approves_tool(BOB, "t"), id="yes")
    records = [r for r in numbered(talk) if r.id != "yes"]
    stretch = Stretch(talk.room, "repo")
    found = drafted(stretch, heard(stretch, records), {})

    assert found is not None
    (approval,) = found.decision.approvals
    assert (approval.by, approval.gate, approval.at) == ("human:bob", gate, "")


def test_nothing_asked_done_or_approved_is_no_decision() -> None:
    talk = a_talk()
    until = decision(talk).until
    talk.says(CAROL, adds("notes"))

    assert decided(talk, until) is None


def test_asking_twice_names_the_same_decision() -> None:
    talk = a_talk()
    a_tool(talk, "t")

    assert decision(talk) == decision(talk)
    last = numbered(talk)[-1]
    names = {
        decision_id(Stretch(talk.room, repo, fork, since), last)
        for repo in ("a", "b")
        for fork in (None, "f")
        for since in (0, 1)
    }
    assert len(names) == 8
    assert all(len(name) == 30 and name.startswith("dec_") for name in names)
