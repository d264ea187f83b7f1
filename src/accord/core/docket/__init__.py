"""Decisions by rule: judgements in, one verdict and one next step for each item out.

After PA_PVP by XxYouDeaDPunKxX (CC BY-SA 4.0): its words and numbers, none of its sentences.
"""

from collections.abc import Iterable
from dataclasses import replace

from accord.core.docket import check as _check
from accord.core.docket import convergence, emit, executor, pipeline, snapshot
from accord.core.docket.convergence import Peer
from accord.core.docket.diags import Diag
from accord.core.docket.executor import Answer
from accord.core.docket.grammar import parse
from accord.core.docket.model import Batch, Config, Input, Ledger, Outcome
from accord.core.docket.snapshot import Snapshot
from accord.core.docket.words import Policy

__all__ = [
    "Answer",
    "Batch",
    "Config",
    "Input",
    "Ledger",
    "Outcome",
    "Peer",
    "Policy",
    "allow",
    "converge",
    "parse",
    "run",
    "snapshot_hash",
    "snapshot_of",
]


def run(batch: Batch, config: Config | None = None) -> Outcome:
    """Decide a batch. An outcome that breaks a rule of its own is marked invalid, never used."""
    outcome = pipeline.run(batch, config)
    if not outcome.valid:
        return outcome
    found = _check.check(snapshot_of(outcome), [each.id for each in outcome.items])
    if found.flaws:
        flaw = found.flaws[0]
        outcome.diags.append(Diag("SELF_CHECK", flaw.item, f"{flaw.code} {flaw.detail}"))
        return replace(outcome, invalid="OTHER")
    return outcome


def snapshot_of(outcome: Outcome) -> Snapshot:
    """The outcome as whoever reads its text sees it."""
    return snapshot.parse(emit.block(outcome).rstrip("\n").split("\n"))


def snapshot_hash(outcome: Outcome) -> str:
    """What stands for the outcome in a log: SHA-256 over its block."""
    return emit.snapshot_hash(outcome)


def allow(outcome: Outcome | Snapshot, item_id: str, token: str) -> Answer:
    """Whether the next step of an item, named by its output, may be run now; guarded."""
    snap = snapshot_of(outcome) if isinstance(outcome, Outcome) else outcome
    return executor.allow(snap, item_id, token, Policy.GUARDED)


def converge(outcomes: Iterable[Outcome | Snapshot]) -> list[Peer]:
    """How far several outcomes agree; guarded: hosts that disagree execute nothing."""
    snaps = [snapshot_of(each) if isinstance(each, Outcome) else each for each in outcomes]
    return convergence.compare(snaps, Policy.GUARDED)
