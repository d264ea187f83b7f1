"""What is known about the wakes of one agent: its runtimes, and wakes that wait or run."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from accord.core.attention.runtimes import Beats, Runtime
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeOutcome
from accord.core.kernel.messages import Instant


class WakePhase(StrEnum):
    """Where an unfinished wake is."""

    WAITING = "waiting"  # for another wake, the cool-down or the bound of an hour
    DEFERRED = "deferred"  # because a person types
    RUNNING = "running"


class WakeOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked for: by whom, for which thread, and with which words.

    `autonomous`: no person asked for it; `automatic`: a message led to it, without a request.
    """

    thread: str
    by: str
    reason: str = ""
    words: str = ""
    automatic: bool = False
    autonomous: bool = True
    forced: bool = False


class OpenWake(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A wake that is not over; `next_at` is when the timer looks at it again."""

    wake: str
    order: WakeOrder
    phase: WakePhase
    cause: WakeCause
    asked_at: Instant
    next_at: Instant
    until: Instant | None = None  # deferred at most so long
    started_at: Instant | None = None
    waited: bool = False  # it did not start when it was asked for; its caller was told to wait
    action: WakeAction = WakeAction.NONE
    fallback: WakeAction = WakeAction.NONE
    session_id: str = ""  # of a running one: the runtime that it is for


class Skipped(msgspec.Struct, frozen=True):
    """The last wake of a thread that was not carried out, so that a storm is recorded once."""

    cause: WakeCause
    at: Instant


class Awaited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Messages that address this agent and that it has not read, acknowledged or answered."""

    message: str
    seq: int
    by: str
    since: Instant
    newest: int
    noticed: bool = False


class WakeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the decision needs and this stream does not hold, read just before it."""

    unread: int
    beats: Mapping[str, Beats] = {}  # by runtime
    reachable: frozenset[str] = frozenset()  # managed runtimes whose supervisor is connected
    resumable: frozenset[str] = frozenset()  # runtimes that an adapter can resume
    can_spawn: bool = False
    polite_run: int = 0
    is_present: bool = False  # the agent acted in this session a moment ago


class Waking(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an agent's attention that waking is about."""

    runtimes: Mapping[str, Runtime] = {}  # by session id
    open: Mapping[str, OpenWake] = {}  # by wake; of a thread one may run and one may wait
    last: Mapping[str, WakeOutcome] = {}  # by thread, of wakes that reached a runtime
    starts: tuple[Instant, ...] = ()  # within the last hour
    skipped: Mapping[str, Skipped] = {}  # by thread
    awaited: Mapping[str, Awaited] = {}  # by thread
    paused_by: str = ""

    @property
    def running(self) -> OpenWake | None:
        """The wake under way; an agent has at most one at a time."""
        return next((one for one in self.open.values() if one.phase is WakePhase.RUNNING), None)

    def waiting(self, thread: str) -> OpenWake | None:
        """The wake of this thread that waits; later requests join it."""
        for one in self.open.values():
            if one.order.thread == thread and one.phase is not WakePhase.RUNNING:
                return one
        return None

    def deadlines(self, silence_ms: int) -> Iterator[Instant]:
        """When the timer has to look: at a wake, and at an agent that stays silent."""
        yield from (one.next_at for one in self.open.values())
        yield from (one.since + silence_ms for one in self.awaited.values() if not one.noticed)
