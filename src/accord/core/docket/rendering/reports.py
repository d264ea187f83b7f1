"""Tables and reports for people, rendered from a snapshot and never parsed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

from accord.core.docket.model import PreviousItem, complexity_tax
from accord.core.docket.probes import ProbeLogEntry
from accord.core.docket.rendering.snapshot_writer import MAX_LISTED, gate_sort_key
from accord.core.docket.rules.ratings import format_tenths
from accord.core.docket.snapshot import NONE_TEXT, DecisionSnapshot, ItemBlock, QueueRow
from accord.core.docket.triggers import Trigger
from accord.core.docket.vocabulary import (
    CLOSURE_TIER_TEXT,
    CONCLUSIVE_STATUSES,
    MAX_COMPLEXITY_TAX,
    RUNNING_STATES,
    TIMEBOX_MINUTES,
    ClosureTier,
    Confidence,
    ExecMode,
    ItemState,
    Level,
    ProbeStatus,
    Verdict,
)

# The cells of the queue, unchanged.
HUMAN_TABLE: dict[str, Callable[[QueueRow], str]] = {
    "id": lambda row: row.id,
    "verdict": lambda row: row.verdict,
    "impact": lambda row: row.impact,
    "urgency": lambda row: row.urgency,
    "ds": lambda row: row.exec_mode,
    "term": lambda row: row.terminal,
    "ct": lambda row: row.closure_tier,
    "gate": lambda row: row.gate,
    "state": lambda row: f"{row.previous_state}->{row.state}",
    "exp": lambda row: row.expires,
    "next": lambda row: row.step,
}
OPS_TABLE_HEADS = (
    *("pri", "item", "verdict", "driver", "gate", "ct", "evid", "conf", "debt", "probe"),
    *("load", "next"),
)
RISK_DASHBOARD_HEADS = ("driver", "low_conf", "impact_w", "items", "debt", "gates")
MAX_LISTED_ITEMS, MAX_LISTED_GATES = 5, 3


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' for _ in heads)}|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def render_human_table(snap: DecisionSnapshot) -> Iterator[str]:
    """[HUMAN_TABLE]: the queue, for people."""
    yield "[HUMAN_TABLE]"
    rows = ([cell(row) for cell in HUMAN_TABLE.values()] for row in snap.queue)
    yield from markdown_table(list(HUMAN_TABLE), rows)


def level_points(text: str) -> int:
    """The points of a level; 0 for an unknown one."""
    found = Level.parse(text)
    return found.points if found else 0


def importance_key(row: QueueRow) -> tuple[int, int, str]:
    """Sorts the most important rows first."""
    return (-level_points(row.impact), -level_points(row.urgency), row.id)


def ready_rows(snap: DecisionSnapshot) -> list[QueueRow]:
    """The DO NOW rows, in the order of execution."""
    pace = {each.value: place for place, each in enumerate(ExecMode)}
    rows = [r for r in snap.queue if r.verdict == Verdict.DO_NOW and r.terminal == "N"]
    return sorted(
        rows, key=lambda r: (*importance_key(r)[:2], pace.get(r.exec_mode, len(pace)), r.id)
    )


def priority_label(row: QueueRow, places: dict[str, int]) -> str:
    """P1, P2, …, or why the row is not ready."""
    if row.id in places and row.verdict == Verdict.DO_NOW:
        return f"P{places[row.id]}"
    if row.verdict == Verdict.DISCARD:
        return "CUT"
    if row.terminal == "Y":
        return "DONE"
    return "LATER" if row.verdict == Verdict.DO_LATER else "-"


def render_ops_table(snap: DecisionSnapshot) -> Iterator[str]:
    """[HUMAN_TABLE_OPS]: what is ready, and the evidence behind it."""
    now = ready_rows(snap)
    places = {row.id: place for place, row in enumerate(now, 1)}
    yield "[HUMAN_TABLE_OPS]"
    yield from markdown_table(
        OPS_TABLE_HEADS, [_ops_cells(row, snap, places) for row in snap.queue]
    )
    yield ""
    yield f"ACTIONS: {'; '.join(f'{r.id} {output_of(r.step)}' for r in now) or NONE_TEXT}"
    watch = [r.id for r in snap.queue if _is_watched(r, snap.items.get(r.id))]
    yield f"WATCH: {', '.join(watch) or NONE_TEXT}"
    waiting = [r.id for r in snap.queue if r.gate == "EXTERNAL_BLOCK"]
    yield f"WAITING: {', '.join(waiting) or NONE_TEXT}"


def _is_watched(row: QueueRow, it: PreviousItem | None) -> bool:
    near = it.counters.get("nm", "0") if it else "0"
    return row.gate == "REDESIGN_TRIGGER" or (near.isdigit() and int(near[:6]) >= 2)


def _ops_cells(row: QueueRow, snap: DecisionSnapshot, places: dict[str, int]) -> tuple[str, ...]:
    it = snap.items.get(row.id) or PreviousItem(row.id)
    debt = "CAP" if row.gate == "DEBT_CEILING" else it.falsification_debt.replace("NONE", "-")
    load = " ".join(f"{name}={it.counters[name]}" for name in ("tb", "cx") if name in it.counters)
    return (
        *(priority_label(row, places), row.id, row.verdict, it.critical_driver or "-", row.gate),
        *(row.closure_tier, it.best_evidence_tier, it.confidence or "-", debt),
        *(probe_summary(it), load or "-", output_of(row.step)),
    )


def probe_summary(it: PreviousItem) -> str:
    """The probe counters, and the result of the last probe of the critical driver."""
    counts = " ".join(f"{name}{it.counters.get(name, '0')}" for name in ("pc", "nm", "inc"))
    mine = [each for each in it.probe_log if each.target_driver == it.critical_driver]
    return f"{counts} ({_status_letter(mine[-1]) if mine else '-'})"


def _status_letter(entry: ProbeLogEntry) -> str:
    """V, F, I or A, its first letter; X if it is expired."""
    return "X" if entry.status is ProbeStatus.EXPIRED else entry.status[0]


def output_of(step: str) -> str:
    return step.partition("->")[2].partition("|")[0].strip() or "-"


def render_risk_dashboard(snap: DecisionSnapshot) -> Iterator[str]:
    """[RISK_DASHBOARD]: where the batch is least certain."""
    groups: defaultdict[str, list[QueueRow]] = defaultdict(list)
    for row in snap.queue:
        it = snap.items.get(row.id)
        if it and it.confidence is not None and it.confidence <= Confidence.LOW:
            groups[it.critical_driver or "-"].append(row)
    rows = [(name, *_risk_cells(found, snap)) for name, found in groups.items()]
    yield "[RISK_DASHBOARD]"
    yield from markdown_table(
        RISK_DASHBOARD_HEADS, sorted(rows, key=lambda r: (-int(r[2]), -int(r[1]), r[0]))
    )


def _risk_cells(rows: list[QueueRow], snap: DecisionSnapshot) -> tuple[str, ...]:
    debts = [snap.items[row.id].falsification_debt for row in rows]
    gates = sorted({row.gate for row in rows} - {"NONE"})
    names = [row.id for row in sorted(rows, key=importance_key)]
    capped = "DEBT_CEILING" in gates
    owing = any(each != "NONE" for each in debts)
    return (
        str(len(rows)),
        str(sum(level_points(row.impact) for row in rows)),
        _join_limited(names, MAX_LISTED_ITEMS, ", "),
        "CAP" if capped else "OPEN" if owing else "-",
        _join_limited(gates, MAX_LISTED_GATES, ",") or "-",
    )


def _join_limited(names: list[str], most: int, between: str) -> str:
    more = f"{between}+{len(names) - most}" if len(names) > most else ""
    return between.join(names[:most]) + more


# The tables that follow a snapshot, in their order.
TABLES = (render_human_table, render_ops_table, render_risk_dashboard)

INVALID_SNAPSHOT_ERROR = "ERROR: missing or invalid snapshot"
MISSING_IN_SNAPSHOT = "missing in snapshot"


def render_report(snap: DecisionSnapshot, *, lite: bool) -> Iterator[str]:
    yield "PA_PVP REPORT LITE" if lite else "PA_PVP REPORT"
    yield f"BatchID: {snap.batch_id or MISSING_IN_SNAPSHOT}"
    found = Counter(row.state for row in snap.queue)
    yield f"States: {' '.join(f'{each}={found[each]}' for each in ItemState)}"
    now = [row.id for row in snap.queue if row.verdict == Verdict.DO_NOW and row.terminal == "N"]
    yield f"DO NOW: {', '.join(now) or NONE_TEXT}"
    yield f"Blocked: {_blocked_items(snap)}"
    yield "Items (DO NOW or PROBING):"
    yield from _render_live(snap)
    yield "What to do next:"
    yield from _render_next_actions(snap)
    if not lite:
        yield from _render_details(snap)


def _blocked_items(snap: DecisionSnapshot) -> str:
    gated = [row for row in snap.queue if row.gate != "NONE"]
    gated.sort(key=lambda r: gate_sort_key(Level.parse(r.impact), ItemState.parse(r.state), r.id))
    return ", ".join(f"{row.id}={row.gate}" for row in gated[:MAX_LISTED]) or NONE_TEXT


def _previous_of(snap: DecisionSnapshot, row: QueueRow) -> PreviousItem:
    return snap.items.get(row.id) or PreviousItem(row.id)


def next_token(it: PreviousItem) -> str:
    return it.next_step.output if it.next_step else ""


def _render_live(snap: DecisionSnapshot) -> Iterator[str]:
    for row in snap.queue:
        if row.terminal == "N" and (
            row.verdict == Verdict.DO_NOW or row.state == ItemState.PROBING
        ):
            it = _previous_of(snap, row)
            yield (
                f"- {row.id}: gate={row.gate}; trigger={trigger_text(it)}; "
                f"driver={it.critical_driver or MISSING_IN_SNAPSHOT}; "
                f"conf={it.confidence or MISSING_IN_SNAPSHOT}; "
                f"next={next_token(it) or NONE_TEXT}"
            )


def trigger_text(it: PreviousItem) -> str:
    """The trigger in the snapshot, or a placeholder if the item has no panel."""
    known = it.critical_driver is not None or it.trigger is not Trigger.NONE
    return it.trigger if known else MISSING_IN_SNAPSHOT


def _render_next_actions(snap: DecisionSnapshot) -> Iterator[str]:
    rows = [row for row in snap.queue if next_token(_previous_of(snap, row))]
    run = sorted((row for row in rows if row.state in RUNNING_STATES), key=importance_key)
    yield from (f"- {row.id}: execute {next_token(_previous_of(snap, row))}" for row in run)
    wait = [row for row in rows if row.state == ItemState.STANDBY]
    yield from (f"- {row.id}: planned {next_token(_previous_of(snap, row))}" for row in wait)
    if not run and not wait:
        yield f"- {NONE_TEXT}"


def _render_details(snap: DecisionSnapshot) -> Iterator[str]:
    blocks = {each.id: each for each in reversed(snap.blocks)}
    yield "Details (non-terminal items):"
    for row in snap.queue:
        if row.terminal == "N":
            yield row.id
            yield from _render_detail(
                row, _previous_of(snap, row), blocks.get(row.id, ItemBlock(row.id))
            )
    yield "Terminal items:"
    done = [row for row in snap.queue if row.terminal == "Y"]
    for row in done:
        yield (
            f"- {row.id}: {row.state} verdict={row.verdict} ct={row.closure_tier} gate={row.gate}"
        )
    if not done:
        yield f"- {NONE_TEXT}"


def _render_detail(row: QueueRow, it: PreviousItem, block: ItemBlock) -> Iterator[str]:
    rated = "best_evidence_tier" in block.fields("DERIVED")
    told = "falsification_debt" in block.fields("ITEM_PANEL")
    carried = "state.falsification_debt" in block.fields("PATCH", "=")
    yield f"  state: {row.state}"
    yield f"  verdict: {row.verdict}"
    yield f"  gate: {row.gate}"
    yield f"  trigger: {trigger_text(it)}"
    closure = ClosureTier.parse(row.closure_tier)
    yield f"  closure_tier: {CLOSURE_TIER_TEXT[closure] if closure else MISSING_IN_SNAPSHOT}"
    yield f"  best_evidence_tier: {it.best_evidence_tier if rated else MISSING_IN_SNAPSHOT}"
    debt = it.falsification_debt if told or carried else MISSING_IN_SNAPSHOT
    yield f"  falsification_debt: {debt}"
    yield "  steps:"
    for number, each in enumerate(it.steps, 1):
        yield f"    S{number} [{each.status or 'PENDING'}] {each.action_and_output}"
    kind = "executable" if row.state in RUNNING_STATES else "planned"
    yield f"  next: {f'{next_token(it)} ({kind})' if next_token(it) else NONE_TEXT}"
    yield from (f"  {name}: {value}" for name, value in metrics(it).items())


def metrics(it: PreviousItem) -> dict[str, str]:
    """The four percentages."""
    done = sum(each.is_complete for each in it.steps)
    last = {each.probe_id: each.status for each in it.probe_log}
    resolved = sum(each in CONCLUSIVE_STATUSES for each in last.values())
    return {
        "timebox_utilization_pct": _timebox_percent(it),
        "complexity_utilization_pct": _complexity_percent(it),
        "step_completion_pct": format_percent(done, len(it.steps)),
        "probe_resolution_pct": format_percent(resolved, len(last)),
    }


def format_percent(part: int, whole: int) -> str:
    """The percentage with one decimal, or a placeholder if the whole is 0."""
    return format_tenths(Decimal(100 * part) / whole) if whole else MISSING_IN_SNAPSHOT


def _counter_percent(it: PreviousItem, name: str) -> str:
    part, _, whole = it.counters.get(name, "").partition("/")
    good = all(each.isascii() and each.isdigit() and len(each) < 9 for each in (part, whole))
    return format_percent(int(part), int(whole)) if good else ""


def _timebox_percent(it: PreviousItem) -> str:
    if found := _counter_percent(it, "tb"):
        return found
    if it.impact is None or not it.steps:
        return MISSING_IN_SNAPSHOT
    return format_percent(sum(each.minutes for each in it.steps), TIMEBOX_MINUTES[it.impact])


def _complexity_percent(it: PreviousItem) -> str:
    if found := _counter_percent(it, "cx"):
        return found
    # The block of an item does not tell whether its dependencies are open.
    if it.impact is None or it.critical_driver is None or it.depends_on:
        return MISSING_IN_SNAPSHOT
    tax = complexity_tax(it, len(it.steps), waits=False)
    return format_percent(tax, MAX_COMPLEXITY_TAX[it.impact])
