"""Steps: one action each, with an observable output, a timebox and a failure condition."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from accord.core.docket.judgement import ProposedStep
from accord.core.docket.text_values import step_part
from accord.core.docket.vocabulary import (
    COMPLETE_STATUSES,
    EvidenceTier,
    ExceptionToken,
    StepKind,
    StepStatus,
)

# The texts of the kernel's own steps; the item fills in the braces.
TEMPLATES: dict[str, tuple[StepKind, str, str, int, str]] = {
    "mitigate": (StepKind.MITIGATE, "Contain live effects of {id}", "mitigation_{id}=YES/NO",
        30, "live_effect_still_observed"),
    "cycle": (StepKind.CYCLE_BREAK, "Remove edge {id} to {dep} from depends_on",
        "cycle_broken=YES/NO", 10, "cycle_still_detected"),
    "causal": (StepKind.CAUSAL, "Record outcome of the pending step of {id}",
        "causal_ref_logged=YES/NO", 10, "no_outcome_recorded"),
    "harness": (StepKind.HARNESS_REDESIGN, "Rebuild probe harness for {driver}",
        "harness_valid=YES/NO", 10, "harness_field_missing"),
    "probe": (StepKind.PROBE, "Run probe {probe} on {driver}", "{probe}_pass=YES/NO",
        10, "{condition}"),
    "waive": (StepKind.DEP_WAIVE, "Waive dependency {dep}", "waiver_{dep}=RECORDED",
        5, "waiver_not_recorded"),
    "measure": (StepKind.PROBE, "Measure {driver} without {dep}", "{driver}_measured=YES/NO",
        10, "no_measurement"),
    "evidence": (StepKind.ACQUIRE, "Collect real evidence for {driver}", "real_evidence=RECEIVED",
        10, "no_real_evidence"),
    "external": (StepKind.ACQUIRE, "Request {ask}", "external_data=RECEIVED",
        10, "no_response_by_timebox"),
    "name": (StepKind.SOURCE_ACQUIRE, "Name missing source for {id}", "source_named=YES/NO",
        5, "source_still_unnamed"),
    "resolve": (StepKind.DEP_RESOLVE, "Close dependency {dep}", "{dep}_terminal=YES/NO",
        10, "{dep}_not_terminal"),
    "wait": (StepKind.RESOURCE_WAIT, "Wait for resource {rid}", "{rid}_available=YES/NO",
        10, "{rid}_unavailable"),
    "source": (StepKind.SOURCE_ACQUIRE, "Fetch source {what}", "source_obtained=YES/NO",
        10, "source_not_obtained"),
    "cut": (StepKind.PLAN_REDESIGN, "Cut plan of {id} to budget", "plan_within_budget=YES/NO",
        10, "tb_or_cx_over_budget"),
    "rework": (StepKind.PLAN_REDESIGN, "Rework failed step of {id}", "reworked_step_ready=YES/NO",
        10, "same_failure_repeats"),
    "write": (StepKind.PLAN_REDESIGN, "Write first executable step for {id}",
        "step_accepted=YES/NO", 10, "step_grammar_rejected"),
    "second": (StepKind.SECOND_CHECK, "Run second independent check on {driver}",
        "second_check_pass=YES/NO", 10, "second_check_fails"),
    "debt": (StepKind.DEBT_SLOT, "Recheck debt slot held by {holder}", "debt_slot_free=YES/NO",
        5, "slot_still_held"),
    "ratings": (StepKind.ACQUIRE, "Collect missing ratings for {id}", "ratings_complete=YES/NO",
        10, "rating_still_missing"),
    "specs": (StepKind.EXEC, "Write minimal specs", "specs_complete=YES/NO",
        5, "spec_line_missing"),
}  # fmt: skip

# The kind of a step, by how its action begins.
KIND_PATTERNS: tuple[tuple[str, StepKind], ...] = (
    (r"rollback|roll back|revert|contain|compensate|restore", StepKind.MITIGATE),
    (r"remove edge|break cycle", StepKind.CYCLE_BREAK),
    (r"split", StepKind.SPLIT),
    (r"waive", StepKind.DEP_WAIVE),
    (r"close dependency|resolve dependency", StepKind.DEP_RESOLVE),
    (r"wait for resource", StepKind.RESOURCE_WAIT),
    (r"rebuild probe|redesign probe", StepKind.HARNESS_REDESIGN),
    (r"cut plan", StepKind.PLAN_REDESIGN),
    (r"fetch source", StepKind.SOURCE_ACQUIRE),
    (r"collect|fetch|acquire|request|query", StepKind.ACQUIRE),
    (r"probe|test|measure|check|verify|benchmark|simulate|compare|count|inspect", StepKind.PROBE),
    (r"run\b.*\b(?:probe|check|test|canary|benchmark|simulation|spike)", StepKind.PROBE),
)
_COMPILED_KIND_PATTERNS = tuple(
    (re.compile(rf"(?:{shape})\b", re.IGNORECASE), kind) for shape, kind in KIND_PATTERNS
)

WAIVER_PATTERN = re.compile(
    r"waive\s+(?:the\s+)?dependency\s+([A-Za-z0-9][A-Za-z0-9_.-]*)", re.IGNORECASE
)
META_VERBS = frozenset(
    {
        *("define", "analyze", "analyse", "evaluate", "consider", "research", "think"),
        *("definire", "analizzare", "valutare", "considerare", "ricercare", "riflettere"),
    }
)
MAX_STEP_CHARS = 4000
VAGUE_VERBS = frozenset({"improve", "optimize", "refactor"})
_CHAIN = re.compile(r";|&&|\bthen\b", re.IGNORECASE)
_DELEGATION = re.compile(
    r"ask the team|discuss with|talk to|\bdelegate\b|check with", re.IGNORECASE
)
_MEASURED = re.compile(r"=\s*YES/NO|=\s*PASS/FAIL|[<>=]=?\s*-?\d|\b\d+(?:\.\d+)?\s*[<>]=?")
# None of these backtracks, so a line takes time linear in its length.
_NUMBER_AND_ACTION = re.compile(r"(?:-\s++)?+(?:S([0-9]{1,3}):\s*+)?+(\S++\s++\S)")
_TIMEBOX = re.compile(r"timebox<=([0-9]{1,6})m")
_STEP_NAME = re.compile(r"[sS]?(\d{1,3})")
_FAIL_PREFIX = "fail_if="
_RESULT_FIELDS = frozenset({"status", "evidence_tier", "result"})


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `status` is empty while it is pending."""

    kind: StepKind
    action: str
    output: str
    minutes: int
    fail_if: str
    status: StepStatus | None = None
    tier: EvidenceTier | None = None
    result: str = ""

    @property
    def is_pending(self) -> bool:
        """Whether the step has no result yet."""
        return self.status is None

    @property
    def is_complete(self) -> bool:
        return self.status in COMPLETE_STATUSES

    @property
    def has_failed(self) -> bool:
        return self.status is not None and not self.is_complete

    @property
    def action_and_output(self) -> str:
        return f"{self.action} -> {self.output}"

    def render(self, number: int | None = None) -> str:
        """The line of the step in a snapshot."""
        head = f"S{number}: " if number else ""
        parts = [
            f"{head}{self.action_and_output}",
            f"timebox<={self.minutes}m",
            f"fail_if={self.fail_if}",
        ]
        if self.status:
            parts.append(f"status={self.status}")
        if self.tier:
            parts.append(f"evidence_tier={self.tier}")
        if self.result:
            parts.append(f"result={self.result}")
        return " | ".join(parts)


def kind_of(action: str) -> StepKind:
    """The kind of an action, by how it begins."""
    return next(
        (kind for shape, kind in _COMPILED_KIND_PATTERNS if shape.match(action)), StepKind.EXEC
    )


def parse_step(line: str) -> tuple[int, Step] | None:
    """The number (0 if there is none) and the step of a line, or None if it is not a step."""
    doing, *cells = (each.strip() for each in line.split("|"))
    if len(line) > MAX_STEP_CHARS or len(cells) < 2 or not (said := _split_action(doing)):
        return None
    number, action, output = said
    box, (fail, *more) = _TIMEBOX.fullmatch(cells[0]), cells[1:]
    fail_if = fail.removeprefix(_FAIL_PREFIX).strip() if fail.startswith(_FAIL_PREFIX) else ""
    rest = dict(each.partition("=")[::2] for each in more)
    if not box or int(box[1]) < 1 or not fail_if or not rest.keys() <= _RESULT_FIELDS:
        return None
    step = Step(
        kind_of(action),
        action,
        output,
        int(box[1]),
        step_part(fail_if),
        StepStatus.parse(rest.get("status")),
        EvidenceTier.parse(rest.get("evidence_tier")),
        step_part(rest.get("result", "")),
    )
    return number, step


def _split_action(text: str) -> tuple[int, str, str] | None:
    """The number, the action of at least two words, and the output after the first arrow."""
    if not (found := _NUMBER_AND_ACTION.match(text)):
        return None
    arrow = text.find("->", found.end())
    action, output = step_part(text[found.start(2) : arrow]), step_part(text[arrow + 2 :])
    return (int(found[1] or 0), action, output) if arrow > 0 and output else None


def number_in(name: str) -> int:
    """The number of a step that is named `S1`, `s1` or `1`; 0 if it is none of these."""
    found = _STEP_NAME.fullmatch(name.strip())
    return int(found[1]) if found else 0


def accept_proposed(asked: str | ProposedStep) -> tuple[Step | None, list[str]]:
    """The proposed step, or None if it is rejected; and the diagnostic code, if any."""
    text = asked if isinstance(asked, str) else asked.text or ""
    given = None if isinstance(asked, str) else asked.kind
    target = None if isinstance(asked, str) else asked.target_driver
    if not (found := parse_step(text)) or found[1].status:
        return None, ["STEP_GRAMMAR"]
    step = replace(found[1], kind=given or found[1].kind, tier=None, result="")
    if bad := _rejection_code(step, given, target):
        return None, [bad]
    vague = " and " in step.action or _verb(step) in VAGUE_VERBS
    return step, ["STEP_VAGUE"] if vague else []


def _rejection_code(step: Step, given: StepKind | None, target: str | None) -> str:
    measured = bool(_MEASURED.search(step.output))
    probe = step.kind is StepKind.PROBE and measured and bool(target)
    if _verb(step) in META_VERBS and not probe:
        return "STEP_META_VERB"
    if _CHAIN.search(step.action):
        return "STEP_CHAIN"
    if _DELEGATION.search(step.action) and step.kind is not StepKind.ACQUIRE:
        return "STEP_DELEGATION"
    if given is StepKind.PROBE and not measured:
        return "STEP_PROBE_OUTPUT"
    return ""


def _verb(step: Step) -> str:
    return step.action.split()[0].lower()


def kernel_step(name: str, **values: str) -> Step:
    kind, action, output, minutes, fail_if = TEMPLATES[name]
    fill = {key: step_part(value).replace("->", "_") for key, value in values.items()}
    return Step(kind, action.format(**fill), output.format(**fill), minutes, fail_if.format(**fill))


_PLACEHOLDER = re.compile(r"\{[a-z]+\}")
# The fixed pieces of the kernel's own steps, around what an item fills in.
_TEMPLATE_PIECES = tuple(
    (minutes, _PLACEHOLDER.split(action), _PLACEHOLDER.split(output), _PLACEHOLDER.split(fail_if))
    for _, action, output, minutes, fail_if in TEMPLATES.values()
)


def is_kernel_step(step: Step) -> bool:
    """Whether the kernel wrote the step, and so may remove it."""
    return any(
        step.minutes == minutes
        and _matches_pieces(step.action, action)
        and _matches_pieces(step.output, output)
        and _matches_pieces(step.fail_if, fail_if)
        for minutes, action, output, fail_if in _TEMPLATE_PIECES
    )


def _matches_pieces(text: str, pieces: list[str]) -> bool:
    """Whether a text consists of these pieces with anything between them."""
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return text == first
    at, end = len(first), len(text) - len(last)
    for each in pieces[1:-1]:
        at = text.find(each, at + 1, end) + len(each)
        if at < len(each):
            return False
    return at < end and text.startswith(first) and text.endswith(last)


def dependencies_waived_by(listed: Iterable[Step]) -> list[str]:
    """The dependencies that these steps waive; a failed step waives none."""
    standing = (each for each in listed if not each.has_failed)
    return [name for each in standing for name in WAIVER_PATTERN.findall(each.action)]


def with_result(
    step: Step,
    status: StepStatus,
    tier: EvidenceTier | None,
    result: str,
    *,
    exception: ExceptionToken | None,
    executed: bool,
) -> Step:
    """The step with its result; without real execution a completed step counts as simulated."""
    if status in COMPLETE_STATUSES:
        simulated = (
            status is StepStatus.COMPLETED_SIMULATED or not executed or (tier and tier.is_weak)
        )
        if simulated:
            tier = EvidenceTier.DERIVED if tier is EvidenceTier.DERIVED else EvidenceTier.SIMULATED
            status = StepStatus.COMPLETED_SIMULATED
    elif status is StepStatus.FAILED_EXCEPTION and executed and exception:
        step = replace(step, output=exception.value)
    else:
        status = StepStatus.FAILED
    return replace(step, status=status, tier=tier, result=step_part(result))
