"""Tools: an agent proposes, people decide, the agent runs exactly what was granted."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.authority import May
from accord.core.kernel.limits import reached
from accord.core.kernel.log import (
    Ask,
    Body,
    Deciders,
    Event,
    Evolvers,
    Fact,
    Failure,
    Record,
    Say,
    stay,
)
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.rulings import Ran
from accord.core.room import decisions, gates, grants, guards, interrupts, votes, waiting, witness
from accord.core.room.fields import Id, Ids, Number, Short, Text
from accord.core.room.grants import ToolExecute
from accord.core.room.naming import called
from accord.core.room.past import outcome
from accord.core.room.places import check_place
from accord.core.room.prompts import PromptSubmit
from accord.core.room.state import Category, Grant, Risk, Room, Tool
from accord.core.room.waiting import ToolReject

# Outcomes after which the answer to any use is GATE_FAILED; everything else is a wrong state.
DEAD = ("rejected", "timed out", "expired")
LONGEST_VALUE = 32


class ToolPropose(Body, frozen=True, omit_defaults=True, gc=False):
    """Say what one wants to run."""

    type = "tool.propose"
    needs = May.ACT
    scoped = True

    tool_name: Annotated[str, Meta(min_length=1, max_length=256)]
    arguments: dict[str, Any]
    agent: Id
    risk_level: Risk
    description: Short
    requires_approval: bool
    category: Category
    suggested_approvers: Ids | None = None

    def claims(self) -> Iterator[str]:
        """An agent proposes for itself."""
        yield self.agent

    def repeats(self, said: Body) -> bool:
        """`requires_approval` is the server's to set, so it does not tell two asks apart."""
        return isinstance(said, ToolPropose) and self == replace(
            said, requires_approval=self.requires_approval
        )


class ToolApprove(Body, frozen=True, omit_defaults=True, gc=False):
    """Vote yes on the gate of a proposal (OPEN-20)."""

    type = "tool.approve"
    needs = May.APPROVE
    scoped = True
    while_paused = True

    tool_proposal: Id
    approver: Id
    comment: Short | None = None

    def claims(self) -> Iterator[str]:
        """Everybody votes for themselves."""
        yield self.approver


class ToolOutput(Body, frozen=True, omit_defaults=True, gc=False):
    """What a running tool prints."""

    type = "tool.output"
    needs = May.ACT
    scoped = True

    tool_proposal: Id
    stream: Literal["stdout", "stderr"]
    text: Text
    complete: bool
    grant: Grant | Id | None = None


class ToolResult(Body, frozen=True, omit_defaults=True, gc=False):
    """How it ended."""

    type = "tool.result"
    needs = May.ACT
    scoped = True

    tool_proposal: Id
    success: bool
    duration_ms: Number
    result: Any = None
    error: Text | None = None
    grant: Grant | Id | None = None
    metadata: dict[str, Any] | None = None


class ToolProposed(Event, frozen=True, kw_only=True, gc=False):
    """An agent said what it wants to run."""

    name = "tool.proposed"

    said: ToolPropose


class ToolStarted(Event, frozen=True, kw_only=True, gc=False):
    """The agent used its grant; told to it alone, the room has heard the server say so."""

    name = "tool.started"

    said: ToolExecute


class ToolPrinted(Event, frozen=True, kw_only=True, gc=False):
    """A tool printed something."""

    name = "tool.printed"

    said: ToolOutput


class ToolFinished(Event, frozen=True, kw_only=True, gc=False):
    """A tool is done."""

    name = "tool.finished"

    said: ToolResult


class ToolExpired(Event, frozen=True, kw_only=True, gc=False):
    """A grant ran out before a result came."""

    name = "tool.expired"

    tool: str


def needs_gate(room: Room, body: ToolPropose) -> bool:
    """OPEN-21: config, category, risk or the agent itself can ask for a gate; none can lift it."""
    listed, kinds = (
        frozenset(room.rules.require_approval_for),
        called(body.tool_name, body.category),
    )
    by_config = Category.ALL in listed | kinds or bool(listed & kinds)
    by_risk = body.risk_level in gates.ALWAYS_GATED
    return by_config or by_risk or body.requires_approval


def propose(room: Room, ask: Ask, body: ToolPropose) -> Iterator[Fact]:
    """The proposal first, then its gate or, where none is needed, its grant."""
    interrupts.check_free(room, ask.actor.seat)
    if not body.tool_name.isprintable():
        raise Refused(Why.MALFORMED, "tool_name has characters that cannot be shown")
    check_allowed(ask, body)
    grants.canonical(body.tool_name, body.arguments, room.id, ask.message.id, "")
    if len(room.tools) >= (most := ask.house.limits.tools):
        raise reached("tools", most, f"{most} proposals are open; finish one first")
    tool = tool_of(ask.message.id, body, ask.message.ref, ask.message.fork)
    kinds = called(body.tool_name, body.category)
    waiting.check_link(body.arguments)
    guards.check(room, tool, kinds)
    waits = waiting.objection(room, tool)
    gated = needs_gate(room, body) or waiting.bound(tool) is not None
    yield ToolProposed(said=replace(body, requires_approval=gated))
    if waits is not None:
        return  # nobody is asked before the decision allows it
    if gated:
        yield gates.for_tool(room, ask, tool, kinds)
    else:
        yield from grants.clear(room, ask, tool, ())


def check_allowed(ask: Ask, body: ToolPropose) -> None:
    """A prompt may name the tools its answer is allowed (OPEN-43)."""
    cited = ask.known.get(ask.message.ref or "")
    prompt = cited.said if cited else None
    if not isinstance(prompt, PromptSubmit) or prompt.config is None:
        return
    allowed = prompt.config.tools_allowed
    if allowed is not None and body.tool_name not in allowed:
        detail = f"The prompt allows {', '.join(allowed) or 'no tools'}; {body.tool_name} is not it"
        raise Refused(Why.WRONG_STATE, detail)


def tool_of(id: str, body: ToolPropose, prompt: str | None, fork: str | None = None) -> Tool:
    """A proposal as the room keeps it."""
    return Tool(
        id=id,
        agent=body.agent,
        name=body.tool_name,
        category=body.category,
        risk=body.risk_level,
        description=body.description,
        arguments=body.arguments,
        prompt=prompt,
        fork=fork,
    )


def approve(room: Room, ask: Ask, body: ToolApprove) -> Iterator[Fact]:
    """A vote by the proposal's id."""
    return votes.vote_yes(room, ask, body, gates.find(room, ask, body.tool_proposal))


def reject(room: Room, ask: Ask, body: ToolReject) -> Iterator[Fact]:
    """A veto by the proposal's id; what waits for a decision is let go by it."""
    tool = next((each for each in waiting.held(room) if each.id == body.tool_proposal), None)
    if tool is None or ask.actor.seat not in room.seats(tool.fork):
        yield from votes.vote_no(room, ask, body, gates.find(room, ask, body.tool_proposal))
        return
    check_place(ask, tool.id, tool.fork)
    if tool.agent != ask.actor.seat and May.APPROVE not in room.members[ask.actor.seat].may:
        raise Refused(Why.FORBIDDEN, "Whoever proposed it or may approve can let it go")
    yield waiting.ToolDropped(said=body, ref=tool.id, fork=tool.fork)


def granted(room: Room, ask: Ask, proposal: str, shown: Grant | str | None) -> Tool:
    """The sender's tool, if its grant is live and is the one shown."""
    tool = room.tools.get(proposal)
    if tool is None or ask.actor.seat not in room.seats(tool.fork):
        raise gone(room, ask, proposal)
    check_place(ask, proposal, tool.fork)
    if tool.agent != ask.actor.seat:
        raise Refused(Why.FORBIDDEN, f"{proposal} was proposed by {tool.agent}")
    if tool.grant is None or tool.expires_at is None:
        raise Refused(Why.WRONG_STATE, f"{proposal} is not approved yet")
    if tool.expires_at <= ask.at:
        raise Refused(Why.GATE_FAILED, f"The grant for {proposal} expired; propose again")
    if shown is not None and shown not in (tool.grant, tool.grant.id):
        raise Refused(Why.GATE_FAILED, f"That is not the grant that {proposal} was given")
    return tool


def gone(room: Room, ask: Ask, proposal: str) -> Refused:
    """Why a proposal cannot be used any more."""
    ended = outcome(room, proposal, ask.actor.seat)
    if ended is None:
        return Refused(Why.UNKNOWN, f"There is no open proposal {proposal}")
    if ended.startswith(DEAD):
        return Refused(Why.GATE_FAILED, f"{proposal} was {ended}; propose again under a new id")
    return Refused(Why.WRONG_STATE, f"{proposal} is over: {ended}")


def execute(room: Room, ask: Ask, body: ToolExecute) -> Iterator[Fact]:
    """The agent begins; a grant is used once (OPEN-22)."""
    tool = granted(room, ask, body.tool_proposal, body.grant)
    if tool.started:
        raise Refused(Why.WRONG_STATE, f"The grant for {tool.id} was used already")
    if (why := waiting.hindrance(room, tool)) is not None:
        raise Refused(Why.WRONG_STATE, f"The decision it is bound to holds it: {why}")
    # Who approved it is the server's to say, and it has.
    said = replace(body, approved_by=())
    interrupts.check_free(room, tool.agent)
    yield ToolStarted(said=said, to=frozenset({tool.agent}), ref=tool.id, fork=tool.fork)


def output(room: Room, ask: Ask, body: ToolOutput) -> Iterable[Fact]:
    """Output under a live grant."""
    tool = granted(room, ask, body.tool_proposal, body.grant)
    return (ToolPrinted(said=body, fork=tool.fork),)


def result(room: Room, ask: Ask, body: ToolResult) -> Iterator[Fact]:
    """The end, under a live grant."""
    tool = granted(room, ask, body.tool_proposal, body.grant)
    yield ToolFinished(said=body, fork=tool.fork)
    yield from decisions.ran(room, ask, tool, went(body))


def went(said: ToolResult) -> Ran:
    """A result as a decision hears it: words, and what was measured or kept it from running."""
    value = said.result.get("value") if isinstance(said.result, dict) else said.result
    measured = isinstance(value, int | float) and not isinstance(value, bool)
    fault = (said.metadata or {}).get("fault")
    return Ran(
        item="",
        step="",
        success=said.success,
        words=said.error or str(said.result or ""),
        value=str(value)[:LONGEST_VALUE] if measured else "",
        fault=fault if isinstance(fault, str) else "",
    )


def overdue(room: Room, ask: Ask) -> Iterator[Fact]:
    """Grants that ran out."""
    for tool in room.tools.values():
        if tool.expires_at is not None and tool.expires_at <= ask.at:
            yield ToolExpired(tool=tool.id, fork=tool.fork)
            news = Failure(Why.GATE_FAILED, "Its grant expired before a result came", tool.id)
            yield Say(news, None if tool.fork is None else room.seats(tool.fork))


def on_proposed(room: Room, event: ToolProposed, record: Record) -> Room:
    """One more open proposal."""
    tool = tool_of(record.id, event.said, record.ref, record.fork)
    return replace(room, tools={**room.tools, tool.id: tool})


def on_started(room: Room, event: ToolStarted, record: Record) -> Room:
    """Its grant is used."""
    tool = room.tools.get(event.said.tool_proposal)
    if tool is None:
        return room
    return replace(room, tools={**room.tools, tool.id: replace(tool, started=True)})


def on_finished(room: Room, event: ToolFinished, record: Record) -> Room:
    """Done, well or badly; a step of a decision that went well can be cited for a while."""
    if event.said.success:
        room = witness.seen(room, event.said.tool_proposal)
    return grants.over(room, "finished", event.said.tool_proposal)


def on_expired(room: Room, event: ToolExpired, record: Record) -> Room:
    """Too late."""
    return grants.over(room, "expired", event.tool)


DECIDE: Deciders = {
    ToolPropose: propose,
    ToolApprove: approve,
    ToolReject: reject,
    ToolExecute: execute,
    ToolOutput: output,
    ToolResult: result,
}
EVOLVE: Evolvers = {
    **waiting.EVOLVE,
    ToolProposed: on_proposed,
    ToolStarted: on_started,
    ToolPrinted: stay,
    ToolFinished: on_finished,
    ToolExpired: on_expired,
}
