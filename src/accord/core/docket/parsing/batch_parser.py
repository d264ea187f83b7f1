"""Parses batch text: tags at line starts, attributes, sections. Errors become diagnostics."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.judgement import EMPTY_JUDGEMENT, StepResult
from accord.core.docket.model import Batch, BatchHeader, ItemInput, PreviousItem
from accord.core.docket.parsing import judgement_parser, snapshot_parser, tag_attributes
from accord.core.docket.snapshot import DecisionSnapshot
from accord.core.docket.text_values import ID_PATTERN, to_one_line
from accord.core.docket.vocabulary import EvidenceTier, ItemMode, StepStatus

_TAG = re.compile(r"<<<([A-Z_]+)(?=[\s>])(.*?)>>>\s*")
_ESCAPED = re.compile(r"\\+<<<")
BULLET_PATTERN = re.compile(r"\s*(?:[-*]|\d{1,9}[.)])\s+\S")
SECTION_NAMES = frozenset(
    {"PLAN", "ARTIFACT", "TOOL", "TARGET", "PREV", "NEW_EVIDENCE", "CHANGE", "JUDGE", "RESULT"}
)
REPEATABLE_SECTIONS = frozenset({"NEW_EVIDENCE", "RESULT"})
TAG_NAMES = SECTION_NAMES | {"B", "I", "END"}
ACCEPTED_EVIDENCE_TIERS = frozenset(
    {EvidenceTier.HISTORICAL, EvidenceTier.REAL, EvidenceTier.EXPERIMENT}
)


@dataclass(slots=True)
class Section:
    """A section of an item: its attributes and its lines."""

    name: str
    line: int
    attrs: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def body(self) -> str:
        return "\n".join(self.lines).strip()


@dataclass(slots=True)
class ItemWrapper:
    """The tag, attributes and sections of an item, not yet interpreted."""

    line: int
    attrs: str
    sections: list[Section] = field(default_factory=list)
    has_end_tag: bool = False


def split_lines(text: str) -> list[str]:
    """The lines of a text, for every kind of line break."""
    text = text.encode("utf-8", "replace").decode().removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def first_pasted_line(text: str) -> int:
    """The number of the first line that supplies earlier state, or 0."""
    for number, line in enumerate(split_lines(text), 1):
        tag = _TAG.fullmatch(line)
        if line.strip().startswith(snapshot_parser.START_PREFIX) or (tag and tag[1] == "PREV"):
            return number
    return 0


def parse_batch(text: str, before: DecisionSnapshot | None = None) -> Batch:
    """Parse a batch that continues `before`, else the snapshot that is pasted with it."""
    lines = split_lines(text)
    batch = Batch(digest=hashlib.sha256("\n".join(lines).encode()).hexdigest())
    snap = before or _take_snapshot(lines, batch)
    for wrapper in _wrappers(lines, batch):
        _parse_item(wrapper, batch)
    batch.sets_header = batch.header != BatchHeader()
    seen: set[str] = set()
    for inp in batch.items:
        inp.duplicate = inp.id in seen
        if inp.duplicate:
            batch.add_diagnostic(Diagnostic("DUPLICATE_ID", inp.id, line=inp.line))
        seen.add(inp.id)
    if snap and snap.is_usable:
        continue_from(snap, batch)
    for inp in batch.items:
        _check_mode(inp, batch)
    if not batch.items:
        batch.add_diagnostic(Diagnostic("NO_ITEMS"))
    return batch


def _take_snapshot(lines: list[str], batch: Batch) -> DecisionSnapshot | None:
    """Take the first usable snapshot; its lines are blanked to be parsed only once."""
    found: DecisionSnapshot | None = None
    for start, end in list(snapshot_parser.find_snapshots(lines)):
        one = snapshot_parser.parse_snapshot(lines[start:end], start + 1)
        inside = _in_prev(lines, start)
        if not inside:
            lines[start:end] = [""] * (end - start)
        if one.is_marked_invalid:
            batch.add_diagnostic(Diagnostic("PREV_INVALID", line=start + 1))
        elif one.is_usable and found:
            batch.add_diagnostic(Diagnostic("SNAPSHOT_EXTRA", line=start + 1))
        elif one.is_usable and not inside:
            found = one
    return found


def _in_prev(lines: list[str], at: int) -> bool:
    for line in reversed(lines[max(0, at - 3) : at]):
        if found := _TAG.fullmatch(line):
            return found[1] == "PREV"
    return False


def _wrappers(lines: list[str], batch: Batch) -> list[ItemWrapper]:
    made: list[ItemWrapper] = []
    now: ItemWrapper | None = None
    headed = False
    for number, line in enumerate(lines, 1):
        tag = _TAG.fullmatch(line)
        name = tag[1] if tag and tag[1] in TAG_NAMES else ""
        if not tag or not name:
            if now and now.sections:
                now.sections[-1].lines.append(line[1:] if _ESCAPED.match(line) else line)
        elif name == "B":
            if headed or made:
                batch.add_diagnostic(Diagnostic("B_DUPLICATE", line=number))
            else:
                batch.header = tag_attributes.parse_header(tag[2], number, batch.add_diagnostic)
            headed = True
        elif name == "I":
            now = ItemWrapper(number, tag[2])
            made.append(now)
        elif not now:
            batch.add_diagnostic(Diagnostic("SECTION_OUTSIDE", detail=f"<<<{name}>>>", line=number))
        elif name == "END":
            now.has_end_tag, now = True, None
        else:
            now.sections.append(Section(name, number, tag[2]))
    return made


def _parse_item(wrapper: ItemWrapper, batch: Batch) -> None:
    values = tag_attributes.parse_pairs(wrapper.attrs, wrapper.line, batch.add_diagnostic)
    name = values.pop("id", "")
    _drop_repeated_sections(wrapper, batch, name)
    inp = ItemInput(name, wrapper.line)
    _set_mode(wrapper, inp)
    if not ID_PATTERN.fullmatch(name):
        batch.add_diagnostic(
            Diagnostic("INVALID_ITEM", detail="it has no usable id", line=wrapper.line)
        )
        batch.items_without_id.append((wrapper.line, inp.mode or ItemMode.PLAN))
        return
    tag_attributes.apply_item_attributes(values, inp, batch.add_diagnostic)
    if not wrapper.has_end_tag:
        inp.missing_fields.append("END")
        batch.add_diagnostic(Diagnostic("END_MISSING", name, line=wrapper.line))
    _parse_sections(wrapper, inp, batch)
    batch.items.append(inp)


def _drop_repeated_sections(wrapper: ItemWrapper, batch: Batch, item: str) -> None:
    """Keep the first of each section that must not repeat."""
    seen: set[str] = set()
    kept = []
    for each in wrapper.sections:
        if each.name in seen and each.name not in REPEATABLE_SECTIONS:
            batch.add_diagnostic(
                Diagnostic("SECTION_REPEATED", item or "-", f"<<<{each.name}>>>", each.line)
            )
        else:
            kept.append(each)
        seen.add(each.name)
    wrapper.sections = kept


def _set_mode(wrapper: ItemWrapper, inp: ItemInput) -> None:
    """Set the mode of an item, and what is missing for it."""
    found = [
        ItemMode.TARGET if each.name in {"TOOL", "TARGET"} else ItemMode(each.name)
        for each in wrapper.sections
        if each.name in {"PLAN", "ARTIFACT", "TOOL", "TARGET"}
    ]
    inp.has_section = bool(found)
    inp.mode = found[0] if found else None
    bodies = {each.name: each.body for each in wrapper.sections}
    inp.plan = bodies.get("PLAN")
    lacks: list[str] = []
    if len(set(found)) > 1:
        lacks = ["single_mode"]
    elif inp.mode is ItemMode.TARGET:
        halves = [each for each in ("tool", "target") if each.upper() not in bodies]
        inp.obtainable_source = halves[0] if halves else ""
        lacks = halves or [f"{k.lower()}_text" for k in ("TOOL", "TARGET") if not bodies[k]]
    elif inp.mode is ItemMode.ARTIFACT and not bodies["ARTIFACT"]:
        lacks = ["artifact_text"]
    inp.missing_fields += lacks
    inp.parsed_ok = not lacks


def _parse_sections(wrapper: ItemWrapper, inp: ItemInput, batch: Batch) -> None:
    evidence: list[EvidenceTier] = []
    results: list[StepResult] = []
    for each in wrapper.sections:
        match each.name:
            case "NEW_EVIDENCE":
                if tier := _parse_evidence(each, inp.id, batch.add_diagnostic):
                    evidence.append(tier)
            case "RESULT":
                results += _parse_result(each, inp.id, batch.add_diagnostic)
            case "CHANGE":
                inp.change_declared = any(BULLET_PATTERN.match(line) for line in each.lines)
                if not inp.change_declared:
                    batch.add_diagnostic(Diagnostic("CHANGE_REJECTED", inp.id, line=each.line))
            case "JUDGE":
                first = each.line + 1 + _leading_blank_lines(each.lines)
                inp.judgement = (
                    judgement_parser.parse_judgement(each.body, batch.add_diagnostic, inp.id, first)
                    or EMPTY_JUDGEMENT
                )
            case "PREV":
                inp.prev = _parse_prev(each, inp.id, batch.add_diagnostic)
            case _:
                pass
    inp.evidence = tuple(evidence)
    inp.results = (*results, *(inp.judgement.step_results or ()))


def _leading_blank_lines(lines: list[str]) -> int:
    return next((place for place, line in enumerate(lines) if line.strip()), 0)


def _check_mode(inp: ItemInput, batch: Batch) -> None:
    """An item needs a mode unless it continues a previous one."""
    if inp.mode is None and inp.prev is None:
        inp.missing_fields.append("mode")
        inp.parsed_ok = False
    if not inp.parsed_ok:
        batch.add_diagnostic(
            Diagnostic(
                "INVALID_ITEM", inp.id, f"missing: {', '.join(inp.missing_fields)}", inp.line
            )
        )


def _parse_evidence(
    it: Section, item: str, say: Callable[[Diagnostic], None]
) -> EvidenceTier | None:
    tier = EvidenceTier.parse(
        tag_attributes.parse_pairs(it.attrs, it.line, say).get("evidence_tier")
    )
    if tier in ACCEPTED_EVIDENCE_TIERS and it.body:
        return tier
    say(Diagnostic("EVIDENCE_REJECTED", item, line=it.line))
    return None


def _parse_result(it: Section, item: str, say: Callable[[Diagnostic], None]) -> list[StepResult]:
    said: dict[str, Any] = tag_attributes.parse_pairs(it.attrs, it.line, say)
    status = StepStatus.parse(said.get("status"))
    if status is None:
        say(Diagnostic("RESULT_STATUS", item, to_one_line(said.get("status", "")), it.line))
        return []
    texts = {key: to_one_line(said[key]) for key in ("step", "token", "result") if said.get(key)}
    return [
        StepResult(
            status=status, evidence_tier=EvidenceTier.parse(said.get("evidence_tier")), **texts
        )
    ]


def _parse_prev(it: Section, item: str, say: Callable[[Diagnostic], None]) -> PreviousItem | None:
    snap = snapshot_parser.parse_snapshot(it.lines, it.line + 1)
    if snap.is_marked_invalid:
        say(Diagnostic("PREV_INVALID", item, line=it.line))
        return None
    found = snap.items.get(item)
    if found is None:
        say(Diagnostic("PREV_MISMATCH", item, line=it.line))
        return None
    lead = next((line for line in it.lines if line.strip()), "")
    if len(snap.blocks) > 1 or not lead.strip().startswith("[ITEM "):
        say(Diagnostic("PREV_SCOPE", item, line=it.line))
    found.from_prev_section = True
    return found


def continue_from(snap: DecisionSnapshot, batch: Batch) -> None:
    """Fill in from a snapshot what the batch leaves out."""
    tag_attributes.recover_header(batch.header, snap.panel)
    batch.previous_batch_id = snap.batch_id
    batch.previous_question = snap.panel.get("AskUser", "")
    named = {each.id for each in batch.items}
    for inp in batch.items:
        if inp.prev is None and inp.id in snap.items and not inp.duplicate:
            inp.prev = snap.items[inp.id]
    batch.items += [
        ItemInput(each.id, mode=each.mode, prev=each)
        for each in snap.items.values()
        if each.id not in named and ID_PATTERN.fullmatch(each.id)
    ]
