"""Ratings: the score they give, the evidence behind them, and the confidence that it supports."""

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from accord.core.docket.judgement import JudgedRating, Judgement
from accord.core.docket.model import DecisionItem, EvidenceBinding, PreviousItem, Rating
from accord.core.docket.probes import ProbeLogEntry
from accord.core.docket.text_values import normalize_driver, parse_number
from accord.core.docket.triggers import Trigger
from accord.core.docket.vocabulary import (
    MISSING_INFO,
    Confidence,
    ContextMatch,
    Dimension,
    DomainType,
    EvidenceTier,
    KernelPolicy,
    Level,
    ProbeStatus,
    Profile,
    StepStatus,
    YesNo,
)

# In tenths of a point.
WEIGHT_TENTHS: dict[Dimension, int] = {
    Dimension.BENEFIT: 10,
    Dimension.COST: -8,
    Dimension.RISK: -12,
    Dimension.COST_OF_DELAY: 5,
}
HIGH_MIN_TENTHS, MED_MIN_TENTHS = 4, -17
FRAGILE_TENTHS = frozenset({*range(-20, -13), *range(1, 8)})
DIY_FRAGILE_RAW = frozenset({0, 1, 3, 4})
DIY_SCORES = {Level.HIGH: 85, Level.MED: 60, Level.LOW: 30}
FRAGILE_SCORE_BANDS = ((35, 45), (65, 75))


class Score(NamedTuple):
    """The result of scoring."""

    raw: int
    text: str
    impact: Level
    is_fragile: bool


def format_tenths(value: Decimal) -> str:
    """One decimal, rounded half up."""
    return str(value.quantize(Decimal("0.1"), ROUND_HALF_UP))


def score_full_profile(ratings: dict[Dimension, Level]) -> Score:
    raw = sum(weight * ratings[dim].points for dim, weight in WEIGHT_TENTHS.items())
    score = min(max(Decimal((raw + 45) * 10) / 7, Decimal(0)), Decimal(100))
    high, med = raw >= HIGH_MIN_TENTHS, raw >= MED_MIN_TENTHS
    impact = Level.HIGH if high else Level.MED if med else Level.LOW
    return Score(raw, format_tenths(score), impact, raw in FRAGILE_TENTHS)


def score_diy_profile(
    ratings: dict[Dimension, Level], friction: Level, confidence: Confidence
) -> Score:
    """The simplified score for items of the DIY profile."""
    others = sum(level.points for dim, level in ratings.items() if dim is not Dimension.BENEFIT)
    raw = 3 * ratings[Dimension.BENEFIT].points - others - friction.points
    impact = Level.HIGH if raw >= 4 else Level.MED if raw >= 1 else Level.LOW
    shown = DIY_SCORES[impact] - (20 if confidence <= Confidence.LOW else 0)
    return Score(raw, format_tenths(Decimal(shown)), impact, raw in DIY_FRAGILE_RAW)


def bind_ratings(item: DecisionItem, *, backed: bool) -> bool:
    """Bind the ratings of this run; returns whether one claims evidence that was not supplied."""
    said = item.judgement.binding or {}
    unbacked = False
    before = item.prev.binding if item.prev else {}
    for dim in Dimension:
        known = before.get(dim)
        given = said.get(dim, JudgedRating())
        rating, complete = _fill_rating(given, known)
        unshown = rating.tier >= EvidenceTier.HISTORICAL and not given.evidence_ref and not backed
        if unshown and given.evidence_tier:
            rating, unbacked = replace(rating, tier=EvidenceTier.DERIVED), True
        item.binding[dim] = rating
        item.missing_ratings |= not complete
    item.has_new_ratings = True
    return unbacked


def _fill_rating(given: JudgedRating, known: Rating | None) -> tuple[Rating, bool]:
    """The rating with every gap filled, and whether it was missing altogether."""
    names = tuple(filter(None, map(normalize_driver, given.drivers or ())))
    level = given.rating or (known and known.rating)
    drivers = names or (known.drivers if known else ())
    sure = given.confidence or (known and known.confidence)
    tier = given.evidence_tier or (known and known.tier)
    complete = bool(level and drivers and sure and tier)
    if not complete:
        drivers = (*(each for each in drivers if each != MISSING_INFO), MISSING_INFO)
    made = Rating(
        level or Level.MED, sure or Confidence.LOW, tier or EvidenceTier.SIMULATED, drivers
    )
    return made, complete


def update_score(item: DecisionItem, policy: KernelPolicy) -> None:
    """Set score, impact and fragility from new ratings, else from the previous run."""
    if item.has_new_ratings:
        _score_new_ratings(item, item.judgement)
    else:
        prev = item.prev or PreviousItem(item.id)
        item.score = prev.score or item.score
        item.impact = prev.impact or item.impact
        item.fragile = _was_fragile(item)
    if policy.overrides.raises_impact_of_risk:
        _raise_impact_of_risk(item, item.binding)


def _score_new_ratings(item: DecisionItem, judge: Judgement) -> None:
    ratings = {dim: each.rating for dim, each in item.binding.items()}
    if item.profile is Profile.DIY:
        made = score_diy_profile(ratings, judge.friction or Level.MED, item.confidence)
    else:
        made = score_full_profile(ratings)
    item.score, item.impact, item.fragile = made.text, made.impact, made.is_fragile


def _was_fragile(item: DecisionItem) -> bool:
    if item.profile is Profile.DIY:
        return bool(item.prev and item.prev.trigger is Trigger.FRAGILITY)
    value = parse_number(item.score)
    return value is not None and any(low <= value <= high for low, high in FRAGILE_SCORE_BANDS)


def _raise_impact_of_risk(item: DecisionItem, binding: EvidenceBinding) -> None:
    risky = Dimension.RISK in binding and binding[Dimension.RISK].rating is Level.HIGH
    if risky:
        item.impact = max(item.impact, Level.MED)
    if item.is_irreversible:
        item.impact = Level.HIGH


LOW, MED, HIGH = Confidence.LOW, Confidence.MED, Confidence.HIGH


def best_evidence_tier(item: DecisionItem) -> EvidenceTier:
    """The best evidence that the item has ever had."""
    given = [each.tier for each in item.binding.values()] if item.has_new_ratings else []
    sources = [list(item.input.evidence), [each.evidence_tier for each in item.probe_log], given]
    chain = next((max(each) for each in sources if each), EvidenceTier.SIMULATED)
    return max(chain, item.prev.best_evidence_tier) if item.prev else chain


def confidence_cap(item: DecisionItem) -> Confidence:
    """The highest confidence that the evidence supports."""
    mine = item.critical_driver_entries
    last = mine[-1] if mine else None
    limits = [HIGH]
    if item.contested:
        limits.append(LOW)
    if last and last.context_match is not ContextMatch.YES:
        limits.append(LOW)
    if last and last.representativeness_level is not Level.HIGH:
        limits.append(MED)
    if item.domain_type is DomainType.DETERMINISTIC:
        near = item.counters.nmd >= 1
        if near or (item.best_evidence_tier.is_weak and not _is_proven(item)):
            limits.append(MED)
    elif item.best_evidence_tier <= EvidenceTier.HISTORICAL or (
        item.domain_type.is_unpredictable and _is_doubtful(item, last)
    ):
        limits.append(MED)
    return min(limits)


def _is_doubtful(item: DecisionItem, last: ProbeLogEntry | None) -> bool:
    good = last is None or (
        last.representativeness_level is Level.HIGH and last.context_match is ContextMatch.YES
    )
    return item.contested or not good


def _is_proven(item: DecisionItem) -> bool:
    """Whether evidence backs `provable`, which is only a claim by itself."""
    if item.judgement.provable is not YesNo.YES:
        return False
    ran = any(each.status is StepStatus.COMPLETED for each in item.steps)
    held = any(each.status is ProbeStatus.VALIDATED for each in item.probe_log)
    bound = (item.judgement.binding or {}).values()
    named = item.judgement.test_ref or any(each.evidence_ref for each in bound)
    return bool(ran or held or named)


def set_confidence(item: DecisionItem) -> None:
    """Set the confidence in the critical driver, within the cap."""
    item.confidence_cap = confidence_cap(item)
    declared = _declared_confidence(item)
    item.confidence = min(declared, item.confidence_cap)
    if item.friction_missing:
        item.confidence = min(item.confidence, LOW)
    if declared > item.confidence_cap:
        item.note_trigger(Trigger.CONFIDENCE_CAP_APPLIED)
    for dim, each in item.binding.items():
        if item.critical_driver in each.drivers:
            item.binding[dim] = replace(each, confidence=min(each.confidence, item.confidence_cap))


def _declared_confidence(item: DecisionItem) -> Confidence:
    if not item.has_new_ratings:
        return (item.prev and item.prev.confidence) or LOW
    named = [
        each.confidence for each in item.binding.values() if item.critical_driver in each.drivers
    ]
    if not named:
        item.missing_ratings = True
    return min(named, default=LOW)


def cost_of_delay(item: DecisionItem) -> Level | None:
    """The rated cost of delay, if any."""
    known = item.binding.get(Dimension.COST_OF_DELAY)
    return known.rating if known else None
