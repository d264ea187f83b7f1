"""A snapshot told in plain lines: nothing recomputed but four percentages."""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

from accord.core.docket.budget import COMPLEXITY, TIMEBOX
from accord.core.docket.model import Previous
from accord.core.docket.panels import TOP, gate_order
from accord.core.docket.scoring import tenth
from accord.core.docket.snapshot import Block, Row, Snapshot
from accord.core.docket.tables import first
from accord.core.docket.words import CONCLUSIVE, RUNNING, Level, State, Trigger, Verdict

ERROR = "ERROR: missing or invalid snapshot"
MISSING = "missing in snapshot"
NONE = "(none)"
CLOSURES = {"SIM": "SIMULATED", "REAL": "REAL", "-": "-"}


def report(snap: Snapshot, *, lite: bool) -> Iterator[str]:
    """The lines of a report."""
    yield "PA_PVP REPORT LITE" if lite else "PA_PVP REPORT"
    yield f"BatchID: {snap.batch_id or MISSING}"
    found = Counter(row.state for row in snap.queue)
    yield f"States: {' '.join(f'{each}={found[each]}' for each in State)}"
    now = [row.id for row in snap.queue if row.verdict == Verdict.DO_NOW and row.term == "N"]
    yield f"DO NOW: {', '.join(now) or NONE}"
    yield f"Blocked: {_blocked(snap)}"
    yield "Items (DO NOW or PROBING):"
    yield from _live(snap)
    yield "What to do next:"
    yield from _todo(snap)
    if not lite:
        yield from _details(snap)


def _blocked(snap: Snapshot) -> str:
    gated = [row for row in snap.queue if row.gate != "NONE"]
    gated.sort(key=lambda r: gate_order(Level.read(r.impact), State.read(r.state), r.id))
    return ", ".join(f"{row.id}={row.gate}" for row in gated[:TOP]) or NONE


def _of(snap: Snapshot, row: Row) -> Previous:
    return snap.items.get(row.id) or Previous(row.id)


def token(it: Previous) -> str:
    """The output of the next step, or nothing."""
    return it.next.output if it.next else ""


def _live(snap: Snapshot) -> Iterator[str]:
    for row in snap.queue:
        if row.term == "N" and (row.verdict == Verdict.DO_NOW or row.state == State.PROBING):
            it = _of(snap, row)
            yield (
                f"- {row.id}: gate={row.gate}; trigger={trigger(it)}; "
                f"driver={it.critical or MISSING}; conf={it.confidence or MISSING}; "
                f"next={token(it) or NONE}"
            )


def trigger(it: Previous) -> str:
    """As the snapshot says; one without a panel says nothing."""
    known = it.critical is not None or it.trigger is not Trigger.NONE
    return it.trigger if known else MISSING


def _todo(snap: Snapshot) -> Iterator[str]:
    rows = [row for row in snap.queue if token(_of(snap, row))]
    run = sorted((row for row in rows if row.state in RUNNING), key=first)
    yield from (f"- {row.id}: execute {token(_of(snap, row))}" for row in run)
    wait = [row for row in rows if row.state == State.STANDBY]
    yield from (f"- {row.id}: planned {token(_of(snap, row))}" for row in wait)
    if not run and not wait:
        yield f"- {NONE}"


def _details(snap: Snapshot) -> Iterator[str]:
    blocks = {each.id: each for each in reversed(snap.blocks)}
    yield "Details (non-terminal items):"
    for row in snap.queue:
        if row.term == "N":
            yield row.id
            yield from _detail(row, _of(snap, row), blocks.get(row.id, Block(row.id)))
    yield "Terminal items:"
    done = [row for row in snap.queue if row.term == "Y"]
    for row in done:
        yield (f"- {row.id}: {row.state} verdict={row.verdict} ct={row.closure} gate={row.gate}")
    if not done:
        yield f"- {NONE}"


def _detail(row: Row, it: Previous, block: Block) -> Iterator[str]:
    rated = "best_evidence_tier" in block.fields("DERIVED")
    told = "falsification_debt" in block.fields("ITEM_PANEL")
    carried = "state.falsification_debt" in block.fields("PATCH", "=")
    yield f"  state: {row.state}"
    yield f"  verdict: {row.verdict}"
    yield f"  gate: {row.gate}"
    yield f"  trigger: {trigger(it)}"
    yield f"  closure_tier: {CLOSURES.get(row.closure, MISSING)}"
    yield f"  best_evidence_tier: {it.tier if rated else MISSING}"
    yield f"  falsification_debt: {it.debt if told or carried else MISSING}"
    yield "  steps:"
    for number, each in enumerate(it.steps, 1):
        yield f"    S{number} [{each.status or 'PENDING'}] {each.short}"
    kind = "executable" if row.state in RUNNING else "planned"
    yield f"  next: {f'{token(it)} ({kind})' if token(it) else NONE}"
    yield from (f"  {name}: {value}" for name, value in metrics(it).items())


def metrics(it: Previous) -> dict[str, str]:
    """The four percentages."""
    done = sum(each.complete for each in it.steps)
    last = {each.probe_id: each.status for each in it.log}
    resolved = sum(each in CONCLUSIVE for each in last.values())
    return {
        "timebox_utilization_pct": _timebox(it),
        "complexity_utilization_pct": _complexity(it),
        "step_completion_pct": percent(done, len(it.steps)),
        "probe_resolution_pct": percent(resolved, len(last)),
    }


def percent(part: int, whole: int) -> str:
    """With one decimal; of nothing there is none."""
    return tenth(Decimal(100 * part) / whole) if whole else MISSING


def _counter(it: Previous, name: str) -> str:
    part, _, whole = it.counters.get(name, "").partition("/")
    good = all(each.isascii() and each.isdigit() and len(each) < 9 for each in (part, whole))
    return percent(int(part), int(whole)) if good else ""


def _timebox(it: Previous) -> str:
    if found := _counter(it, "tb"):
        return found
    if it.impact is None or not it.steps:
        return MISSING
    return percent(sum(each.minutes for each in it.steps), TIMEBOX[it.impact])


def _complexity(it: Previous) -> str:
    if found := _counter(it, "cx"):
        return found
    # Whether a dependency is open is not in an item's own block.
    if it.impact is None or it.critical is None or it.depends_on:
        return MISSING
    extras = (it.contested, it.missing_ratings, it.hedge, bool(it.uses), it.debt != "NONE")
    return percent(len(it.steps) + sum(extras), COMPLEXITY[it.impact])
