"""The rules that decide the state of an item: tried in order, the first that fixes it wins.

A rule is a function of an item and a `RuleContext`. It returns True if it fixed the state and the
verdict of the item, and no later rule sees the item then. It returns False if it does not apply;
a few rules leave a note behind in that case (a trigger, a missing source, a diagnostic), which the
later stages read, but they never undo what an earlier rule did. The order is therefore the
priority: to know why an item is where it is, find the first rule whose condition holds.

The rules run in two passes, because only some of them read other items.

First pass, `SINGLE_ITEM_RULES` (R1 to R3). Each item by itself, in the order of the batch. These
rules discard: a falsified item, an unwanted one, one that is really several decisions. What they
fix is frozen. Nothing about other items is known yet, so they must not read dependencies. The
parts of a split item are new items: they are derived and go through the same three rules before
the second pass, and dependencies on the whole become dependencies on all its parts.

Second pass, `DEPENDENCY_ORDER_RULES` (R4 to R17). Each remaining item after its dependencies, so
`decided_states` holds the state of every dependency from this run. The exception are items in a
cycle, which have no such order; R4 parks them before anything reads their dependencies. The order
within the pass has reasons:

- R5 and R6 come before everything that judges: an item that the input does not mention, or
  mentions without a valid cause, keeps its state. Without them, a repeated run would decide
  differently although nothing has changed. Behind them, a rule may assume that the item is new or
  that there is a cause to decide it again.
- R7 to R11 park what cannot proceed as it is: no source, a failed step, probes in the wrong
  context, probes that cannot give new evidence, a wait for a third party. They come before the
  verdict is looked at, because a wish to proceed does not remove an obstacle.
- R12 settles the verdict. Behind it, a rule may assume DO NOW.
- R13 and R14 put probing before acting while confidence is low. R13 comes first: a probe that
  itself needs an unresolved dependency cannot start. Behind them, an item needs no probe.
- R15 parks what has unresolved dependencies. Behind it, all dependencies are settled or waived.
- R16 closes what is finished and has the evidence that the close policy demands.
- R17 always applies, so the second pass always fixes a state.

Two things stay outside the rules. `update_hedge` runs before the second pass of an item, because
R14 depends on it. Debt, budgets and resources (`debt_and_resources`, `step_plan`) compare items
with each other, so they run after the second pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.judgement import ExternalKind
from accord.core.docket.model import Batch, DecisionItem, KernelConfig
from accord.core.docket.probes import harness_gaps, has_validated_probe, is_valid_proof
from accord.core.docket.rules import causal_references, probe_log
from accord.core.docket.rules.ratings import cost_of_delay
from accord.core.docket.steps import Step
from accord.core.docket.triggers import Trigger
from accord.core.docket.vocabulary import (
    COMPLETE_STATUSES,
    SETTLED_STATES,
    TIMEBOX_MINUTES,
    VERDICTS_OF_STATE,
    CloseIntent,
    ClosePolicy,
    ClosureTier,
    Confidence,
    ContextMatch,
    ExceptionToken,
    ItemState,
    Level,
    ProbeStatus,
    Reversibility,
    StepKind,
    StepStatus,
    Verdict,
    YesNo,
)

DO_NOW, DO_LATER = Verdict.DO_NOW, Verdict.DO_LATER


@dataclass(slots=True)
class RuleContext:
    """What the rules know apart from the item."""

    batch: Batch
    config: KernelConfig
    batch_id: str
    close_policy: ClosePolicy
    decided_states: dict[str, ItemState] = field(default_factory=dict)
    item_ids: set[str] = field(default_factory=set)

    def is_settled(self, item: str) -> bool:
        """Whether a dependency is closed or discarded."""
        return self.decided_states.get(item) in SETTLED_STATES


Rule = Callable[[DecisionItem, RuleContext], bool]


def discard_falsified(item: DecisionItem, context: RuleContext) -> bool:
    """R1: a representative probe falsified it."""
    for entry in item.probe_log:
        representative = entry.representativeness_level is Level.HIGH or (
            entry.representativeness_level is Level.MED
            and entry.target_driver == item.critical_driver
        )
        if (
            entry.status is ProbeStatus.FALSIFIED
            and entry.context_match is ContextMatch.YES
            and representative
        ):
            item.fix_state(ItemState.DISCARDED, Verdict.DISCARD, Trigger.FALSIFICATION)
            return True
    return False


def discard_proposed(item: DecisionItem, context: RuleContext) -> bool:
    """R2: its judgement proposes to discard it."""
    if item.judgement.proposed_verdict is Verdict.DISCARD:
        item.fix_state(ItemState.DISCARDED, Verdict.DISCARD)
        return True
    return False


def split_drivers(item: DecisionItem, context: RuleContext) -> bool:
    """R3: it consists of several independent decisions and is split into them."""
    parts = item.judgement.split or ()
    drivers = causal_references.independent_drivers(item.judgement)
    if len(parts) >= 2 or (parts and drivers):
        item.fix_state(ItemState.DISCARDED, Verdict.DISCARD, Trigger.MULTI_CRITICAL_DRIVER_SPLIT)
        return True
    if drivers:
        context.batch.add_diagnostic(
            Diagnostic("SPLIT_ADVISED", item.id, ", ".join(drivers), item.input.line)
        )
    return False


def park_circular(item: DecisionItem, context: RuleContext) -> bool:
    """R4: it is part of a dependency cycle."""
    if item.cycle_dependency:
        item.park(Trigger.CIRCULAR_DEPENDENCY)
    return bool(item.cycle_dependency)


def hold_unaddressed(item: DecisionItem, context: RuleContext) -> bool:
    """R5: the input does not mention it and nothing changed, so it keeps its state."""
    prev = item.prev
    if (
        prev is None
        or not causal_references.is_ongoing(item)
        or item.input.is_addressed
        or causal_references.has_kernel_change(item)
    ):
        return False
    (verdict,) = VERDICTS_OF_STATE[prev.state]
    item.fix_state(prev.state, verdict, prev.trigger)
    item.held, item.hedge_active, item.falsification_debt = (
        True,
        prev.hedge_active,
        prev.falsification_debt,
    )
    return True


def reject_invalid_delta(item: DecisionItem, context: RuleContext) -> bool:
    """R6: the input about it contains nothing that may change a decision."""
    prev = item.prev
    if (
        prev is None
        or not causal_references.is_ongoing(item)
        or causal_references.has_causal_reference(item)
    ):
        return False
    (verdict,) = VERDICTS_OF_STATE[prev.state]
    item.fix_state(prev.state, verdict, Trigger.INVALID_DELTA)
    return True


def park_missing_source(item: DecisionItem, context: RuleContext) -> bool:
    """R7: its source is missing and cannot be acquired."""
    missing = item.judgement.missing_source
    if item.input.parsed_ok and missing is None:
        return False
    what = item.input.obtainable_source
    if missing:
        acquirable = missing.identifiable is YesNo.YES and missing.acquirable is YesNo.YES
        what = (missing.what or item.id) if acquirable else ""
    if what:
        item.missing_source = what
        item.candidates += [(Trigger.MISSING_SOURCE_INPUT, state) for state in ItemState]
        return False
    item.missing_source = "?"
    item.park(Trigger.MISSING_SOURCE_INPUT)
    return True


TRIGGER_OF_EXCEPTION: dict[str, Trigger] = {
    ExceptionToken.IO: Trigger.BLOCKED_EXTERNAL,
    ExceptionToken.TIMEOUT: Trigger.BLOCKED_EXTERNAL,
    ExceptionToken.AUTH: Trigger.BLOCKED_EXTERNAL,
    ExceptionToken.DEPENDENCY: Trigger.DEPENDENCY_BLOCK,
    ExceptionToken.INVARIANT: Trigger.REDESIGN_TRIGGER,
}
TRIGGER_OF_FAILED_KIND: dict[StepKind, Trigger] = {
    StepKind.ACQUIRE: Trigger.EXTERNAL_DATA_REQUIRED,
    StepKind.SOURCE_ACQUIRE: Trigger.MISSING_SOURCE_INPUT,
    StepKind.DEP_RESOLVE: Trigger.DEPENDENCY_BLOCK,
}


def park_failed_step(item: DecisionItem, context: RuleContext) -> bool:
    """R8: one of its steps failed."""
    for failed, step in item.failures:
        trigger = _failure_trigger(failed)
        item.park(trigger)
        retryable = trigger is not Trigger.REDESIGN_TRIGGER
        if retryable or failed.kind is StepKind.MITIGATE:
            item.retry_steps.append(step)
        item.needs_rework |= not retryable
    return bool(item.failures)


def _failure_trigger(step: Step) -> Trigger:
    if step.status is StepStatus.FAILED_EXCEPTION:
        return TRIGGER_OF_EXCEPTION[step.output]
    return TRIGGER_OF_FAILED_KIND.get(step.kind, Trigger.REDESIGN_TRIGGER)


def handle_probe_stall(item: DecisionItem, context: RuleContext) -> bool:
    """R9: two probes in a row ran in the wrong context."""
    if not causal_references.is_probe_stalled(item):
        return False
    item.probe_stalled = True
    if item.judgement.redesignable is YesNo.NO:
        item.park(Trigger.PROBE_STALL_CONTEXT_MATCH)
    else:
        item.fix_state(ItemState.PROBING, DO_NOW, Trigger.PROBE_STALL_CONTEXT_MATCH)
    return True


def require_probe_redesign(item: DecisionItem, context: RuleContext) -> bool:
    """R10: repeating its probe cannot give new evidence, and the probe cannot be redesigned."""
    if not causal_references.needs_redesign(item):
        return False
    item.needs_probe_redesign = True
    if item.judgement.redesignable is YesNo.NO:
        item.park(Trigger.REDESIGN_TRIGGER)
        return True
    item.note_trigger(Trigger.REDESIGN_TRIGGER)
    return False


def park_external(item: DecisionItem, context: RuleContext) -> bool:
    """R11: it waits for a third party, or it has no judgement yet."""
    external = item.judgement.external
    if external and external.internal_probe is not YesNo.YES:
        item.external_request = external.ask or f"evidence for {item.critical_driver}"
        blocked = external.kind is not ExternalKind.DATA_REQUIRED
        item.park(Trigger.BLOCKED_EXTERNAL if blocked else Trigger.EXTERNAL_DATA_REQUIRED)
    elif (
        item.prev is None and not item.judgement.binding and item.judgement.proposed_verdict is None
    ):
        item.park(Trigger.EXTERNAL_DATA_REQUIRED)
    else:
        return False
    _note_dependency_block(item)
    return True


def _note_dependency_block(item: DecisionItem) -> None:
    if item.blocking_dependencies:
        item.park(Trigger.DEPENDENCY_BLOCK)


def park_do_later(item: DecisionItem, context: RuleContext) -> bool:
    """R12: its verdict is DO LATER."""
    item.verdict = _wanted_verdict(item)
    if item.verdict is DO_LATER:
        item.park()
        _note_dependency_block(item)
    return item.verdict is DO_LATER


def _wanted_verdict(item: DecisionItem) -> Verdict:
    """The proposed verdict, else the previous one, else the one that follows from the score."""
    if item.judgement.proposed_verdict:
        return item.judgement.proposed_verdict
    prev = item.prev
    if prev and not item.reopened and not item.revived:
        imposed = prev.trigger not in (Trigger.NONE, Trigger.SCORE_TRIAGE)
        (verdict,) = VERDICTS_OF_STATE[prev.state]
        return DO_NOW if prev.state is ItemState.STANDBY and imposed else verdict
    item.note_trigger(Trigger.SCORE_TRIAGE)
    return DO_NOW if item.impact is not Level.LOW and not item.missing_ratings else DO_LATER


def mitigation_due(item: DecisionItem) -> bool:
    """Whether harm must be contained first, because an item that was executed is open again."""
    real = item.prev is not None and item.prev.closure_tier is not ClosureTier.SIM
    return (item.reopened and real) or item.mitigation_pending


def needs_probe(item: DecisionItem) -> bool:
    """Whether confidence is too low to act without a probe."""
    unsure = item.confidence <= Confidence.LOW and not item.waived
    validated = has_validated_probe(item.critical_driver_entries)
    unpredictable = (
        item.domain_type.is_unpredictable and item.confidence <= Confidence.MED and not validated
    )
    return (
        unsure
        or unpredictable
        or causal_references.is_fragile_unresolved(item)
        or item.hedge_active
    )


def park_unprobeable(item: DecisionItem, context: RuleContext) -> bool:
    """R13: it needs a probe, and the probe depends on something unresolved."""
    if not item.blocking_dependencies or not needs_probe(item):
        return False
    probe = probe_log.candidate_probe(item)
    report = item.judgement.probe
    needs = set((report and report.requires) or ()) & set(item.blocking_dependencies)
    independent = not needs or item.judgement.independent_probe is YesNo.YES
    if probe and independent:
        return False
    item.designed_probe = None
    probe_log.update_counters(item)
    if mitigation_due(item):
        item.fix_state(ItemState.ACTIVE, DO_NOW, Trigger.DEPENDENCY_BLOCK)
    else:
        item.park(Trigger.DEPENDENCY_BLOCK)
    return True


def has_valid_harness(item: DecisionItem, context: RuleContext) -> bool:
    """Whether the item has a probe that could falsify it."""
    if item.designed_probe:
        return item.harness_valid
    probe = probe_log.candidate_probe(item)
    return probe is not None and not harness_gaps(probe, item.critical_driver, context.batch_id)


def start_probing(item: DecisionItem, context: RuleContext) -> bool:
    """R14: confidence is too low to act, so it is probed first."""
    if not needs_probe(item):
        return False
    fragile = causal_references.is_fragile_unresolved(item)
    item.fix_state(ItemState.PROBING, DO_NOW, Trigger.FRAGILITY if fragile else None)
    if not has_valid_harness(item, context):
        item.note_trigger(Trigger.REDESIGN_TRIGGER)
    if item.blocking_dependencies:
        item.note_trigger(Trigger.DEPENDENCY_BLOCK)
    return True


def park_blocked(item: DecisionItem, context: RuleContext) -> bool:
    """R15: it has unresolved dependencies."""
    if not item.blocking_dependencies:
        return False
    resolving = any(step.is_pending and step.kind is StepKind.DEP_RESOLVE for step in item.steps)
    if mitigation_due(item) or resolving:
        item.fix_state(ItemState.ACTIVE, DO_NOW, Trigger.DEPENDENCY_BLOCK)
    else:
        item.park(Trigger.DEPENDENCY_BLOCK)
    return True


def try_close(item: DecisionItem, context: RuleContext) -> bool:
    """R16: it is finished, and the evidence satisfies the close policy."""
    if not _wants_to_close(item):
        return False
    proof = bool(item.input.evidence)
    minutes = sum(step.minutes for step in item.steps)
    important = item.impact is not Level.LOW
    strict = context.close_policy is ClosePolicy.REAL_ONLY or item.is_irreversible
    if important and (item.missing_ratings or minutes > TIMEBOX_MINUTES[item.impact]):
        why = "MISSING_RATINGS" if item.missing_ratings else "TIMEBOX"
        context.batch.add_diagnostic(Diagnostic("CLOSE_BLOCKED", item.id, why, item.input.line))
        return False
    if strict and not proof:
        item.park(Trigger.CLOSE_BLOCKED_REAL_ONLY)
    else:
        item.fix_state(ItemState.CLOSED, DO_NOW)
        item.closure_tier = ClosureTier.REAL if proof else ClosureTier.SIM
    return True


def _wants_to_close(item: DecisionItem) -> bool:
    intent = item.judgement.close_intent or CloseIntent.AUTO
    finished = bool(item.steps) and all(step.status in COMPLETE_STATUSES for step in item.steps)
    validated = _has_two_validated_probes(item)
    auto = intent is CloseIntent.AUTO and (finished or validated) and not mitigation_due(item)
    return intent is CloseIntent.YES or auto


def _has_two_validated_probes(item: DecisionItem) -> bool:
    """Two probes validated it; in unpredictable domains at least one of them with real evidence."""
    proofs = [entry for entry in item.critical_driver_entries if is_valid_proof(entry)]
    real = any(
        not entry.evidence_tier.is_weak and entry.evidence_tier != "HISTORICAL" for entry in proofs
    )
    return len({entry.probe_id for entry in proofs}) >= 2 and (
        real or not item.domain_type.is_unpredictable
    )


def activate(item: DecisionItem, context: RuleContext) -> bool:
    """R17: nothing blocks it, so it runs."""
    item.fix_state(ItemState.ACTIVE, DO_NOW)
    return True


def update_hedge(item: DecisionItem, context: RuleContext) -> None:
    """Set whether the item may start while it is still probing."""
    request = item.judgement.hedge
    if request is None:
        over = any(
            entry.status in (ProbeStatus.VALIDATED, ProbeStatus.FALSIFIED)
            for entry in item.critical_driver_entries
        )
        item.hedge_active = item.hedge_active and not over
        return
    reversible = item.reversibility in (Reversibility.REVERSIBLE, Reversibility.COSTLY_REVERSIBLE)
    item.hedge_active = (
        cost_of_delay(item) is Level.HIGH
        and request.window_exceeded is YesNo.YES
        and bool(request.risk_cap)
        and (reversible or request.risk_contained is YesNo.YES)
        and item.harness_valid
    )
    if not item.hedge_active:
        context.batch.add_diagnostic(Diagnostic("HEDGE_DENIED", item.id, line=item.input.line))


# First pass, each item by itself; then second pass, in the order of dependencies.
SINGLE_ITEM_RULES: tuple[Rule, ...] = (discard_falsified, discard_proposed, split_drivers)
DEPENDENCY_ORDER_RULES: tuple[Rule, ...] = (
    *(
        park_circular,
        hold_unaddressed,
        reject_invalid_delta,
        park_missing_source,
        park_failed_step,
        handle_probe_stall,
        require_probe_redesign,
        park_external,
    ),
    *(park_do_later, park_unprobeable, start_probing, park_blocked, try_close, activate),
)
