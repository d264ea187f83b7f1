"""A gate as a card: what would run, who asks, who has voted, who is still needed, until when."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from accord.show import style
from accord.show.card import Card
from accord.show.columns import cut
from accord.show.foreign_json import as_object, as_text, as_texts
from accord.show.proposed_call import call_lines
from accord.show.text import (
    describe_missing,
    describe_quorum,
    describe_verdict,
    format_duration,
    join_words,
    local_time,
    one_line,
    wrap,
)

RISK_STYLES: dict[str, style.Style] = {
    "high": style.red,
    "critical": style.red,
    "medium": style.yellow,
}
INDENT = "  "
# The columns of the table that compares judgements.
CONVERGENCE_MEASURES = (
    ("VA", "1 if the verdicts are the same"),
    ("GA", "1 if the same blocker is named"),
    ("SO", "share of the steps that all name, from 0 to 1"),
    ("CD", "difference in confidence, from 0 to 3"),
)
QUORUM_UNREACHABLE = (
    "The present members cannot give these approvals; a member who can must join the session"
)
PLAIN_TOOL_NAME = re.compile(r"[\w./:@-]{1,64}", re.ASCII)
MAX_CALL_LINES = 40
MAX_NAME_COLUMNS = 40
MAX_NAMED_VOTERS = 6
FULL_FLAG = "`accord gates --full`"
OMITTED = "The arguments are too large for a list; `accord session show` has them"
Gate = dict[str, Any]


def person(id: Any, people: dict[str, Any]) -> str:
    """The id, and beside it the name that its owner chose."""
    shown, name = one_line(as_text(id)), one_line(as_text(people.get(as_text(id))))
    return f"{shown} ({cut(name, MAX_NAME_COLUMNS)})" if name and name != shown else shown


def names_in(entry: Gate) -> dict[str, Any]:
    """The names of the ids in a gate or stall; an older server sends none."""
    return as_object(entry.get("people"))


def render_gate(gate: Gate, session: str = "", *, full: bool = False) -> Iterator[str]:
    """The lines of the card; `full` shows all of what would run."""
    voted = gate.get("my_vote") is not None
    card = Card(style.dim if voted else style.yellow)
    action = gate.get("action")
    yield from card.line(gate_subject(gate), style.bold)
    if place := place_of(gate, session):
        yield from card.line(place)
    for line in ruling_lines(action or {}):
        yield from card.line(line, str, card.glyphs.ruling)
    if action:
        yield from action_lines(card, action, full=full)
    elif gate["request"]["message"]:
        yield from card.prose(as_text(gate["request"]["message"]))
    yield from vote_lines(card, gate)
    yield from card.line(time_left(gate))
    yield from card.line(as_text(gate["id"]), style.dim)


def action_lines(card: Card, action: Gate, *, full: bool) -> Iterator[str]:
    """What would run, and what its proposer says about it."""
    if action.get("arguments_omitted"):
        yield from card.line(OMITTED, style.yellow)
    else:
        max_lines = None if full else MAX_CALL_LINES
        yield from card.listing(call_lines(action["arguments"]), max_lines, FULL_FLAG)
    if action["description"]:
        yield from card.prose(as_text(action["description"]))
    yield from card.line(
        class_sentence(action), RISK_STYLES.get(as_text(action["risk_level"]), str)
    )


def class_sentence(action: Gate) -> str:
    """`high risk, deploy: found by the server by the signed policy: git push sends commits …`."""
    risk, category = one_line(as_text(action["risk_level"])), one_line(as_text(action["category"]))
    who = one_line(as_text(action["agent"]))
    computed = as_object(action.get("computed"))
    if not computed:
        return f"{risk} risk, {category}: claimed by {who}, not checked by the server"
    source = (
        "the signed policy" if computed.get("policy") else "built-in rules, no policy is signed"
    )
    found = f"{risk} risk, {category}: found by the server by {source}"
    why = one_line(as_text(computed.get("explanation")))
    raised = (computed.get("risk_level"), computed.get("category")) != (
        action["risk_level"],
        action["category"],
    )
    claim = f"; raised by what {who} claims" if raised else ""
    return f"{found}{claim}: {why}"


def vote_lines(card: Card, gate: Gate) -> Iterator[str]:
    """Who has approved, and whose approval is still needed."""
    people, approvals = names_in(gate), as_texts(gate["approvals"])
    if approvals:
        standing = as_texts(gate.get("standing"))
        voters = join_words(voter(id, people, standing) for id in approvals)
        yield from card.line(f"approved by {voters}", style.green, card.glyphs.done)
    yield from card.line(f"needs {needed_approvals(gate)}", str, card.glyphs.open)
    if any(not lack["possible"] for lack in gate.get("lacks", ())):
        yield from card.line(QUORUM_UNREACHABLE, style.yellow)


def voter(id: str, people: dict[str, Any], standing: list[str]) -> str:
    """A member who approved, and whether only a standing grant did so for them."""
    return f"{person(id, people)}{' (standing grant)' if id in standing else ''}"


def needed_approvals(gate: Gate) -> str:
    """`1 more approval (1 of 2 so far); bob and carol may approve`."""
    got, needed = gate["approvals_received"], gate["approvals_required"]
    approvals, lacks = as_texts(gate["approvals"]), gate.get("lacks", ())
    rule = gate["request"]["quorum"]
    missing = describe_missing(lacks, approvals) if approvals and lacks else describe_quorum(rule)
    progress = f" ({got} of {needed} so far)" if needed > 1 or got else ""
    return f"{missing}{progress}{voters_sentence(gate)}"


def voters_sentence(gate: Gate) -> str:
    """`; bob and carol may approve`: whose approval could still help."""
    people, ids = names_in(gate), as_texts(gate.get("waits_for"))
    if not ids or as_object(gate["request"]["quorum"]).get("type") == "specific":
        return ""
    names = [person(id, people) for id in ids[:MAX_NAMED_VOTERS]]
    more = [f"{len(ids) - len(names)} others"] if len(ids) > len(names) else []
    return f"; {join_words([*names, *more])} may approve"


def place_of(entry: Gate, session: str = "") -> str:
    """`in Fix the parser, fork Try`."""
    fork = entry.get("fork_name") or entry.get("fork")
    where = [f"in {one_line(session)}"] if session else []
    return ", ".join([*where, *([f"fork {one_line(as_text(fork))}"] if fork else [])])


def ruling_lines(action: Gate) -> Iterator[str]:
    """The verdict on a proposal's decision item, and how far the judges agree."""
    if ruling := action.get("decision"):
        yield one_line(describe_verdict(ruling))
        yield from map(one_line, convergence_rows(ruling))
    if held := action.get("held"):
        yield f"held: {one_line(held['why'])} {one_line(held['until'])}"


def convergence_rows(ruling: dict[str, Any]) -> Iterator[str]:
    """The heading and those rows of the comparison table that are about the item."""
    rows = [row for row in ruling.get("table", "").split("\n") if row.startswith("|")]
    item_rows = [row for row in rows[2:] if row.split("|")[1].strip() == ruling["item"]]
    if item_rows:
        yield f"judged by {join_words(ruling['judges'])}"
        yield from (*rows[:1], *item_rows)
        yield from (f"{name}: {meaning}" for name, meaning in CONVERGENCE_MEASURES)


def gate_subject(gate: Gate) -> str:
    """`claude wants to run shell`."""
    action, who = gate.get("action"), person(gate["initiator"], names_in(gate))
    if action:
        return f"{who} wants to run {tool_label(action['tool_name'])}"
    return f"{who} asks about: {one_line(as_text(gate['request']['action_type']))}"


def tool_label(name: Any) -> str:
    """The tool's name, quoted and cut if it does not look like one."""
    text = one_line(as_text(name))
    return text if PLAIN_TOOL_NAME.fullmatch(text) else f'"{cut(text, MAX_NAME_COLUMNS)}"'


def time_left(gate: Gate) -> str:
    """`23 h 59 min left, until 14:07`."""
    if gate["expires_at"] is None:
        return "no time limit"
    until = local_time(gate["expires_at"])
    seconds = (until - datetime.now(until.tzinfo)).total_seconds()
    if seconds <= 0:
        return "time is up"
    return f"{format_duration(int(seconds))} left, until {clock_time(gate['expires_at'])}"


def clock_time(ts: str) -> str:
    """`14:07`, with the day unless it is today."""
    moment = local_time(ts)
    today = datetime.now(moment.tzinfo).date() == moment.date()
    return f"{moment:%H:%M}" if today else f"{moment:%a %d %b %H:%M}"


# Ended gates

OUTCOMES = {
    "approved": "was approved by {by} at {at}",
    "rejected": "was rejected by {by} at {at}{why}",
    "timed_out": "timed out at {at} without enough approvals",
    "auto_approved": "was approved by its time limit at {at}",
    "escalated": "timed out at {at} and went to the admins",
    "session_ended": "ended with the session at {at}",
}
OTHER_OUTCOME = "ended at {at}"


def describe_ended(ended: Gate) -> str:
    """`shell of claude was approved by alice at 14:07`."""
    people = names_in(ended)
    what = tool_label(ended.get("tool_name") or ended.get("action_type"))
    reason = one_line(as_text(ended.get("reason")))
    outcome = OUTCOMES.get(as_text(ended.get("outcome")), OTHER_OUTCOME).format_map(
        {
            "by": join_words(
                voter(id, people, as_texts(ended.get("standing")))
                for id in as_texts(ended.get("by"))
            ),
            "at": clock_time(as_text(ended.get("ended_at"))),
            "why": f": {reason}" if reason else "",
        }
    )
    later = ", and the approval was taken back" if ended.get("taken_back") is True else ""
    return f"{what} of {person(ended.get('initiator'), people)} {outcome}{later}"


# Held proposals


def held_proposals(session: dict[str, Any]) -> list[dict[str, Any]]:
    """Proposals that a decision holds, so that no gate is open for them yet."""
    gated = {gate["request"]["action_ref"] for gate in session["gates"]}
    return [tool for tool in session["tools"] if tool.get("held") and tool["id"] not in gated]


def render_held(tool: dict[str, Any], heading: str) -> Iterator[str]:
    """The held proposal, the decision that holds it, the reason, and what would release it."""
    hold = tool["held"]
    name, agent = one_line(tool["tool_name"]), one_line(tool["agent"])
    until = f"until the decision {one_line(hold['batch'])} allows {one_line(hold['item'])}"
    yield f"{heading}{name} by {agent}, {until}"
    yield f"{' ' * len(heading)}{style.dim(one_line(tool['id']))}"
    yield from wrap(f"{hold['why']} {hold['until']}", " " * len(heading))
