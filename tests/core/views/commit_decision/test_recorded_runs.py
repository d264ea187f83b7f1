"""What our executor records of a run is evidence; what any other agent records is not."""

from typing import Any

import pytest

from accord.core.kernel.role_permissions import Role
from accord.core.provenance.coverage.coverage_rule import CommitContent
from accord.core.provenance.coverage.file_states import ChangedFile, blob_id
from accord.core.provenance.decision_commit import DecisionCommit
from accord.core.room.approval.tool_proposals import ToolFinished, ToolResult
from accord.core.views.commit_decision.commit_coverage import covered_commit
from tests.helpers.room.commit_decisions import draft_commit_decision
from tests.helpers.room.logged_room import START_ID, LoggedRoom
from tests.helpers.room.scenario import BOB, CLAUDE, tool_approve, tool_propose, with_credential

BASE, FIRST, SECOND = ("a" * 40, "b" * 40, "c" * 40)
SHELL = {"argv": ["make"]}


def room_with(*labels: str) -> LoggedRoom:
    agent = with_credential(CLAUDE, Role.DRIVER, labels=labels) if labels else CLAUDE
    return LoggedRoom.with_members((BOB, Role.APPROVER), (agent, Role.DRIVER))


def run(
    room: LoggedRoom,
    id: str,
    trees: tuple[str, str],
    changed: dict[str, str],
    *,
    name: str = "shell",
    arguments: dict[str, Any] = SHELL,
    success: bool = True,
) -> None:
    """Claude proposes, Bob approves, and Claude reports these new files."""
    changes = [
        {"path": path, "after": blob_id(content.encode()), "mode": "100644"}
        for path, content in changed.items()
    ]
    record = {"base": BASE, "before": trees[0], "after": trees[1], "changes": changes}
    room.send(CLAUDE, tool_propose(tool_name=name, arguments=arguments), id=id, ref=START_ID)
    room.send(BOB, tool_approve(BOB, id), id=f"{id}.yes")
    metadata = {"work_tree": record}
    room.send(CLAUDE, ToolResult(id, success=success, duration_ms=1, metadata=metadata))


def committed(room: LoggedRoom, **files: str) -> DecisionCommit:
    draft = draft_commit_decision(room)
    assert draft is not None
    changes = tuple(
        ChangedFile(path, after=blob_id(content.encode()), mode="100644")
        for path, content in files.items()
    )
    return covered_commit(draft, CommitContent(changes), "/project")


@pytest.mark.parametrize(("labels", "covers"), [(("executor",), "whole"), ((), "none")])
def test_a_record_counts_only_with_the_label_of_an_executor(
    labels: tuple[str, ...], covers: str
) -> None:
    room = room_with(*labels)
    run(room, "t", (BASE, FIRST), {"a": "x"})

    made = committed(room, a="x")

    assert (made.covers, bool(made.approved_by)) == (covers, covers == "whole")
    assert made.tool_executions[0].paths == (("a",) if labels else ())
    (finished,) = [each.event for each in room.log if isinstance(each.event, ToolFinished)]
    assert bool(finished.by_executor) == bool(labels)


def test_a_failed_run_covers_nothing_and_breaks_the_chain() -> None:
    room = room_with("executor")
    run(room, "t", (BASE, FIRST), {"a": "x"}, success=False)
    run(room, "u", (FIRST, SECOND), {"b": "y"})

    assert committed(room, a="x").covers == "none"
    assert committed(room, b="y").covers == "none"


@pytest.mark.parametrize("beside", [{}, {"conftest": "evil"}])
def test_a_run_goes_on_from_a_write_only_if_nothing_else_changed_meanwhile(
    beside: dict[str, str],
) -> None:
    room = room_with("executor")
    write = {"path": "a", "content": "x"}
    changed = {"a": "x", **beside}
    run(room, "t", (BASE, FIRST), changed, name="write_file", arguments=write)
    run(room, "u", (FIRST, SECOND), {"b": "y"})

    assert committed(room, a="x", b="y").covers == ("part" if beside else "whole")
    assert committed(room, conftest="evil").covers == "none"
