"""What a commit leaves of the calls before it, and which later commit contains that."""

from typing import Any

import pytest

from accord.core.kernel.actor import POLICY_ACTOR
from accord.core.kernel.records import Record
from accord.core.provenance.coverage.coverage_rule import CommitContent
from accord.core.provenance.coverage.file_states import ChangedFile, blob_id
from accord.core.provenance.decision_commit import DecisionCommit, ToolExecution
from accord.core.provenance.waiting_runs import ENTIRE_CALL, CarriedRun
from accord.core.room.conversation.prompts import PromptAmend
from accord.core.room.forking.merge_approval import CommitReport
from accord.core.views.commit_decision.carried_runs import is_contained, records_of_runs
from accord.core.views.commit_decision.commit_coverage import contained_runs, covered_commit
from accord.core.views.commit_decision.decision_builder import (
    CommitRange,
    decision_id,
    records_before_range,
    records_in_range,
)
from accord.core.views.commit_decision.draft_decision import DecisionDraft, draft_decision
from tests.helpers.room.commit_decisions import (
    draft_commit_decision,
    records_with_seq,
    room_with_approver_and_agent,
)
from tests.helpers.room.logged_room import START_ID, LoggedRoom
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    prompt_submit,
    tool_approve,
    tool_propose,
    tool_reject,
    tool_result,
)

ROOT = "/project"
BEFORE = "one\ntwo\n"


def write(path: str, content: str = "x") -> dict[str, Any]:
    return {"tool_name": "write_file", "arguments": {"path": path, "content": content}}


def edit(old: str, new: str, path: str = "a") -> dict[str, Any]:
    arguments = {"path": path, "old_string": old, "new_string": new}
    return {"tool_name": "edit_file", "arguments": arguments}


def commit_call(tree: str) -> dict[str, Any]:
    return {"arguments": {"argv": ["git", "commit"], "tree": tree}}


def run(room: LoggedRoom, id: str, ref: str = START_ID, **proposed: Any) -> None:
    room.send(CLAUDE, tool_propose(**proposed), id=id, ref=ref)
    room.send(BOB, tool_approve(BOB, id), id=f"{id}.yes")
    room.send(CLAUDE, tool_result(id), id=f"{id}.done")


def report(room: LoggedRoom, *runs: str, repo: str = "other") -> None:
    room.send(POLICY_ACTOR, CommitReport(repo, "a" * 40, None, runs))


def content(tree: str = "", **files: str) -> CommitContent:
    old = blob_id(BEFORE.encode())
    changed = (
        ChangedFile(path, old, blob_id(text.encode()), "100644", "100644", BEFORE)
        for path, text in files.items()
    )
    return CommitContent(tuple(changed), tree)


def left(draft: DecisionDraft | None, commit: CommitContent) -> dict[str, tuple[str, ...]]:
    assert draft is not None
    made = covered_commit(draft, commit, ROOT)
    return {tool.id: tool.uncommitted for tool in made.tool_executions}


def test_what_a_commit_leaves_of_each_call() -> None:
    room = room_with_approver_and_agent()
    run(room, "in", **write("a"))
    run(room, "out", **write("b"))
    run(room, "outside", **write("/elsewhere/b"))
    run(room, "command", arguments={"argv": ["make"]})
    run(room, "this tree", **commit_call("a" * 40))
    run(room, "other tree", **commit_call("b" * 40))
    room.send(CLAUDE, tool_propose(**write("b")), id="failed", ref=START_ID)
    room.send(BOB, tool_approve(BOB, "failed"))
    room.send(CLAUDE, tool_result("failed", success=False))
    room.send(CLAUDE, tool_propose(**write("b")), id="running", ref=START_ID)
    room.send(BOB, tool_approve(BOB, "running"))

    assert left(draft_commit_decision(room), content("a" * 40, a="x")) == {
        "in": (),
        "out": ("b",),
        "outside": (ENTIRE_CALL,),
        "command": (),
        "this tree": (),
        "other tree": (ENTIRE_CALL,),
        "failed": (),
        "running": ("b",),
    }


CALLS = {
    "first": edit("one", "1"),
    "second": edit("two", "2"),
    "whole": write("a", "1\ntwo\n"),
    "last": edit("two", "two!"),
}


@pytest.mark.parametrize(
    ("calls", "committed", "waiting"),
    [
        (("first", "second"), "one\n2\n", ("first",)),
        (("first", "second"), "1\ntwo\n", ("second",)),
        (("first", "second"), "1\n2\n", ()),
        (("first", "second"), "by hand\n", ()),
        (("second", "whole", "last"), "1\ntwo\n", ("last",)),
        (("second", "whole", "last"), "1\ntwo!\n", ()),
    ],
)
def test_of_one_file_a_later_call_and_an_edit_beside_it_may_be_left_out(
    calls: tuple[str, ...], committed: str, waiting: tuple[str, ...]
) -> None:
    room = room_with_approver_and_agent()
    for id in calls:
        run(room, id, **CALLS[id])
    commit = content(a=committed)
    draft = draft_commit_decision(room)

    assert tuple(id for id, parts in left(draft, commit).items() if parts) == waiting
    assert draft is not None
    made = covered_commit(draft, commit, ROOT)
    assert contained_runs(made) == tuple(id for id in calls if id not in waiting)


def test_a_commit_call_that_covers_a_file_contains_its_edits() -> None:
    room = room_with_approver_and_agent()
    run(room, "edit", **edit("one", "1"))
    run(room, "commit", **commit_call("a" * 40))

    assert not any(left(draft_commit_decision(room), content("a" * 40, a="other\n")).values())


def carry(room: LoggedRoom, since: int, *ids: str) -> DecisionCommit | None:
    """The decision of a commit that has these runs of before, and what came after."""
    records = records_with_seq(room)
    carried = tuple(CarriedRun(id, 0) for id in ids)
    commit_range = CommitRange(room.room, "repo", None, since, carried, 1)
    before = records_before_range(commit_range, records)
    by_id = {record.id: record for record in before}
    after = records_in_range(commit_range, records)
    used = [*records_of_runs(before, {id: by_id[id] for id in ids}), *after]
    last = next(record for record in reversed(before) if record.seq)
    made = draft_decision(commit_range, used, {}, last)
    assert commit_range.reads_from == (0 if ids else since)
    assert made is None or made.decision.id == decision_id(commit_range, last)
    return made.decision if made else None


def test_a_run_is_carried_on_with_its_prompt_and_votes_and_without_any_other() -> None:
    room = room_with_approver_and_agent()
    run(room, "t", **write("a"))
    room.send(CAROL, prompt_submit(CLAUDE), id="q")
    room.send(CAROL, PromptAmend("q", "and quickly", "in a hurry"))
    room.send(CLAUDE, tool_propose(**write("c")), id="no", ref="q")
    room.send(BOB, tool_reject(BOB, "no"))
    run(room, "u", "q", **write("b"))
    since = records_with_seq(room)[-1].seq

    made = carry(room, since, "u")

    assert made is not None
    assert [(tool.id, tool.since) for tool in made.tool_executions] == [("u", 0)]
    assert made.tool_executions[0].outcome == "success"
    assert made.decided_by == ("agent:claude", "human:carol")
    assert [(vote.action, vote.by) for vote in made.votes] == [("u", "human:bob")]
    assert made.alternatives_considered == ()
    assert "t" not in made.pvp_messages
    assert (made.since, made.until, made.earlier_links) == (since, since, 1)
    assert carry(room, since) is None


def carried_tools(room: LoggedRoom, since: int, *ids: str) -> tuple[ToolExecution, ...]:
    made = carry(room, since, *ids)
    return made.tool_executions if made else ()


def test_a_run_that_another_clone_committed_is_not_carried_on() -> None:
    room = room_with_approver_and_agent()
    run(room, "t", **write("a"))
    run(room, "u", **write("b"))
    report(room, "t", repo="repo")
    report(room, "u")
    since = max(record.seq for record in records_with_seq(room))
    room.send(CLAUDE, tool_propose(), id="later", ref=START_ID)

    assert [tool.id for tool in carried_tools(room, since, "t", "u")] == ["t"]


def record_of(room: LoggedRoom, id: str) -> Record:
    return next(record for record in room.log if record.id == id)


def test_a_commit_contains_a_carried_run_if_it_changes_what_still_waits_of_it() -> None:
    room = room_with_approver_and_agent()
    run(room, "t", **write("a"))
    run(room, "c", **commit_call("a" * 40))
    proposal, call = record_of(room, "t"), record_of(room, "c")

    def contains(parts: tuple[str, ...], proposal: Record, commit: CommitContent) -> bool:
        return is_contained(CarriedRun("t", 0, parts), proposal, commit, ROOT)

    assert contains(("a",), proposal, content(a="anything"))
    assert contains((ENTIRE_CALL,), proposal, content(a="anything"))
    assert not contains(("a",), proposal, content(b="x"))
    assert not contains(("b",), proposal, content(a="x", b="x"))
    assert contains((ENTIRE_CALL,), call, content("a" * 40))
    assert not contains((ENTIRE_CALL,), call, content("b" * 40, a="x"))
    assert not contains(("a",), record_of(room, START_ID), content(a="x"))
    assert ALICE.principal == record_of(room, START_ID).sender
