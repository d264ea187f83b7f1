"""Snapshots read back: leniently, because models and older kernels write them too."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from accord.core.docket import steps
from accord.core.docket.budget import EXPIRES
from accord.core.docket.model import Binding, Previous, Rating
from accord.core.docket.probes import Entry, entry
from accord.core.docket.text import driver, ids, one_line, resources, unescaped
from accord.core.docket.words import (
    Closure,
    Confidence,
    Dim,
    Domain,
    Flag,
    Level,
    Mode,
    Profile,
    Reversibility,
    State,
    Tier,
    Trigger,
    Verdict,
)

START = "STATE: DECISION."
FENCE = "```"
ENDS = (FENCE, "[HUMAN_TABLE", "[RISK_DASHBOARD", "[PEER_CONVERGENCE", "[KERNEL_DIAG")
_ITEM = re.compile(r"\[ITEM id=([^\]]+)\]\s*")
_BLOCK = re.compile(r"\[([A-Z_]+)\]\s*")
INVALID = "OutputValidity: INVALID"
OPEN_DEBT = re.compile(r"OPEN\((.*)\)")


@dataclass(slots=True)
class Row:
    """A line of the queue."""

    id: str
    before: str
    state: str
    verdict: str
    impact: str
    urgency: str
    pace: str
    term: str
    closure: str
    pingpong: str
    expires: str
    gate: str
    step: str


class Line(NamedTuple):
    """A line of the steps: where it is, what it says, and the numbered step that it is."""

    at: int
    text: str
    step: tuple[int, steps.Step] | None


@dataclass(slots=True)
class Block:
    """An item's lines by block, each with its number."""

    id: str
    line: int = 0
    blocks: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    steps: list[Line] = field(default_factory=list)

    def fields(self, name: str, mark: str = ":") -> dict[str, str]:
        """`key: value` lines of a block; the first of each key counts."""
        found: dict[str, str] = {}
        for _, line in self.blocks.get(name, ()):
            key, is_field, value = line.removeprefix("- ").partition(mark)
            if is_field:
                found.setdefault(key.strip(), value.strip())
        return found


@dataclass(slots=True)
class Snapshot:
    """A snapshot as it was written."""

    first: int
    lines: list[str]
    panel: dict[str, str] = field(default_factory=dict)
    user: dict[str, str] = field(default_factory=dict)
    heads: list[tuple[int, str]] = field(default_factory=list)
    queue: list[Row] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    items: dict[str, Previous] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    # It says of itself that it is not state.
    invalid: bool = False

    @property
    def usable(self) -> bool:
        """Whether it may be read as state."""
        has = {name for _, name in self.heads}
        return {"PANEL", "QUEUE"} <= has and bool(self.blocks) and not self.invalid

    @property
    def batch_id(self) -> str:
        """The batch it is of."""
        return self.panel.get("BatchID") or self.user.get("BatchID") or ""

    def row(self, item: str) -> Row | None:
        """The first line of the queue about an item."""
        return self.rows.get(item)


def find(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Where snapshots begin and end in a text, as half-open ranges of lines."""
    at = 0
    while at < len(lines):
        if lines[at].strip().startswith(START):
            end = next(
                (to for to in range(at, len(lines)) if lines[to].strip().startswith(ENDS)),
                len(lines),
            )
            yield at, end
            at = end
        at += 1


def parse(lines: list[str], first: int = 1) -> Snapshot:
    """The parts of a snapshot; whatever is unknown is passed by."""
    snap = Snapshot(first, lines)
    name, block, recovering = "", None, False
    for number, raw in enumerate(lines, first):
        line = unescaped(raw.rstrip())
        if name == "RECOVERY_INPUT":
            recovering = line.startswith("<<<I") or (recovering and line.strip() != "<<<END>>>")
            if recovering:
                continue
        if not line.lstrip().startswith("["):
            if line:
                _take(snap, block, name, number, line)
        elif found := _ITEM.fullmatch(line.strip()):
            block = Block(found[1].strip(), number)
            snap.blocks.append(block)
            name = "ITEM"
        elif head := _BLOCK.fullmatch(line.strip()):
            name = head[1]
            if block is None:
                snap.heads.append((number, name))
            else:
                block.order.append(name)
                block.blocks.setdefault(name, [])
        else:
            _take(snap, block, name, number, line)
    _fill(snap)
    return snap


def _take(snap: Snapshot, block: Block | None, name: str, number: int, line: str) -> None:
    # Under [BREAK], and elsewhere in a line, it is what somebody wrote or a tool printed.
    snap.invalid |= name != "BREAK" and line.lstrip(" -").startswith(INVALID)
    if block is not None:
        block.blocks.setdefault(name, []).append((number, line))
    elif name == "QUEUE":
        if row := queue_row(line):
            snap.queue.append(row)
    elif name in {"PANEL", "USER_PANEL"}:
        key, is_field, value = line.removeprefix("- ").partition(":")
        target = snap.panel if name == "PANEL" else snap.user
        if is_field:
            target.setdefault(key.strip(), value.strip())


def queue_row(line: str) -> Row | None:
    """A queue line; None where it is none."""
    cells = [each.strip() for each in line.strip().removeprefix("- ").split(" | ", 11)]
    if len(cells) != 12:
        return None
    before, arrow, after = (each.strip() for each in cells[1].partition("->"))
    if not arrow or len(before.split()) != 1 or len(after.split()) != 1:
        return None
    bare = [each.partition(":")[2] for each in cells[5:11]]
    pace, term, closure, pingpong, expires, gate = bare
    return Row(
        *(cells[0], before, after, cells[2], cells[3], cells[4]),
        *(pace, term, closure, pingpong, expires, gate, cells[11]),
    )


def _fill(snap: Snapshot) -> None:
    for row in snap.queue:
        snap.rows.setdefault(row.id, row)
    for block in snap.blocks:
        lines = block.blocks.get("STEPS", ())
        block.steps = [Line(at, text, steps.parse(text)) for at, text in lines]
        if block.id not in snap.items:
            snap.items[block.id] = previous(block, snap.rows.get(block.id))


def previous(block: Block, row: Row | None = None) -> Previous:
    """An item's state from its blocks, then from the queue."""
    derived = block.fields("DERIVED")
    patch = block.fields("PATCH", "=")
    said = _panel(block, patch)
    if row:
        for key, value in _of_row(row).items():
            said.setdefault(key, value)
    it = Previous(block.id)
    _words(it, said)
    _lists(it, said)
    _derived(it, derived, said)
    it.binding = _binding(block, patch)
    it.steps = tuple(each.step[1] for each in block.steps if each.step)
    it.next = _next(block)
    it.log = tuple(_log(block, patch))
    it.gate = row.gate if row else said.get("dominant_gate")
    it.pace = derived.get("item_exec_mode") or (row.pace if row else None)
    return it


def _panel(block: Block, patch: dict[str, str]) -> dict[str, str]:
    said = block.fields("ITEM_PANEL")
    states = dict(each.strip().partition("=")[::2] for each in said.pop("state", "").split(","))
    said |= {key: value for key, value in states.items() if key}
    for key, value in patch.items():
        if key.startswith("state."):
            said.setdefault(key.removeprefix("state."), value)
    return said


def _of_row(row: Row) -> dict[str, str]:
    return {
        "prev_state": row.before,
        "new_state": row.state,
        "verdict": row.verdict,
        "impact": row.impact,
        "urgency": row.urgency,
        "closure_tier": row.closure,
    }


def _words(it: Previous, said: dict[str, str]) -> None:
    it.title = said.get("title")
    it.mode = Mode.read(said.get("mode"))
    it.profile = Profile.read(said.get("profile"))
    it.domain = Domain.read(said.get("domain_type"))
    it.state = State.read(said.get("new_state")) or State.DRAFT
    it.verdict = Verdict.read(said.get("verdict"))
    it.impact = Level.read(said.get("impact"))
    it.urgency = Level.read(said.get("urgency"))
    it.score = said.get("score")
    it.contested = Flag.read(said.get("contested")) is Flag.YES
    it.missing_ratings = Flag.read(said.get("missing_ratings")) is Flag.YES
    it.confidence = Confidence.read(said.get("critical_driver_confidence"))
    it.hedge = said.get("hedge_action") == "ACTIVE"
    it.reversibility = Reversibility.read(said.get("reversibility"))
    it.trigger = Trigger.read(said.get("trigger")) or Trigger.NONE
    it.critical = driver(said.get("critical_driver", "")) or None
    it.why = one_line(said.get("why", "")) or "-"
    it.tradeoff = one_line(said.get("dominant_tradeoff", "")) or "-"
    it.uncertainty = one_line(said.get("next_uncertainty", "")) or "-"
    debt = said.get("falsification_debt", "")
    it.debt = debt if OPEN_DEBT.fullmatch(debt) else "NONE"


def _lists(it: Previous, said: dict[str, str]) -> None:
    it.depends_on = ids(said.get("depends_on", "").replace("(none)", ""))[0]
    it.waived = ids(said.get("waived", ""))[0]
    it.split_into = ids(said.get("split_into", ""))[0]
    it.split_from = said.get("split_from", "")
    it.uses = resources(said.get("uses", ""))[0]
    it.fail_fast = min(whole(said.get("fail_fast_count"), 0) or 0, 2)
    it.updated_at = said.get("updated_at", "")
    keep = Flag.read(said.get("keep_open"))
    it.keep_open = None if keep is None else keep is Flag.YES
    it.expire_days = whole(said.get("expire_days"))


def _derived(it: Previous, derived: dict[str, str], said: dict[str, str]) -> None:
    it.tier = Tier.read(derived.get("best_evidence_tier")) or Tier.SIMULATED
    it.reopened = whole(derived.get("reopen_total"), 0) or 0
    pairs = (each.partition("=") for each in derived.get("counters", "").split())
    it.counters = {name: value for name, _, value in pairs if name and value}
    it.blocked = whole(it.counters.get("rb"), 0) or 0
    closed = derived.get("closure_tier", said.get("closure_tier", ""))
    it.closure = Closure.SIM if closed == "SIMULATED" else Closure.read(closed)
    shown = derived.get("effective_expire_days", "")
    if shown == "NONE" and it.keep_open is None:
        it.keep_open = True
    # What a domain gives by itself is not carried, so that a new domain gives its own.
    if it.expire_days is None and (days := whole(shown)) != EXPIRES.get(it.domain):
        it.expire_days = days


def whole(text: str | None, otherwise: int | None = None) -> int | None:
    """A number of days or times."""
    digits = (text or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 7 else otherwise


def _next(block: Block) -> steps.Step | None:
    """The step that is next; as a rule it is one of the list, and was read there."""
    text = next((line.strip() for _, line in block.blocks.get("NEXT", ())), "")
    listed = (each.step for each in block.steps if each.text.strip() == text)
    found = next(listed, None) or steps.parse(text)
    return found[1] if found else None


def _binding(block: Block, patch: dict[str, str]) -> Binding:
    made: Binding = {}
    bound = block.fields("EVIDENCE_BINDING")
    for dim in Dim:
        if line := bound.get(dim):
            said = dict(each.strip().partition("=")[::2] for each in line.split(";"))
            parts = [said.get(key, "") for key in ("rating", "confidence", "evidence_tier")]
            parts.append(said.get("drivers", ""))
        elif line := patch.get(f"binding.{dim}"):
            parts = [*line.split(";"), "", "", ""][:4]
        else:
            continue
        level, sure, tier = Level.read(parts[0]), Confidence.read(parts[1]), Tier.read(parts[2])
        if level and sure and tier:
            names = tuple(filter(None, map(driver, parts[3].split(","))))
            made[dim] = Rating(level, sure, tier, names)
    return made


def _log(block: Block, patch: dict[str, str]) -> Iterator[Entry]:
    found = list(_entries(line for _, line in block.blocks.get("PROBE_LOG", ())))
    for key, value in patch.items():
        if key.startswith("probe."):
            pairs = (each.partition(":")[::2] for each in value.split(";"))
            found.append({name.strip(): unquote(what.strip()) for name, what in pairs})
    for place, each in enumerate(found, 1):
        yield entry(each, f"{block.id}_PRB_{place:02}")


def _entries(lines: Iterable[str]) -> Iterator[dict[str, str]]:
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
