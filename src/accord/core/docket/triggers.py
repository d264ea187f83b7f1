"""The rules that can decide an item: their names, the gate each one sets, and what it means."""

from accord.core.docket.vocabulary import LenientEnum


class Trigger(LenientEnum):
    """The rule that decided an item, the strongest first."""

    DUPLICATE_ID_REJECTED = "DUPLICATE_ID_REJECTED"
    REOPEN_BLOCKED_BUDGET = "REOPEN_BLOCKED_BUDGET"
    REOPEN_BLOCKED_NO_DELTA = "REOPEN_BLOCKED_NO_DELTA"
    FAIL_FAST_CUT = "FAIL_FAST_CUT"
    FAIL_FAST_PLAN_SNR = "FAIL_FAST_PLAN_SNR"
    FALSIFICATION = "FALSIFICATION"
    MULTI_CRITICAL_DRIVER_SPLIT = "MULTI_CRITICAL_DRIVER_SPLIT"
    CIRCULAR_DEPENDENCY = "CIRCULAR_DEPENDENCY"
    INVALID_DELTA = "INVALID_DELTA"
    PROBE_STALL_CONTEXT_MATCH = "PROBE_STALL_CONTEXT_MATCH"
    CLOSE_BLOCKED_REAL_ONLY = "CLOSE_BLOCKED_REAL_ONLY"
    DEBT_CEILING = "DEBT_CEILING"
    FRAGILITY = "FRAGILITY"
    MISSING_SOURCE_INPUT = "MISSING_SOURCE_INPUT"
    DEPENDENCY_BLOCK = "DEPENDENCY_BLOCK"
    CONFIDENCE_CAP_APPLIED = "CONFIDENCE_CAP_APPLIED"
    BLOCKED_EXTERNAL = "BLOCKED_EXTERNAL"
    EXTERNAL_DATA_REQUIRED = "EXTERNAL_DATA_REQUIRED"
    REDESIGN_TRIGGER = "REDESIGN_TRIGGER"
    SCORE_TRIAGE = "SCORE_TRIAGE"
    NONE = "NONE"


REOPEN_BLOCKED_TRIGGERS = frozenset(
    {Trigger.REOPEN_BLOCKED_BUDGET, Trigger.REOPEN_BLOCKED_NO_DELTA}
)


class DominantGate(LenientEnum):
    """What keeps an item from running, the strongest first."""

    FAIL_FAST_CUT = "FAIL_FAST_CUT"
    FALSIFICATION = "FALSIFICATION"
    DEBT_CEILING = "DEBT_CEILING"
    FRAGILITY = "FRAGILITY"
    DEPENDENCY_BLOCK = "DEPENDENCY_BLOCK"
    CONFIDENCE_CAP = "CONFIDENCE_CAP"
    EXTERNAL_BLOCK = "EXTERNAL_BLOCK"
    REDESIGN_TRIGGER = "REDESIGN_TRIGGER"
    SCORE_TRIAGE = "SCORE_TRIAGE"
    NONE = "NONE"


# The gates that are not named after their trigger.
_OTHER_GATES: dict[Trigger, DominantGate] = {
    Trigger.DUPLICATE_ID_REJECTED: DominantGate.DEPENDENCY_BLOCK,
    Trigger.REOPEN_BLOCKED_BUDGET: DominantGate.DEPENDENCY_BLOCK,
    Trigger.REOPEN_BLOCKED_NO_DELTA: DominantGate.DEPENDENCY_BLOCK,
    Trigger.FAIL_FAST_PLAN_SNR: DominantGate.FAIL_FAST_CUT,
    Trigger.MULTI_CRITICAL_DRIVER_SPLIT: DominantGate.REDESIGN_TRIGGER,
    Trigger.CIRCULAR_DEPENDENCY: DominantGate.REDESIGN_TRIGGER,
    Trigger.INVALID_DELTA: DominantGate.REDESIGN_TRIGGER,
    Trigger.PROBE_STALL_CONTEXT_MATCH: DominantGate.REDESIGN_TRIGGER,
    Trigger.CLOSE_BLOCKED_REAL_ONLY: DominantGate.EXTERNAL_BLOCK,
    Trigger.MISSING_SOURCE_INPUT: DominantGate.DEPENDENCY_BLOCK,
    Trigger.CONFIDENCE_CAP_APPLIED: DominantGate.CONFIDENCE_CAP,
    Trigger.BLOCKED_EXTERNAL: DominantGate.EXTERNAL_BLOCK,
    Trigger.EXTERNAL_DATA_REQUIRED: DominantGate.EXTERNAL_BLOCK,
}
GATE_OF_TRIGGER = {
    each: _OTHER_GATES[each] if each in _OTHER_GATES else DominantGate(each.value)
    for each in Trigger
}
# What each trigger means, for first-time readers.
TRIGGER_TEXT: dict[Trigger, str] = {
    Trigger.DUPLICATE_ID_REJECTED: "another item of this batch has the same id",
    Trigger.REOPEN_BLOCKED_BUDGET: "it was already reopened once, which is the limit",
    Trigger.REOPEN_BLOCKED_NO_DELTA: "it is finished, and no new evidence justifies reopening it",
    Trigger.FAIL_FAST_CUT: "its plan lacked steps, a goal or a constraint twice",
    Trigger.FAIL_FAST_PLAN_SNR: "its plan lacks steps, a goal or a constraint",
    Trigger.FALSIFICATION: "a probe has shown that it does not work",
    Trigger.MULTI_CRITICAL_DRIVER_SPLIT: "it contains several decisions and is split into them",
    Trigger.CIRCULAR_DEPENDENCY: "its dependencies form a cycle",
    Trigger.INVALID_DELTA: "the update contains nothing that could change the decision",
    Trigger.PROBE_STALL_CONTEXT_MATCH: "two probes in a row ran in the wrong context",
    Trigger.CLOSE_BLOCKED_REAL_ONLY: "it is done, but no real evidence shows that it works",
    Trigger.DEBT_CEILING: "too many other assumptions are unproven; they come first",
    Trigger.FRAGILITY: "a small change of a rating would reverse the verdict; try it small first",
    Trigger.MISSING_SOURCE_INPUT: "the input that it refers to is missing",
    Trigger.DEPENDENCY_BLOCK: "a dependency comes first, or a resource is in use",
    Trigger.CONFIDENCE_CAP_APPLIED: "the evidence does not support the claimed confidence",
    Trigger.BLOCKED_EXTERNAL: "it waits for an external party",
    Trigger.EXTERNAL_DATA_REQUIRED: "it needs data from an external party",
    Trigger.REDESIGN_TRIGGER: (
        "the plan does not work: a step failed, it is too long, "
        "or there is no probe that could prove it wrong"
    ),
    Trigger.SCORE_TRIAGE: "no verdict was proposed, so the ratings gave it",
    Trigger.NONE: "nothing blocks it",
}
