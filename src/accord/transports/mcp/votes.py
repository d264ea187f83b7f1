"""What people decide is not taken from what is sent over MCP; a form alone takes a vote.

A model writes what is sent, and a plain `accord mcp` has the rights of the person who is logged in.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from accord.core.dialects import pvp
from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import is_id
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.room.approval.grants import ToolReject
from accord.core.room.approval.votes import GateReject
from accord.core.room.state import Gate
from accord.transports.http.sessions import SessionReader

# Votes, who may vote, and what is voted on.
DECIDING_PERMISSIONS = frozenset(
    {Permission.APPROVE, Permission.MANAGE_PARTICIPANTS, Permission.CONFIGURE_SESSION}
)
REJECTIONS = frozenset({GateReject.type, ToolReject.type})
DECIDING_TYPES = REJECTIONS | {
    name for name, body in pvp.BODIES.items() if body.needs in DECIDING_PERMISSIONS
}
# Where a vote names its gate, or the proposal that the gate is about.
NAMED_BY = ("gate", "tool_proposal")


def gate_url(server: str, session: str, gate: str) -> str:
    """The address where a person decides about a gate."""
    return f"{session_url(server, session)}/gates/{quote(gate, safe='')}"


def session_url(server: str, session: str) -> str:
    """The page of a session."""
    return f"{server}/#/sessions/{quote(session, safe='')}"


async def decision_refusal(
    sessions: SessionReader, actor: Actor, envelope: Mapping[str, Any], server: str
) -> Refused | None:
    """For an envelope that decides for people: the refusal, with the address where they decide.

    An agent may withdraw its own action, which decides nothing for anyone else.
    """
    type, session = envelope.get("type"), envelope.get("session")
    if not isinstance(type, str) or type not in DECIDING_TYPES:
        return None
    gate = await gate_named_in(sessions, actor, envelope)
    withdraws = type in REJECTIONS and actor.kind is Kind.AGENT
    if withdraws and gate is not None and gate.initiator == actor.principal:
        return None
    where = session_url(server, session) if isinstance(session, str) and session else server
    shell = ""
    if gate is not None:
        where = gate_url(server, str(session), gate.id)
        shell = f", or with `accord approve {gate.id}` or `accord reject {gate.id}`"
    detail = (
        f"{type} is not taken over MCP, where a model writes what is sent: a person decides at "
        f"{where}{shell}"
    )
    return Refused(Reason.FORBIDDEN, detail, {"url": where})


async def gate_named_in(
    sessions: SessionReader, actor: Actor, envelope: Mapping[str, Any]
) -> Gate | None:
    """The open gate that a vote is about, if the sender may know of it."""
    session, payload = envelope.get("session"), envelope.get("payload")
    if not (isinstance(session, str) and is_id(session) and isinstance(payload, dict)):
        return None
    try:
        room = await sessions.readable_room(session, actor)
    except Refused:
        return None
    named = [payload[field] for field in NAMED_BY if isinstance(payload.get(field), str)]
    gates = room.gates.values() if actor.principal in room.members else ()
    return next((gate for gate in gates if gate.id in named or gate.action in named), None)


def decided_elsewhere(gates: list[dict[str, Any]], id: str, server: str) -> Refused:
    """For a gate that this connection cannot decide: where a person can."""
    gate = next((each for each in gates if each["id"] == id), None)
    if gate is None:
        return Refused(Reason.NOT_FOUND, f"No gate {id} waits for your vote")
    url = gate_url(server, gate["session"], id)
    detail = (
        "Only a person's own connection that shows forms decides here; decide it at "
        f"{url} or with `accord approve {id}`"
    )
    return Refused(Reason.FORBIDDEN, detail, {"url": url})
