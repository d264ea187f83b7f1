"""The interface between sessions and a decision kernel (the docket)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

# From the weakest to the strongest; from HISTORICAL on it rests on observation.
EVIDENCE_TIERS = ("", "SIMULATED", "DERIVED", "HISTORICAL", "REAL", "EXPERIMENT")


class ItemRuling(msgspec.Struct, frozen=True):
    """The verdict on one item, and the only step that may run now, if any."""

    verdict: str
    state: str
    confidence: str
    next: str
    allowed: str  # the step that may run; empty: none
    why: str
    tier: str = ""  # the evidence that running the step would give


class EvidenceClaim(msgspec.Struct, frozen=True):
    """What a text claims about one item, so that the sender's right to do so can be checked."""

    item: str
    tier: str = ""  # the strongest evidence it claims; empty: none
    saw: tuple[str, ...] = ()  # outputs of steps it claims were run; empty: none
    judges: bool = False  # it judges or defines the item


class Ruling(msgspec.Struct, frozen=True):
    """A decided batch; `claims` are those of its text, `rules` whether the text sets rules."""

    snapshot: str
    hash: str
    items: Mapping[str, ItemRuling] = {}
    problem: str = ""  # why the batch could not be decided; empty if it could
    claims: tuple[EvidenceClaim, ...] = ()
    rules: bool = False


class Agreement(msgspec.Struct, frozen=True):
    """How far independent judgements of one item agree."""

    item: str
    kind: str
    next_action: str
    holds: bool  # they disagree so much that nothing may run


class StepResult(NamedTuple):
    """The outcome of a step: `value` is what it measured, `fault` why it could not run."""

    item: str
    step: str
    success: bool
    output: str
    value: str = ""
    fault: str = ""


class DecisionKernel(Protocol):
    """A decision kernel; deterministic, so the same text always gives the same ruling."""

    def decide(self, text: str, before: str, day: str) -> Ruling:
        """Decide a batch; `before` is the snapshot to continue from, or empty."""
        ...

    def decide_after_step(self, before: str, ran: StepResult, day: str) -> Ruling:
        """Decide again with the result of a step."""
        ...

    def compare(self, snapshots: Sequence[str]) -> tuple[tuple[Agreement, ...], str]:
        """How far independent snapshots agree, item by item, and the same as a table to read."""
        ...
