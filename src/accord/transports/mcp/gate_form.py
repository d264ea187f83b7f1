"""A gate as a form that the person at an MCP client answers, and the answer as a vote.

Only on a connection whose token is that person's own: what the person at an agent's host answers
comes with the agent's credential, and an agent never votes.
"""

import json
from collections.abc import Mapping
from typing import Any

from accord.core.attention.waking.prompt import quoted
from accord.core.kernel.role_permissions import Kind
from accord.transports.http.auth import Caller

# A call that does not fit is decided where all of it can be read.
MAX_SHOWN_BYTES = 4000
MAX_COMMENT_CHARS = 500
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "title": "Decision", "enum": ["approve", "reject"]},
        "comment": {"type": "string", "title": "Comment", "maxLength": MAX_COMMENT_CHARS},
    },
    "required": ["decision"],
}


def is_own_connection(caller: Caller) -> bool:
    """Whether the credential is a person's; without credentials nothing proves who answers."""
    return caller.identity is not None and caller.actor.kind is Kind.HUMAN


def form_message(gate: Mapping[str, Any]) -> str | None:
    """What the person reads; None if it does not show everything that would run."""
    action = gate["action"]
    if action is None or action.get("arguments_omitted"):
        return None
    call = json.dumps({action["tool_name"]: action["arguments"]}, indent=1)
    if len(call) > MAX_SHOWN_BYTES:
        return None
    # As JSON in ASCII: nothing invisible, nothing that looks like another line of ours.
    lines = [
        f"{gate['initiator']} asks to run this in the session {gate['session']}:",
        *(f"> {line}" for line in call.splitlines()),
        "and describes it so (its own words, which approve nothing):",
        quoted(action["description"], MAX_SHOWN_BYTES),
    ]
    return "\n".join(lines)


def vote(gate: Mapping[str, Any], voter: str, content: Mapping[str, Any]) -> dict[str, Any] | None:
    """The envelope of the answer; None if it is no decision."""
    given = content.get("comment")
    comment = given[:MAX_COMMENT_CHARS] if isinstance(given, str) else ""
    about = {"session": gate["session"], "fork": gate["fork"], "ref": gate["id"]}
    match content.get("decision"):
        case "approve":
            said = {"gate": gate["id"], "approver": voter, "comment": comment or None}
            return {**about, "type": "gate.approve", "payload": said}
        case "reject":
            said = {"gate": gate["id"], "rejector": voter, "reason": comment or "Rejected"}
            return {**about, "type": "gate.reject", "payload": said}
        case _:
            return None
