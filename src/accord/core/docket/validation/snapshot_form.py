"""Checks the form of a snapshot line by line, and lists the flaws that any check can report."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from accord.core.docket.probes import ENTRY_FIELDS
from accord.core.docket.snapshot import PANEL_FIELDS, DecisionSnapshot, ItemBlock, QueueRow
from accord.core.docket.steps import parse_step
from accord.core.docket.vocabulary import Dimension

# Each code: why it makes a snapshot invalid, and how to repair it.
FLAW_CODES: dict[str, tuple[str, str]] = {
    "V01": ("OTHER", "begin the block with STATE: DECISION.TEST.FINAL"),
    "V02": ("CODE_BLOCK_PURITY", "put everything into one code block"),
    "V03": ("OTHER", "keep the order of the blocks"),
    "V04": ("CODE_BLOCK_PURITY", "leave the block out, or move it behind the code block"),
    "V05": ("CODE_BLOCK_PURITY", "leave the line out; prose goes behind the code block"),
    "V06": ("BATCH_COVERAGE", "give every item exactly one line of [QUEUE]"),
    "V07": ("BATCH_COVERAGE", "give every item exactly one [ITEM id=…]"),
    "V08": ("PREV_SURFACE", "an item with a past shows DERIVED, DELTA, STEPS and NEXT only"),
    "V09": ("OTHER", "repeat one pending line of [STEPS] under [NEXT], letter by letter"),
    "V10": ("REPAIRABLE", "at most five: S1: VERB OBJECT -> OUTPUT | timebox<=10m | fail_if=X"),
    "V11": ("REPAIRABLE", "use a word of the list"),
    "V12": ("REPAIRABLE", "say the same in [QUEUE] and in the item"),
    "V13": ("REPAIRABLE", "DO NOW is ACTIVE, PROBING, CLOSED; DO LATER is STANDBY, DRAFT, EXPIRED"),
    "V14": ("REPAIRABLE", "count again from the steps and the probe log"),
    "V15": ("REPAIRABLE", "write other letters as \\uXXXX"),
    "V16": ("REPAIRABLE", "ask one question at most, and only with AskUserMode: ALLOW"),
    "V17": ("REPAIRABLE", "let the rules decide: run it with repair"),
}  # fmt: skip
BATCH_BLOCKS = ("USER_PANEL", "PANEL", "QUEUE", "RECOVERY_INPUT")
ITEM_BLOCK_ORDER = (
    *("ITEM_PANEL", "DERIVED", "DELTA", "BREAK", "PATCH", "VERDICT_UPDATE", "STEPS"),
    *("ARTIFACT_AUDIT", "AUDIT_EXACT", "DECISION_MODEL", "EVIDENCE_BINDING", "DATA_ACQUISITION"),
    *("ALTERNATIVE", "PROBE", "PROBE_LOG", "REVIEW", "NEXT"),
)
DELTA_BLOCKS = frozenset({"DERIVED", "DELTA", "BREAK", "PATCH", "VERDICT_UPDATE", "STEPS", "NEXT"})
FIELDS_OF_BLOCK: dict[str, frozenset[str]] = {
    "ITEM_PANEL": frozenset(
        {"id", "state", "prev_source", "waived", *(each.name for each in PANEL_FIELDS)}
    ),
    "DERIVED": frozenset({
        "item_exec_mode", "terminal", "closure_tier", "best_evidence_tier", "events",
        "reopen_total", "effective_expire_days", "output_mode", "counters",
        "derived_version", "scoring_version",
    }),
    "VERDICT_UPDATE": frozenset({"verdict", "state"}),
    "ARTIFACT_AUDIT": frozenset({
        "artifact_type", "audit_1_completeness", "audit_2_coherence", "audit_3_operationality",
        "top_defects", "top_deltas", "equivalence_probe",
    }),
    "AUDIT_EXACT": frozenset({"defect", "patch", "step"}),
    "DECISION_MODEL": frozenset({
        "domain_type", "drivers", "critical_driver", "impact_graph", "assumptions",
        "evidence_available", "uncertainties",
    }),
    "EVIDENCE_BINDING": frozenset(Dimension),
    "ALTERNATIVE": frozenset({"text", "driver_changes", "tradeoffs", "status"}),
    "PROBE": frozenset({*ENTRY_FIELDS, "harness", "decision_context", "representativeness_check"}),
    "PROBE_LOG": frozenset(ENTRY_FIELDS),
    "USER_PANEL": frozenset({
        "BatchID", "SummaryCounts", "TopGates", "Now", "Later", "Cut", "NextActions",
    }),
    "PANEL": frozenset({
        "Protocol", "SSOT_STATUS", "interaction_ssot", "decision_ssot", "ExecCapability",
        "ClosePolicy", "SSOTScale", "ResourcePool", "BatchID", "Items", "InputInventory",
        "StatusCounts", "PingPongCounts", "VerdictCounts", "ImpactCounts", "Governance",
        "AskUserMode", "AskUser", "CopyPasteMode",
    }),
}  # fmt: skip
EMPTY_MARKS = frozenset({"(none)", "(empty)"})
_NUMBERED = re.compile(r"\d{1,4}\. .+|contested: .+")
_PATCH = re.compile(
    r"(?:patch|refs): .*|(?:audit_exact_(?:defect|patch|step)|artifact_audit_equivalence_probe"
    r"|(?:state|binding|probe)\.[A-Za-z0-9_]+)=.*"
)
_HEAD = re.compile(r"\[([A-Z_]+)(?: id=[^\]]*)?\]")
_STEP_NUMBER = re.compile(r"(?:- )?S[0-9]+:")


class Flaw(NamedTuple):
    """One violation: its code, the item, what is wrong, and the line."""

    code: str
    item: str
    detail: str
    line: int = 0

    @property
    def reason(self) -> str:
        """Why it makes the snapshot invalid, or REPAIRABLE."""
        return FLAW_CODES[self.code][0]

    @property
    def hint(self) -> str:
        """How to repair it."""
        return FLAW_CODES[self.code][1]


def lint_snapshot(snap: DecisionSnapshot) -> Iterator[Flaw]:
    """All flaws of form in a snapshot, line by line."""
    yield from _lint_heads("-", snap.block_heads, BATCH_BLOCKS, snap.first_line)
    yield from _lint_batch_lines(snap)
    yield from _lint_ascii(snap)
    for block in snap.blocks:
        yield from _lint_item(block)


def _lint_heads(
    item: str, heads: Iterable[tuple[int, str]], order: Sequence[str], line: int
) -> Iterator[Flaw]:
    """Unknown blocks, and known ones that are out of order or repeated."""
    heads = list(heads)
    yield from (Flaw("V04", item, f"[{name}]", at) for at, name in heads if name not in order)
    known = [name for _, name in heads if name in order]
    if known != [name for name in order if name in known]:
        yield Flaw("V03", item, ", ".join(known), line)


def _lint_batch_lines(snap: DecisionSnapshot) -> Iterator[Flaw]:
    where = ""
    for number, line in enumerate(snap.lines[1:], snap.first_line + 1):
        text = line.strip()
        if text.startswith("[ITEM id=") or where == "RECOVERY_INPUT":
            return
        if found := _HEAD.fullmatch(text):
            where = found[1]
        elif text and not _is_batch_line(where, text):
            yield Flaw("V05", "-", text[:80], number)


def _is_batch_line(where: str, text: str) -> bool:
    if where == "QUEUE":
        return QueueRow.parse(text) is not None
    key = text.partition(":")[0]
    return text.startswith("- ") or key in FIELDS_OF_BLOCK.get(where, frozenset())


def _lint_ascii(snap: DecisionSnapshot) -> Iterator[Flaw]:
    for number, line in enumerate(snap.lines, snap.first_line):
        if not line.isascii():
            yield Flaw("V15", "-", line.strip()[:80], number)


def _lint_item(block: ItemBlock) -> Iterator[Flaw]:
    heads = [(block.line, name) for name in block.block_names]
    yield from _lint_heads(block.id, heads, ITEM_BLOCK_ORDER, block.line)
    if "DELTA" in block.block_names:
        for name in block.block_names:
            if name in ITEM_BLOCK_ORDER and name not in DELTA_BLOCKS:
                yield Flaw("V08", block.id, f"[{name}]", block.line)
    for name, lines in block.blocks.items():
        for number, line in lines:
            known = name in ITEM_BLOCK_ORDER or name == "ITEM"
            if known and not line_fits(name, line.strip()):
                yield Flaw("V05", block.id, f"[{name}] {line.strip()[:80]}", number)
    yield from _lint_steps(block)


def line_fits(name: str, text: str) -> bool:
    """Whether a line has the form of the lines of its block; otherwise it is prose."""
    if name == "BREAK" or text in EMPTY_MARKS:
        return True
    if name in {"STEPS", "NEXT"}:
        return _is_step_line(text)
    if name == "PATCH":
        return bool(_PATCH.fullmatch(text))
    if name in {"REVIEW", "DATA_ACQUISITION"}:
        return bool(_NUMBERED.fullmatch(text))
    key = text.removeprefix("- ").partition(":")[0]
    return key in FIELDS_OF_BLOCK.get(name, frozenset())


def _is_step_line(text: str) -> bool:
    """Whether a line is a step, well-formed or not."""
    return bool(_STEP_NUMBER.match(text)) or parse_step(text) is not None


def _lint_steps(block: ItemBlock) -> Iterator[Flaw]:
    lines = [each for each in block.steps if _is_step_line(each.text.strip())]
    if len(lines) > 5:
        yield Flaw("V10", block.id, f"{len(lines)} steps", block.line)
    for place, (at, text, found) in enumerate(lines, 1):
        if found is None or found[0] != place:
            yield Flaw("V10", block.id, text.strip()[:80], at)
