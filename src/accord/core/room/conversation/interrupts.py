"""Interrupts: humans stop agents, and the server enforces it."""

from collections.abc import Iterator
from typing import Literal

from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Body, Failure, MemberIds
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.kernel.timestamps import MS_PER_SECOND
from accord.core.room.approval import grants, votes
from accord.core.room.field_types import Id, ShortText, Text
from accord.core.room.state import ContentRef, Interrupt, Room, Urgency, without_keys

# What an agent may acknowledge at each urgency (OPEN-45).
ALLOWED_ACTIONS: dict[Urgency, frozenset[str]] = {
    Urgency.PAUSE: frozenset({"paused", "acknowledged", "ignored"}),
    Urgency.STOP: frozenset({"stopped", "acknowledged"}),
    Urgency.EMERGENCY: frozenset({"stopped", "acknowledged"}),
}
# An interrupt is never refused; beyond this many unanswered ones, the oldest are forgotten.
MAX_UNANSWERED_INTERRUPTS = 1000
ACK_TIMEOUT_S = 30  # UNI-23
HALTING_URGENCIES = frozenset({Urgency.STOP, Urgency.EMERGENCY})


class InterruptRaise(Body, frozen=True, omit_defaults=True, gc=False):
    """Interrupt one agent, or all of them."""

    type = "interrupt.raise"
    needs = Permission.INTERRUPT
    while_paused = True

    urgency: Urgency
    message: ShortText
    target: Id | None = None
    inject_context: Text | None = None
    inject_context_ref: ContentRef | None = None


class InterruptAcknowledge(Body, frozen=True, omit_defaults=True, gc=False):
    """What the agent did about an interrupt."""

    type = "interrupt.acknowledge"
    needs = Permission.ACT_AS_AGENT
    while_paused = True

    interrupt: Id
    by: Id
    action_taken: Literal["paused", "stopped", "acknowledged", "ignored"]
    ignore_reason: ShortText | None = None

    def claimed_ids(self) -> Iterator[str]:
        yield self.by


class InterruptRaised(Event, frozen=True, kw_only=True, gc=False):
    """Agents were interrupted; those told to stop are refused until they are prompted again."""

    name = "interrupt.raised"

    said: InterruptRaise
    targets: MemberIds


class InterruptAcknowledged(Event, frozen=True, kw_only=True, gc=False):
    """An agent acknowledged an interrupt."""

    name = "interrupt.acknowledged"

    said: InterruptAcknowledge


class InterruptLapsed(Event, frozen=True, kw_only=True, gc=False):
    """Some agents did not acknowledge in time."""

    name = "interrupt.lapsed"

    interrupt: str


class ToolAborted(Event, frozen=True, kw_only=True, gc=False):
    """An emergency revoked a grant that was not used yet."""

    name = "tool.aborted"

    tool: str


def raise_interrupt(room: Room, command: Command, body: InterruptRaise) -> Iterator[EventOrEffect]:
    """Record the interrupt; an emergency also rejects gates and revokes unused grants."""
    targets = interrupt_targets(room, body.target)
    yield InterruptRaised(said=body, targets=targets)
    if body.urgency is Urgency.EMERGENCY:
        for agent in sorted(targets):
            yield from votes.withdraw_gates(room, agent, f"Emergency: {body.message}"[:4096])
            yield from abort_unused_grants(room, agent)


def interrupt_targets(room: Room, target: str | None) -> MemberIds:
    """The target agent; all agents if no target is given."""
    if target is None:
        return frozenset(m.id for m in room.members.values() if m.kind is Kind.AGENT)
    member = room.members.get(target)
    if member is None:
        raise Refused(Reason.NO_MEMBER, f"{target} is not in this session")
    if member.kind is not Kind.AGENT:
        raise Refused(Reason.MALFORMED, f"{target} is not an agent; only agents can be interrupted")
    return frozenset({target})


def abort_unused_grants(room: Room, agent: str) -> Iterator[EventOrEffect]:
    for tool in room.tools.values():
        if tool.agent == agent and tool.grant is not None and not tool.started:
            yield ToolAborted(tool=tool.id, fork=tool.fork)


def acknowledge_interrupt(
    room: Room, command: Command, body: InterruptAcknowledge
) -> Iterator[EventOrEffect]:
    """An acknowledgement that the urgency allows, from an agent that was interrupted."""
    interrupt = room.interrupts.get(body.interrupt)
    if interrupt is None or command.actor.principal not in interrupt.waiting:
        raise Refused(
            Reason.NOT_FOUND, f"No interrupt {body.interrupt} waits for {command.actor.principal}"
        )
    if body.action_taken not in ALLOWED_ACTIONS[interrupt.urgency]:
        detail = f"A {interrupt.urgency} interrupt cannot be {body.action_taken}"
        raise Refused(Reason.WRONG_STATE, detail)
    if body.action_taken == "ignored" and not body.ignore_reason:
        raise Refused(Reason.MALFORMED, "Ignoring an interrupt requires ignore_reason")
    yield InterruptAcknowledged(said=body, ref=command.message.ref or interrupt.id)


def lapse_overdue_interrupts(room: Room, command: Command) -> Iterator[EventOrEffect]:
    """Report the agents that did not acknowledge within the timeout."""
    for interrupt in room.interrupts.values():
        if interrupt.due <= command.at:
            yield InterruptLapsed(interrupt=interrupt.id)
            detail = f"No acknowledgement from {', '.join(sorted(interrupt.waiting))}"
            yield Relay(Failure(Reason.TIMED_OUT, detail, interrupt.id))


def on_raised(room: Room, event: InterruptRaised, record: Record) -> Room:
    """Wait for acknowledgements; a stop or an emergency also halts the targets."""
    body = event.said
    if not event.targets:
        return room
    interrupt = Interrupt(
        id=record.id,
        urgency=body.urgency,
        waiting=event.targets,
        due=record.at + ACK_TIMEOUT_S * MS_PER_SECOND,
    )
    unanswered = {**room.interrupts, interrupt.id: interrupt}
    newest = dict(list(unanswered.items())[-MAX_UNANSWERED_INTERRUPTS:])
    room = replace(room, interrupts=newest)
    if body.urgency not in HALTING_URGENCIES:
        return room
    halted = dict.fromkeys(event.targets, body.urgency.value)
    return replace(room, halted={**room.halted, **halted})


def on_acknowledged(room: Room, event: InterruptAcknowledged, record: Record) -> Room:
    interrupt = room.interrupts.get(event.said.interrupt)
    if interrupt is None:
        return room
    waiting = interrupt.waiting - {event.said.by}
    if not waiting:
        return replace(room, interrupts=without_keys(room.interrupts, interrupt.id))
    interrupt = replace(interrupt, waiting=waiting)
    return replace(room, interrupts={**room.interrupts, interrupt.id: interrupt})


def on_lapsed(room: Room, event: InterruptLapsed, record: Record) -> Room:
    """Stop waiting for acknowledgements; halted agents stay halted."""
    return replace(room, interrupts=without_keys(room.interrupts, event.interrupt))


def on_aborted(room: Room, event: ToolAborted, record: Record) -> Room:
    return grants.close_proposals(room, "rejected by an emergency", event.tool)


def stop_waiting_for(room: Room, member_id: str) -> Room:
    """Do not wait for a member who left; a halt remains in force if they rejoin."""
    if not room.interrupts:
        return room
    interrupts = {
        id: replace(interrupt, waiting=waiting)
        for id, interrupt in room.interrupts.items()
        if (waiting := interrupt.waiting - {member_id})
    }
    return replace(room, interrupts=interrupts)


DECIDE: Deciders = {InterruptRaise: raise_interrupt, InterruptAcknowledge: acknowledge_interrupt}
EVOLVE: Evolvers = {
    InterruptRaised: on_raised,
    InterruptAcknowledged: on_acknowledged,
    InterruptLapsed: on_lapsed,
    ToolAborted: on_aborted,
}
