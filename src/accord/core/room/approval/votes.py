"""Votes at a gate: approving, rejecting, withdrawing, choosing among options, and what follows."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from accord.core.kernel import ballot as ballots
from accord.core.kernel.ballot import Ballot, Tally
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.effects import Relay, ServerNotice
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body, Failure
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission
from accord.core.room.approval import gates, grants
from accord.core.room.decisions import decision_binding
from accord.core.room.field_types import Id, ShortText
from accord.core.room.forking import merge_approval
from accord.core.room.state import Gate, GateOutcome, Room, ToolProposal, Vote, without_keys

OPTION_KEY = "option_of"
MAX_COMMENT = 4096


class GateApprove(Body, frozen=True, omit_defaults=True, gc=False):
    """Vote yes."""

    type = "gate.approve"
    needs = Permission.APPROVE
    forkable = True
    while_paused = True

    gate: Id
    approver: Id
    comment: ShortText | None = None

    def claimed_ids(self) -> Iterator[str]:
        yield self.approver


class GateReject(Body, frozen=True, omit_defaults=True, gc=False):
    """Vote no, or withdraw your own action."""

    type = "gate.reject"
    needs = Permission.PARTICIPATE
    forkable = True
    while_paused = True

    gate: Id
    rejector: Id
    reason: ShortText

    def claimed_ids(self) -> Iterator[str]:
        yield self.rejector


class GateApproved(Event, frozen=True, kw_only=True, gc=False):
    """A member approved; `self_approved` if it was the member's own action (OPEN-14)."""

    name = "gate.approved"

    said: Body
    gate: str
    seat: str
    self_approved: bool = False
    # The standing grant that voted, if the member did not do so now. Unset, not empty: a record
    # without it encodes to the bytes it was stored as.
    standing: str | UnsetType = UNSET


class GateRejected(Event, frozen=True, kw_only=True, gc=False):
    """A member or the server rejected the gate, which is final."""

    name = "gate.rejected"

    said: Body
    gate: str
    seat: str


class GatePassed(Event, frozen=True, kw_only=True, gc=False):
    """A gate passed: its quorum is met."""

    name = "gate.passed"

    gate: str
    approved_by: tuple[str, ...]
    # Those of `approved_by` who approved by a standing grant only; unset if there are none.
    standing: tuple[str, ...] | UnsetType = UNSET


def option_of(metadata: Mapping[str, Any] | None) -> str | None:
    """The first of the options that a proposal belongs to; None if it is not an option."""
    value = (metadata or {}).get(OPTION_KEY)
    return value if isinstance(value, str) else None


def check_option(room: Room, command: Command, metadata: Mapping[str, Any] | None) -> None:
    """`option_of` names an undecided proposal of the same agent in the same fork."""
    if not metadata or OPTION_KEY not in metadata:
        return
    first = room.tools.get(option_of(metadata) or "")
    fits = (
        first is not None
        and first.agent == command.actor.principal
        and first.fork == command.message.fork
        and first.grant is None
        and first.option_of is None
    )
    if not fits:
        detail = f"metadata.{OPTION_KEY} must name your first proposal, undecided and in this fork"
        raise Refused(Reason.MALFORMED, detail)


def other_options(room: Room, tool: ToolProposal) -> Iterator[ToolProposal]:
    """The undecided proposals that this one is an alternative to."""
    first = tool.option_of or tool.id
    for other in room.tools.values():
        if other.id != tool.id and first in (other.id, other.option_of) and other.grant is None:
            yield other


def is_option(room: Room, tool: ToolProposal) -> bool:
    """Whether this proposal is one of several."""
    return tool.option_of is not None or any(other_options(room, tool))


# Voting


def approve_gate(room: Room, command: Command, body: GateApprove) -> Iterator[EventOrEffect]:
    return vote_yes(room, command, body, gates.find_gate(room, command, body.gate))


def reject_gate(room: Room, command: Command, body: GateReject) -> Iterator[EventOrEffect]:
    return vote_no(room, command, body, gates.find_gate(room, command, body.gate))


def vote_yes(room: Room, command: Command, body: Body, gate: Gate) -> Iterator[EventOrEffect]:
    """Count an approval; the gate passes when the quorum is met."""
    member_id = command.actor.principal
    if not room.members[member_id].can_vote:
        raise Refused(Reason.FORBIDDEN, "Only humans approve; an agent's approval never counts")
    if member_id in gate.ballot.barred:
        raise Refused(Reason.FORBIDDEN, "You cannot approve your own action")
    if gate.initiator in room.halted:
        raise Refused(
            Reason.WRONG_STATE,
            f"{room.person(gate.initiator)} was stopped by an interrupt; prompt it again first",
        )
    merge = room.merges.get(gate.action)
    if merge is not None and merge.changed:
        raise Refused(Reason.GATE_FAILED, merge_approval.void_reason(merge))
    tool = room.tools.get(gate.action)
    if tool is not None and (objection := decision_binding.hold_reason(room, tool)) is not None:
        raise Refused(Reason.WRONG_STATE, f"The decision it is bound to holds it: {objection}")
    yield GateApproved(
        said=body,
        gate=gate.id,
        seat=member_id,
        self_approved=gate.solo and member_id == gate.initiator,
        ref=vote_ref(command, gate),
        fork=gate.fork,
    )
    gate = replace(gate, standing=without_keys(gate.standing, member_id))
    voters = room.voters(gate.fork)
    tally = ballots.tally(with_approval(gate, member_id), voters, skip_absent=room.skips_absent)
    if tally.passed:
        yield from pass_gate(room, command, gate, tally)


def vote_no(room: Room, command: Command, body: Body, gate: Gate) -> Iterator[EventOrEffect]:
    """A veto by a member who may approve, or the initiator's withdrawal (OPEN-13)."""
    member_id = command.actor.principal
    withdraws = member_id == gate.initiator
    if not withdraws and Permission.APPROVE not in room.members[member_id].may:
        detail = f"{room.person(member_id)} may not reject; to stop an agent, raise an interrupt"
        raise Refused(Reason.FORBIDDEN, detail)
    yield GateRejected(
        said=body, gate=gate.id, seat=member_id, ref=vote_ref(command, gate), fork=gate.fork
    )
    yield gate_failed_notice(room, gate, f"Rejected by {room.person(member_id)}")


def vote_ref(command: Command, gate: Gate) -> str:
    """The message that the vote refers to; by default the gate."""
    return command.message.ref or gate.id


def with_approval(gate: Gate, member_id: str) -> Ballot:
    return replace(gate.ballot, yes=gate.ballot.yes | {member_id})


def pass_gate(room: Room, command: Command, gate: Gate, tally: Tally) -> Iterator[EventOrEffect]:
    """Pass the gate; a tool gets its grant, with the members whose approval counted."""
    approved_by = tuple(sorted(tally.counted))
    standing = tuple(seat for seat in approved_by if seat in gate.standing)
    yield GatePassed(
        gate=gate.id, approved_by=approved_by, standing=standing or UNSET, fork=gate.fork
    )
    if tool := room.tools.get(gate.action):
        asked = tuple(seat for seat in approved_by if seat not in standing)
        yield from grants.issue_grant(room, command, tool, asked, standing)
        yield from reject_other_options(room, tool)
    else:
        yield passed_notice(room, gate, approved_by)


def reject_other_options(room: Room, chosen: ToolProposal) -> Iterator[EventOrEffect]:
    """End the alternatives to a proposal that was chosen."""
    reason = f"chose: {chosen.name}: {chosen.description}"[:MAX_COMMENT]
    for other in other_options(room, chosen):
        if gate := gates.gate_on_action(room, other.id):
            yield from reject_by_server(room, gate, reason)
        else:
            yield from decision_binding.drop_proposal(room, other, reason)


def passed_notice(room: Room, gate: Gate, approved_by: tuple[str, ...]) -> ServerNotice:
    """Tell the initiator that the gate passed; a tool's grant says so itself."""
    names = room.people(approved_by) or "the timeout"
    body = GateApprove(gate.id, SYSTEM, f"The gate passed, approved by {names}"[:MAX_COMMENT])
    return ServerNotice(body, frozenset({gate.initiator}), gate.id)


def gate_failed_notice(room: Room, gate: Gate, detail: str) -> Relay:
    """Notice to the room, or the fork, that an action was not approved (OPEN-25)."""
    to = None if gate.fork is None else room.members_in(gate.fork)
    return Relay(Failure(Reason.GATE_FAILED, detail, gate.action), to)


# Rejected by the server


def withdraw_gates(room: Room, member_id: str, reason: str) -> Iterator[EventOrEffect]:
    """Reject the open gates of a member who leaves or is stopped."""
    for gate in room.gates.values():
        if gate.initiator == member_id:
            yield from reject_by_server(room, gate, reason)
    yield from decision_binding.drop_held_proposals(room, member_id, reason)


def reject_by_server(room: Room, gate: Gate, reason: str) -> Iterator[EventOrEffect]:
    """Reject a gate whose initiator or fork is gone."""
    rejection = GateReject(gate=gate.id, rejector="system", reason=reason)
    yield GateRejected(said=rejection, gate=gate.id, seat="system", ref=gate.id, fork=gate.fork)
    yield gate_failed_notice(room, gate, reason)


# Folding


def on_approved(room: Room, event: GateApproved, record: Record) -> Room:
    if not (gate := room.gates.get(event.gate)):
        return room
    by_grant = {event.seat: event.standing} if event.standing else {}
    standing = {**without_keys(gate.standing, event.seat), **by_grant}
    vote = Vote(event.seat, record.at, getattr(event.said, "comment", None) or "")
    votes = (*(other for other in gate.votes if other.by != event.seat), vote)
    ballot = with_approval(gate, event.seat)
    gate = replace(gate, ballot=ballot, votes=votes, standing=standing)
    room = replace(room, gates={**room.gates, gate.id: gate})
    return use_standing_grant(room, event.standing) if event.standing else room


def use_standing_grant(room: Room, id: str) -> Room:
    """Count one use; a grant that is used up is gone."""
    grant = room.standing_grants.get(id)
    if grant is None:
        return room
    used = replace(grant, used=grant.used + 1)
    others = without_keys(room.standing_grants, id)
    kept = others if used.used >= used.count else {**others, id: used}
    return replace(room, standing_grants=kept)


def on_rejected(room: Room, event: GateRejected, record: Record) -> Room:
    gate = room.gates.get(event.gate)
    if gate is None:
        return room
    reason = getattr(event.said, "reason", "")
    rejected = GateOutcome.REJECTED
    ended = gates.ended_gate(room, gate, rejected, record.at, (event.seat,), reason)
    return gates.close_gate(room, gate, "rejected", ended, ends_action=True)


def on_passed(room: Room, event: GatePassed, record: Record) -> Room:
    """Let the action proceed; a merge may now be executed."""
    gate = room.gates.get(event.gate)
    if gate is None:
        return room
    if merge := room.merges.get(gate.action):
        room = replace(room, merges={**room.merges, merge.id: replace(merge, gated=False)})
    ended = gates.ended_gate(room, gate, GateOutcome.APPROVED, record.at, event.approved_by)
    ended = replace(ended, standing=event.standing or ())
    return gates.close_gate(room, gate, "passed", ended, ends_action=False)


DECIDE: Deciders = {GateApprove: approve_gate, GateReject: reject_gate}
EVOLVE: Evolvers = {GateApproved: on_approved, GateRejected: on_rejected, GatePassed: on_passed}
