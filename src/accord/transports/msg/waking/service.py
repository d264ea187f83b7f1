"""Wakes: asks the rules, carries out what they decide, and records what came of it.

A wake is stored before anything is run, and a command is run only by the process that stored it,
right after that. One that a crash or a stop cut off is recorded as interrupted, and asked for again
if its messages are still unread then. A prompt for a terminal is handed over again under the same
id instead, because its supervisor knows what it has typed.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from accord.core.attention.runtimes import Beats
from accord.core.attention.state import STREAM_PREFIX, Attention, Seat, stream_of
from accord.core.attention.waking.deciders import wake_policy
from accord.core.attention.waking.outcomes import (
    SENTENCES,
    WakeAction,
    WakeCause,
    WakeOutcome,
    WakeResult,
)
from accord.core.attention.waking.prompt import wake_prompt
from accord.core.attention.waking.state import OpenWake, WakeFacts, WakeOrder, WakePhase
from accord.core.attention.waking.wake_decision import (
    Join,
    Question,
    Skip,
    decide_wake,
    outcome_of_running,
)
from accord.core.attention.waking.wake_events import (
    WakeDeferred,
    WakeEnded,
    WakeSkipped,
    WakeStarted,
)
from accord.core.attention.waking.wake_messages import AgentPause, WakeAsk, WakeEnd, WakeLook
from accord.core.attention.waking.waker_port import (
    Terminals,
    WakeJob,
    Waker,
    WakeReport,
    WakeTarget,
)
from accord.core.kernel.actor import POLICY_ACTOR
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import to_iso
from accord.core.kernel.ulid import derive_ulid_after
from accord.transports.msg.idempotent_submission import Answer
from accord.transports.msg.waking.conversations import Conversations
from accord.transports.msg.waking.runtime_registry import RuntimeRegistry
from accord.transports.msg.waking.terminals import SupervisedTerminals, TerminalKey

if TYPE_CHECKING:
    from accord.transports.msg.service import ThreadService

log = logging.getLogger("accord.waking")

# How long a caller waits for a command to fail; one that runs longer has woken its agent.
SETTLE_S = 5.0
STOPPED_DETAIL = "The server stopped and ended the command"
ERROR_DETAIL = "An error of the server, which its log describes at wake.failed"


FOR_A_TERMINAL = frozenset({WakeCause.AWAKE, WakeCause.SUPERVISOR_AWAY})


class Answered(NamedTuple):
    """What a caller is told: the outcome, and that of the earlier wake if one made it unneeded."""

    outcome: WakeOutcome
    earlier: WakeOutcome | None = None


class NoWaker:
    """Of a server for which no operator set up any adapter."""

    def resumable(self, target: WakeTarget, runtimes: object) -> frozenset[str]:  # noqa: ARG002 - the port
        """None."""
        return frozenset()

    def can_spawn(self, target: WakeTarget) -> bool:  # noqa: ARG002 - the port
        """No."""
        return False

    async def wake(self, job: WakeJob, on_attempt: object) -> WakeReport:  # noqa: ARG002 - the port
        """Nothing can be tried."""
        return WakeReport(WakeAction.NONE, WakeResult.FAILED, WakeCause.NO_FALLBACK)


class WakeService:
    """Everything about the wakes of one server."""

    def __init__(
        self,
        threads: "ThreadService",
        waker: Waker | None = None,
        terminals: Terminals | None = None,
    ) -> None:
        self.threads = threads
        self.engine = threads.engine
        self.registry = RuntimeRegistry(threads.engine, threads.submitter)
        self.conversations = Conversations(threads)
        self.waker: Waker = waker or NoWaker()
        self.supervised = SupervisedTerminals(threads.engine.clock.now)
        self.terminals: Terminals = terminals or self.supervised
        self._running: set[asyncio.Task[WakeReport]] = set()
        self._carried_out: set[str] = set()  # wakes that this process is carrying out
        self._attempts: dict[str, tuple[WakeAction, str]] = {}  # by wake, what is being tried
        self.is_stopping = False

    # Asking

    async def ask(self, seat: Seat, wake: str, order: WakeOrder) -> Answered:
        """Wake an agent; the answer comes once it is decided or handed over. Raises Refused."""
        facts = await self.facts(seat, order.thread)
        answer = await self._submit(seat, WakeAsk(order, facts), wake)
        if answer.refusal is not None:
            raise answer.refusal
        event = answer.records[0].event if answer.records else None
        if answer.is_retry and event is not None:
            first = answer.records[0]
            if first.at + self.threads.submitter.window_ms <= self.engine.clock.now():
                return await self.ask(seat, derive_ulid_after(wake, "again"), order)
            return self._answer_again(seat, event, order)
        if isinstance(event, WakeStarted):
            report = await self._run_settled(seat, event)
            if report is not None and report.result is WakeResult.DEFERRED:
                waits = (await self._attention(seat)).waking.open.get(wake)
                return Answered(_outcome_of_waiting(waits) if waits else report)
            return Answered(report or self._under_way(event.open))
        if isinstance(event, WakeDeferred):
            return Answered(_outcome_of_waiting(event.open))
        attention = await self._attention(seat)
        return self._answer_unrecorded(attention, event, wake, order, facts)

    async def ask_automatically(self, seat: Seat, wake: str, order: WakeOrder) -> None:
        """Wake an agent because a message says so; no caller waits for the outcome."""
        facts = await self.facts(seat, order.thread)
        answer = await self._submit(seat, WakeAsk(order, facts), wake)
        for record in () if answer.is_retry else answer.records:
            if isinstance(record.event, WakeStarted):
                _ = self._start(seat, record.event)

    async def look_again(self, seat: Seat, wake: str, thread: str) -> None:
        """A waiting wake is due: decide anew with the facts of this moment."""
        facts = await self.facts(seat, thread)
        answer = await self._submit(seat, WakeLook(wake, facts))
        for record in answer.records:
            if isinstance(record.event, WakeStarted):
                _ = self._start(seat, record.event)

    async def pause(self, seat: Seat, by: str, *, paused: bool) -> None:
        """Keep an agent from being woken, or end that; raises Refused."""
        answer = await self._submit(seat, AgentPause(by, paused))
        if answer.refusal is not None:
            raise answer.refusal

    async def facts(self, seat: Seat, thread_id: str) -> WakeFacts:
        """What a decision needs besides the agent's own stream."""
        attention = await self._attention(seat)
        conversation = await self.conversations.of(seat, thread_id)
        runtimes = attention.waking.runtimes.values()
        target = WakeTarget(*seat)
        human = await self.terminals.human_input(target)
        beats = dict(self.registry.beats_of(seat, runtimes))
        drafted_at = self.conversations.draft_at(seat)
        for session_id, seen in human.items():
            now = self.engine.clock.now()
            known = beats.get(session_id, Beats(now))
            beats[session_id] = Beats(known.seen_at, now, seen.with_draft(drafted_at))
        return WakeFacts(
            unread=conversation.unread,
            beats=beats,
            reachable=frozenset(human),
            resumable=self.waker.resumable(target, runtimes),
            can_spawn=self.waker.can_spawn(target),
            polite_run=conversation.polite_run,
            is_present=conversation.is_present,
        )

    # Running

    async def _run_settled(self, seat: Seat, event: WakeStarted) -> WakeOutcome | None:
        """The outcome of a wake that ends soon, None for one that goes on; raises WAKE_FAILED."""
        task = self._start(seat, event)
        await asyncio.wait({task}, timeout=SETTLE_S)
        if not task.done():
            return None
        report, opened = task.result(), event.open
        if report.result is WakeResult.FAILED:
            words = SENTENCES[report.cause]
            detail = f"{words} ({report.detail})" if report.detail else words
            raise Refused(Reason.WAKE_FAILED, detail, {"why": report.cause})
        return WakeOutcome(
            wake=opened.wake,
            action=report.action,
            result=report.result,
            cause=report.cause,
            triggered_at=opened.started_at or opened.asked_at,
            detail=report.detail,
            command=report.command,
        )

    def _under_way(self, opened: OpenWake) -> WakeOutcome:
        """What is known of a wake that goes on."""
        action, command = self._attempts.get(opened.wake, (opened.action, ""))
        return replace(outcome_of_running(replace(opened, action=action)), command=command)

    def _start(self, seat: Seat, event: WakeStarted) -> "asyncio.Task[WakeReport]":
        self._carried_out.add(event.open.wake)
        task = asyncio.create_task(self._run(seat, event))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _run(self, seat: Seat, event: WakeStarted) -> WakeReport:
        """Carry out a started wake, and record its end.

        One that is with a terminal when the server stops stays open: it may have been typed, and
        whoever takes it up asks its supervisor.
        """
        wake = event.open.wake
        try:
            report = await self._carry_out(seat, event)
        except asyncio.CancelledError:
            action, _ = self._attempts.get(wake, (event.open.action, ""))
            if action is not WakeAction.TRIGGER_RUNTIME:
                cause = WakeCause.INTERRUPTED
                end = WakeEnd(wake, action, WakeResult.FAILED, cause, STOPPED_DETAIL)
                await self._submit(seat, end)
            raise
        except Exception:
            log.exception("wake.failed", extra={"wake": wake})
            action, cause = event.open.action, WakeCause.COMMAND_FAILED
            report = WakeReport(action, WakeResult.FAILED, cause, ERROR_DETAIL)
        finally:
            self._attempts.pop(wake, None)
            self._carried_out.discard(wake)
        await self._submit(seat, WakeEnd(wake, *report))
        return report

    async def _carry_out(self, seat: Seat, event: WakeStarted) -> WakeReport:
        if self.is_stopping:
            raise asyncio.CancelledError
        opened, target = event.open, WakeTarget(*seat)
        actions = [one for one in (opened.action, opened.fallback) if one is not WakeAction.NONE]
        attention = await self._attention(seat)
        prompts = await self._prompts(seat, opened.order)
        if actions[0] is WakeAction.TRIGGER_RUNTIME:
            delivered = await self.terminals.deliver(
                target, event.session_id, opened.wake, prompts[0]
            )
            # A prompt that was handed out may have been typed: no other way may follow.
            interrupted = delivered.cause is WakeCause.INTERRUPTED
            if delivered.result is not WakeResult.FAILED or interrupted or len(actions) == 1:
                return delivered
            actions = actions[1:]
        runtime = attention.waking.runtimes.get(event.session_id)

        def on_attempt(action: WakeAction, command: str) -> None:
            self._attempts[opened.wake] = (action, command)

        job = WakeJob(target, tuple(actions), *prompts, runtime)
        return await self.waker.wake(job, on_attempt)

    async def _prompts(self, seat: Seat, order: WakeOrder) -> tuple[str, str]:
        """What a resumed and what a new session reads."""
        unread = (await self.conversations.of(seat, order.thread)).unread
        asked = partial(
            wake_prompt, thread=order.thread, unread=unread, by=order.by, words=order.words
        )
        return asked(), asked(summary=await self.conversations.summary(seat, order.thread))

    async def take_up(self, seat: Seat, session_id: str) -> None:
        """What a supervisor is to be told when it asks: a wake of before a restart of the server.

        Its terminal alone: whether another way was being tried when the server stopped is not
        known. The supervisor types a wake once, so handing it over again repeats nothing.
        """
        running = (await self._attention(seat)).waking.running
        if running is None or running.action is not WakeAction.TRIGGER_RUNTIME:
            return
        key = TerminalKey(WakeTarget(*seat), session_id)
        if running.session_id != session_id or running.wake in self._carried_out:
            return
        if not self.supervised.is_known(key, running.wake):
            alone = replace(running, fallback=WakeAction.NONE)
            _ = self._start(seat, WakeStarted(open=alone, session_id=session_id))
            await asyncio.sleep(0)

    async def look_at_waiting(self, seat: Seat) -> None:
        """A host has stopped working, or is back: look at the wakes that waited for that."""
        waking = (await self._attention(seat)).waking
        for one in list(waking.open.values()):
            if one.phase is WakePhase.WAITING and one.cause in FOR_A_TERMINAL:
                await self.look_again(seat, one.wake, one.order.thread)

    async def stop(self) -> None:
        """End all commands and record that; the next start asks anew for what is unread then."""
        self.is_stopping = True
        self.supervised.stop()
        await asyncio.sleep(0)  # a task that has not begun would record nothing
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    # Answering

    def _answer_again(self, seat: Seat, event: Event, order: WakeOrder) -> Answered:
        """The first answer of a wake that was asked for again with the same key."""
        if isinstance(event, WakeSkipped):
            return Answered(_skipped(event.wake, event.cause, self.engine.clock.now()))
        opened = event.open if isinstance(event, WakeStarted | WakeDeferred) else None
        if opened is None or opened.order != order:
            detail = "This idempotency key was used for something else; use a new key"
            raise Refused(Reason.KEY_REUSED, detail)
        if isinstance(event, WakeDeferred):
            return Answered(_outcome_of_waiting(opened))
        ended = self._end_of(seat, opened.wake)
        if ended is not None and ended.result is WakeResult.FAILED:
            raise Refused(Reason.WAKE_FAILED, SENTENCES[ended.cause], {"why": ended.cause})
        return Answered(ended or self._under_way(opened))

    def _end_of(self, seat: Seat, wake: str) -> WakeOutcome | None:
        """How a recent wake ended."""
        opened = self.engine.streams.get(stream_of(*seat))
        for encoded in reversed(opened.window if opened else ()):
            event = encoded.record.event
            if isinstance(event, WakeEnded) and event.outcome.wake == wake:
                return event.outcome
        return None

    def _answer_unrecorded(
        self,
        attention: Attention,
        event: Event | None,
        wake: str,
        order: WakeOrder,
        facts: WakeFacts,
    ) -> Answered:
        """The answer to a wake that was skipped, or that joins one which waits."""
        now = self.engine.clock.now()
        policy = wake_policy(self.engine.policy)
        decision = decide_wake(Question(attention.waking, order, facts, now, policy))
        if isinstance(decision, Join):
            return Answered(_outcome_of_waiting(decision.open))
        earlier = decision.earlier if isinstance(decision, Skip) else None
        cause = event.cause if isinstance(event, WakeSkipped) else decision.cause
        return Answered(_skipped(wake, cause, now), earlier)

    async def _attention(self, seat: Seat) -> Attention:
        state: Attention = await self.engine.state(stream_of(*seat))
        return state

    async def _submit(self, seat: Seat, body: Body, id: str = "") -> Answer:
        stream, now = stream_of(*seat), to_iso(self.engine.clock.now())
        room = stream.removeprefix(STREAM_PREFIX)
        message = Message(id or self.engine.new_id(), now, room, SYSTEM, body)
        return await self.threads.submitter.answer_to(stream, message, POLICY_ACTOR)

    async def agents(self, workspace: str) -> list[tuple[str, Attention]]:
        """Every agent of a workspace of which anything is known, by name."""
        prefix = stream_of(workspace, "")
        found = []
        for stream in sorted(await self.engine.events.streams(prefix)):
            with suppress(Refused):
                found.append((stream.removeprefix(prefix), await self.engine.state(stream)))
        return found


def _outcome_of_waiting(opened: OpenWake) -> WakeOutcome:
    for_person = opened.cause is WakeCause.HUMAN_INPUT
    return WakeOutcome(
        wake=opened.wake,
        action=WakeAction.TRIGGER_RUNTIME if for_person else WakeAction.NONE,
        result=WakeResult.DEFERRED,
        cause=opened.cause,
        triggered_at=opened.asked_at,
        deferred_until=opened.until or opened.next_at,
        fallback_action=opened.fallback,
    )


def _skipped(wake: str, cause: WakeCause, now: int) -> WakeOutcome:
    return WakeOutcome(
        wake=wake,
        action=WakeAction.NONE,
        result=WakeResult.SKIPPED,
        cause=cause,
        triggered_at=now,
    )
