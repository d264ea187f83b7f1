"""The data of a run: the input, the previous state, and an item while it is decided."""

from dataclasses import dataclass, field
from datetime import date

from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.judgement import EMPTY_JUDGEMENT, Judgement, StepResult
from accord.core.docket.probes import ProbeCounters, ProbeLogEntry
from accord.core.docket.steps import Step
from accord.core.docket.triggers import DominantGate, Trigger
from accord.core.docket.vocabulary import (
    MISSING_INFO,
    AskUserMode,
    ClosePolicy,
    ClosureTier,
    Confidence,
    Dimension,
    DomainType,
    EvidenceTier,
    ExecCapability,
    ExecMode,
    ItemMode,
    ItemState,
    KernelPolicy,
    Level,
    Profile,
    Reversibility,
    SsotScale,
    Surface,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Rating:
    """The rating of one dimension, with every gap filled."""

    rating: Level
    confidence: Confidence
    tier: EvidenceTier
    drivers: tuple[str, ...]


EvidenceBinding = dict[Dimension, Rating]


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """The settings of a run; none of them come from the batch text."""

    now: date | None = None
    ask_user: bool = False
    manual: bool = False
    policy: KernelPolicy = KernelPolicy.UPSTREAM
    recovery: bool = False


@dataclass(slots=True)
class BatchHeader:
    """The attributes of `<<<B …>>>`."""

    keep_open: bool | None = None
    expire_days: int | None = None
    exec_capability: ExecCapability | None = None
    close_policy: ClosePolicy | None = None
    ssot_scale: SsotScale | None = None
    resource_pool: dict[str, int] | None = None
    ask_user: AskUserMode | None = None
    batch_id: str = ""


@dataclass(slots=True)
class PreviousItem:
    """An item as the last run left it; None where the snapshot has no value."""

    id: str
    title: str | None = None
    mode: ItemMode | None = None
    profile: Profile | None = None
    domain_type: DomainType | None = None
    state: ItemState = ItemState.DRAFT
    verdict: Verdict | None = None
    impact: Level | None = None
    urgency: Level | None = None
    score: str | None = None
    contested: bool = False
    depends_on: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    missing_ratings: bool = False
    confidence: Confidence | None = None
    hedge_active: bool = False
    reversibility: Reversibility | None = None
    uses: dict[str, int] = field(default_factory=dict)
    fail_fast_count: int = 0
    why: str = "-"
    critical_driver: str | None = None
    dominant_tradeoff: str = "-"
    next_uncertainty: str = "-"
    falsification_debt: str = "NONE"
    trigger: Trigger = Trigger.NONE
    split_from: str = ""
    split_into: tuple[str, ...] = ()
    binding: EvidenceBinding = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    next_step: Step | None = None
    probe_log: tuple[ProbeLogEntry, ...] = ()
    best_evidence_tier: EvidenceTier = EvidenceTier.SIMULATED
    reopen_total: int = 0
    reopen_blocked_count: int = 0
    closure_tier: ClosureTier | None = None
    updated_at: str = ""
    keep_open: bool | None = None
    expire_days: int | None = None
    from_prev_section: bool = False
    counters: dict[str, str] = field(default_factory=dict)
    dominant_gate: str | None = None
    exec_mode: str | None = None


@dataclass(slots=True)
class ItemInput:
    """An item as this batch states it."""

    id: str
    line: int = 0
    title: str = ""
    mode: ItemMode | None = None
    plan: str | None = None
    parsed_ok: bool = True
    missing_fields: list[str] = field(default_factory=list)
    obtainable_source: str = ""
    keep_open: bool | None = None
    expire_days: int | None = None
    depends_on: tuple[str, ...] | None = None
    waived_dependencies: tuple[str, ...] = ()
    uses: dict[str, int] | None = None
    reversibility: Reversibility | None = None
    profile: Profile | None = None
    ask_user: AskUserMode = AskUserMode.INHERIT
    judgement: Judgement = EMPTY_JUDGEMENT
    evidence: tuple[EvidenceTier, ...] = ()
    change_declared: bool = False
    results: tuple[StepResult, ...] = ()
    has_section: bool = False
    duplicate: bool = False
    prev: PreviousItem | None = None
    split_from: str = ""

    @property
    def is_addressed(self) -> bool:
        """Whether the batch contains anything about the item."""
        said = self.has_section or self.evidence or self.change_declared or self.results
        return bool(said) or self.judgement != EMPTY_JUDGEMENT


@dataclass(slots=True)
class Batch:
    """The input of one run."""

    header: BatchHeader = field(default_factory=BatchHeader)
    # Whether the text sets a value of the header, apart from what a snapshot fills in.
    sets_header: bool = False
    items: list[ItemInput] = field(default_factory=list)
    items_without_id: list[tuple[int, ItemMode]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    digest: str = ""
    previous_question: str = ""
    previous_batch_id: str = ""

    def add_diagnostic(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)


TriggerCandidate = tuple[Trigger, ItemState | None]


@dataclass(slots=True)
class DecisionItem:
    """An item during and after its decision."""

    input: ItemInput
    prev: PreviousItem | None
    mode: ItemMode = ItemMode.PLAN
    title: str = ""
    profile: Profile = Profile.FULL
    domain_type: DomainType = DomainType.COMPLEX
    domain_known: bool = False
    urgency: Level = Level.MED
    contested: bool = False
    depends_on: tuple[str, ...] = ()
    uses: dict[str, int] = field(default_factory=dict)
    reversibility: Reversibility | None = None
    critical_driver: str = MISSING_INFO
    why: str = "-"
    dominant_tradeoff: str = "-"
    next_uncertainty: str = "-"
    binding: EvidenceBinding = field(default_factory=dict)
    has_new_ratings: bool = False
    friction_missing: bool = False
    missing_ratings: bool = False
    probe_log: list[ProbeLogEntry] = field(default_factory=list)
    designed_probe: ProbeLogEntry | None = None
    harness_valid: bool = False
    probe_reported: bool = False
    probe_expired: bool = False
    redesign_unchanged: bool = False
    changed_probe_id: str = ""
    counters: ProbeCounters = field(default_factory=ProbeCounters)
    best_evidence_tier: EvidenceTier = EvidenceTier.SIMULATED
    confidence_cap: Confidence = Confidence.HIGH
    confidence: Confidence = Confidence.LOW
    impact: Level = Level.MED
    score: str = "0.0"
    fragile: bool = False
    state: ItemState = ItemState.DRAFT
    verdict: Verdict = Verdict.DO_LATER
    frozen: bool = False
    held: bool = False
    reopened: bool = False
    revived: bool = False
    refused: bool = False
    fail_fast_count: int = 0
    simulated_specs: bool = False
    steps: list[Step] = field(default_factory=list)
    failures: list[tuple[Step, Step]] = field(default_factory=list)
    retry_steps: list[Step] = field(default_factory=list)
    mitigation_pending: bool = False
    demoted: bool = False
    has_step_result: bool = False
    candidates: list[TriggerCandidate] = field(default_factory=list)
    unresolved_dependencies: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    cycle_dependency: str = ""
    hedge_active: bool = False
    needs_probe_redesign: bool = False
    probe_stalled: bool = False
    needs_rework: bool = False
    missing_source: str = ""
    external_request: str = ""
    debt_holder: str = ""
    waits_for_resource: str = ""
    over_budget: bool = False
    lacks_executable_step: bool = False
    falsification_debt: str = "NONE"
    closure_tier: ClosureTier = ClosureTier.OPEN
    trigger: Trigger = Trigger.NONE
    dominant_gate: DominantGate = DominantGate.NONE
    planned_steps: list[Step] = field(default_factory=list)
    next_number: int = 0
    exec_mode: ExecMode = ExecMode.OK
    effective_expire_days: str = "30"
    surface: Surface = Surface.MIN
    events: list[str] = field(default_factory=list)
    reopen_total: int = 0
    reopen_blocked_count: int = 0
    updated_at: str = ""
    keep_open: bool | None = None
    expire_days: int | None = None
    split_into: tuple[str, ...] = ()
    may_ask_user: bool = False
    timebox_minutes: int = 0
    complexity_tax: int = 0

    @property
    def id(self) -> str:
        return self.input.id

    @property
    def split_from(self) -> str:
        return self.input.split_from

    @property
    def judgement(self) -> Judgement:
        return self.input.judgement

    @property
    def previous_state(self) -> ItemState:
        """The state before this run."""
        return self.prev.state if self.prev else ItemState.DRAFT

    @property
    def blocking_dependencies(self) -> tuple[str, ...]:
        """Unresolved dependencies that are not waived."""
        waived = set(self.waived)
        return tuple(each for each in self.unresolved_dependencies if each not in waived)

    @property
    def critical_driver_entries(self) -> list[ProbeLogEntry]:
        """Log entries of probes on the critical driver, without the one that is only designed."""
        return [each for each in self.probe_log if each.target_driver == self.critical_driver]

    @property
    def full_probe_log(self) -> list[ProbeLogEntry]:
        """The log with the probe that is designed in this run."""
        return [*self.probe_log, *([self.designed_probe] if self.designed_probe else [])]

    @property
    def is_irreversible(self) -> bool:
        return self.reversibility is Reversibility.IRREVERSIBLE

    @property
    def is_audited(self) -> bool:
        """Whether it is about an artifact, so that an audit belongs to its judgement."""
        return self.mode in (ItemMode.ARTIFACT, ItemMode.TARGET)

    @property
    def next_step(self) -> Step | None:
        return self.planned_steps[self.next_number - 1] if self.next_number else None

    def fix_state(self, state: ItemState, verdict: Verdict, trigger: Trigger | None = None) -> None:
        """Set the state and the verdict, and record the rule as a candidate trigger."""
        self.state, self.verdict = state, verdict
        if trigger:
            self.candidates.append((trigger, state))

    def park(self, trigger: Trigger | None = None) -> None:
        """Move it to STANDBY with DO LATER."""
        self.fix_state(ItemState.STANDBY, Verdict.DO_LATER, trigger)

    def note_trigger(self, trigger: Trigger) -> None:
        """Record a trigger that did not decide the state."""
        self.candidates.append((trigger, None))


def complexity_tax(it: PreviousItem | DecisionItem, steps: int, *, waits: bool) -> int:
    """The complexity of an item with that many steps, in points; `waits` for a dependency."""
    owing = it.falsification_debt != "NONE"
    extras = (it.contested, it.missing_ratings, it.hedge_active, bool(it.uses), owing)
    return steps + 2 * waits + sum(extras)


@dataclass(slots=True)
class DecisionOutcome:
    """The decisions of a run."""

    batch_id: str
    exec_capability: ExecCapability
    close_policy: ClosePolicy
    ssot_scale: SsotScale
    resource_pool: dict[str, int] | None
    items: list[DecisionItem]
    inventory: list[tuple[str, ItemMode, bool, list[str]]]
    diagnostics: list[Diagnostic]
    config: KernelConfig
    ask_mode: AskUserMode = AskUserMode.NONE
    question: str = ""
    debt_drivers: list[str] = field(default_factory=list)
    invalid_reason: str = ""
    coverage_diff: str = ""

    @property
    def is_valid(self) -> bool:
        """Whether the outcome may be stored as state and acted on."""
        return not self.invalid_reason
