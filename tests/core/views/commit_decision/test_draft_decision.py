"""From a conversation to the decision behind a commit: who asked, and who agreed."""

import msgspec
import pytest

from accord.core.kernel.role_permissions import Role
from accord.core.provenance import decision_commit as decisions
from accord.core.room.approval.standing_grants import StandingGrantCreate
from accord.core.room.approval.tool_proposals import ToolResult
from accord.core.room.conversation.responses import (
    ResponseChunk,
    ResponseEnd,
    ResponseStart,
    UsageStats,
)
from accord.core.views.commit_decision.decision_builder import (
    CommitRange,
    decision_id,
    records_in_range,
)
from accord.core.views.commit_decision.draft_decision import draft_decision
from tests.helpers.room.call_rules import REPORTED, policy_with
from tests.helpers.room.commit_decisions import (
    decision_of,
    draft_commit_decision,
    records_with_seq,
    room_with_approver_and_agent,
    run_approved_tool,
    written_text,
)
from tests.helpers.room.logged_room import (
    START_ID,
    LoggedRoom,
    context_add,
    fork_create,
    merge_propose,
)
from tests.helpers.room.scenario import (
    BOB,
    CAROL,
    CLAUDE,
    gate_approve,
    gate_on,
    gate_request,
    prompt_submit,
    tool_approve,
    tool_output,
    tool_propose,
    tool_reject,
    tool_result,
)
from tests.spec import proves


@proves("PVP-18.2-1", "PVP-18.2-4", "GIT-MAP-1", "GIT-MAP-3")
def test_a_decision_is_the_chain_from_the_prompt_to_the_tool() -> None:
    talk = room_with_approver_and_agent()
    run_approved_tool(talk, "t")

    made = decision_of(talk)

    execute = next(r.id for r in talk.log if r.event.name == "tool.cleared")
    assert made.pvp_messages == (START_ID, "t.yes", "t", execute)
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
    talk = room_with_approver_and_agent()
    talk.send(CLAUDE, tool_propose(), id="t")
    gate = gate_on(talk.room, "t").id
    talk.send(BOB, gate_approve(BOB, gate, "Looks fine"), id="yes")

    (approval,) = decision_of(talk).votes

    assert (approval.by, approval.action, approval.comment) == ("human:bob", "t", "Looks fine")
    assert approval.at


def test_a_standing_grant_votes_for_a_call_and_approves_no_commit() -> None:
    room = room_with_approver_and_agent()
    grant = StandingGrantCreate(agent="claude", run=("pytest **",), count=1, seconds=600)
    room.send(BOB, grant)
    room.send(CLAUDE, tool_propose(metadata=REPORTED), id="t", ref=START_ID, house=policy_with())
    room.send(CLAUDE, tool_result("t"))

    made = decision_of(room)

    assert [each.id for each in made.tool_executions] == ["t"]
    assert made.votes == ()
    assert made.decided_by == ("agent:claude", "human:alice")


def test_names_that_people_chose_are_kept_beside_their_ids() -> None:
    talk = room_with_approver_and_agent()
    claude = msgspec.structs.replace(talk.room.members["claude"], name="claude")
    members = {**talk.room.members, "claude": claude}
    talk.room = msgspec.structs.replace(talk.room, members=members)
    run_approved_tool(talk, "t")

    assert decision_of(talk).names["human:bob"] == "Bob"
    assert "agent:claude" not in decision_of(talk).names


def test_what_was_refused_is_an_alternative_with_its_reason() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CLAUDE, tool_propose(), id="bad")
    talk.send(BOB, tool_reject(BOB, "bad", "Too risky"), id="no")

    made = decision_of(talk)

    (other,) = made.alternatives_considered
    assert (other.kind, other.id, other.reason, other.by) == (
        "proposal",
        "bad",
        "Too risky",
        ("human:bob",),
    )
    assert not made.tool_executions
    assert not made.votes


def test_a_gate_on_a_prompt_that_is_refused_says_what_it_was() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CAROL, prompt_submit(content="Drop the table"), id="p")
    talk.send(CAROL, gate_request("p"), id="g")
    talk.send(BOB, tool_reject(BOB, "p", "Never"))

    (other,) = decision_of(talk).alternatives_considered

    assert (other.kind, other.id, other.description) == ("proposal", "p", "")


@proves("PVP-18.5-1")
def test_a_fork_that_has_not_come_back_is_an_alternative() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CAROL, fork_create("Try OAuth", BOB, CLAUDE, reason="Maybe simpler"), id="f")

    (other,) = decision_of(talk).alternatives_considered

    assert (other.kind, other.id, other.description, other.branch) == (
        "fork",
        "try-oauth",
        "Maybe simpler",
        "pvp/try-oauth",
    )
    talk.send(CAROL, merge_propose("try-oauth"), id="m")
    assert "It works" in written_text(talk)


def test_a_merge_that_was_refused_is_an_alternative_too() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CAROL, fork_create("Try", BOB, CLAUDE), id="f")
    talk.send(CLAUDE, merge_propose("try"), id="m")
    gate = gate_on(talk.room, "m").id
    talk.send(BOB, tool_reject(BOB, "m", "Not yet"), id="no")

    kinds = [
        (each.kind, each.id, each.reason) for each in decision_of(talk).alternatives_considered
    ]

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
    by_answer, by_tool = room_with_approver_and_agent(), room_with_approver_and_agent()
    by_answer.send(CLAUDE, ResponseStart("claude", START_ID), id="r")
    by_answer.send(CLAUDE, ResponseEnd("complete", metadata=said), ref="r")
    by_tool.send(CLAUDE, tool_propose(), id="t")
    by_tool.send(BOB, tool_approve(BOB, "t"))
    by_tool.send(CLAUDE, ToolResult("t", success=False, duration_ms=1, metadata=said, result=[1]))

    assert decision_of(by_answer).confidence_score == told
    assert decision_of(by_tool).confidence_score == told
    assert decision_of(by_tool).tool_executions[0].outcome == "failure"


def test_an_answer_is_told_whole_and_what_it_cost_is_added_up() -> None:
    talk = room_with_approver_and_agent()
    for name in ("r1", "r2"):
        talk.send(CLAUDE, ResponseStart("claude", START_ID), id=name)
        talk.send(CLAUDE, ResponseChunk("Let "), ref=name)
        talk.send(CLAUDE, ResponseChunk("us see"), ref=name)
        usage = UsageStats(1, 20, latency_ms=300)
        talk.send(CLAUDE, ResponseEnd("complete", usage), ref=name, id=f"{name}.end")

    found = draft_commit_decision(talk)

    assert found is not None
    assert found.decision.metrics is not None
    assert decisions.to_json(found.decision.metrics) == {"output_tokens": 40, "latency_ms": 600}
    said = {each.id: each for each in found.thread.messages}
    assert (said["r1.end"].content, said["r1.end"].type) == ("Let us see", "response.end")


def test_an_answer_that_goes_on_while_one_commits_is_told_as_far_as_it_got() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CLAUDE, ResponseStart("claude", START_ID), id="r")
    talk.send(CLAUDE, ResponseChunk("First this. "), ref="r")
    first = decision_of(talk)
    talk.send(CLAUDE, ResponseChunk("Then that."), ref="r")
    half = draft_commit_decision(talk, 2)
    talk.send(CLAUDE, ResponseEnd("complete"), ref="r", id="end")
    second = draft_commit_decision(talk, first.until)
    alone = draft_commit_decision(talk, 4)

    assert "First this. " in written_text(talk, 0)
    assert half is None  # more of an answer decides nothing by itself
    assert second is not None
    assert [each.content for each in second.thread.messages] == ["Then that."]
    assert alone is not None
    assert [each.content for each in alone.thread.messages] == [""]


def test_what_an_agent_says_of_its_own_commit_is_no_reason_for_the_next() -> None:
    talk = room_with_approver_and_agent()
    talk.send(
        CLAUDE, tool_propose(arguments={"argv": ["git", "commit"]}), id="commit", ref=START_ID
    )
    talk.send(BOB, tool_approve(BOB, "commit"))
    first = decision_of(talk)
    talk.send(CLAUDE, tool_result("commit"))
    talk.send(CLAUDE, ResponseStart("claude", START_ID), id="r")
    talk.send(CLAUDE, ResponseEnd("complete"), ref="r")
    report = draft_commit_decision(talk, first.until)
    run_approved_tool(talk, "next")
    second = decision_of(talk, first.until)

    assert first.tool_executions[0].outcome == "unfinished"
    assert report is None
    assert [tool.id for tool in second.tool_executions] == ["next"]


def test_the_second_commit_covers_only_what_came_after_the_first() -> None:
    talk = room_with_approver_and_agent()
    run_approved_tool(talk, "one")
    first = decision_of(talk)
    run_approved_tool(talk, "two")

    second = decision_of(talk, first.until)

    assert [tool.id for tool in first.tool_executions] == ["one"]
    assert [tool.id for tool in second.tool_executions] == ["two"]
    assert [each.action for each in second.votes] == ["two"]
    assert (first.since, second.since) == (0, first.until)
    assert START_ID in second.pvp_messages  # what both were asked for
    assert first.id != second.id


def test_a_tool_that_was_running_at_the_first_commit_is_not_run_again_by_the_second() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CLAUDE, tool_propose(), id="commit")
    talk.send(BOB, tool_approve(BOB, "commit"))
    first = decision_of(talk)
    talk.send(CLAUDE, tool_output("commit"))
    talk.send(CLAUDE, tool_result("commit"))

    assert [(t.id, t.outcome) for t in first.tool_executions] == [("commit", "unfinished")]
    assert draft_commit_decision(talk, first.until) is None


def test_what_was_proposed_before_a_commit_and_approved_after_it_is_known() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CLAUDE, tool_propose(), id="t", ref=START_ID)
    gate = gate_on(talk.room, "t").id
    first = decision_of(talk)
    talk.send(BOB, gate_approve(BOB, gate))

    second = decision_of(talk, first.until)

    assert [(t.id, t.name) for t in second.tool_executions] == [("t", "run_tests")]
    assert [(each.by, each.action) for each in second.votes] == [("human:bob", "t")]


def test_a_vote_from_before_the_last_commit_still_counts() -> None:
    talk = LoggedRoom.with_members(
        (BOB, Role.APPROVER), (CAROL, Role.APPROVER), (CLAUDE, Role.DRIVER)
    )
    talk.send(CLAUDE, tool_propose(), id="t")
    gate = gate_on(talk.room, "t").id
    talk.send(BOB, tool_approve(BOB, "t"), id="yes")
    records = [r for r in records_with_seq(talk) if r.id != "yes"]
    stretch = CommitRange(talk.room, "repo")
    found = draft_decision(stretch, records_in_range(stretch, records), {})

    assert found is not None
    (approval,) = found.decision.votes
    assert (approval.by, approval.gate, approval.at) == ("human:bob", gate, "")


def test_nothing_asked_done_or_approved_is_no_decision() -> None:
    talk = room_with_approver_and_agent()
    until = decision_of(talk).until
    talk.send(CAROL, context_add("notes"))

    assert draft_commit_decision(talk, until) is None


def test_asking_twice_names_the_same_decision() -> None:
    talk = room_with_approver_and_agent()
    run_approved_tool(talk, "t")

    assert decision_of(talk) == decision_of(talk)
    last = records_with_seq(talk)[-1]
    names = {
        decision_id(CommitRange(talk.room, repo, fork, since), last)
        for repo in ("a", "b")
        for fork in (None, "f")
        for since in (0, 1)
    }
    assert len(names) == 8
    assert all(len(name) == 30 and name.startswith("dec_") for name in names)
