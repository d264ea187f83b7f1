"""Given, when, then for rooms: messages are decided and folded as the engine does it.

    room = given(create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER))
    facts = when(room, CLAUDE, tool_propose(), id="p")
    assert types_of(facts) == [ToolProposed, GateOpened]
    room = after(room, facts)

`after` also encodes and decodes each record, so whatever a test folds survives a restart.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import msgspec
import pytest

from accord.core.dialects.stored_records import decode_record, encode_record
from accord.core.kernel.actor import PRESENCE_ACTOR, TIMER_ACTOR, Actor, CredentialRights
from accord.core.kernel.ballot import AnyOf, Quorum
from accord.core.kernel.context import Command, EventOrEffect, fold
from accord.core.kernel.effects import Effect, Relay
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capability, Kind, Role
from accord.core.kernel.timestamps import MS_PER_SECOND, to_iso
from accord.core.kernel.ulid import derive_ulid
from accord.core.room import CONTEXT
from accord.core.room.approval.gates import ActionType, GateRequest
from accord.core.room.approval.grants import ToolExecute, ToolReject
from accord.core.room.approval.tool_proposals import (
    ToolApprove,
    ToolOutput,
    ToolPropose,
    ToolResult,
)
from accord.core.room.approval.votes import GateApprove, GateReject
from accord.core.room.conversation.prompts import PromptConfig, PromptSubmit
from accord.core.room.deadlines import Tick
from accord.core.room.membership.announcements import ParticipantAnnounce, wire_kind
from accord.core.room.membership.joining import SessionJoin
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.membership.role_assignment import ParticipantRoleChange
from accord.core.room.room_settings import AbsencePolicy, Category, ServerPolicy, SessionConfig
from accord.core.room.session_lifecycle import SessionConfigUpdate, SessionCreate, SessionEnd
from accord.core.room.state import Gate, Presence, Risk, Room
from accord.core.room.state import Grant as ToolGrant
from accord.engine.decider import sender_event_index

ROOM = "r"
STREAM = f"room/{ROOM}"
T0 = 1_769_803_200_000  # 2026-01-30T20:00:00Z
# Gates of five minutes, so that time passes quickly.
DEFAULT_POLICY = ServerPolicy(gate_seconds=300)
# Without tokens an absence ends a membership.
OPEN_POLICY = ServerPolicy(gate_seconds=300, grace_ends_membership=True)

ALICE = Actor(principal="alice", kind=Kind.HUMAN)
BOB = Actor(principal="bob", kind=Kind.HUMAN)
CAROL = Actor(principal="carol", kind=Kind.HUMAN)
DAVE = Actor(principal="dave", kind=Kind.HUMAN)
CLAUDE = Actor(principal="claude", kind=Kind.AGENT)
CODEX = Actor(principal="codex", kind=Kind.AGENT)

CONFIG = SessionConfig(
    require_approval_for=tuple(c for c in Category if c not in {Category.FILE_READ, Category.ALL}),
    default_gate_quorum=AnyOf(1),
    allow_forks=True,
    max_participants=10,
    ordering_mode="total",
    on_participant_timeout=AbsencePolicy.WAIT,
    heartbeat_interval_seconds=30,
    idle_timeout_seconds=120,
    away_timeout_seconds=300,
)

_numbers = count(1)
_versions = count(1)


# The script


class Step(NamedTuple):
    """A member sends a message at some instant."""

    actor: Actor
    body: Body
    id: str | None = None
    ref: str | None = None
    at: int = T0
    fork: str | None = None


class CommandOutcome(list[EventOrEffect]):
    """The events and effects of a command, and the records the engine would store."""

    records: tuple[Record, ...] = ()


def given(*script: Step, policy: ServerPolicy = DEFAULT_POLICY, room: Room | None = None) -> Room:
    """The room after a script of messages, each admitted, decided and folded in turn."""
    room = CONTEXT.initial_state(STREAM) if room is None else room
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
            policy=policy,
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
    policy: ServerPolicy = DEFAULT_POLICY,
) -> CommandOutcome:
    """The outcome of one message; raises Refused as the engine would."""
    ask = build_command(actor, body, id=id, ref=ref, fork=fork, at=at, policy=policy)
    CONTEXT.admit(room, ask)
    ask = Command(ask.message, actor, at, _cited_records(room, ask.message, known), policy)
    facts = CommandOutcome(CONTEXT.decide[type(body)](room, ask, body))
    facts.records = _make_records(ask, [fact for fact in facts if isinstance(fact, Event)])
    return facts


def build_command(
    actor: Actor,
    body: Body,
    *,
    id: str | None = None,
    ref: str | None = None,
    fork: str | None = None,
    at: int = T0,
    policy: ServerPolicy = DEFAULT_POLICY,
) -> Command:
    """The command the engine would build, before it looks up cited records."""
    sender = SYSTEM if actor.kind is Kind.SYSTEM else actor.principal
    message = Message(id or f"m{next(_numbers)}", to_iso(at), ROOM, sender, body, ref, fork=fork)
    return Command(message, actor, at, {}, policy)


def after(room: Room, facts: CommandOutcome) -> Room:
    """The room after these events; each also makes a round trip through its stored bytes."""
    kept = [encode_record(record).body for record in facts.records]
    read = [
        decode_record(STREAM, record.version, body).record
        for record, body in zip(facts.records, kept, strict=True)
    ]
    now = fold(CONTEXT, room, facts.records)
    assert fold(CONTEXT, room, read) == now
    return now


def _cited_records(room: Room, message: Message, known: Iterable[Record]) -> Mapping[str, Record]:
    """The records a message cites, all of which must exist (OPEN-35)."""
    at_hand = {record.id: record for record in known if record.said is not None}
    ref, seat = message.ref, message.sender
    named = {ref} if ref and not CONTEXT.knows_id(room, ref, seat) else set()
    cited = named.union(message.body.cited_ids() if message.body.cites_others else ())
    if missing := sorted(cited - at_hand.keys()):
        raise Refused(Reason.MALFORMED, f"No such message here: {', '.join(missing)}")
    return {name: at_hand[name] for name in cited}


def _make_records(ask: Command, events: list[Event]) -> tuple[Record, ...]:
    """Events as the engine records them: one is the sender's, the others the server's."""
    spoken = 0 if len(events) == 1 else sender_event_index(ask.message, events)
    return tuple(
        _record(ask, event, place, own=place == spoken) for place, event in enumerate(events)
    )


def _record(ask: Command, event: Event, place: int, *, own: bool) -> Record:
    message, at = ask.message, ask.at
    said: Body | None = getattr(event, "said", None)
    version = next(_versions)
    return Record(
        stream=STREAM,
        version=version,
        seq=0 if said is None else version,
        id=message.id if own else derive_ulid(at, STREAM, message.id, str(place)),
        at=at,
        actor=ask.actor.principal,
        cause=message.id,
        ts=message.ts if own else to_iso(at),
        sender=message.sender if own else SYSTEM,
        event=event,
        said=said,
        ref=event.ref or (message.ref if own else None),
        fork=event.fork or (message.fork if message.body.forkable else None),
        to=event.to,
    )


# Then


def types_of(facts: Iterable[EventOrEffect]) -> list[type[EventOrEffect]]:
    """The classes of what was decided, in order."""
    return [type(fact) for fact in facts]


def events_of(facts: Iterable[EventOrEffect]) -> list[Event]:
    """The events among the outcome, which are stored."""
    return [fact for fact in facts if isinstance(fact, Event)]


def relays_of(facts: Iterable[EventOrEffect]) -> list[Relay]:
    """The relays among the outcome, which are sent but not stored."""
    return [fact for fact in facts if isinstance(fact, Relay)]


def effects_of(facts: Iterable[EventOrEffect]) -> list[Effect]:
    """All effects, which are carried out after the commit."""
    return [fact for fact in facts if isinstance(fact, Effect)]


@contextmanager
def expect_refusal(reason: Reason, match: str | None = None) -> Iterator[None]:
    """Assert that the block is refused for this reason."""
    with pytest.raises(Refused, match=match) as refusal:
        yield
    assert refusal.value.reason is reason, f"{refusal.value.reason}: {refusal.value.detail}"


def gate_on(room: Room, action: str) -> Gate:
    """The one open gate on an action."""
    (gate,) = (gate for gate in room.gates.values() if gate.action == action)
    return gate


def has_open_gate(room: Room, action: str) -> bool:
    """Whether an action has an open gate."""
    return any(gate.action == action for gate in room.gates.values())


def has_grant(room: Room, proposal: str) -> bool:
    """Whether a proposal has its grant."""
    return proposal in room.tools and room.tools[proposal].grant is not None


def grant_of(room: Room, proposal: str) -> ToolGrant:
    """The grant of an approved proposal."""
    grant = room.tools[proposal].grant
    assert grant is not None
    return grant


# Steps


def with_credential(
    actor: Actor,
    *roles: Role,
    capabilities: Iterable[Capability] = (),
    labels: Iterable[str] = (),
) -> Actor:
    """The actor with a credential for exactly these rights."""
    grant = CredentialRights(frozenset(roles), frozenset(capabilities), frozenset(labels))
    return msgspec.structs.replace(actor, credential=grant)


def script_step(
    actor: Actor,
    body: Body,
    *,
    id: str | None = None,
    ref: str | None = None,
    at: int = T0,
    fork: str | None = None,
) -> Step:
    """A step of a script."""
    return Step(actor, body, id, ref, at, fork)


def create_step(by: Actor = ALICE, *, at: int = T0, **config: Any) -> Step:
    """A step that creates a session, whose creator becomes its admin."""
    return Step(by, session_create(**config), at=at)


def join_step(
    who: Actor,
    *roles: Role,
    capabilities: tuple[Capability, ...] = (),
    labels: tuple[str, ...] = (),
    at: int = T0,
) -> Step:
    """A step that joins with these roles; adds a credential unless the actor has one."""
    credentialed = with_credential(who, *roles, capabilities=capabilities, labels=labels)
    return Step(
        credentialed if who.credential is None else who,
        session_join(who, *roles, caps=capabilities),
        at=at,
    )


def leave_step(who: Actor, *, at: int = T0) -> Step:
    """A step in which a member leaves."""
    return Step(who, SessionLeave(), at=at)


def presence_step(who: Actor, status: Presence, *, at: int = T0) -> Step:
    """A step in which the server reports a member's presence."""
    return Step(PRESENCE_ACTOR, PresenceUpdate(who.principal, status, to_iso(at)), at=at)


def tick_step(at: int) -> Step:
    """A step in which time passes."""
    return Step(TIMER_ACTOR, Tick(), at=at)


def seconds_after_start(number: int) -> int:
    """The instant this many seconds after T0."""
    return T0 + number * MS_PER_SECOND


def tick_at(room: Room, at: int, *, policy: ServerPolicy = DEFAULT_POLICY) -> CommandOutcome:
    """The outcome of everything due by then."""
    return when(room, TIMER_ACTOR, Tick(), at=at, policy=policy)


# Message bodies


def session_config(**changes: Any) -> SessionConfig:
    """The default test settings of a session, with these changes."""
    return msgspec.structs.replace(CONFIG, **changes)


def session_create(name: str | None = None, **changes: Any) -> SessionCreate:
    """A `session.create` with the default test settings and these changes."""
    return SessionCreate(config=session_config(**changes), name=name)


def session_join(who: Actor, *roles: Role, caps: tuple[Capability, ...] = ()) -> SessionJoin:
    """A `session.join` that asks for these roles."""
    return SessionJoin(
        participant=participant_announce(who, *roles, caps=caps), supported_versions=(1,)
    )


def participant_announce(
    who: Actor, *roles: Role, name: str | None = None, caps: tuple[Capability, ...] = ()
) -> ParticipantAnnounce:
    """A `participant.announce` of this actor."""
    return ParticipantAnnounce(
        id=who.principal,
        name=name or who.principal.title(),
        kind=wire_kind(who.kind),
        roles=roles,
        transport="websocket",
        capabilities=caps or None,
    )


def session_config_update(**changes: Any) -> SessionConfigUpdate:
    """A `session.config_update` with these changes, encoded as on the wire."""
    as_sent = msgspec.json.decode(msgspec.json.encode(changes))
    return SessionConfigUpdate(changes=as_sent, reason="Because")


def session_end() -> SessionEnd:
    """A `session.end`."""
    return SessionEnd(reason="Done", final_state="completed")


def role_change(
    by: Actor, who: Actor, old: Iterable[Role], new: Iterable[Role]
) -> ParticipantRoleChange:
    """A `participant.role_change`."""
    return ParticipantRoleChange(who.principal, tuple(old), tuple(new), by.principal)


def prompt_submit(
    agent: Actor = CLAUDE, content: str = "Please", *, tools: tuple[str, ...] | None = None
) -> PromptSubmit:
    """A `prompt.submit` to this agent."""
    return PromptSubmit(
        content=content,
        target_agent=agent.principal,
        contributors=(),
        context_keys=(),
        config=PromptConfig(tools_allowed=tools) if tools is not None else None,
    )


def tool_propose(
    agent: Actor = CLAUDE,
    *,
    tool_name: str = "run_tests",
    arguments: dict[str, Any] | None = None,
    category: Category = Category.SHELL_EXECUTE,
    risk: Risk = Risk.LOW,
    requires_approval: bool = False,
    suggested: tuple[str, ...] | None = None,
    metadata: dict[str, Any] | None = None,
) -> ToolPropose:
    """A `tool.propose`, by default to run the tests."""
    return ToolPropose(
        tool_name=tool_name,
        arguments={"argv": ["make", "test"]} if arguments is None else arguments,
        agent=agent.principal,
        risk_level=risk,
        description="to see whether it works",
        requires_approval=requires_approval,
        category=category,
        suggested_approvers=suggested,
        metadata=metadata,
    )


def gate_request(
    action: str,
    *,
    quorum: Quorum | None = None,
    action_type: ActionType = "prompt",
    timeout: int = 60,
    message: str = "May I?",
) -> GateRequest:
    """A `gate.request` about this action."""
    return GateRequest(action_type, action, quorum or AnyOf(1), timeout, message)


def gate_approve(who: Actor, gate: str, comment: str | None = None) -> GateApprove:
    """A `gate.approve`."""
    return GateApprove(gate=gate, approver=who.principal, comment=comment)


def gate_reject(who: Actor, gate: str, reason: str = "No") -> GateReject:
    """A `gate.reject`."""
    return GateReject(gate=gate, rejector=who.principal, reason=reason)


def tool_approve(who: Actor, proposal: str) -> ToolApprove:
    """A `tool.approve`."""
    return ToolApprove(tool_proposal=proposal, approver=who.principal)


def tool_reject(who: Actor, proposal: str, reason: str = "No") -> ToolReject:
    """A `tool.reject`."""
    return ToolReject(tool_proposal=proposal, rejector=who.principal, reason=reason)


def tool_execute(proposal: str, grant: ToolGrant | None = None) -> ToolExecute:
    """A `tool.execute`."""
    return ToolExecute(tool_proposal=proposal, approved_by=(), grant=grant)


def tool_output(
    proposal: str, text: str = "ok", *, grant: ToolGrant | str | None = None
) -> ToolOutput:
    """A `tool.output` on stdout."""
    return ToolOutput(
        tool_proposal=proposal, stream="stdout", text=text, complete=False, grant=grant
    )


def tool_result(
    proposal: str, *, success: bool = True, grant: ToolGrant | str | None = None
) -> ToolResult:
    """A `tool.result`."""
    return ToolResult(tool_proposal=proposal, success=success, duration_ms=12, grant=grant)
