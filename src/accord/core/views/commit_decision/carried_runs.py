"""Runs of earlier ranges that a commit contains: their records, and what of them still waits.

A commit takes the range of the session that it ends. A call in it that changes files, and not all
of them in that commit, is carried on to the commits after it (`waiting_runs`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from accord.core.kernel.records import Event, Record
from accord.core.provenance.coverage.coverage_extent import Coverage
from accord.core.provenance.coverage.coverage_rule import (
    CommitContent,
    FileOperation,
    file_operations,
    is_file_call,
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
from accord.core.views.commit_decision.decision_builder import ToolRun

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


def uncommitted_parts(
    runs: Sequence[ToolRun], commit: CommitContent, coverage: Coverage, root: str
) -> dict[str, tuple[str, ...]]:
    """What each run does that this commit does not contain."""
    changes = {run.proposal: file_operations(run.tool_name, run.arguments, root) for run in runs}
    kept = {file.path: _contained_in_path(file.path, coverage, changes) for file in commit.files}
    return {run.proposal: _uncommitted(run, commit.tree, changes, kept) for run in runs}


_Operations = Mapping[str, tuple[FileOperation, ...]]


def _contained_in_path(path: str, coverage: Coverage, changes: _Operations) -> frozenset[str]:
    """The runs that a commit contains which changes this path: all of them, if it is not known.

    Runs led to the content that is committed. What came before a whole content is replaced by it.
    Between the others, `git add -p` may have left out an edit; of what came later nothing is in it.
    """
    covering = {entry.proposal for entry in coverage.entries_of(path)}
    order = [
        (run, operation.change.is_complete)
        for run, operations in changes.items()
        for operation in operations
        if operation.path == path
    ]
    if not covering or not covering <= {run for run, _ in order}:
        return frozenset(changes)
    wholes = [at for at, (run, is_whole) in enumerate(order) if is_whole and run in covering]
    replaced = {run for run, _ in order[: max(wholes, default=0)]}
    return frozenset(covering | replaced)


def _uncommitted(
    run: ToolRun,
    tree: str,
    changes: _Operations,
    contained: Mapping[str, frozenset[str]],
) -> tuple[str, ...]:
    if run.ended and not run.succeeded:
        return ()
    if shown := shown_tree(run.arguments):
        return () if shown == tree else (ENTIRE_CALL,)
    if not is_file_call(run.tool_name, run.arguments):
        return ()
    if not (operations := changes[run.proposal]):
        return (ENTIRE_CALL,)
    paths = {each.path for each in operations}
    return tuple(sorted(path for path in paths if run.proposal not in contained.get(path, ())))
