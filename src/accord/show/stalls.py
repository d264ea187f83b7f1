"""What does not go on by itself, as text."""

from collections.abc import Iterator
from typing import Any

from accord.show.foreign_json import as_text
from accord.show.gate_card import names_in, person, render_held, tool_label
from accord.show.text import join_words, one_line, wrap

HEADING_WIDTH = len("Stopped  ")
# The heading of each kind, what happened, and what helps.
STALLS = {
    "interrupt_unanswered": ("Waits", "{who} did not confirm an interrupt yet, in {session}"),
    "agent_stopped": ("Stopped", "{who} does nothing until the next prompt, in {session}"),
    "agent_failed": (
        "Failed",
        "the last answer of {who} ended with an error, in {session}; a new prompt starts again",
    ),
    "agent_away": ("Away", "{who} may run {tool} and is not connected, in {session}"),
    "session_paused": (
        "Paused",
        "{session} waits for members who are away; `accord session show {id}` lists them",
    ),
}


def render_stall(stall: dict[str, Any], session: str) -> Iterator[str]:
    """The lines about one stall; a newer server may send kinds that are not known here."""
    kind, proposal = as_text(stall["kind"]), stall["proposal"]
    if kind == "proposal_held":
        yield from render_held(proposal, "Held".ljust(HEADING_WIDTH))
        return
    heading, sentence = STALLS.get(kind, ("Stalled", "{kind}: {who}, in {session}"))
    who = join_words(person(agent, names_in(stall)) for agent in stall["agents"])
    tool = tool_label(proposal["tool_name"]) if proposal else ""
    id = one_line(as_text(stall["session"]))
    text = sentence.format(kind=one_line(kind), who=who, tool=tool, session=session, id=id)
    first, *more = wrap(text, " " * HEADING_WIDTH)
    yield f"{heading.ljust(HEADING_WIDTH)}{first.lstrip()}"
    yield from more
