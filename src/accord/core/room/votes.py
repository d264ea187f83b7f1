"""Votes: who says yes or no at a gate, and what comes of it."""

from collections.abc import Iterator

from msgspec.structs import replace

from accord.core.kernel import ballot as ballots
from accord.core.kernel.authority import May
from accord.core.kernel.ballot import Ballot, Tally
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Fact, Failure, Record, Say
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import gates, grants, waiting
from accord.core.room.fields import Id, Short
from accord.core.room.state import Gate, Room


class GateApprove(Body, frozen=True, omit_defaults=True, gc=False):
    """Vote yes."""

    type = "gate.approve"
    needs = May.APPROVE
    scoped = True
    while_paused = True

    gate: Id
    approver: Id
    comment: Short | None = None

    def claims(self) -> Iterator[str]:
        """Everybody votes for themselves."""
        yield self.approver


class GateReject(Body, frozen=True, omit_defaults=True, gc=False):
    """Vote no, or withdraw one's own action."""

    type = "gate.reject"
    needs = May.TAKE_PART
    scoped = True
    while_paused = True

    gate: Id
    rejector: Id
    reason: Short

    def claims(self) -> Iterator[str]:
        """Everybody votes for themselves."""
        yield self.rejector


class Approved(Event, frozen=True, kw_only=True, gc=False):
    """Somebody said yes; `self_approved` where it was their own action (OPEN-14)."""

    name = "gate.approved"

    said: Body
    gate: str
    seat: str
    self_approved: bool = False


class Rejected(Event, frozen=True, kw_only=True, gc=False):
    """Somebody said no, and that is final."""

    name = "gate.rejected"

    said: Body
    gate: str
    seat: str


class GatePassed(Event, frozen=True, kw_only=True, gc=False):
    """The quorum is met."""

    name = "gate.passed"

    gate: str
    approved_by: tuple[str, ...]


# Voting


def approve(room: Room, ask: Ask, body: GateApprove) -> Iterator[Fact]:
    """A vote by the gate's id."""
    return vote_yes(room, ask, body, gates.find(room, ask, body.gate))


def reject(room: Room, ask: Ask, body: GateReject) -> Iterator[Fact]:
    """A veto by the gate's id."""
    return vote_no(room, ask, body, gates.find(room, ask, body.gate))


def vote_yes(room: Room, ask: Ask, body: Body, gate: Gate) -> Iterator[Fact]:
    """One more approval; the gate passes with it or stays open."""
    seat = ask.actor.seat
    if not room.members[seat].votes:
        raise Refused(Why.FORBIDDEN, "Only people approve; an agent's approval never counts")
    if seat in gate.ballot.barred:
        raise Refused(Why.FORBIDDEN, "Whoever proposes cannot approve")
    if gate.initiator in room.halted:
        raise Refused(Why.WRONG_STATE, f"{gate.initiator} is stopped; prompt it again first")
    tool = room.tools.get(gate.action)
    if tool is not None and (why := waiting.hindrance(room, tool)) is not None:
        raise Refused(Why.WRONG_STATE, f"The decision it is bound to holds it: {why}")
    yield Approved(
        said=body,
        gate=gate.id,
        seat=seat,
        self_approved=gate.solo and seat == gate.initiator,
        ref=ref_of(ask, gate),
        fork=gate.fork,
    )
    voters = room.voters(gate.fork)
    tally = ballots.tally(with_yes(gate, seat), voters, skip_absent=room.skips_absent)
    if tally.passed:
        yield from passed(room, ask, gate, tally)


def vote_no(room: Room, ask: Ask, body: Body, gate: Gate) -> Iterator[Fact]:
    """A veto by whoever may approve, or the initiator's withdrawal (OPEN-13)."""
    seat = ask.actor.seat
    withdraws = seat == gate.initiator
    if not withdraws and May.APPROVE not in room.members[seat].may:
        raise Refused(Why.FORBIDDEN, f"{seat} may not reject; an interrupt is open to you")
    yield Rejected(said=body, gate=gate.id, seat=seat, ref=ref_of(ask, gate), fork=gate.fork)
    yield failed(room, gate, f"Rejected by {seat}")


def ref_of(ask: Ask, gate: Gate) -> str:
    """What the vote answers: as its sender said, else the gate."""
    return ask.message.ref or gate.id


def with_yes(gate: Gate, seat: str) -> Ballot:
    """The ballot with one more approval."""
    return replace(gate.ballot, yes=gate.ballot.yes | {seat})


def passed(room: Room, ask: Ask, gate: Gate, tally: Tally) -> Iterator[Fact]:
    """The gate opens; a tool gets its grant, with the names of those whose approval counted."""
    approved_by = tuple(sorted(tally.counted))
    yield GatePassed(gate=gate.id, approved_by=approved_by, fork=gate.fork)
    if tool := room.tools.get(gate.action):
        yield from grants.clear(room, ask, tool, approved_by)


def failed(room: Room, gate: Gate, detail: str) -> Say:
    """The news for the room, or the fork, that an action is dead (OPEN-25)."""
    to = None if gate.fork is None else room.seats(gate.fork)
    return Say(Failure(Why.GATE_FAILED, detail, gate.action), to)


# The server's no


def withdrawn(room: Room, seat: str, reason: str) -> Iterator[Fact]:
    """The gates of somebody who is gone are closed by the server."""
    for gate in room.gates.values():
        if gate.initiator == seat:
            yield from ended_by_server(room, gate, reason)
    yield from waiting.withdrawn(room, seat, reason)


def ended_by_server(room: Room, gate: Gate, reason: str) -> Iterator[Fact]:
    """The server says no: there is nobody left, or no place, to say yes."""
    said = GateReject(gate=gate.id, rejector="system", reason=reason)
    yield Rejected(said=said, gate=gate.id, seat="system", ref=gate.id, fork=gate.fork)
    yield failed(room, gate, reason)


# Folding


def on_approved(room: Room, event: Approved, record: Record) -> Room:
    """One more yes."""
    if not (gate := room.gates.get(event.gate)):
        return room
    gate = replace(gate, ballot=with_yes(gate, event.seat))
    return replace(room, gates={**room.gates, gate.id: gate})


def on_rejected(room: Room, event: Rejected, record: Record) -> Room:
    """The action is dead."""
    gate = room.gates.get(event.gate)
    return gates.shut(room, gate, "rejected", kills=True) if gate else room


def on_passed(room: Room, event: GatePassed, record: Record) -> Room:
    """The action may go on."""
    gate = room.gates.get(event.gate)
    if gate is None:
        return room
    if merge := room.merges.get(gate.action):
        room = replace(room, merges={**room.merges, merge.id: replace(merge, gated=False)})
    return gates.shut(room, gate, "passed", kills=False)


DECIDE: Deciders = {GateApprove: approve, GateReject: reject}
EVOLVE: Evolvers = {Approved: on_approved, Rejected: on_rejected, GatePassed: on_passed}
