"""Batch text to a batch: tags at the start of a line, attributes, sections; nothing is fatal."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from accord.core.docket import attributes, reading, snapshot
from accord.core.docket.diags import Diag
from accord.core.docket.judge import NOTHING, Result
from accord.core.docket.model import Batch, Config, Input, Previous
from accord.core.docket.snapshot import Snapshot
from accord.core.docket.text import ID, one_line
from accord.core.docket.words import Done, Mode, Tier

_TAG = re.compile(r"<<<([A-Z_]+)(?=[\s>])(.*?)>>>\s*")
_ESCAPED = re.compile(r"\\+<<<")
BULLET = re.compile(r"\s*(?:[-*]|\d{1,9}[.)])\s+\S")
SECTIONS = frozenset(
    {"PLAN", "ARTIFACT", "TOOL", "TARGET", "PREV", "NEW_EVIDENCE", "CHANGE", "JUDGE", "RESULT"}
)
MANY = frozenset({"NEW_EVIDENCE", "RESULT"})
TAGS = SECTIONS | {"B", "I", "END"}
HARD = frozenset({Tier.HISTORICAL, Tier.REAL, Tier.EXPERIMENT})


@dataclass(slots=True)
class Section:
    """A section of an item: its attributes and its lines."""

    name: str
    line: int
    attrs: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def body(self) -> str:
        """Its text."""
        return "\n".join(self.lines).strip()


@dataclass(slots=True)
class Wrapper:
    """An item as it is wrapped."""

    line: int
    attrs: str
    sections: list[Section] = field(default_factory=list)
    ended: bool = False


def lines_of(text: str) -> list[str]:
    """The lines of a text, whatever ends them."""
    text = text.encode("utf-8", "replace").decode().removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def pasted(text: str) -> int:
    """The number of the first line that claims an earlier state; 0 where none does."""
    for number, line in enumerate(lines_of(text), 1):
        tag = _TAG.fullmatch(line)
        if line.strip().startswith(snapshot.START) or (tag and tag[1] == "PREV"):
            return number
    return 0


def parse(text: str, config: Config | None = None) -> Batch:
    """The batch in a text, with the snapshot pasted beside it."""
    config = config or Config()
    lines = lines_of(text)
    batch = Batch(digest=hashlib.sha256("\n".join(lines).encode()).hexdigest())
    snap = _snapshot(lines, batch)
    for wrapper in _wrappers(lines, batch):
        _item(wrapper, batch)
    seen: set[str] = set()
    for inp in batch.items:
        inp.duplicate = inp.id in seen
        if inp.duplicate:
            batch.say(Diag("DUPLICATE_ID", inp.id, line=inp.line))
        seen.add(inp.id)
    if snap:
        _recover(batch, snap, config)
    for inp in batch.items:
        _modeless(inp, batch)
    if not batch.items:
        batch.say(Diag("NO_ITEMS"))
    return batch


def _snapshot(lines: list[str], batch: Batch) -> Snapshot | None:
    """The first usable snapshot; its lines are blanked, so that nothing in it is read again."""
    found: Snapshot | None = None
    for start, end in list(snapshot.find(lines)):
        one = snapshot.parse(lines[start:end], start + 1)
        inside = _in_prev(lines, start)
        if not inside:
            lines[start:end] = [""] * (end - start)
        if one.invalid:
            batch.say(Diag("PREV_INVALID", line=start + 1))
        elif one.usable and found:
            batch.say(Diag("SNAPSHOT_EXTRA", line=start + 1))
        elif one.usable and not inside:
            found = one
    return found


def _in_prev(lines: list[str], at: int) -> bool:
    """Whether a line stands in a PREV section."""
    for line in reversed(lines[max(0, at - 3) : at]):
        if found := _TAG.fullmatch(line):
            return found[1] == "PREV"
    return False


def _wrappers(lines: list[str], batch: Batch) -> list[Wrapper]:
    made: list[Wrapper] = []
    now: Wrapper | None = None
    headed = False
    for number, line in enumerate(lines, 1):
        tag = _TAG.fullmatch(line)
        name = tag[1] if tag and tag[1] in TAGS else ""
        if not tag or not name:
            if now and now.sections:
                now.sections[-1].lines.append(line[1:] if _ESCAPED.match(line) else line)
        elif name == "B":
            if headed or made:
                batch.say(Diag("B_DUPLICATE", line=number))
            else:
                batch.header = attributes.header(tag[2], number, batch.say)
            headed = True
        elif name == "I":
            now = Wrapper(number, tag[2])
            made.append(now)
        elif not now:
            batch.say(Diag("SECTION_OUTSIDE", detail=f"<<<{name}>>>", line=number))
        elif name == "END":
            now.ended, now = True, None
        else:
            now.sections.append(Section(name, number, tag[2]))
    return made


def _item(wrapper: Wrapper, batch: Batch) -> None:
    values = attributes.pairs(wrapper.attrs, wrapper.line, batch.say)
    name = values.pop("id", "")
    _once(wrapper, batch, name)
    inp = Input(name, wrapper.line)
    _mode(wrapper, inp)
    if not ID.fullmatch(name):
        batch.say(Diag("INVALID_ITEM", detail="it has no usable id", line=wrapper.line))
        batch.nameless.append((wrapper.line, inp.mode or Mode.PLAN))
        return
    attributes.item(values, inp, batch.say)
    if not wrapper.ended:
        inp.missing.append("END")
        batch.say(Diag("END_MISSING", name, line=wrapper.line))
    _sections(wrapper, inp, batch)
    batch.items.append(inp)


def _once(wrapper: Wrapper, batch: Batch, item: str) -> None:
    """Keep the first of each section that may come once."""
    seen: set[str] = set()
    kept = []
    for each in wrapper.sections:
        if each.name in seen and each.name not in MANY:
            batch.say(Diag("SECTION_REPEATED", item or "-", f"<<<{each.name}>>>", each.line))
        else:
            kept.append(each)
        seen.add(each.name)
    wrapper.sections = kept


def _mode(wrapper: Wrapper, inp: Input) -> None:
    """Which mode an item has, and what it lacks for it."""
    found = [
        Mode.TARGET if each.name in {"TOOL", "TARGET"} else Mode(each.name)
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
    elif inp.mode is Mode.TARGET:
        halves = [each for each in ("tool", "target") if each.upper() not in bodies]
        inp.obtainable = halves[0] if halves else ""
        lacks = halves or [f"{k.lower()}_text" for k in ("TOOL", "TARGET") if not bodies[k]]
    elif inp.mode is Mode.ARTIFACT and not bodies["ARTIFACT"]:
        lacks = ["artifact_text"]
    inp.missing += lacks
    inp.ok = not lacks


def _sections(wrapper: Wrapper, inp: Input, batch: Batch) -> None:
    evidence: list[Tier] = []
    results: list[Result] = []
    for each in wrapper.sections:
        match each.name:
            case "NEW_EVIDENCE":
                if tier := _evidence(each, inp.id, batch.say):
                    evidence.append(tier)
            case "RESULT":
                results += _result(each, inp.id, batch.say)
            case "CHANGE":
                inp.changed = any(BULLET.match(line) for line in each.lines)
                if not inp.changed:
                    batch.say(Diag("CHANGE_REJECTED", inp.id, line=each.line))
            case "JUDGE":
                first = each.line + 1 + _blank(each.lines)
                inp.judge = reading.read(each.body, batch.say, inp.id, first) or NOTHING
            case "PREV":
                inp.prev = _prev(each, inp.id, batch.say)
            case _:
                pass
    inp.evidence = tuple(evidence)
    inp.results = (*results, *(inp.judge.step_results or ()))


def _blank(lines: list[str]) -> int:
    """How many lines a section begins with that hold nothing."""
    return next((place for place, line in enumerate(lines) if line.strip()), 0)


def _modeless(inp: Input, batch: Batch) -> None:
    """An item without a mode is one that goes on, or it lacks something."""
    if inp.mode is None and inp.prev is None:
        inp.missing.append("mode")
        inp.ok = False
    if not inp.ok:
        batch.say(Diag("INVALID_ITEM", inp.id, f"missing: {', '.join(inp.missing)}", inp.line))


def _evidence(it: Section, item: str, say: Callable[[Diag], None]) -> Tier | None:
    tier = Tier.read(attributes.pairs(it.attrs, it.line, say).get("evidence_tier"))
    if tier in HARD and it.body:
        return tier
    say(Diag("EVIDENCE_REJECTED", item, line=it.line))
    return None


def _result(it: Section, item: str, say: Callable[[Diag], None]) -> list[Result]:
    said: dict[str, Any] = attributes.pairs(it.attrs, it.line, say)
    status = Done.read(said.get("status"))
    if status is None:
        say(Diag("RESULT_STATUS", item, one_line(said.get("status", "")), it.line))
        return []
    texts = {key: one_line(said[key]) for key in ("step", "token", "result") if said.get(key)}
    return [Result(status=status, evidence_tier=Tier.read(said.get("evidence_tier")), **texts)]


def _prev(it: Section, item: str, say: Callable[[Diag], None]) -> Previous | None:
    snap = snapshot.parse(it.lines, it.line + 1)
    if snap.invalid:
        say(Diag("PREV_INVALID", item, line=it.line))
        return None
    found = snap.items.get(item)
    if found is None:
        say(Diag("PREV_MISMATCH", item, line=it.line))
        return None
    lead = next((line for line in it.lines if line.strip()), "")
    if len(snap.blocks) > 1 or not lead.strip().startswith("[ITEM "):
        say(Diag("PREV_SCOPE", item, line=it.line))
    found.explicit = True
    return found


def _recover(batch: Batch, snap: Snapshot, config: Config) -> None:
    """What the snapshot knows and the text does not say."""
    attributes.recover(batch.header, snap.panel)
    batch.begun = snap.batch_id
    batch.known = {name: each.state for name, each in snap.items.items()}
    batch.asked = snap.panel.get("AskUser", "")
    named = {each.id for each in batch.items}
    for inp in batch.items:
        if inp.prev is None and inp.id in snap.items and not inp.duplicate:
            inp.prev = snap.items[inp.id]
    alone = not batch.items
    if alone or config.carry_unaddressed:
        left = (each for each in snap.items.values() if each.id not in named)
        batch.items += [Input(each.id, mode=each.mode, prev=each) for each in left if valid(each)]


def valid(it: Previous) -> bool:
    """Whether a snapshot's item has a name that can be written again."""
    return bool(ID.fullmatch(it.id))
