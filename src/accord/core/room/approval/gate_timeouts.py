"""Gate timeouts: how a gate ends that was not decided in time."""

from collections.abc import Iterator

from accord.core.kernel import ballot as ballots
from accord.core.kernel.ballot import OfRole
from accord.core.kernel.context import Command, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body, Instant
from accord.core.kernel.records import Event, Record
from accord.core.kernel.role_permissions import Permission, Role
from accord.core.room.approval import gates, votes
from accord.core.room.decisions import decision_binding
from accord.core.room.field_types import Id, SafeInt
from accord.core.room.room_settings import GateResolution
from accord.core.room.state import Gate, GateOutcome, Room

GATE_TIMEOUT_DETAIL = "It was not approved in time"
SESSION_ENDED_DETAIL = "The session ended before it was approved"
TIMEOUT_OUTCOMES = {
    GateResolution.REJECTED: GateOutcome.TIMED_OUT,
    GateResolution.AUTO_APPROVED: GateOutcome.AUTO_APPROVED,
    GateResolution.ESCALATED: GateOutcome.ESCALATED,
}


class GateTimeout(Body, frozen=True, omit_defaults=True, gc=False):
    """The server's notice that a gate was not passed in time."""

    type = "gate.timeout"
    needs = Permission.SERVER_ONLY

    gate: Id
    approvals_received: SafeInt
    approvals_required: SafeInt
    resolution: GateResolution


class GateTimedOut(Event, frozen=True, kw_only=True, gc=False):
    """A gate's deadline passed."""

    name = "gate.timed_out"

    said: GateTimeout


def time_out_gates(
    room: Room, command: Command, *, after_restart: bool = False
) -> Iterator[EventOrEffect]:
    """End the gates whose deadline has passed; while a room is paused, deadlines are suspended.

    A deadline that passed while the server was down rejects, whatever the policy is: members could
    not vote (OPEN-31).
    """
    if room.paused_at is not None:
        return
    for gate in room.gates.values():
        if gate.expires_at is not None and gate.expires_at <= command.at:
            resolution = GateResolution.REJECTED if after_restart else resolution_of(room, gate)
            yield from time_out_gate(room, command, gate, resolution)


def resolution_of(room: Room, gate: Gate) -> GateResolution:
    """As the server's policy says, but reject what no member could have approved (OPEN-15)."""
    no_voters = ballots.has_rule_without_voters(gate.ballot, room.voters(gate.fork))
    tool = room.tools.get(gate.action)
    held = tool is not None and decision_binding.hold_reason(room, tool) is not None
    could_not_pass = no_voters or held or gate.initiator in room.halted
    if tool is not None and votes.is_option(room, tool):  # silence chooses none of several
        could_not_pass |= gate.on_timeout is GateResolution.AUTO_APPROVED
    return GateResolution.REJECTED if could_not_pass else gate.on_timeout


def time_out_gate(
    room: Room,
    command: Command,
    gate: Gate,
    resolution: GateResolution,
    reason: str = GATE_TIMEOUT_DETAIL,
) -> Iterator[EventOrEffect]:
    """End a gate that was not passed; `reason` is sent to its initiator."""
    voters = room.voters(gate.fork)
    tally = ballots.tally(gate.ballot, voters, skip_absent=room.skips_absent)
    timeout = GateTimeout(gate.id, tally.received, tally.required, resolution)
    yield GateTimedOut(said=timeout, ref=gate.id, fork=gate.fork)
    match resolution:
        case GateResolution.REJECTED:
            yield votes.gate_failed_notice(room, gate, reason)
        case GateResolution.AUTO_APPROVED:
            yield from votes.pass_gate(room, command, gate, tally)
        case GateResolution.ESCALATED:  # pragma: no branch - the list is closed
            yield open_escalated_gate(room, command, gate)


def open_escalated_gate(room: Room, command: Command, gate: Gate) -> gates.GateOpened:
    """One last gate that an admin decides; it is rejected at its own timeout."""
    tool = room.tools.get(gate.action)
    request = gates.GateRequest(
        action_type=gate.action_type,  # type: ignore[arg-type]  # as it was requested
        action_ref=gate.action,
        quorum=OfRole(Role.ADMIN, 1),
        timeout_seconds=gate.timeout_seconds,
        message=f"Escalated: {gate.message}"[: gates.MAX_MESSAGE_LENGTH],
        decision=decision_binding.standing_of(room, tool) if tool else None,
    )
    return gates.open_gate(
        room, command, request, gate.initiator, GateResolution.REJECTED, gate.fork
    )


def on_timed_out(room: Room, event: GateTimedOut, record: Record) -> Room:
    gate = room.gates.get(event.said.gate)
    if gate is None:
        return room
    resolution = event.said.resolution
    ended = gates.ended_gate(room, gate, timeout_outcome(gate, resolution, record.at), record.at)
    rejected = resolution is GateResolution.REJECTED
    return gates.close_gate(room, gate, f"timed out, {resolution}", ended, ends_action=rejected)


def timeout_outcome(gate: Gate, resolution: GateResolution, at: Instant) -> GateOutcome:
    """How the gate ended; before its deadline only the end of the session times it out."""
    if gate.expires_at is None or at < gate.expires_at:
        return GateOutcome.SESSION_ENDED
    return TIMEOUT_OUTCOMES[resolution]


EVOLVE: Evolvers = {GateTimedOut: on_timed_out}
