"""From the calls that ran in a session to what their approvals cover of a commit."""

from typing import Any

from msgspec.structs import replace

from accord.core.kernel.redaction import REDACTED
from accord.core.kernel.role_permissions import Role
from accord.core.provenance.call_digest import call_digest
from accord.core.provenance.coverage.coverage_rule import CommitContent
from accord.core.provenance.coverage.file_states import ChangedFile, blob_id
from accord.core.provenance.decision_commit import (
    Approval,
    ConversationThread,
    DecisionCommit,
    ForkMerge,
    ToolExecution,
)
from accord.core.room.approval.tool_proposals import ToolResult
from accord.core.room.conversation.prompts import PromptAmend
from accord.core.room.membership.leaving import SessionLeave
from accord.core.views.commit_decision.commit_coverage import (
    coverage_needs,
    covered_commit,
    with_recorded_calls,
)
from accord.core.views.commit_decision.decision_builder import (
    MAX_CALL_TEXT,
    MAX_CALL_TEXTS,
    MAX_LATER_CALL_TEXT,
)
from accord.core.views.commit_decision.draft_decision import DecisionDraft
from tests.helpers.room.commit_decisions import (
    decision_of,
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
    seconds_after_start,
    tool_approve,
    tool_propose,
    tool_reject,
)

ROOT = "/project"
HUMAN_BOB = "human:bob"


def run(
    room: LoggedRoom,
    id: str,
    name: str,
    arguments: dict[str, Any],
    *,
    success: bool | None = True,
    result: Any = None,
    ref: str = START_ID,
) -> None:
    """Claude proposes, Bob approves, and Claude reports, unless `success` is None."""
    room.send(CLAUDE, tool_propose(tool_name=name, arguments=arguments), id=id, ref=ref)
    room.send(BOB, tool_approve(BOB, id), id=f"{id}.yes")
    if success is not None:
        room.send(CLAUDE, ToolResult(id, success=success, duration_ms=1, result=result))


def write(content: str, path: str = "a.py") -> dict[str, Any]:
    return {"path": path, "content": content}


def committed(room: LoggedRoom, *files: tuple[str, str], tree: str = "") -> DecisionCommit:
    draft = draft_commit_decision(room)
    assert draft is not None
    changes = tuple(
        ChangedFile(path, after=blob_id(content.encode()), mode="100644") for path, content in files
    )
    return covered_commit(draft, CommitContent(changes, tree), ROOT)


def test_an_approved_write_covers_and_names_its_approver() -> None:
    room = room_with_approver_and_agent()
    run(room, "t", "write_file", write("x"))

    made = committed(room, ("a.py", "x"))

    assert (made.covers, made.approved_by) == ("whole", (HUMAN_BOB,))
    assert [(vote.by, vote.action) for vote in made.approvals] == [(HUMAN_BOB, "t")]
    assert [(entry.proposal, entry.paths) for entry in made.coverage] == [("t", ("a.py",))]
    assert made.context == ()
    assert made.tool_executions[0].paths == ("a.py",)
    assert [change.path for change in made.changes] == ["a.py"]


def test_what_covers_nothing_is_context_with_the_files_that_the_agent_names() -> None:
    room = room_with_approver_and_agent()
    files = {"files": ["a.py", "/project/b.py", "/etc/passwd", 3, "c.py"]}
    run(room, "t", "shell", {"argv": ["pytest"]}, result=files)
    run(room, "u", "write_file", write("y"), success=False)
    run(room, "v", "write_file", write("x"), success=None)

    made = committed(room, ("a.py", "x"), ("b.py", "y"))

    assert (made.covers, made.approvals, made.coverage) == ("none", (), ())
    assert [(entry.proposal, entry.paths) for entry in made.context] == [
        ("t", ("a.py", "b.py")),
        ("u", ("a.py",)),
        ("v", ("a.py",)),
    ]
    assert [tool.outcome for tool in made.tool_executions] == ["success", "failure", "unfinished"]


def test_a_run_that_needed_no_approval_covers_nothing() -> None:
    room = LoggedRoom.with_members((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    draft = draft_commit_decision(room)
    assert draft is not None
    ungated = draft._replace(runs=tuple(each._replace(approvers=()) for each in draft.runs))

    assert not coverage_needs(ungated, ROOT).is_possible


def test_a_commit_call_counts_while_it_runs_and_not_after_it_failed() -> None:
    tree = "a" * 40
    for success, covers in ((None, "whole"), (True, "whole"), (False, "none")):
        room = room_with_approver_and_agent()
        run(room, "c", "shell", {"argv": ["git", "commit"], "tree": tree}, success=success)

        assert committed(room, ("a.py", "x"), tree=tree).covers == covers


COMMIT_CALL: dict[str, Any] = {"argv": ["git", "commit"], "tree": "a" * 40}


def test_a_grant_taken_back_covers_nothing_and_nobody_approved_its_call() -> None:
    room = room_with_approver_and_agent()
    run(room, "c", "shell", COMMIT_CALL, success=None)
    run(room, "w", "write_file", write("x"), success=None)
    for id in ("c", "w"):
        room.send(BOB, tool_reject(BOB, id))

    made = committed(room, ("a.py", "x"), tree=COMMIT_CALL["tree"])

    assert (made.covers, made.approvals, made.coverage, made.context) == ("none", (), (), ())
    assert [(t.outcome, t.approved_by) for t in made.tool_executions] == [("taken_back", ())] * 2


def test_what_ran_after_its_grant_was_taken_back_covers_nothing_and_the_record_says_so() -> None:
    room = room_with_approver_and_agent()
    for id, name, arguments in (
        ("c", "shell", COMMIT_CALL),
        ("w", "write_file", write("x")),
    ):
        run(room, id, name, arguments, success=None)
        room.send(BOB, tool_reject(BOB, id))
        room.send(CLAUDE, ToolResult(id, success=True, duration_ms=1))

    made = committed(room, ("a.py", "x"), tree=COMMIT_CALL["tree"])

    assert (made.covers, made.approvals, made.coverage, made.context) == ("none", (), (), ())
    assert {tool.outcome for tool in made.tool_executions} == {"ran_after_taken_back"}


def expires(room: LoggedRoom) -> None:
    room.tick(seconds_after_start(2 * 3600))


def leaves(room: LoggedRoom) -> None:
    room.send(CLAUDE, SessionLeave())


def test_a_commit_call_without_a_live_grant_covers_nothing() -> None:
    for ends in (expires, leaves):
        room = room_with_approver_and_agent()
        run(room, "c", "shell", COMMIT_CALL, success=None)
        ends(room)

        made = committed(room, ("a.py", "x"), tree=COMMIT_CALL["tree"])

        assert (made.covers, made.coverage) == ("none", ())
        assert [tool.outcome for tool in made.tool_executions] == ["not_reported"]


def test_the_end_of_a_grant_of_an_earlier_commit_is_no_decision_of_the_next() -> None:
    room = room_with_approver_and_agent()
    run(room, "v", "write_file", write("y"), success=None)
    run(room, "w", "write_file", write("x"), success=None)
    linked = max(record.seq for record in records_with_seq(room))
    room.send(BOB, tool_reject(BOB, "w"))
    assert draft_commit_decision(room, since=linked) is None
    room.send(CLAUDE, ToolResult("w", success=True, duration_ms=1))
    assert draft_commit_decision(room, since=linked) is None
    leaves(room)
    assert draft_commit_decision(room, since=linked) is None


def test_a_merge_gate_covers_if_it_was_approved_showed_its_head_and_the_merge_was_made() -> None:
    head = "b" * 40
    merge = ForkMerge(id="m", fork="f", done=True, head=head)
    vote = Approval(gate="g", by=HUMAN_BOB, action="m")
    decision = DecisionCommit(id="d", pvp_session="s", merges=(merge,), votes=(vote,))
    file = ChangedFile("a.py", after="c" * 40, mode="100644", by_hand=False)
    content = CommitContent((file,), parents=("0" * 40, head))

    def covers(made: DecisionCommit) -> str:
        return covered_commit(DecisionDraft(made, ConversationThread("t")), content, ROOT).covers

    assert covers(decision) == "whole"
    assert covers(replace(decision, votes=())) == "none"
    assert covers(replace(decision, merges=(replace(merge, done=False),))) == "none"
    assert covers(replace(decision, merges=(replace(merge, head=""),))) == "none"


def test_only_what_edits_start_from_and_line_endings_are_asked_of_git() -> None:
    room = room_with_approver_and_agent()
    edit = {"path": "b.py", "old_string": "1", "new_string": "2"}
    run(room, "t", "write_file", write("x\r\n"))
    run(room, "u", "edit_file", edit)
    draft = draft_commit_decision(room)
    assert draft is not None

    needs = coverage_needs(draft, ROOT)

    assert needs == (True, ("b.py",), ("a.py",))


def test_the_record_has_the_call_with_long_texts_cut() -> None:
    room = room_with_approver_and_agent()
    run(room, "t", "write_file", write("x" * 5000) | {"list": ["y", 1]})
    arguments = decision_of(room).tool_executions[0].arguments

    assert arguments["content"] == "x" * (MAX_CALL_TEXT - 1) + "…"
    assert (arguments["path"], arguments["list"]) == ("a.py", ["y", 1])


def test_after_many_calls_the_record_has_less_of_each() -> None:
    room = room_with_approver_and_agent()
    for number in range(MAX_CALL_TEXTS // MAX_CALL_TEXT + 2):
        run(room, f"t{number}", "write_file", write("x" * 5000))
    tools = decision_of(room).tool_executions

    assert len(tools[0].arguments["content"]) == MAX_CALL_TEXT
    assert len(tools[-1].arguments["content"]) == MAX_LATER_CALL_TEXT


def test_who_decided_is_the_agent_the_prompter_and_who_amended_the_prompt_of_a_run() -> None:
    room = room_with_approver_and_agent()
    room.send(CAROL, prompt_submit(content="Look around"), id="q")
    room.send(ALICE, PromptAmend("q", "and quickly", "in a hurry"), id="more")
    asked = decision_of(room)
    run(room, "t", "shell", {"argv": ["ls"]}, ref="q")
    made = decision_of(room)

    assert asked.decided_by == ()
    assert made.decided_by == ("agent:claude", "human:alice", "human:carol")
    assert made.assisted_by == ("claude",)


def test_model_that_proposed_a_call_is_named_beside_its_agent() -> None:
    room = room_with_approver_and_agent()
    for id, model in (("t1", "opus 5"), ("t2", "haiku 5")):
        proposal = tool_propose(
            tool_name="write_file", arguments=write("1\n"), metadata={"model": model}
        )
        room.send(CLAUDE, proposal, id=id)
        room.send(BOB, tool_approve(BOB, id), id=f"{id}.yes")
        room.send(CLAUDE, ToolResult(id, success=True, duration_ms=1))

    assert committed(room, ("a.py", "1\n")).assisted_by == ("claude:haiku 5", "claude:opus 5")


def test_call_of_a_host_covers_what_it_wrote_from_its_own_directory() -> None:
    room = room_with_approver_and_agent()
    patch = "*** Begin Patch\n*** Add File: a.py\n+1\n*** End Patch\n"
    run(room, "t", "apply_patch", {"command": patch, "cwd": f"{ROOT}/lib"})

    made = committed(room, ("lib/a.py", "1\n"))

    assert (made.covers, [each.by for each in made.approvals]) == ("whole", [HUMAN_BOB])


def test_a_call_that_is_cut_is_redacted_first_and_has_the_digest_of_all_of_it() -> None:
    secret = "correct horse battery staple"

    def clean(text: str) -> str:
        return text.replace(secret, REDACTED)

    def recorded(content: str) -> ToolExecution:
        room = room_with_approver_and_agent()
        run(room, "t", "write_file", write(content))
        draft = draft_commit_decision(room)
        assert draft is not None
        (made,) = with_recorded_calls(draft, clean).decision.tool_executions
        return made

    start = "x" * (MAX_CALL_TEXT - 10)
    long, short = recorded(start + secret + "y" * 99), recorded("x")

    assert "correct" not in long.arguments["content"]
    assert long.arguments["content"].endswith("…")
    whole = write(start + REDACTED + "y" * 99)
    assert long.call_digest == call_digest("write_file", whole)
    assert long.call_digest != recorded(start + secret + "z" * 99).call_digest
    assert (short.arguments["content"], short.call_digest) == ("x", "")
