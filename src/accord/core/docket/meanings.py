"""What each trigger says, for whoever meets it for the first time."""

from .words import Trigger

MEANING: dict[Trigger, str] = {
    Trigger.DUPLICATE_ID_REJECTED: "another item of this batch has the same id",
    Trigger.REOPEN_BLOCKED_BUDGET: "it was closed and opened again once already",
    Trigger.REOPEN_BLOCKED_NO_DELTA: "it is over, and nothing new was shown that would change that",
    Trigger.FAIL_FAST_CUT: "twice its plan had no steps, no goal or no constraint",
    Trigger.FAIL_FAST_PLAN_SNR: "its plan lacks steps, a goal or a constraint",
    Trigger.FALSIFICATION: "a probe has shown that it does not work",
    Trigger.MULTI_CRITICAL_DRIVER_SPLIT: "it is several decisions in one, and goes on as those",
    Trigger.CIRCULAR_DEPENDENCY: "it waits for what waits for it",
    Trigger.INVALID_DELTA: "something was said, but nothing that could change a decision",
    Trigger.PROBE_STALL_CONTEXT_MATCH: "two probes in a row ran in the wrong place",
    Trigger.CLOSE_BLOCKED_REAL_ONLY: "it is done, but nothing real has shown that it works",
    Trigger.DEBT_CEILING: "too many other things go on unproven; they come first",
    Trigger.FRAGILITY: "a small change of a rating would turn the verdict, so try it small first",
    Trigger.MISSING_SOURCE_INPUT: "what it is about was not given",
    Trigger.DEPENDENCY_BLOCK: "something else comes first, or what it uses is taken",
    Trigger.CONFIDENCE_CAP_APPLIED: "the evidence does not bear the confidence that was claimed",
    Trigger.BLOCKED_EXTERNAL: "only others can go on",
    Trigger.EXTERNAL_DATA_REQUIRED: "it needs what only others know",
    Trigger.REDESIGN_TRIGGER: (
        "as planned it does not go: a step failed, the plan is too long, "
        "or there is no probe that could prove it wrong"
    ),
    Trigger.SCORE_TRIAGE: "nobody proposed a verdict, so the ratings gave it",
    Trigger.NONE: "nothing stands in its way",
}
