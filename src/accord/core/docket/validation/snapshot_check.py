"""Checks a snapshot of unknown origin: its form, line by line, and its values against the rules."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from accord.core.docket.model import PreviousItem, complexity_tax
from accord.core.docket.probes import count_probes
from accord.core.docket.rules import dependency_graph
from accord.core.docket.snapshot import (
    OPEN_DEBT_PATTERN,
    PANEL_FIELDS,
    PROBE_COUNTERS,
    DecisionSnapshot,
    ItemBlock,
    QueueRow,
)
from accord.core.docket.steps import MAX_STEP_CHARS, dependencies_waived_by
from accord.core.docket.text_values import parse_resources
from accord.core.docket.triggers import GATE_OF_TRIGGER, DominantGate
from accord.core.docket.validation.snapshot_form import Flaw, line_fits, lint_snapshot
from accord.core.docket.vocabulary import (
    CLOSURE_TIER_TEXT,
    MAX_COMPLEXITY_TAX,
    MAX_DEBT_DRIVERS,
    RUNNING_STATES,
    SETTLED_STATES,
    TERMINAL_STATES,
    TIMEBOX_MINUTES,
    VERDICTS_OF_STATE,
    ClosureTier,
    Confidence,
    DomainType,
    EvidenceTier,
    ExecMode,
    ItemState,
    LenientEnum,
    Level,
    Reversibility,
    Verdict,
)

# The strongest reason is reported.
INVALID_REASONS = ("BATCH_COVERAGE", "CODE_BLOCK_PURITY", "PREV_SURFACE", "OTHER")


@dataclass(slots=True)
class SnapshotCheckResult:
    """The flaws of a snapshot."""

    flaws: list[Flaw] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """VALID, REPAIRABLE, or INVALID with the strongest reason."""
        reasons = {each.reason for each in self.flaws}
        found = next((each for each in INVALID_REASONS if each in reasons), "")
        return f"INVALID({found})" if found else "REPAIRABLE" if reasons else "VALID"

    def render(self) -> Iterator[str]:
        """One line for each flaw, then the result."""
        for each in sorted(self.flaws, key=lambda flaw: (flaw.line, flaw.code)):
            yield f"{each.code} {each.item} {each.detail}; {each.hint}"
        yield f"RESULT: {self.summary}"


def check_snapshot(
    snap: DecisionSnapshot | None, expected: Iterable[str] = (), fences: int = 1
) -> SnapshotCheckResult:
    """Find every flaw of a snapshot."""
    made = SnapshotCheckResult()
    if snap is None:
        made.flaws.append(Flaw("V01", "-", "there is no line STATE: DECISION.TEST.FINAL"))
        return made
    if snap.lines[0].strip() != "STATE: DECISION.TEST.FINAL":
        made.flaws.append(Flaw("V01", "-", snap.lines[0].strip()[:80], snap.first_line))
    if fences > 1:
        made.flaws.append(Flaw("V02", "-", f"{fences} code blocks", snap.first_line))
    made.flaws += lint_snapshot(snap)
    made.flaws += _check_coverage(snap, list(expected))
    # The first block of an id is the item; the others were rejected as duplicates.
    for block in {each.id: each for each in reversed(snap.blocks)}.values():
        if row := snap.row_by_id.get(block.id):
            made.flaws += _check_item(snap.items[block.id], row, snap, block)
    made.flaws += _check_batch(snap)
    return made


def _check_coverage(snap: DecisionSnapshot, expected: list[str]) -> Iterator[Flaw]:
    queue = Counter(row.id for row in snap.queue)
    items = Counter(block.id for block in snap.blocks)
    wanted = Counter(expected) if expected else queue
    if set(queue) != set(wanted):
        yield Flaw("V06", "-", coverage_diff(set(wanted), set(queue)), snap.first_line)
    if set(items) != set(wanted) or (not expected and items != queue):
        yield Flaw("V07", "-", coverage_diff(set(wanted), set(items)), snap.first_line)


def coverage_diff(wanted: set[str], found: set[str]) -> str:
    """The missing ids and the surplus ones."""
    missing, extra = ",".join(sorted(wanted - found)), ",".join(sorted(found - wanted))
    return f"missing={{{missing}}}; extra={{{extra}}}"


def check_decisions(snap: DecisionSnapshot) -> Iterator[Flaw]:
    """What is wrong with the values of a snapshot that was taken from an outcome."""
    for name, row in snap.row_by_id.items():
        yield from _check_item(snap.items[name], row, snap)
    yield from _check_batch(snap)


def _check_item(
    it: PreviousItem, row: QueueRow, snap: DecisionSnapshot, block: ItemBlock | None = None
) -> Iterator[Flaw]:
    line = block.line if block else 0
    has_next = it.next_step is not None
    if block:
        has_next = bool(_lines_under_next(block))
        yield from _check_fields(block, row)
    yield from _check_words(row, line)
    yield from _check_next(it, row, line, has_next=has_next)
    yield from _check_cross_fields(it, row, line)
    yield from _check_counters(it, snap, line)
    yield from _check_rules(it, snap)


def _check_fields(block: ItemBlock, row: QueueRow) -> Iterator[Flaw]:
    """What only the text of an item can get wrong: unknown words, and values told twice."""
    said = block.fields("ITEM_PANEL")
    for key, value in block.fields("PATCH", "=").items():
        said.setdefault(key.removeprefix("state."), value)
    for each in PANEL_FIELDS:
        if each.words and each.name in said and each.words.parse(said[each.name]) is None:
            yield Flaw("V11", block.id, f"{each.name}: {said[each.name]}", block.line)
    listed = [line.strip() for _, line in block.blocks.get("STEPS", ())]
    shown = _lines_under_next(block)
    if shown and (len(shown) > 1 or listed.count(shown[0]) != 1):
        yield Flaw("V09", block.id, shown[0][:80], block.line)
    derived = block.fields("DERIVED")
    closure = ClosureTier.parse(row.closure_tier)
    pairs = {
        "ds": (row.exec_mode, derived.get("item_exec_mode")),
        "term": (row.terminal, {"YES": "Y", "NO": "N"}.get(derived.get("terminal", ""))),
        "ct": (
            CLOSURE_TIER_TEXT[closure] if closure else row.closure_tier,
            derived.get("closure_tier"),
        ),
        "exp": (row.expires, derived.get("effective_expire_days")),
    }
    for name, (left, right) in pairs.items():
        if right is not None and _normalized(left) != _normalized(right):
            yield Flaw("V12", block.id, f"{name}:{left} but {right}", block.line)


def _lines_under_next(block: ItemBlock) -> list[str]:
    lines = (line.strip() for _, line in block.blocks.get("NEXT", ()))
    return [line for line in lines if line_fits("NEXT", line)]


def _check_words(row: QueueRow, line: int) -> Iterator[Flaw]:
    cells: tuple[tuple[str, type[LenientEnum]], ...] = (
        (row.previous_state, ItemState),
        (row.state, ItemState),
        (row.verdict, Verdict),
        (row.impact, Level),
        (row.urgency, Level),
        (row.exec_mode, ExecMode),
        (row.closure_tier, ClosureTier),
        (row.gate, DominantGate),
    )
    for value, words in cells:
        if words.parse(value) is None:
            yield Flaw("V11", row.id, f"[QUEUE] {value}", line)
    state, verdict = ItemState.parse(row.state), Verdict.parse(row.verdict)
    if state and verdict and verdict not in VERDICTS_OF_STATE[state]:
        yield Flaw("V13", row.id, f"{row.state} with {row.verdict}", line)


def _check_next(it: PreviousItem, row: QueueRow, line: int, *, has_next: bool) -> Iterator[Flaw]:
    state = ItemState.parse(row.state)
    if has_next and state in TERMINAL_STATES:
        yield Flaw("V09", it.id, f"{row.state} has no next step", line)
    if not has_next and state in RUNNING_STATES:
        pending = any(each.is_pending for each in it.steps)
        yield Flaw("V09", it.id, "no [NEXT]" if pending else "no pending step", line)
    for number, step in enumerate(it.steps, 1):
        if len(text := step.render(number)) > MAX_STEP_CHARS:
            yield Flaw("V10", it.id, f"{text[:80]}: longer than {MAX_STEP_CHARS} characters", line)


def _check_cross_fields(it: PreviousItem, row: QueueRow, line: int) -> Iterator[Flaw]:
    state = ItemState.parse(row.state)
    if (row.terminal == "Y") != (state in TERMINAL_STATES):
        yield Flaw("V12", it.id, f"term:{row.terminal} with {row.state}", line)
    if (row.closure_tier == ClosureTier.OPEN) == (state is ItemState.CLOSED):
        yield Flaw("V12", it.id, f"ct:{row.closure_tier} with {row.state}", line)
    if it.critical_driver is not None and GATE_OF_TRIGGER[it.trigger] != row.gate:
        yield Flaw("V12", it.id, f"gate:{row.gate} with trigger {it.trigger}", line)
    if it.state is not state:
        yield Flaw("V12", it.id, f"{row.state} but {it.state}", line)


def _normalized(text: str) -> str:
    return {"SLOW_MODE": "SLOW"}.get(text, text)


def _check_counters(it: PreviousItem, snap: DecisionSnapshot, line: int) -> Iterator[Flaw]:
    if not it.counters or it.impact is None:
        return
    minutes = sum(each.minutes for each in it.steps)
    wanted = {"tb": f"{minutes}/{TIMEBOX_MINUTES[it.impact]}"}
    outside = any(each not in snap.items for each in it.depends_on)
    if it.critical_driver is not None and not outside:
        waits = any(snap.items[each].state not in SETTLED_STATES for each in it.depends_on)
        tax = complexity_tax(it, len(it.steps), waits=waits)
        wanted["cx"] = f"{tax}/{MAX_COMPLEXITY_TAX[it.impact]}"
    if it.probe_log and it.critical_driver is not None:
        found = count_probes(
            it.probe_log,
            it.critical_driver,
            deterministic=it.domain_type is DomainType.DETERMINISTIC,
        )
        wanted |= {name: str(getattr(found, name)) for name in PROBE_COUNTERS}
    for name, value in wanted.items():
        if it.counters.get(name, value) != value:
            yield Flaw("V14", it.id, f"{name}={it.counters[name]} should be {value}", line)


def _check_rules(it: PreviousItem, snap: DecisionSnapshot) -> Iterator[Flaw]:
    strict = snap.panel.get("ClosePolicy") == "REAL_ONLY"
    final = it.reversibility is Reversibility.IRREVERSIBLE
    if it.state is ItemState.CLOSED and it.closure_tier is ClosureTier.SIM and (final or strict):
        yield Flaw("V17", it.id, "closed on a simulation, which may not be")
    if it.reopen_total > 1:
        yield Flaw("V17", it.id, f"reopened {it.reopen_total} times")
    if (
        it.confidence is not None
        and it.state not in TERMINAL_STATES
        and it.confidence > _max_confidence(it)
    ):
        yield Flaw(
            "V17",
            it.id,
            f"confidence {it.confidence} on this evidence; at most {_max_confidence(it)}",
        )


def _max_confidence(it: PreviousItem) -> Confidence:
    """The confidence cap as far as a snapshot shows it; it does not tell designed probes apart."""
    loose = (
        it.domain_type not in (None, DomainType.DETERMINISTIC)
        and it.best_evidence_tier <= EvidenceTier.HISTORICAL
    )
    return Confidence.LOW if it.contested else Confidence.MED if loose else Confidence.HIGH


def _check_batch(snap: DecisionSnapshot) -> Iterator[Flaw]:
    asked, mode = snap.panel.get("AskUser", "NONE"), snap.panel.get("AskUserMode", "NONE")
    if asked != "NONE" and mode != "ALLOW":
        yield Flaw("V16", "-", asked, snap.first_line)
    above_items = snap.blocks[0].line - snap.first_line if snap.blocks else len(snap.lines)
    if sum(line.strip().startswith("AskUser:") for line in snap.lines[:above_items]) > 1:
        yield Flaw("V16", "-", "more than one question", snap.first_line)
    drivers = {
        each.falsification_debt
        for each in snap.items.values()
        if OPEN_DEBT_PATTERN.fullmatch(each.falsification_debt)
    }
    if len(drivers) > MAX_DEBT_DRIVERS:
        yield Flaw("V17", "-", f"{len(drivers)} drivers in debt; at most {MAX_DEBT_DRIVERS}")
    yield from _check_resource_pool(snap)
    live = {name: each for name, each in snap.items.items() if each.state not in SETTLED_STATES}
    for name in dependency_graph.cycle_members(
        {name: _binding_dependencies(each, live) for name, each in live.items()}
    ):
        if live[name].state in RUNNING_STATES:
            yield Flaw("V17", name, "it waits for itself and cannot run")


def _binding_dependencies(it: PreviousItem, live: Container[str]) -> list[str]:
    waived = {*it.waived, *dependencies_waived_by(it.steps)}
    return [dep for dep in it.depends_on if dep in live and dep not in waived]


def _check_resource_pool(snap: DecisionSnapshot) -> Iterator[Flaw]:
    pool = parse_resources(snap.panel.get("ResourcePool", ""))[0]
    demand: Counter[str] = Counter()
    for each in snap.items.values():
        if each.state is ItemState.ACTIVE:
            demand.update(each.uses)
    for name, limit in pool.items():
        if demand[name] > limit:
            yield Flaw("V17", "-", f"{demand[name]} of {name} in use, there are {limit}")
