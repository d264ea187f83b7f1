"""What a snapshot must look like: known blocks in order, known fields, lines of the right form."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from accord.core.docket.probes import FIELDS
from accord.core.docket.snapshot import Block, Snapshot, queue_row
from accord.core.docket.words import Dim

# Each code: the reason it makes a snapshot invalid for, and how to mend it.
CODES: dict[str, tuple[str, str]] = {
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
# The strongest reason is the one that is given.
REASONS = ("BATCH_COVERAGE", "CODE_BLOCK_PURITY", "PREV_SURFACE", "OTHER")

HEADS = ("USER_PANEL", "PANEL", "QUEUE", "RECOVERY_INPUT")
ORDER = (
    *("ITEM_PANEL", "DERIVED", "DELTA", "BREAK", "PATCH", "VERDICT_UPDATE", "STEPS"),
    *("ARTIFACT_AUDIT", "AUDIT_EXACT", "DECISION_MODEL", "EVIDENCE_BINDING", "DATA_ACQUISITION"),
    *("ALTERNATIVE", "PROBE", "PROBE_LOG", "REVIEW", "NEXT"),
)
DELTA = frozenset({"DERIVED", "DELTA", "BREAK", "PATCH", "VERDICT_UPDATE", "STEPS", "NEXT"})
PANEL = frozenset(
    {
        *("id", "title", "mode", "profile", "domain_type", "state", "verdict", "impact"),
        *("urgency", "score", "contested", "depends_on", "missing_ratings", "hedge_action"),
        *("critical_driver_confidence", "reversibility", "uses", "fail_fast_count", "why"),
        *("critical_driver", "dominant_tradeoff", "falsification_debt", "dominant_gate"),
        *("next_uncertainty", "trigger", "split_from", "split_into", "prev_source", "waived"),
    }
)
DERIVED = frozenset(
    {
        *("item_exec_mode", "terminal", "closure_tier", "best_evidence_tier", "events"),
        *("reopen_total", "effective_expire_days", "output_mode", "counters"),
        *("derived_version", "scoring_version"),
    }
)
MODEL = frozenset(
    {
        *("domain_type", "drivers", "critical_driver", "impact_graph", "assumptions"),
        *("evidence_available", "uncertainties"),
    }
)
AUDIT = frozenset(
    {
        *("artifact_type", "audit_1_completeness", "audit_2_coherence", "audit_3_operationality"),
        *("top_defects", "top_deltas", "equivalence_probe"),
    }
)
FIELDS_OF: dict[str, frozenset[str]] = {
    "ITEM_PANEL": PANEL,
    "DERIVED": DERIVED,
    "VERDICT_UPDATE": frozenset({"verdict", "state"}),
    "ARTIFACT_AUDIT": AUDIT,
    "AUDIT_EXACT": frozenset({"defect", "patch", "step"}),
    "DECISION_MODEL": MODEL,
    "EVIDENCE_BINDING": frozenset(Dim),
    "ALTERNATIVE": frozenset({"text", "driver_changes", "tradeoffs", "status"}),
    "PROBE": frozenset({*FIELDS, "harness", "decision_context", "representativeness_check"}),
    "PROBE_LOG": frozenset(FIELDS),
    "USER_PANEL": frozenset(
        {"BatchID", "SummaryCounts", "TopGates", "Now", "Later", "Cut", "NextActions"}
    ),
    "PANEL": frozenset(
        {
            *("Protocol", "SSOT_STATUS", "interaction_ssot", "decision_ssot", "ExecCapability"),
            *("ClosePolicy", "SSOTScale", "ResourcePool", "BatchID", "Items", "InputInventory"),
            *("StatusCounts", "PingPongCounts", "VerdictCounts", "ImpactCounts", "Governance"),
            *("AskUserMode", "AskUser", "CopyPasteMode"),
        }
    ),
}
EMPTY = frozenset({"(none)", "(empty)"})
_NUMBERED = re.compile(r"\d{1,4}\. .+|contested: .+")
_PATCH = re.compile(
    r"(?:patch|refs): .*|(?:audit_exact_(?:defect|patch|step)|artifact_audit_equivalence_probe"
    r"|(?:state|binding|probe)\.[A-Za-z0-9_]+)=.*"
)
_HEAD = re.compile(r"\[([A-Z_]+)(?: id=[^\]]*)?\]")


class Flaw(NamedTuple):
    """One violation: its code, the item, what is wrong, and the line."""

    code: str
    item: str
    detail: str
    line: int = 0

    @property
    def reason(self) -> str:
        """What it makes the snapshot invalid for, or REPAIRABLE."""
        return CODES[self.code][0]

    @property
    def hint(self) -> str:
        """How to mend it."""
        return CODES[self.code][1]


def lint(snap: Snapshot) -> Iterator[Flaw]:
    """Every flaw of form."""
    yield from _heads(snap)
    yield from _letters(snap)
    for block in snap.blocks:
        yield from _item(block)


def _heads(snap: Snapshot) -> Iterator[Flaw]:
    names = [name for _, name in snap.heads]
    for number, name in snap.heads:
        if name not in HEADS:
            yield Flaw("V04", "-", f"[{name}]", number)
    known = [name for name in names if name in HEADS]
    if known != [each for each in HEADS if each in known]:
        yield Flaw("V03", "-", ", ".join(known), snap.first)
    where = ""
    for number, line in enumerate(snap.lines[1:], snap.first + 1):
        text = line.strip()
        if text.startswith("[ITEM id=") or where == "RECOVERY_INPUT":
            return
        if found := _HEAD.fullmatch(text):
            where = found[1]
        elif text and not _head_line(where, text):
            yield Flaw("V05", "-", text[:80], number)


def _head_line(where: str, text: str) -> bool:
    if where == "QUEUE":
        return queue_row(text) is not None
    key = text.partition(":")[0]
    return text.startswith("- ") or key in FIELDS_OF.get(where, frozenset())


def _letters(snap: Snapshot) -> Iterator[Flaw]:
    for number, line in enumerate(snap.lines, snap.first):
        if not line.isascii():
            yield Flaw("V15", "-", line.strip()[:80], number)


def _item(block: Block) -> Iterator[Flaw]:
    for name in block.order:
        if name not in ORDER:
            yield Flaw("V04", block.id, f"[{name}]", block.line)
    known = [name for name in block.order if name in ORDER]
    if known != [each for each in ORDER if each in known]:
        yield Flaw("V03", block.id, ", ".join(known), block.line)
    if "DELTA" in known:
        for name in known:
            if name not in DELTA:
                yield Flaw("V08", block.id, f"[{name}]", block.line)
    for name, lines in block.blocks.items():
        if name in ORDER or name == "ITEM":
            yield from _lines(block.id, name, lines)
    yield from _steps(block)


def _lines(item: str, name: str, lines: Iterable[tuple[int, str]]) -> Iterator[Flaw]:
    for number, line in lines:
        if not _fits(name, line.strip()):
            yield Flaw("V05", item, f"[{name}] {line.strip()[:80]}", number)


def _fits(name: str, text: str) -> bool:
    if name in {"BREAK", "STEPS", "NEXT"} or text in EMPTY:
        return True
    if name == "PATCH":
        return bool(_PATCH.fullmatch(text))
    if name in {"REVIEW", "DATA_ACQUISITION"}:
        return bool(_NUMBERED.fullmatch(text))
    key = text.removeprefix("- ").partition(":")[0]
    return key in FIELDS_OF.get(name, frozenset())


def _steps(block: Block) -> Iterator[Flaw]:
    lines = [each for each in block.steps if each.text.strip() not in EMPTY]
    if len(lines) > 5:
        yield Flaw("V10", block.id, f"{len(lines)} steps", block.line)
    for place, (at, text, found) in enumerate(lines, 1):
        if found is None or found[0] != place:
            yield Flaw("V10", block.id, text.strip()[:80], at)
