"""The closed vocabularies of the kernel, with their order, lenient parsing, and budgets."""

from enum import StrEnum
from functools import cache
from typing import NamedTuple, Self


class LenientEnum(StrEnum):
    """A word of a closed list; written in one spelling, parsed in any case and separator."""

    @classmethod
    def parse(cls, value: object) -> Self | None:
        """The member, in any case and with `_` or a space; None if it is not in the list."""
        if isinstance(value, bool):
            value = "YES" if value else "NO"
        if not isinstance(value, str):
            return None
        exact = cls._value2member_map_.get(value)
        return exact or _spellings(cls).get(_normalized(value))  # type: ignore[return-value]  # of `cls` all


def _normalized(text: str) -> str:
    return " ".join(text.upper().replace("_", " ").split())


@cache
def _spellings(cls: type[LenientEnum]) -> dict[str, LenientEnum]:
    return {_normalized(each.value): each for each in cls}


class RankedEnum(LenientEnum):
    """Ordered words, the lowest first; `rank` is the position from 0."""

    rank: int

    def __init__(self, _: str) -> None:
        self.rank = len(type(self).__members__)

    def _rank_of(self, other: str) -> int:
        return other.rank if isinstance(other, type(self)) else type(self)(other).rank

    def __lt__(self, other: str) -> bool:
        return self.rank < self._rank_of(other)

    def __le__(self, other: str) -> bool:
        return self.rank <= self._rank_of(other)

    def __gt__(self, other: str) -> bool:
        return self.rank > self._rank_of(other)

    def __ge__(self, other: str) -> bool:
        return self.rank >= self._rank_of(other)


class YesNo(LenientEnum):
    YES = "YES"
    NO = "NO"


class Level(RankedEnum):
    """A rating, an impact or an urgency."""

    LOW = "LOW"
    MED = "MED"
    HIGH = "HIGH"

    @property
    def points(self) -> int:
        """1, 2 or 3."""
        return self.rank + 1


class Confidence(RankedEnum):
    """Confidence in a driver."""

    VERY_LOW = "VERY LOW"
    LOW = "LOW"
    MED = "MED"
    HIGH = "HIGH"


class EvidenceTier(RankedEnum):
    """The quality of evidence."""

    SIMULATED = "SIMULATED"
    DERIVED = "DERIVED"
    HISTORICAL = "HISTORICAL"
    REAL = "REAL"
    EXPERIMENT = "EXPERIMENT"

    @property
    def is_weak(self) -> bool:
        """Whether it was derived or simulated, never observed."""
        return self in (EvidenceTier.SIMULATED, EvidenceTier.DERIVED)


class ItemState(LenientEnum):
    """The state of an item."""

    DRAFT = "DRAFT"
    ACTIVE = "ACTIVE"
    STANDBY = "STANDBY"
    PROBING = "PROBING"
    CLOSED = "CLOSED"
    EXPIRED = "EXPIRED"
    DISCARDED = "DISCARDED"


TERMINAL_STATES = frozenset({ItemState.CLOSED, ItemState.EXPIRED, ItemState.DISCARDED})
SETTLED_STATES = frozenset({ItemState.CLOSED, ItemState.DISCARDED})
RUNNING_STATES = frozenset({ItemState.ACTIVE, ItemState.PROBING})


class Verdict(LenientEnum):
    """The verdict on an item."""

    DO_NOW = "DO NOW"
    DO_LATER = "DO LATER"
    DISCARD = "DISCARD"


# An item that stays closed may keep any verdict.
VERDICTS_OF_STATE: dict[ItemState, frozenset[Verdict]] = {
    ItemState.ACTIVE: frozenset({Verdict.DO_NOW}),
    ItemState.PROBING: frozenset({Verdict.DO_NOW}),
    ItemState.CLOSED: frozenset(Verdict),
    ItemState.STANDBY: frozenset({Verdict.DO_LATER}),
    ItemState.DRAFT: frozenset({Verdict.DO_LATER}),
    ItemState.EXPIRED: frozenset({Verdict.DO_LATER}),
    ItemState.DISCARDED: frozenset({Verdict.DISCARD}),
}


class ItemMode(LenientEnum):
    """The kind of content of an item."""

    PLAN = "PLAN"
    ARTIFACT = "ARTIFACT"
    TARGET = "TARGET"


class Profile(LenientEnum):
    """The rating scheme of an item."""

    DIY = "DIY"
    FULL = "FULL"


class DomainType(LenientEnum):
    """How predictable the domain of an item is."""

    DETERMINISTIC = "Deterministic"
    PROBABILISTIC = "Probabilistic"
    COMPLEX = "Complex"
    CHAOTIC = "Chaotic"

    @property
    def is_unpredictable(self) -> bool:
        """Whether only trials give evidence in this domain."""
        return self in (DomainType.COMPLEX, DomainType.CHAOTIC)


class Reversibility(LenientEnum):
    """Whether the item's effect can be undone."""

    REVERSIBLE = "REVERSIBLE"
    COSTLY_REVERSIBLE = "COSTLY_REVERSIBLE"
    IRREVERSIBLE = "IRREVERSIBLE"


class Dimension(LenientEnum):
    """The rated dimensions."""

    BENEFIT = "Benefit"
    COST = "Cost"
    RISK = "Risk"
    COST_OF_DELAY = "CostOfDelay"


class StepKind(LenientEnum):
    """The purpose of a step."""

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


class StepStatus(LenientEnum):
    """The result of a step."""

    COMPLETED = "COMPLETED"
    COMPLETED_SIMULATED = "COMPLETED_SIMULATED"
    FAILED = "FAILED"
    FAILED_EXCEPTION = "FAILED_EXCEPTION"


COMPLETE_STATUSES = frozenset({StepStatus.COMPLETED, StepStatus.COMPLETED_SIMULATED})


class ExceptionToken(LenientEnum):
    """What stopped a step whose own failure condition was not met."""

    IO = "EXCEPTION_IO"
    TIMEOUT = "EXCEPTION_TIMEOUT"
    AUTH = "EXCEPTION_AUTH"
    INVARIANT = "EXCEPTION_INVARIANT"
    DEPENDENCY = "EXCEPTION_DEPENDENCY"


class ProbeStatus(LenientEnum):
    """The result of a probe so far."""

    ACTIVE = "ACTIVE"
    INCONCLUSIVE = "INCONCLUSIVE"
    VALIDATED = "VALIDATED"
    FALSIFIED = "FALSIFIED"
    EXPIRED = "EXPIRED"


CONCLUSIVE_STATUSES = frozenset({ProbeStatus.VALIDATED, ProbeStatus.FALSIFIED, ProbeStatus.EXPIRED})


class ContextMatch(LenientEnum):
    """Whether a probe ran in the context of the decision."""

    YES = "YES"
    NO = "NO"
    UNKNOWN = "UNKNOWN"


class KillSwitchMargin(LenientEnum):
    """The distance of a probe from its kill switch."""

    PASS_WIDE = "PASS_WIDE"  # noqa: S105 - no secret
    PASS_NARROW = "PASS_NARROW"  # noqa: S105 - no secret
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


class CloseIntent(LenientEnum):
    """Whether the judge wants an item closed."""

    AUTO = "AUTO"
    YES = "YES"
    NO = "NO"


class ClosureTier(LenientEnum):
    """The evidence on which an item was closed."""

    SIM = "SIM"
    REAL = "REAL"
    OPEN = "-"


CLOSURE_TIER_TEXT = {ClosureTier.SIM: "SIMULATED", ClosureTier.REAL: "REAL", ClosureTier.OPEN: "-"}


class ExecCapability(LenientEnum):
    """Whether steps are executed."""

    NO_RUNTIME = "NO_RUNTIME"
    RUNTIME_OK = "RUNTIME_OK"


class ClosePolicy(LenientEnum):
    """The evidence required to close an item."""

    SIM_OK = "SIM_OK"
    REAL_ONLY = "REAL_ONLY"


class SsotScale(LenientEnum):
    """The verbosity of a snapshot."""

    MIN = "MIN"
    DEBUG = "DEBUG"


class AskUserMode(LenientEnum):
    """Whether the run may ask the user a question."""

    INHERIT = "INHERIT"
    NONE = "NONE"
    ALLOW = "ALLOW"


class ExecMode(LenientEnum):
    """How an item executes: `ds` in the queue."""

    OK = "OK"
    SLOW = "SLOW"
    NO_TOOL = "NO_TOOL"


class Surface(LenientEnum):
    """Which blocks of an item are rendered."""

    MIN_SURFACE = "MIN_SURFACE"
    MIN = "MIN"
    DEBUG = "DEBUG"
    DELTA = "DELTA"


class Overrides(NamedTuple):
    """Where a policy departs from the protocol."""

    # The impact of a risky or irreversible item is raised, so that none passes as unimportant.
    raises_impact_of_risk: bool = False
    # A resource that the pool does not list has no capacity.
    unlisted_resource_is_none: bool = False
    # A probe that was run is not running, so the item needs its step again.
    repeats_probe_step: bool = False
    # Only steps of a probe run while an item is probing.
    probing_runs_probes_only: bool = False
    # Hosts that disagree execute nothing, and hosts without any step do not agree.
    divergence_holds: bool = False


class KernelPolicy(LenientEnum):
    """UPSTREAM follows the protocol to the letter; GUARDED also fails closed."""

    UPSTREAM = "UPSTREAM"
    GUARDED = "GUARDED"

    @property
    def overrides(self) -> Overrides:
        return OVERRIDES[self]


OVERRIDES = {
    KernelPolicy.UPSTREAM: Overrides(),
    KernelPolicy.GUARDED: Overrides(*[True] * len(Overrides._fields)),
}


MISSING_INFO = "MISSING_INFO"

# The minutes and the complexity tax that an item may cost, by its impact.
TIMEBOX_MINUTES: dict[Level, int] = {Level.LOW: 20, Level.MED: 60, Level.HIGH: 120}
MAX_COMPLEXITY_TAX: dict[Level, int] = {Level.LOW: 3, Level.MED: 5, Level.HIGH: 7}
MAX_STEPS = 5
MAX_DEBT_DRIVERS = 2

# Days until a parked item expires, by its domain type; None is an item without one.
EXPIRE_DAYS: dict[DomainType | None, int] = {
    DomainType.CHAOTIC: 1,
    DomainType.PROBABILISTIC: 7,
    DomainType.COMPLEX: 60,
    DomainType.DETERMINISTIC: 365,
    None: 30,
}
