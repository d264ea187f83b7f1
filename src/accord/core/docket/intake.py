"""What an item brings into a run: values merged with what was known, steps, and their results."""

import re
from collections.abc import Iterable

from accord.core.docket import steps
from accord.core.docket.diags import Diag
from accord.core.docket.judge import Result
from accord.core.docket.model import Batch, Config, Item
from accord.core.docket.text import driver
from accord.core.docket.words import (
    MISSING_INFO,
    Dim,
    Done,
    Fault,
    Flag,
    Kind,
    Mode,
    Profile,
    Runtime,
)

_NUMBER = re.compile(r"[sS]?(\d{1,3})")
_WAIVER = re.compile(r"waive\s+(?:the\s+)?dependency\s+([A-Za-z0-9][A-Za-z0-9_.-]*)", re.IGNORECASE)


def merge(item: Item) -> None:
    """What is said now, else what was known, else the default."""
    inp, prev, judge = item.inp, item.prev, item.judge
    item.title = inp.title or judge.title or (prev and prev.title) or item.id
    item.mode = inp.mode or (prev and prev.mode) or Mode.PLAN
    item.profile = judge.profile or inp.profile or (prev and prev.profile) or Profile.FULL
    known = judge.domain_type or (prev and prev.domain)
    item.domain, item.domain_known = known or item.domain, known is not None
    contested = judge.contested
    item.contested = bool(prev and prev.contested) if contested is None else contested == Flag.YES
    _lists(item)
    named = driver(judge.critical_driver or "")
    item.critical = named or (prev and prev.critical) or MISSING_INFO
    item.why = judge.why or (prev.why if prev else "-")
    item.tradeoff = judge.dominant_tradeoff or (prev.tradeoff if prev else "-")
    item.uncertainty = judge.next_uncertainty or (prev.uncertainty if prev else "-")
    item.fail_fast = prev.fail_fast if prev else 0
    item.hedge = bool(prev and prev.hedge)


def _lists(item: Item) -> None:
    inp, prev = item.inp, item.prev
    before = prev.depends_on if prev else ()
    item.depends_on = before if inp.depends_on is None else inp.depends_on
    item.uses = (prev.uses if prev else {}) if inp.uses is None else inp.uses
    item.reversibility = inp.reversibility or (prev.reversibility if prev else None)
    if prev:
        item.split_into = prev.split_into
        item.inp.split_from = inp.split_from or prev.split_from


def urgency(item: Item) -> None:
    """As said, as it was, or as costly as waiting is."""
    rated = item.binding.get(Dim.COST_OF_DELAY) if item.rated else None
    fallback = rated.rating if rated and item.judge.binding else item.urgency
    item.urgency = item.judge.urgency or (item.prev and item.prev.urgency) or fallback


def waivers(item: Item) -> tuple[str, ...]:
    """Dependencies that somebody knowingly does not wait for."""
    prev = item.prev
    named = [*item.inp.waive, *(item.judge.waive or ()), *_WAIVER.findall(item.inp.plan or "")]
    if prev:
        named += [*prev.waived, *waived_by(prev.steps)]
    # A sentence may end with the id.
    asked = {*named, *(each.rstrip(".") for each in named)}
    return tuple(each for each in item.depends_on if each in asked)


def waived_by(listed: Iterable[steps.Step]) -> list[str]:
    """Dependencies that these steps waive."""
    return [name for each in listed if not each.failed for name in _WAIVER.findall(each.action)]


def take_steps(item: Item, batch: Batch, config: Config) -> None:
    """The steps to go on with, and how those ended that were tried."""
    kept = item.prev and not item.reopened and not item.revived
    base = list(item.prev.steps) if item.prev and kept else []
    if item.fixed:
        item.steps = base
        return
    proposed = _proposed(item, batch)
    if base:
        base = _results(item, base, batch)
    again = bool(item.prev and item.prev.reopened)
    item.mitigate = again and any(each.pending and each.kind is Kind.MITIGATE for each in base)
    done = [step for step in base if not step.pending]
    if proposed is None:
        item.steps = [step for step in base if not step.pending or not steps.own(step)]
    else:
        item.steps = [*done, *proposed]
    if not base:
        item.steps = _results(item, item.steps, batch)


def _proposed(item: Item, batch: Batch) -> list[steps.Step] | None:
    if item.judge.steps is None:
        return None
    good: list[steps.Step] = []
    for place, asked in enumerate(item.judge.steps, 1):
        step, remarks = steps.accept(asked)
        text = asked if isinstance(asked, str) else asked.text or ""
        for code in remarks:
            batch.say(Diag(code, item.id, f"step {place}: {text}", item.inp.line))
        if step:
            good.append(step)
    return good


def _results(item: Item, base: list[steps.Step], batch: Batch) -> list[steps.Step]:
    made = list(base)
    for each in item.inp.results:
        found = _NUMBER.fullmatch((each.step or "").strip())
        at = int(found[1]) - 1 if found else -1
        if not 0 <= at < len(made) or not made[at].pending or each.status is None:
            batch.say(Diag("RESULT_NO_STEP", item.id, each.step or "", item.inp.line))
            continue
        before = made[at]
        made[at] = _ended(before, each, each.status, batch)
        item.resulted = True
        if made[at].failed:
            item.failures.append((made[at], before))
    return made


def _ended(step: steps.Step, each: Result, status: Done, batch: Batch) -> steps.Step:
    return steps.ended(
        step,
        status,
        each.evidence_tier,
        each.result or "",
        fault=Fault.read(each.token),
        really=batch.header.runtime is Runtime.RUNTIME_OK,
    )
