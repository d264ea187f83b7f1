"""How an item enters a run: what reopens it, what expires it, and plans too thin to judge."""

import re
from datetime import date, timedelta

from accord.core.docket.budget import EXPIRES
from accord.core.docket.grammar import BULLET
from accord.core.docket.judge import NOTHING, Source
from accord.core.docket.model import Batch, Config, Item, Previous
from accord.core.docket.probes import day, protects
from accord.core.docket.words import (
    REOPEN_BLOCKED,
    TERMINAL,
    VERDICTS,
    Asking,
    Close,
    Closure,
    Mode,
    State,
    Trigger,
    Verdict,
)

_GOAL = re.compile(r"\s*(?:(?:[-*]|\d{1,9}[.)])\s+)?goal(?: state)?\s*:\s*\S", re.IGNORECASE)
_LIMIT = re.compile(
    r"\s*(?:(?:[-*]|\d{1,9}[.)])\s+)?(?:hard constraint|constraints?)\s*:\s*\S", re.IGNORECASE
)
_DATED = re.compile(r"(\d{8})-.*")


def enter(item: Item) -> None:
    """Reopen, revive, refuse or leave an item that was already decided."""
    prev = item.prev
    if prev is None or prev.state not in TERMINAL:
        return
    if not item.inp.addressed:
        _stays(item, prev, Trigger.NONE if prev.trigger in REOPEN_BLOCKED else prev.trigger)
    elif prev.state is State.EXPIRED:
        item.revived = True
    elif prev.state is State.DISCARDED:
        if item.inp.evidence or item.inp.changed:
            item.revived = True
        else:
            _refuse(item, prev, Trigger.REOPEN_BLOCKED_NO_DELTA)
    else:
        _reopen(item, prev)


def _reopen(item: Item, prev: Previous) -> None:
    proof = bool(item.inp.evidence)
    if proof and item.judge.close_intent is Close.YES:
        _stays(item, prev, Trigger.NONE)
        item.closure = Closure.REAL
    elif prev.reopened >= 1:
        _refuse(item, prev, Trigger.REOPEN_BLOCKED_BUDGET)
    elif proof or (prev.closure is Closure.SIM and item.inp.changed):
        item.reopened = True
    else:
        _refuse(item, prev, Trigger.REOPEN_BLOCKED_NO_DELTA)


def _stays(item: Item, prev: Previous, trigger: Trigger) -> None:
    verdict = prev.verdict or Verdict.DO_NOW
    if prev.state is not State.CLOSED:
        (verdict,) = VERDICTS[prev.state]
    item.settle(prev.state, verdict, trigger)
    item.fixed = True
    if prev.state is State.CLOSED:
        item.closure = prev.closure or Closure.REAL


def _refuse(item: Item, prev: Previous, trigger: Trigger) -> None:
    """What was said of an item that stays as it is changes nothing about it."""
    item.inp.judge, item.inp.evidence, item.inp.results = NOTHING, (), ()
    item.inp.depends_on = item.inp.uses = item.inp.reversibility = None
    item.refused = True
    _stays(item, prev, trigger)


def expire(item: Item, batch: Batch, config: Config) -> None:
    """A parked item that nobody has touched for long."""
    idle = item.before is State.STANDBY and not item.inp.addressed
    if not idle or item.fixed or not config.now or item.expires == "NONE":
        return
    if any(protects(each, item.critical) for each in item.log):
        return
    start = day(since(item, batch))
    if start and config.now >= plus(start, int(item.expires)):
        item.settle(State.EXPIRED, Verdict.DO_LATER)
        item.fixed = True


def plus(start: date, days: int) -> date:
    """So many days later, as far as a calendar goes."""
    return start + timedelta(days=min(days, (date.max - start).days))


def lasting(item: Item, batch: Batch) -> None:
    """How long the item may wait, and since when it does."""
    prev, inp, header = item.prev, item.inp, batch.header
    keep = inp.keep_open
    days = inp.expire_days
    if prev:
        keep = prev.keep_open if keep is None else keep
        days = days or prev.expire_days
    item.keep_open, item.expire_days = keep, days
    open_ended = header.keep_open if keep is None else keep
    domain = item.domain if item.domain_known else None
    item.expires = "NONE" if open_ended else str(days or header.expire_days or EXPIRES[domain])


def since(item: Item, batch: Batch) -> str:
    """The day an item was last touched, as far as anybody wrote it down."""
    if item.prev and item.prev.updated_at:
        return item.prev.updated_at
    found = _DATED.fullmatch(batch.begun) if item.prev else None
    if not found or not found[1].strip("0"):
        return ""
    digits = found[1]
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"


def fail_fast(item: Item, asking: Asking, config: Config) -> None:
    """A plan without steps, goal or constraint is patched once and cut the second time."""
    prev = item.prev
    accepted = prev and prev.fail_fast == 0 and prev.state is not State.DRAFT
    skip = item.mode is not Mode.PLAN or item.inp.plan is None or item.inp.split_from
    if item.fixed or accepted or skip:
        return
    if _worth_judging(item):
        item.fail_fast = 0
        return
    item.fail_fast += 1
    if item.fail_fast >= 2:
        item.fail_fast = 2
        item.settle(State.DISCARDED, Verdict.DISCARD, Trigger.FAIL_FAST_CUT)
        item.fixed = True
    elif config.manual and asking is Asking.ALLOW:
        item.settle(State.DRAFT, Verdict.DO_LATER, Trigger.FAIL_FAST_PLAN_SNR)
        item.fixed = True
    else:
        item.simulated_specs = True


def _worth_judging(item: Item) -> bool:
    lines = (item.inp.plan or "").split("\n")
    specs = item.judge.specs
    told = specs is not None and specs.source is not Source.SIMULATED
    goal = bool(told and specs and specs.goal_state)
    limit = bool(told and specs and specs.hard_constraint)
    return (
        any(BULLET.match(line) for line in lines)
        and (goal or any(_GOAL.match(line) for line in lines))
        and (limit or any(_LIMIT.match(line) for line in lines))
    )
