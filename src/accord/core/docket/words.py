"""The closed lists of words that decisions are written in, and the tables between them."""

from accord.core.docket.word import Rank, Word


class Flag(Word):
    """Yes or no."""

    YES = "YES"
    NO = "NO"


class Level(Rank):
    """A rating, an impact or an urgency."""

    LOW = "LOW"
    MED = "MED"
    HIGH = "HIGH"

    @property
    def points(self) -> int:
        """1, 2 or 3."""
        return self.rank + 1


class Confidence(Rank):
    """How sure somebody is of a driver."""

    VERY_LOW = "VERY LOW"
    LOW = "LOW"
    MED = "MED"
    HIGH = "HIGH"


class Tier(Rank):
    """How good a piece of evidence is."""

    SIMULATED = "SIMULATED"
    DERIVED = "DERIVED"
    HISTORICAL = "HISTORICAL"
    REAL = "REAL"
    EXPERIMENT = "EXPERIMENT"

    @property
    def weak(self) -> bool:
        """Nobody has seen it happen."""
        return self in (Tier.SIMULATED, Tier.DERIVED)


class State(Word):
    """Where an item stands."""

    DRAFT = "DRAFT"
    ACTIVE = "ACTIVE"
    STANDBY = "STANDBY"
    PROBING = "PROBING"
    CLOSED = "CLOSED"
    EXPIRED = "EXPIRED"
    DISCARDED = "DISCARDED"


TERMINAL = frozenset({State.CLOSED, State.EXPIRED, State.DISCARDED})
SETTLED = frozenset({State.CLOSED, State.DISCARDED})
RUNNING = frozenset({State.ACTIVE, State.PROBING})


class Verdict(Word):
    """What is to be done; there is no fourth."""

    DO_NOW = "DO NOW"
    DO_LATER = "DO LATER"
    DISCARD = "DISCARD"


# An item that stays closed may keep whatever verdict it had.
VERDICTS: dict[State, frozenset[Verdict]] = {
    State.ACTIVE: frozenset({Verdict.DO_NOW}),
    State.PROBING: frozenset({Verdict.DO_NOW}),
    State.CLOSED: frozenset(Verdict),
    State.STANDBY: frozenset({Verdict.DO_LATER}),
    State.DRAFT: frozenset({Verdict.DO_LATER}),
    State.EXPIRED: frozenset({Verdict.DO_LATER}),
    State.DISCARDED: frozenset({Verdict.DISCARD}),
}


class Mode(Word):
    """What an item holds."""

    PLAN = "PLAN"
    ARTIFACT = "ARTIFACT"
    TARGET = "TARGET"


class Profile(Word):
    """How much an item is worth writing about."""

    DIY = "DIY"
    FULL = "FULL"


class Domain(Word):
    """How the world that an item touches behaves."""

    DETERMINISTIC = "Deterministic"
    PROBABILISTIC = "Probabilistic"
    COMPLEX = "Complex"
    CHAOTIC = "Chaotic"

    @property
    def wild(self) -> bool:
        """Where only trying tells."""
        return self in (Domain.COMPLEX, Domain.CHAOTIC)


class Reversibility(Word):
    """Whether there is a way back."""

    REVERSIBLE = "REVERSIBLE"
    COSTLY_REVERSIBLE = "COSTLY_REVERSIBLE"
    IRREVERSIBLE = "IRREVERSIBLE"


class Dim(Word):
    """What is rated."""

    BENEFIT = "Benefit"
    COST = "Cost"
    RISK = "Risk"
    COST_OF_DELAY = "CostOfDelay"


class Kind(Word):
    """What a step is for."""

    MITIGATE = "MITIGATE"
    CYCLE_BREAK = "CYCLE_BREAK"
    PROBE = "PROBE"
    ACQUIRE = "ACQUIRE"
    HARNESS_REDESIGN = "HARNESS_REDESIGN"
    DEP_WAIVE = "DEP_WAIVE"
    DEP_RESOLVE = "DEP_RESOLVE"
    RESOURCE_WAIT = "RESOURCE_WAIT"
    SOURCE_ACQUIRE = "SOURCE_ACQUIRE"
    PLAN_REDESIGN = "PLAN_REDESIGN"
    SPLIT = "SPLIT"
    SECOND_CHECK = "SECOND_CHECK"
    DEBT_SLOT = "DEBT_SLOT"
    CAUSAL = "CAUSAL"
    RETRY = "RETRY"
    EXEC = "EXEC"


class Done(Word):
    """How a step ended."""

    COMPLETED = "COMPLETED"
    COMPLETED_SIMULATED = "COMPLETED_SIMULATED"
    FAILED = "FAILED"
    FAILED_EXCEPTION = "FAILED_EXCEPTION"


COMPLETE = frozenset({Done.COMPLETED, Done.COMPLETED_SIMULATED})


class Fault(Word):
    """What stopped a step that did not fail by its own condition."""

    IO = "EXCEPTION_IO"
    TIMEOUT = "EXCEPTION_TIMEOUT"
    AUTH = "EXCEPTION_AUTH"
    INVARIANT = "EXCEPTION_INVARIANT"
    DEPENDENCY = "EXCEPTION_DEPENDENCY"


class Found(Word):
    """What a probe has shown so far."""

    ACTIVE = "ACTIVE"
    INCONCLUSIVE = "INCONCLUSIVE"
    VALIDATED = "VALIDATED"
    FALSIFIED = "FALSIFIED"
    EXPIRED = "EXPIRED"


CONCLUSIVE = frozenset({Found.VALIDATED, Found.FALSIFIED, Found.EXPIRED})


class Match(Word):
    """Whether a probe ran where the decision will live."""

    YES = "YES"
    NO = "NO"
    UNKNOWN = "UNKNOWN"


class Margin(Word):
    """How far a probe stayed from its kill switch."""

    PASS_WIDE = "PASS_WIDE"  # noqa: S105 - no secret
    PASS_NARROW = "PASS_NARROW"  # noqa: S105 - no secret
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


class Close(Word):
    """Whether somebody wants an item closed."""

    AUTO = "AUTO"
    YES = "YES"
    NO = "NO"


class Closure(Word):
    """What a closed item was closed on."""

    SIM = "SIM"
    REAL = "REAL"
    OPEN = "-"


class Runtime(Word):
    """Whether steps are really run."""

    NO_RUNTIME = "NO_RUNTIME"
    RUNTIME_OK = "RUNTIME_OK"


class ClosePolicy(Word):
    """What closes an item."""

    SIM_OK = "SIM_OK"
    REAL_ONLY = "REAL_ONLY"


class Scale(Word):
    """How much is printed."""

    MIN = "MIN"
    DEBUG = "DEBUG"


class Asking(Word):
    """Whether a question may be asked."""

    INHERIT = "INHERIT"
    NONE = "NONE"
    ALLOW = "ALLOW"


class Pace(Word):
    """How an item runs: the `ds` of the queue."""

    OK = "OK"
    SLOW = "SLOW"
    NO_TOOL = "NO_TOOL"


class Surface(Word):
    """Which blocks of an item are printed."""

    MIN_SURFACE = "MIN_SURFACE"
    MIN = "MIN"
    DEBUG = "DEBUG"
    DELTA = "DELTA"


class Policy(Word):
    """UPSTREAM is the protocol to the letter; GUARDED fails closed where it does not."""

    UPSTREAM = "UPSTREAM"
    GUARDED = "GUARDED"


class Trigger(Word):
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


REOPEN_BLOCKED = frozenset({Trigger.REOPEN_BLOCKED_BUDGET, Trigger.REOPEN_BLOCKED_NO_DELTA})


class Gate(Word):
    """What stands in an item's way, the strongest first."""

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


GATES: dict[Trigger, Gate] = {
    Trigger.DUPLICATE_ID_REJECTED: Gate.DEPENDENCY_BLOCK,
    Trigger.REOPEN_BLOCKED_BUDGET: Gate.DEPENDENCY_BLOCK,
    Trigger.REOPEN_BLOCKED_NO_DELTA: Gate.DEPENDENCY_BLOCK,
    Trigger.FAIL_FAST_CUT: Gate.FAIL_FAST_CUT,
    Trigger.FAIL_FAST_PLAN_SNR: Gate.FAIL_FAST_CUT,
    Trigger.FALSIFICATION: Gate.FALSIFICATION,
    Trigger.MULTI_CRITICAL_DRIVER_SPLIT: Gate.REDESIGN_TRIGGER,
    Trigger.CIRCULAR_DEPENDENCY: Gate.REDESIGN_TRIGGER,
    Trigger.INVALID_DELTA: Gate.REDESIGN_TRIGGER,
    Trigger.PROBE_STALL_CONTEXT_MATCH: Gate.REDESIGN_TRIGGER,
    Trigger.CLOSE_BLOCKED_REAL_ONLY: Gate.EXTERNAL_BLOCK,
    Trigger.DEBT_CEILING: Gate.DEBT_CEILING,
    Trigger.FRAGILITY: Gate.FRAGILITY,
    Trigger.MISSING_SOURCE_INPUT: Gate.DEPENDENCY_BLOCK,
    Trigger.DEPENDENCY_BLOCK: Gate.DEPENDENCY_BLOCK,
    Trigger.CONFIDENCE_CAP_APPLIED: Gate.CONFIDENCE_CAP,
    Trigger.BLOCKED_EXTERNAL: Gate.EXTERNAL_BLOCK,
    Trigger.EXTERNAL_DATA_REQUIRED: Gate.EXTERNAL_BLOCK,
    Trigger.REDESIGN_TRIGGER: Gate.REDESIGN_TRIGGER,
    Trigger.SCORE_TRIAGE: Gate.SCORE_TRIAGE,
    Trigger.NONE: Gate.NONE,
}

MISSING_INFO = "MISSING_INFO"
