"""Runs of earlier ranges that a commit contains: their records, and what of them still waits.

A commit takes the range of the session that it ends. A call in it that changes files, and not all
of them in that commit, is carried on to the commits after it (`waiting_runs`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from accord.core.kernel.records import Event, Record
from accord.core.provenance.coverage.coverage_rule import (
    CommitContent,
    file_operations,
    shown_tree,
)
from accord.core.provenance.waiting_runs import ENTIRE_CALL, CarriedRun
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.grants import GrantEnded, GrantTakenBack, ToolCleared
from accord.core.room.approval.tool_proposals import (
    ToolExpired,
    ToolFinished,
    ToolPrinted,
    ToolProposed,
    ToolRanLate,
)
from accord.core.room.approval.votes import GateApproved, GatePassed
from accord.core.room.conversation.prompts import PromptAmended, PromptSubmitted
from accord.core.room.decisions.rulings import DecisionRuled
from accord.core.room.forking.merge_approval import CommitReported

# The call that a record is about, or the prompt, or the gate; an event that is not listed is not
# part of a run.
RUN_SUBJECTS: Mapping[type[Event], Callable[[Any], str]] = {
    PromptSubmitted: lambda record: record.id,
    PromptAmended: lambda record: record.event.said.original_prompt,
    ToolProposed: lambda record: record.id,
    GateOpened: lambda record: record.event.said.action_ref,
    GateApproved: lambda record: record.event.gate,
    GatePassed: lambda record: record.event.gate,
    ToolCleared: lambda record: record.event.said.tool_proposal,
    ToolPrinted: lambda record: record.event.said.tool_proposal,
    ToolFinished: lambda record: record.event.said.tool_proposal,
    ToolRanLate: lambda record: record.event.said.tool_proposal,
    ToolExpired: lambda record: record.event.tool,
    GrantEnded: lambda record: record.event.tool,
    GrantTakenBack: lambda record: record.event.said.tool_proposal,
}
# What runs depend on, whichever they are.
COMMON_EVENTS = (DecisionRuled, CommitReported)


def records_of_runs(records: Iterable[Record], proposals: Mapping[str, Record]) -> list[Record]:
    """The records about the runs of these proposals, and about their prompts."""
    about = {*proposals, *(record.ref for record in proposals.values() if record.ref)}
    selected: list[Record] = []
    for record in records:
        subject = RUN_SUBJECTS.get(type(record.event))
        if subject is not None and subject(record) in about:
            selected.append(record)
            about |= _made_subjects(record)
        elif isinstance(record.event, COMMON_EVENTS):
            selected.append(record)
    return selected


def _made_subjects(record: Record) -> frozenset[str]:
    """What later records of the same run name instead of the call."""
    return frozenset({record.id} if isinstance(record.event, GateOpened) else ())


def is_contained(run: CarriedRun, proposal: Record, commit: CommitContent, root: str) -> bool:
    """Whether the commit contains anything of the run that still waits."""
    if not isinstance(event := proposal.event, ToolProposed):
        return False
    said = event.said
    if tree := shown_tree(said.arguments):
        return tree == commit.tree
    changed = {file.path for file in commit.files}
    paths = {each.path for each in file_operations(said.tool_name, said.arguments, root)}
    waiting = paths if ENTIRE_CALL in run.parts else paths.intersection(run.parts)
    return not changed.isdisjoint(waiting)
