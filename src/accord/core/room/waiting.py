"""Proposals bound to a decision: what they are a step of, what holds them, how they are let go."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from accord.core.kernel.authority import May
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Body, Event, Evolvers, Fact, Failure, Record, Say
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.rulings import Finding
from accord.core.room import grants
from accord.core.room.fields import Id, Short
from accord.core.room.places import scope_of
from accord.core.room.state import Room, Tool

PREFIX = "decision:"
SNAPSHOT, CONVERGENCE = "#snapshot", "#convergence"
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolReject(Body, frozen=True, omit_defaults=True, gc=False):
    """Vote no on the gate of a proposal."""

    type = "tool.reject"
    needs = May.TAKE_PART
    scoped = True
    while_paused = True

    tool_proposal: Id
    rejector: Id
    reason: Short
    suggestion: Short | None = None

    def claims(self) -> Iterator[str]:
        """Everybody votes for themselves."""
        yield self.rejector


class Bound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`arguments.decision` of a proposal: the step of an item that it is."""

    batch: str
    item: str
    step: str


class Standing(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the kernel says of a step that people are asked about; only the server says it."""

    batch: Short
    item: Short
    step: Short
    verdict: Short
    state: Short
    confidence: Short
    sha256: Short
    convergence: Short | None = None


class Hold(msgspec.Struct, frozen=True):
    """Why nobody is asked about a proposal yet, and what would change that."""

    batch: str
    item: str
    step: str
    why: str
    until: str

    @property
    def sentence(self) -> str:
        """For whoever asks about it all the same."""
        return f"is held by the decision {self.batch}: {self.why} {self.until}"


class ToolDropped(Event, frozen=True, kw_only=True, gc=False):
    """A proposal was let go before anybody was asked about it."""

    name = "tool.dropped"

    said: ToolReject


def bound(tool: Tool) -> Bound | None:
    """The step that a proposal says it is."""
    return linked(tool.arguments)


def linked(arguments: Mapping[str, Any]) -> Bound | None:
    """The binding in a proposal's arguments."""
    try:
        return msgspec.convert(arguments.get("decision"), Bound)
    except msgspec.ValidationError:
        return None


def check_link(arguments: Mapping[str, Any]) -> None:
    """Refuse what looks like a binding and is none: it would go round the decision."""
    if "decision" not in arguments:
        return
    try:
        msgspec.convert(arguments["decision"], Bound)
    except msgspec.ValidationError as error:
        detail = "arguments.decision names the batch, the item and the step, each as text"
        raise Refused(
            Why.MALFORMED, f"{detail}; without it the proposal is bound to none: {error}"
        ) from error


def told(room: Room, fork: str | None, key: str) -> Mapping[str, Any] | None:
    """What the server keeps under a key."""
    item = room.shelf.get(scope_of(fork), {}).get(key)
    mine = item is not None and item.author == SYSTEM and isinstance(item.content, dict)
    return item.content if mine and item is not None and isinstance(item.content, dict) else None


def finding(room: Room, fork: str | None, link: Bound) -> Finding:
    """What the kernel says of an item; raises Refused where it has said nothing."""
    said = told(room, fork, f"{PREFIX}{link.batch}{SNAPSHOT}")
    # Nobody's judgement alone is the decision, so a step is not bound to one.
    if said is None or not NAME.fullmatch(link.batch):
        raise Refused(Why.UNKNOWN, f"There is no decision {link.batch} here")
    if link.item not in said["items"]:
        raise Refused(Why.UNKNOWN, f"The decision {link.batch} has no item {link.item}")
    return msgspec.convert(said["items"][link.item], Finding)


def objection(room: Room, tool: Tool) -> str | None:
    """Why a bound proposal has to wait; None where nothing holds it."""
    link = bound(tool)
    if link is None:
        return None
    found = finding(room, tool.fork, link)
    if link.item in divided(room, tool.fork, link.batch):
        return f"Independent judgements of {link.item} are far apart; settle that first"
    return None if found.allowed == link.step else found.why


def hindrance(room: Room, tool: Tool) -> str | None:
    """As `objection`; a decision that is gone holds what was bound to it, too."""
    try:
        return objection(room, tool)
    except Refused as no:
        return no.detail


def divided(room: Room, fork: str | None, batch: str) -> frozenset[str]:
    """Items that independent judgements see too differently for anything to be run."""
    said = told(room, fork, f"{PREFIX}{batch}{CONVERGENCE}")
    return frozenset(row["item"] for row in said["items"] if row["holds"]) if said else frozenset()


def stands(room: Room, tool: Tool) -> Standing | None:
    """For those who vote: what the kernel says of it now; nothing where it is not bound."""
    link = bound(tool)
    said = told(room, tool.fork, f"{PREFIX}{link.batch}{SNAPSHOT}") if link else None
    if link is None or said is None or link.item not in said["items"]:
        return None
    found = finding(room, tool.fork, link)
    return Standing(
        **msgspec.structs.asdict(link),
        verdict=found.verdict,
        state=found.state,
        confidence=found.confidence,
        sha256=said["sha256"],
        convergence=agreement(room, tool.fork, link),
    )


def agreement(room: Room, fork: str | None, link: Bound) -> str | None:
    """How far independent judgements of an item agree, where there are several."""
    said = told(room, fork, f"{PREFIX}{link.batch}{CONVERGENCE}")
    rows = said["items"] if said else ()
    return next((row["kind"] for row in rows if row["item"] == link.item), None)


def hold(room: Room, tool: Tool) -> Hold | None:
    """What holds a proposal that nobody is asked about; None where nothing does."""
    link, why = bound(tool), hindrance(room, tool)
    if link is None or why is None or tool.started:
        return None
    return Hold(
        **msgspec.structs.asdict(link), why=why.rstrip(".") + ".", until=until(room, tool, link)
    )


def until(room: Room, tool: Tool, link: Bound) -> str:
    """What would free a proposal, as a sentence."""
    try:
        found = finding(room, tool.fork, link)
    except Refused:
        return f"Put {PREFIX}{link.batch} with {link.item} there again, or let the proposal go."
    if link.item in divided(room, tool.fork, link.batch):
        return f"Those who judged {link.item} apart change their judgements, or people remove one."
    first = f", and {found.next} comes first" if found.next not in ("", link.step) else ""
    return f"People are asked once the rules allow {link.step}{first}."


def held(room: Room) -> Iterable[Tool]:
    """Proposals that nobody is asked about yet."""
    asked = {gate.action for gate in room.gates.values()}
    return (t for t in room.tools.values() if t.grant is None and t.id not in asked)


def withdrawn(room: Room, seat: str, reason: str) -> Iterator[Fact]:
    """What somebody who is gone had waiting is let go by the server."""
    for tool in held(room):
        if tool.agent == seat:
            said = ToolReject(tool_proposal=tool.id, rejector=SYSTEM, reason=reason)
            yield ToolDropped(said=said, ref=tool.id, fork=tool.fork)
            news = Failure(Why.GATE_FAILED, reason, tool.id)
            yield Say(news, None if tool.fork is None else room.seats(tool.fork))


def on_dropped(room: Room, event: ToolDropped, record: Record) -> Room:
    """One proposal less."""
    return grants.over(room, "rejected", event.said.tool_proposal)


EVOLVE: Evolvers = {ToolDropped: on_dropped}
