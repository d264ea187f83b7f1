"""Gates: ballots with deadlines. Nothing passes without a fresh act of the humans it asks."""

from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel import ballot as ballots
from accord.core.kernel.authority import Kind, May, Role
from accord.core.kernel.ballot import Ballot, Named, OfRole, Quorum, Tally, leaves
from accord.core.kernel.log import (
    Ask,
    Body,
    Deciders,
    Event,
    Evolvers,
    Fact,
    Failure,
    Instant,
    Record,
    Say,
    Seats,
)
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import SECOND
from accord.core.room import grants
from accord.core.room.state import (
    Category,
    Gate,
    Id,
    Member,
    Number,
    Resolution,
    Risk,
    Room,
    Short,
    Tool,
    remember,
    without,
)

ActionType = Literal[
    "tool",
    "deploy",
    "prompt",
    "context_change",
    "session_config",
    "participant_add",
    "fork",
    "merge",
]
# OPEN-23: silence never approves these, whatever the operator set.
NEVER_AUTO = frozenset(
    {Category.DEPLOY, Category.DATABASE, Category.SECRET_ACCESS, Category.FILE_DELETE, Category.ALL}
)
NEVER_AUTO_TYPES = frozenset({"deploy", "merge", "session_config"})
ALWAYS_GATED = frozenset({Risk.HIGH, Risk.CRITICAL})
BallotChange = Callable[[Ballot], Ballot]
LONGEST_MESSAGE = 4096
NOBODY = " (nobody here can approve this yet)"
TOO_LATE = "Nobody approved it in time"
ENDED = "The session ended first"


class GateRequest(Body, frozen=True, omit_defaults=True, gc=False):
    """Ask for approval of an action."""

    type = "gate.request"
    needs = May.TAKE_PART
    names_others = True

    action_type: ActionType
    action_ref: Id
    quorum: Quorum
    timeout_seconds: Annotated[int, Meta(ge=0, le=31_536_000)]
    message: Short

    def cites(self) -> Iterator[str]:
        """The action."""
        yield self.action_ref

    def repeats(self, said: Body) -> bool:
        """The server may have added to `message`, so that does not tell two asks apart."""
        return isinstance(said, GateRequest) and (
            said in (self, replace(self, message=unanswerable(self.message)))
        )


class GateApprove(Body, frozen=True, omit_defaults=True, gc=False):
    """Vote yes."""

    type = "gate.approve"
    needs = May.APPROVE
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
    while_paused = True

    gate: Id
    rejector: Id
    reason: Short

    def claims(self) -> Iterator[str]:
        """Everybody votes for themselves."""
        yield self.rejector


class GateTimeout(Body, frozen=True, omit_defaults=True, gc=False):
    """The server's word that a gate was not passed in time."""

    type = "gate.timeout"
    needs = May.SERVE

    gate: Id
    approvals_received: Number
    approvals_required: Number
    resolution: Resolution


class GateOpened(Event, frozen=True, kw_only=True, gc=False):
    """A question was put; whom it counts is settled now (OPEN-26)."""

    name = "gate.opened"

    said: GateRequest
    initiator: str
    barred: Seats
    roll: Seats
    expires_at: Instant | None
    on_timeout: Resolution
    solo: bool = False


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


class GateTimedOut(Event, frozen=True, kw_only=True, gc=False):
    """Time was up."""

    name = "gate.timed_out"

    said: GateTimeout


# Opening


def unanswerable(message: str) -> str:
    """OPEN-15: a gate that nobody can pass says so."""
    return message[: LONGEST_MESSAGE - len(NOBODY)] + NOBODY


def check_quorum(room: Room, quorum: Quorum) -> None:
    """Refuse what could never count: a malformed rule, or an agent by name (OPEN-15)."""
    ballots.check(quorum)
    named = {
        seat for rule in leaves(quorum) if isinstance(rule, Named) for seat in rule.participants
    }
    agents = sorted(s for s in named if s in room.members and room.members[s].kind is Kind.AGENT)
    if agents:
        raise Refused(Why.MALFORMED, f"Agents cannot approve; the quorum names {', '.join(agents)}")


def opened(
    room: Room, ask: Ask, said: GateRequest, initiator: str, on_timeout: Resolution
) -> GateOpened:
    """The gate as it stands from now on."""
    voters = room.voters()
    solo = initiator in voters and len(voters) == 1
    barred = frozenset() if solo else frozenset({initiator})
    ballot = ballots.enrol(Ballot(quorum=said.quorum, barred=barred), voters)
    if ballots.hopeless(ballot, voters):
        said = replace(said, message=unanswerable(said.message))
    expires = ask.at + said.timeout_seconds * SECOND if said.timeout_seconds else None
    return GateOpened(
        said=said,
        ref=said.action_ref,
        initiator=initiator,
        barred=barred,
        roll=ballot.roll,
        expires_at=expires,
        on_timeout=on_timeout,
        solo=solo,
    )


def for_tool(room: Room, ask: Ask, tool: Tool, called: frozenset[Category]) -> GateOpened:
    """The automatic gate of a proposal: the room's quorum, the house's patience.

    `called` are the categories it may belong to; the strictest of them counts.
    """
    never = tool.risk in ALWAYS_GATED or bool(called & NEVER_AUTO)
    said = GateRequest(
        action_type="deploy" if Category.DEPLOY in called else "tool",
        action_ref=tool.id,
        quorum=room.rules.default_gate_quorum,
        timeout_seconds=ask.house.gate_seconds,
        message=f"{tool.agent} wants to run {tool.name}: {tool.description}"[:LONGEST_MESSAGE],
    )
    return opened(room, ask, said, tool.agent, timeout_of(ask, never_auto=never))


def timeout_of(ask: Ask, *, never_auto: bool) -> Resolution:
    """What the house does at a timeout; silence approves only what may be approved so."""
    resolution: Resolution = ask.house.on_gate_timeout
    forbidden = never_auto and resolution is Resolution.AUTO_APPROVED
    return Resolution.REJECTED if forbidden else resolution


def request(room: Room, ask: Ask, body: GateRequest) -> Iterator[Event]:
    """A member's own gate, on something it has said itself and that is still open."""
    seat = ask.actor.seat
    if ask.known[body.action_ref].sender != seat:
        raise Refused(Why.FORBIDDEN, "A gate can be requested only for an action of one's own")
    if on_action(room, body.action_ref):
        raise Refused(Why.WRONG_STATE, f"{body.action_ref} has an open gate already")
    if body.action_ref in room.past or body.action_ref in room.tools:
        raise Refused(Why.WRONG_STATE, f"{body.action_ref} is not pending any more")
    if len(room.gates) >= ask.house.most_open:
        raise Refused(Why.WRONG_STATE, f"{ask.house.most_open} gates are open; close one first")
    check_quorum(room, body.quorum)
    never = body.action_type in NEVER_AUTO_TYPES
    yield opened(room, ask, body, seat, timeout_of(ask, never_auto=never))


# Voting


def find(room: Room, *names: str | None) -> Gate:
    """The open gate of that id, or the one on that action (OPEN-19); the first name known wins."""
    for name in filter(None, names):
        if gate := room.gates.get(name) or on_action(room, name):
            return gate
        if outcome := room.past.get(name):
            raise Refused(Why.WRONG_STATE, f"{name} is closed already: {outcome}")
        if name in room.tools:
            raise Refused(Why.WRONG_STATE, f"{name} waits for nobody's approval")
    raise Refused(Why.UNKNOWN, f"There is no open gate {names[0]}")


def on_action(room: Room, action: str) -> Gate | None:
    """The open gate on an action; there is at most one."""
    return next((gate for gate in room.gates.values() if gate.action == action), None)


def vote_yes(room: Room, ask: Ask, body: Body, gate: Gate) -> Iterator[Fact]:
    """One more approval; the gate passes with it or stays open."""
    seat = ask.actor.seat
    if not room.members[seat].votes:
        raise Refused(Why.FORBIDDEN, "Only people approve; an agent's approval never counts")
    if seat in gate.ballot.barred:
        raise Refused(Why.FORBIDDEN, "Whoever proposes cannot approve")
    own = gate.solo and seat == gate.initiator
    yield Approved(said=body, gate=gate.id, seat=seat, self_approved=own, ref=ref_of(ask, gate))
    tally = ballots.tally(with_yes(gate, seat), room.voters(), skip_absent=room.skips_absent)
    if tally.passed:
        yield from passed(room, ask, gate, tally)


def ref_of(ask: Ask, gate: Gate) -> str:
    """What the vote answers: as its sender said, else the gate."""
    return ask.message.ref or gate.id


def with_yes(gate: Gate, seat: str) -> Ballot:
    """The ballot with one more approval."""
    return replace(gate.ballot, yes=gate.ballot.yes | {seat})


def passed(room: Room, ask: Ask, gate: Gate, tally: Tally) -> Iterator[Fact]:
    """The gate opens; a tool gets its grant, with the names of those whose approval counted."""
    approved_by = tuple(sorted(tally.counted))
    yield GatePassed(gate=gate.id, approved_by=approved_by)
    if tool := room.tools.get(gate.action):
        yield from grants.clear(room, ask, tool, approved_by)


def vote_no(room: Room, ask: Ask, body: Body, gate: Gate) -> Iterator[Fact]:
    """A veto by whoever may approve, or the initiator's withdrawal (OPEN-13)."""
    seat = ask.actor.seat
    withdraws = seat == gate.initiator
    if not withdraws and May.APPROVE not in room.members[seat].may:
        raise Refused(Why.FORBIDDEN, f"{seat} may not reject; an interrupt is open to you")
    yield Rejected(said=body, gate=gate.id, seat=seat, ref=ref_of(ask, gate))
    yield failed(gate, f"Rejected by {seat}")


def failed(gate: Gate, detail: str) -> Say:
    """The news for the room that an action is dead (OPEN-25)."""
    return Say(Failure(Why.GATE_FAILED, detail, gate.action))


def approve(room: Room, ask: Ask, body: GateApprove) -> Iterator[Fact]:
    """A vote by the gate's id."""
    return vote_yes(room, ask, body, find(room, body.gate, ask.message.ref))


def reject(room: Room, ask: Ask, body: GateReject) -> Iterator[Fact]:
    """A veto by the gate's id."""
    return vote_no(room, ask, body, find(room, body.gate, ask.message.ref))


def withdrawn(room: Room, seat: str, reason: str) -> Iterator[Fact]:
    """The gates of somebody who is gone are closed by the server."""
    for gate in room.gates.values():
        if gate.initiator == seat:
            said = GateReject(gate=gate.id, rejector="system", reason=reason)
            yield Rejected(said=said, gate=gate.id, seat="system", ref=gate.id)
            yield failed(gate, reason)


# Time


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
    """As policy says; where nobody could have answered, silence rejects (OPEN-15)."""
    return Resolution.REJECTED if ballots.vacant(gate.ballot, room.voters()) else gate.on_timeout


def time_out(
    room: Room, ask: Ask, gate: Gate, resolution: Resolution, reason: str = TOO_LATE
) -> Iterator[Fact]:
    """End a gate that nobody passed; `reason` is what its initiator is told."""
    tally = ballots.tally(gate.ballot, room.voters(), skip_absent=room.skips_absent)
    said = GateTimeout(gate.id, tally.received, tally.required, resolution)
    yield GateTimedOut(said=said, ref=gate.id)
    match resolution:
        case Resolution.REJECTED:
            yield failed(gate, reason)
        case Resolution.AUTO_APPROVED:
            yield from passed(room, ask, gate, tally)
        case Resolution.ESCALATED:  # pragma: no branch - the list is closed
            yield escalated(room, ask, gate)


def escalated(room: Room, ask: Ask, gate: Gate) -> GateOpened:
    """One last gate, for an admin; its own timeout rejects."""
    said = GateRequest(
        action_type=gate.action_type,  # type: ignore[arg-type]
        action_ref=gate.action,
        quorum=OfRole(Role.ADMIN, 1),
        timeout_seconds=gate.timeout_seconds,
        message=f"Escalated: {gate.message}"[:LONGEST_MESSAGE],
    )
    return opened(room, ask, said, gate.initiator, Resolution.REJECTED)


# Folding


def on_opened(room: Room, event: GateOpened, record: Record) -> Room:
    """One more open gate."""
    said = event.said
    gate = Gate(
        id=record.id,
        action_type=said.action_type,
        action=said.action_ref,
        initiator=event.initiator,
        ballot=Ballot(said.quorum, event.barred, event.roll, enrolled=bool(event.roll)),
        message=said.message,
        timeout_seconds=said.timeout_seconds,
        opened_at=record.at,
        expires_at=event.expires_at,
        on_timeout=event.on_timeout,
        solo=event.solo,
    )
    return replace(room, gates={**room.gates, gate.id: gate})


def on_approved(room: Room, event: Approved, record: Record) -> Room:
    """One more yes."""
    if not (gate := room.gates.get(event.gate)):
        return room
    gate = replace(gate, ballot=with_yes(gate, event.seat))
    return replace(room, gates={**room.gates, gate.id: gate})


def shut(room: Room, gate: Gate, outcome: str, *, kills: bool) -> Room:
    """The gate is history; with `kills`, so is its action."""
    dead = {gate.id: outcome} | ({gate.action: outcome} if kills else {})
    tools = without(room.tools, gate.action) if kills else room.tools
    gates = without(room.gates, gate.id)
    return replace(room, gates=gates, tools=tools, past=remember(room.past, dead))


def on_rejected(room: Room, event: Rejected, record: Record) -> Room:
    """The action is dead."""
    gate = room.gates.get(event.gate)
    return shut(room, gate, "rejected", kills=True) if gate else room


def on_passed(room: Room, event: GatePassed, record: Record) -> Room:
    """The action may go on."""
    gate = room.gates.get(event.gate)
    return shut(room, gate, "passed", kills=False) if gate else room


def on_timed_out(room: Room, event: GateTimedOut, record: Record) -> Room:
    """Dead, unless policy said otherwise."""
    gate = room.gates.get(event.said.gate)
    if gate is None:
        return room
    kills = event.said.resolution is Resolution.REJECTED
    return shut(room, gate, f"timed out, {event.said.resolution}", kills=kills)


def each_ballot(room: Room, change: BallotChange) -> Room:
    """Every open gate with its ballot changed."""
    if not room.gates:
        return room
    gates = {g.id: replace(g, ballot=change(g.ballot)) for g in room.gates.values()}
    return replace(room, gates=gates)


def member_left(room: Room, member: Member) -> Room:
    """OPEN-17: who had approved stays counted, who had not drops off the roll."""

    def change(ballot: Ballot) -> Ballot:
        if member.id in ballot.yes:
            return replace(ballot, gone={**ballot.gone, member.id: member.voter})
        return replace(ballot, roll=ballot.roll - {member.id})

    return each_ballot(room, change)


def member_changed(room: Room, before: Member | None, now: Member) -> Room:
    """OPEN-17: who lost the right, or what the quorum asks for, loses the vote and the place."""
    voters = room.voters() if room.gates else {}

    def change(ballot: Ballot) -> Ballot:
        ballot = replace(ballot, gone=without(ballot.gone, now.id))
        if not now.votes:
            ballot = replace(ballot, yes=ballot.yes - {now.id}, roll=ballot.roll - {now.id})
        elif before and ballots.fails_now(ballot, before.voter, now.voter):
            ballot = replace(ballot, yes=ballot.yes - {now.id})
        return ballots.enrol(ballot, voters)

    return each_ballot(room, change)


DECIDE: Deciders = {GateRequest: request, GateApprove: approve, GateReject: reject}
EVOLVE: Evolvers = {
    GateOpened: on_opened,
    Approved: on_approved,
    Rejected: on_rejected,
    GatePassed: on_passed,
    GateTimedOut: on_timed_out,
}
