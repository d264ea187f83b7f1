"""Decisions by rule: judgements in, one verdict and one next step for each item out.

After PA_PVP by XxYouDeaDPunKxX (CC BY-SA 4.0): its words and numbers, none of its sentences.
"""

from dataclasses import replace

from accord.core.docket import pipeline
from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.model import Batch, DecisionOutcome, KernelConfig
from accord.core.docket.parsing.batch_parser import parse_batch
from accord.core.docket.rendering.snapshot_writer import snapshot_hash
from accord.core.docket.snapshot import snapshot_of
from accord.core.docket.validation.snapshot_check import check_decisions
from accord.core.docket.vocabulary import KernelPolicy

__all__ = [
    "Batch",
    "DecisionOutcome",
    "KernelConfig",
    "KernelPolicy",
    "parse_batch",
    "run",
    "snapshot_hash",
    "snapshot_of",
]


def run(batch: Batch, config: KernelConfig | None = None) -> DecisionOutcome:
    """Decide a batch. An outcome that fails its self-check is marked invalid."""
    outcome = pipeline.run_pipeline(batch, config)
    flaw = next(check_decisions(snapshot_of(outcome)), None) if outcome.is_valid else None
    if flaw is None:
        return outcome
    outcome.diagnostics.append(Diagnostic("SELF_CHECK", flaw.item, f"{flaw.code} {flaw.detail}"))
    return replace(outcome, invalid_reason="OTHER")
