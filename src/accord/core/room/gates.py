"""Gates: ballots with deadlines. Nothing passes without a fresh act of the humans it asks."""

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel import ballot as ballots
from accord.core.kernel.authority import Kind, May
from accord.core.kernel.ballot import Ballot, Named, Quorum, leaves
from accord.core.kernel.limits import reached
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Instant, Record, Seats
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import SECOND
from accord.core.room import waiting
from accord.core.room.fields import Id, Short
from accord.core.room.past import outcome, past_key, remember
from accord.core.room.places import check_place, open_for
from accord.core.room.state import Category, Gate, Resolution, Risk, Room, Tool, without

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
LONGEST_MESSAGE = 4096
NOBODY = " (nobody here can approve this yet)"


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


# Finding


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


def shut(room: Room, gate: Gate, ended: str, *, kills: bool) -> Room:
    """The gate is history; with `kills`, so is its action."""
    ids = (gate.id, gate.action) if kills else (gate.id,)
    dead = {past_key(gate.fork, id): ended for id in ids}
    room = replace(room, gates=without(room.gates, gate.id), past=remember(room.past, dead))
    if not kills:
        return room
    tools, merges = without(room.tools, gate.action), without(room.merges, gate.action)
    return replace(room, tools=tools, merges=merges)


DECIDE: Deciders = {GateRequest: request}
EVOLVE: Evolvers = {GateOpened: on_opened}
