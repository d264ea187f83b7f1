"""Renders the blocks of one item."""

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from accord.core.docket.judgement import ArtifactAudit, ArtifactType, JudgedAlternative
from accord.core.docket.model import DecisionItem, DecisionOutcome
from accord.core.docket.probes import ENTRY_FIELDS, ProbeLogEntry, harness_gaps
from accord.core.docket.rules import probe_log
from accord.core.docket.snapshot import (
    CARRIED_FIELDS,
    PANEL_FIELDS,
    PanelField,
    printed_counters,
    printed_probe_log,
    printed_waivers,
)
from accord.core.docket.text_values import step_part, to_one_line, yes_no
from accord.core.docket.vocabulary import (
    CLOSURE_TIER_TEXT,
    TERMINAL_STATES,
    Confidence,
    Dimension,
    ItemState,
    Level,
)

NOT_PROVIDED = "not_provided"
ESCAPED_CHARS = "%;\n"


def render_item_panel(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    yield "[ITEM_PANEL]"
    yield f"id: {item.id}"
    for each in PANEL_FIELDS:
        if each.name == "verdict":
            yield f"state: prev_state={item.previous_state}, new_state={item.state}"
        if value := each.render(getattr(item, each.attribute)):
            yield f"{each.name}: {value}"
    if waived := printed_waivers(item):
        yield f"waived: {','.join(waived)}"


def render_derived(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    mode = "DELTA" if item.prev else "COMPRESS" if item.impact is Level.LOW else "FULL"
    yield "[DERIVED]"
    yield f"item_exec_mode: {item.exec_mode}"
    yield f"terminal: {yes_no(item.state in TERMINAL_STATES)}"
    yield f"closure_tier: {CLOSURE_TIER_TEXT[item.closure_tier]}"
    yield f"best_evidence_tier: {item.best_evidence_tier}"
    yield f"events: [{', '.join(item.events)}]"
    yield f"reopen_total: {item.reopen_total}"
    yield f"effective_expire_days: {item.effective_expire_days}"
    yield f"output_mode: {mode}"
    yield f"counters: {' '.join(f'{name}={at}' for name, at in printed_counters(item).items())}"


def render_steps(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    yield "[STEPS]"
    yield from (each.render(number) for number, each in enumerate(item.planned_steps, 1))
    if not item.planned_steps:
        yield "(none)"


def render_next(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    """[NEXT], if the item has a next step."""
    if step := item.next_step:
        yield "[NEXT]"
        yield step.render(item.next_number)


def render_audit(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    """[ARTIFACT_AUDIT] and [AUDIT_EXACT]; what was not audited is marked as missing."""
    if not item.is_audited:
        return
    said = item.judgement.audit or ArtifactAudit()
    kind = said.artifact_type or ArtifactType.OTHER
    yield "[ARTIFACT_AUDIT]"
    yield f"artifact_type: {kind}"
    for number, name in enumerate(("completeness", "coherence", "operationality"), 1):
        yield f"audit_{number}_{name}: {getattr(said, name) or f'FAIL {NOT_PROVIDED}'}"
    yield f"top_defects: {_join_or_missing(said.top_defects)}"
    yield f"top_deltas: {_join_or_missing(said.top_deltas)}"
    if kind is ArtifactType.PROTOCOL:
        yield f"equivalence_probe: {said.equivalence_probe or NOT_PROVIDED}"
    yield "[AUDIT_EXACT]"
    yield f"defect: {said.defect or NOT_PROVIDED}"
    yield f"patch: {said.patch or NOT_PROVIDED}"
    yield f"step: {said.step or NOT_PROVIDED}"


def _join_or_missing(values: Iterable[str] | None, most: int = 5) -> str:
    return "; ".join(list(values or ())[:most]) or NOT_PROVIDED


def render_decision_model(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    judge = item.judgement
    drivers = ", ".join(f"{d.name}({d.strength or '-'})" for d in judge.drivers or () if d.name)
    yield "[DECISION_MODEL]"
    yield f"domain_type: {item.domain_type}"
    yield f"drivers: {drivers or '-'}"
    yield f"critical_driver: {item.critical_driver}"
    yield f"impact_graph: {'; '.join(judge.impact_graph or ()) or '-'}"
    yield f"assumptions: {'; '.join([*(judge.assumptions or ()), *_simulated_specs(item)]) or '-'}"
    yield f"evidence_available: {'; '.join(judge.evidence_available or ()) or '-'}"
    yield f"uncertainties: {'; '.join(judge.uncertainties or ()) or '-'}"


def _simulated_specs(item: DecisionItem) -> list[str]:
    """The specifications that the kernel assumed for an incomplete plan."""
    if not item.simulated_specs:
        return []
    return [
        f"SIMULATED goal={to_one_line(item.title)}",
        "SIMULATED boundary=this item",
        "SIMULATED constraint=reversible steps only",
    ]


def render_binding(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    yield "[EVIDENCE_BINDING]"
    for dim, each in item.binding.items():
        yield (
            f"{dim}: rating={each.rating}; confidence={each.confidence}; "
            f"evidence_tier={each.tier}; drivers={','.join(each.drivers)}"
        )


def render_data_acquisition(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    """[DATA_ACQUISITION], the best value for its cost first."""
    yield "[DATA_ACQUISITION]"
    rows = []
    for each in item.judgement.data_acquisition or ():
        impact, cost = each.impact or Level.MED, each.cost or Level.MED
        text = f"{step_part(each.need or '-')} | {step_part(each.path or '-')}"
        rows.append((-impact.points / cost.points, f"{text} | impact={impact} | cost={cost}"))
    lines = [text for _, text in sorted(rows, key=lambda each: each[0])]
    if item.missing_ratings:
        lines.insert(0, "missing ratings | rate all four dimensions | impact=HIGH | cost=LOW")
    yield from (f"{number}. {line}" for number, line in enumerate(lines, 1))
    if not lines:
        yield "(none)"


def render_alternative(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    """[ALTERNATIVE], if the benefit is weak or the risk is high."""
    benefit, risk = item.binding[Dimension.BENEFIT], item.binding[Dimension.RISK]
    weak = benefit.rating is not Level.HIGH or benefit.confidence <= Confidence.LOW
    if not weak and risk.rating is not Level.HIGH:
        return
    said = item.judgement.alternative or JudgedAlternative()
    yield "[ALTERNATIVE]"
    if not said.text:
        yield "status: REQUIRED_NOT_PROVIDED"
        return
    yield f"text: {said.text}"
    yield f"driver_changes: {said.driver_changes or '-'}"
    yield f"tradeoffs: {said.tradeoffs or '-'}"


def render_probe(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    """[PROBE], while probing."""
    if item.state is not ItemState.PROBING:
        return
    yield "[PROBE]"
    found = probe_log.candidate_probe(item)
    if found is None:
        gaps = harness_gaps(ProbeLogEntry("-"), item.critical_driver, outcome.batch_id)
        yield f"harness: INVALID missing={','.join(gaps)}"
        return
    yield from (f"{name}: {value}" for name, value in entry_fields(found))


def entry_fields(it: ProbeLogEntry) -> Iterator[tuple[str, str]]:
    """The fields of a log entry."""
    for name in ENTRY_FIELDS:
        value = to_one_line(getattr(it, name))
        if name != "adopted" or value != "-":
            yield name, value


def render_probe_log(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    """[PROBE_LOG], if there is one to print or the item needs one."""
    entries = printed_probe_log(item)
    if not entries and item.state is not ItemState.PROBING:
        return
    yield "[PROBE_LOG]"
    if not entries:
        yield "(empty)"
    for each in entries:
        for place, (name, value) in enumerate(entry_fields(each)):
            yield f"{'  ' if place else '- '}{name}: {value}"


def render_review(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    yield "[REVIEW]"
    modes = (item.judgement.review or ())[:3]
    yield from (f"{number}. {each}" for number, each in enumerate(modes, 1))
    points = (item.judgement.contested_points or ())[:3]
    yield from (f"contested: {each}" for each in points)
    if not modes and not points:
        yield "(none)"


def render_delta(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    """[DELTA]: what broke, the change that answers it, and what the next run needs."""
    said = item.judgement.delta
    happened = item.events[0] if item.events else "no change"
    yield "[DELTA]"
    yield "[BREAK]"
    broke = (said and said.broke) or f"kernel: {happened}"
    # Free text that looks like the head of a block must not be parsed as one.
    yield f"- {broke}" if broke.startswith("[") else broke
    yield "[PATCH]"
    yield f"patch: {(said and said.patch) or 'kernel re-derivation only'}"
    if said and said.refs:
        yield f"refs: {', '.join(said.refs)}"
    yield from _render_audit_keys(item)
    yield from render_carry_keys(item)


def _render_audit_keys(item: DecisionItem) -> Iterator[str]:
    if item.is_audited:
        said = item.judgement.audit or ArtifactAudit()
        for name in ("defect", "patch", "step"):
            yield f"audit_exact_{name}={getattr(said, name) or NOT_PROVIDED}"
        if said.artifact_type is ArtifactType.PROTOCOL:
            yield f"artifact_audit_equivalence_probe={said.equivalence_probe or NOT_PROVIDED}"


def render_carry_keys(item: DecisionItem) -> Iterator[str]:
    """The values that a delta item would otherwise lose."""
    yield from _render_state_keys(item, PANEL_FIELDS)
    explicit = item.prev is not None and item.prev.from_prev_section
    yield f"state.prev_state={item.previous_state}"
    yield f"state.new_state={item.state}"
    yield f"state.prev_source={'EXPLICIT' if explicit else 'SNAPSHOT_RECOVERED'}"
    yield from _render_state_keys(item, CARRIED_FIELDS)
    for dim, each in item.binding.items():
        drivers = ",".join(each.drivers)
        yield f"binding.{dim}={each.rating};{each.confidence};{each.tier};{drivers}"
    for number, entry in enumerate(item.full_probe_log, 1):
        pairs = (f"{name}:{_percent_escape(value)}" for name, value in entry_fields(entry))
        yield f"probe.{number}={';'.join(pairs)}"


def _render_state_keys(item: DecisionItem, fields: Iterable[PanelField]) -> Iterator[str]:
    for each in fields:
        if value := each.render(getattr(item, each.attribute)):
            yield f"state.{each.name}={value}"


def _percent_escape(value: str) -> str:
    for letter in ESCAPED_CHARS:
        value = value.replace(letter, quote(letter))
    return value


def render_verdict_update(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    """[VERDICT_UPDATE], if the verdict changed."""
    prev = item.prev
    if prev is None or (prev.verdict in (None, item.verdict) and prev.state is item.state):
        return
    yield "[VERDICT_UPDATE]"
    yield f"verdict: {prev.verdict or '-'} -> {item.verdict}"
    yield f"state: {prev.state} -> {item.state}"
