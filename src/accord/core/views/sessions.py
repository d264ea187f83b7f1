"""A session as a reader sees it: members, open gates and proposals, context, forks."""

from collections.abc import Iterable
from typing import Any

import msgspec

from accord.core.kernel import ballot as ballots
from accord.core.kernel.actor import Actor
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import to_iso
from accord.core.room.approval import electorate, gates
from accord.core.room.decisions import decision_binding
from accord.core.room.forking import conflicts
from accord.core.room.forking.fork_state import Fork, Merge, MergeStrategy
from accord.core.room.state import (
    ContextItem,
    Gate,
    Member,
    Presence,
    Room,
    StandingGrant,
    ToolProposal,
    can_see,
)
from accord.core.room.visibility import record_audience, scope_of

MAX_AWAITED_VOTERS = 50


def is_known_to(room: Room, actor: Actor) -> bool:
    """Whether this principal may know that the room exists: as a member or former member of it."""
    # The same id in another workspace is another principal.
    same_workspace = actor.workspace == room.workspace
    return room.exists and same_workspace and membership_of(room, actor.principal) is not None


def membership_of(room: Room, seat: str) -> str | None:
    """`member`, `former`, or None for a principal that was never in the room."""
    if seat in room.members:
        return "member"
    return "former" if seat in room.former else None


def may_read(room: Room, seat: str, record: Record) -> bool:
    """Members read what is addressed to them; former members only what preceded their leaving."""
    to = record_audience(room, record)
    if record.said is None or (to is not None and seat not in to):
        return False
    if seat in room.members:
        return True
    former = room.former.get(seat)
    return former is not None and record.version <= former.left


def session_summary(room: Room, seat: str | None) -> dict[str, Any]:
    """One row of a listing; a `seat` of None is the local operator, who sees everything."""
    inside = seat is None or seat in room.members
    gates = room.gates.values() if inside else ()
    held = decision_binding.held_proposals(room) if inside else ()
    return {
        "id": room.id,
        "name": room.name,
        "status": session_status(room),
        "created_at": to_iso(room.created_at),
        "created_by": room.created_by,
        "participants": len(room.members),
        "open_gates": sum(can_read_fork(room, gate.fork, seat) for gate in gates),
        "held": sum(can_read_fork(room, tool.fork, seat) for tool in held),
        "standing": membership_of(room, seat or ""),
        "lost": was_disconnected(room, seat or ""),
    }


def was_disconnected(room: Room, seat: str) -> bool:
    """Whether a former member was removed only because the connection was lost for too long."""
    former = room.former.get(seat)
    return former is not None and former.presence is Presence.DISCONNECTED and not room.ended


def session_status(room: Room) -> str:
    """`active`, `paused`, or how it ended."""
    if room.ended:
        return room.ended
    return "paused" if room.paused_at is not None else "active"


def can_read_fork(room: Room, fork: str | None, seat: str | None) -> bool:
    """Whether this member may read the fork; everyone may read the trunk."""
    return fork is None or seat is None or seat in room.readers(fork)


def session_detail(room: Room, seat: str | None) -> dict[str, Any]:
    """A session without its messages; a former member sees only their own entry."""
    inside = seat is None or seat in room.members
    forks = (fork for fork in room.forks if can_read_fork(room, fork, seat))
    return detail_in_forks(room, seat, frozenset({None, *forks} if inside else ()))


def detail_in_forks(
    room: Room, seat: str | None, forks_shown: frozenset[str | None]
) -> dict[str, Any]:
    """Everything open in these forks (None: the trunk), and the context visible to this member."""
    people = room.members.values() if forks_shown else filter(None, [room.former.get(seat or "")])
    tools = [tool for tool in room.tools.values() if tool.fork in forks_shown]
    merges = [
        merge for merge in room.merges.values() if {merge.source, merge.target} <= forks_shown
    ]
    return {
        **session_summary(room, seat),
        "config": msgspec.to_builtins(room.config),
        "gate_timeout_seconds": room.gate_seconds,
        "members": [member_view(member) for member in people],
        "gates": [
            gate_view(room, gate) for gate in room.gates.values() if gate.fork in forks_shown
        ],
        "tools": [proposal_view(room, tool) for tool in tools],
        "forks": [
            {
                **fork_view(fork),
                "conflicts": merge_conflicts(room, fork, seat) if fork.id in forks_shown else [],
            }
            for fork in room.forks.values()
        ]
        if forks_shown
        else [],
        "merges": [merge_view(merge) for merge in merges],
        "context": [
            context_summary(item, fork)
            for fork in sorted(forks_shown, key=scope_of)
            for item in room.shelf.get(scope_of(fork), {}).values()
            if seat is None or can_see(item, seat)
        ],
        "halted": dict(room.halted) if forks_shown else {},
        "standing_grants": [
            standing_grant_view(room, grant) for grant in room.standing_grants.values()
        ]
        if forks_shown
        else [],
        "unmeetable": list(electorate.unmeetable_quorum(room))
        if forks_shown and not room.ended
        else [],
    }


def fork_view(fork: Fork) -> dict[str, Any]:
    """A fork and its members, which the whole room may see."""
    return {
        "id": fork.id,
        "name": fork.name,
        "parent": fork.parent,
        "from_point": fork.from_point,
        "members": sorted(fork.members),
        "created_by": fork.created_by,
        "created_at": to_iso(fork.created_at),
        "merged": fork.merged,
        "into": fork.into,
    }


def merge_conflicts(room: Room, fork: Fork, seat: str | None) -> list[str]:
    """The keys to be resolved if the fork were merged now, of those that this member may read."""
    if fork.merged:
        return []
    target = fork.parent
    while target is not None and room.forks[target].merged:
        target = room.forks[target].into
    merge = Merge("", fork.id, target, MergeStrategy.APPEND, gated=False)
    return sorted(
        key
        for key in conflicts.find_conflicts(room, merge)
        if seat is None
        or all(can_see(item, seat) for item in conflicts.items_on_both_sides(room, merge, key))
    )


def merge_view(merge: Merge) -> dict[str, Any]:
    """A merge that was proposed and not executed yet."""
    return {
        "id": merge.id,
        "source": merge.source,
        "target": merge.target,
        "strategy": merge.strategy.value,
        "gated": merge.gated,
        "head": merge.head or None,
        "changed": merge.changed or None,
    }


def context_summary(item: ContextItem, fork: str | None) -> dict[str, Any]:
    """A context item without its content."""
    return {
        "key": item.key,
        "fork": fork,
        "content_type": item.content_type,
        "author": item.author,
        "visible_to": None if item.visible_to is None else sorted(item.visible_to),
        "source": item.source,
        "tags": list(item.tags),
    }


def context_item(room: Room, seat: str | None, key: str, fork: str | None) -> dict[str, Any]:
    """A context item with its content; NOT_FOUND also for a reader who may not see it."""
    inside = seat is None or seat in room.members
    known = fork is None or fork in room.forks
    item = room.shelf.get(scope_of(fork), {}).get(key)
    if (
        item
        and inside
        and known
        and can_read_fork(room, fork, seat)
        and (not seat or can_see(item, seat))
    ):
        ref = msgspec.to_builtins(item.content_ref)
        return {**context_summary(item, fork), "content": item.content, "content_ref": ref}
    raise Refused(Reason.NOT_FOUND, f"There is no context item {key} here that you may see")


def member_view(member: Member) -> dict[str, Any]:
    return {
        "id": member.id,
        "name": member.name,
        "type": member.kind.value,
        "roles": sorted(member.roles),
        "capabilities": sorted(member.capabilities),
        "presence": member.presence.value,
    }


def fork_name(room: Room, fork: str | None) -> str | None:
    """The fork's name; None for the trunk."""
    known = room.forks.get(fork or "")
    return known.name if known else fork


def people_in(room: Room, ids: Iterable[str]) -> dict[str, str]:
    """The names of these members and former members, where they have one besides their id."""
    known = {id: room.members.get(id) or room.former.get(id) for id in sorted(ids)}
    return {id: member.name for id, member in known.items() if member and member.name != id}


def awaited_voters(gate: Gate, count: ballots.Tally) -> list[str]:
    """Whose approval could still help a rule that lacks votes."""
    yes = gate.ballot.yes
    lacking = (need for need in count.needs if len(need.candidates & yes) < need.count)
    return sorted(frozenset().union(*(need.candidates for need in lacking)) - yes)


def gate_view(room: Room, gate: Gate) -> dict[str, Any]:
    """An open gate as PVP's GateState, with its progress (PVP 14.4)."""
    voters = room.voters(gate.fork)
    count = ballots.tally(gate.ballot, voters, skip_absent=room.skips_absent)
    lacks = ballots.unmet_rules(gate.ballot, voters, skip_absent=room.skips_absent)
    awaited = awaited_voters(gate, count)[:MAX_AWAITED_VOTERS]
    return {
        "id": gate.id,
        "request": {
            "action_type": gate.action_type,
            "action_ref": gate.action,
            "quorum": msgspec.to_builtins(gate.ballot.quorum),
            "timeout_seconds": gate.timeout_seconds,
            "message": gate.message,
        },
        "initiator": gate.initiator,
        "approvals": sorted(gate.ballot.yes),
        "standing": sorted(gate.standing.keys() & gate.ballot.yes),
        "rejections": [],
        "approvals_received": count.received,
        "approvals_required": count.required,
        "lacks": msgspec.to_builtins(lacks),
        "waits_for": awaited,
        "created_at": to_iso(gate.opened_at),
        "expires_at": to_iso(gate.expires_at) if gate.expires_at is not None else None,
        "action": proposal_view(room, room.tools[gate.action])
        if gate.action in room.tools
        else None,
        "fork": gate.fork,
        "fork_name": fork_name(room, gate.fork),
        "people": people_in(room, {gate.initiator, *gate.ballot.yes, *awaited}),
        "notes": list(gate.notes),
        "skipped": list(gates.skipped_voters(room, gate.ballot, gate.fork)),
        "unmeetable": list(ballots.unmeetable_rules(gate.ballot, voters)),
    }


def proposal_view(room: Room, tool: ToolProposal) -> dict[str, Any]:
    """An unfinished proposal, with the kernel's decision on it and whether it is held."""
    held = decision_binding.hold_of(room, tool)
    return {
        "id": tool.id,
        "agent": tool.agent,
        "tool_name": tool.name,
        "arguments": tool.arguments,
        "arguments_omitted": False,
        "category": tool.category.value,
        "risk_level": tool.risk.value,
        "description": tool.description,
        "approved": tool.grant is not None,
        "gated": tool.gated,
        "used": tool.used,
        "computed": computed_view(tool),
        "decision": decision_view(room, tool),
        "held": msgspec.to_builtins(held) if held else None,
        "fork": tool.fork,
    }


def computed_view(tool: ToolProposal) -> dict[str, Any] | None:
    """What the server itself found the call to be, beside the agent's claim."""
    if (found := tool.computed) is None:
        return None
    category, risk = tool.claimed
    return {
        "category": found.category.value,
        "risk_level": found.risk.value,
        "explanation": found.explanation,
        "repository": found.repository,
        "policy": found.policy or None,
        "claimed_category": category,
        "claimed_risk_level": risk,
    }


def standing_grant_view(room: Room, grant: StandingGrant) -> dict[str, Any]:
    """A vote given beforehand: for what, how often, until when."""
    return {
        "id": grant.id,
        "grantor": grant.grantor,
        "agent": grant.agent,
        "run": list(grant.run),
        "write": list(grant.write),
        "count": grant.count,
        "used": grant.used,
        "created_at": to_iso(grant.created_at),
        "expires_at": to_iso(grant.expires_at),
        "people": people_in(room, {grant.grantor, grant.agent}),
    }


def decision_view(room: Room, tool: ToolProposal) -> dict[str, Any] | None:
    """The kernel's decision on a bound proposal, and how far the judgements agree."""
    standing = decision_binding.standing_of(room, tool)
    if standing is None:
        return None
    key = f"{decision_binding.DECISION_PREFIX}{standing.batch}{decision_binding.CONVERGENCE_SUFFIX}"
    comparison = decision_binding.server_item_content(room, tool.fork, key) or {}
    shelf = room.shelf.get(scope_of(tool.fork), {})
    # The authors of the judgements; the keys are chosen by the authors and prove nothing.
    judges = [shelf[key].author for key in comparison.get("hosts", ()) if key in shelf]
    decision = msgspec.structs.asdict(standing)
    return {**decision, "judges": judges, "table": comparison.get("table", "")}
