"""Renders an outcome as a snapshot, the text that is state; deterministic to the byte."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from accord.core.docket.model import DecisionItem, DecisionOutcome
from accord.core.docket.rendering import item_blocks
from accord.core.docket.rules.ratings import cost_of_delay
from accord.core.docket.rules.step_plan import has_executable_step
from accord.core.docket.snapshot import NONE_TEXT, panel_question, panel_settings, queue_row_of
from accord.core.docket.text_values import escape_non_ascii, format_resources, yes_no
from accord.core.docket.triggers import DominantGate
from accord.core.docket.vocabulary import (
    RUNNING_STATES,
    SETTLED_STATES,
    TERMINAL_STATES,
    ItemState,
    Level,
    ProbeStatus,
    Surface,
    Verdict,
)

STATE_LINE = "STATE: DECISION.TEST.FINAL"
FENCE = "```"

BlockRenderer = Callable[[DecisionItem, DecisionOutcome], Iterator[str]]


def render_block(outcome: DecisionOutcome) -> str:
    """The lines between the fences, each with its line break."""
    return "".join(f"{escape_non_ascii(line.rstrip())}\n" for line in render_lines(outcome))


def render_fenced(outcome: DecisionOutcome) -> str:
    """The snapshot in its code fence."""
    return fence(render_block(outcome))


def fence(block: str) -> str:
    """A rendered snapshot in its code fence."""
    return f"{FENCE}text\n{block}{FENCE}\n"


def snapshot_hash(outcome: DecisionOutcome) -> str:
    """SHA-256 over the snapshot; stored beside the snapshot, never in it."""
    return hash_of(render_block(outcome))


def hash_of(block: str) -> str:
    """SHA-256 over a rendered snapshot."""
    return hashlib.sha256(block.encode()).hexdigest()


def render_lines(outcome: DecisionOutcome) -> Iterator[str]:
    yield STATE_LINE
    if not outcome.is_valid:
        yield from _render_invalid(outcome)
        return
    yield from render_user_panel(outcome)
    yield from render_panel(outcome)
    yield "[QUEUE]"
    yield from (queue_row_of(item).render() for item in outcome.items)
    if outcome.config.recovery:
        yield "[RECOVERY_INPUT]"
        yield from render_recovery_input(outcome)
    for item in outcome.items:
        yield from render_item(item, outcome)


def _render_invalid(outcome: DecisionOutcome) -> Iterator[str]:
    """The lines of an invalid outcome, which must not be used as state."""
    verdict = ["OutputValidity: INVALID", f"InvalidReason: {outcome.invalid_reason}"]
    yield from ["[USER_PANEL]", f"BatchID: {outcome.batch_id}", *verdict]
    yield from ["[PANEL]", "Protocol: PA_PVP", f"BatchID: {outcome.batch_id}", *verdict]
    if outcome.coverage_diff:
        yield f"CoverageDiff: {outcome.coverage_diff}"


MIN_SURFACE, MIN, DEBUG, DELTA = Surface.MIN_SURFACE, Surface.MIN, Surface.DEBUG, Surface.DELTA
# The blocks of an item in their order, each with the surfaces that show it.
ITEM_BLOCKS: tuple[tuple[BlockRenderer, frozenset[Surface]], ...] = (
    (item_blocks.render_item_panel, frozenset({MIN_SURFACE, MIN, DEBUG})),
    (item_blocks.render_derived, frozenset(Surface)),
    (item_blocks.render_delta, frozenset({DELTA})),
    (item_blocks.render_verdict_update, frozenset({DELTA})),
    (item_blocks.render_steps, frozenset(Surface)),
    (item_blocks.render_audit, frozenset({MIN_SURFACE, MIN, DEBUG})),
    (item_blocks.render_decision_model, frozenset({DEBUG})),
    (item_blocks.render_binding, frozenset({DEBUG})),
    (item_blocks.render_data_acquisition, frozenset({DEBUG})),
    (item_blocks.render_alternative, frozenset({DEBUG})),
    (item_blocks.render_probe, frozenset({MIN, DEBUG})),
    (item_blocks.render_probe_log, frozenset({MIN_SURFACE, MIN, DEBUG})),
    (item_blocks.render_review, frozenset({DEBUG})),
    (item_blocks.render_next, frozenset(Surface)),
)


def render_item(item: DecisionItem, outcome: DecisionOutcome) -> Iterator[str]:
    yield f"[ITEM id={item.id}]"
    for render, surfaces in ITEM_BLOCKS:
        if item.surface in surfaces:
            yield from render(item, outcome)


def render_recovery_input(outcome: DecisionOutcome) -> Iterator[str]:
    """The batch as input text, for a run from scratch."""
    pool = format_resources(outcome.resource_pool) if outcome.resource_pool else ""
    yield (
        f"<<<B exec_capability={outcome.exec_capability} close_policy={outcome.close_policy}"
        f" ssot_scale={outcome.ssot_scale} resource_pool={pool} batch_id={outcome.batch_id}>>>"
    )
    for item in outcome.items:
        yield f"<<<I id={item.id}>>>"
        yield "<<<PREV>>>"
        yield from render_item(item, outcome)
        yield "<<<END>>>"


SSOT_STATUS = (
    "InteropLayer=ACTIVE; Batch=ACTIVE; PingPong=ACTIVE; Scoring=ACTIVE; Lifecycle=ACTIVE; "
    "Debt=ACTIVE; RealityProbe=ACTIVE; RepresentativenessLite=ACTIVE; HedgeAction=ACTIVE; "
    "TruthOrDare=ACTIVE; AlternativeSearch=ACTIVE; EvidenceQualityTier=ACTIVE; "
    "Contestation=ACTIVE; Dependencies=ACTIVE; OutputConsumerContract=ACTIVE; "
    "DomainExpiryDefaults=ACTIVE; ProbeTTL=ACTIVE; ExpiryPauseWithActiveProbe=ACTIVE; "
    "MissingRatingsHandling=ACTIVE; ArtifactMode=ACTIVE; TargetAnalysisMode=ACTIVE; "
    "SNRGate=ENFORCED_PLAN_ONLY"
)
MAX_LISTED = 5


def render_user_panel(outcome: DecisionOutcome) -> Iterator[str]:
    """[USER_PANEL]: the overview for people."""
    items = outcome.items
    yield "[USER_PANEL]"
    yield f"BatchID: {outcome.batch_id}"
    yield f"SummaryCounts: {' | '.join(totals(items))}"
    gates = ", ".join(f"{each.id}={each.dominant_gate}" for each in top_gates(items))
    yield f"TopGates: {gates or 'NONE'}"
    yield f"Now: {list_ids(each for each in items if _is_open(each, Verdict.DO_NOW))}"
    yield f"Later: {list_ids(each for each in items if _is_open(each, Verdict.DO_LATER))}"
    yield f"Cut: {list_ids(each for each in items if each.verdict is Verdict.DISCARD)}"
    yield "NextActions:"
    actions = [each for each in items if has_executable_step(each)]
    actions = sorted(actions, key=executor_sort_key)[:MAX_LISTED]
    yield from (f"- {each.id}: {next_token(each)}" for each in actions)
    if not actions:
        yield f"- {NONE_TEXT}"


def render_panel(outcome: DecisionOutcome) -> Iterator[str]:
    """[PANEL]: what the next run needs."""
    yield "[PANEL]"
    yield "Protocol: PA_PVP"
    yield f"SSOT_STATUS: {SSOT_STATUS}"
    yield "interaction_ssot: PA_PVP"
    yield "decision_ssot: PA_PVP"
    yield from (f"{name}: {value}" for name, value in panel_settings(outcome).items())
    yield f"Items: {len(outcome.items)}"
    yield "InputInventory:"
    for name, mode, ok, missing in outcome.inventory:
        lacks = ",".join(missing) or "none"
        yield f"- {name} | {mode} | parsed_ok={yes_no(ok)} | missing_fields={lacks}"
    yield from render_counts(outcome)


def render_counts(outcome: DecisionOutcome) -> Iterator[str]:
    """The totals of the batch, and the question to the user."""
    items = outcome.items
    still = sum(each.state not in SETTLED_STATES for each in items)
    closed = sum(
        each.prev is not None
        and each.previous_state not in SETTLED_STATES
        and each.state in SETTLED_STATES
        for each in items
    )
    probes = {e.probe_id for i in items for e in i.full_probe_log if e.status is ProbeStatus.ACTIVE}
    states, verdicts, impacts = totals(items)
    yield f"StatusCounts: {states}"
    yield f"PingPongCounts: PP_OPEN={still} PP_CLOSED_THIS_RUN={closed}"
    yield f"VerdictCounts: {verdicts}"
    yield f"ImpactCounts: {impacts}"
    yield (
        f"Governance: FalsificationDebtDrivers {len(outcome.debt_drivers)}/2 | "
        f"ActiveProbes {len(probes)} | HedgeActionsActive {sum(it.hedge_active for it in items)}"
    )
    yield from (f"{name}: {value}" for name, value in panel_question(outcome).items())
    yield f"CopyPasteMode: {'MANUAL' if outcome.config.manual else 'NO_LOOK'}"


def next_token(item: DecisionItem) -> str:
    return item.next_step.output if item.next_step else NONE_TEXT


def totals(items: list[DecisionItem]) -> tuple[str, str, str]:
    """How many items there are of each state, verdict and impact."""
    return (
        _count(ItemState, (each.state for each in items)),
        _count(Verdict, (each.verdict for each in items)),
        _count(Level, (each.impact for each in items)),
    )


def _count(words: Iterable[str], values: Iterable[str]) -> str:
    found = Counter(values)
    return " ".join(f"{each.replace(' ', '_')}={found[each]}" for each in words)


def list_ids(items: Iterable[DecisionItem]) -> str:
    return ", ".join(each.id for each in items) or NONE_TEXT


def _is_open(item: DecisionItem, verdict: Verdict) -> bool:
    return item.verdict is verdict and item.state not in TERMINAL_STATES


def top_gates(items: Iterable[DecisionItem]) -> list[DecisionItem]:
    """The gates of the most important items."""
    gated = [each for each in items if each.dominant_gate is not DominantGate.NONE]
    return sorted(gated, key=lambda each: gate_sort_key(each.impact, each.state, each.id))[
        :MAX_LISTED
    ]


def gate_sort_key(impact: Level | None, state: ItemState | None, name: str) -> tuple[int, int, str]:
    """Order by impact, then state, then id."""
    alive = 0 if state in RUNNING_STATES else 1 if state is ItemState.STANDBY else 2
    return (-impact.rank if impact else 1, alive, name)


def executor_sort_key(item: DecisionItem) -> tuple[int, int, int, str]:
    """Order by impact, urgency, cost of delay, then id."""
    cost = cost_of_delay(item)
    late = -cost.rank if cost else 1
    return (-item.impact.rank, -item.urgency.rank, late, item.id)
