"""Steps: one action each, with an output that shows, a timebox, and what counts as failure."""

import re
from dataclasses import dataclass, replace

from accord.core.docket.judge import StepAsk
from accord.core.docket.text import part
from accord.core.docket.words import COMPLETE, Done, Fault, Kind, Tier

# A step's text by what it is for; in braces what the item fills in.
TEMPLATES: dict[str, tuple[Kind, str, str, int, str]] = {
    "mitigate": (
        *(Kind.MITIGATE, "Contain live effects of {id}", "mitigation_{id}=YES/NO"),
        *(30, "live_effect_still_observed"),
    ),
    "cycle": (
        *(Kind.CYCLE_BREAK, "Remove edge {id} to {dep} from depends_on", "cycle_broken=YES/NO"),
        *(10, "cycle_still_detected"),
    ),
    "causal": (
        *(Kind.CAUSAL, "Record outcome of the pending step of {id}", "causal_ref_logged=YES/NO"),
        *(10, "no_outcome_recorded"),
    ),
    "harness": (
        *(Kind.HARNESS_REDESIGN, "Rebuild probe harness for {driver}", "harness_valid=YES/NO"),
        *(10, "harness_field_missing"),
    ),
    "probe": (
        *(Kind.PROBE, "Run probe {probe} on {driver}", "{probe}_pass=YES/NO"),
        *(10, "{condition}"),
    ),
    "waive": (
        *(Kind.DEP_WAIVE, "Waive dependency {dep}", "waiver_{dep}=RECORDED"),
        *(5, "waiver_not_recorded"),
    ),
    "measure": (
        *(Kind.PROBE, "Measure {driver} without {dep}", "{driver}_measured=YES/NO"),
        *(10, "no_measurement"),
    ),
    "evidence": (
        *(Kind.ACQUIRE, "Collect real evidence for {driver}", "real_evidence=RECEIVED"),
        *(10, "no_real_evidence"),
    ),
    "external": (
        *(Kind.ACQUIRE, "Request {ask}", "external_data=RECEIVED"),
        *(10, "no_response_by_timebox"),
    ),
    "name": (
        *(Kind.SOURCE_ACQUIRE, "Name missing source for {id}", "source_named=YES/NO"),
        *(5, "source_still_unnamed"),
    ),
    "resolve": (
        *(Kind.DEP_RESOLVE, "Close dependency {dep}", "{dep}_terminal=YES/NO"),
        *(10, "{dep}_not_terminal"),
    ),
    "wait": (
        *(Kind.RESOURCE_WAIT, "Wait for resource {rid}", "{rid}_available=YES/NO"),
        *(10, "{rid}_unavailable"),
    ),
    "source": (
        *(Kind.SOURCE_ACQUIRE, "Fetch source {what}", "source_obtained=YES/NO"),
        *(10, "source_not_obtained"),
    ),
    "cut": (
        *(Kind.PLAN_REDESIGN, "Cut plan of {id} to budget", "plan_within_budget=YES/NO"),
        *(10, "tb_or_cx_over_budget"),
    ),
    "rework": (
        *(Kind.PLAN_REDESIGN, "Rework failed step of {id}", "reworked_step_ready=YES/NO"),
        *(10, "same_failure_repeats"),
    ),
    "write": (
        *(Kind.PLAN_REDESIGN, "Write first executable step for {id}", "step_accepted=YES/NO"),
        *(10, "step_grammar_rejected"),
    ),
    "second": (
        *(Kind.SECOND_CHECK, "Run second independent check on {driver}"),
        *("second_check_pass=YES/NO", 10, "second_check_fails"),
    ),
    "debt": (
        *(Kind.DEBT_SLOT, "Recheck debt slot held by {holder}", "debt_slot_free=YES/NO"),
        *(5, "slot_still_held"),
    ),
    "ratings": (
        *(Kind.ACQUIRE, "Collect missing ratings for {id}", "ratings_complete=YES/NO"),
        *(10, "rating_still_missing"),
    ),
    "specs": (
        *(Kind.EXEC, "Write minimal specs", "specs_complete=YES/NO"),
        *(5, "spec_line_missing"),
    ),
}

# How an action begins, and what it then is.
KINDS: tuple[tuple[str, Kind], ...] = (
    (r"rollback|roll back|revert|contain|compensate|restore", Kind.MITIGATE),
    (r"remove edge|break cycle", Kind.CYCLE_BREAK),
    (r"split", Kind.SPLIT),
    (r"waive", Kind.DEP_WAIVE),
    (r"close dependency|resolve dependency", Kind.DEP_RESOLVE),
    (r"wait for resource", Kind.RESOURCE_WAIT),
    (r"rebuild probe|redesign probe", Kind.HARNESS_REDESIGN),
    (r"cut plan", Kind.PLAN_REDESIGN),
    (r"fetch source", Kind.SOURCE_ACQUIRE),
    (r"collect|fetch|acquire|request|query", Kind.ACQUIRE),
    (
        r"probe|test|measure|check|verify|benchmark|simulate|compare|count|inspect",
        Kind.PROBE,
    ),
    (r"run\b.*\b(?:probe|check|test|canary|benchmark|simulation|spike)", Kind.PROBE),
)
_KINDS = tuple((re.compile(rf"(?:{shape})\b", re.IGNORECASE), kind) for shape, kind in KINDS)

META = frozenset(
    {
        *("define", "analyze", "analyse", "evaluate", "consider", "research", "think"),
        *("definire", "analizzare", "valutare", "considerare", "ricercare", "riflettere"),
    }
)
LONGEST = 4000
VAGUE = frozenset({"improve", "optimize", "refactor"})
_CHAIN = re.compile(r";|&&|\bthen\b", re.IGNORECASE)
_OTHERS = re.compile(r"ask the team|discuss with|talk to|\bdelegate\b|check with", re.IGNORECASE)
_MEASURED = re.compile(r"=\s*YES/NO|=\s*PASS/FAIL|[<>=]=?\s*-?\d|\b\d+(?:\.\d+)?\s*[<>]=?")
# Each looks at a letter once, so that a long line costs what it is long.
_DOING = re.compile(r"(?:-\s++)?+(?:S([0-9]{1,3}):\s*+)?+(\S++\s++\S)")
_TIMEBOX = re.compile(r"timebox<=([0-9]{1,6})m")
_FAIL = "fail_if="
_RESULT = frozenset({"status", "evidence_tier", "result"})


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `status` is empty while it is pending."""

    kind: Kind
    action: str
    output: str
    minutes: int
    fail_if: str
    status: Done | None = None
    tier: Tier | None = None
    result: str = ""

    @property
    def pending(self) -> bool:
        """Whether nobody has said how it went."""
        return self.status is None

    @property
    def complete(self) -> bool:
        """Whether it went well."""
        return self.status in COMPLETE

    @property
    def failed(self) -> bool:
        """Whether it went wrong."""
        return self.status is not None and not self.complete

    @property
    def short(self) -> str:
        """The action and its output."""
        return f"{self.action} -> {self.output}"

    def line(self, number: int | None = None) -> str:
        """The step as it is printed."""
        head = f"S{number}: " if number else ""
        parts = [f"{head}{self.short}", f"timebox<={self.minutes}m", f"fail_if={self.fail_if}"]
        if self.status:
            parts.append(f"status={self.status}")
        if self.tier:
            parts.append(f"evidence_tier={self.tier}")
        if self.result:
            parts.append(f"result={self.result}")
        return " | ".join(parts)


def kind_of(action: str) -> Kind:
    """What an action is for, by how it begins."""
    return next((kind for shape, kind in _KINDS if shape.match(action)), Kind.EXEC)


def parse(line: str) -> tuple[int, Step] | None:
    """A step line with its number (0 where it has none); None where it is no step."""
    doing, *cells = (each.strip() for each in line.split("|"))
    if len(line) > LONGEST or len(cells) < 2 or not (said := _doing(doing)):
        return None
    number, action, output = said
    box, (fail, *more) = _TIMEBOX.fullmatch(cells[0]), cells[1:]
    fail_if = fail.removeprefix(_FAIL).strip() if fail.startswith(_FAIL) else ""
    rest = dict(each.partition("=")[::2] for each in more)
    if not box or int(box[1]) < 1 or not fail_if or not rest.keys() <= _RESULT:
        return None
    step = Step(
        kind_of(action),
        action,
        output,
        int(box[1]),
        part(fail_if),
        Done.read(rest.get("status")),
        Tier.read(rest.get("evidence_tier")),
        part(rest.get("result", "")),
    )
    return number, step


def _doing(text: str) -> tuple[int, str, str] | None:
    """The number, the action of at least two words, and the output behind its first arrow."""
    if not (found := _DOING.match(text)):
        return None
    arrow = text.find("->", found.end())
    action, output = part(text[found.start(2) : arrow]), part(text[arrow + 2 :])
    return (int(found[1] or 0), action, output) if arrow > 0 and output else None


def accept(asked: str | StepAsk) -> tuple[Step | None, list[str]]:
    """The step that was proposed, or None; and what there is to say about it."""
    text = asked if isinstance(asked, str) else asked.text or ""
    given = None if isinstance(asked, str) else asked.kind
    target = None if isinstance(asked, str) else asked.target_driver
    if not (found := parse(text)) or found[1].status:
        return None, ["STEP_GRAMMAR"]
    step = replace(found[1], kind=given or found[1].kind, tier=None, result="")
    if bad := _fault(step, given, target):
        return None, [bad]
    vague = " and " in step.action or _verb(step) in VAGUE
    return step, ["STEP_VAGUE"] if vague else []


def _fault(step: Step, given: Kind | None, target: str | None) -> str:
    measured = bool(_MEASURED.search(step.output))
    probe = step.kind is Kind.PROBE and measured and bool(target)
    if _verb(step) in META and not probe:
        return "STEP_META_VERB"
    if _CHAIN.search(step.action):
        return "STEP_CHAIN"
    if _OTHERS.search(step.action) and step.kind is not Kind.ACQUIRE:
        return "STEP_DELEGATION"
    if given is Kind.PROBE and not measured:
        return "STEP_PROBE_OUTPUT"
    return ""


def _verb(step: Step) -> str:
    return step.action.split()[0].lower()


def made(name: str, **values: str) -> Step:
    """The kernel's own step of that name."""
    kind, action, output, minutes, fail_if = TEMPLATES[name]
    fill = {key: part(value).replace("->", "_") for key, value in values.items()}
    return Step(kind, action.format(**fill), output.format(**fill), minutes, fail_if.format(**fill))


_FILLED = re.compile(r"\{[a-z]+\}")
# What is fixed of the kernel's own steps: the pieces around what an item fills in.
_OWN = tuple(
    (minutes, _FILLED.split(action), _FILLED.split(output), _FILLED.split(fail_if))
    for _, action, output, minutes, fail_if in TEMPLATES.values()
)


def own(step: Step) -> bool:
    """Whether the kernel wrote it, so that it may also take it back."""
    return any(
        step.minutes == minutes
        and _filled(step.action, action)
        and _filled(step.output, output)
        and _filled(step.fail_if, fail_if)
        for minutes, action, output, fail_if in _OWN
    )


def _filled(text: str, pieces: list[str]) -> bool:
    """Whether a text is these pieces with something between them."""
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return text == first
    at, end = len(first), len(text) - len(last)
    for each in pieces[1:-1]:
        at = text.find(each, at + 1, end) + len(each)
        if at < len(each):
            return False
    return at < end and text.startswith(first) and text.endswith(last)


def ended(
    step: Step, status: Done, tier: Tier | None, result: str, *, fault: Fault | None, really: bool
) -> Step:
    """The step as it went: what was not really run counts as simulated."""
    if status in COMPLETE:
        simulated = status is Done.COMPLETED_SIMULATED or not really or (tier and tier.weak)
        if simulated:
            tier = Tier.DERIVED if tier is Tier.DERIVED else Tier.SIMULATED
            status = Done.COMPLETED_SIMULATED
    elif status is Done.FAILED_EXCEPTION and really and fault:
        step = replace(step, output=fault.value)
    else:
        status = Done.FAILED
    return replace(step, status=status, tier=tier, result=part(result))
