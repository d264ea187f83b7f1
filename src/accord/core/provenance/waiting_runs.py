"""Runs that no commit contains yet, so that a later one is recorded with them.

Two approved writes are often committed one after the other. The first commit takes the range of the
session; what it leaves behind waits here, call by call and path by path, until a commit of this
repository contains it, or so many commits have passed that it was probably given up.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from accord.core.provenance.decision_commit import DecisionCommit, ToolExecution

# Stands for a call whose paths in this work tree are unknown, such as a commit of another tree.
ENTIRE_CALL = "."
MAX_COMMITS = 20
MAX_DISTANCE = 5000  # in `seq`: what is read again for each commit
MAX_PARTS = 500


class WaitingRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that some commit did not contain, or not wholly.

    `since` is where the range begins in which it was let run. `places` has, for each of its paths,
    the decision whose commit contains it; empty while it waits.
    """

    id: str
    since: int
    places: Mapping[str, str] = {}
    commits: int = 0  # made since

    @property
    def parts(self) -> tuple[str, ...]:
        """What still waits."""
        return tuple(sorted(path for path, decision in self.places.items() if not decision))


class CarriedRun(NamedTuple):
    """A run of an earlier range that the next commit may contain, with the paths that wait."""

    id: str
    since: int
    parts: tuple[str, ...] = ()


def waiting_after(
    runs: Sequence[WaitingRun], decision: DecisionCommit, *, is_new: bool
) -> tuple[WaitingRun, ...]:
    """What waits after a commit; not `is_new`: one that names its decision again."""
    known = {run.id: replace(run, commits=run.commits + 1) if is_new else run for run in runs}
    for tool in decision.tool_executions:
        if tool.uncommitted or tool.id in known:
            before = known.pop(tool.id, None) or WaitingRun(tool.id, _since(tool, decision))
            known[tool.id] = replace(before, places=_places(before.places, tool, decision.id))
    return tuple(_within_limits(known.values()))


def _since(tool: ToolExecution, decision: DecisionCommit) -> int:
    return decision.since if tool.since is None else tool.since


def _places(before: Mapping[str, str], tool: ToolExecution, decision: str) -> dict[str, str]:
    """Where the parts of a call are; what another decision's commit contains stays there."""
    places = dict(before)
    for part in {*tool.paths, *tool.uncommitted, *({ENTIRE_CALL} & before.keys())}:
        if part not in tool.uncommitted:
            places[part] = decision
        elif places.get(part, "") in ("", decision):
            places[part] = ""
    return places


def _within_limits(runs: Iterable[WaitingRun]) -> Iterator[WaitingRun]:
    """Without the runs that waited for too long and, of too many, without the oldest."""
    recent = [run for run in runs if run.commits < MAX_COMMITS]
    left = MAX_PARTS
    kept: list[WaitingRun] = []
    for run in reversed(recent):
        left -= len(run.places)
        if left >= 0:
            kept.append(run)
    return reversed(kept)


def carried_runs(runs: Iterable[WaitingRun], until: int) -> tuple[CarriedRun, ...]:
    """Those that the next commit may contain, if the last one was linked up to this `seq`."""
    return tuple(
        CarriedRun(run.id, run.since, run.parts)
        for run in runs
        if run.parts and until - run.since <= MAX_DISTANCE
    )
