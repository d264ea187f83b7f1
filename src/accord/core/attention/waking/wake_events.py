"""The audit of waking: everything that was asked, decided and done, as events of one agent."""

from accord.core.attention.runtimes import Runtime
from accord.core.attention.waking.outcomes import WakeCause, WakeOutcome
from accord.core.attention.waking.state import OpenWake
from accord.core.kernel.messages import Instant
from accord.core.kernel.records import Event


class RuntimeRegistered(Event, frozen=True, kw_only=True, gc=False):
    """A runtime was seen for the first time, or something about it changed."""

    name = "runtime.registered"

    runtime: Runtime


class RuntimeLost(Event, frozen=True, kw_only=True, gc=False):
    """A runtime has missed three heartbeats."""

    name = "runtime.lost"

    session_id: str


class AgentPaused(Event, frozen=True, kw_only=True, gc=False):
    """A person paused the agent: it is not woken until a person resumes it."""

    name = "agent.paused"

    by: str


class AgentUnpaused(Event, frozen=True, kw_only=True, gc=False):
    """A person ended the pause."""

    name = "agent.unpaused"

    by: str


class AgentAddressed(Event, frozen=True, kw_only=True, gc=False):
    """A message in a thread names this agent; it is expected to read it."""

    name = "agent.addressed"

    thread: str
    message: str
    seq: int
    by: str


class AddressAnswered(Event, frozen=True, kw_only=True, gc=False):
    """The agent read, acknowledged or posted in a thread that addressed it."""

    name = "address.answered"

    thread: str
    seq: int


class SilenceNoticed(Event, frozen=True, kw_only=True, gc=False):
    """The agent was addressed and stayed silent; thread and operators are told."""

    name = "silence.noticed"

    thread: str
    message: str
    seq: int
    by: str
    since: Instant


class WakeStarted(Event, frozen=True, kw_only=True, gc=False):
    """A runtime is being woken; stored before anything is run, so that nothing runs twice."""

    name = "wake.started"

    open: OpenWake
    session_id: str = ""


class WakeDeferred(Event, frozen=True, kw_only=True, gc=False):
    """A wake waits: for a person at the terminal, another wake, or its cool-down."""

    name = "wake.deferred"

    open: OpenWake


class WakeDue(Event, frozen=True, kw_only=True, gc=False):
    """The time has come to look at a waiting wake again."""

    name = "wake.due"

    thread: str
    wake: str
    next_at: Instant


class WakeSkipped(Event, frozen=True, kw_only=True, gc=False):
    """A wake was asked for and not carried out."""

    name = "wake.skipped"

    thread: str
    wake: str
    by: str
    cause: WakeCause
    automatic: bool = False


class WakeEnded(Event, frozen=True, kw_only=True, gc=False):
    """What came of a wake; `deferred`: its caller was told to wait and is owed the outcome."""

    name = "wake.ended"

    thread: str
    outcome: WakeOutcome
    deferred: bool = False
    automatic: bool = False
