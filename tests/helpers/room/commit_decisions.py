"""From a room's log to the decision behind a commit, as the git bridge derives it."""

import json

from msgspec.structs import replace

from accord.core.kernel.records import Record
from accord.core.kernel.role_permissions import Role
from accord.core.provenance import decision_commit as decisions
from accord.core.provenance.decision_commit import DecisionCommit
from accord.core.views.commit_decision.decision_builder import (
    CommitRange,
    ids_cited_by,
    records_in_range,
)
from accord.core.views.commit_decision.draft_decision import DecisionDraft, draft_decision
from tests.helpers.room.logged_room import START_ID, LoggedRoom
from tests.helpers.room.scenario import (
    BOB,
    CAROL,
    CLAUDE,
    tool_approve,
    tool_output,
    tool_propose,
    tool_result,
)


def room_with_approver_and_agent() -> LoggedRoom:
    """A room where Alice is admin and has prompted Claude; Bob approves, Carol drives."""
    return LoggedRoom.with_members(
        (BOB, Role.APPROVER), (CAROL, Role.DRIVER), (CLAUDE, Role.DRIVER)
    )


def run_approved_tool(room: LoggedRoom, name: str, ref: str | None = START_ID) -> None:
    """Claude proposes to write a file, Bob approves, Claude reports the result."""
    room.send(
        CLAUDE, tool_propose(tool_name="write_file", arguments={"path": "a.py"}), id=name, ref=ref
    )
    room.send(BOB, tool_approve(BOB, name), id=f"{name}.yes")
    room.send(CLAUDE, tool_output(name, "wrote 3 lines"))
    room.send(CLAUDE, tool_result(name), id=f"{name}.done")


def records_with_seq(room: LoggedRoom) -> list[Record]:
    """The records, with `seq` counted as the engine does: only those with a wire form."""
    numbers = iter(range(1, 10_000))
    return [replace(record, seq=next(numbers) if record.said else 0) for record in room.log]


def draft_commit_decision(
    room: LoggedRoom, since: int = 0, fork: str | None = None
) -> DecisionDraft | None:
    """The decision that the bridge would draft from the records since `since`."""
    records = records_with_seq(room)
    commit_range = CommitRange(room.room, "repo", fork, since)
    in_range = records_in_range(commit_range, records)
    known: dict[str, Record] = {}
    names = ids_cited_by(in_range)
    for _ in range(3):
        more = {record.id: record for record in records if record.id in names}
        known, names = {**known, **more}, ids_cited_by(more.values())
    return draft_decision(commit_range, in_range, known) if in_range else None


def decision_of(room: LoggedRoom, since: int = 0, fork: str | None = None) -> DecisionCommit:
    """The decision behind a commit, which must exist."""
    draft = draft_commit_decision(room, since, fork)
    assert draft is not None
    return draft.decision


def written_text(room: LoggedRoom, since: int = 0, fork: str | None = None) -> str:
    """Everything of a decision and its thread that would be written."""
    draft = draft_commit_decision(room, since, fork)
    assert draft is not None
    return json.dumps([decisions.to_json(draft.decision), decisions.thread_to_json(draft.thread)])
