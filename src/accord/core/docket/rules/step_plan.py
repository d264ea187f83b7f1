"""The steps of an item: the required ones in a fixed order, then the proposed ones."""

from collections.abc import Callable
from typing import NamedTuple

from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.model import DecisionItem, complexity_tax
from accord.core.docket.rules import probe_log, state_rules
from accord.core.docket.rules.state_rules import RuleContext
from accord.core.docket.steps import Step, kernel_step
from accord.core.docket.triggers import Trigger
from accord.core.docket.vocabulary import (
    MAX_COMPLEXITY_TAX,
    MAX_STEPS,
    MISSING_INFO,
    RUNNING_STATES,
    TERMINAL_STATES,
    TIMEBOX_MINUTES,
    ItemState,
    Level,
    StepKind,
)


class RequiredStep(NamedTuple):
    """A step that an item must have: its template, which kinds satisfy it, and when it applies."""

    priority: str
    template: str
    kinds: frozenset[StepKind]
    applies: Callable[[DecisionItem, RuleContext], bool]


def _has_candidate(item: DecisionItem, trigger: Trigger) -> bool:
    return any(each == trigger for each, _ in item.candidates)


def _probing(item: DecisionItem) -> bool:
    return item.state is ItemState.PROBING


def _needs_new_harness(item: DecisionItem, world: RuleContext) -> bool:
    return (
        not state_rules.has_valid_harness(item, world)
        or item.probe_stalled
        or item.needs_probe_redesign
    )


def fill_template(name: str, item: DecisionItem) -> Step:
    """The kernel's step of that name for an item."""
    if name == "measure" and item.critical_driver == MISSING_INFO:
        name = "ratings"
    probe = probe_log.candidate_probe(item)
    waiver = name in ("waive", "measure")
    first = item.waived if waiver else item.blocking_dependencies
    return kernel_step(
        name,
        id=item.id,
        dep=(name != "measure" and item.cycle_dependency) or (*first, "-")[0],
        driver=item.critical_driver,
        probe=probe.probe_id if probe else "-",
        condition=probe.kill_switch_condition if probe else "-",
        ask=item.external_request,
        rid=item.waits_for_resource,
        what=item.missing_source,
        holder=item.debt_holder,
    )


def _kinds(*kinds: StepKind) -> frozenset[StepKind]:
    return frozenset(kinds)


K = StepKind
REDESIGN_KINDS = _kinds(K.PLAN_REDESIGN, K.SPLIT)
PROBE_KINDS = _kinds(K.PROBE, K.ACQUIRE)
HARNESS_KINDS = _kinds(K.HARNESS_REDESIGN)
RETRY = "P4b"

# In order of priority; a step of lower priority comes later but is not dropped.
REQUIRED_STEPS: tuple[RequiredStep, ...] = (
    RequiredStep("P1", "mitigate", _kinds(K.MITIGATE), lambda i, _: state_rules.mitigation_due(i)),
    RequiredStep("P2", "cycle", _kinds(K.CYCLE_BREAK, K.SPLIT, K.DEP_WAIVE),
        lambda i, _: _has_candidate(i, Trigger.CIRCULAR_DEPENDENCY) and bool(i.cycle_dependency)),
    RequiredStep("P2b", "causal", _kinds(K.CAUSAL),
        lambda i, _: _has_candidate(i, Trigger.INVALID_DELTA) and not i.held and not _probing(i)),
    RequiredStep("P3", "harness", HARNESS_KINDS,
        lambda i, w: _probing(i) and _needs_new_harness(i, w)),
    RequiredStep("P3", "probe", PROBE_KINDS,
        lambda i, w: _probing(i) and not _needs_new_harness(i, w)),
    RequiredStep("P4a", "waive", _kinds(K.DEP_WAIVE), lambda i, _: bool(i.waived)),
    RequiredStep("P4a'", "measure", PROBE_KINDS,
        lambda i, _: bool(i.waived) and i.impact is not Level.LOW and not _probing(i)),
    RequiredStep(RETRY, "", _kinds(), lambda i, _: bool(i.retry_steps)),
    RequiredStep("P4c", "evidence", _kinds(K.ACQUIRE),
        lambda i, _: _has_candidate(i, Trigger.CLOSE_BLOCKED_REAL_ONLY) and not i.held),
    RequiredStep("P4d", "external", _kinds(K.ACQUIRE), lambda i, _: bool(i.external_request)),
    RequiredStep("P4e", "name", _kinds(), lambda i, _: i.missing_source == "?"),
    RequiredStep("P4f", "resolve", _kinds(K.DEP_RESOLVE),
        lambda i, _: bool(i.blocking_dependencies) and not i.cycle_dependency),
    RequiredStep("P4g", "wait", _kinds(K.RESOURCE_WAIT), lambda i, _: bool(i.waits_for_resource)),
    RequiredStep("P4h", "source", _kinds(K.SOURCE_ACQUIRE),
        lambda i, _: i.missing_source not in ("", "?")),
    RequiredStep("P5", "cut", REDESIGN_KINDS, lambda i, _: i.over_budget),
    RequiredStep("P5b", "rework", REDESIGN_KINDS, lambda i, _: i.needs_rework),
    RequiredStep("P5c", "write", _kinds(K.PLAN_REDESIGN), lambda i, _: i.lacks_executable_step),
    RequiredStep("P6", "harness", HARNESS_KINDS,
        lambda i, _: i.needs_probe_redesign and not _probing(i)),
    RequiredStep("P7", "second", _kinds(K.SECOND_CHECK),
        lambda i, _: i.counters.nmd >= 1 and i.impact is not Level.LOW),
    RequiredStep("P8", "debt", REDESIGN_KINDS | {K.DEBT_SLOT}, lambda i, _: bool(i.debt_holder)),
    RequiredStep("P9", "ratings", _kinds(K.ACQUIRE),
        lambda i, _: i.missing_ratings and not _probing(i)),
)  # fmt: skip


def assemble_steps(item: DecisionItem, world: RuleContext, *, silent: bool = False) -> list[Step]:
    """Choose the required and proposed steps, within the budgets."""
    done = [each for each in item.steps if not each.is_pending]
    free = [each for each in item.steps if each.is_pending]
    chosen: list[Step] = []
    for need in REQUIRED_STEPS:
        if need.applies(item, world):
            _add_required(need, item, world, chosen, free, done)
    if item.over_budget:
        free = _trim_to_budget(item, world, [*done, *chosen], free, silent=silent)
    if _probing(item) and not chosen and not free:
        name = "harness" if _needs_new_harness(item, world) else "probe"
        chosen.append(fill_template(name, item))
    return _limit_steps(item, world, done, [*chosen, *free], silent=silent)


def _add_required(
    need: RequiredStep,
    item: DecisionItem,
    world: RuleContext,
    chosen: list[Step],
    free: list[Step],
    done: list[Step],
) -> None:
    if need.priority == RETRY:
        chosen += item.retry_steps
        return
    if any(each.kind in need.kinds for each in chosen):
        return
    proposed = next((each for each in free if each.kind in need.kinds), None)
    # The trimmed plan is still over budget.
    again = need.priority == "P5"
    if need.priority == "P3":
        again = world.config.policy.overrides.repeats_probe_step
    if proposed:
        free.remove(proposed)
        chosen.append(proposed)
    elif again or not any(each.is_complete and each.kind in need.kinds for each in done):
        chosen.append(fill_template(need.template, item))


def _trim_to_budget(
    item: DecisionItem, world: RuleContext, listed: list[Step], free: list[Step], *, silent: bool
) -> list[Step]:
    """As many of the proposed steps, in their order, as the budgets allow."""
    kept: list[Step] = []
    for each in free:
        steps = [*listed, *kept, each]
        fits = sum(step.minutes for step in steps) <= TIMEBOX_MINUTES[item.impact]
        simple = (
            not item.best_evidence_tier.is_weak
            or _tax(item, len(steps)) <= MAX_COMPLEXITY_TAX[item.impact]
        )
        if not (fits and simple and len(steps) <= MAX_STEPS):
            break
        kept.append(each)
    if len(kept) < len(free) and not silent:
        lost = f"{len(free) - len(kept)} of {len(free)}"
        world.batch.add_diagnostic(Diagnostic("STEP_DROPPED", item.id, lost, item.input.line))
    return kept


def _limit_steps(
    item: DecisionItem, world: RuleContext, done: list[Step], rest: list[Step], *, silent: bool
) -> list[Step]:
    surplus = max(0, len(done) + len(rest) - MAX_STEPS)
    listed = [*done[min(surplus, len(done)) :], *rest][:MAX_STEPS]
    if surplus and not silent:
        world.batch.add_diagnostic(
            Diagnostic("STEP_OVERFLOW", item.id, f"{surplus} dropped", item.input.line)
        )
    return listed


def _tax(item: DecisionItem, steps: int) -> int:
    return complexity_tax(item, steps, waits=bool(item.unresolved_dependencies))


def apply_budgets(item: DecisionItem, world: RuleContext) -> None:
    """Keep an item within the minutes and the complexity that its impact justifies."""
    plan = assemble_steps(item, world, silent=True)
    if item.state is ItemState.ACTIVE and not any(each.is_pending for each in plan):
        item.park(Trigger.REDESIGN_TRIGGER)
        item.lacks_executable_step = True
    if item.impact is Level.LOW:
        return
    late = sum(each.minutes for each in plan) > TIMEBOX_MINUTES[item.impact]
    heavy = (
        item.best_evidence_tier.is_weak and _tax(item, len(plan)) > MAX_COMPLEXITY_TAX[item.impact]
    )
    item.over_budget = late or heavy
    if heavy and item.state is ItemState.ACTIVE:
        item.park(Trigger.REDESIGN_TRIGGER)
    elif item.over_budget:
        item.note_trigger(Trigger.REDESIGN_TRIGGER)


def finalize_steps(item: DecisionItem, world: RuleContext) -> None:
    """Set the steps to render, and which of them is next."""
    if item.state in (ItemState.DISCARDED, ItemState.EXPIRED):
        item.planned_steps = []
    elif item.state is ItemState.CLOSED:
        done = [each for each in item.steps if not each.is_pending]
        pending = [each for each in item.steps if each.is_pending]
        item.planned_steps = _limit_steps(item, world, done, pending, silent=False)
    elif item.state is ItemState.DRAFT and item.frozen:
        item.planned_steps = [kernel_step("specs")]
    elif item.held and item.prev and not item.demoted:
        item.planned_steps = list(item.prev.steps[:MAX_STEPS])
    else:
        item.planned_steps = assemble_steps(item, world)
    item.next_number = 0
    if item.state not in TERMINAL_STATES:
        pending_at = (at for at, each in enumerate(item.planned_steps, 1) if each.is_pending)
        item.next_number = next(pending_at, 0)
    item.timebox_minutes = sum(each.minutes for each in item.planned_steps)
    item.complexity_tax = _tax(item, len(item.planned_steps))


def has_executable_step(item: DecisionItem) -> bool:
    """Whether its next step may run now."""
    return item.state in RUNNING_STATES and bool(item.next_number)
