"""The executor's contract: which step may run now."""

from collections.abc import Iterator
from typing import NamedTuple

from accord.core.docket.snapshot import DecisionSnapshot
from accord.core.docket.triggers import DominantGate
from accord.core.docket.vocabulary import (
    RUNNING_STATES,
    SETTLED_STATES,
    ItemState,
    KernelPolicy,
    StepKind,
    Verdict,
)

BLOCKING_GATES = frozenset(
    {
        DominantGate.FALSIFICATION,
        DominantGate.FAIL_FAST_CUT,
        DominantGate.DEBT_CEILING,
        DominantGate.EXTERNAL_BLOCK,
    }
)
# Steps that may run although a dependency is unresolved.
KINDS_BEFORE_DEPENDENCIES = frozenset(
    {StepKind.MITIGATE, StepKind.PROBE, StepKind.ACQUIRE, StepKind.DEP_RESOLVE, StepKind.DEP_WAIVE}
)
# Steps that may run while the item is probing; under a guarded policy no others.
KINDS_WHILE_PROBING = KINDS_BEFORE_DEPENDENCIES | {
    StepKind.HARNESS_REDESIGN,
    StepKind.SOURCE_ACQUIRE,
    StepKind.PLAN_REDESIGN,
    StepKind.CAUSAL,
}


class ExecutionPermit(NamedTuple):
    """Whether a step may run, and why."""

    allowed: bool
    reason: str


def _deny(why: str) -> ExecutionPermit:
    return ExecutionPermit(allowed=False, reason=why)


def allow_step(
    snap: DecisionSnapshot, item: str, token: str, policy: KernelPolicy = KernelPolicy.UPSTREAM
) -> ExecutionPermit:
    """Whether the next step of an item, named by its output, may run now."""
    row, it = snap.row_by_id.get(item), snap.items.get(item)
    if not snap.is_usable:
        return _deny("The snapshot is not valid, so nothing in it may be run.")
    if row is None or it is None:
        return _deny(f"There is no item {item} in this snapshot.")
    step = it.next_step
    doing = step.output if step else "nothing"
    trigger = it.trigger
    state, verdict, gate = (
        ItemState.parse(row.state),
        Verdict.parse(row.verdict),
        DominantGate.parse(row.gate),
    )
    closed = state not in RUNNING_STATES or verdict is not Verdict.DO_NOW
    if step is None or closed:
        return _deny(f"{item} is {row.state} ({row.verdict}), trigger {trigger}.")
    if gate is None or gate in BLOCKING_GATES:
        return _deny(f"{item} is behind {row.gate} (trigger {trigger}); next: {doing}.")
    if token.strip() != step.output:
        return _deny(f"The next step of {item} is {doing}, not {token.strip()}.")
    waived = set(it.waived)
    waits = [each for each in _unsettled_dependencies(snap, item) if each not in waived]
    if waits and step.kind not in KINDS_BEFORE_DEPENDENCIES:
        return _deny(f"{item} waits for {', '.join(waits)} first.")
    if (
        policy.overrides.probing_runs_probes_only
        and state is ItemState.PROBING
        and step.kind not in KINDS_WHILE_PROBING
    ):
        return _deny(f"{item} is still being probed, and {doing} is not a probe.")
    return ExecutionPermit(
        allowed=True, reason=f"{item} is {row.state}, and {doing} is its next step."
    )


def _unsettled_dependencies(snap: DecisionSnapshot, item: str) -> Iterator[str]:
    for name in snap.items[item].depends_on:
        other = snap.items.get(name)
        if other is None or other.state not in SETTLED_STATES:
            yield name
