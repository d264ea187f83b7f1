"""Parses snapshots leniently, because models and older kernels write them too."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from accord.core.docket import steps
from accord.core.docket.model import EvidenceBinding, PreviousItem, Rating
from accord.core.docket.probes import ProbeLogEntry, parse_entry
from accord.core.docket.snapshot import (
    CARRIED_FIELDS,
    PANEL_FIELDS,
    DecisionSnapshot,
    ItemBlock,
    QueueRow,
    StepLine,
)
from accord.core.docket.text_values import normalize_driver, parse_count, unescape
from accord.core.docket.vocabulary import (
    EXPIRE_DAYS,
    ClosureTier,
    Confidence,
    Dimension,
    EvidenceTier,
    ItemState,
    Level,
)

START_PREFIX = "STATE: DECISION."
FENCE = "```"
END_PREFIXES = (FENCE, "[HUMAN_TABLE", "[RISK_DASHBOARD", "[PEER_CONVERGENCE", "[KERNEL_DIAG")
_ITEM = re.compile(r"\[ITEM id=([^\]]+)\]\s*")
_BLOCK = re.compile(r"\[([A-Z_]+)\]\s*")
INVALID_LINE = "OutputValidity: INVALID"


def find_snapshots(lines: list[str]) -> Iterator[tuple[int, int]]:
    """The half-open ranges of lines that are snapshots."""
    at = 0
    while at < len(lines):
        if lines[at].strip().startswith(START_PREFIX):
            end = next(
                (to for to in range(at, len(lines)) if lines[to].strip().startswith(END_PREFIXES)),
                len(lines),
            )
            yield at, end
            at = end
        at += 1


def parse_snapshot(lines: list[str], first: int = 1) -> DecisionSnapshot:
    """Parse a snapshot; unknown lines are ignored."""
    snap = DecisionSnapshot(first, lines)
    name, block, recovering = "", None, False
    for number, raw in enumerate(lines, first):
        line = unescape(raw.rstrip())
        if name == "RECOVERY_INPUT":
            recovering = line.startswith("<<<I") or (recovering and line.strip() != "<<<END>>>")
            if recovering:
                continue
        if not line.lstrip().startswith("["):
            if line:
                _take_line(snap, block, name, number, line)
        elif found := _ITEM.fullmatch(line.strip()):
            block = ItemBlock(found[1].strip(), number)
            snap.blocks.append(block)
            name = "ITEM"
        elif head := _BLOCK.fullmatch(line.strip()):
            name = head[1]
            if block is None:
                snap.block_heads.append((number, name))
            else:
                block.block_names.append(name)
                block.blocks.setdefault(name, [])
        else:
            _take_line(snap, block, name, number, line)
    _fill_items(snap)
    heads = {name for _, name in snap.block_heads}
    whole = {"PANEL", "QUEUE"} <= heads and bool(snap.blocks)
    snap.is_usable = whole and not snap.is_marked_invalid
    return snap


def _take_line(
    snap: DecisionSnapshot, block: ItemBlock | None, name: str, number: int, line: str
) -> None:
    # Under [BREAK], or elsewhere in a line, it is free text.
    snap.is_marked_invalid |= name != "BREAK" and line.lstrip(" -").startswith(INVALID_LINE)
    if block is not None:
        block.blocks.setdefault(name, []).append((number, line))
    elif name == "QUEUE":
        if row := QueueRow.parse(line):
            snap.queue.append(row)
    elif name in {"PANEL", "USER_PANEL"}:
        key, is_field, value = line.removeprefix("- ").partition(":")
        target = snap.panel if name == "PANEL" else snap.user_panel
        if is_field:
            target.setdefault(key.strip(), value.strip())


def _fill_items(snap: DecisionSnapshot) -> None:
    for row in snap.queue:
        snap.row_by_id.setdefault(row.id, row)
    for block in snap.blocks:
        lines = block.blocks.get("STEPS", ())
        block.steps = [StepLine(at, text, steps.parse_step(text)) for at, text in lines]
        if block.id not in snap.items:
            snap.items[block.id] = previous_item_of(block, snap.row_by_id.get(block.id))


def previous_item_of(block: ItemBlock, row: QueueRow | None = None) -> PreviousItem:
    """The state of an item, from its blocks first and then from the queue."""
    derived = block.fields("DERIVED")
    patch = block.fields("PATCH", "=")
    said = _panel_fields(block, patch)
    if row:
        for key, value in _row_fields(row).items():
            said.setdefault(key, value)
    it = PreviousItem(block.id, state=ItemState.parse(said.get("new_state")) or ItemState.DRAFT)
    for each in (*PANEL_FIELDS, *CARRIED_FIELDS):
        if (parsed := each.parse(said.get(each.name, ""))) is not None:
            setattr(it, each.attribute, parsed)
    _read_derived(it, derived, said)
    it.binding = _read_binding(block, patch)
    it.steps = tuple(each.step[1] for each in block.steps if each.step)
    it.next_step = _next_step(block)
    it.probe_log = tuple(_read_probe_log(block, patch))
    it.dominant_gate = row.gate if row else it.dominant_gate
    it.exec_mode = derived.get("item_exec_mode") or (row.exec_mode if row else None)
    return it


def _panel_fields(block: ItemBlock, patch: dict[str, str]) -> dict[str, str]:
    said = block.fields("ITEM_PANEL")
    states = dict(each.strip().partition("=")[::2] for each in said.pop("state", "").split(","))
    said |= {key: value for key, value in states.items() if key}
    for key, value in patch.items():
        if key.startswith("state."):
            said.setdefault(key.removeprefix("state."), value)
    return said


def _row_fields(row: QueueRow) -> dict[str, str]:
    return {
        "prev_state": row.previous_state,
        "new_state": row.state,
        "verdict": row.verdict,
        "impact": row.impact,
        "urgency": row.urgency,
        "closure_tier": row.closure_tier,
    }


def _read_derived(it: PreviousItem, derived: dict[str, str], said: dict[str, str]) -> None:
    it.best_evidence_tier = (
        EvidenceTier.parse(derived.get("best_evidence_tier")) or EvidenceTier.SIMULATED
    )
    it.reopen_total = parse_count(derived.get("reopen_total")) or 0
    pairs = (each.partition("=") for each in derived.get("counters", "").split())
    it.counters = {name: value for name, _, value in pairs if name and value}
    it.reopen_blocked_count = parse_count(it.counters.get("rb")) or 0
    closed = derived.get("closure_tier", said.get("closure_tier", ""))
    it.closure_tier = ClosureTier.SIM if closed == "SIMULATED" else ClosureTier.parse(closed)
    shown = derived.get("effective_expire_days", "")
    if shown == "NONE" and it.keep_open is None:
        it.keep_open = True
    # The default of a domain is not carried over, so that a new domain brings its own.
    if it.expire_days is None and (days := parse_count(shown)) != EXPIRE_DAYS.get(it.domain_type):
        it.expire_days = days


def _next_step(block: ItemBlock) -> steps.Step | None:
    """The step under [NEXT]; usually one of [STEPS], and then not parsed again."""
    text = next((line.strip() for _, line in block.blocks.get("NEXT", ())), "")
    listed = (each.step for each in block.steps if each.text.strip() == text)
    found = next(listed, None) or steps.parse_step(text)
    return found[1] if found else None


def _read_binding(block: ItemBlock, patch: dict[str, str]) -> EvidenceBinding:
    made: EvidenceBinding = {}
    bound = block.fields("EVIDENCE_BINDING")
    for dim in Dimension:
        if line := bound.get(dim):
            said = dict(each.strip().partition("=")[::2] for each in line.split(";"))
            parts = [said.get(key, "") for key in ("rating", "confidence", "evidence_tier")]
            parts.append(said.get("drivers", ""))
        elif line := patch.get(f"binding.{dim}"):
            parts = [*line.split(";"), "", "", ""][:4]
        else:
            continue
        level, sure, tier = (
            Level.parse(parts[0]),
            Confidence.parse(parts[1]),
            EvidenceTier.parse(parts[2]),
        )
        if level and sure and tier:
            names = tuple(filter(None, map(normalize_driver, parts[3].split(","))))
            made[dim] = Rating(level, sure, tier, names)
    return made


def _read_probe_log(block: ItemBlock, patch: dict[str, str]) -> Iterator[ProbeLogEntry]:
    found = list(_split_entries(line for _, line in block.blocks.get("PROBE_LOG", ())))
    for key, value in patch.items():
        if key.startswith("probe."):
            pairs = (each.partition(":")[::2] for each in value.split(";"))
            found.append({name.strip(): unquote(what.strip()) for name, what in pairs})
    for place, each in enumerate(found, 1):
        yield parse_entry(each, f"{block.id}_PRB_{place:02}")


def _split_entries(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    values: dict[str, str] = {}
    for line in lines:
        key, is_field, value = line.strip().removeprefix("- ").partition(":")
        if key == "probe_id" and values:
            yield values
            values = {}
        if is_field:
            values[key.strip()] = value.strip()
    if values:
        yield values
