"""A session as a reader sees it: who is there, what is open, what was said."""

from typing import Any

import msgspec

from accord.core.kernel import ballot as ballots
from accord.core.kernel.actor import Actor
from accord.core.kernel.log import Record
from accord.core.kernel.times import iso
from accord.core.room.audience import audience
from accord.core.room.state import Gate, Member, Presence, Room, Tool


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


def open_to(room: Room, seat: str, thing: Gate | Tool) -> bool:
    """Whether somebody may know of what is open; in a fork, those who read it may."""
    return thing.fork is None or not seat or seat in room.readers(thing.fork)


def summary(room: Room, seat: str) -> dict[str, Any]:
    """One line of a listing."""
    return {
        "id": room.id,
        "name": room.name,
        "status": status(room),
        "created_at": iso(room.created_at),
        "created_by": room.created_by,
        "participants": len(room.members),
        "open_gates": sum(open_to(room, seat, gate) for gate in room.gates.values()),
        "standing": standing(room, seat),
        "lost": lost(room, seat),
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


def detail(room: Room, seat: str) -> dict[str, Any]:
    """Everything about a session but what was said; nothing open for who has left."""
    here = seat in room.members
    asked = [gate for gate in room.gates.values() if here and open_to(room, seat, gate)]
    wanted = [tool for tool in room.tools.values() if here and open_to(room, seat, tool)]
    return {
        **summary(room, seat),
        "config": msgspec.to_builtins(room.config),
        "members": [person(member) for member in room.members.values()],
        "gates": [question(room, gate) for gate in asked],
        "tools": [proposal(tool) for tool in wanted],
    }


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
    count = ballots.tally(gate.ballot, room.voters(gate.fork), skip_absent=room.skips_absent)
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
        "created_at": iso(gate.opened_at),
        "expires_at": iso(gate.expires_at) if gate.expires_at is not None else None,
        "action": proposal(room.tools[gate.action]) if gate.action in room.tools else None,
    }


def proposal(tool: Tool) -> dict[str, Any]:
    """A proposal that is not finished."""
    return {
        "id": tool.id,
        "agent": tool.agent,
        "tool_name": tool.name,
        "arguments": tool.arguments,
        "category": tool.category.value,
        "risk_level": tool.risk.value,
        "description": tool.description,
        "approved": tool.grant is not None,
    }
