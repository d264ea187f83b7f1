"""An open gate as a card: what is asked, by whom, how risky, how far it is, how long it stays."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from accord.show import paint
from accord.show.prose import railed
from accord.show.text import count, invocation, line, listed, missing, moment, quorum, span, wrapped

RISKS: dict[str, paint.Paint] = {"high": paint.red, "critical": paint.red, "medium": paint.yellow}
INDENT = "  "
UNREACHABLE = "Those who are in the session cannot meet this; somebody else has to join"


def card(gate: dict[str, Any], session: str = "") -> Iterator[str]:
    """The lines; nothing of what would be run is left out."""
    action = gate.get("action")
    yield f"{paint.yellow('●')} {paint.bold(subject(gate))}  {paint.dim(line(session))}".rstrip()
    yield f"{INDENT}{paint.dim(line(gate['id']))}"
    if action:
        risk = RISKS.get(action["risk_level"], str)(f"{line(action['risk_level'])} risk")
        yield f"{INDENT}{line(action['category'])}, {risk}"
        if action["description"]:
            yield from wrapped(action["description"], INDENT)
        yield from railed(invocation(action["arguments"]), indent=INDENT)
    elif gate["request"]["message"]:
        yield from wrapped(gate["request"]["message"], INDENT)
    yield f"{INDENT}{progress(gate)}"
    if any(not each["possible"] for each in gate.get("lacks", ())):
        yield f"{INDENT}{paint.yellow(UNREACHABLE)}"
    yield f"{INDENT}{left(gate)}"


def subject(gate: dict[str, Any]) -> str:
    """Who wants what."""
    action, who = gate.get("action"), line(gate["initiator"])
    what = f"run {line(action['tool_name'])}" if action else line(gate["request"]["action_type"])
    return f"{who} wants to {what}" if action else f"{who} asks about: {what}"


def progress(gate: dict[str, Any]) -> str:
    """How many have agreed, of how many."""
    got, needed = gate["approvals_received"], gate["approvals_required"]
    by = f" ({listed(map(line, gate['approvals']))})" if gate["approvals"] else ""
    rule, lacks = gate["request"]["quorum"], gate.get("lacks", ())
    far = f"{got} of {count(needed, 'approval')}" if got < needed else count(got, "approval")
    if rule.get("type") == "any":
        return f"{far}{by}"
    if not (gate["approvals"] and lacks):
        return f"{far}{by}; needs {quorum(rule)}"
    return f"{far}{by}; still needs {missing(lacks, gate['approvals'])}"


def left(gate: dict[str, Any]) -> str:
    """How long it stays open."""
    if gate["expires_at"] is None:
        return "no time limit"
    until = moment(gate["expires_at"])
    seconds = (until - datetime.now(until.tzinfo)).total_seconds()
    return f"{span(int(seconds))} left" if seconds > 0 else "time is up"
