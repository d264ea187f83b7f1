"""The blocks of one item."""

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from accord.core.docket import logbook
from accord.core.docket.budget import COMPLEXITY, TIMEBOX
from accord.core.docket.diags import Diag
from accord.core.docket.intake import waived_by
from accord.core.docket.judge import Alternative, Artifact, Audit
from accord.core.docket.model import Item, Outcome
from accord.core.docket.panels import CLOSURES
from accord.core.docket.probes import FIELDS, Entry, harness_gaps
from accord.core.docket.text import one_line, part, shown
from accord.core.docket.words import TERMINAL, Confidence, Dim, Level, Mode, Profile, State

MISSING = "not_provided"
KEPT = "%;\n"


def yes(value: object) -> str:
    """YES or NO."""
    return "YES" if value else "NO"


def panel_fields(item: Item) -> Iterator[tuple[str, str]]:
    """What a person wants to know of an item, in order; empty ones are left out."""
    yield "title", one_line(item.title)
    yield "mode", item.mode
    yield "profile", item.profile
    yield "domain_type", item.domain
    yield "verdict", item.verdict
    yield "impact", item.impact
    yield "urgency", item.urgency
    yield "score", item.score
    yield "contested", yes(item.contested)
    yield "depends_on", ",".join(item.depends_on) or "-"
    yield "missing_ratings", yes(item.missing_ratings)
    yield "critical_driver_confidence", item.confidence
    yield "hedge_action", "ACTIVE" if item.hedge else "NO"
    yield "reversibility", item.reversibility or ""
    yield "uses", shown(item.uses)
    yield "fail_fast_count", str(item.fail_fast) if item.fail_fast else ""
    yield "why", one_line(item.why)
    yield "critical_driver", item.critical
    yield "dominant_tradeoff", one_line(item.tradeoff)
    yield "falsification_debt", item.debt
    yield "dominant_gate", item.gate
    yield "next_uncertainty", one_line(item.uncertainty)
    yield "trigger", item.trigger
    yield "split_from", item.inp.split_from
    yield "split_into", f"[{','.join(item.split_into)}]" if item.split_into else ""


def panel(item: Item, outcome: Outcome) -> Iterator[str]:
    """[ITEM_PANEL]."""
    yield "[ITEM_PANEL]"
    yield f"id: {item.id}"
    for name, value in panel_fields(item):
        if name == "verdict":
            yield f"state: prev_state={item.before}, new_state={item.state}"
        if value:
            yield f"{name}: {value}"
    # One step waives one dependency; what no step shows would be forgotten.
    if set(item.waived) - set(waived_by(item.plan)):
        yield f"waived: {','.join(item.waived)}"


def derived(item: Item, outcome: Outcome) -> Iterator[str]:
    """[DERIVED]."""
    count = item.counters
    mode = "DELTA" if item.prev else "COMPRESS" if item.impact is Level.LOW else "FULL"
    yield "[DERIVED]"
    yield f"item_exec_mode: {item.pace}"
    yield f"terminal: {yes(item.state in TERMINAL)}"
    yield f"closure_tier: {CLOSURES[item.closure]}"
    yield f"best_evidence_tier: {item.tier}"
    yield f"events: [{', '.join(item.events)}]"
    yield f"reopen_total: {item.reopen_total}"
    yield f"effective_expire_days: {item.expires}"
    yield f"output_mode: {mode}"
    yield (
        f"counters: tb={item.tb}/{TIMEBOX[item.impact]} cx={item.cx}/{COMPLEXITY[item.impact]}"
        f" pc={count.pc} nm={count.nm} nmd={count.nmd} inc={count.inc} ovr={count.ovr}"
        f" rb={item.blocked}"
    )


def steps(item: Item, outcome: Outcome) -> Iterator[str]:
    """[STEPS]."""
    yield "[STEPS]"
    yield from (each.line(number) for number, each in enumerate(item.plan, 1))
    if not item.plan:
        yield "(none)"


def next_step(item: Item, outcome: Outcome) -> Iterator[str]:
    """[NEXT], where there is one."""
    if step := item.next_step:
        yield "[NEXT]"
        yield step.line(item.next)


def _audited(item: Item) -> bool:
    return item.mode in (Mode.ARTIFACT, Mode.TARGET)


def audit(item: Item, outcome: Outcome) -> Iterator[str]:
    """[ARTIFACT_AUDIT] and [AUDIT_EXACT]; what nobody audited is said to be missing."""
    if not _audited(item):
        return
    said = item.judge.audit or Audit()
    kind = said.artifact_type or Artifact.OTHER
    yield "[ARTIFACT_AUDIT]"
    yield f"artifact_type: {kind}"
    for number, name in enumerate(("completeness", "coherence", "operationality"), 1):
        yield f"audit_{number}_{name}: {getattr(said, name) or f'FAIL {MISSING}'}"
    yield f"top_defects: {_joined(said.top_defects)}"
    yield f"top_deltas: {_joined(said.top_deltas)}"
    if kind is Artifact.PROTOCOL:
        yield f"equivalence_probe: {said.equivalence_probe or MISSING}"
    yield "[AUDIT_EXACT]"
    yield f"defect: {said.defect or MISSING}"
    yield f"patch: {said.patch or MISSING}"
    yield f"step: {said.step or MISSING}"
    if not (said.completeness and said.coherence and said.operationality and said.defect):
        outcome.diags.append(Diag("AUDIT_MISSING", item.id, line=item.inp.line))


def _joined(values: Iterable[str] | None, most: int = 5) -> str:
    return "; ".join(list(values or ())[:most]) or MISSING


def model(item: Item, outcome: Outcome) -> Iterator[str]:
    """[DECISION_MODEL]."""
    judge = item.judge
    drivers = ", ".join(f"{d.name}({d.strength or '-'})" for d in judge.drivers or () if d.name)
    yield "[DECISION_MODEL]"
    yield f"domain_type: {item.domain}"
    yield f"drivers: {drivers or '-'}"
    yield f"critical_driver: {item.critical}"
    yield f"impact_graph: {'; '.join(judge.impact_graph or ()) or '-'}"
    yield f"assumptions: {'; '.join([*(judge.assumptions or ()), *_specs(item)]) or '-'}"
    yield f"evidence_available: {'; '.join(judge.evidence_available or ()) or '-'}"
    yield f"uncertainties: {'; '.join(judge.uncertainties or ()) or '-'}"


def _specs(item: Item) -> list[str]:
    """What a thin plan was taken to mean."""
    if not item.simulated_specs:
        return []
    return [
        f"SIMULATED goal={one_line(item.title)}",
        "SIMULATED boundary=this item",
        "SIMULATED constraint=reversible steps only",
    ]


def binding(item: Item, outcome: Outcome) -> Iterator[str]:
    """[EVIDENCE_BINDING]."""
    yield "[EVIDENCE_BINDING]"
    for dim, each in item.binding.items():
        yield (
            f"{dim}: rating={each.rating}; confidence={each.confidence}; "
            f"evidence_tier={each.tier}; drivers={','.join(each.drivers)}"
        )


def acquisition(item: Item, outcome: Outcome) -> Iterator[str]:
    """[DATA_ACQUISITION], what tells most for its cost first."""
    yield "[DATA_ACQUISITION]"
    rows = []
    for each in item.judge.data_acquisition or ():
        impact, cost = each.impact or Level.MED, each.cost or Level.MED
        text = f"{part(each.need or '-')} | {part(each.path or '-')}"
        rows.append((-impact.points / cost.points, f"{text} | impact={impact} | cost={cost}"))
    lines = [text for _, text in sorted(rows, key=lambda each: each[0])]
    if item.missing_ratings:
        lines.insert(0, "missing ratings | rate all four dimensions | impact=HIGH | cost=LOW")
    yield from (f"{number}. {line}" for number, line in enumerate(lines, 1))
    if not lines:
        yield "(none)"


def alternative(item: Item, outcome: Outcome) -> Iterator[str]:
    """[ALTERNATIVE], where the benefit is weak or the risk is high."""
    benefit, risk = item.binding[Dim.BENEFIT], item.binding[Dim.RISK]
    weak = benefit.rating is not Level.HIGH or benefit.confidence <= Confidence.LOW
    if not weak and risk.rating is not Level.HIGH:
        return
    said = item.judge.alternative or Alternative()
    yield "[ALTERNATIVE]"
    if not said.text:
        yield "status: REQUIRED_NOT_PROVIDED"
        return
    yield f"text: {said.text}"
    yield f"driver_changes: {said.driver_changes or '-'}"
    yield f"tradeoffs: {said.tradeoffs or '-'}"


def probe(item: Item, outcome: Outcome) -> Iterator[str]:
    """[PROBE], while probing."""
    if item.state is not State.PROBING:
        return
    yield "[PROBE]"
    found = logbook.candidate(item)
    if found is None:
        gaps = harness_gaps(Entry("-"), item.critical, outcome.batch_id)
        yield f"harness: INVALID missing={','.join(gaps)}"
        return
    yield from (f"{name}: {value}" for name, value in entry_fields(found))


def entry_fields(it: Entry) -> Iterator[tuple[str, str]]:
    """The fields of a log line."""
    for name in FIELDS:
        value = one_line(getattr(it, name))
        if name != "adopted" or value != "-":
            yield name, value


def log(item: Item, outcome: Outcome) -> Iterator[str]:
    """[PROBE_LOG], while there is one or should be."""
    entries = item.log_out
    if not entries and item.state is not State.PROBING:
        return
    yield "[PROBE_LOG]"
    if not entries:
        yield "(empty)"
    for each in entries:
        for place, (name, value) in enumerate(entry_fields(each)):
            yield f"{'  ' if place else '- '}{name}: {value}"


def small_log(item: Item, outcome: Outcome) -> Iterator[str]:
    """[PROBE_LOG] of a small item: only where it owes something."""
    if item.profile is Profile.FULL and item.debt != "NONE" and item.log_out:
        yield from log(item, outcome)


def review(item: Item, outcome: Outcome) -> Iterator[str]:
    """[REVIEW]."""
    yield "[REVIEW]"
    modes = (item.judge.review or ())[:3]
    yield from (f"{number}. {each}" for number, each in enumerate(modes, 1))
    points = (item.judge.contested_points or ())[:3]
    yield from (f"contested: {each}" for each in points)
    if not modes and not points:
        yield "(none)"


def delta(item: Item, outcome: Outcome) -> Iterator[str]:
    """[DELTA]: what broke, what was changed for it, and what the next run needs to know."""
    said = item.judge.delta
    happened = item.events[0] if item.events else "no change"
    yield "[DELTA]"
    yield "[BREAK]"
    broke = (said and said.broke) or f"kernel: {happened}"
    # Words that look like the head of a block stay words.
    yield f"- {broke}" if broke.startswith("[") else broke
    yield "[PATCH]"
    yield f"patch: {(said and said.patch) or 'kernel re-derivation only'}"
    if said and said.refs:
        yield f"refs: {', '.join(said.refs)}"
    yield from _audit_keys(item)
    if outcome.config.carry:
        yield from carry(item)


def _audit_keys(item: Item) -> Iterator[str]:
    if _audited(item):
        said = item.judge.audit or Audit()
        for name in ("defect", "patch", "step"):
            yield f"audit_exact_{name}={getattr(said, name) or MISSING}"
        if said.artifact_type is Artifact.PROTOCOL:
            yield f"artifact_audit_equivalence_probe={said.equivalence_probe or MISSING}"


def carry(item: Item) -> Iterator[str]:
    """What a delta item would otherwise forget."""
    for name, value in [*panel_fields(item), *_memory(item)]:
        if value:
            yield f"state.{name}={value}"
    for dim, each in item.binding.items():
        drivers = ",".join(each.drivers)
        yield f"binding.{dim}={each.rating};{each.confidence};{each.tier};{drivers}"
    for number, entry in enumerate(item.log_out, 1):
        pairs = (f"{name}:{_packed(value)}" for name, value in entry_fields(entry))
        yield f"probe.{number}={';'.join(pairs)}"


def _memory(item: Item) -> Iterator[tuple[str, str]]:
    yield "prev_state", item.before
    yield "new_state", item.state
    explicit = item.prev is not None and item.prev.explicit
    yield "prev_source", "EXPLICIT" if explicit else "SNAPSHOT_RECOVERED"
    yield "waived", ",".join(item.waived)
    yield "updated_at", item.updated_at
    yield "keep_open", "" if item.keep_open is None else yes(item.keep_open)
    yield "expire_days", str(item.expire_days or "")


def _packed(value: str) -> str:
    for letter in KEPT:
        value = value.replace(letter, quote(letter))
    return value


def verdict_update(item: Item, outcome: Outcome) -> Iterator[str]:
    """[VERDICT_UPDATE], where there is one."""
    prev = item.prev
    if prev is None or (prev.verdict in (None, item.verdict) and prev.state is item.state):
        return
    yield "[VERDICT_UPDATE]"
    yield f"verdict: {prev.verdict or '-'} -> {item.verdict}"
    yield f"state: {prev.state} -> {item.state}"
