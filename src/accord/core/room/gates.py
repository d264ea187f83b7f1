"""Gates: ballots with deadlines. Nothing passes without a fresh act of the humans it asks."""

from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel import ballot as ballots
from accord.core.kernel.authority import Kind, May, Role
from accord.core.kernel.ballot import Ballot, Named, OfRole, Quorum, Tally, leaves
from accord.core.kernel.limits import reached
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
from accord.core.room import grants, waiting
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
    check_place,
    open_for,
    outcome,
    past_key,
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
BallotChange = Callable[[Gate], Ballot]
LONGEST_MESSAGE = 4096
NOBODY = " (nobody here can approve this yet)"
TOO_LATE = "Nobody approved it in time"
ENDED = "The session ended first"


class GateRequest(Body, frozen=True, omit_defaults=True, gc=False):
    """Ask for approval of an action."""

    type = "gate.request"
    needs = May.TAKE_PART
    scoped = True
    names_others = True

    action_type: ActionType
    action_ref: Id
    quorum: Quorum
    timeout_seconds: Annotated[int, Meta(ge=0, le=31_536_000)]
    message: Short
    decision: waiting.Standing | None = None

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
    room: Room,
    ask: Ask,
    said: GateRequest,
    initiator: str,
    on_timeout: Resolution,
    fork: str | None = None,
) -> GateOpened:
    """The gate as it stands from now on; in a fork its members are asked."""
    voters = room.voters(fork)
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
        fork=fork,
    )


def for_tool(room: Room, ask: Ask, tool: Tool, called: frozenset[Category]) -> GateOpened:
    """The automatic gate of a proposal: the room's quorum, the house's patience.

    `called` are the categories it may belong to; the strictest of them counts. What the rules say
    of it has a field of its own, so that no name or description can look like it.
    """
    never = tool.risk in ALWAYS_GATED or bool(called & NEVER_AUTO)
    said = GateRequest(
        action_type="deploy" if Category.DEPLOY in called else "tool",
        action_ref=tool.id,
        quorum=room.rules.default_gate_quorum,
        timeout_seconds=ask.house.gate_seconds,
        message=f"{tool.agent} wants to run {tool.name}: {tool.description}"[:LONGEST_MESSAGE],
        decision=waiting.stands(room, tool),
    )
    resolution = timeout_of(ask, never_auto=never)
    return opened(room, ask, said, tool.agent, resolution, tool.fork)


def timeout_of(ask: Ask, *, never_auto: bool) -> Resolution:
    """What the house does at a timeout; silence approves only what may be approved so."""
    resolution: Resolution = ask.house.on_gate_timeout
    forbidden = never_auto and resolution is Resolution.AUTO_APPROVED
    return Resolution.REJECTED if forbidden else resolution


def request(room: Room, ask: Ask, body: GateRequest) -> Iterator[Event]:
    """A member's own gate, on something it has said itself and that is still open."""
    seat, action = ask.actor.seat, ask.known[body.action_ref]
    if body.decision is not None:
        raise Refused(Why.MALFORMED, "What a decision says of it is the server's to add")
    if action.sender != seat:
        raise Refused(Why.FORBIDDEN, "A gate can be requested only for an action of one's own")
    if action.fork is not None:
        open_for(room, ask, action.fork)
    check_place(ask, action.id, action.fork)
    if on_action(room, body.action_ref):
        raise Refused(Why.WRONG_STATE, f"{body.action_ref} has an open gate already")
    if outcome(room, body.action_ref, seat) or body.action_ref in room.tools:
        raise Refused(Why.WRONG_STATE, f"{body.action_ref} is not pending any more")
    if len(room.gates) >= (most := ask.house.limits.gates):
        raise reached("gates", most, f"{most} gates are open; close one first")
    check_quorum(room, body.quorum)
    never = body.action_type in NEVER_AUTO_TYPES
    resolution = timeout_of(ask, never_auto=never)
    yield opened(room, ask, body, seat, resolution, action.fork)


# Voting


def find(room: Room, ask: Ask, name: str) -> Gate:
    """The open gate of that id, or the one on that action (OPEN-19); `ref` may name it, too.

    What is asked inside a fork does not exist for those outside.
    """
    seat = ask.actor.seat
    for each in filter(None, (name, ask.message.ref)):
        gate = room.gates.get(each) or on_action(room, each)
        if gate is not None and seat in room.seats(gate.fork):
            check_place(ask, each, gate.fork)
            return gate
        if ended := outcome(room, each, seat):
            raise Refused(Why.WRONG_STATE, f"{each} is closed already: {ended}")
        tool = room.tools.get(each)
        if gate is None and tool is not None and seat in room.seats(tool.fork):
            hold = None if tool.grant else waiting.hold(room, tool)
            says = hold.sentence if hold else "waits for nobody's approval"
            raise Refused(Why.WRONG_STATE, f"{each} {says}")
    raise Refused(Why.UNKNOWN, f"There is no open gate {name}")


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


def vote_no(room: Room, ask: Ask, body: Body, gate: Gate) -> Iterator[Fact]:
    """A veto by whoever may approve, or the initiator's withdrawal (OPEN-13)."""
    seat = ask.actor.seat
    withdraws = seat == gate.initiator
    if not withdraws and May.APPROVE not in room.members[seat].may:
        raise Refused(Why.FORBIDDEN, f"{seat} may not reject; an interrupt is open to you")
    yield Rejected(said=body, gate=gate.id, seat=seat, ref=ref_of(ask, gate), fork=gate.fork)
    yield failed(room, gate, f"Rejected by {seat}")


def failed(room: Room, gate: Gate, detail: str) -> Say:
    """The news for the room, or the fork, that an action is dead (OPEN-25)."""
    to = None if gate.fork is None else room.seats(gate.fork)
    return Say(Failure(Why.GATE_FAILED, detail, gate.action), to)


def approve(room: Room, ask: Ask, body: GateApprove) -> Iterator[Fact]:
    """A vote by the gate's id."""
    return vote_yes(room, ask, body, find(room, ask, body.gate))


def reject(room: Room, ask: Ask, body: GateReject) -> Iterator[Fact]:
    """A veto by the gate's id."""
    return vote_no(room, ask, body, find(room, ask, body.gate))


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
            yield failed(room, gate, reason)
        case Resolution.AUTO_APPROVED:
            yield from passed(room, ask, gate, tally)
        case Resolution.ESCALATED:  # pragma: no branch - the list is closed
            yield escalated(room, ask, gate)


def escalated(room: Room, ask: Ask, gate: Gate) -> GateOpened:
    """One last gate, for an admin; its own timeout rejects."""
    tool = room.tools.get(gate.action)
    said = GateRequest(
        action_type=gate.action_type,  # type: ignore[arg-type]
        action_ref=gate.action,
        quorum=OfRole(Role.ADMIN, 1),
        timeout_seconds=gate.timeout_seconds,
        message=f"Escalated: {gate.message}"[:LONGEST_MESSAGE],
        decision=waiting.stands(room, tool) if tool else None,
    )
    return opened(room, ask, said, gate.initiator, Resolution.REJECTED, gate.fork)


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
        fork=record.fork,
    )
    return replace(room, gates={**room.gates, gate.id: gate})


def on_approved(room: Room, event: Approved, record: Record) -> Room:
    """One more yes."""
    if not (gate := room.gates.get(event.gate)):
        return room
    gate = replace(gate, ballot=with_yes(gate, event.seat))
    return replace(room, gates={**room.gates, gate.id: gate})


def shut(room: Room, gate: Gate, ended: str, *, kills: bool) -> Room:
    """The gate is history; with `kills`, so is its action."""
    ids = (gate.id, gate.action) if kills else (gate.id,)
    dead = {past_key(gate.fork, id): ended for id in ids}
    room = replace(room, gates=without(room.gates, gate.id), past=remember(room.past, dead))
    if not kills:
        return room
    tools, merges = without(room.tools, gate.action), without(room.merges, gate.action)
    return replace(room, tools=tools, merges=merges)


def on_rejected(room: Room, event: Rejected, record: Record) -> Room:
    """The action is dead."""
    gate = room.gates.get(event.gate)
    return shut(room, gate, "rejected", kills=True) if gate else room


def on_passed(room: Room, event: GatePassed, record: Record) -> Room:
    """The action may go on."""
    gate = room.gates.get(event.gate)
    if gate is None:
        return room
    if merge := room.merges.get(gate.action):
        room = replace(room, merges={**room.merges, merge.id: replace(merge, gated=False)})
    return shut(room, gate, "passed", kills=False)


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
    gates = {g.id: replace(g, ballot=change(g)) for g in room.gates.values()}
    return replace(room, gates=gates)


def enrolled(room: Room) -> Room:
    """OPEN-17: the first who could answer a gate that nobody could is asked."""
    return each_ballot(room, lambda g: ballots.enrol(g.ballot, room.voters(g.fork)))


def member_left(room: Room, member: Member) -> Room:
    """OPEN-17: who had approved stays counted, who had not drops off the roll."""

    def change(gate: Gate) -> Ballot:
        ballot = gate.ballot
        if member.id in ballot.yes:
            return replace(ballot, gone={**ballot.gone, member.id: member.voter})
        return replace(ballot, roll=ballot.roll - {member.id})

    return each_ballot(room, change)


def member_changed(room: Room, before: Member | None, now: Member) -> Room:
    """OPEN-17: who lost the right, or what the quorum asks for, loses the vote and the place."""

    def change(gate: Gate) -> Ballot:
        ballot = replace(gate.ballot, gone=without(gate.ballot.gone, now.id))
        if not now.votes:
            ballot = replace(ballot, yes=ballot.yes - {now.id}, roll=ballot.roll - {now.id})
        elif before and ballots.fails_now(ballot, before.voter, now.voter):
            ballot = replace(ballot, yes=ballot.yes - {now.id})
        return ballots.enrol(ballot, room.voters(gate.fork))

    return each_ballot(room, change)


DECIDE: Deciders = {GateRequest: request, GateApprove: approve, GateReject: reject}
EVOLVE: Evolvers = {
    GateOpened: on_opened,
    Approved: on_approved,
    Rejected: on_rejected,
    GatePassed: on_passed,
    GateTimedOut: on_timed_out,
}
