"""A gate with everything that one member needs to decide on it."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from accord.core.kernel import ballot as ballots
from accord.core.kernel.role_permissions import Permission
from accord.core.kernel.timestamps import to_iso
from accord.core.room.approval import votes
from accord.core.room.approval.gates import gate_on_action
from accord.core.room.state import Gate, Room, SharedSecret, ToolProposal
from accord.core.views.call_targets import targets_of
from accord.core.views.sessions import can_read_fork, gate_view, proposal_view

Entry = dict[str, Any]


def may_approve(room: Room, gate: Gate, seat: str) -> bool:
    """Whether this member's approval would count."""
    return seat not in gate.ballot.barred and seat in room.voters(gate.fork)


def may_reject(room: Room, gate: Gate, seat: str) -> bool:
    """Whether this member may end the gate: by a veto, or by withdrawing the own action."""
    inside = seat in room.members_in(gate.fork)
    return inside and (seat == gate.initiator or Permission.APPROVE in room.members[seat].may)


def may_vote(room: Room, gate: Gate, seat: str) -> bool:
    """Whether this member may approve or reject the gate."""
    return may_approve(room, gate, seat) or may_reject(room, gate, seat)


def gate_card(room: Room, gate: Gate, seat: str) -> Entry:
    """The gate as this member sees it."""
    view = gate_view(room, gate)
    tool = room.tools.get(gate.action)
    rules = list(rule_views(room, gate))
    people = {gate.initiator, *(id for rule in rules for id in rule["candidates"])}
    approves = may_approve(room, gate, seat)
    left = remaining_rules(room, gate, seat) if approves else None
    return {
        "session": room.id,
        "session_name": room.name,
        **view,
        "may_approve": approves,
        "may_reject": may_reject(room, gate, seat),
        "my_vote": "approved" if seat in gate.ballot.yes else None,
        "votes": [
            {"by": vote.by, "at": to_iso(vote.at), "comment": vote.comment}
            for vote in gate.votes
            if vote.by in gate.ballot.yes
        ],
        "rules": rules,
        "after_my_yes": None if left is None else list(msgspec.to_builtins(left)),
        "targets": [] if tool is None else list(targets(room, tool, seat)),
        "options": [] if tool is None else list(option_views(room, tool, seat)),
        "presences": {
            id: room.members[id].presence.value for id in sorted(people & room.members.keys())
        },
    }


def rule_views(room: Room, gate: Gate) -> Iterator[Entry]:
    """Each simple rule of the quorum: how many, who approved, who else could."""
    voters = room.voters(gate.fork)
    tally = ballots.tally(gate.ballot, voters, skip_absent=room.skips_absent)
    eligible = frozenset(ballots.eligible_voters(gate.ballot, voters))
    yes = gate.ballot.yes & eligible
    rules = ballots.simple_rules(gate.ballot.quorum)
    for rule, need in zip(rules, tally.needs, strict=True):
        yield {
            "rule": msgspec.to_builtins(rule),
            "count": need.count,
            "approved": sorted(need.candidates & yes),
            "candidates": sorted((need.candidates & eligible) - yes),
        }


def remaining_rules(room: Room, gate: Gate, seat: str) -> tuple[ballots.Lack, ...]:
    """What would still be missing after this member's approval; empty: it is enough."""
    ballot = votes.with_approval(gate, seat)
    return ballots.unmet_rules(ballot, room.voters(gate.fork), skip_absent=room.skips_absent)


def option_views(room: Room, tool: ToolProposal, seat: str) -> Iterator[Entry]:
    """All proposals of which one is to be chosen, the first one first; nothing if there is one."""
    others = [
        other for other in votes.other_options(room, tool) if can_read_fork(room, other.fork, seat)
    ]
    if not others:
        return
    for option in sorted((tool, *others), key=lambda each: (each.option_of is not None, each.id)):
        gate = gate_on_action(room, option.id)
        yield {"gate": gate.id if gate else None, "proposal": proposal_view(room, option)}


def targets(room: Room, tool: ToolProposal, seat: str) -> Iterator[Entry]:
    """What the call would reach, as far as the server can read it from the call and the session."""
    for target in targets_of(tool.arguments):
        yield {"kind": target.kind, "value": target.value, "source": "call", "detail": ""}
    for secret in room.secrets.values():
        if tool.agent in secret.scope and seat in {*secret.scope, secret.sharer}:
            yield {
                "kind": "secret",
                "value": secret.key,
                "source": "session",
                "detail": f"shared by {room.person(secret.sharer)}",
            }


def secret_views(secrets: Mapping[str, SharedSecret], seat: str) -> list[Entry]:
    """The secrets that this member shared or may use, without their values."""
    return [
        {
            "key": secret.key,
            "sharer": secret.sharer,
            "scope": sorted(secret.scope),
            "expires_at": None if secret.expires_at is None else to_iso(secret.expires_at),
        }
        for secret in secrets.values()
        if seat in {*secret.scope, secret.sharer}
    ]


def with_cards(detail: Entry, room: Room, seat: str) -> Entry:
    """A session's detail whose gates are cards for this member, with the secrets it knows of."""
    if seat not in room.members:
        return {**detail, "secrets": []}
    cards = [
        gate_card(room, gate, seat)
        for gate in room.gates.values()
        if can_read_fork(room, gate.fork, seat)
    ]
    return {**detail, "gates": cards, "secrets": secret_views(room.secrets, seat)}
