"""Deciders and evolvers of waking, on the part of an agent's attention that they are about."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from accord.core.attention.runtimes import (
    RuntimeStatus,
    registered,
    with_runtime,
)
from accord.core.attention.waking.outcomes import (
    SENTENCES,
    WakeAction,
    WakeCause,
    WakeOutcome,
    WakeResult,
)
from accord.core.attention.waking.state import (
    Awaited,
    OpenWake,
    Skipped,
    WakeOrder,
    WakePhase,
    Waking,
)
from accord.core.attention.waking.wake_decision import (
    Question,
    Refuse,
    Skip,
    Start,
    Wait,
    WakeDecision,
    decide_wake,
)
from accord.core.attention.waking.wake_events import (
    AddressAnswered,
    AgentAddressed,
    AgentPaused,
    AgentUnpaused,
    RuntimeLost,
    RuntimeRegistered,
    SilenceNoticed,
    WakeDeferred,
    WakeDue,
    WakeEnded,
    WakeSkipped,
    WakeStarted,
)
from accord.core.attention.waking.wake_limits import HOUR_MS, WakePolicy
from accord.core.attention.waking.wake_messages import (
    AgentAddress,
    AgentAnswer,
    AgentPause,
    RuntimeReport,
    RuntimeSilent,
    WakeAsk,
    WakeEnd,
    WakeLook,
)
from accord.core.kernel.messages import Instant
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused

# Not recorded for an automatic wake: every message to an active agent causes one.
UNRECORDED_CAUSES = frozenset({WakeCause.AWAKE, WakeCause.NOTHING_UNREAD})
REASON_OF_CAUSE: Mapping[WakeCause, Reason] = {
    WakeCause.UNMANAGED: Reason.UNMANAGED_RUNTIME,
    WakeCause.NO_FALLBACK: Reason.WAKE_FAILED,
    WakeCause.HUMAN_COLLISION: Reason.HUMAN_INPUT,
}


def report_runtime(waking: Waking, body: RuntimeReport, at: Instant) -> Iterator[Event]:
    """Stored only if something changed."""
    known = waking.runtimes.get(body.report.session_id)
    fresh = registered(known, body.report, at)
    if fresh is not None:
        yield RuntimeRegistered(runtime=fresh)
        if fresh.status is RuntimeStatus.OFFLINE:
            yield from _end_in_terminal(waking, fresh.session_id, at)


def lose_runtime(waking: Waking, body: RuntimeSilent, at: Instant) -> Iterator[Event]:
    """Once for each time it falls silent."""
    known = waking.runtimes.get(body.session_id)
    if known is not None and known.status is not RuntimeStatus.OFFLINE:
        yield RuntimeLost(session_id=body.session_id)
        yield from _end_in_terminal(waking, body.session_id, at)


def _end_in_terminal(waking: Waking, session_id: str, at: Instant) -> Iterator[Event]:
    """A wake that was handed to a terminal which is gone."""
    running = waking.running
    if (
        running is not None
        and running.action is WakeAction.TRIGGER_RUNTIME
        and running.session_id == session_id
    ):
        outcome = _ended(running, running.action, WakeResult.FAILED, WakeCause.INTERRUPTED, at)
        yield _end_event(running, outcome)


def pause_agent(waking: Waking, body: AgentPause) -> Iterator[Event]:
    """Pausing twice changes nothing."""
    if body.paused and not waking.paused_by:
        yield AgentPaused(by=body.by)
    if waking.paused_by and not body.paused:
        yield AgentUnpaused(by=body.by)


def address_agent(waking: Waking, body: AgentAddress) -> Iterator[Event]:
    """One record for each message that names the agent, none for those that only it can read."""
    yield AgentAddressed(thread=body.thread, message=body.message, seq=body.seq, by=body.by)


def answer_address(waking: Waking, body: AgentAnswer) -> Iterator[Event]:
    """Only if something was awaited: ordinary reading is not stored."""
    awaited = waking.awaited.get(body.thread)
    if awaited is not None and body.seq >= awaited.seq:
        yield AddressAnswered(thread=body.thread, seq=body.seq)


def ask_wake(
    waking: Waking, wake: str, body: WakeAsk, at: Instant, policy: WakePolicy
) -> Iterator[Event]:
    """The events of a new request; Refused if there is no way to do what a caller asked for."""
    decision = decide_wake(Question(waking, body.order, body.facts, at, policy))
    if isinstance(decision, Refuse) and not body.order.automatic:
        raise Refused(REASON_OF_CAUSE[decision.cause], SENTENCES[decision.cause])
    if isinstance(decision, Skip | Refuse):
        yield from _skip(waking, wake, body.order, decision.cause, at, policy)
    else:
        # One that starts in place of another, by force, owes its outcome to that one's caller.
        replaced = waking.waiting(body.order.thread)
        times = _Times(replaced.asked_at if replaced else at, at, waited=replaced is not None)
        yield from _open(wake, body.order, decision, policy, times)


def look_again(waking: Waking, body: WakeLook, at: Instant, policy: WakePolicy) -> Iterator[Event]:
    """The events of a waiting wake whose time has come; none if it is over or nothing changed."""
    current = waking.open.get(body.wake)
    if current is None or current.phase is WakePhase.RUNNING:
        return
    order = current.order
    decision = decide_wake(Question(waking, order, body.facts, at, policy, current))
    if isinstance(decision, Skip | Refuse):
        result = WakeResult.FAILED if isinstance(decision, Refuse) else WakeResult.SKIPPED
        outcome = _ended(current, WakeAction.NONE, result, decision.cause, at)
        yield _end_event(current, outcome)
    elif isinstance(decision, Start) or _postpones(current, decision, policy):
        times = _Times(current.asked_at, at, waited=True, until=current.until)
        yield from _open(current.wake, order, decision, policy, times)


def end_wake(waking: Waking, body: WakeEnd, at: Instant, policy: WakePolicy) -> Iterator[Event]:
    """Recorded once; a wake that the timer has ended stays ended.

    One that a terminal did not take, because a person or the host was busy by then, waits again.
    """
    current = waking.open.get(body.wake)
    if current is None:
        return
    if body.result is WakeResult.DEFERRED:
        yield WakeDeferred(open=_put_back(current, body.cause, at, policy))
        return
    outcome = replace(
        _ended(current, body.action, body.result, body.cause, at),
        detail=body.detail,
        command=body.command,
    )
    yield _end_event(current, outcome)


def tick(waking: Waking, at: Instant, policy: WakePolicy) -> Iterator[Event]:
    """What the timer finds: wakes to look at, wakes that never ended, agents that stay silent."""
    for one in waking.open.values():
        if one.next_at > at:
            continue
        if one.phase is WakePhase.RUNNING:
            outcome = _ended(one, one.action, WakeResult.FAILED, WakeCause.INTERRUPTED, at)
            yield _end_event(one, outcome)
        else:
            thread = one.order.thread
            yield WakeDue(thread=thread, wake=one.wake, next_at=at + policy.recheck_ms)
    for thread, awaited in waking.awaited.items():
        if not awaited.noticed and awaited.since + policy.silence_ms <= at:
            yield SilenceNoticed(
                thread=thread,
                message=awaited.message,
                seq=awaited.seq,
                by=awaited.by,
                since=awaited.since,
            )


def _skip(
    waking: Waking,
    wake: str,
    order: WakeOrder,
    cause: WakeCause,
    at: Instant,
    policy: WakePolicy,
) -> Iterator[Event]:
    """Recorded at most once in a cool-down for the same cause: a storm must not fill the log."""
    if order.automatic and cause in UNRECORDED_CAUSES:
        return
    before = waking.skipped.get(order.thread)
    if before and before.cause is cause and at - before.at < policy.cool_down_ms:
        return
    yield WakeSkipped(
        thread=order.thread, wake=wake, by=order.by, cause=cause, automatic=order.automatic
    )


def _put_back(current: OpenWake, cause: WakeCause, at: Instant, policy: WakePolicy) -> OpenWake:
    """A wake that was started and did nothing, as one that waits."""
    for_person = cause is WakeCause.HUMAN_INPUT
    until = current.until or at + policy.max_defer_ms
    return OpenWake(
        wake=current.wake,
        order=current.order,
        phase=WakePhase.DEFERRED if for_person else WakePhase.WAITING,
        cause=cause,
        asked_at=current.asked_at,
        next_at=at + (policy.recheck_ms if for_person else policy.working_ms),
        until=until if for_person else None,
        waited=True,
        fallback=current.fallback,
    )


class _Times(NamedTuple):
    """When a wake was asked for, and now; whether it waited, and until when for a person."""

    asked: Instant
    now: Instant
    waited: bool
    until: Instant | None = None


def _open(
    wake: str,
    order: WakeOrder,
    decision: WakeDecision,
    policy: WakePolicy,
    times: "_Times",
) -> Iterator[Event]:
    """The event of a wake that starts or waits; none for one that joins another."""
    asked, at, waited, until = times
    if isinstance(decision, Start):
        first, *others = decision.actions
        started = OpenWake(
            wake=wake,
            order=order,
            phase=WakePhase.RUNNING,
            cause=decision.cause,
            asked_at=asked,
            started_at=at,
            waited=waited,
            next_at=at + policy.run_ms,
            action=first,
            fallback=others[0] if others else WakeAction.NONE,
            session_id=decision.session_id,
            until=until,
        )
        yield WakeStarted(open=started, session_id=decision.session_id)
    elif isinstance(decision, Wait):
        yield WakeDeferred(
            open=OpenWake(
                wake=wake,
                order=order,
                phase=decision.phase,
                cause=decision.cause,
                asked_at=asked,
                next_at=decision.next_at,
                until=decision.until,
                fallback=decision.fallback,
            )
        )


def _postpones(current: OpenWake, decision: WakeDecision, policy: WakePolicy) -> bool:
    """Whether looking again has found something new; the timer has moved its own time already."""
    return isinstance(decision, Wait) and (
        (decision.cause, decision.phase, decision.until)
        != (current.cause, current.phase, current.until)
        or decision.next_at > current.next_at + policy.recheck_ms
    )


def _ended(
    wake: OpenWake, action: WakeAction, result: WakeResult, cause: WakeCause, at: Instant
) -> WakeOutcome:
    return WakeOutcome(
        wake=wake.wake,
        action=action,
        result=result,
        cause=cause,
        triggered_at=at if wake.started_at is None else wake.started_at,
        deferred_until=wake.until if wake.started_at is None else None,
    )


def _end_event(wake: OpenWake, outcome: WakeOutcome) -> WakeEnded:
    """`deferred`: a caller was told that it would happen later, and is owed the outcome."""
    automatic = wake.order.automatic
    deferred = not automatic and (wake.waited or wake.started_at is None)
    return WakeEnded(
        thread=wake.order.thread, outcome=outcome, deferred=deferred, automatic=automatic
    )


# What each event changes


def on_registered(waking: Waking, event: RuntimeRegistered, record: Record) -> Waking:
    return replace(waking, runtimes=with_runtime(waking.runtimes, event.runtime))


def on_lost(waking: Waking, event: RuntimeLost, record: Record) -> Waking:
    lost = replace(
        waking.runtimes[event.session_id],
        status=RuntimeStatus.OFFLINE,
        supervised=False,
        changed_at=record.at,
    )
    return replace(waking, runtimes={**waking.runtimes, event.session_id: lost})


def on_paused(waking: Waking, event: AgentPaused, record: Record) -> Waking:
    return replace(waking, paused_by=event.by)


def on_unpaused(waking: Waking, event: AgentUnpaused, record: Record) -> Waking:
    return replace(waking, paused_by="")


def on_addressed(waking: Waking, event: AgentAddressed, record: Record) -> Waking:
    """The first message that is not answered counts, until it is."""
    first = waking.awaited.get(event.thread)
    awaited = (
        replace(first, newest=event.seq)
        if first
        else Awaited(
            message=event.message,
            seq=event.seq,
            by=event.by,
            since=record.at,
            newest=event.seq,
        )
    )
    return replace(waking, awaited={**waking.awaited, event.thread: awaited})


def on_answered(waking: Waking, event: AddressAnswered, record: Record) -> Waking:
    """What is newer than the answer is awaited from now on."""
    awaited = waking.awaited[event.thread]
    others = _without(waking.awaited, event.thread)
    if event.seq < awaited.newest:
        rest = replace(awaited, seq=awaited.newest, since=record.at, noticed=False)
        others[event.thread] = rest
    return replace(waking, awaited=others)


def on_silence(waking: Waking, event: SilenceNoticed, record: Record) -> Waking:
    noticed = replace(waking.awaited[event.thread], noticed=True)
    return replace(waking, awaited={**waking.awaited, event.thread: noticed})


def on_started(waking: Waking, event: WakeStarted, record: Record) -> Waking:
    """What waited for the same thread is part of this one."""
    thread = event.open.order.thread
    others = {
        wake: one
        for wake, one in waking.open.items()
        if one.order.thread != thread or one.phase is WakePhase.RUNNING
    }
    recent = tuple(at for at in waking.starts if at > record.at - HOUR_MS)
    return replace(
        waking,
        open={**others, event.open.wake: event.open},
        starts=(*recent, record.at),
        skipped=_without(waking.skipped, thread),
    )


def on_deferred(waking: Waking, event: WakeDeferred, record: Record) -> Waking:
    """One that ran did nothing: it does not count among those of the hour."""
    before = waking.open.get(event.open.wake)
    starts = waking.starts
    if before is not None and before.phase is WakePhase.RUNNING:
        starts = tuple(at for at in starts if at != before.started_at)
    return replace(waking, open={**waking.open, event.open.wake: event.open}, starts=starts)


def on_due(waking: Waking, event: WakeDue, record: Record) -> Waking:
    due = replace(waking.open[event.wake], next_at=event.next_at)
    return replace(waking, open={**waking.open, event.wake: due})


def on_skipped(waking: Waking, event: WakeSkipped, record: Record) -> Waking:
    kept = {thread: one for thread, one in waking.skipped.items() if one.at > record.at - HOUR_MS}
    return replace(waking, skipped={**kept, event.thread: Skipped(cause=event.cause, at=record.at)})


def on_ended(waking: Waking, event: WakeEnded, record: Record) -> Waking:
    """Those that waited for this one are looked at again now."""
    left = {
        wake: replace(one, next_at=record.at) if one.cause is WakeCause.UNDER_WAY else one
        for wake, one in waking.open.items()
        if wake != event.outcome.wake
    }
    last = {
        thread: one
        for thread, one in waking.last.items()
        if thread != event.thread and one.triggered_at > record.at - HOUR_MS
    }
    if event.outcome.did_something:
        last[event.thread] = event.outcome
    return replace(waking, open=left, last=last)


def _without(mapping: Mapping[str, object], key: str) -> dict[str, object]:
    return {name: value for name, value in mapping.items() if name != key}


EVOLVE: Mapping[type[Event], Callable[..., Waking]] = {
    RuntimeRegistered: on_registered,
    RuntimeLost: on_lost,
    AgentPaused: on_paused,
    AgentUnpaused: on_unpaused,
    AgentAddressed: on_addressed,
    AddressAnswered: on_answered,
    SilenceNoticed: on_silence,
    WakeStarted: on_started,
    WakeDeferred: on_deferred,
    WakeDue: on_due,
    WakeSkipped: on_skipped,
    WakeEnded: on_ended,
}
