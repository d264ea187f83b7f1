"""Standing grants: a member's yes, given beforehand, to calls alike of one agent.

A standing grant is the one exception to a fresh act of a human for each vote (OPEN-17). It votes
only on calls that the server itself found to be of low or medium risk, never on what deploys,
touches a database, reads secrets or deletes files, and never on one of several options. It counts
for the rules `any` and `role`, and only while its grantor could cast the vote. It ends by time, by
number of uses (counted in `votes.use_standing_grant`), or when its grantor ends it.
"""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel import ballot as ballots
from accord.core.kernel.ballot import AnyOf, Ballot, OfRole, simple_rules
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body, Instant
from accord.core.kernel.records import Event, Record, server_record_id
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.kernel.timestamps import MS_PER_SECOND, to_iso
from accord.core.room.approval import votes
from accord.core.room.approval.call_patterns import command_pattern_problems, subjects_match
from accord.core.room.approval.electorate import without_standing_grants
from accord.core.room.approval.gates import ALWAYS_GATED_RISKS, NEVER_AUTO_CATEGORIES, GateOpened
from accord.core.room.field_types import Id, ShortText
from accord.core.room.shared_context.context_items import ContextAdd, ContextRemove
from accord.core.room.state import Gate, Room, StandingGrant, ToolProposal, without_keys

MAX_STANDING_GRANTS = 64
KEY_PREFIX = "standing_grant:"
GATE_PLACE = 1  # of the gate among the records of a proposal
Pattern = Annotated[str, Meta(min_length=1, max_length=256)]
Patterns = Annotated[tuple[Pattern, ...], Meta(max_length=16)]


class StandingGrantCreate(Body, frozen=True, omit_defaults=True, gc=False):
    """Vote yes beforehand on calls alike of one agent; comes over HTTP, PVP has no such message."""

    type = "standing_grant.create"
    needs = Permission.APPROVE

    agent: Id
    count: Annotated[int, Meta(ge=1, le=500)]
    seconds: Annotated[int, Meta(ge=60, le=28_800)]
    run: Patterns = ()
    write: Patterns = ()
    comment: ShortText | None = None


class StandingGrantEnd(Body, frozen=True, omit_defaults=True, gc=False):
    """End a standing grant before its time."""

    type = "standing_grant.end"
    needs = Permission.APPROVE
    while_paused = True

    standing_grant: Id
    reason: ShortText | None = None


class StandingGranted(Event, frozen=True, kw_only=True, gc=False):
    """A member voted yes beforehand on calls alike; PVP clients hear of it as a context item."""

    name = "standing_grant.created"

    said: ContextAdd
    grant: StandingGrant


class StandingGrantEnded(Event, frozen=True, kw_only=True, gc=False):
    """A member who may approve ended a standing grant."""

    name = "standing_grant.ended"

    said: ContextRemove
    grant: str


class StandingGrantsExpired(Event, frozen=True, kw_only=True, gc=False):
    """The time of these standing grants is over."""

    name = "standing_grant.expired"

    ids: tuple[str, ...]


def create_standing_grant(
    room: Room, command: Command, body: StandingGrantCreate
) -> Iterator[EventOrEffect]:
    """Only a human who may approve, for an agent of this session."""
    if not room.members[command.actor.principal].can_vote:
        raise Refused(Reason.FORBIDDEN, "Only humans who may approve can give standing grants")
    agent = room.members.get(body.agent)
    if agent is None or agent.kind is not Kind.AGENT:
        detail = f"{body.agent} is not an agent of this session; a standing grant names one"
        raise Refused(Reason.NOT_FOUND, detail)
    if not body.run and not body.write:
        raise Refused(Reason.MALFORMED, "Name a pattern of commands (`run`) or files (`write`)")
    for problem in (each for pattern in body.run for each in command_pattern_problems(pattern)):
        raise Refused(Reason.MALFORMED, problem)
    if len(room.standing_grants) >= MAX_STANDING_GRANTS:
        detail = f"There are {MAX_STANDING_GRANTS} standing grants here already; end one first"
        raise Refused(Reason.TOO_MANY, detail)
    grant = StandingGrant(
        id=command.message.id,
        grantor=command.actor.principal,
        agent=body.agent,
        run=body.run,
        write=body.write,
        count=body.count,
        created_at=command.at,
        expires_at=command.at + body.seconds * MS_PER_SECOND,
    )
    yield StandingGranted(said=announcement(grant, body.comment), grant=grant)


def announcement(grant: StandingGrant, comment: str | None) -> ContextAdd:
    """What the room hears: for whom, for what, how often, until when."""
    content = {
        "agent": grant.agent,
        "run": list(grant.run),
        "write": list(grant.write),
        "count": grant.count,
        "expires_at": to_iso(grant.expires_at),
        "comment": comment or "",
    }
    key = f"{KEY_PREFIX}{grant.id}"
    return ContextAdd(key, "structured", content, tags=("standing_grant",))


def end_standing_grant(
    room: Room, command: Command, body: StandingGrantEnd
) -> Iterator[EventOrEffect]:
    """Anyone who may approve ends one."""
    if body.standing_grant not in room.standing_grants:
        detail = f"There is no standing grant {body.standing_grant}; it may have ended already"
        raise Refused(Reason.NOT_FOUND, detail)
    key = f"{KEY_PREFIX}{body.standing_grant}"
    yield StandingGrantEnded(
        said=ContextRemove(key=key, reason=body.reason or "ended"), grant=body.standing_grant
    )


def expire_standing_grants(room: Room, command: Command) -> Iterator[EventOrEffect]:
    """The standing grants whose time is over."""
    ids = tuple(id for id, grant in room.standing_grants.items() if grant.expires_at <= command.at)
    if ids:
        yield StandingGrantsExpired(ids=ids)


# Voting


def cast_standing_votes(
    room: Room, command: Command, tool: ToolProposal, opened: GateOpened
) -> Iterator[EventOrEffect]:
    """The votes of standing grants on a gate that was just opened, one for each grantor."""
    matching = {
        grant.grantor: grant
        for grant in room.standing_grants.values()
        if grant_matches(grant, tool, command.at)
    }
    if not matching or not may_stand(tool) or not counts_standing_votes(opened):
        return
    gate = gate_of(room, command, opened)
    voters = room.voters(gate.fork)
    for grantor, grant in matching.items():
        if grantor not in voters or grantor in gate.ballot.barred:
            continue
        approval = votes.GateApprove(gate.id, grantor, describe(grant))
        yield votes.GateApproved(
            said=approval,
            gate=gate.id,
            seat=grantor,
            standing=grant.id,
            ref=gate.id,
            fork=gate.fork,
        )
        gate = replace(
            gate,
            ballot=votes.with_approval(gate, grantor),
            standing={**gate.standing, grantor: grant.id},
        )
        tally = ballots.tally(gate.ballot, voters, skip_absent=room.skips_absent)
        if tally.passed:
            with_tool = replace(room, tools={**room.tools, tool.id: tool})
            yield from votes.pass_gate(with_tool, command, gate, tally)
            return


def may_stand(tool: ToolProposal) -> bool:
    """Whether a standing grant may vote on this call at all."""
    computed = tool.computed
    return (
        computed is not None
        and tool.option_of is None
        and tool.risk not in ALWAYS_GATED_RISKS
        and not NEVER_AUTO_CATEGORIES & {tool.category, *computed.categories}
    )


def grant_matches(grant: StandingGrant, tool: ToolProposal, at: Instant) -> bool:
    """Whether a call is one of those that a standing grant is for."""
    subjects = tool.computed.subjects if tool.computed is not None else ()
    live = grant.agent == tool.agent and grant.expires_at > at
    return live and subjects_match(subjects, grant.run, grant.write)


def counts_standing_votes(opened: GateOpened) -> bool:
    """`any` and `role` alone: the other rules ask for named people or for all of them."""
    return all(isinstance(rule, AnyOf | OfRole) for rule in simple_rules(opened.said.quorum))


def gate_of(room: Room, command: Command, opened: GateOpened) -> Gate:
    """The gate as it will be in the state, with the id that its record will have."""
    request = opened.said
    return Gate(
        id=server_record_id(command.at, f"room/{room.id}", command.message.id, GATE_PLACE),
        action_type=request.action_type,
        action=request.action_ref,
        initiator=opened.initiator,
        ballot=Ballot(request.quorum, opened.barred, opened.roll, enrolled=bool(opened.roll)),
        message=request.message,
        timeout_seconds=request.timeout_seconds,
        opened_at=command.at,
        expires_at=opened.expires_at,
        fork=opened.fork,
    )


def describe(grant: StandingGrant) -> str:
    """`by the standing grant 01J… for pytest **, 3 of 20`."""
    patterns = ", ".join((*grant.run, *(f"write {path}" for path in grant.write)))
    return f"by the standing grant {grant.id} for {patterns}, {grant.used + 1} of {grant.count}"


# Folding


def on_granted(room: Room, event: StandingGranted, record: Record) -> Room:
    return replace(room, standing_grants={**room.standing_grants, event.grant.id: event.grant})


def on_ended(room: Room, event: StandingGrantEnded, record: Record) -> Room:
    """The grant is gone, and so are its votes on gates that are still open."""
    return without_standing_grants(room, event.grant)


def on_expired(room: Room, event: StandingGrantsExpired, record: Record) -> Room:
    return replace(room, standing_grants=without_keys(room.standing_grants, *event.ids))


DECIDE: Deciders = {
    StandingGrantCreate: create_standing_grant,
    StandingGrantEnd: end_standing_grant,
}
EVOLVE: Evolvers = {
    StandingGranted: on_granted,
    StandingGrantEnded: on_ended,
    StandingGrantsExpired: on_expired,
}
