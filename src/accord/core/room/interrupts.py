"""Interrupts: people stop agents, and the server sees to it."""

from collections.abc import Iterator
from typing import Literal

from msgspec.structs import replace

from accord.core.kernel.authority import Kind, May
from accord.core.kernel.log import (
    Ask,
    Body,
    Deciders,
    Event,
    Evolvers,
    Fact,
    Failure,
    Record,
    Say,
    Seats,
)
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import SECOND
from accord.core.room import grants, votes
from accord.core.room.fields import Id, Short, Text
from accord.core.room.state import ContentRef, Interrupt, Room, Urgency, without

# What an agent may answer to each (OPEN-45).
ANSWERS: dict[Urgency, frozenset[str]] = {
    Urgency.PAUSE: frozenset({"paused", "acknowledged", "ignored"}),
    Urgency.STOP: frozenset({"stopped", "acknowledged"}),
    Urgency.EMERGENCY: frozenset({"stopped", "acknowledged"}),
}
# A stop is never refused; of so many that nobody answers, the newest are waited for.
MOST_UNANSWERED = 1000
ACK_SECONDS = 30  # UNI-23
HALTING = frozenset({Urgency.STOP, Urgency.EMERGENCY})


class InterruptRaise(Body, frozen=True, omit_defaults=True, gc=False):
    """Intervene: one agent, or all of them."""

    type = "interrupt.raise"
    needs = May.INTERRUPT
    while_paused = True

    urgency: Urgency
    message: Short
    target: Id | None = None
    inject_context: Text | None = None
    inject_context_ref: ContentRef | None = None


class InterruptAcknowledge(Body, frozen=True, omit_defaults=True, gc=False):
    """What the agent did about it."""

    type = "interrupt.acknowledge"
    needs = May.ACT
    while_paused = True

    interrupt: Id
    by: Id
    action_taken: Literal["paused", "stopped", "acknowledged", "ignored"]
    ignore_reason: Short | None = None

    def claims(self) -> Iterator[str]:
        """An agent answers for itself."""
        yield self.by


class InterruptRaised(Event, frozen=True, kw_only=True, gc=False):
    """Agents were told to pause or stop; stopped ones can do nothing from here on."""

    name = "interrupt.raised"

    said: InterruptRaise
    targets: Seats


class InterruptAcknowledged(Event, frozen=True, kw_only=True, gc=False):
    """An agent answered."""

    name = "interrupt.acknowledged"

    said: InterruptAcknowledge


class InterruptLapsed(Event, frozen=True, kw_only=True, gc=False):
    """Some agents did not answer in time."""

    name = "interrupt.lapsed"

    interrupt: str


class ToolAborted(Event, frozen=True, kw_only=True, gc=False):
    """An emergency took back a grant that was not used yet."""

    name = "tool.aborted"

    tool: str


def raise_(room: Room, ask: Ask, body: InterruptRaise) -> Iterator[Fact]:
    """The stop itself is the record; what it ends follows at once."""
    targets = aimed_at(room, body.target)
    yield InterruptRaised(said=body, targets=targets)
    if body.urgency is Urgency.EMERGENCY:
        for seat in sorted(targets):
            yield from votes.withdrawn(room, seat, f"Emergency: {body.message}"[:4096])
            yield from aborted(room, seat)


def aimed_at(room: Room, target: str | None) -> Seats:
    """The agents that are meant."""
    if target is None:
        return frozenset(m.id for m in room.members.values() if m.kind is Kind.AGENT)
    member = room.members.get(target)
    if member is None:
        raise Refused(Why.NO_MEMBER, f"{target} is not in this session")
    if member.kind is not Kind.AGENT:
        raise Refused(Why.MALFORMED, f"{target} is not an agent; only agents can be interrupted")
    return frozenset({target})


def aborted(room: Room, seat: str) -> Iterator[Fact]:
    """Grants that were given and not used yet."""
    for tool in room.tools.values():
        if tool.agent == seat and tool.grant is not None and not tool.started:
            yield ToolAborted(tool=tool.id, fork=tool.fork)


def acknowledge(room: Room, ask: Ask, body: InterruptAcknowledge) -> Iterator[Fact]:
    """An answer that the urgency allows, from somebody who was asked."""
    raised = room.interrupts.get(body.interrupt)
    if raised is None or ask.actor.seat not in raised.waiting:
        raise Refused(Why.UNKNOWN, f"No interrupt {body.interrupt} waits for {ask.actor.seat}")
    if body.action_taken not in ANSWERS[raised.urgency]:
        detail = f"A {raised.urgency} cannot be {body.action_taken}"
        raise Refused(Why.WRONG_STATE, detail)
    if body.action_taken == "ignored" and not body.ignore_reason:
        raise Refused(Why.MALFORMED, "ignore_reason is needed to ignore an interrupt")
    yield InterruptAcknowledged(said=body, ref=ask.message.ref or raised.id)


def overdue(room: Room, ask: Ask) -> Iterator[Fact]:
    """Nobody may be silent for longer than the house allows."""
    for raised in room.interrupts.values():
        if raised.due <= ask.at:
            silent = ", ".join(sorted(raised.waiting))
            yield InterruptLapsed(interrupt=raised.id)
            yield Say(Failure(Why.LATE, f"No acknowledgement from {silent}", raised.id))


def check_free(room: Room, seat: str) -> None:
    """A stopped agent does nothing until it is prompted again."""
    if urgency := room.halted.get(seat):
        detail = f"{seat} was told to {urgency}; it goes on when it is prompted again"
        raise Refused(Why.WRONG_STATE, detail)


def on_raised(room: Room, event: InterruptRaised, record: Record) -> Room:
    """Agents that must answer, and agents that must stop."""
    said = event.said
    if not event.targets:
        return room
    raised = Interrupt(
        id=record.id,
        urgency=said.urgency,
        waiting=event.targets,
        due=record.at + ACK_SECONDS * SECOND,
    )
    open_ones = {**room.interrupts, raised.id: raised}
    newest = dict(list(open_ones.items())[-MOST_UNANSWERED:])
    room = replace(room, interrupts=newest)
    if said.urgency not in HALTING:
        return room
    halted = dict.fromkeys(event.targets, said.urgency.value)
    return replace(room, halted={**room.halted, **halted})


def on_acknowledged(room: Room, event: InterruptAcknowledged, record: Record) -> Room:
    """One answer less to wait for."""
    raised = room.interrupts.get(event.said.interrupt)
    if raised is None:
        return room
    waiting = raised.waiting - {event.said.by}
    if not waiting:
        return replace(room, interrupts=without(room.interrupts, raised.id))
    raised = replace(raised, waiting=waiting)
    return replace(room, interrupts={**room.interrupts, raised.id: raised})


def on_lapsed(room: Room, event: InterruptLapsed, record: Record) -> Room:
    """No longer waited for; whoever is stopped stays stopped."""
    return replace(room, interrupts=without(room.interrupts, event.interrupt))


def on_aborted(room: Room, event: ToolAborted, record: Record) -> Room:
    """The grant is void."""
    return grants.over(room, "rejected by an emergency", event.tool)


def member_gone(room: Room, seat: str) -> Room:
    """Nobody waits for the answer of somebody who left; a stop outlives a rejoin."""
    left = {i: replace(r, waiting=r.waiting - {seat}) for i, r in room.interrupts.items()}
    still = {i: raised for i, raised in left.items() if raised.waiting}
    return replace(room, interrupts=still) if room.interrupts else room


DECIDE: Deciders = {InterruptRaise: raise_, InterruptAcknowledge: acknowledge}
EVOLVE: Evolvers = {
    InterruptRaised: on_raised,
    InterruptAcknowledged: on_acknowledged,
    InterruptLapsed: on_lapsed,
    ToolAborted: on_aborted,
}
