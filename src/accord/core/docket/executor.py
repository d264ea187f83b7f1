"""Whether a step may be run now; and which settled items deserve one more look."""

from collections.abc import Iterator
from typing import NamedTuple

from accord.core.docket.snapshot import Snapshot
from accord.core.docket.steps import Step, made
from accord.core.docket.words import (
    RUNNING,
    SETTLED,
    Confidence,
    Gate,
    Kind,
    Policy,
    State,
    Verdict,
)

SHUT = frozenset({Gate.FALSIFICATION, Gate.FAIL_FAST_CUT, Gate.DEBT_CEILING, Gate.EXTERNAL_BLOCK})
# What may be done although something else should come first.
EARLY = frozenset({Kind.MITIGATE, Kind.PROBE, Kind.ACQUIRE, Kind.DEP_RESOLVE, Kind.DEP_WAIVE})
# What may be done while it is still being tried; under GUARDED nothing else.
TRIALS = EARLY | {Kind.HARNESS_REDESIGN, Kind.SOURCE_ACQUIRE, Kind.PLAN_REDESIGN, Kind.CAUSAL}


class Answer(NamedTuple):
    """Yes or no, and why."""

    allowed: bool
    why: str


def _no(why: str) -> Answer:
    return Answer(allowed=False, why=why)


def allow(snap: Snapshot, item: str, token: str, policy: Policy = Policy.UPSTREAM) -> Answer:
    """Whether the next step of an item, named by its output, may be run now."""
    row, it = snap.row(item), snap.items.get(item)
    if not snap.usable:
        return _no("The snapshot is not valid, so nothing in it may be run.")
    if row is None or it is None:
        return _no(f"There is no item {item} in this snapshot.")
    step = it.next
    doing = step.output if step else "nothing"
    trigger = it.trigger
    state, verdict, gate = State.read(row.state), Verdict.read(row.verdict), Gate.read(row.gate)
    closed = state not in RUNNING or verdict is not Verdict.DO_NOW
    if step is None or closed:
        return _no(f"{item} is {row.state} ({row.verdict}), trigger {trigger}.")
    if gate is None or gate in SHUT:
        return _no(f"{item} is behind {row.gate} (trigger {trigger}); next: {doing}.")
    if token.strip() != step.output:
        return _no(f"The next step of {item} is {doing}, not {token.strip()}.")
    waived = set(it.waived)
    waits = [each for each in _unsettled(snap, item) if each not in waived]
    if waits and step.kind not in EARLY:
        return _no(f"{item} waits for {', '.join(waits)} first.")
    if policy is Policy.GUARDED and state is State.PROBING and step.kind not in TRIALS:
        return _no(f"{item} is still being probed, and {doing} is no probe.")
    return Answer(allowed=True, why=f"{item} is {row.state}, and {doing} is its next step.")


def _unsettled(snap: Snapshot, item: str) -> Iterator[str]:
    for name in snap.items[item].depends_on:
        other = snap.items.get(name)
        if other is None or other.state not in SETTLED:
            yield name


class Look(NamedTuple):
    """What to do about a shaky item."""

    id: str
    action: str
    step: Step | None


def looks(snap: Snapshot) -> Iterator[Look]:
    """For each shaky item either one probe or nothing; it never reopens by itself."""
    for name, it in snap.items.items():
        low = it.confidence is not None and it.confidence <= Confidence.LOW
        if not (it.contested or it.debt != "NONE" or it.missing_ratings or low):
            continue
        if it.state is State.CLOSED and it.reopened == 0:
            step = made("second", driver=it.critical or name)
            yield Look(name, "PROPOSE_PROBE", step)
        else:
            yield Look(name, "NO_ACTION", None)
