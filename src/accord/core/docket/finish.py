"""What follows once everything is decided: trigger, gate, pace, surface, events."""

from accord.core.docket.lifecycle import since
from accord.core.docket.model import Batch, Config, Item
from accord.core.docket.probes import protects
from accord.core.docket.words import (
    GATES,
    REOPEN_BLOCKED,
    Closure,
    Confidence,
    Gate,
    Level,
    Pace,
    Profile,
    Scale,
    State,
    Surface,
    Trigger,
    Verdict,
)

_ORDER = {each: place for place, each in enumerate(Trigger)}
MOST_EVENTS = 3


def trigger(item: Item) -> None:
    """The strongest rule that decided the state; else the strongest remark."""
    deciding = [each for each, state in item.candidates if state is item.state]
    remarks = [each for each, state in item.candidates if state is None]
    found = deciding or remarks or [Trigger.NONE]
    item.trigger = min(found, key=lambda each: _ORDER[each])
    item.gate = GATES[item.trigger]


def derive(item: Item, batch: Batch, config: Config, scale: Scale) -> None:
    """Every field that follows from the others."""
    prev = item.prev
    if item.state is not State.CLOSED:
        item.closure = Closure.OPEN
    item.reopen_total = prev.reopened if prev else 0
    if item.before is State.CLOSED and item.state is not State.CLOSED:
        item.reopen_total += 1
    item.blocked = (prev.blocked if prev else 0) + (item.trigger in REOPEN_BLOCKED)
    item.pace = pace(item)
    item.surface = surface(item, scale)
    item.events = events(item)
    paused = any(protects(each, item.critical) for each in item.log_out)
    if item.state is State.STANDBY and paused and item.expires != "NONE":
        item.expires = "PAUSED"
    touched = (item.inp.addressed and not item.refused) or item.state is not item.before
    now = config.now.isoformat() if config.now and (touched or not prev) else ""
    item.updated_at = now or since(item, batch)


def pace(item: Item) -> Pace:
    """Whether it runs, runs carefully, or needs no tool."""
    probing = item.state is State.PROBING
    slight = item.impact is Level.LOW and not probing
    if item.verdict is Verdict.DISCARD or item.trigger is Trigger.FAIL_FAST_CUT or slight:
        return Pace.NO_TOOL
    unsure = item.domain.wild and item.confidence <= Confidence.LOW
    careful = item.contested or item.missing_ratings or item.debt != "NONE" or item.hedge
    return Pace.SLOW if probing or careful or item.irreversible or unsure else Pace.OK


def surface(item: Item, scale: Scale) -> Surface:
    """How much of it is printed."""
    small = item.profile is Profile.DIY or item.impact is Level.LOW
    if item.prev:
        return Surface.DELTA
    if small and item.state is not State.PROBING:
        return Surface.MIN_SURFACE
    loud = scale is Scale.DEBUG or item.contested or item.gate is not Gate.NONE
    return Surface.DEBUG if loud else Surface.MIN


def events(item: Item) -> list[str]:
    """What happened, in three words at most."""
    found = [f"TRIGGER_{item.trigger}"] if item.trigger is not Trigger.NONE else []
    if prev := item.prev:
        if item.changed_probe:
            found.append(f"PROBE_{item.changed_probe}_STATE_CHANGE")
        if prev.confidence is not None and prev.confidence is not item.confidence:
            found.append(f"DRIVER_{item.critical}_CONFIDENCE_CHANGE")
        if item.tier > prev.tier:
            found.append("EVIDENCE_TIER_UPGRADE")
    return found[:MOST_EVENTS]
