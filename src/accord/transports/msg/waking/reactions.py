"""What follows from a message or a timer: automatic wakes, notices in threads, late outcomes.

Follows the log with a durable cursor, so that a crash loses nothing. What it posts and asks has ids
that follow from the record, so that seeing a record again repeats nothing.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from accord.core.attention import state as attention_state
from accord.core.attention.cursors import cursor_in
from accord.core.attention.state import Attention, Seat, seat_of
from accord.core.attention.waking.automatic_wakes import PostedMessage, woken_by
from accord.core.attention.waking.deciders import wake_policy
from accord.core.attention.waking.outcomes import SENTENCES, WakeCause, WakeResult
from accord.core.attention.waking.politeness_loop import NOTICE, loop_was_noticed, polite_run
from accord.core.attention.waking.state import WakeOrder
from accord.core.attention.waking.wake_events import SilenceNoticed, WakeDue, WakeEnded
from accord.core.attention.waking.wake_messages import AgentAddress
from accord.core.attention.waking.waker_port import WakeTarget
from accord.core.kernel.actor import POLICY_ACTOR
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Message
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.kernel.ulid import derive_ulid_after
from accord.core.room.approval.gate_timeouts import GateTimedOut
from accord.core.room.approval.votes import GatePassed, GateRejected
from accord.core.room.conversation.prompts import PromptSubmitted
from accord.core.room.room_settings import GateResolution
from accord.core.room.shared_context.context_items import ContextAdded
from accord.core.room.state import Room
from accord.core.room.threads import state as thread_state
from accord.core.room.threads.state import Thread
from accord.core.room.threads.thread_messages import ThreadMessage
from accord.core.views.session_threads import SessionThread
from accord.engine.ports import Row
from accord.transports.http.session_index import ROOM_PREFIX
from accord.transports.msg.waking.conversations import message_in_session, posted_message
from accord.transports.msg.waking.review_targets import reviewers_for
from accord.transports.msg.waking.service import SETTLE_S

if TYPE_CHECKING:
    from accord.transports.msg.service import ThreadService

log = logging.getLogger("accord.waking")

SWEEP_INTERVAL_S = 30.0
LOOP_TEXT = (
    "The last messages are chat between two agents alone. Neither is woken by further chat until "
    "an event, a task, a commit or a person follows."
)
# What a row must contain to matter; looking for these bytes is cheaper than decoding every message.
THREAD_MARKERS = (
    b'"to":',
    b'"finding_reported"',
    b'"fix_pushed"',
    b'"re_review_requested"',
    b'"thread_escalated"',
)
ATTENTION_MARKERS = (b'"wake.due"', b'"wake.ended"', b'"silence.noticed"')
# Prompts, decided gates, and chat whose metadata (a text inside the record) addresses an agent.
ROOM_MARKERS = (
    b'"prompt.submitted"',
    b'"gate.passed"',
    b'"gate.rejected"',
    b'"gate.timed_out"',
    b'\\"to\\":',
)
MARKERS = {
    ROOM_PREFIX: ROOM_MARKERS,
    thread_state.STREAM_PREFIX: THREAD_MARKERS,
    attention_state.STREAM_PREFIX: ATTENTION_MARKERS,
}


class AttentionWorker:
    """Acts on messages that address a participant, and on what the timer found."""

    name = "attention"
    pause = 0.05

    def __init__(self, threads: "ThreadService") -> None:
        self.threads = threads
        self.engine = threads.engine
        self._noted: list[Row] = []

    async def load(self) -> None:
        """Take in what the log says about every agent, which also arms their timers."""
        prefix = attention_state.STREAM_PREFIX
        for stream in await self.engine.events.streams(prefix):
            attention: Attention = await self.engine.state(stream)
            self.threads.silence.load(stream, attention)
            self.threads.wakes.registry.load(stream, attention)

    async def run_sweeps(self) -> None:
        """Look for runtimes that have fallen silent; never returns."""
        while True:
            await asyncio.sleep(SWEEP_INTERVAL_S)
            await self.threads.wakes.registry.sweep()

    def note(self, rows: Sequence[Row]) -> None:
        """Keep those that may matter."""
        self._noted += [row for row in rows if matters(row)]

    async def act(self) -> None:
        """Handle what was noted, in order; a refusal concerns one record alone."""
        noted, self._noted = self._noted, []
        for row in noted:
            if self.threads.wakes.is_stopping:
                await asyncio.Event().wait()  # until cancelled: the next start goes on here
            record = self.engine.decode_row(row).record
            try:
                await self._react(record)
            except Refused as refusal:
                about = {"stream": record.stream, "detail": refusal.detail}
                log.info("reaction.refused", extra=about)

    async def _react(self, record: Record) -> None:
        match record.event:
            case ThreadMessage() as event:
                await self._on_message(record, event)
            case PromptSubmitted() as event:
                await self._wake_in_session(record, (event.said.target_agent,), record.id)
            case GatePassed() | GateRejected() as event:
                await self._on_gate_decided(record, event.gate)
            case GateTimedOut() as event:
                if event.said.resolution is not GateResolution.ESCALATED:
                    await self._on_gate_decided(record, event.said.gate)
            case ContextAdded():
                await self._on_session_message(record)
            case WakeDue() as event:
                seat = seat_of(record.stream)
                await self.threads.wakes.look_again(seat, event.wake, event.thread)
            case WakeEnded() as event:
                await self._on_wake_ended(record, event)
            case SilenceNoticed() as event:
                await self._on_silence(record, event)
            case _:
                pass

    async def _on_message(self, record: Record, event: ThreadMessage) -> None:
        """Those who are named are awaited; those whom it wakes are woken."""
        thread: Thread = await self.engine.state(record.stream)
        message = posted_message(record, event)
        reviewers: tuple[str, ...] = ()
        if message.event_type and not message.to:
            newest = await self.threads.wakes.conversations.newest_messages(thread, record.seq)
            reviewers = reviewers_for(thread, record, event, newest)
        woken = woken_by(message, thread.participants, reviewers)
        if woken and await self._is_politeness_loop(thread, record):
            await self._post_loop_notice(thread, record)
        for agent in woken:
            seat = Seat(thread.workspace, agent)
            attention: Attention = await self.engine.state(attention_state.stream_of(*seat))
            cursor = attention.cursors.get(thread.id)
            if cursor is not None and cursor.last_read_seq >= record.seq:
                continue
            if agent in message.to:
                await self._expect_answer(seat, thread.id, record, message)
            if self._can_be_woken(seat, attention):
                order = WakeOrder(thread=thread.id, by=message.sender, automatic=True)
                wake = derive_ulid_after(record.id, "wake", agent)
                await self.threads.wakes.ask_automatically(seat, wake, order)

    def _can_be_woken(self, seat: Seat, attention: Attention) -> bool:
        """People are not woken, nor agents of which nothing is known and nothing set up."""
        directory = self.engine.policy.directory
        if directory is not None and directory.kind_of(*seat) is Kind.HUMAN:
            return False
        spawns = self.threads.wakes.waker.can_spawn(WakeTarget(*seat))
        return bool(attention.waking.runtimes) or spawns

    async def _expect_answer(
        self, seat: Seat, thread: str, record: Record, message: PostedMessage
    ) -> None:
        silence = self.threads.silence
        if silence.has_answered(seat, thread, record.seq):
            return
        body = AgentAddress(thread, record.id, record.seq, message.sender)
        stream = attention_state.stream_of(*seat)
        id = derive_ulid_after(record.id, "address", seat.agent)
        room = stream.removeprefix(attention_state.STREAM_PREFIX)
        told = Message(id, to_iso(self.engine.clock.now()), room, SYSTEM, body)
        await self.threads.submitter.answer_to(stream, told, POLICY_ACTOR)
        silence.record_early_answer(seat, thread, record.seq)

    # Politeness loops

    async def _is_politeness_loop(self, thread: Thread, record: Record) -> bool:
        newest = await self.threads.wakes.conversations.newest_messages(thread, record.seq)
        return polite_run(newest) >= wake_policy(self.engine.policy).polite_messages

    async def _post_loop_notice(self, thread: Thread, record: Record) -> None:
        newest = await self.threads.wakes.conversations.newest_messages(thread, thread.last_seq)
        if not loop_was_noticed(newest):
            id = derive_ulid_after(record.id, NOTICE)
            await self.threads.post_notice(thread.id, LOOP_TEXT, {"notice": NOTICE}, id)

    # Sessions

    async def _on_gate_decided(self, record: Record, gate_id: str) -> None:
        """The agent whose action it was goes on, or learns why it may not."""
        room: Room = await self.engine.state(record.stream)
        gate = room.ended_gates.get(gate_id)
        if gate is not None and record.actor != gate.initiator:
            await self._wake_in_session(record, (gate.initiator,), gate_id)

    async def _on_session_message(self, record: Record) -> None:
        """Those whom a chat message or event addresses: they are awaited, and woken."""
        room: Room = await self.engine.state(record.stream)
        message = message_in_session(room, record)
        named = woken_by(message, sorted(room.members_in(record.fork)))
        if room.ended or not named:
            return
        session = SessionThread(room, record.fork)
        await self._notice_loop_in_session(session, record)
        for agent in named:
            if agent in message.to:
                await self._expect_answer_in_session(session, agent, record, message)
        await self._wake_in_session(record, named, record.id)

    async def _expect_answer_in_session(
        self, session: SessionThread, agent: str, record: Record, message: PostedMessage
    ) -> None:
        """Unless it has acknowledged it, or done anything in the session since."""
        seat = Seat(session.room.workspace, agent)
        attention: Attention = await self.engine.state(attention_state.stream_of(*seat))
        read_up_to = cursor_in(attention, session.id).last_read_seq
        if read_up_to >= record.seq or not await self._is_unanswered(session, agent, record):
            return
        await self._expect_answer(seat, session.id, record, message)
        if not await self._is_unanswered(session, agent, record):  # by now
            self.threads.silence.on_answer(*seat, session.id, record.seq)

    async def _is_unanswered(self, session: SessionThread, agent: str, record: Record) -> bool:
        """Whether the agent has done nothing in the session since this message."""
        return bool(await self.threads.sessions.unanswered(session, agent, record.seq - 1))

    async def _notice_loop_in_session(self, session: SessionThread, record: Record) -> None:
        """Say once that two agents are only being polite."""
        said = await self.threads.wakes.conversations.newest_in_session(session, record.sender)
        most = wake_policy(self.engine.policy).polite_messages
        if polite_run(said) >= most and not loop_was_noticed(said):
            id, seat = (
                derive_ulid_after(record.id, NOTICE),
                Seat(session.room.workspace, record.sender),
            )
            await self.threads.post_notice(session.id, LOOP_TEXT, {"notice": NOTICE}, id, seat)

    def _hears(self, agent: str, stream: str) -> bool:
        """Whether an agent gets what is said there at once, by a connection or a waiting poll."""
        delivery = self.engine.delivery
        connected = {peer.principal for peer in delivery.connections(stream)}
        is_connected = agent in connected or delivery.is_elsewhere(stream, agent)
        return is_connected or agent in self.threads.wakes.conversations.polling(stream)

    async def _wake_in_session(self, record: Record, agents: Sequence[str], cause: str) -> None:
        """Wake agents of a session that do not hear it: a membership survives an absence."""
        room: Room = await self.engine.state(record.stream)
        members = room.members_in(record.fork) if not room.ended else frozenset()
        for agent in agents:
            seat = Seat(room.workspace, agent)
            member = room.members.get(agent)
            is_here = member is not None and agent in members and member.kind is Kind.AGENT
            if not is_here or self._hears(agent, record.stream):
                continue
            attention: Attention = await self.engine.state(attention_state.stream_of(*seat))
            if self._can_be_woken(seat, attention):
                sender = room.members.get(record.sender)
                by_person = sender is not None and sender.kind is Kind.HUMAN
                order = WakeOrder(
                    thread=record.fork or room.id,
                    by=record.sender,
                    automatic=True,
                    autonomous=not by_person,
                )
                wake = derive_ulid_after(cause, "wake", agent)
                await self.threads.wakes.ask_automatically(seat, wake, order)

    # Notices

    async def _on_silence(self, record: Record, event: SilenceNoticed) -> None:
        seat = seat_of(record.stream)
        agent = seat.agent
        text = (
            f"{agent} was addressed by {event.by} at {to_iso(event.since)} (message "
            f"{event.message}) and has neither read, acknowledged nor posted since."
        )
        about: dict[str, object] = {
            "notice": "silence",
            "agent_id": agent,
            "message_id": event.message,
        }
        await self.threads.post_notice(
            event.thread, text, about, derive_ulid_after(record.id, "silence"), seat
        )

    async def _on_wake_ended(self, record: Record, event: WakeEnded) -> None:
        """Posted where no caller is told: a deferred wake, and one that failed later.

        If a terminal went away or a server was stopped, the messages may still be unread: then it
        is asked for again.
        """
        outcome = event.outcome
        if outcome.cause is WakeCause.INTERRUPTED:
            order = WakeOrder(thread=event.thread, by=SYSTEM, automatic=True)
            again = derive_ulid_after(record.id, "again")
            await self.threads.wakes.ask_automatically(seat_of(record.stream), again, order)
        late = record.at - outcome.triggered_at > SETTLE_S * 1000
        failed = outcome.result is WakeResult.FAILED
        if not event.deferred and not (failed and (event.automatic or late)):
            return
        agent = seat_of(record.stream).agent
        detail = f" {outcome.detail}." if outcome.detail else ""
        text = f"Waking {agent}: {outcome.result}. {SENTENCES[outcome.cause]}.{detail}"
        about: dict[str, object] = {
            "notice": "wake_ended",
            "agent_id": agent,
            "action": outcome.action,
            "result": outcome.result,
            "why": outcome.cause,
        }
        await self.threads.post_notice(
            event.thread,
            text,
            about,
            derive_ulid_after(record.id, "wake_ended"),
            seat_of(record.stream),
        )


def matters(row: Row) -> bool:
    """Whether a row may lead to anything here."""
    prefix, body = row.stream[: row.stream.find("/") + 1], row.body
    # A loop takes half the time of `any`, and every message passes here.
    for marker in MARKERS.get(prefix, ()):  # noqa: SIM110
        if marker in body:
            return True
    return False
