"""Grants: leave to run one approved call once, until it expires or is taken back."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import rfc8785
from msgspec.structs import replace

from accord.core.kernel.context import Command, EventOrEffect, Evolvers
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Body, Failure, Instant
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission
from accord.core.kernel.timestamps import MS_PER_SECOND, to_iso
from accord.core.kernel.ulid import derive_ulid
from accord.core.room.field_types import Id, ShortText
from accord.core.room.state import (
    GateOutcome,
    Grant,
    Room,
    TakenBack,
    ToolProposal,
    without_keys,
)
from accord.core.room.visibility import check_same_fork, outcome_key, remember_outcomes

# In the metadata of a result: it came after its grant was taken back.
LATE_KEY = "ran_after_taken_back"
MAX_TAKEN_BACK = 128
PASSED = frozenset({GateOutcome.APPROVED, GateOutcome.AUTO_APPROVED})


class ToolExecute(Body, frozen=True, omit_defaults=True, gc=False):
    """Run a proposal: the server sends the grant, the agent may confirm that it starts."""

    type = "tool.execute"
    needs = Permission.ACT_AS_AGENT
    forkable = True

    tool_proposal: Id
    approved_by: tuple[Id, ...]
    grant: Grant | None = None
    standing: tuple[Id, ...] = ()  # who approved it by a standing grant only

    def is_retry_of(self, said: Body) -> bool:
        """Ignores `approved_by` and `standing`, which only the server fills in."""
        return isinstance(said, ToolExecute) and self == replace(
            said, approved_by=self.approved_by, standing=self.standing
        )


class ToolReject(Body, frozen=True, omit_defaults=True, gc=False):
    """Vote no on the gate of a proposal."""

    type = "tool.reject"
    needs = Permission.PARTICIPATE
    forkable = True
    while_paused = True

    tool_proposal: Id
    rejector: Id
    reason: ShortText
    suggestion: ShortText | None = None

    def claimed_ids(self) -> Iterator[str]:
        yield self.rejector


class ToolCleared(Event, frozen=True, kw_only=True, gc=False):
    """A proposal may run: it was approved, or needed no approval."""

    name = "tool.cleared"

    said: ToolExecute
    expires_at: Instant


class GrantEnded(Event, frozen=True, kw_only=True, gc=False):
    """A grant that was not used ended before its time."""

    name = "tool.grant_ended"

    tool: str
    reason: str


class GrantTakenBack(Event, frozen=True, kw_only=True, gc=False):
    """A member who may approve took an unused grant back."""

    name = "tool.taken_back"

    said: ToolReject


def grant_digest(tool: ToolProposal, session: str, expires_at: str) -> str:
    """SHA-256 over the canonical form of the approved call; other arguments give another digest."""
    return sha256(
        canonical_bytes(tool.name, tool.arguments, session, tool.id, expires_at)
    ).hexdigest()


def canonical_bytes(
    name: str, arguments: dict[str, Any], session: str, proposal: str, expires_at: str
) -> bytes:
    """The call as RFC 8785; refuses arguments without an exact form, such as integers over 2^53."""
    call: Any = {
        "tool_name": name,
        "arguments": arguments,
        "session": session,
        "proposal": proposal,
        "expires_at": expires_at,
    }
    try:
        return rfc8785.dumps(call)
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeError) as error:
        detail = f"arguments have no canonical form: {error}; send large numbers as strings"
        raise Refused(Reason.MALFORMED, detail) from error


def issue_grant(
    room: Room,
    command: Command,
    tool: ToolProposal,
    approved_by: tuple[str, ...],
    standing: tuple[str, ...] = (),
) -> Iterator[Event]:
    expires_at = command.at + command.policy.grant_seconds * MS_PER_SECOND
    expires_iso = to_iso(expires_at)
    grant = Grant(
        id=derive_ulid(command.at, room.id, tool.id, "grant"),
        digest=grant_digest(tool, room.id, expires_iso),
        expires_at=expires_iso,
    )
    execute = ToolExecute(
        tool_proposal=tool.id, approved_by=approved_by, grant=grant, standing=standing
    )
    yield ToolCleared(said=execute, expires_at=expires_at, ref=tool.id, fork=tool.fork)


def end_unused_grants(room: Room, agent: str, reason: str) -> Iterator[EventOrEffect]:
    """End the grants that an agent has not used, and tell the room why."""
    for tool in room.tools.values():
        if tool.agent == agent and tool.grant is not None and not tool.used:
            yield GrantEnded(tool=tool.id, reason=reason, fork=tool.fork)
            yield grant_failed_notice(room, tool, f"Its grant ended: {reason}")


def grant_failed_notice(room: Room, tool: ToolProposal, detail: str) -> Relay:
    """Notice to the room, or the fork, that an approved call may not run (OPEN-25)."""
    to = None if tool.fork is None else room.members_in(tool.fork)
    return Relay(Failure(Reason.GATE_FAILED, detail, tool.id), to)


def on_grant_ended(room: Room, event: GrantEnded, record: Record) -> Room:
    return close_proposals(room, f"rejected: {event.reason}", event.tool)


def on_cleared(room: Room, event: ToolCleared, record: Record) -> Room:
    tool = room.tools.get(event.said.tool_proposal)
    if tool is None:
        return room
    tool = replace(tool, grant=event.said.grant, expires_at=event.expires_at)
    return replace(room, tools={**room.tools, tool.id: tool})


def close_proposals(room: Room, outcome: str, *ids: str) -> Room:
    """Remove finished proposals and remember how they ended."""
    outcomes = {outcome_key(room.tools[id].fork, id): outcome for id in ids if id in room.tools}
    return replace(
        room, tools=without_keys(room.tools, *ids), past=remember_outcomes(room.past, outcomes)
    )


# Taking back


def find_granted(room: Room, command: Command, proposal: str) -> ToolProposal | None:
    """The granted proposal with this id, if the sender may know of it."""
    tool = room.tools.get(proposal)
    if tool is None or tool.grant is None:
        return None
    return tool if command.actor.principal in room.members_in(tool.fork) else None


def take_back(
    room: Room, command: Command, body: ToolReject, tool: ToolProposal
) -> Iterator[EventOrEffect]:
    """End an unused grant; a used one can only be stopped by an interrupt."""
    check_same_fork(command, tool.id, tool.fork)
    member_id = command.actor.principal
    if Permission.APPROVE not in room.members[member_id].may:
        raise Refused(Reason.FORBIDDEN, "Only a member who may approve can take a grant back")
    if tool.used:
        detail = f"{room.person(tool.agent)} already used the grant for {tool.id}"
        raise Refused(Reason.WRONG_STATE, f"{detail}; raise an interrupt to stop it")
    yield GrantTakenBack(said=body, ref=command.message.ref or tool.id, fork=tool.fork)
    yield grant_failed_notice(
        room, tool, f"{room.person(member_id)} took the grant back: {body.reason}"
    )


def ran_anyway(room: Room, command: Command, proposal: str, presented: Grant | str | None) -> bool:
    """Whether this is the one result that is accepted of a grant taken back."""
    taken = room.taken_back.get(proposal)
    if taken is None or taken.agent != command.actor.principal:
        return False
    check_same_fork(command, proposal, taken.fork)
    return presented in (None, taken.grant, taken.grant.id)


def on_taken_back(room: Room, event: GrantTakenBack, record: Record) -> Room:
    tool = room.tools.get(event.said.tool_proposal)
    if tool is None or tool.grant is None:
        return room
    taken = {**room.taken_back, tool.id: TakenBack(tool.agent, tool.grant, tool.fork)}
    # The gate keeps saying so: `taken_back` is only for the one result that is still accepted.
    ended = {
        id: replace(gate, taken_back=True)
        if gate.action == tool.id and gate.outcome in PASSED
        else gate
        for id, gate in room.ended_gates.items()
    }
    newest = dict(list(taken.items())[-MAX_TAKEN_BACK:])
    room = replace(room, taken_back=newest, ended_gates=ended)
    outcome = f"rejected: {event.said.rejector} took the grant back"
    return close_proposals(room, outcome, tool.id)


EVOLVE: Evolvers = {
    ToolCleared: on_cleared,
    GrantEnded: on_grant_ended,
    GrantTakenBack: on_taken_back,
}
