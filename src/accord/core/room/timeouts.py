"""Timeouts: what silence at a gate means."""

from collections.abc import Iterator

from accord.core.kernel import ballot as ballots
from accord.core.kernel.authority import May, Role
from accord.core.kernel.ballot import OfRole
from accord.core.kernel.log import Ask, Body, Event, Evolvers, Fact, Record
from accord.core.room import gates, votes, waiting
from accord.core.room.fields import Id, Number
from accord.core.room.state import Gate, Resolution, Room

TOO_LATE = "Nobody approved it in time"
ENDED = "The session ended first"


class GateTimeout(Body, frozen=True, omit_defaults=True, gc=False):
    """The server's word that a gate was not passed in time."""

    type = "gate.timeout"
    needs = May.SERVE

    gate: Id
    approvals_received: Number
    approvals_required: Number
    resolution: Resolution


class GateTimedOut(Event, frozen=True, kw_only=True, gc=False):
    """Time was up."""

    name = "gate.timed_out"

    said: GateTimeout


def overdue(room: Room, ask: Ask, *, slept: bool = False) -> Iterator[Fact]:
    """Gates whose time is up; a paused room has stopped their clocks.

    Silence that fell while the server `slept` rejects, whatever policy says (OPEN-31).
    """
    if room.paused_at is not None:
        return
    for gate in room.gates.values():
        if gate.expires_at is not None and gate.expires_at <= ask.at:
            resolution = Resolution.REJECTED if slept else resolution_of(room, gate)
            yield from time_out(room, ask, gate, resolution)


def resolution_of(room: Room, gate: Gate) -> Resolution:
    """As policy says; where nobody could have answered yes, silence rejects (OPEN-15)."""
    vacant = ballots.vacant(gate.ballot, room.voters(gate.fork))
    tool = room.tools.get(gate.action)
    held = tool is not None and waiting.hindrance(room, tool) is not None
    stopped = vacant or held or gate.initiator in room.halted
    return Resolution.REJECTED if stopped else gate.on_timeout


def time_out(
    room: Room, ask: Ask, gate: Gate, resolution: Resolution, reason: str = TOO_LATE
) -> Iterator[Fact]:
    """End a gate that nobody passed; `reason` is what its initiator is told."""
    voters = room.voters(gate.fork)
    tally = ballots.tally(gate.ballot, voters, skip_absent=room.skips_absent)
    said = GateTimeout(gate.id, tally.received, tally.required, resolution)
    yield GateTimedOut(said=said, ref=gate.id, fork=gate.fork)
    match resolution:
        case Resolution.REJECTED:
            yield votes.failed(room, gate, reason)
        case Resolution.AUTO_APPROVED:
            yield from votes.passed(room, ask, gate, tally)
        case Resolution.ESCALATED:  # pragma: no branch - the list is closed
            yield escalated(room, ask, gate)


def escalated(room: Room, ask: Ask, gate: Gate) -> gates.GateOpened:
    """One last gate, for an admin; its own timeout rejects."""
    tool = room.tools.get(gate.action)
    said = gates.GateRequest(
        action_type=gate.action_type,  # type: ignore[arg-type]  # as it was requested
        action_ref=gate.action,
        quorum=OfRole(Role.ADMIN, 1),
        timeout_seconds=gate.timeout_seconds,
        message=f"Escalated: {gate.message}"[: gates.LONGEST_MESSAGE],
        decision=waiting.stands(room, tool) if tool else None,
    )
    return gates.opened(room, ask, said, gate.initiator, Resolution.REJECTED, gate.fork)


def on_timed_out(room: Room, event: GateTimedOut, record: Record) -> Room:
    """Dead, unless policy said otherwise."""
    gate = room.gates.get(event.said.gate)
    if gate is None:
        return room
    kills = event.said.resolution is Resolution.REJECTED
    return gates.shut(room, gate, f"timed out, {event.said.resolution}", kills=kills)


EVOLVE: Evolvers = {GateTimedOut: on_timed_out}
