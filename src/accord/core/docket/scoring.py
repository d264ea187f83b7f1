"""Ratings to a score, an impact, and whether a small change would tip it. In whole numbers."""

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from accord.core.docket.judge import Bound, Judge
from accord.core.docket.model import Binding, Item, Previous, Rating
from accord.core.docket.text import driver, number
from accord.core.docket.words import (
    MISSING_INFO,
    Confidence,
    Dim,
    Level,
    Profile,
    Tier,
    Trigger,
)

# In tenths of a point.
WEIGHTS: dict[Dim, int] = {
    Dim.BENEFIT: 10,
    Dim.COST: -8,
    Dim.RISK: -12,
    Dim.COST_OF_DELAY: 5,
}
HIGH_FROM, MED_FROM = 4, -17
FRAGILE = frozenset({*range(-20, -13), *range(1, 8)})
DIY_FRAGILE = frozenset({0, 1, 3, 4})
DIY_SCORES = {Level.HIGH: 85, Level.MED: 60, Level.LOW: 30}
BANDS = ((35, 45), (65, 75))


class Score(NamedTuple):
    """What ratings come to."""

    raw: int
    shown: str
    impact: Level
    fragile: bool


def tenth(value: Decimal) -> str:
    """With one decimal, halves up."""
    return str(value.quantize(Decimal("0.1"), ROUND_HALF_UP))


def full(ratings: dict[Dim, Level]) -> Score:
    """By the weights of the full profile."""
    raw = sum(weight * ratings[dim].points for dim, weight in WEIGHTS.items())
    score = min(max(Decimal((raw + 45) * 10) / 7, Decimal(0)), Decimal(100))
    high, med = raw >= HIGH_FROM, raw >= MED_FROM
    impact = Level.HIGH if high else Level.MED if med else Level.LOW
    return Score(raw, tenth(score), impact, raw in FRAGILE)


def diy(ratings: dict[Dim, Level], friction: Level, confidence: Confidence) -> Score:
    """By the rule of thumb for small things."""
    others = sum(level.points for dim, level in ratings.items() if dim is not Dim.BENEFIT)
    raw = 3 * ratings[Dim.BENEFIT].points - others - friction.points
    impact = Level.HIGH if raw >= 4 else Level.MED if raw >= 1 else Level.LOW
    shown = DIY_SCORES[impact] - (20 if confidence <= Confidence.LOW else 0)
    return Score(raw, tenth(Decimal(shown)), impact, raw in DIY_FRAGILE)


def rate(item: Item, *, backed: bool) -> bool:
    """Bind the ratings given now; returns whether one claims evidence that nobody showed."""
    said = item.judge.binding or {}
    unbacked = False
    before = item.prev.binding if item.prev else {}
    for dim in Dim:
        known = before.get(dim)
        given = said.get(dim, Bound())
        rating, complete = _complete(given, known)
        unshown = rating.tier >= Tier.HISTORICAL and not given.evidence_ref and not backed
        if unshown and given.evidence_tier:
            rating, unbacked = replace(rating, tier=Tier.DERIVED), True
        item.binding[dim] = rating
        item.missing_ratings |= not complete
    item.rated = True
    return unbacked


def _complete(given: Bound, known: Rating | None) -> tuple[Rating, bool]:
    """A rating with every gap filled, and whether there was none."""
    names = tuple(filter(None, map(driver, given.drivers or ())))
    level = given.rating or (known and known.rating)
    drivers = names or (known.drivers if known else ())
    sure = given.confidence or (known and known.confidence)
    tier = given.evidence_tier or (known and known.tier)
    complete = bool(level and drivers and sure and tier)
    if not complete:
        drivers = (*(each for each in drivers if each != MISSING_INFO), MISSING_INFO)
    made = Rating(level or Level.MED, sure or Confidence.LOW, tier or Tier.SIMULATED, drivers)
    return made, complete


def score(item: Item, *, guarded: bool) -> None:
    """Score, impact and fragility: from the ratings, or as they were."""
    if item.rated:
        _fresh(item, item.judge)
    else:
        prev = item.prev or Previous(item.id)
        item.score = prev.score or item.score
        item.impact = prev.impact or item.impact
        item.fragile = _was_fragile(item)
    if guarded:
        _floor(item, item.binding)


def _fresh(item: Item, judge: Judge) -> None:
    ratings = {dim: each.rating for dim, each in item.binding.items()}
    if item.profile is Profile.DIY:
        made = diy(ratings, judge.friction or Level.MED, item.confidence)
    else:
        made = full(ratings)
    item.score, item.impact, item.fragile = made.shown, made.impact, made.fragile


def _was_fragile(item: Item) -> bool:
    if item.profile is Profile.DIY:
        return bool(item.prev and item.prev.trigger is Trigger.FRAGILITY)
    value = number(item.score)
    return value is not None and any(low <= value <= high for low, high in BANDS)


def _floor(item: Item, binding: Binding) -> None:
    """What could do harm is never waved through as unimportant."""
    risky = Dim.RISK in binding and binding[Dim.RISK].rating is Level.HIGH
    if risky:
        item.impact = max(item.impact, Level.MED)
    if item.irreversible:
        item.impact = Level.HIGH
