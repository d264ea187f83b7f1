"""What another clone committed is no part of the next decision, and who decided it is not named."""

from typing import Any

from accord.core.kernel.actor import POLICY_ACTOR
from accord.core.provenance.coverage.coverage_rule import CommitContent
from accord.core.provenance.coverage.file_states import ChangedFile, blob_id
from accord.core.provenance.decision_commit import DecisionCommit, ToolExecution
from accord.core.room.conversation.prompts import PromptAmend
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.forking.merge_approval import CommitReport
from accord.core.views.commit_decision.commit_coverage import (
    contained_runs,
    covered_commit,
    depends_on_content,
)
from tests.helpers.room.commit_decisions import (
    decision_of,
    draft_commit_decision,
    records_with_seq,
    room_with_approver_and_agent,
)
from tests.helpers.room.logged_room import START_ID, LoggedRoom, fork_create, merge_propose
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
from tests.spec import proves

SHA = "a" * 40
ROOT = "/project"


def write(path: str, content: str = "x") -> dict[str, Any]:
    return {"tool_name": "write_file", "arguments": {"path": path, "content": content}}


def run(room: LoggedRoom, id: str, ref: str = START_ID, **proposed: Any) -> None:
    room.send(CLAUDE, tool_propose(**proposed), id=id, ref=ref)
    room.send(BOB, tool_approve(BOB, id), id=f"{id}.yes")
    room.send(CLAUDE, tool_result(id), id=f"{id}.done")


def answer(room: LoggedRoom, prompt: str) -> None:
    room.send(CLAUDE, ResponseStart("claude", prompt), id=f"{prompt}.answer")
    room.send(CLAUDE, ResponseChunk("Done"), ref=f"{prompt}.answer")
    room.send(CLAUDE, ResponseEnd("complete"), ref=f"{prompt}.answer")


def report(room: LoggedRoom, *runs: str, repo: str = "other") -> None:
    room.send(POLICY_ACTOR, CommitReport(repo, SHA, None, runs))


def committed(room: LoggedRoom, *paths: str, tree: str = "") -> DecisionCommit:
    draft = draft_commit_decision(room)
    assert draft is not None
    files = tuple(ChangedFile(path, after=blob_id(b"x"), mode="100644") for path in paths)
    return covered_commit(draft, CommitContent(files, tree), ROOT)


def test_what_another_clone_committed_is_left_out_with_its_prompt_answer_and_votes() -> None:
    room = room_with_approver_and_agent()
    room.send(ALICE, PromptAmend(START_ID, "and quickly", "in a hurry"))
    answer(room, START_ID)
    run(room, "t", **write("a.py"))
    report(room, "t", repo="repo")
    own = draft_commit_decision(room)
    report(room, "t")

    assert own is not None
    assert draft_commit_decision(room) is None


@proves("GIT-MAP-3")
def test_only_those_are_named_whose_runs_no_other_clone_committed() -> None:
    room = room_with_approver_and_agent()
    run(room, "t", **write("a.py"))
    report(room, "t")
    room.send(CAROL, prompt_submit(CLAUDE), id="q")
    answer(room, "q")
    run(room, "u", "q", **write("b.py"))

    made = decision_of(room)

    assert made.decided_by == ("agent:claude", "human:carol")
    assert [tool.id for tool in made.tool_executions] == ["u"]
    assert [vote.action for vote in made.votes] == ["u"]
    assert made.pvp_messages[0] == "q"


def test_a_prompt_that_led_to_other_runs_as_well_stays() -> None:
    room = room_with_approver_and_agent()
    for id, path in (("t", "a.py"), ("u", "b.py")):
        run(room, id, **write(path))
    report(room, "t")

    made = decision_of(room)

    assert made.pvp_messages[0] == START_ID
    assert [tool.id for tool in made.tool_executions] == ["u"]


def test_a_run_proposed_before_the_last_commit_and_committed_elsewhere_is_left_out() -> None:
    room = room_with_approver_and_agent()
    room.send(CLAUDE, tool_propose(**write("a.py")), id="t", ref=START_ID)
    since = max(record.seq for record in records_with_seq(room))
    room.send(BOB, tool_approve(BOB, "t"))
    room.send(CLAUDE, tool_result("t"))
    report(room, "t")

    assert draft_commit_decision(room, since) is None


def test_a_rejected_alternative_goes_with_its_prompt_only_if_it_is_named() -> None:
    room = room_with_approver_and_agent()
    room.send(CLAUDE, tool_propose(), id="no", ref=START_ID)
    room.send(BOB, tool_reject(BOB, "no"))
    run(room, "t", **write("a.py"))
    run(room, "free", "", **write("b.py"))
    report(room, "t")

    assert [each.id for each in decision_of(room).alternatives_considered] == ["no"]


@proves("GIT-MAP-3")
def test_who_decided_on_other_files_alone_is_not_named_for_this_commit() -> None:
    room = room_with_approver_and_agent()
    room.send(CAROL, prompt_submit(CLAUDE), id="q")
    run(room, "t", **write("a.py"))
    run(room, "u", "q", **write("b.py"))
    run(room, "v", "q", **write("/elsewhere/a.py"))

    made = committed(room, "a.py")
    other = committed(room, "b.py")
    both = committed(room, "a.py", "b.py")

    assert made.decided_by == ("agent:claude", "human:alice")
    assert [tool.elsewhere for tool in made.tool_executions] == [False, True, True]
    assert other.decided_by == ("agent:claude", "human:carol")
    assert both.decided_by == ("agent:claude", "human:alice", "human:carol")
    assert committed(room, "c.py").decided_by == committed(room, "c.py").assisted_by == ()
    assert contained_runs(made) == ("t",)


def test_a_command_belongs_to_the_first_commit_after_it_whatever_the_agent_reports() -> None:
    room = room_with_approver_and_agent()
    run(room, "t", arguments={"command": "make", "path": "b.py"})

    made = committed(room, "a.py")

    assert made.decided_by == ("agent:claude", "human:alice")
    assert contained_runs(made) == ("t",)


def test_who_merged_is_named_although_their_runs_are_elsewhere() -> None:
    room = room_with_approver_and_agent()
    run(room, "t", **write("b.py"))
    room.send(CAROL, fork_create("Try", BOB, CLAUDE), id="f")
    room.send(CLAUDE, merge_propose("try"), id="m")

    assert committed(room, "a.py").decided_by == ("agent:claude",)


def test_a_commit_call_that_showed_another_tree_waits_for_its_own_commit() -> None:
    call = {"argv": ["git", "commit"], "tree": "b" * 40}
    room = room_with_approver_and_agent()
    run(room, "c", arguments=call)

    assert contained_runs(committed(room, "a.py", tree="a" * 40)) == ()
    assert contained_runs(committed(room, "a.py", tree="b" * 40)) == ("c",)


def test_of_a_commit_whose_files_are_not_known_only_commands_are_reported() -> None:
    tools = (
        ToolExecution(id="w", name="write_file", arguments={"path": "a", "content": ""}),
        ToolExecution(id="s", name="shell", arguments={"command": "make"}),
    )

    assert contained_runs(DecisionCommit(id="d", pvp_session="s", tool_executions=tools)) == ("s",)


def test_trailers_depend_on_the_content_only_after_calls_that_say_what_they_change() -> None:
    def depends(**proposed: Any) -> bool:
        room = room_with_approver_and_agent()
        run(room, "t", **proposed)
        draft = draft_commit_decision(room)
        assert draft is not None
        return depends_on_content(draft, ROOT)

    assert depends(**write("/elsewhere/a.py"))
    assert depends(arguments={"argv": ["git", "commit"], "tree": "b" * 40})
    assert not depends(arguments={"argv": ["make"]})
    assert not depends(tool_name="write_file", arguments={"path": 3, "content": ""})
