"""Given, when, then for rooms: a script of messages, decided and folded as the engine does it.

    room = given(opened(by=ALICE), joined(CLAUDE, Role.DRIVER))
    facts = when(room, CLAUDE, proposes(), id="p")
    assert [ToolProposed, GateOpened] == kinds(facts)
    room = after(room, facts)

`after` also sends each record through its stored bytes and back, so whatever a test folds is
known to survive a restart.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import msgspec
import pytest

from accord.core.dialects.canonical import seal, unseal
from accord.core.kernel.actor import PRESENCE, TIMER, Actor, Grant
from accord.core.kernel.authority import Capability, Kind, Role
from accord.core.kernel.ballot import AnyOf, Quorum
from accord.core.kernel.ids import SYSTEM, derived
from accord.core.kernel.log import Ask, Body, Effect, Event, Fact, Message, Record, Say, fold
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import SECOND, iso
from accord.core.room import CONTEXT, Tick
from accord.core.room.gates import ActionType, GateRequest
from accord.core.room.grants import ToolExecute
from accord.core.room.lifecycle import SessionConfigUpdate, SessionCreate, SessionEnd
from accord.core.room.members import SessionJoin, SessionLeave
from accord.core.room.participants import ParticipantAnnounce, word
from accord.core.room.presence import PresenceUpdate
from accord.core.room.prompts import PromptConfig, PromptSubmit
from accord.core.room.roles import ParticipantRoleChange
from accord.core.room.state import (
    Category,
    Gate,
    House,
    OnTimeout,
    Presence,
    Risk,
    Room,
    SessionConfig,
)
from accord.core.room.state import Grant as ToolGrant
from accord.core.room.tools import ToolApprove, ToolOutput, ToolPropose, ToolResult
from accord.core.room.votes import GateApprove, GateReject
from accord.core.room.waiting import ToolReject
from accord.engine.stamp import own_voice

ROOM = "r"
STREAM = f"room/{ROOM}"
T0 = 1_769_803_200_000  # 2026-01-30T20:00:00Z
HOUSE = House()

ALICE = Actor(seat="alice", kind=Kind.HUMAN)
BOB = Actor(seat="bob", kind=Kind.HUMAN)
CAROL = Actor(seat="carol", kind=Kind.HUMAN)
DAVE = Actor(seat="dave", kind=Kind.HUMAN)
CLAUDE = Actor(seat="claude", kind=Kind.AGENT)
CODEX = Actor(seat="codex", kind=Kind.AGENT)

CONFIG = SessionConfig(
    require_approval_for=tuple(c for c in Category if c not in {Category.FILE_READ, Category.ALL}),
    default_gate_quorum=AnyOf(1),
    allow_forks=True,
    max_participants=10,
    ordering_mode="total",
    on_participant_timeout=OnTimeout.WAIT,
    heartbeat_interval_seconds=30,
    idle_timeout_seconds=120,
    away_timeout_seconds=300,
)

_numbers = count(1)
_versions = count(1)


# The script


class Step(NamedTuple):
    """Somebody says something at some instant."""

    actor: Actor
    body: Body
    id: str | None = None
    ref: str | None = None
    at: int = T0
    fork: str | None = None


class Facts(list[Fact]):
    """What was decided, and the records that the engine would make of it."""

    records: tuple[Record, ...] = ()


def given(*script: Step, house: House = HOUSE, room: Room | None = None) -> Room:
    """The room after a script, each message admitted, decided and folded in turn."""
    room = CONTEXT.start(STREAM) if room is None else room
    known: dict[str, Record] = {}
    for actor, body, id, ref, at, fork in script:
        facts = when(
            room,
            actor,
            body,
            id=id,
            ref=ref,
            fork=fork,
            at=at,
            known=known.values(),
            house=house,
        )
        known.update({record.id: record for record in facts.records})
        room = after(room, facts)
    return room


def when(
    room: Room,
    actor: Actor,
    body: Body,
    *,
    id: str | None = None,
    ref: str | None = None,
    fork: str | None = None,
    at: int = T0,
    known: Iterable[Record] = (),
    house: House = HOUSE,
) -> Facts:
    """What a message leads to; raises Refused as the engine would."""
    ask = asked(actor, body, id=id, ref=ref, fork=fork, at=at, house=house)
    CONTEXT.admit(room, ask)
    ask = Ask(ask.message, actor, at, _resolved(room, ask.message, known), house)
    facts = Facts(CONTEXT.decide[type(body)](room, ask, body))
    facts.records = _stamped(ask, [fact for fact in facts if isinstance(fact, Event)])
    return facts


def asked(
    actor: Actor,
    body: Body,
    *,
    id: str | None = None,
    ref: str | None = None,
    fork: str | None = None,
    at: int = T0,
    house: House = HOUSE,
) -> Ask:
    """A message as the engine puts it to a room, before it looks up what is cited."""
    sender = SYSTEM if actor.kind is Kind.SYSTEM else actor.seat
    message = Message(id or f"m{next(_numbers)}", iso(at), ROOM, sender, body, ref, fork=fork)
    return Ask(message, actor, at, {}, house)


def after(room: Room, facts: Facts) -> Room:
    """The room once these facts are on the log; the stored bytes must say the same."""
    kept = [seal(record).body for record in facts.records]
    read = [
        unseal(STREAM, record.version, body).record
        for record, body in zip(facts.records, kept, strict=True)
    ]
    now = fold(CONTEXT, room, facts.records)
    assert fold(CONTEXT, room, read) == now
    return now


def _resolved(room: Room, message: Message, known: Iterable[Record]) -> Mapping[str, Record]:
    """The records a message cites, each of which must be there (OPEN-35)."""
    at_hand = {record.id: record for record in known if record.said is not None}
    ref, seat = message.ref, message.sender
    named = {ref} if ref and not CONTEXT.knows(room, ref, seat) else set()
    cited = named.union(message.body.cites() if message.body.names_others else ())
    if missing := sorted(cited - at_hand.keys()):
        raise Refused(Why.MALFORMED, f"No such message here: {', '.join(missing)}")
    return {name: at_hand[name] for name in cited}


def _stamped(ask: Ask, events: list[Event]) -> tuple[Record, ...]:
    """Events as the engine records them: one is the sender's own, the others the server's."""
    spoken = 0 if len(events) == 1 else own_voice(ask.message, events)
    return tuple(
        _record(ask, event, place, own=place == spoken) for place, event in enumerate(events)
    )


def _record(ask: Ask, event: Event, place: int, *, own: bool) -> Record:
    message, at = ask.message, ask.at
    said: Body | None = getattr(event, "said", None)
    version = next(_versions)
    return Record(
        stream=STREAM,
        version=version,
        seq=0 if said is None else version,
        id=message.id if own else derived(at, STREAM, message.id, str(place)),
        at=at,
        actor=ask.actor.seat,
        cause=message.id,
        ts=message.ts if own else iso(at),
        sender=message.sender if own else SYSTEM,
        event=event,
        said=said,
        ref=event.ref or (message.ref if own else None),
        fork=event.fork or (message.fork if message.body.scoped else None),
        to=event.to,
    )


# Then


def kinds(facts: Iterable[Fact]) -> list[type[Fact]]:
    """The classes of what was decided, in order."""
    return [type(fact) for fact in facts]


def events(facts: Iterable[Fact]) -> list[Event]:
    """What goes on the log."""
    return [fact for fact in facts if isinstance(fact, Event)]


def says(facts: Iterable[Fact]) -> list[Say]:
    """What is told and forgotten."""
    return [fact for fact in facts if isinstance(fact, Say)]


def effects(facts: Iterable[Fact]) -> list[Effect]:
    """What is done after the commit, whatever it is."""
    return [fact for fact in facts if isinstance(fact, Effect)]


@contextmanager
def refused(why: Why, match: str | None = None) -> Iterator[None]:
    """Inside, something is refused for this reason."""
    with pytest.raises(Refused, match=match) as no:
        yield
    assert no.value.why is why, f"{no.value.why}: {no.value.detail}"


def gate_on(room: Room, action: str) -> Gate:
    """The one open gate on an action."""
    (gate,) = (gate for gate in room.gates.values() if gate.action == action)
    return gate


def waits(room: Room, action: str) -> bool:
    """Whether an action has an open gate."""
    return any(gate.action == action for gate in room.gates.values())


def may_run(room: Room, proposal: str) -> bool:
    """Whether a proposal has its grant."""
    return proposal in room.tools and room.tools[proposal].grant is not None


def grant_of(room: Room, proposal: str) -> ToolGrant:
    """The grant of a proposal that may run."""
    grant = room.tools[proposal].grant
    assert grant is not None
    return grant


# Who and when


def holding(
    actor: Actor,
    *roles: Role,
    capabilities: Iterable[Capability] = (),
    labels: Iterable[str] = (),
) -> Actor:
    """The actor with a credential for exactly this."""
    grant = Grant(frozenset(roles), frozenset(capabilities), frozenset(labels))
    return msgspec.structs.replace(actor, grant=grant)


def step(
    actor: Actor,
    body: Body,
    *,
    id: str | None = None,
    ref: str | None = None,
    at: int = T0,
    fork: str | None = None,
) -> Step:
    """Somebody says something, as a step of a script."""
    return Step(actor, body, id, ref, at, fork)


def opened(by: Actor = ALICE, *, at: int = T0, **config: Any) -> Step:
    """A session, whose creator is its admin."""
    return Step(by, creates(**config), at=at)


def joined(
    who: Actor,
    *roles: Role,
    capabilities: tuple[Capability, ...] = (),
    labels: tuple[str, ...] = (),
    at: int = T0,
) -> Step:
    """Somebody comes in with these roles; a credential vouches unless the actor brings one."""
    vouched = holding(who, *roles, capabilities=capabilities, labels=labels)
    return Step(vouched if who.grant is None else who, joins(who, *roles, caps=capabilities), at=at)


def left(who: Actor, *, at: int = T0) -> Step:
    """Somebody goes."""
    return Step(who, SessionLeave(), at=at)


def now(who: Actor, status: Presence, *, at: int = T0) -> Step:
    """The server has seen that somebody is there, or is not."""
    return Step(PRESENCE, PresenceUpdate(who.seat, status, iso(at)), at=at)


def time_is(at: int) -> Step:
    """Time has passed."""
    return Step(TIMER, Tick(), at=at)


def after_seconds(number: int) -> int:
    """The instant so many seconds after T0."""
    return T0 + number * SECOND


def ticks(room: Room, at: int, *, house: House = HOUSE) -> Facts:
    """What is due by then."""
    return when(room, TIMER, Tick(), at=at, house=house)


# What they say


def config(**changes: Any) -> SessionConfig:
    """The usual rules of a session, but for these."""
    return msgspec.structs.replace(CONFIG, **changes)


def creates(name: str | None = None, **changes: Any) -> SessionCreate:
    return SessionCreate(config=config(**changes), name=name)


def joins(who: Actor, *roles: Role, caps: tuple[Capability, ...] = ()) -> SessionJoin:
    return SessionJoin(participant=announces(who, *roles, caps=caps), supported_versions=(1,))


def announces(
    who: Actor, *roles: Role, name: str | None = None, caps: tuple[Capability, ...] = ()
) -> ParticipantAnnounce:
    return ParticipantAnnounce(
        id=who.seat,
        name=name or who.seat.title(),
        kind=word(who.kind),
        roles=roles,
        transport="websocket",
        capabilities=caps or None,
    )


def configures(**changes: Any) -> SessionConfigUpdate:
    as_sent = msgspec.json.decode(msgspec.json.encode(changes))
    return SessionConfigUpdate(changes=as_sent, reason="Because")


def ends() -> SessionEnd:
    return SessionEnd(reason="Done", final_state="completed")


def changes_roles(
    by: Actor, who: Actor, old: Iterable[Role], new: Iterable[Role]
) -> ParticipantRoleChange:
    return ParticipantRoleChange(who.seat, tuple(old), tuple(new), by.seat)


def prompts(
    agent: Actor = CLAUDE, content: str = "Please", *, tools: tuple[str, ...] | None = None
) -> PromptSubmit:
    return PromptSubmit(
        content=content,
        target_agent=agent.seat,
        contributors=(),
        context_keys=(),
        config=PromptConfig(tools_allowed=tools) if tools is not None else None,
    )


def proposes(
    agent: Actor = CLAUDE,
    *,
    tool_name: str = "run_tests",
    arguments: dict[str, Any] | None = None,
    category: Category = Category.SHELL_EXECUTE,
    risk: Risk = Risk.LOW,
    requires_approval: bool = False,
    suggested: tuple[str, ...] | None = None,
) -> ToolPropose:
    return ToolPropose(
        tool_name=tool_name,
        arguments={"argv": ["make", "test"]} if arguments is None else arguments,
        agent=agent.seat,
        risk_level=risk,
        description="to see whether it works",
        requires_approval=requires_approval,
        category=category,
        suggested_approvers=suggested,
    )


def requests(
    action: str,
    *,
    quorum: Quorum | None = None,
    action_type: ActionType = "prompt",
    timeout: int = 60,
    message: str = "May I?",
) -> GateRequest:
    return GateRequest(action_type, action, quorum or AnyOf(1), timeout, message)


def approves(who: Actor, gate: str, comment: str | None = None) -> GateApprove:
    return GateApprove(gate=gate, approver=who.seat, comment=comment)


def rejects(who: Actor, gate: str, reason: str = "No") -> GateReject:
    return GateReject(gate=gate, rejector=who.seat, reason=reason)


def approves_tool(who: Actor, proposal: str) -> ToolApprove:
    return ToolApprove(tool_proposal=proposal, approver=who.seat)


def rejects_tool(who: Actor, proposal: str, reason: str = "No") -> ToolReject:
    return ToolReject(tool_proposal=proposal, rejector=who.seat, reason=reason)


def executes(proposal: str, grant: ToolGrant | None = None) -> ToolExecute:
    return ToolExecute(tool_proposal=proposal, approved_by=(), grant=grant)


def prints(proposal: str, text: str = "ok", *, grant: ToolGrant | str | None = None) -> ToolOutput:
    return ToolOutput(
        tool_proposal=proposal, stream="stdout", text=text, complete=False, grant=grant
    )


def finishes(
    proposal: str, *, success: bool = True, grant: ToolGrant | str | None = None
) -> ToolResult:
    return ToolResult(tool_proposal=proposal, success=success, duration_ms=12, grant=grant)
