"""Probes: cheap trials with a kill switch, and what their log shows about a driver."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from typing import Any

from accord.core.docket.judgement import ProbeReport
from accord.core.docket.text_values import normalize_driver, parse_number, to_one_line
from accord.core.docket.vocabulary import (
    CONCLUSIVE_STATUSES,
    ContextMatch,
    EvidenceTier,
    KillSwitchMargin,
    Level,
    ProbeStatus,
    YesNo,
)

SIGNATURE = re.compile(
    r"ENV=(?:prod|staging|dev|sim)\|SCALE=(?:XS|S|M|L|XL)\|DATA=[RSH]\|TIME=(?:1m|10m|60m|1d)"
    r"(?:\|CONSTRAINTS=(?P<ids>[A-Za-z0-9_.-]+(?:,[A-Za-z0-9_.-]+)*))?"
)
_CONDITION = re.compile(
    r"[^\s<>=!]++\s*+(?P<op>>=|<=|==|!=|>|<)\s*+(?P<number>[-+]?(?:[0-9]++(?:\.[0-9]++)?|\.[0-9]++))"
)
_REPRESENTATIVENESS = re.compile(r"(HIGH|MED|LOW)(?:\s+(OVERRIDE_REPR\([^()]*\)))?")
OVERRIDE_PREFIX = "OVERRIDE_REPR("
UNKNOWN = "UNKNOWN"
PROBE_TTL = timedelta(days=90)
COMPARISONS = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
# An adopted copy names its creator; ENDED(…) after the item gave it up.
ENDED_PREFIX = "ENDED("


@dataclass(frozen=True, slots=True)
class ProbeLogEntry:
    """An entry of a probe log; the order of the fields is the order of the text."""

    probe_id: str
    created_at: str = UNKNOWN
    target_driver: str = "-"
    context_match: ContextMatch = ContextMatch.UNKNOWN
    representativeness: str = "LOW"
    evidence_tier: EvidenceTier = EvidenceTier.SIMULATED
    status: ProbeStatus = ProbeStatus.ACTIVE
    kill_switch_triggered: YesNo = YesNo.NO
    kill_switch_threshold: str = UNKNOWN
    kill_switch_value: str = UNKNOWN
    kill_switch_margin: KillSwitchMargin = KillSwitchMargin.UNKNOWN
    result_summary: str = "none"
    decision_changed: YesNo = YesNo.NO
    decision_context_id: str = "-"
    decision_context_driver: str = "-"
    decision_context_metric: str = "-"
    constraint_signature: str = "-"
    kill_switch_condition: str = "-"
    expires_at: str = UNKNOWN
    adopted: str = "-"

    @property
    def representativeness_level(self) -> Level:
        """How representative the probe is, without who overrode it."""
        return Level(self.representativeness.split(" ")[0])

    @property
    def is_adopted_or_own(self) -> bool:
        """Whether the entry is the item's own, or adopted and not given up."""
        return not self.adopted.startswith(ENDED_PREFIX)


ENTRY_FIELDS = tuple(each.name for each in fields(ProbeLogEntry))
_ENUM_FIELDS = {
    "context_match": ContextMatch,
    "evidence_tier": EvidenceTier,
    "status": ProbeStatus,
    "kill_switch_triggered": YesNo,
    "kill_switch_margin": KillSwitchMargin,
    "decision_changed": YesNo,
}


def parse_entry(values: dict[str, str], fallback: str) -> ProbeLogEntry:
    """An entry from its fields; missing and unknown values become the defaults."""
    given: dict[str, Any] = {}
    for name in ENTRY_FIELDS:
        value = to_one_line(values.get(name, ""))
        if name in _ENUM_FIELDS:
            value = _ENUM_FIELDS[name].parse(value) or ""
        if value:
            given[name] = value
    given["representativeness"] = parse_representativeness(values.get("representativeness", ""))
    given["target_driver"] = normalize_driver(values.get("target_driver", "")) or "-"
    return ProbeLogEntry(**{"probe_id": fallback, **given})


def parse_representativeness(text: str) -> str:
    """The normalized level, with who overrode it."""
    found = _REPRESENTATIVENESS.fullmatch(" ".join(text.split()))
    return " ".join(filter(None, found.groups())) if found else "LOW"


def merge_report(trial: ProbeReport, base: ProbeLogEntry) -> ProbeLogEntry:
    """The entry, updated with the values that the report states."""
    said: dict[str, Any] = {
        name: value
        for name in ENTRY_FIELDS
        if (value := getattr(trial, name, None)) is not None and name != "probe_id"
    }
    if "target_driver" in said:
        said["target_driver"] = normalize_driver(said["target_driver"]) or "-"
    if "representativeness" in said:
        said["representativeness"] = parse_representativeness(said["representativeness"])
    if trial.repr_q is not None:
        said["representativeness"] = representativeness_of_answers(
            trial.repr_q, base.representativeness
        )
    return replace(base, **said)


def representativeness_of_answers(answers: Sequence[YesNo], before: str) -> str:
    """Three times YES is HIGH, twice MED; an earlier override is kept."""
    yes = sum(each is YesNo.YES for each in answers)
    bucket = {3: "HIGH", 2: "MED"}.get(yes, "LOW")
    return " ".join([bucket, *before.split(" ")[1:]])


def is_canonical_signature(signature: str) -> bool:
    """Whether a signature has the canonical form, in which signatures can be compared."""
    if not (found := SIGNATURE.fullmatch(signature)):
        return False
    ids = (found["ids"] or "").split(",")
    return ids == sorted(ids)


def harness_gaps(it: ProbeLogEntry, critical: str, batch_id: str) -> list[str]:
    """What the probe lacks to be able to falsify its item."""
    own = it.decision_context_id in {batch_id, "-"} or it.decision_context_id.startswith("PA_PVP")
    lacks = {
        "target_driver": it.target_driver != critical,
        "kill_switch": it.kill_switch_condition == "-",
        "decision_context_id": own,
        "decision_context_driver": it.decision_context_driver == "-",
        "decision_context_metric": it.decision_context_metric == "-",
        "constraint_signature": not is_canonical_signature(it.constraint_signature),
    }
    return [name for name, missing in lacks.items() if missing]


def evaluate_kill_switch(it: ProbeLogEntry) -> ProbeLogEntry:
    """The entry with its kill switch evaluated where that is possible, and with the margin."""
    value = parse_number(it.kill_switch_value)
    found = _CONDITION.fullmatch(it.kill_switch_condition)
    limit = parse_number(found["number"]) if found else None
    if found and limit is not None:
        if it.kill_switch_threshold == UNKNOWN:
            it = replace(it, kill_switch_threshold=found["number"])
        if value is not None:
            off = COMPARISONS[found["op"]](value, limit)
            it = replace(it, kill_switch_triggered=YesNo.YES if off else YesNo.NO)
    it = replace(it, kill_switch_margin=kill_switch_margin(it))
    fired = it.kill_switch_triggered is YesNo.YES
    if fired and it.status in (ProbeStatus.ACTIVE, ProbeStatus.VALIDATED):
        return replace(it, status=ProbeStatus.FALSIFIED)
    return it


def kill_switch_margin(it: ProbeLogEntry) -> KillSwitchMargin:
    """The distance of the value from the threshold, on either side."""
    if it.kill_switch_triggered is YesNo.YES:
        return KillSwitchMargin.FAIL
    value, threshold = parse_number(it.kill_switch_value), parse_number(it.kill_switch_threshold)
    if value is None or threshold is None:
        return KillSwitchMargin.UNKNOWN
    # A product instead of a quotient: rounding would put 0.9 against 1.0 outside a tenth.
    near = abs(value - threshold) * 10 <= abs(threshold) if threshold else abs(value) * 10 <= 1
    return KillSwitchMargin.PASS_NARROW if near else KillSwitchMargin.PASS_WIDE


def cap_representativeness(it: ProbeLogEntry, most: Level) -> ProbeLogEntry:
    """The entry with its representativeness capped, and inconclusive."""
    base = min(it.representativeness_level, most)
    shown = " ".join([base, *it.representativeness.split(" ")[1:]])
    return replace(it, representativeness=shown, status=ProbeStatus.INCONCLUSIVE)


def normalize_entry(it: ProbeLogEntry, *, contested: bool, now: date | None) -> ProbeLogEntry:
    """The normalization of every entry in every run."""
    if it.status is ProbeStatus.EXPIRED:
        return it
    if it.context_match is not ContextMatch.YES:
        it = cap_representativeness(
            it, Level.LOW if it.context_match is ContextMatch.NO else Level.MED
        )
    if contested:
        it = cap_representativeness(it, Level.MED)
    if it.kill_switch_margin is KillSwitchMargin.PASS_NARROW and it.evidence_tier.is_weak:
        it = cap_representativeness(it, Level.MED)
    if it.representativeness_level is Level.LOW:
        it = cap_representativeness(it, Level.LOW)
    ends = parse_day(it.expires_at)
    late = now is not None and ends is not None and now > ends
    return replace(it, status=ProbeStatus.EXPIRED) if late else it


SignatureByContext = dict[tuple[str, str], str]


def signature_by_context(log: Iterable[ProbeLogEntry]) -> SignatureByContext:
    """The last canonical signature of each context."""
    return {
        _context(each): (
            each.constraint_signature if is_canonical_signature(each.constraint_signature) else ""
        )
        for each in log
    }


def normalize_new_entry(
    it: ProbeLogEntry, before: SignatureByContext, critical: str, batch_id: str
) -> tuple[ProbeLogEntry, bool]:
    """The further normalization of an entry of this run, and whether its signature is a trap."""
    it = evaluate_kill_switch(it)
    trap = False
    if not is_canonical_signature(it.constraint_signature):
        if it.context_match is ContextMatch.YES:
            it = replace(it, context_match=ContextMatch.UNKNOWN)
    elif before.get(_context(it), "") not in ("", it.constraint_signature):
        it, trap = replace(it, context_match=ContextMatch.NO), True
    vague = "-" in (it.decision_context_driver, it.decision_context_metric)
    if vague and it.representativeness_level is Level.HIGH:
        rest = it.representativeness.split(" ")[1:]
        it = replace(it, representativeness=" ".join([Level.MED, *rest]))
    if harness_gaps(it, critical, batch_id):
        it = cap_representativeness(it, Level.LOW)
    return it, trap


def _context(it: ProbeLogEntry) -> tuple[str, str]:
    return it.decision_context_id, it.decision_context_metric


def parse_day(text: str) -> date | None:
    """The ISO date in a text, or None."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def fill_dates(it: ProbeLogEntry, now: date | None) -> ProbeLogEntry:
    """The entry with its creation and expiry dates, as far as they are known."""
    if it.created_at == UNKNOWN and now:
        it = replace(it, created_at=now.isoformat())
    made = parse_day(it.created_at)
    if it.expires_at == UNKNOWN and made and made.year < 9999:
        it = replace(it, expires_at=(made + PROBE_TTL).isoformat())
    return it


@dataclass(frozen=True, slots=True)
class ProbeCounters:
    """The counters of a log."""

    pc: int = 0
    nm: int = 0
    nmd: int = 0
    inc: int = 0
    ovr: int = 0


def count_probes(
    log: Iterable[ProbeLogEntry], critical: str, *, deterministic: bool
) -> ProbeCounters:
    """The counters of the probes on the critical driver."""
    mine = [each for each in log if each.target_driver == critical]
    near = len(
        {each.probe_id for each in mine if each.kill_switch_margin is KillSwitchMargin.PASS_NARROW}
    )
    return ProbeCounters(
        pc=len({each.probe_id for each in mine if each.status in CONCLUSIVE_STATUSES}),
        nm=near,
        nmd=near if deterministic else 0,
        inc=sum(each.status is ProbeStatus.INCONCLUSIVE for each in mine),
        ovr=sum(OVERRIDE_PREFIX in each.representativeness for each in mine),
    )


def has_validated_probe(mine: Iterable[ProbeLogEntry]) -> bool:
    """Whether a representative probe validated the item."""
    return any(is_valid_proof(each) for each in mine)


def is_valid_proof(it: ProbeLogEntry) -> bool:
    """Whether the probe was validated in the right context and is representative."""
    good = it.context_match is ContextMatch.YES and it.representativeness_level is Level.HIGH
    return good and it.status is ProbeStatus.VALIDATED


def protects_item(it: ProbeLogEntry, critical: str) -> bool:
    """Whether a running probe protects its item from debt and expiry."""
    good = (
        it.context_match is ContextMatch.YES
        and it.representativeness_level is Level.HIGH
        and it.is_adopted_or_own
    )
    return good and it.status is ProbeStatus.ACTIVE and it.target_driver == critical
