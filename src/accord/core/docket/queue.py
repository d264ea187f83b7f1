"""Batch rules: unproven assumptions, resources, and the order among items."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from accord.core.docket.budget import MOST_DEBT
from accord.core.docket.evidence import delay
from accord.core.docket.model import Config, Item
from accord.core.docket.probes import protects, resolved
from accord.core.docket.words import MISSING_INFO, Confidence, State, Trigger

OPEN_STATES = frozenset({State.ACTIVE, State.STANDBY, State.PROBING})


def weight(item: Item) -> tuple[int, int, str]:
    """What matters most comes first: impact, urgency, name."""
    return (-item.impact.rank, -item.urgency.rank, item.id)


def eligible(item: Item) -> bool:
    """Whether an item goes on with an assumption that nobody has tried to break."""
    if item.fixed or item.state not in OPEN_STATES:
        return False
    guarded = any(protects(each, item.critical) for each in item.log_out)
    unsure = item.confidence <= Confidence.LOW and item.critical != MISSING_INFO
    open_guess = unsure and not guarded and not resolved(item.mine)
    kept = item.held and item.prev is not None and item.prev.debt != "NONE"
    return open_guess or bool(item.waived) or item.hedge or kept


def debt(items: Iterable[Item], config: Config) -> list[str]:
    """Open debt for at most two drivers; who has another waits. Returns the drivers."""
    owing = [each for each in items if eligible(each)]
    by_driver: defaultdict[str, list[Item]] = defaultdict(list)
    for each in owing:
        by_driver[each.critical].append(each)
    others = len(config.ledger.debt - set(by_driver))
    ranked = sorted(by_driver, key=lambda name: _rank(name, by_driver[name]))
    active = ranked[: max(0, MOST_DEBT - others)]
    holder = (*active, *sorted(config.ledger.debt), "-")[0]
    for item in owing:
        if item.critical in active:
            item.debt = f"OPEN({item.critical})"
        else:
            item.debt, item.hedge = "NONE", False
            item.park(Trigger.DEBT_CEILING)
            item.holder, item.demoted = holder, True
    return active


def _rank(name: str, items: list[Item]) -> tuple[int, int, int, str]:
    costs = [found.points if (found := delay(each)) else 0 for each in items]
    return (-len(items), -max(costs), min(each.confidence.rank for each in items), name)


def resources(items: Iterable[Item], pool: dict[str, int] | None, config: Config) -> None:
    """Park the least important users of whatever is overloaded; nobody moves up for them."""
    if pool is None:
        return
    users = [each for each in items if each.state is State.ACTIVE and not each.fixed and each.uses]
    demand: Counter[str] = Counter()
    for each in users:
        demand.update(each.uses)
    limit = {name: pool.get(name, 0) for name in demand if name in pool or config.guarded}
    for item in sorted(users, key=weight, reverse=True):
        over = sorted(n for n, count in item.uses.items() if count and _full(n, demand, limit))
        if over:
            item.park(Trigger.DEPENDENCY_BLOCK)
            item.waits_for, item.demoted = over[0], True
            demand.subtract(item.uses)


def _full(name: str, demand: Counter[str], limit: dict[str, int]) -> bool:
    return name in limit and demand[name] > limit[name]
