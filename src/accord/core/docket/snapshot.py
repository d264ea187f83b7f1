"""A snapshot as values: parsed from a text, or taken from the outcome of a run.

The values are those that the text of a snapshot holds, so that an executor, a comparison or a table
sees the same, whether it was given a text or an outcome.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from accord.core.docket.model import DecisionItem, DecisionOutcome, PreviousItem
from accord.core.docket.probes import ProbeLogEntry
from accord.core.docket.steps import Step, dependencies_waived_by, kind_of
from accord.core.docket.text_values import (
    format_resources,
    normalize_driver,
    parse_count,
    parse_ids,
    parse_resources,
    to_one_line,
    yes_no,
)
from accord.core.docket.triggers import DominantGate, Trigger
from accord.core.docket.vocabulary import (
    MAX_COMPLEXITY_TAX,
    SETTLED_STATES,
    TERMINAL_STATES,
    TIMEBOX_MINUTES,
    Confidence,
    DomainType,
    ItemMode,
    LenientEnum,
    Level,
    Profile,
    Reversibility,
    Surface,
    Verdict,
    YesNo,
)

OPEN_DEBT_PATTERN = re.compile(r"OPEN\((.*)\)")
NONE_TEXT = "(none)"
PROBE_COUNTERS = ("pc", "nm", "nmd", "inc", "ovr")


class PanelField(NamedTuple):
    """A field of an item: its name in the text, its attribute, how it is parsed and rendered.

    `parse` returns None for what it cannot use; an empty rendering leaves the field out.
    """

    name: str
    attribute: str
    parse: Callable[[str], object]
    render: Callable[[Any], str]
    words: type[LenientEnum] | None = None


def _word(name: str, words: type[LenientEnum], attribute: str = "") -> PanelField:
    return PanelField(name, attribute or name, words.parse, lambda word: word or "", words)


def _text(name: str) -> PanelField:
    return PanelField(name, name, lambda text: to_one_line(text) or None, to_one_line)


def _ids(name: str, render: Callable[[Any], str]) -> PanelField:
    return PanelField(name, name, lambda text: parse_ids(text.replace(NONE_TEXT, ""))[0], render)


def _flag(name: str) -> PanelField:
    return PanelField(name, name, lambda text: YesNo.parse(text) is YesNo.YES, yes_no, YesNo)


def _parse_keep_open(text: str) -> bool | None:
    found = YesNo.parse(text)
    return None if found is None else found is YesNo.YES


# In the order of the text. The names are those of [ITEM_PANEL] and of the carry keys in [PATCH].
PANEL_FIELDS: tuple[PanelField, ...] = (
    _text("title"),
    _word("mode", ItemMode),
    _word("profile", Profile),
    _word("domain_type", DomainType),
    _word("verdict", Verdict),
    _word("impact", Level),
    _word("urgency", Level),
    PanelField("score", "score", lambda text: text or None, str),
    _flag("contested"),
    _ids("depends_on", lambda ids: ",".join(ids) or "-"),
    _flag("missing_ratings"),
    _word("critical_driver_confidence", Confidence, "confidence"),
    PanelField(
        *("hedge_action", "hedge_active"),
        lambda text: text == "ACTIVE",
        lambda active: "ACTIVE" if active else "NO",
    ),
    _word("reversibility", Reversibility),
    PanelField("uses", "uses", lambda text: parse_resources(text)[0], format_resources),
    PanelField(
        *("fail_fast_count", "fail_fast_count"),
        lambda text: min(parse_count(text) or 0, 2),
        lambda count: str(count or ""),
    ),
    _text("why"),
    PanelField(
        "critical_driver", "critical_driver", lambda text: normalize_driver(text) or None, str
    ),
    _text("dominant_tradeoff"),
    PanelField(
        *("falsification_debt", "falsification_debt"),
        lambda text: text if OPEN_DEBT_PATTERN.fullmatch(text) else None,
        str,
    ),
    PanelField("dominant_gate", "dominant_gate", lambda text: text or None, str, DominantGate),
    _text("next_uncertainty"),
    _word("trigger", Trigger),
    PanelField("split_from", "split_from", str, str),
    _ids("split_into", lambda ids: f"[{','.join(ids)}]" if ids else ""),
)
# What only the carry keys hold, apart from the states.
CARRIED_FIELDS: tuple[PanelField, ...] = (
    _ids("waived", ",".join),
    PanelField("updated_at", "updated_at", str, str),
    PanelField(
        *("keep_open", "keep_open"),
        _parse_keep_open,
        lambda keep: "" if keep is None else yes_no(keep),
    ),
    PanelField("expire_days", "expire_days", parse_count, lambda days: str(days or "")),
)


@dataclass(slots=True)
class QueueRow:
    """A row of the queue, as text."""

    id: str
    previous_state: str
    state: str
    verdict: str
    impact: str
    urgency: str
    exec_mode: str
    terminal: str
    closure_tier: str
    ping_pong: str
    expires: str
    gate: str
    step: str

    @classmethod
    def parse(cls, line: str) -> Self | None:
        """The queue row of a line, or None."""
        cells = [each.strip() for each in line.strip().removeprefix("- ").split(" | ", 11)]
        if len(cells) != 12:
            return None
        before, arrow, after = (each.strip() for each in cells[1].partition("->"))
        if not arrow or len(before.split()) != 1 or len(after.split()) != 1:
            return None
        named = (each.partition(":")[2] for each in cells[5:11])
        return cls(*[cells[0], before, after, *cells[2:5], *named, cells[11]])

    def render(self) -> str:
        """The line of the row."""
        cells = (
            *(self.id, f"{self.previous_state}->{self.state}"),
            *(self.verdict, self.impact, self.urgency),
            *(f"ds:{self.exec_mode}", f"term:{self.terminal}", f"ct:{self.closure_tier}"),
            *(f"pp:{self.ping_pong}", f"exp:{self.expires}", f"gate:{self.gate}", self.step),
        )
        return " | ".join(cells)


class StepLine(NamedTuple):
    """A line of [STEPS]: its number, its text, and the step it parses to."""

    line_number: int
    text: str
    step: tuple[int, Step] | None


@dataclass(slots=True)
class ItemBlock:
    """The numbered lines of an item, by block."""

    id: str
    line: int = 0
    blocks: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    block_names: list[str] = field(default_factory=list)
    steps: list[StepLine] = field(default_factory=list)

    def fields(self, name: str, mark: str = ":") -> dict[str, str]:
        """The `key: value` lines of a block; the first of each key wins."""
        found: dict[str, str] = {}
        for _, line in self.blocks.get(name, ()):
            key, is_field, value = line.removeprefix("- ").partition(mark)
            if is_field:
                found.setdefault(key.strip(), value.strip())
        return found


@dataclass(slots=True)
class DecisionSnapshot:
    """The queue, the items and the panel; of a parsed snapshot also its lines and blocks."""

    first_line: int = 0
    lines: list[str] = field(default_factory=list)
    panel: dict[str, str] = field(default_factory=dict)
    user_panel: dict[str, str] = field(default_factory=dict)
    block_heads: list[tuple[int, str]] = field(default_factory=list)
    queue: list[QueueRow] = field(default_factory=list)
    blocks: list[ItemBlock] = field(default_factory=list)
    items: dict[str, PreviousItem] = field(default_factory=dict)
    row_by_id: dict[str, QueueRow] = field(default_factory=dict)
    is_marked_invalid: bool = False
    # Whether it may be used as state.
    is_usable: bool = False

    @property
    def batch_id(self) -> str:
        return self.panel.get("BatchID") or self.user_panel.get("BatchID") or ""


# From an outcome


def snapshot_of(outcome: DecisionOutcome) -> DecisionSnapshot:
    """The outcome as its snapshot tells it."""
    snap = DecisionSnapshot(
        panel=panel_settings(outcome) | panel_question(outcome),
        queue=[queue_row_of(item) for item in outcome.items],
        is_usable=outcome.is_valid,
    )
    for item, row in zip(outcome.items, snap.queue, strict=True):
        if row.id not in snap.items:
            snap.items[row.id], snap.row_by_id[row.id] = _printed_item(item), row
    return snap


def panel_settings(outcome: DecisionOutcome) -> dict[str, str]:
    """The settings of the batch in [PANEL]."""
    pool = format_resources(outcome.resource_pool or {})
    return {
        "ExecCapability": outcome.exec_capability,
        "ClosePolicy": outcome.close_policy,
        "SSOTScale": outcome.ssot_scale,
        **({"ResourcePool": pool} if pool else {}),
        "BatchID": outcome.batch_id,
    }


def panel_question(outcome: DecisionOutcome) -> dict[str, str]:
    """The question to the user in [PANEL]."""
    asked = to_one_line(outcome.question) or "NONE"
    return {"AskUserMode": outcome.ask_mode, "AskUser": asked}


def queue_row_of(item: DecisionItem) -> QueueRow:
    """The queue row of an item."""
    step = item.next_step
    return QueueRow(
        *(item.id, item.previous_state, item.state, item.verdict, item.impact, item.urgency),
        exec_mode=item.exec_mode,
        terminal="Y" if item.state in TERMINAL_STATES else "N",
        closure_tier=item.closure_tier,
        ping_pong="CLOSED" if item.state in SETTLED_STATES else "OPEN",
        expires=item.effective_expire_days,
        gate=item.dominant_gate,
        step=f"S{item.next_number}: {step.action_and_output}" if step else NONE_TEXT,
    )


def _printed_item(item: DecisionItem) -> PreviousItem:
    made = PreviousItem(
        item.id,
        state=item.state,
        waived=printed_waivers(item),
        binding=item.binding if item.surface in (Surface.DEBUG, Surface.DELTA) else {},
        probe_log=tuple(printed_probe_log(item)),
        best_evidence_tier=item.best_evidence_tier,
        reopen_total=item.reopen_total,
        reopen_blocked_count=item.reopen_blocked_count,
        closure_tier=item.closure_tier,
        counters=printed_counters(item),
        exec_mode=item.exec_mode,
    )
    for each in PANEL_FIELDS:
        setattr(made, each.attribute, getattr(item, each.attribute))
    # A snapshot does not tell the kind that a judge declared: it follows from the action.
    made.steps = tuple(replace(each, kind=kind_of(each.action)) for each in item.planned_steps)
    made.next_step = made.steps[item.next_number - 1] if item.next_number else None
    return made


def printed_waivers(item: DecisionItem) -> tuple[str, ...]:
    """The waivers that are printed: without a past only those that no step states."""
    stated = set(dependencies_waived_by(item.planned_steps))
    return item.waived if item.prev or set(item.waived) - stated else ()


def printed_probe_log(item: DecisionItem) -> list[ProbeLogEntry]:
    """The probe log as far as it is printed: with minimal surface only if there is debt."""
    indebted = item.profile is Profile.FULL and item.falsification_debt != "NONE"
    shown = item.surface is not Surface.MIN_SURFACE or indebted
    return item.full_probe_log if shown else []


def printed_counters(item: DecisionItem) -> dict[str, str]:
    """The counters of [DERIVED]."""
    return {
        "tb": f"{item.timebox_minutes}/{TIMEBOX_MINUTES[item.impact]}",
        "cx": f"{item.complexity_tax}/{MAX_COMPLEXITY_TAX[item.impact]}",
        **{name: str(getattr(item.counters, name)) for name in PROBE_COUNTERS},
        "rb": str(item.reopen_blocked_count),
    }
