"""Whether, how and when an agent is woken: an ordered table of rules, the first that applies wins.

Every decision is a value with its cause. Nothing here knows how a runtime is reached; `Start` names
the ways to try, in order.
"""

from collections.abc import Callable
from typing import NamedTuple

from accord.core.attention.runtimes import (
    ObservedRuntime,
    RuntimeStatus,
    newest_live,
    observe_all,
)
from accord.core.attention.waking.outcomes import (
    RESULT_OF_ACTION,
    WakeAction,
    WakeCause,
    WakeOutcome,
)
from accord.core.attention.waking.state import (
    OpenWake,
    WakeFacts,
    WakeOrder,
    WakePhase,
    Waking,
)
from accord.core.attention.waking.wake_limits import HOUR_MS, WakePolicy
from accord.core.kernel.messages import Instant


class Start(NamedTuple):
    """Try these ways in order; `session_id` is the runtime that the first one is for."""

    cause: WakeCause
    actions: tuple[WakeAction, ...]
    session_id: str = ""


class Wait(NamedTuple):
    """Look again at `next_at`."""

    cause: WakeCause
    phase: WakePhase
    next_at: Instant
    until: Instant | None = None
    fallback: WakeAction = WakeAction.NONE


class Join(NamedTuple):
    """A wake for this thread waits already, and will read the newest state when its time comes."""

    cause: WakeCause
    open: OpenWake


class Skip(NamedTuple):
    """Do not wake; `earlier` is the wake that made this one unnecessary."""

    cause: WakeCause
    earlier: WakeOutcome | None = None


class Refuse(NamedTuple):
    """It should be woken, and there is no way to do it."""

    cause: WakeCause


WakeDecision = Start | Wait | Join | Skip | Refuse


class Question(NamedTuple):
    """Everything that a rule may look at; `current` is the waiting wake that is looked at again."""

    waking: Waking
    order: WakeOrder
    facts: WakeFacts
    now: Instant
    policy: WakePolicy
    current: OpenWake | None = None

    @property
    def runtimes(self) -> tuple[ObservedRuntime, ...]:
        """The agent's runtimes at this moment, newest first."""
        return observe_all(self.waking.runtimes, self.facts.beats, self.now)

    @property
    def spawn(self) -> tuple[WakeAction, ...]:
        """The way that touches no live session, if it is set up."""
        return (WakeAction.SPAWN_SESSION,) if self.facts.can_spawn else ()

    @property
    def why(self) -> WakeCause:
        """The cause of a wake that starts."""
        return WakeCause.FORCED if self.order.forced else WakeCause.UNREAD

    @property
    def waits(self) -> bool:
        """Whether the wake waits for its turn instead of being skipped: no caller asks again."""
        return self.order.automatic or self.current is not None


def decide_wake(question: Question) -> WakeDecision:
    """The decision of the first rule that applies; the last rule always does.

    One that would wait joins the one of its thread that waits already.
    """
    decisions = (rule(question) for rule in RULES)
    decision = next(found for found in decisions if found is not None)
    waiting = None if question.current else question.waking.waiting(question.order.thread)
    if isinstance(decision, Wait) and waiting is not None:
        return Join(WakeCause.WAITING, waiting)
    return decision


def outcome_of_running(wake: OpenWake) -> WakeOutcome:
    """What is known of a wake under way: it was handed over."""
    return WakeOutcome(
        wake=wake.wake,
        action=wake.action,
        result=RESULT_OF_ACTION[wake.action],
        cause=wake.cause,
        triggered_at=wake.started_at or wake.asked_at,
    )


def _nothing_unread(question: Question) -> WakeDecision | None:
    if question.facts.unread:
        return None
    return Skip(WakeCause.READ_MEANWHILE if question.current else WakeCause.NOTHING_UNREAD)


def _paused(question: Question) -> WakeDecision | None:
    return Skip(WakeCause.PAUSED) if question.waking.paused_by else None


def _under_way(question: Question) -> WakeDecision | None:
    running = question.waking.running
    if running is None:
        return None
    if running.order.thread == question.order.thread and not question.waits:
        return Skip(WakeCause.UNDER_WAY, outcome_of_running(running))
    return Wait(WakeCause.UNDER_WAY, WakePhase.WAITING, running.next_at)


def _waiting(question: Question) -> WakeDecision | None:
    """Requests for a thread that already waits join it, so that a burst wakes once."""
    if question.current is not None or question.order.forced:
        return None
    waiting = question.waking.waiting(question.order.thread)
    return None if waiting is None else Join(WakeCause.WAITING, waiting)


def _politeness(question: Question) -> WakeDecision | None:
    loops = question.facts.polite_run >= question.policy.polite_messages
    if not loops or question.order.forced or not question.order.autonomous:
        return None
    return Skip(WakeCause.POLITENESS_LOOP)


def _cool_down(question: Question) -> WakeDecision | None:
    earlier = question.waking.last.get(question.order.thread)
    if earlier is None or question.order.forced:
        return None
    over = earlier.triggered_at + question.policy.cool_down_ms
    if question.now >= over:
        return None
    if question.waits:
        return Wait(WakeCause.COOL_DOWN, WakePhase.WAITING, over)
    return Skip(WakeCause.COOL_DOWN, earlier)


def _cost_bound(question: Question) -> WakeDecision | None:
    recent = [at for at in question.waking.starts if at > question.now - HOUR_MS]
    if len(recent) < question.policy.wakes_per_hour or question.order.forced:
        return None
    if question.waits:
        return Wait(WakeCause.COST_BOUND, WakePhase.WAITING, recent[0] + HOUR_MS)
    return Skip(WakeCause.COST_BOUND)


def _present(question: Question) -> WakeDecision | None:
    """An agent at work in the session most likely reads on; look again when it has stopped."""
    if not question.facts.is_present or not question.order.automatic:
        return None
    later = question.now + question.policy.present_ms
    return Wait(WakeCause.AWAKE, WakePhase.WAITING, later)


def _managed(question: Question) -> WakeDecision | None:
    target = newest_live(question.runtimes, managed=True)
    if target is None:
        return None
    if target.session_id not in question.facts.reachable and question.waits:
        # Its server or its link was started anew: until it counts as offline, it may come back.
        later = question.now + question.policy.reconnect_ms
        return Wait(WakeCause.SUPERVISOR_AWAY, WakePhase.WAITING, later)
    if target.session_id not in question.facts.reachable:
        spawns = Start(question.why, question.spawn)
        return spawns if question.spawn else Refuse(WakeCause.NO_FALLBACK)
    if target.human_input.working:
        later = question.now + question.policy.working_ms
        return Wait(WakeCause.AWAKE, WakePhase.WAITING, later)
    if target.human_input.is_busy(question.now, question.policy.quiet_ms):
        return _human_input(question, target)
    actions = (WakeAction.TRIGGER_RUNTIME, *question.spawn)
    return Start(question.why, actions, target.session_id)


def _human_input(question: Question, target: ObservedRuntime) -> WakeDecision:
    """Never into a person's line; a forced wake is refused instead of waiting for a draft."""
    if question.order.forced and not target.human_input.line_empty:
        return Refuse(WakeCause.HUMAN_COLLISION)
    current = question.current
    # A wake that waited for something else before has only now come to the terminal.
    earlier = current.until if current else None
    until = question.now + question.policy.max_defer_ms if earlier is None else earlier
    if question.now < until:
        again = min(question.now + question.policy.recheck_ms, until)
        fallback = question.spawn[0] if question.spawn else WakeAction.NONE
        return Wait(WakeCause.HUMAN_INPUT, WakePhase.DEFERRED, again, until, fallback)
    if question.spawn:
        return Start(WakeCause.HUMAN_INPUT, question.spawn)
    return Refuse(WakeCause.HUMAN_COLLISION)


def _awake(question: Question) -> WakeDecision | None:
    target = newest_live(question.runtimes, managed=False)
    active = target is not None and target.status is RuntimeStatus.ACTIVE
    return Skip(WakeCause.AWAKE) if active else None


def _dormant(question: Question) -> WakeDecision:
    """Dormant, or never seen: resume what may be resumed, or begin a new session."""
    known = question.facts.resumable
    resumable = (one for one in question.runtimes if one.resumable and one.session_id in known)
    target = next(resumable, None)
    resume = (WakeAction.RESUME_SESSION,) if target else ()
    if actions := (*resume, *question.spawn):
        return Start(question.why, actions, target.session_id if target else "")
    return Refuse(WakeCause.UNMANAGED)


Rule = Callable[[Question], WakeDecision | None]
RULES: tuple[Rule, ...] = (
    _nothing_unread,
    _paused,
    _under_way,
    _waiting,
    _politeness,
    _cool_down,
    _cost_bound,
    _present,
    _managed,
    _awake,
    _dormant,
)
