"""The records that the rules work on: what came in, what was known, and an item being decided."""

from dataclasses import dataclass, field
from datetime import date

from accord.core.docket.diags import Diag
from accord.core.docket.judge import NOTHING, Judge, Result
from accord.core.docket.probes import Counters, Entry
from accord.core.docket.steps import Step
from accord.core.docket.words import (
    MISSING_INFO,
    Asking,
    ClosePolicy,
    Closure,
    Confidence,
    Dim,
    Domain,
    Gate,
    Level,
    Mode,
    Pace,
    Policy,
    Profile,
    Reversibility,
    Runtime,
    Scale,
    State,
    Surface,
    Tier,
    Trigger,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Rating:
    """A dimension, complete."""

    rating: Level
    confidence: Confidence
    tier: Tier
    drivers: tuple[str, ...]


Binding = dict[Dim, Rating]


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is known of items outside the batch, and what was last asked."""

    states: dict[str, State] = field(default_factory=dict)
    debt: frozenset[str] = frozenset()
    asked: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """How a run is made; nothing of it comes from the text."""

    now: date | None = None
    ask_user: bool = False
    manual: bool = False
    policy: Policy = Policy.UPSTREAM
    carry: bool = True
    carry_unaddressed: bool = True
    ledger: Ledger = field(default_factory=Ledger)
    recovery: bool = False

    @property
    def guarded(self) -> bool:
        """Whether doubt closes."""
        return self.policy is Policy.GUARDED


@dataclass(slots=True)
class Header:
    """The values of a batch."""

    keep_open: bool | None = None
    expire_days: int | None = None
    runtime: Runtime | None = None
    close_policy: ClosePolicy | None = None
    scale: Scale | None = None
    pool: dict[str, int] | None = None
    ask_user: Asking | None = None
    batch_id: str = ""


@dataclass(slots=True)
class Previous:
    """An item as the last run left it; None is what a snapshot did not say."""

    id: str
    title: str | None = None
    mode: Mode | None = None
    profile: Profile | None = None
    domain: Domain | None = None
    state: State = State.DRAFT
    verdict: Verdict | None = None
    impact: Level | None = None
    urgency: Level | None = None
    score: str | None = None
    contested: bool = False
    depends_on: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    missing_ratings: bool = False
    confidence: Confidence | None = None
    hedge: bool = False
    reversibility: Reversibility | None = None
    uses: dict[str, int] = field(default_factory=dict)
    fail_fast: int = 0
    why: str = "-"
    critical: str | None = None
    tradeoff: str = "-"
    uncertainty: str = "-"
    debt: str = "NONE"
    trigger: Trigger = Trigger.NONE
    split_from: str = ""
    split_into: tuple[str, ...] = ()
    binding: Binding = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    next: Step | None = None
    log: tuple[Entry, ...] = ()
    tier: Tier = Tier.SIMULATED
    reopened: int = 0
    blocked: int = 0
    closure: Closure | None = None
    updated_at: str = ""
    keep_open: bool | None = None
    expire_days: int | None = None
    explicit: bool = False
    counters: dict[str, str] = field(default_factory=dict)
    gate: str | None = None
    pace: str | None = None


@dataclass(slots=True)
class Input:
    """An item as it was written this time."""

    id: str
    line: int = 0
    title: str = ""
    mode: Mode | None = None
    plan: str | None = None
    ok: bool = True
    missing: list[str] = field(default_factory=list)
    obtainable: str = ""
    keep_open: bool | None = None
    expire_days: int | None = None
    depends_on: tuple[str, ...] | None = None
    waive: tuple[str, ...] = ()
    uses: dict[str, int] | None = None
    reversibility: Reversibility | None = None
    profile: Profile | None = None
    ask_user: Asking = Asking.INHERIT
    judge: Judge = NOTHING
    evidence: tuple[Tier, ...] = ()
    changed: bool = False
    results: tuple[Result, ...] = ()
    has_section: bool = False
    duplicate: bool = False
    prev: Previous | None = None
    split_from: str = ""

    @property
    def addressed(self) -> bool:
        """Whether anybody said anything about the item."""
        said = self.has_section or self.evidence or self.changed or self.results
        return bool(said) or self.judge != NOTHING


@dataclass(slots=True)
class Batch:
    """Everything that one run is about."""

    header: Header = field(default_factory=Header)
    items: list[Input] = field(default_factory=list)
    nameless: list[tuple[int, Mode]] = field(default_factory=list)
    diags: list[Diag] = field(default_factory=list)
    digest: str = ""
    asked: str = ""
    begun: str = ""
    known: dict[str, State] = field(default_factory=dict)

    def say(self, diag: Diag) -> None:
        """Note something."""
        self.diags.append(diag)


Candidate = tuple[Trigger, State | None]


@dataclass(slots=True)
class Item:
    """An item while it is decided, and as it was decided."""

    inp: Input
    prev: Previous | None
    mode: Mode = Mode.PLAN
    title: str = ""
    profile: Profile = Profile.FULL
    domain: Domain = Domain.COMPLEX
    domain_known: bool = False
    urgency: Level = Level.MED
    contested: bool = False
    depends_on: tuple[str, ...] = ()
    uses: dict[str, int] = field(default_factory=dict)
    reversibility: Reversibility | None = None
    critical: str = MISSING_INFO
    why: str = "-"
    tradeoff: str = "-"
    uncertainty: str = "-"
    binding: Binding = field(default_factory=dict)
    rated: bool = False
    friction_missing: bool = False
    missing_ratings: bool = False
    log: list[Entry] = field(default_factory=list)
    designed: Entry | None = None
    harness: bool = False
    reported: bool = False
    expired_probe: bool = False
    redesign_stuck: bool = False
    changed_probe: str = ""
    counters: Counters = field(default_factory=Counters)
    tier: Tier = Tier.SIMULATED
    cap: Confidence = Confidence.HIGH
    confidence: Confidence = Confidence.LOW
    impact: Level = Level.MED
    score: str = "0.0"
    fragile: bool = False
    state: State = State.DRAFT
    verdict: Verdict = Verdict.DO_LATER
    fixed: bool = False
    held: bool = False
    reopened: bool = False
    revived: bool = False
    refused: bool = False
    fail_fast: int = 0
    simulated_specs: bool = False
    steps: list[Step] = field(default_factory=list)
    failures: list[tuple[Step, Step]] = field(default_factory=list)
    clones: list[Step] = field(default_factory=list)
    mitigate: bool = False
    demoted: bool = False
    resulted: bool = False
    candidates: list[Candidate] = field(default_factory=list)
    unresolved: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    cycle: str = ""
    hedge: bool = False
    redesign: bool = False
    stalled: bool = False
    rework: bool = False
    source: str = ""
    external: str = ""
    holder: str = ""
    waits_for: str = ""
    over: bool = False
    no_step: bool = False
    debt: str = "NONE"
    closure: Closure = Closure.OPEN
    trigger: Trigger = Trigger.NONE
    gate: Gate = Gate.NONE
    plan: list[Step] = field(default_factory=list)
    next: int = 0
    pace: Pace = Pace.OK
    expires: str = "30"
    surface: Surface = Surface.MIN
    events: list[str] = field(default_factory=list)
    reopen_total: int = 0
    blocked: int = 0
    updated_at: str = ""
    keep_open: bool | None = None
    expire_days: int | None = None
    split_into: tuple[str, ...] = ()
    asks: bool = False
    tb: int = 0
    cx: int = 0

    @property
    def id(self) -> str:
        """Its name."""
        return self.inp.id

    @property
    def judge(self) -> Judge:
        """What was thought of it this time."""
        return self.inp.judge

    @property
    def before(self) -> State:
        """Where it stood."""
        return self.prev.state if self.prev else State.DRAFT

    @property
    def blocking(self) -> tuple[str, ...]:
        """Dependencies that it must wait for."""
        waived = set(self.waived)
        return tuple(each for each in self.unresolved if each not in waived)

    @property
    def mine(self) -> list[Entry]:
        """What was probed of its critical driver, without what is only designed."""
        return [each for each in self.log if each.target_driver == self.critical]

    @property
    def log_out(self) -> list[Entry]:
        """The log as it will be printed."""
        return [*self.log, *([self.designed] if self.designed else [])]

    @property
    def irreversible(self) -> bool:
        """Whether there is no way back."""
        return self.reversibility is Reversibility.IRREVERSIBLE

    @property
    def next_step(self) -> Step | None:
        """What is to be done next."""
        return self.plan[self.next - 1] if self.next else None

    def settle(self, state: State, verdict: Verdict, trigger: Trigger | None = None) -> None:
        """Fix where it stands, and by which rule."""
        self.state, self.verdict = state, verdict
        if trigger:
            self.candidates.append((trigger, state))

    def park(self, trigger: Trigger | None = None) -> None:
        """Put it aside for now."""
        self.settle(State.STANDBY, Verdict.DO_LATER, trigger)

    def note(self, trigger: Trigger) -> None:
        """Remark something that did not decide the state."""
        self.candidates.append((trigger, None))


@dataclass(slots=True)
class Outcome:
    """What a run decided."""

    batch_id: str
    runtime: Runtime
    close_policy: ClosePolicy
    scale: Scale
    pool: dict[str, int] | None
    items: list[Item]
    inventory: list[tuple[str, Mode, bool, list[str]]]
    diags: list[Diag]
    config: Config
    ask_mode: Asking = Asking.NONE
    ask: str = ""
    debt_drivers: list[str] = field(default_factory=list)
    invalid: str = ""
    coverage: str = ""
    header: Header = field(default_factory=Header)

    @property
    def valid(self) -> bool:
        """Whether it may be state, and be acted on."""
        return not self.invalid
