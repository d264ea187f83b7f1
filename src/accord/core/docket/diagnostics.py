"""Diagnostics: problems that a run reports without stopping, each with a code and a hint."""

from typing import NamedTuple

# Each code, and how the author of the input corrects it.
HINT_OF_CODE: dict[str, str] = {
    "NO_ITEMS": "write at least one item: <<<I id=A>>>, <<<PLAN>>>, the plan, <<<END>>>; "
    "a judgement goes in behind <<<JUDGE>>>",
    "INVALID_ITEM": "an item needs an id and exactly one of PLAN, ARTIFACT, or TOOL with TARGET",
    "DUPLICATE_ID": "only the first item with an id is decided; give this one another id",
    "B_DUPLICATE": "only the first <<<B …>>> counts, and it comes before the items",
    "ATTR_UNKNOWN": "leave it out, or look for the name in the reference",
    "ATTR_REPEATED": "the last one counts; write it once",
    "ATTR_VALUE": "see the reference for the values it takes",
    "ATTR_DERIVED": "it is computed from the ratings and cannot be set",
    "SECTION_REPEATED": "only the first counts; NEW_EVIDENCE and RESULT alone may repeat",
    "SECTION_OUTSIDE": "sections stand between <<<I …>>> and <<<END>>>",
    "END_MISSING": "close the item with <<<END>>>",
    "JUDGE_SYNTAX": "a judgement is one JSON object",
    "JUDGE_UNKNOWN": "leave the key out; `accord decide schema` lists what there is",
    "JUDGE_VALUE": "leave it out or use one of the values of `accord decide schema`",
    "EVIDENCE_REJECTED": "evidence needs a tier HISTORICAL, REAL or EXPERIMENT, and a body",
    "CHANGE_REJECTED": "write each change as a bullet: - what changed",
    "PREV_MISMATCH": "PREV holds the [ITEM id=…] block of the same item",
    "PREV_SCOPE": "PREV holds one [ITEM id=…] block and nothing else",
    "PREV_INVALID": "an output marked INVALID is never state; use the last valid one",
    "SNAPSHOT_EXTRA": "only the first snapshot counts",
    "RESULT_NO_STEP": "name a step of the last snapshot that has no status yet, as step=S1",
    "RESULT_STATUS": "the status is COMPLETED, COMPLETED_SIMULATED, FAILED or FAILED_EXCEPTION",
    "STEP_GRAMMAR": "write VERB OBJECT -> OUTPUT | timebox<=10m | fail_if=CONDITION",
    "STEP_META_VERB": "begin with something that can be done, not with thinking about it",
    "STEP_CHAIN": "one action for each step; make two of it",
    "STEP_DELEGATION": "say what is to be acquired (kind ACQUIRE), not whom to ask",
    "STEP_PROBE_OUTPUT": "a probe ends in YES/NO, PASS/FAIL or a number that is compared",
    "STEP_VAGUE": "say what will be different afterwards, and how one sees it",
    "STEP_DROPPED": "the plan was over its budget; split the item, or make the steps smaller",
    "STEP_OVERFLOW": "an item has at most five steps",
    "TIER_UNBACKED": "name the evidence in evidence_ref, or send it as NEW_EVIDENCE",
    "HEDGE_DENIED": "a hedge needs costly delay, a passed window, a capped risk and a valid probe",
    "HARNESS_INVALID": "a probe needs the critical driver, a kill switch, a context, a signature",
    "REDESIGN_SIGNATURE_TRAP": "a new signature needs a new context id or metric too",
    "REDESIGN_UNCHANGED": "a redesigned probe differs in metric, signature or kill switch",
    "ADOPT_UNKNOWN": "adopt a probe that another item of this batch created",
    "SPLIT_ADVISED": "these drivers do not touch each other: give each its part in split",
    "SPLIT_NESTED": "a part of a split is not split again in the same run",
    "CLOSE_BLOCKED": "rate all four dimensions and keep the steps within the budget to close",
    "CONTEST_UNADDRESSED": "say in delta.break what became of the objection",
    "AUDIT_MISSING": "give completeness, coherence, operationality, defect, patch and step",
    "SELF_CHECK": "please report this input",
}


class Diagnostic(NamedTuple):
    """One problem in the input, with the item and the line it is about."""

    code: str
    item: str = "-"
    detail: str = ""
    line: int = 0

    @property
    def hint(self) -> str:
        """How to correct the input."""
        return HINT_OF_CODE[self.code]
