"""The panels of a batch and its queue."""

from collections import Counter
from collections.abc import Iterable, Iterator

from accord.core.docket.evidence import delay
from accord.core.docket.model import Item, Outcome
from accord.core.docket.plan import executable
from accord.core.docket.text import one_line, shown
from accord.core.docket.words import (
    RUNNING,
    TERMINAL,
    Closure,
    Found,
    Gate,
    Level,
    State,
    Verdict,
)

STATUS = (
    "InteropLayer=ACTIVE; Batch=ACTIVE; PingPong=ACTIVE; Scoring=ACTIVE; Lifecycle=ACTIVE; "
    "Debt=ACTIVE; RealityProbe=ACTIVE; RepresentativenessLite=ACTIVE; HedgeAction=ACTIVE; "
    "TruthOrDare=ACTIVE; AlternativeSearch=ACTIVE; EvidenceQualityTier=ACTIVE; "
    "Contestation=ACTIVE; Dependencies=ACTIVE; OutputConsumerContract=ACTIVE; "
    "DomainExpiryDefaults=ACTIVE; ProbeTTL=ACTIVE; ExpiryPauseWithActiveProbe=ACTIVE; "
    "MissingRatingsHandling=ACTIVE; ArtifactMode=ACTIVE; TargetAnalysisMode=ACTIVE; "
    "SNRGate=ENFORCED_PLAN_ONLY"
)
TOP = 5
NONE = "(none)"
PENDING = frozenset({State.CLOSED, State.DISCARDED})


def user_panel(outcome: Outcome) -> Iterator[str]:
    """What a person looks at first."""
    items = outcome.items
    yield "[USER_PANEL]"
    yield f"BatchID: {outcome.batch_id}"
    yield f"SummaryCounts: {states(items)} | {verdicts(items)} | {impacts(items)}"
    gates = ", ".join(f"{each.id}={each.gate}" for each in top_gates(items))
    yield f"TopGates: {gates or 'NONE'}"
    yield f"Now: {listed(each for each in items if _open(each, Verdict.DO_NOW))}"
    yield f"Later: {listed(each for each in items if _open(each, Verdict.DO_LATER))}"
    yield f"Cut: {listed(each for each in items if each.verdict is Verdict.DISCARD)}"
    yield "NextActions:"
    actions = [each for each in items if executable(each)]
    actions = sorted(actions, key=executor_order)[:TOP]
    yield from (f"- {each.id}: {token(each)}" for each in actions)
    if not actions:
        yield f"- {NONE}"


def panel(outcome: Outcome) -> Iterator[str]:
    """What a machine needs to go on."""
    yield "[PANEL]"
    yield "Protocol: PA_PVP"
    yield f"SSOT_STATUS: {STATUS}"
    yield "interaction_ssot: PA_PVP"
    yield "decision_ssot: PA_PVP"
    yield f"ExecCapability: {outcome.runtime}"
    yield f"ClosePolicy: {outcome.close_policy}"
    yield f"SSOTScale: {outcome.scale}"
    if outcome.pool:
        yield f"ResourcePool: {shown(outcome.pool)}"
    yield f"BatchID: {outcome.batch_id}"
    yield f"Items: {len(outcome.items)}"
    yield "InputInventory:"
    for name, mode, ok, missing in outcome.inventory:
        lacks = ",".join(missing) or "none"
        yield f"- {name} | {mode} | parsed_ok={'YES' if ok else 'NO'} | missing_fields={lacks}"
    yield from counts(outcome)


def counts(outcome: Outcome) -> Iterator[str]:
    """What it adds up to, and the one question."""
    items = outcome.items
    still = sum(each.state not in PENDING for each in items)
    closed = sum(
        each.prev is not None and each.before not in PENDING and each.state in PENDING
        for each in items
    )
    probes = {e.probe_id for i in items for e in i.log_out if e.status is Found.ACTIVE}
    yield f"StatusCounts: {states(items)}"
    yield f"PingPongCounts: PP_OPEN={still} PP_CLOSED_THIS_RUN={closed}"
    yield f"VerdictCounts: {verdicts(items)}"
    yield f"ImpactCounts: {impacts(items)}"
    yield (
        f"Governance: FalsificationDebtDrivers {len(outcome.debt_drivers)}/2 | "
        f"ActiveProbes {len(probes)} | HedgeActionsActive {sum(each.hedge for each in items)}"
    )
    yield f"AskUserMode: {outcome.ask_mode}"
    yield f"AskUser: {one_line(outcome.ask) or 'NONE'}"
    yield f"CopyPasteMode: {'MANUAL' if outcome.config.manual else 'NO_LOOK'}"


def row(item: Item) -> str:
    """An item's line of the queue."""
    cells = (
        item.id,
        f"{item.before}->{item.state}",
        item.verdict,
        item.impact,
        item.urgency,
        f"ds:{item.pace}",
        f"term:{'Y' if item.state in TERMINAL else 'N'}",
        f"ct:{item.closure}",
        f"pp:{'CLOSED' if item.state in PENDING else 'OPEN'}",
        f"exp:{item.expires}",
        f"gate:{item.gate}",
        f"S{item.next}: {item.next_step.short}" if item.next_step else NONE,
    )
    return " | ".join(cells)


def token(item: Item) -> str:
    """The output of the next step."""
    return item.next_step.output if item.next_step else NONE


def states(items: Iterable[Item]) -> str:
    """How many stand where."""
    found = Counter(each.state for each in items)
    return " ".join(f"{each}={found[each]}" for each in State)


def verdicts(items: Iterable[Item]) -> str:
    """How many are for now, later and never."""
    found = Counter(each.verdict for each in items)
    return " ".join(f"{each.replace(' ', '_')}={found[each]}" for each in Verdict)


def impacts(items: Iterable[Item]) -> str:
    """How many matter how much."""
    found = Counter(each.impact for each in items)
    return " ".join(f"{each}={found[each]}" for each in Level)


def listed(items: Iterable[Item]) -> str:
    """Their names."""
    return ", ".join(each.id for each in items) or NONE


def _open(item: Item, verdict: Verdict) -> bool:
    return item.verdict is verdict and item.state not in TERMINAL


def top_gates(items: Iterable[Item]) -> list[Item]:
    """What stands in the way of what matters most."""
    gated = [each for each in items if each.gate is not Gate.NONE]
    return sorted(gated, key=lambda each: gate_order(each.impact, each.state, each.id))[:TOP]


def gate_order(impact: Level | None, state: State | None, name: str) -> tuple[int, int, str]:
    """By impact, then by how alive, then by name."""
    alive = 0 if state in RUNNING else 1 if state is State.STANDBY else 2
    return (-impact.rank if impact else 1, alive, name)


def executor_order(item: Item) -> tuple[int, int, int, str]:
    """Impact, urgency, what waiting costs, name."""
    cost = delay(item)
    late = -cost.rank if cost else 1
    return (-item.impact.rank, -item.urgency.rank, late, item.id)


CLOSURES = {Closure.SIM: "SIMULATED", Closure.REAL: "REAL", Closure.OPEN: "-"}
