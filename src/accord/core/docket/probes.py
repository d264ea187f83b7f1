"""Probes: cheap trials with a kill switch, and what their log says about a driver."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from typing import Any

from accord.core.docket.judge import Trial
from accord.core.docket.text import driver, number, one_line
from accord.core.docket.words import (
    CONCLUSIVE,
    Flag,
    Found,
    Level,
    Margin,
    Match,
    Tier,
)

SIGNATURE = re.compile(
    r"ENV=(?:prod|staging|dev|sim)\|SCALE=(?:XS|S|M|L|XL)\|DATA=[RSH]\|TIME=(?:1m|10m|60m|1d)"
    r"(?:\|CONSTRAINTS=(?P<ids>[A-Za-z0-9_.-]+(?:,[A-Za-z0-9_.-]+)*))?"
)
_CONDITION = re.compile(
    r"[^\s<>=!]++\s*+(?P<op>>=|<=|==|!=|>|<)\s*+(?P<number>[-+]?(?:[0-9]++(?:\.[0-9]++)?|\.[0-9]++))"
)
_BASE = re.compile(r"(HIGH|MED|LOW)(?:\s+(OVERRIDE_REPR\([^()]*\)))?")
OVERRIDE = "OVERRIDE_REPR("
UNKNOWN = "UNKNOWN"
LIFE = timedelta(days=90)
TESTS = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
# An adopted copy says from whom; ENDED(…) once it was given up.
ENDED = "ENDED("


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a probe log, in the order it is printed."""

    probe_id: str
    created_at: str = UNKNOWN
    target_driver: str = "-"
    context_match: Match = Match.UNKNOWN
    representativeness: str = "LOW"
    evidence_tier: Tier = Tier.SIMULATED
    status: Found = Found.ACTIVE
    kill_switch_triggered: Flag = Flag.NO
    kill_switch_threshold: str = UNKNOWN
    kill_switch_value: str = UNKNOWN
    kill_switch_margin: Margin = Margin.UNKNOWN
    result_summary: str = "none"
    decision_changed: Flag = Flag.NO
    decision_context_id: str = "-"
    decision_context_driver: str = "-"
    decision_context_metric: str = "-"
    constraint_signature: str = "-"
    kill_switch_condition: str = "-"
    expires_at: str = UNKNOWN
    adopted: str = "-"

    @property
    def base(self) -> Level:
        """How far the probe stands for the real thing."""
        return Level(self.representativeness.split(" ")[0])

    @property
    def kept(self) -> bool:
        """Whether the item still holds on to it."""
        return not self.adopted.startswith(ENDED)


FIELDS = tuple(each.name for each in fields(Entry))
_WORDS = {
    "context_match": Match,
    "evidence_tier": Tier,
    "status": Found,
    "kill_switch_triggered": Flag,
    "kill_switch_margin": Margin,
    "decision_changed": Flag,
}


def entry(values: dict[str, str], fallback: str) -> Entry:
    """A log line from its fields; what is missing or no word of its list is as if unknown."""
    given: dict[str, Any] = {}
    for name in FIELDS:
        value = one_line(values.get(name, ""))
        if name in _WORDS:
            value = _WORDS[name].read(value) or ""
        if value:
            given[name] = value
    given["representativeness"] = representative(values.get("representativeness", ""))
    given["target_driver"] = driver(values.get("target_driver", "")) or "-"
    return Entry(**{"probe_id": fallback, **given})


def representative(text: str) -> str:
    """The bucket, and who overrode it."""
    found = _BASE.fullmatch(" ".join(text.split()))
    return " ".join(filter(None, found.groups())) if found else "LOW"


def merged(trial: Trial, base: Entry) -> Entry:
    """The entry with what was said of it now."""
    said: dict[str, Any] = {
        name: value
        for name in FIELDS
        if (value := getattr(trial, name, None)) is not None and name != "probe_id"
    }
    if "target_driver" in said:
        said["target_driver"] = driver(said["target_driver"]) or "-"
    if "representativeness" in said:
        said["representativeness"] = representative(said["representativeness"])
    if trial.repr_q is not None:
        said["representativeness"] = answered(trial.repr_q, base.representativeness)
    return replace(base, **said)


def answered(answers: Sequence[Flag], before: str) -> str:
    """Three yes are HIGH, two MED; an override stays beside the bucket."""
    yes = sum(each is Flag.YES for each in answers)
    bucket = {3: "HIGH", 2: "MED"}.get(yes, "LOW")
    return " ".join([bucket, *before.split(" ")[1:]])


def canonical(signature: str) -> bool:
    """Whether a signature is written in the one way that can be compared."""
    if not (found := SIGNATURE.fullmatch(signature)):
        return False
    ids = (found["ids"] or "").split(",")
    return ids == sorted(ids)


def harness_gaps(it: Entry, critical: str, batch_id: str) -> list[str]:
    """What a probe lacks to be able to prove its item wrong."""
    own = it.decision_context_id in {batch_id, "-"} or it.decision_context_id.startswith("PA_PVP")
    lacks = {
        "target_driver": it.target_driver != critical,
        "kill_switch": it.kill_switch_condition == "-",
        "decision_context_id": own,
        "decision_context_driver": it.decision_context_driver == "-",
        "decision_context_metric": it.decision_context_metric == "-",
        "constraint_signature": not canonical(it.constraint_signature),
    }
    return [name for name, missing in lacks.items() if missing]


def switched(it: Entry) -> Entry:
    """With the kill switch computed where it can be, and its margin."""
    value = number(it.kill_switch_value)
    found = _CONDITION.fullmatch(it.kill_switch_condition)
    limit = number(found["number"]) if found else None
    if found and limit is not None:
        if it.kill_switch_threshold == UNKNOWN:
            it = replace(it, kill_switch_threshold=found["number"])
        if value is not None:
            off = TESTS[found["op"]](value, limit)
            it = replace(it, kill_switch_triggered=Flag.YES if off else Flag.NO)
    it = replace(it, kill_switch_margin=margin(it))
    fired = it.kill_switch_triggered is Flag.YES
    if fired and it.status in (Found.ACTIVE, Found.VALIDATED):
        return replace(it, status=Found.FALSIFIED)
    return it


def margin(it: Entry) -> Margin:
    """How far from the threshold, on either side."""
    if it.kill_switch_triggered is Flag.YES:
        return Margin.FAIL
    value, threshold = number(it.kill_switch_value), number(it.kill_switch_threshold)
    if value is None or threshold is None:
        return Margin.UNKNOWN
    # Multiplied out: a division would round, and 0.9 against 1.0 is just within a tenth.
    near = abs(value - threshold) * 10 <= abs(threshold) if threshold else abs(value) * 10 <= 1
    return Margin.PASS_NARROW if near else Margin.PASS_WIDE


def capped(it: Entry, most: Level) -> Entry:
    """Representative at most so far, and inconclusive."""
    base = min(it.base, most)
    shown = " ".join([base, *it.representativeness.split(" ")[1:]])
    return replace(it, representativeness=shown, status=Found.INCONCLUSIVE)


def weighed(it: Entry, *, contested: bool, now: date | None) -> Entry:
    """What every entry goes through in every run."""
    if it.status is Found.EXPIRED:
        return it
    if it.context_match is not Match.YES:
        it = capped(it, Level.LOW if it.context_match is Match.NO else Level.MED)
    if contested:
        it = capped(it, Level.MED)
    if it.kill_switch_margin is Margin.PASS_NARROW and it.evidence_tier.weak:
        it = capped(it, Level.MED)
    if it.base is Level.LOW:
        it = capped(it, Level.LOW)
    ends = day(it.expires_at)
    late = now is not None and ends is not None and now > ends
    return replace(it, status=Found.EXPIRED) if late else it


Contexts = dict[tuple[str, str], str]


def contexts(log: Iterable[Entry]) -> Contexts:
    """The signature that each context last had, where it can be compared."""
    return {
        _context(each): (each.constraint_signature if canonical(each.constraint_signature) else "")
        for each in log
    }


def fresh(it: Entry, before: Contexts, critical: str, batch_id: str) -> tuple[Entry, bool]:
    """What an entry of this run goes through besides, and whether its signature set a trap."""
    it = switched(it)
    trap = False
    if not canonical(it.constraint_signature):
        if it.context_match is Match.YES:
            it = replace(it, context_match=Match.UNKNOWN)
    elif before.get(_context(it), "") not in ("", it.constraint_signature):
        it, trap = replace(it, context_match=Match.NO), True
    vague = "-" in (it.decision_context_driver, it.decision_context_metric)
    if vague and it.base is Level.HIGH:
        rest = it.representativeness.split(" ")[1:]
        it = replace(it, representativeness=" ".join([Level.MED, *rest]))
    if harness_gaps(it, critical, batch_id):
        it = capped(it, Level.LOW)
    return it, trap


def _context(it: Entry) -> tuple[str, str]:
    return it.decision_context_id, it.decision_context_metric


def day(text: str) -> date | None:
    """The day in a text, where it names one."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def dated(it: Entry, now: date | None) -> Entry:
    """With the day it was made and the day it ends, as far as anybody knows."""
    if it.created_at == UNKNOWN and now:
        it = replace(it, created_at=now.isoformat())
    made = day(it.created_at)
    if it.expires_at == UNKNOWN and made and made.year < 9999:
        it = replace(it, expires_at=(made + LIFE).isoformat())
    return it


@dataclass(frozen=True, slots=True)
class Counters:
    """What a log adds up to."""

    pc: int = 0
    nm: int = 0
    nmd: int = 0
    inc: int = 0
    ovr: int = 0


def counted(log: Iterable[Entry], critical: str, *, deterministic: bool) -> Counters:
    """The counters of the probes on the critical driver."""
    mine = [each for each in log if each.target_driver == critical]
    near = len({each.probe_id for each in mine if each.kill_switch_margin is Margin.PASS_NARROW})
    return Counters(
        pc=len({each.probe_id for each in mine if each.status in CONCLUSIVE}),
        nm=near,
        nmd=near if deterministic else 0,
        inc=sum(each.status is Found.INCONCLUSIVE for each in mine),
        ovr=sum(OVERRIDE in each.representativeness for each in mine),
    )


def resolved(mine: Iterable[Entry]) -> bool:
    """Whether a good probe has spoken for the item."""
    return any(validated(each) for each in mine)


def validated(it: Entry) -> bool:
    """Passed, where it counts, by what stands for the real thing."""
    good = it.context_match is Match.YES and it.base is Level.HIGH
    return good and it.status is Found.VALIDATED


def protects(it: Entry, critical: str) -> bool:
    """Whether a probe that still runs keeps its item from debt and expiry."""
    good = it.context_match is Match.YES and it.base is Level.HIGH and it.kept
    return good and it.status is Found.ACTIVE and it.target_driver == critical
