"""Checks the coverage on record against a commit, which may be another one by now.

A record says which change of which blob an approval covers. An amend, a rebase, a cherry-pick or a
squash makes another commit, and only a change that is on record, or a chain of such changes, is
covered there, too. Standard library only: hooks use it, on notes as JSON.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from accord.core.provenance.coverage.coverage_extent import (
    Approval,
    Coverage,
    combine_coverage,
)

# The blob and mode of a path; both empty where there is none.
Version = tuple[str, str]


class CommittedFile(NamedTuple):
    """One changed path of a commit, as git has it."""

    path: str
    before: str
    after: str
    old_mode: str
    mode: str
    by_hand: bool = False  # an automatic merge did not yield it


class CoveredChange(NamedTuple):
    """A change of one path that an approval covers."""

    path: str
    before: Version
    after: Version
    approval: Approval
    together: bool
    is_merge: bool


def recheck_coverage(
    decisions: Iterable[Mapping[str, Any]], files: Sequence[CommittedFile]
) -> Coverage:
    """What the approvals in these decisions, as JSON, cover of a commit with these changes."""
    changes = [change for decision in decisions for change in _covered_changes(decision)]
    by_path: dict[str, list[CoveredChange]] = {}
    for change in changes:
        by_path.setdefault(change.path, []).append(change)
    approvers = sorted({change.approval[0] for change in changes})
    alone: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in approvers}
    mixed: dict[str, tuple[Approval, ...]] = {}
    for file in files:
        usable = [
            change
            for change in by_path.get(file.path, ())
            if not (file.by_hand and change.is_merge)
        ]
        for name in approvers:
            own = [each for each in usable if each.approval[0] == name and not each.together]
            if steps := _chain(file, own):
                alone[name][file.path] = tuple(step.approval[1] for step in steps)
        if steps := _chain(file, usable):
            mixed[file.path] = tuple(dict.fromkeys(_approvals_of(steps, usable)))
    return combine_coverage((file.path for file in files), alone, mixed)


def _chain(file: CommittedFile, changes: Sequence[CoveredChange]) -> list[CoveredChange]:
    """The shortest chain of changes that makes the change of this file; empty if there is none."""
    start, goal = (file.before, file.old_mode), (file.after, file.mode)
    reached: dict[Version, list[CoveredChange]] = {start: []}
    pending = [start]
    while pending:
        here = pending.pop(0)
        for change in changes:
            if change.before == here and change.after not in reached:
                reached[change.after] = [*reached[here], change]
                pending.append(change.after)
    return reached.get(goal, [])


def _approvals_of(
    steps: Sequence[CoveredChange], changes: Sequence[CoveredChange]
) -> Iterator[Approval]:
    """Everyone who approved a part of these steps."""
    made = {(step.before, step.after) for step in steps}
    return (change.approval for change in changes if (change.before, change.after) in made)


def _covered_changes(decision: Mapping[str, Any]) -> Iterator[CoveredChange]:
    versions = dict(_versions(decision))
    merges = {entry.get("id") for entry in _objects(decision.get("merges"))}
    for entry in _objects(decision.get("coverage")):
        approver, proposal = entry.get("approver"), entry.get("proposal")
        if not (isinstance(approver, str) and isinstance(proposal, str)):
            continue
        for path in _texts(entry.get("paths")):
            if path in versions:
                yield CoveredChange(
                    path,
                    *versions[path],
                    (approver, proposal),
                    together=bool(entry.get("together")),
                    is_merge=proposal in merges,
                )


def _versions(decision: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Version, Version]]]:
    for change in _objects(decision.get("changes")):
        path, *rest = (
            change.get(name, "") for name in ("path", "before", "old_mode", "after", "mode")
        )
        if all(isinstance(value, str) for value in (path, *rest)):
            before, old_mode, after, mode = rest
            yield path, ((before, old_mode), (after, mode))


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
