"""Rules across a batch: falsification debt, resources, and the one question to the user."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from accord.core.docket.model import Batch, DecisionItem, KernelConfig
from accord.core.docket.probes import has_validated_probe, protects_item
from accord.core.docket.rules.ratings import cost_of_delay
from accord.core.docket.triggers import Trigger
from accord.core.docket.vocabulary import (
    MAX_DEBT_DRIVERS,
    MISSING_INFO,
    TERMINAL_STATES,
    AskUserMode,
    ClosePolicy,
    Confidence,
    ItemState,
    Level,
)

DEBT_STATES = frozenset({ItemState.ACTIVE, ItemState.STANDBY, ItemState.PROBING})


def importance_key(item: DecisionItem) -> tuple[int, int, str]:
    """Sorts the most important items first: by impact, urgency, id."""
    return (-item.impact.rank, -item.urgency.rank, item.id)


def is_debt_eligible(item: DecisionItem) -> bool:
    """Whether an item proceeds on an assumption that no probe has tested."""
    if item.frozen or item.state not in DEBT_STATES:
        return False
    guarded = any(protects_item(each, item.critical_driver) for each in item.full_probe_log)
    unsure = item.confidence <= Confidence.LOW and item.critical_driver != MISSING_INFO
    open_guess = unsure and not guarded and not has_validated_probe(item.critical_driver_entries)
    kept = item.held and item.prev is not None and item.prev.falsification_debt != "NONE"
    return open_guess or bool(item.waived) or item.hedge_active or kept


def assign_debt(items: Iterable[DecisionItem], config: KernelConfig) -> list[str]:
    """Open debt for at most two drivers and park items with any other. Returns the drivers."""
    owing = [each for each in items if is_debt_eligible(each)]
    by_driver: defaultdict[str, list[DecisionItem]] = defaultdict(list)
    for each in owing:
        by_driver[each.critical_driver].append(each)
    ranked = sorted(by_driver, key=lambda name: _debt_rank(name, by_driver[name]))
    active = ranked[:MAX_DEBT_DRIVERS]
    for item in owing:
        if item.critical_driver in active:
            item.falsification_debt = f"OPEN({item.critical_driver})"
        else:
            item.falsification_debt, item.hedge_active = "NONE", False
            item.park(Trigger.DEBT_CEILING)
            item.debt_holder, item.demoted = active[0], True
    return active


def _debt_rank(name: str, items: list[DecisionItem]) -> tuple[int, int, int, str]:
    costs = [found.points if (found := cost_of_delay(each)) else 0 for each in items]
    return (-len(items), -max(costs), min(each.confidence.rank for each in items), name)


def apply_resource_pool(
    items: Iterable[DecisionItem], pool: dict[str, int] | None, config: KernelConfig
) -> None:
    """Park the least important users of overloaded resources; the freed capacity stays free."""
    if pool is None:
        return
    users = [
        each for each in items if each.state is ItemState.ACTIVE and not each.frozen and each.uses
    ]
    demand: Counter[str] = Counter()
    for each in users:
        demand.update(each.uses)
    none = config.policy.overrides.unlisted_resource_is_none
    limit = {name: pool.get(name, 0) for name in demand if name in pool or none}
    for item in sorted(users, key=importance_key, reverse=True):
        over = sorted(
            n for n, count in item.uses.items() if count and _is_overloaded(n, demand, limit)
        )
        if over:
            item.park(Trigger.DEPENDENCY_BLOCK)
            item.waits_for_resource, item.demoted = over[0], True
            demand.subtract(item.uses)


def _is_overloaded(name: str, demand: Counter[str], limit: dict[str, int]) -> bool:
    return name in limit and demand[name] > limit[name]


ASK_TRIGGERS = frozenset(
    {Trigger.BLOCKED_EXTERNAL, Trigger.EXTERNAL_DATA_REQUIRED, Trigger.CLOSE_BLOCKED_REAL_ONLY}
)
SPECS_QUESTION = "goal state; system boundary; hard constraint"


def ask_user_mode(item: DecisionItem, batch: Batch, config: KernelConfig) -> AskUserMode:
    """Whether the run may ask about this item."""
    for said in (item.input.ask_user, batch.header.ask_user):
        if said in (AskUserMode.ALLOW, AskUserMode.NONE):
            return said
    return AskUserMode.ALLOW if config.ask_user else AskUserMode.NONE


def select_question(
    items: list[DecisionItem], batch: Batch, config: KernelConfig, policy: ClosePolicy
) -> str:
    """`ID: text` of the most important eligible item, or empty."""
    before = batch.previous_question
    for item in sorted(items, key=importance_key):
        if _eligible(item, policy):
            text = f"{item.id}: {_question_text(item)}"
            if text != before or _has_changed(item):
                return text
    drafts = (
        each for each in items if each.trigger is Trigger.FAIL_FAST_PLAN_SNR and each.may_ask_user
    )
    return next((f"{each.id}: {SPECS_QUESTION}" for each in drafts), "")


def _eligible(item: DecisionItem, policy: ClosePolicy) -> bool:
    if not item.may_ask_user or item.state in TERMINAL_STATES or item.trigger not in ASK_TRIGGERS:
        return False
    count = item.counters
    spent = count.pc >= 1 or count.nm >= 2 or count.inc >= 1
    if item.trigger is Trigger.EXTERNAL_DATA_REQUIRED:
        hasty = item.impact is Level.LOW or cost_of_delay(item) is Level.HIGH
        spent = spent and not hasty
        return spent or (not hasty and (policy is ClosePolicy.REAL_ONLY or item.is_irreversible))
    return policy is ClosePolicy.REAL_ONLY or item.is_irreversible or spent


def _question_text(item: DecisionItem) -> str:
    asked = item.judgement.external and item.judgement.external.ask
    return asked or f"supply HISTORICAL/REAL/EXPERIMENT evidence for {item.critical_driver}"


def _has_changed(item: DecisionItem) -> bool:
    """Whether anything changed since the question was last asked."""
    prev = item.prev
    if prev is None or item.input.evidence:
        return True
    return prev.state is not item.state or prev.trigger is not item.trigger
