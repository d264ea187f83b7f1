"""A snapshot that somebody else wrote, held against the rules; and made right where it can be."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from accord.core.docket import graph, lint
from accord.core.docket.budget import COMPLEXITY, MOST_DEBT, TIMEBOX
from accord.core.docket.intake import waived_by
from accord.core.docket.lint import REASONS, Flaw
from accord.core.docket.model import Previous
from accord.core.docket.panels import CLOSURES
from accord.core.docket.probes import counted
from accord.core.docket.snapshot import OPEN_DEBT, Block, Row, Snapshot
from accord.core.docket.text import resources
from accord.core.docket.word import Word
from accord.core.docket.words import (
    GATES,
    RUNNING,
    SETTLED,
    TERMINAL,
    VERDICTS,
    Closure,
    Confidence,
    Domain,
    Flag,
    Gate,
    Level,
    Mode,
    Pace,
    Profile,
    Reversibility,
    State,
    Tier,
    Trigger,
    Verdict,
)

WORDS: dict[str, type[Word]] = {
    "mode": Mode,
    "profile": Profile,
    "domain_type": Domain,
    "verdict": Verdict,
    "impact": Level,
    "urgency": Level,
    "contested": Flag,
    "missing_ratings": Flag,
    "critical_driver_confidence": Confidence,
    "reversibility": Reversibility,
    "trigger": Trigger,
    "dominant_gate": Gate,
}


@dataclass(slots=True)
class Checked:
    """What is wrong with a snapshot."""

    flaws: list[Flaw] = field(default_factory=list)

    @property
    def result(self) -> str:
        """VALID, REPAIRABLE, or INVALID with the strongest reason."""
        reasons = {each.reason for each in self.flaws}
        found = next((each for each in REASONS if each in reasons), "")
        return f"INVALID({found})" if found else "REPAIRABLE" if reasons else "VALID"

    def lines(self) -> Iterator[str]:
        """One for each flaw, then the result."""
        for each in sorted(self.flaws, key=lambda flaw: (flaw.line, flaw.code)):
            yield f"{each.code} {each.item} {each.detail}; {each.hint}"
        yield f"RESULT: {self.result}"


def check(snap: Snapshot | None, expected: Iterable[str] = (), fences: int = 1) -> Checked:
    """Everything that is wrong with a snapshot."""
    made = Checked()
    if snap is None:
        made.flaws.append(Flaw("V01", "-", "there is no line STATE: DECISION.TEST.FINAL"))
        return made
    if snap.lines[0].strip() != "STATE: DECISION.TEST.FINAL":
        made.flaws.append(Flaw("V01", "-", snap.lines[0].strip()[:80], snap.first))
    if fences > 1:
        made.flaws.append(Flaw("V02", "-", f"{fences} code blocks", snap.first))
    made.flaws += lint.lint(snap)
    made.flaws += _coverage(snap, list(expected))
    # Of several blocks of one id the first is the item; the others were rejected.
    for block in {each.id: each for each in reversed(snap.blocks)}.values():
        made.flaws += _item(block, snap)
    made.flaws += _batch(snap)
    return made


def _coverage(snap: Snapshot, expected: list[str]) -> Iterator[Flaw]:
    queue = Counter(row.id for row in snap.queue)
    items = Counter(block.id for block in snap.blocks)
    wanted = Counter(expected) if expected else queue
    if set(queue) != set(wanted):
        yield Flaw("V06", "-", diff(set(wanted), set(queue)), snap.first)
    if set(items) != set(wanted) or (not expected and items != queue):
        yield Flaw("V07", "-", diff(set(wanted), set(items)), snap.first)


def diff(wanted: set[str], found: set[str]) -> str:
    """Who is missing and who is too many."""
    missing, extra = ",".join(sorted(wanted - found)), ",".join(sorted(found - wanted))
    return f"missing={{{missing}}}; extra={{{extra}}}"


def _item(block: Block, snap: Snapshot) -> Iterator[Flaw]:
    row = snap.rows.get(block.id)
    it = snap.items[block.id]
    if row is None:
        return
    yield from _words(block, row)
    yield from _next(block, it, row)
    yield from _cross(block, it, row)
    yield from _counters(block, it, snap)
    yield from _rules(it, snap)


def _words(block: Block, row: Row) -> Iterator[Flaw]:
    said = {**block.fields("ITEM_PANEL")}
    for key, value in block.fields("PATCH", "=").items():
        said.setdefault(key.removeprefix("state."), value)
    for name, kind in WORDS.items():
        if name in said and kind.read(said[name]) is None:
            yield Flaw("V11", block.id, f"{name}: {said[name]}", block.line)
    cells: list[tuple[str, type[Word]]] = [
        (row.before, State),
        (row.state, State),
        (row.verdict, Verdict),
        (row.impact, Level),
        (row.urgency, Level),
        (row.pace, Pace),
        (row.closure, Closure),
        (row.gate, Gate),
    ]
    for value, kind in cells:
        if kind.read(value) is None:
            yield Flaw("V11", block.id, f"[QUEUE] {value}", block.line)
    state, verdict = State.read(row.state), Verdict.read(row.verdict)
    if state and verdict and verdict not in VERDICTS[state]:
        yield Flaw("V13", block.id, f"{row.state} with {row.verdict}", block.line)


def _next(block: Block, it: Previous, row: Row) -> Iterator[Flaw]:
    lines = [line.strip() for _, line in block.blocks.get("STEPS", ())]
    shown = [line.strip() for _, line in block.blocks.get("NEXT", ())]
    pending = [each for each in it.steps if each.pending]
    state = State.read(row.state)
    if shown and (len(shown) > 1 or lines.count(shown[0]) != 1):
        yield Flaw("V09", block.id, shown[0][:80], block.line)
    if shown and state in TERMINAL:
        yield Flaw("V09", block.id, f"{row.state} has no next step", block.line)
    if not shown and state in RUNNING:
        detail = "no [NEXT]" if pending else "no pending step"
        yield Flaw("V09", block.id, detail, block.line)


def _cross(block: Block, it: Previous, row: Row) -> Iterator[Flaw]:
    derived = block.fields("DERIVED")
    state = State.read(row.state)
    closure = Closure.read(row.closure)
    pairs = {
        "ds": (row.pace, derived.get("item_exec_mode")),
        "term": (row.term, {"YES": "Y", "NO": "N"}.get(derived.get("terminal", ""))),
        "ct": (CLOSURES[closure] if closure else row.closure, derived.get("closure_tier")),
        "exp": (row.expires, derived.get("effective_expire_days")),
    }
    for name, (left, right) in pairs.items():
        if right is not None and _plain(left) != _plain(right):
            yield Flaw("V12", block.id, f"{name}:{left} but {right}", block.line)
    if (row.term == "Y") != (state in TERMINAL):
        yield Flaw("V12", block.id, f"term:{row.term} with {row.state}", block.line)
    if (closure is Closure.OPEN) == (state is State.CLOSED):
        yield Flaw("V12", block.id, f"ct:{row.closure} with {row.state}", block.line)
    if it.critical is not None and GATES[it.trigger] != row.gate:
        detail = f"gate:{row.gate} with trigger {it.trigger}"
        yield Flaw("V12", block.id, detail, block.line)
    if it.state is not state:
        yield Flaw("V12", block.id, f"{row.state} but {it.state}", block.line)


def _plain(text: str) -> str:
    return {"SLOW_MODE": "SLOW"}.get(text, text)


def _counters(block: Block, it: Previous, snap: Snapshot) -> Iterator[Flaw]:
    if not it.counters or it.impact is None:
        return
    minutes = sum(each.minutes for each in it.steps)
    wanted = {"tb": f"{minutes}/{TIMEBOX[it.impact]}"}
    outside = any(each not in snap.items for each in it.depends_on)
    if it.critical is not None and not outside:
        extras = (it.contested, it.missing_ratings, it.hedge, bool(it.uses), it.debt != "NONE")
        waits = any(snap.items[each].state not in SETTLED for each in it.depends_on)
        tax = len(it.steps) + 2 * waits + sum(extras)
        wanted["cx"] = f"{tax}/{COMPLEXITY[it.impact]}"
    if it.log and it.critical is not None:
        found = counted(it.log, it.critical, deterministic=it.domain is Domain.DETERMINISTIC)
        wanted |= {name: str(getattr(found, name)) for name in ("pc", "nm", "nmd", "inc", "ovr")}
    for name, value in wanted.items():
        if it.counters.get(name, value) != value:
            detail = f"{name}={it.counters[name]} should be {value}"
            yield Flaw("V14", block.id, detail, block.line)


def _rules(it: Previous, snap: Snapshot) -> Iterator[Flaw]:
    strict = snap.panel.get("ClosePolicy") == "REAL_ONLY"
    final = it.reversibility is Reversibility.IRREVERSIBLE
    if it.state is State.CLOSED and it.closure is Closure.SIM and (final or strict):
        yield Flaw("V17", it.id, "closed on a simulation, which may not be")
    if it.reopened > 1:
        yield Flaw("V17", it.id, f"reopened {it.reopened} times")
    if it.confidence is not None and it.state not in TERMINAL and it.confidence > _cap(it):
        yield Flaw("V17", it.id, f"confidence {it.confidence} on this evidence; at most {_cap(it)}")


def _cap(it: Previous) -> Confidence:
    """The most that the snapshot itself allows; which probes only are designed it does not say."""
    loose = it.domain not in (None, Domain.DETERMINISTIC) and it.tier <= Tier.HISTORICAL
    return Confidence.LOW if it.contested else Confidence.MED if loose else Confidence.HIGH


def _batch(snap: Snapshot) -> Iterator[Flaw]:
    asked, mode = snap.panel.get("AskUser", "NONE"), snap.panel.get("AskUserMode", "NONE")
    if asked != "NONE" and mode != "ALLOW":
        yield Flaw("V16", "-", asked, snap.first)
    if sum(line.strip().startswith("AskUser:") for line in snap.lines) > 1:
        yield Flaw("V16", "-", "more than one question", snap.first)
    drivers = {each.debt for each in snap.items.values() if OPEN_DEBT.fullmatch(each.debt)}
    if len(drivers) > MOST_DEBT:
        yield Flaw("V17", "-", f"{len(drivers)} drivers in debt; at most {MOST_DEBT}")
    yield from _pool(snap)
    live = {name: each for name, each in snap.items.items() if each.state not in SETTLED}
    for name in graph.cycles({name: _edges(each, live) for name, each in live.items()}):
        if live[name].state in RUNNING:
            yield Flaw("V17", name, "it waits for itself and cannot run")


def _edges(it: Previous, live: Container[str]) -> list[str]:
    waived = {*it.waived, *waived_by(it.steps)}
    return [dep for dep in it.depends_on if dep in live and dep not in waived]


def _pool(snap: Snapshot) -> Iterator[Flaw]:
    pool = resources(snap.panel.get("ResourcePool", ""))[0]
    demand: Counter[str] = Counter()
    for each in snap.items.values():
        if each.state is State.ACTIVE:
            demand.update(each.uses)
    for name, limit in pool.items():
        if demand[name] > limit:
            yield Flaw("V17", "-", f"{demand[name]} of {name} in use, there are {limit}")
