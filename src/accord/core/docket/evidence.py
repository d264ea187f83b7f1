"""How good the evidence is, and how sure one may be on it."""

from dataclasses import replace

from accord.core.docket.model import Item
from accord.core.docket.probes import Entry
from accord.core.docket.words import (
    Confidence,
    Dim,
    Domain,
    Done,
    Flag,
    Found,
    Level,
    Match,
    Tier,
    Trigger,
)

LOW, MED, HIGH = Confidence.LOW, Confidence.MED, Confidence.HIGH


def best_tier(item: Item) -> Tier:
    """The best evidence ever seen for the item."""
    given = [each.tier for each in item.binding.values()] if item.rated else []
    sources = [list(item.inp.evidence), [each.evidence_tier for each in item.log], given]
    chain = next((max(each) for each in sources if each), Tier.SIMULATED)
    return max(chain, item.prev.tier) if item.prev else chain


def cap(item: Item) -> Confidence:
    """The most that anybody may be sure of."""
    mine = item.mine
    last = mine[-1] if mine else None
    limits = [HIGH]
    if item.contested:
        limits.append(LOW)
    if last and last.context_match is not Match.YES:
        limits.append(LOW)
    if last and last.base is not Level.HIGH:
        limits.append(MED)
    if item.domain is Domain.DETERMINISTIC:
        near = item.counters.nmd >= 1
        if near or (item.tier.weak and not _proven(item)):
            limits.append(MED)
    elif item.tier <= Tier.HISTORICAL or (item.domain.wild and _doubtful(item, last)):
        limits.append(MED)
    return min(limits)


def _doubtful(item: Item, last: Entry | None) -> bool:
    good = last is None or (last.base is Level.HIGH and last.context_match is Match.YES)
    return item.contested or not good


def _proven(item: Item) -> bool:
    """`provable` is a claim until something shows it."""
    if item.judge.provable is not Flag.YES:
        return False
    ran = any(each.status is Done.COMPLETED for each in item.steps)
    held = any(each.status is Found.VALIDATED for each in item.log)
    bound = (item.judge.binding or {}).values()
    named = item.judge.test_ref or any(each.evidence_ref for each in bound)
    return bool(ran or held or named)


def confidence(item: Item) -> None:
    """How sure the item is of its critical driver, within the cap."""
    item.cap = cap(item)
    declared = _declared(item)
    item.confidence = min(declared, item.cap)
    if item.friction_missing:
        item.confidence = min(item.confidence, LOW)
    if declared > item.cap:
        item.note(Trigger.CONFIDENCE_CAP_APPLIED)
    for dim, each in item.binding.items():
        if item.critical in each.drivers:
            item.binding[dim] = replace(each, confidence=min(each.confidence, item.cap))


def _declared(item: Item) -> Confidence:
    if not item.rated:
        return (item.prev and item.prev.confidence) or LOW
    named = [each.confidence for each in item.binding.values() if item.critical in each.drivers]
    if not named:
        item.missing_ratings = True
    return min(named, default=LOW)


def delay(item: Item) -> Level | None:
    """What waiting costs, where it was rated."""
    known = item.binding.get(Dim.COST_OF_DELAY)
    return known.rating if known else None
