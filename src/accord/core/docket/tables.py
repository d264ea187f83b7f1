"""Tables for people, made from a snapshot and never read back."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from accord.core.docket.model import Previous
from accord.core.docket.snapshot import Row, Snapshot
from accord.core.docket.words import Confidence, Level, Pace, Verdict

NONE = "(none)"
HUMAN = ("id", "verdict", "impact", "urgency", "ds", "term", "ct", "gate", "state", "exp", "next")
OPS = (
    *("pri", "item", "verdict", "driver", "gate", "ct", "evid", "conf", "debt", "probe"),
    *("load", "next"),
)
RISK = ("driver", "low_conf", "impact_w", "items", "debt", "gates")
LETTERS = {
    "VALIDATED": "V",
    "FALSIFIED": "F",
    "INCONCLUSIVE": "I",
    "EXPIRED": "X",
    "ACTIVE": "A",
}
MOST_ITEMS, MOST_GATES = 5, 3


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' for _ in heads)}|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def human(snap: Snapshot) -> Iterator[str]:
    """[HUMAN_TABLE]: the queue, for people."""
    yield "[HUMAN_TABLE]"
    yield from table(HUMAN, human_rows(snap))


def human_rows(snap: Snapshot) -> list[tuple[str, ...]]:
    """The cells of the queue, each as it stands there."""
    return [
        (
            *(row.id, row.verdict, row.impact, row.urgency, row.pace, row.term, row.closure),
            *(row.gate, f"{row.before}->{row.state}", row.expires, row.step),
        )
        for row in snap.queue
    ]


def level(text: str) -> int:
    """How much it matters; what nobody knows matters least."""
    found = Level.read(text)
    return found.points if found else 0


def first(row: Row) -> tuple[int, int, str]:
    """What matters most comes first."""
    return (-level(row.impact), -level(row.urgency), row.id)


def ready(snap: Snapshot) -> list[Row]:
    """What is for now, in the order to do it."""
    pace = {each.value: place for place, each in enumerate(Pace)}
    rows = [r for r in snap.queue if r.verdict == Verdict.DO_NOW and r.term == "N"]
    return sorted(rows, key=lambda r: (*first(r)[:2], pace.get(r.pace, len(pace)), r.id))


def priority(row: Row, places: dict[str, int]) -> str:
    """P1, P2, …, or why it has no place."""
    if row.id in places and row.verdict == Verdict.DO_NOW:
        return f"P{places[row.id]}"
    if row.verdict == Verdict.DISCARD:
        return "CUT"
    if row.term == "Y":
        return "DONE"
    return "LATER" if row.verdict == Verdict.DO_LATER else "-"


def ops(snap: Snapshot) -> Iterator[str]:
    """[HUMAN_TABLE_OPS]: what is ready, and what it rests on."""
    now = ready(snap)
    places = {row.id: place for place, row in enumerate(now, 1)}
    yield "[HUMAN_TABLE_OPS]"
    yield from table(OPS, [_ops(row, snap, places) for row in snap.queue])
    yield ""
    yield f"ACTIONS: {'; '.join(f'{r.id} {after(r.step)}' for r in now) or NONE}"
    watch = [r.id for r in snap.queue if _watched(r, snap.items.get(r.id))]
    yield f"WATCH: {', '.join(watch) or NONE}"
    waiting = [r.id for r in snap.queue if r.gate == "EXTERNAL_BLOCK"]
    yield f"WAITING: {', '.join(waiting) or NONE}"


def _watched(row: Row, it: Previous | None) -> bool:
    near = it.counters.get("nm", "0") if it else "0"
    return row.gate == "REDESIGN_TRIGGER" or (near.isdigit() and int(near[:6]) >= 2)


def _ops(row: Row, snap: Snapshot, places: dict[str, int]) -> tuple[str, ...]:
    it = snap.items.get(row.id) or Previous(row.id)
    debt = "CAP" if row.gate == "DEBT_CEILING" else it.debt.replace("NONE", "-")
    load = " ".join(f"{name}={it.counters[name]}" for name in ("tb", "cx") if name in it.counters)
    return (
        *(priority(row, places), row.id, row.verdict, it.critical or "-", row.gate, row.closure),
        *(it.tier, it.confidence or "-", debt, probes(it), load or "-", after(row.step)),
    )


def probes(it: Previous) -> str:
    """The counters, and what the last probe of the driver showed."""
    counts = " ".join(f"{name}{it.counters.get(name, '0')}" for name in ("pc", "nm", "inc"))
    mine = [each for each in it.log if each.target_driver == it.critical]
    return f"{counts} ({LETTERS[mine[-1].status] if mine else '-'})"


def after(step: str) -> str:
    """The output of a step."""
    return step.partition("->")[2].partition("|")[0].strip() or "-"


def risk(snap: Snapshot) -> Iterator[str]:
    """[RISK_DASHBOARD]: what the batch is least sure of."""
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in snap.queue:
        it = snap.items.get(row.id)
        if it and it.confidence is not None and it.confidence <= Confidence.LOW:
            groups[it.critical or "-"].append(row)
    rows = [(name, *_risk(found, snap)) for name, found in groups.items()]
    yield "[RISK_DASHBOARD]"
    yield from table(RISK, sorted(rows, key=lambda r: (-int(r[2]), -int(r[1]), r[0])))


def _risk(rows: list[Row], snap: Snapshot) -> tuple[str, ...]:
    debts = [snap.items[row.id].debt for row in rows]
    gates = sorted({row.gate for row in rows} - {"NONE"})
    names = [row.id for row in sorted(rows, key=first)]
    capped = "DEBT_CEILING" in gates
    owing = any(each != "NONE" for each in debts)
    return (
        str(len(rows)),
        str(sum(level(row.impact) for row in rows)),
        _some(names, MOST_ITEMS, ", "),
        "CAP" if capped else "OPEN" if owing else "-",
        _some(gates, MOST_GATES, ",") or "-",
    )


def _some(names: list[str], most: int, between: str) -> str:
    more = f"{between}+{len(names) - most}" if len(names) > most else ""
    return between.join(names[:most]) + more
