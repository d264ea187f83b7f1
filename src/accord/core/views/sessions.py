"""A session as a reader sees it: who is there, what is open, what was said."""

from typing import Any

import msgspec

from accord.core.kernel import ballot as ballots
from accord.core.kernel.actor import Actor
from accord.core.kernel.log import Record
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import iso
from accord.core.room import waiting
from accord.core.room.audience import audience
from accord.core.room.places import scope_of
from accord.core.room.state import Fork, Gate, Item, Member, Merge, Presence, Room, Tool, sees


def known_to(room: Room, actor: Actor) -> bool:
    """Whether the room exists for this principal; a name in another workspace is another one."""
    mine = actor.workspace == room.workspace
    return room.exists and mine and standing(room, actor.seat) is not None


def standing(room: Room, seat: str) -> str | None:
    """What a seat is to the room: `member`, `former`, or None."""
    if seat in room.members:
        return "member"
    return "former" if seat in room.former else None


def may_read(room: Room, seat: str, record: Record) -> bool:
    """Members read what is for them; former members what they could see until they left."""
    to = audience(room, record)
    if record.said is None or (to is not None and seat not in to):
        return False
    if seat in room.members:
        return True
    former = room.former.get(seat)
    return former is not None and record.version <= former.left


def summary(room: Room, seat: str | None) -> dict[str, Any]:
    """One line of a listing; None is the operator of the machine, who may read its files."""
    inside = seat is None or seat in room.members
    gates = room.gates.values() if inside else ()
    held = waiting.held(room) if inside else ()
    return {
        "id": room.id,
        "name": room.name,
        "status": status(room),
        "created_at": iso(room.created_at),
        "created_by": room.created_by,
        "participants": len(room.members),
        "open_gates": sum(reads(room, gate.fork, seat) for gate in gates),
        "held": sum(reads(room, tool.fork, seat) for tool in held),
        "standing": standing(room, seat or ""),
        "lost": lost(room, seat or ""),
    }


def lost(room: Room, seat: str) -> bool:
    """Whether somebody is out only because their connection was, for too long."""
    former = room.former.get(seat)
    return former is not None and former.presence is Presence.DISCONNECTED and not room.ended


def status(room: Room) -> str:
    """`active`, `paused`, or how it ended."""
    if room.ended:
        return room.ended
    return "paused" if room.paused_at is not None else "active"


def reads(room: Room, fork: str | None, seat: str | None) -> bool:
    """Whether what is said in a fork is for this seat; the trunk is for everybody."""
    return fork is None or seat is None or seat in room.readers(fork)


def detail(room: Room, seat: str | None) -> dict[str, Any]:
    """Everything about a session but what was said; for who has left, nothing but themselves."""
    inside = seat is None or seat in room.members
    forks = (fork for fork in room.forks if reads(room, fork, seat))
    return portrait(room, seat, frozenset({None, *forks} if inside else ()))


def portrait(room: Room, seat: str | None, places: frozenset[str | None]) -> dict[str, Any]:
    """What is open in these places; context as far as this seat sees it."""
    people = room.members.values() if places else filter(None, [room.former.get(seat or "")])
    tools = [tool for tool in room.tools.values() if tool.fork in places]
    merges = [each for each in room.merges.values() if {each.source, each.target} <= places]
    return {
        **summary(room, seat),
        "config": msgspec.to_builtins(room.config),
        "members": [person(member) for member in people],
        "gates": [question(room, gate) for gate in room.gates.values() if gate.fork in places],
        "tools": [proposal(room, tool) for tool in tools],
        "forks": [branch(fork) for fork in room.forks.values()] if places else [],
        "merges": [joining(each) for each in merges],
        "context": [
            shelved(item, place)
            for place in sorted(places, key=scope_of)
            for item in room.shelf.get(scope_of(place), {}).values()
            if seat is None or sees(item, seat)
        ],
        "halted": dict(room.halted) if places else {},
    }


def branch(fork: Fork) -> dict[str, Any]:
    """A fork; that it exists and who is in it the whole room knows."""
    return {
        "id": fork.id,
        "name": fork.name,
        "parent": fork.parent,
        "from_point": fork.from_point,
        "members": sorted(fork.members),
        "created_by": fork.created_by,
        "created_at": iso(fork.created_at),
        "merged": fork.merged,
        "into": fork.into,
    }


def joining(merge: Merge) -> dict[str, Any]:
    """A merge that is still to be done."""
    return {
        "id": merge.id,
        "source": merge.source,
        "target": merge.target,
        "strategy": merge.strategy.value,
        "gated": merge.gated,
    }


def shelved(item: Item, fork: str | None) -> dict[str, Any]:
    """An item of the context, without what stands in it."""
    return {
        "key": item.key,
        "fork": fork,
        "content_type": item.content_type,
        "author": item.author,
        "visible_to": None if item.visible_to is None else sorted(item.visible_to),
        "source": item.source,
        "tags": list(item.tags),
    }


def context(room: Room, seat: str | None, key: str, fork: str | None) -> dict[str, Any]:
    """One item with what stands in it; refused as if it were not there to who may not see it."""
    inside = seat is None or seat in room.members
    known = fork is None or fork in room.forks
    item = room.shelf.get(scope_of(fork), {}).get(key)
    if item and inside and known and reads(room, fork, seat) and (not seat or sees(item, seat)):
        ref = msgspec.to_builtins(item.content_ref)
        return {**shelved(item, fork), "content": item.content, "content_ref": ref}
    raise Refused(Why.UNKNOWN, f"There is no context {key} here")


def person(member: Member) -> dict[str, Any]:
    """A member."""
    return {
        "id": member.id,
        "name": member.name,
        "type": member.kind.value,
        "roles": sorted(member.roles),
        "capabilities": sorted(member.capabilities),
        "presence": member.presence.value,
    }


def question(room: Room, gate: Gate) -> dict[str, Any]:
    """An open gate: PVP's GateState, and how far it is (PVP 14.4)."""
    voters = room.voters(gate.fork)
    count = ballots.tally(gate.ballot, voters, skip_absent=room.skips_absent)
    lacks = ballots.lacks(gate.ballot, voters, skip_absent=room.skips_absent)
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
        "rejections": [],
        "approvals_received": count.received,
        "approvals_required": count.required,
        "lacks": msgspec.to_builtins(lacks),
        "created_at": iso(gate.opened_at),
        "expires_at": iso(gate.expires_at) if gate.expires_at is not None else None,
        "action": proposal(room, room.tools[gate.action]) if gate.action in room.tools else None,
        "fork": gate.fork,
    }


def proposal(room: Room, tool: Tool) -> dict[str, Any]:
    """A proposal that is not finished; what the rules say of it, and whether they hold it."""
    held = waiting.hold(room, tool)
    return {
        "id": tool.id,
        "agent": tool.agent,
        "tool_name": tool.name,
        "arguments": tool.arguments,
        "category": tool.category.value,
        "risk_level": tool.risk.value,
        "description": tool.description,
        "approved": tool.grant is not None,
        "decision": ruled(room, tool),
        "held": msgspec.to_builtins(held) if held else None,
        "fork": tool.fork,
    }


def ruled(room: Room, tool: Tool) -> dict[str, Any] | None:
    """What the kernel says of a bound proposal, and how far those agree who judged it."""
    stands = waiting.stands(room, tool)
    if stands is None:
        return None
    key = f"{waiting.PREFIX}{stands.batch}{waiting.CONVERGENCE}"
    compared = waiting.told(room, tool.fork, key) or {}
    shelf = room.shelf.get(scope_of(tool.fork), {})
    # Who judged, whatever they call their judgement.
    judges = [shelf[key].author for key in compared.get("hosts", ()) if key in shelf]
    said = msgspec.structs.asdict(stands)
    return {**said, "judges": judges, "table": compared.get("table", "")}
