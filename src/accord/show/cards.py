"""An open gate as a card: what is asked, by whom, how risky, how far it is, how long it stays."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from accord.show import paint
from accord.show.prose import railed
from accord.show.text import (
    count,
    invocation,
    line,
    listed,
    missing,
    moment,
    quorum,
    span,
    standing,
    wrapped,
)

RISKS: dict[str, paint.Paint] = {"high": paint.red, "critical": paint.red, "medium": paint.yellow}
INDENT = "  "
RULE = "◆ "  # what the rules say stands at the margin, where no words of others can
# The columns in which judgements are compared.
MEASURES = (
    ("VA", "1 where the verdicts are the same"),
    ("GA", "1 where what holds it back is the same"),
    ("SO", "the part of the steps that all have, from 0 to 1"),
    ("CD", "how far apart they are in confidence, from 0 to 3"),
)
UNREACHABLE = "Those who are in the session cannot meet this; somebody else has to join"


def card(gate: dict[str, Any], session: str = "") -> Iterator[str]:
    """The lines; nothing of what would be run is left out."""
    action = gate.get("action")
    yield f"{paint.yellow('●')} {paint.bold(subject(gate))}  {paint.dim(line(session))}".rstrip()
    yield f"{INDENT}{paint.dim(line(gate['id']))}"
    yield from ruled(action or {})
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


def ruled(action: dict[str, Any]) -> Iterator[str]:
    """What the decision says that a proposal is bound to, and how far its judges agree."""
    if said := action.get("decision"):
        yield f"{RULE}{line(standing(said))}"
        yield from (f"{RULE}{line(row)}" for row in compared(said))
    if held := action.get("held"):
        yield f"{RULE}{paint.red('held:')} {line(held['why'])} {line(held['until'])}"


def compared(said: dict[str, Any]) -> Iterator[str]:
    """The rows of the table that are about the item, under their heading."""
    rows = [row for row in said.get("table", "").split("\n") if row.startswith("|")]
    mine = [row for row in rows[2:] if row.split("|")[1].strip() == said["item"]]
    if mine:
        yield f"judged by {listed(said['judges'])}"
        yield from (*rows[:1], *mine)
        yield from (f"{name}: {meaning}" for name, meaning in MEASURES)


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


def held(session: dict[str, Any]) -> list[dict[str, Any]]:
    """Proposals of a session that nobody is asked about, because a decision holds them."""
    asked = {gate["request"]["action_ref"] for gate in session["gates"]}
    return [tool for tool in session["tools"] if tool.get("held") and tool["id"] not in asked]


def waits(tool: dict[str, Any], heading: str) -> Iterator[str]:
    """What waits, for which decision, why, and what would free it."""
    hold = tool["held"]
    name, agent = line(tool["tool_name"]), line(tool["agent"])
    until = f"until the decision {line(hold['batch'])} allows {line(hold['item'])}"
    yield f"{heading}{name} by {agent}, {until}"
    yield f"{' ' * len(heading)}{paint.dim(line(tool['id']))}"
    yield from wrapped(f"{hold['why']} {hold['until']}", " " * len(heading))
