"""The input of an item, merged with its previous state: values, steps and their results."""

from accord.core.docket import steps
from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.model import Batch, DecisionItem
from accord.core.docket.text_values import normalize_driver
from accord.core.docket.vocabulary import (
    MISSING_INFO,
    Dimension,
    ExceptionToken,
    ExecCapability,
    ItemMode,
    Profile,
    StepKind,
    YesNo,
)


def merge_previous(item: DecisionItem) -> None:
    """Set each value from the input, else from the previous state, else to its default."""
    inp, prev, judge = item.input, item.prev, item.judgement
    item.title = inp.title or judge.title or (prev and prev.title) or item.id
    item.mode = inp.mode or (prev and prev.mode) or ItemMode.PLAN
    item.profile = judge.profile or inp.profile or (prev and prev.profile) or Profile.FULL
    known = judge.domain_type or (prev and prev.domain_type)
    item.domain_type, item.domain_known = known or item.domain_type, known is not None
    contested = judge.contested
    item.contested = bool(prev and prev.contested) if contested is None else contested == YesNo.YES
    _merge_lists(item)
    named = normalize_driver(judge.critical_driver or "")
    item.critical_driver = named or (prev and prev.critical_driver) or MISSING_INFO
    item.why = judge.why or (prev.why if prev else "-")
    item.dominant_tradeoff = judge.dominant_tradeoff or (prev.dominant_tradeoff if prev else "-")
    item.next_uncertainty = judge.next_uncertainty or (prev.next_uncertainty if prev else "-")
    item.fail_fast_count = prev.fail_fast_count if prev else 0
    item.hedge_active = bool(prev and prev.hedge_active)


def _merge_lists(item: DecisionItem) -> None:
    inp, prev = item.input, item.prev
    before = prev.depends_on if prev else ()
    item.depends_on = before if inp.depends_on is None else inp.depends_on
    item.uses = (prev.uses if prev else {}) if inp.uses is None else inp.uses
    item.reversibility = inp.reversibility or (prev.reversibility if prev else None)
    if prev:
        item.split_into = prev.split_into
        item.input.split_from = inp.split_from or prev.split_from


def set_urgency(item: DecisionItem) -> None:
    """Set the urgency from the input, the previous state, or the cost of delay."""
    rated = item.binding.get(Dimension.COST_OF_DELAY) if item.has_new_ratings else None
    fallback = rated.rating if rated and item.judgement.binding else item.urgency
    item.urgency = item.judgement.urgency or (item.prev and item.prev.urgency) or fallback


def waived_dependencies(item: DecisionItem) -> tuple[str, ...]:
    """Dependencies that the input or the plan waives."""
    prev = item.prev
    named = [
        *item.input.waived_dependencies,
        *(item.judgement.waive or ()),
        *steps.WAIVER_PATTERN.findall(item.input.plan or ""),
    ]
    if prev:
        named += [*prev.waived, *steps.dependencies_waived_by(prev.steps)]
    # The id may be followed by the full stop of a sentence.
    asked = {*named, *(each.rstrip(".") for each in named)}
    return tuple(each for each in item.depends_on if each in asked)


def take_steps(item: DecisionItem, batch: Batch) -> None:
    """Set the steps to continue with, and apply the results of those that were run."""
    kept = item.prev and not item.reopened and not item.revived
    base = list(item.prev.steps) if item.prev and kept else []
    if item.frozen:
        item.steps = base
        return
    proposed = _proposed_steps(item, batch)
    if base:
        base = _apply_results(item, base, batch)
    again = bool(item.prev and item.prev.reopen_total)
    item.mitigation_pending = again and any(
        each.is_pending and each.kind is StepKind.MITIGATE for each in base
    )
    done = [step for step in base if not step.is_pending]
    if proposed is None:
        item.steps = [
            step for step in base if not step.is_pending or not steps.is_kernel_step(step)
        ]
    else:
        item.steps = [*done, *proposed]
    if not base:
        item.steps = _apply_results(item, item.steps, batch)


def _proposed_steps(item: DecisionItem, batch: Batch) -> list[steps.Step] | None:
    if item.judgement.steps is None:
        return None
    good: list[steps.Step] = []
    for place, asked in enumerate(item.judgement.steps, 1):
        step, remarks = steps.accept_proposed(asked)
        text = asked if isinstance(asked, str) else asked.text or ""
        for code in remarks:
            batch.add_diagnostic(
                Diagnostic(code, item.id, f"step {place}: {text}", item.input.line)
            )
        if step:
            good.append(step)
    return good


def _apply_results(item: DecisionItem, base: list[steps.Step], batch: Batch) -> list[steps.Step]:
    made = list(base)
    for each in item.input.results:
        at = steps.number_in(each.step or "") - 1
        if not 0 <= at < len(made) or not made[at].is_pending or each.status is None:
            batch.add_diagnostic(
                Diagnostic("RESULT_NO_STEP", item.id, each.step or "", item.input.line)
            )
            continue
        before = made[at]
        made[at] = steps.with_result(
            before,
            each.status,
            each.evidence_tier,
            each.result or "",
            exception=ExceptionToken.parse(each.token),
            executed=batch.header.exec_capability is ExecCapability.RUNTIME_OK,
        )
        item.has_step_result = True
        if made[at].has_failed:
            item.failures.append((made[at], before))
    return made
