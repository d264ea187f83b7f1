"""How an item enters a run, and what is derived when it leaves: expiry, gate, surface, events."""

import re
from datetime import date, timedelta

from accord.core.docket.judgement import EMPTY_JUDGEMENT, SpecSource
from accord.core.docket.model import Batch, DecisionItem, KernelConfig, PreviousItem
from accord.core.docket.parsing.batch_parser import BULLET_PATTERN
from accord.core.docket.probes import parse_day, protects_item
from accord.core.docket.triggers import (
    GATE_OF_TRIGGER,
    REOPEN_BLOCKED_TRIGGERS,
    DominantGate,
    Trigger,
)
from accord.core.docket.vocabulary import (
    EXPIRE_DAYS,
    TERMINAL_STATES,
    VERDICTS_OF_STATE,
    AskUserMode,
    CloseIntent,
    ClosureTier,
    Confidence,
    ExecMode,
    ItemMode,
    ItemState,
    Level,
    Profile,
    SsotScale,
    Surface,
    Verdict,
)

_GOAL = re.compile(r"\s*(?:(?:[-*]|\d{1,9}[.)])\s+)?goal(?: state)?\s*:\s*\S", re.IGNORECASE)
_CONSTRAINT = re.compile(
    r"\s*(?:(?:[-*]|\d{1,9}[.)])\s+)?(?:hard constraint|constraints?)\s*:\s*\S", re.IGNORECASE
)
_DATED_BATCH_ID = re.compile(r"(\d{8})-.*")


def enter_run(item: DecisionItem) -> None:
    """Reopen, revive, refuse or keep an item that was already decided."""
    prev = item.prev
    if prev is None or prev.state not in TERMINAL_STATES:
        return
    if not item.input.is_addressed:
        _keep_terminal(
            item, prev, Trigger.NONE if prev.trigger in REOPEN_BLOCKED_TRIGGERS else prev.trigger
        )
    elif prev.state is ItemState.EXPIRED:
        item.revived = True
    elif prev.state is ItemState.DISCARDED:
        if item.input.evidence or item.input.change_declared:
            item.revived = True
        else:
            _refuse_reopen(item, prev, Trigger.REOPEN_BLOCKED_NO_DELTA)
    else:
        _reopen(item, prev)


def _reopen(item: DecisionItem, prev: PreviousItem) -> None:
    proof = bool(item.input.evidence)
    if proof and item.judgement.close_intent is CloseIntent.YES:
        _keep_terminal(item, prev, Trigger.NONE)
        item.closure_tier = ClosureTier.REAL
    elif prev.reopen_total >= 1:
        _refuse_reopen(item, prev, Trigger.REOPEN_BLOCKED_BUDGET)
    elif proof or (prev.closure_tier is ClosureTier.SIM and item.input.change_declared):
        item.reopened = True
    else:
        _refuse_reopen(item, prev, Trigger.REOPEN_BLOCKED_NO_DELTA)


def _keep_terminal(item: DecisionItem, prev: PreviousItem, trigger: Trigger) -> None:
    verdict = prev.verdict or Verdict.DO_NOW
    if prev.state is not ItemState.CLOSED:
        (verdict,) = VERDICTS_OF_STATE[prev.state]
    item.fix_state(prev.state, verdict, trigger)
    item.frozen = True
    if prev.state is ItemState.CLOSED:
        item.closure_tier = prev.closure_tier or ClosureTier.REAL


def _refuse_reopen(item: DecisionItem, prev: PreviousItem, trigger: Trigger) -> None:
    """Refuse to reopen: the input is ignored, except for evidence, which is kept as observed."""
    item.input.judgement, item.input.results = EMPTY_JUDGEMENT, ()
    item.input.depends_on = item.input.uses = item.input.reversibility = None
    item.refused = True
    _keep_terminal(item, prev, trigger)


def expire_parked(item: DecisionItem, batch: Batch, config: KernelConfig) -> None:
    """Expire a parked item that was not touched for its expiry period."""
    idle = item.previous_state is ItemState.STANDBY and not item.input.is_addressed
    if not idle or item.frozen or not config.now or item.effective_expire_days == "NONE":
        return
    if any(protects_item(each, item.critical_driver) for each in item.probe_log):
        return
    start = parse_day(last_touched_day(item, batch))
    if start and config.now >= add_days(start, int(item.effective_expire_days)):
        item.fix_state(ItemState.EXPIRED, Verdict.DO_LATER)
        item.frozen = True


def add_days(start: date, days: int) -> date:
    """The date `days` later, limited to the range of dates."""
    return start + timedelta(days=min(days, (date.max - start).days))


def set_expiry(item: DecisionItem, batch: Batch) -> None:
    """Set the days until expiry, and the day from which they count."""
    prev, inp, header = item.prev, item.input, batch.header
    keep = inp.keep_open
    days = inp.expire_days
    if prev:
        keep = prev.keep_open if keep is None else keep
        days = days or prev.expire_days
    item.keep_open, item.expire_days = keep, days
    open_ended = header.keep_open if keep is None else keep
    domain = item.domain_type if item.domain_known else None
    item.effective_expire_days = (
        "NONE" if open_ended else str(days or header.expire_days or EXPIRE_DAYS[domain])
    )


def last_touched_day(item: DecisionItem, batch: Batch) -> str:
    """The day an item was last touched, as far as it is recorded."""
    if item.prev and item.prev.updated_at:
        return item.prev.updated_at
    found = _DATED_BATCH_ID.fullmatch(batch.previous_batch_id) if item.prev else None
    if not found or not found[1].strip("0"):
        return ""
    digits = found[1]
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"


def apply_fail_fast(item: DecisionItem, asking: AskUserMode, config: KernelConfig) -> None:
    """Patch a plan without steps, goal or constraint once; discard it the second time."""
    prev = item.prev
    accepted = prev and prev.fail_fast_count == 0 and prev.state is not ItemState.DRAFT
    skip = item.mode is not ItemMode.PLAN or item.input.plan is None or item.input.split_from
    if item.frozen or accepted or skip:
        return
    if _has_minimal_specs(item):
        item.fail_fast_count = 0
        return
    item.fail_fast_count += 1
    if item.fail_fast_count >= 2:
        item.fail_fast_count = 2
        item.fix_state(ItemState.DISCARDED, Verdict.DISCARD, Trigger.FAIL_FAST_CUT)
        item.frozen = True
    elif config.manual and asking is AskUserMode.ALLOW:
        item.fix_state(ItemState.DRAFT, Verdict.DO_LATER, Trigger.FAIL_FAST_PLAN_SNR)
        item.frozen = True
    else:
        item.simulated_specs = True


def _has_minimal_specs(item: DecisionItem) -> bool:
    lines = (item.input.plan or "").split("\n")
    specs = item.judgement.specs
    told = specs is not None and specs.source is not SpecSource.SIMULATED
    goal = bool(told and specs and specs.goal_state)
    limit = bool(told and specs and specs.hard_constraint)
    return (
        any(BULLET_PATTERN.match(line) for line in lines)
        and (goal or any(_GOAL.match(line) for line in lines))
        and (limit or any(_CONSTRAINT.match(line) for line in lines))
    )


_TRIGGER_RANK = {each: place for place, each in enumerate(Trigger)}
MAX_EVENTS = 3


def set_trigger_and_gate(item: DecisionItem) -> None:
    """Set the strongest trigger that decided the state, else the strongest one noted."""
    deciding = [each for each, state in item.candidates if state is item.state]
    remarks = [each for each, state in item.candidates if state is None]
    found = deciding or remarks or [Trigger.NONE]
    item.trigger = min(found, key=lambda each: _TRIGGER_RANK[each])
    item.dominant_gate = GATE_OF_TRIGGER[item.trigger]


def set_derived_fields(
    item: DecisionItem, batch: Batch, config: KernelConfig, scale: SsotScale
) -> None:
    """Set every field that follows from the others."""
    prev = item.prev
    if item.state is not ItemState.CLOSED:
        item.closure_tier = ClosureTier.OPEN
    item.reopen_total = prev.reopen_total if prev else 0
    if item.previous_state is ItemState.CLOSED and item.state is not ItemState.CLOSED:
        item.reopen_total += 1
    item.reopen_blocked_count = (prev.reopen_blocked_count if prev else 0) + (
        item.trigger in REOPEN_BLOCKED_TRIGGERS
    )
    item.exec_mode = exec_mode_of(item)
    item.surface = surface_of(item, scale)
    item.events = events_of(item)
    paused = any(protects_item(each, item.critical_driver) for each in item.full_probe_log)
    if item.state is ItemState.STANDBY and paused and item.effective_expire_days != "NONE":
        item.effective_expire_days = "PAUSED"
    touched = (
        item.input.is_addressed and not item.refused
    ) or item.state is not item.previous_state
    now = config.now.isoformat() if config.now and (touched or not prev) else ""
    item.updated_at = now or last_touched_day(item, batch)


def exec_mode_of(item: DecisionItem) -> ExecMode:
    probing = item.state is ItemState.PROBING
    slight = item.impact is Level.LOW and not probing
    if item.verdict is Verdict.DISCARD or item.trigger is Trigger.FAIL_FAST_CUT or slight:
        return ExecMode.NO_TOOL
    unsure = item.domain_type.is_unpredictable and item.confidence <= Confidence.LOW
    careful = (
        item.contested
        or item.missing_ratings
        or item.falsification_debt != "NONE"
        or item.hedge_active
    )
    return ExecMode.SLOW if probing or careful or item.is_irreversible or unsure else ExecMode.OK


def surface_of(item: DecisionItem, scale: SsotScale) -> Surface:
    """How much of the item is rendered."""
    small = item.profile is Profile.DIY or item.impact is Level.LOW
    if item.prev:
        return Surface.DELTA
    if small and item.state is not ItemState.PROBING:
        return Surface.MIN_SURFACE
    loud = scale is SsotScale.DEBUG or item.contested or item.dominant_gate is not DominantGate.NONE
    return Surface.DEBUG if loud else Surface.MIN


def events_of(item: DecisionItem) -> list[str]:
    """The events of this run, three at most."""
    found = [f"TRIGGER_{item.trigger}"] if item.trigger is not Trigger.NONE else []
    if prev := item.prev:
        if item.changed_probe_id:
            found.append(f"PROBE_{item.changed_probe_id}_STATE_CHANGE")
        if prev.confidence is not None and prev.confidence is not item.confidence:
            found.append(f"DRIVER_{item.critical_driver}_CONFIDENCE_CHANGE")
        if item.best_evidence_tier > prev.best_evidence_tier:
            found.append("EVIDENCE_TIER_UPGRADE")
    return found[:MAX_EVENTS]
