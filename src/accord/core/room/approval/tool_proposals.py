"""Tools: an agent proposes a call, humans approve it, the agent runs exactly what was granted."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.decision_port import StepResult
from accord.core.kernel.effects import Relay
from accord.core.kernel.limits import limit_exceeded
from accord.core.kernel.messages import Body, Failure
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission
from accord.core.room import admission
from accord.core.room.approval import computed_class, gates, grants, standing_grants, votes
from accord.core.room.approval.gates import possible_categories
from accord.core.room.approval.grants import ToolExecute, ToolReject
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.decisions import decision_binding, rulings
from accord.core.room.field_types import Id, Ids, SafeInt, ShortText, Text
from accord.core.room.room_settings import Category
from accord.core.room.state import ComputedClass, Grant, Risk, Room, ToolProposal, without_keys
from accord.core.room.visibility import check_same_fork, outcome_of

# Using a proposal that ended so is refused with GATE_FAILED; any other end is a wrong state.
FAILED_OUTCOMES = ("rejected", "timed out", "expired")
MAX_VALUE_LENGTH = 32
# A token with this label belongs to our executor, whose records of work trees count as evidence.
EXECUTOR_LABEL = "executor"


class ToolPropose(Body, frozen=True, omit_defaults=True, gc=False):
    """Propose a tool call."""

    type = "tool.propose"
    needs = Permission.ACT_AS_AGENT
    forkable = True

    tool_name: Annotated[str, Meta(min_length=1, max_length=256)]
    arguments: dict[str, Any]
    agent: Id
    risk_level: Risk
    description: ShortText
    requires_approval: bool
    category: Category
    suggested_approvers: Ids | None = None
    metadata: dict[str, Any] | None = None

    def claimed_ids(self) -> Iterator[str]:
        yield self.agent

    def is_retry_of(self, said: Body) -> bool:
        """Ignores what the server may have changed: `requires_approval`, and what it computed."""
        if not isinstance(said, ToolPropose):
            return False
        has_class = computed_class.COMPUTED_KEY in (said.metadata or {})
        claim = computed_class.without_computed(said) if has_class else said
        return self == replace(claim, requires_approval=self.requires_approval)


class ToolApprove(Body, frozen=True, omit_defaults=True, gc=False):
    """Vote yes on the gate of a proposal (OPEN-20)."""

    type = "tool.approve"
    needs = Permission.APPROVE
    forkable = True
    while_paused = True

    tool_proposal: Id
    approver: Id
    comment: ShortText | None = None

    def claimed_ids(self) -> Iterator[str]:
        yield self.approver


class ToolOutput(Body, frozen=True, omit_defaults=True, gc=False):
    """Output of a running tool."""

    type = "tool.output"
    needs = Permission.ACT_AS_AGENT
    forkable = True

    tool_proposal: Id
    stream: Literal["stdout", "stderr"]
    text: Text
    complete: bool
    grant: Grant | Id | None = None


class ToolResult(Body, frozen=True, omit_defaults=True, gc=False):
    """The result of a tool."""

    type = "tool.result"
    needs = Permission.ACT_AS_AGENT
    forkable = True

    tool_proposal: Id
    success: bool
    duration_ms: SafeInt
    result: Any = None
    error: Text | None = None
    grant: Grant | Id | None = None
    metadata: dict[str, Any] | None = None

    def is_retry_of(self, said: Body) -> bool:
        """Ignores the mark of a result that came after its grant was taken back."""
        if not isinstance(said, ToolResult):
            return False
        own = without_keys(said.metadata or {}, grants.LATE_KEY) or None
        return self == replace(said, metadata=own) or self == said


class ToolProposed(Event, frozen=True, kw_only=True, gc=False):
    """An agent proposed a tool call."""

    name = "tool.proposed"

    said: ToolPropose
    # Unset, not None: a record without it encodes to the bytes it was stored as.
    computed: ComputedClass | UnsetType = UNSET


class ToolStarted(Event, frozen=True, kw_only=True, gc=False):
    """The agent started the tool; sent to it alone, the room saw the server's `tool.execute`."""

    name = "tool.started"

    said: ToolExecute


class ToolPrinted(Event, frozen=True, kw_only=True, gc=False):
    """A running tool wrote to its output."""

    name = "tool.printed"

    said: ToolOutput


class ToolFinished(Event, frozen=True, kw_only=True, gc=False):
    """A tool finished."""

    name = "tool.finished"

    said: ToolResult
    # Unset, not false: a record without it encodes to the bytes it was stored as.
    by_executor: bool | UnsetType = UNSET


class ToolRanLate(Event, frozen=True, kw_only=True, gc=False):
    """A tool reported a result although its grant was taken back; it covers nothing."""

    name = "tool.ran_late"

    said: ToolResult


class ToolExpired(Event, frozen=True, kw_only=True, gc=False):
    """A grant expired before the tool's result arrived."""

    name = "tool.expired"

    tool: str


def needs_gate(
    room: Room, body: ToolPropose, tool: ToolProposal, categories: frozenset[Category]
) -> bool:
    """OPEN-21: settings, category, risk or the agent can each require a gate; none can waive it."""
    configured = frozenset(room.session_config.require_approval_for)
    by_config = Category.ALL in configured | categories or bool(configured & categories)
    by_risk = tool.risk in gates.ALWAYS_GATED_RISKS
    by_rule = tool.computed is not None and tool.computed.must_be_gated
    return by_config or by_risk or by_rule or body.requires_approval


def propose_tool(room: Room, command: Command, body: ToolPropose) -> Iterator[EventOrEffect]:
    """Record the proposal, then open its gate or, if it needs none, issue its grant."""
    admission.check_not_halted(room, command.actor.principal)
    if not body.tool_name.isprintable():
        raise Refused(Reason.MALFORMED, "tool_name contains unprintable characters")
    check_tool_allowed(command, body)
    gates.check_metadata(command, body.metadata)
    gates.check_proposal_seconds(room, command, body.metadata)
    votes.check_option(room, command, body.metadata)
    grants.canonical_bytes(body.tool_name, body.arguments, room.id, command.message.id, "")
    if len(room.tools) >= (max_tools := command.policy.limits.tools):
        detail = f"{max_tools} proposals are open, the most a session may have; finish one first"
        raise limit_exceeded("tools", max_tools, detail)
    is_reported = body.metadata and not computed_class.KEYS.isdisjoint(body.metadata)
    computed = computed_class.compute(room, command, body) if is_reported else None
    said = body if computed is None else computed_class.with_computed(body, computed)
    ref, fork = command.message.ref, command.message.fork
    tool = proposal_of(command.message.id, said, ref, fork, computed)
    categories = (
        possible_categories(body.tool_name, body.category)
        if computed is None
        else frozenset({body.category, *computed.categories})
    )
    decision_binding.check_decision_link(body.arguments)
    decision_binding.check_guards(room, tool, categories)
    objection = decision_binding.ruling_objection(room, tool)
    bound = decision_binding.decision_link_of(tool) is not None
    gated = needs_gate(room, body, tool, categories) or bound or tool.option_of is not None
    yield ToolProposed(said=replace(said, requires_approval=gated), computed=computed or UNSET)
    if objection is not None:
        return  # no gate opens before the decision allows the step
    if gated:
        opened = gates.open_tool_gate(room, command, tool, categories)
        yield opened
        if room.standing_grants and not bound:
            yield from standing_grants.cast_standing_votes(room, command, tool, opened)
    else:
        yield from grants.issue_grant(room, command, tool, ())


def check_tool_allowed(command: Command, body: ToolPropose) -> None:
    """A prompt may list the tools that may be used to answer it (OPEN-43)."""
    cited = command.cited_records.get(command.message.ref or "")
    prompt = cited.said if cited else None
    if not isinstance(prompt, PromptSubmit) or prompt.config is None:
        return
    allowed = prompt.config.tools_allowed
    if allowed is not None and body.tool_name not in allowed:
        tools = f"only {', '.join(allowed)}" if allowed else "no tools"
        detail = f"The prompt allows {tools}, not {body.tool_name}"
        raise Refused(Reason.WRONG_STATE, detail)


def proposal_of(
    id: str,
    body: ToolPropose,
    prompt: str | None,
    fork: str | None = None,
    computed: ComputedClass | None = None,
) -> ToolProposal:
    """The proposal as the room's state holds it."""
    claim = computed_class.without_computed(body) if computed is not None else body
    return ToolProposal(
        id=id,
        agent=body.agent,
        name=body.tool_name,
        category=body.category,
        risk=body.risk_level,
        description=body.description,
        arguments=body.arguments,
        prompt=prompt,
        fork=fork,
        gate_seconds=gates.requested_seconds(body.metadata),
        option_of=votes.option_of(body.metadata),
        computed=computed,
        claimed=(claim.category, claim.risk_level),
        gated=body.requires_approval,
    )


def approve_tool(room: Room, command: Command, body: ToolApprove) -> Iterator[EventOrEffect]:
    """Vote yes by the proposal's id."""
    return votes.vote_yes(room, command, body, gates.find_gate(room, command, body.tool_proposal))


def reject_tool(room: Room, command: Command, body: ToolReject) -> Iterator[EventOrEffect]:
    """Vote no by the proposal's id, or take its unused grant back.

    A proposal that a decision holds has no gate and is dropped.
    """
    granted = grants.find_granted(room, command, body.tool_proposal)
    if granted is not None:
        yield from grants.take_back(room, command, body, granted)
        return
    tool = next(
        (held for held in decision_binding.held_proposals(room) if held.id == body.tool_proposal),
        None,
    )
    if tool is None or command.actor.principal not in room.members_in(tool.fork):
        yield from votes.vote_no(
            room, command, body, gates.find_gate(room, command, body.tool_proposal)
        )
        return
    check_same_fork(command, tool.id, tool.fork)
    if (
        tool.agent != command.actor.principal
        and Permission.APPROVE not in room.members[command.actor.principal].may
    ):
        raise Refused(Reason.FORBIDDEN, "Only its proposer or an approver can drop a held proposal")
    yield decision_binding.ToolDropped(said=body, ref=tool.id, fork=tool.fork)


def find_granted(
    room: Room, command: Command, proposal: str, presented: Grant | str | None
) -> ToolProposal:
    """The sender's proposal, if its grant is valid and is the one presented."""
    tool = room.tools.get(proposal)
    if tool is None or command.actor.principal not in room.members_in(tool.fork):
        raise unusable_refusal(room, command, proposal)
    check_same_fork(command, proposal, tool.fork)
    if tool.agent != command.actor.principal:
        raise Refused(Reason.FORBIDDEN, f"{proposal} was proposed by {tool.agent}, not by you")
    if tool.grant is None or tool.expires_at is None:
        raise Refused(Reason.WRONG_STATE, f"{proposal} is not approved yet")
    if tool.expires_at <= command.at:
        raise Refused(Reason.GATE_FAILED, f"The grant for {proposal} expired; propose again")
    if presented is not None and presented not in (tool.grant, tool.grant.id):
        raise Refused(
            Reason.GATE_FAILED, f"The grant presented is not the one issued for {proposal}"
        )
    return tool


def unusable_refusal(room: Room, command: Command, proposal: str) -> Refused:
    """Explain why a proposal can no longer be used."""
    outcome = outcome_of(room, proposal, command.actor.principal)
    if outcome is None:
        return Refused(Reason.NOT_FOUND, f"There is no open proposal {proposal}")
    if outcome.startswith(FAILED_OUTCOMES):
        return Refused(
            Reason.GATE_FAILED, f"{proposal} was {outcome}; propose again under a new id"
        )
    return Refused(Reason.WRONG_STATE, f"{proposal} is closed: {outcome}")


def start_tool(room: Room, command: Command, body: ToolExecute) -> Iterator[EventOrEffect]:
    """Start the tool; a grant is used once (OPEN-22)."""
    tool = find_granted(room, command, body.tool_proposal, body.grant)
    if tool.started:
        raise Refused(Reason.WRONG_STATE, f"The grant for {tool.id} was already used")
    if (objection := decision_binding.hold_reason(room, tool)) is not None:
        raise Refused(Reason.WRONG_STATE, f"The decision it is bound to holds it: {objection}")
    # The server fills in `approved_by`, not the agent.
    started = replace(body, approved_by=())
    admission.check_not_halted(room, tool.agent)
    yield ToolStarted(said=started, to=frozenset({tool.agent}), ref=tool.id, fork=tool.fork)


def add_output(room: Room, command: Command, body: ToolOutput) -> Iterable[EventOrEffect]:
    tool = find_granted(room, command, body.tool_proposal, body.grant)
    return (ToolPrinted(said=body, fork=tool.fork),)


def finish_tool(room: Room, command: Command, body: ToolResult) -> Iterator[EventOrEffect]:
    if grants.ran_anyway(room, command, body.tool_proposal, body.grant):
        late = replace(body, metadata={**(body.metadata or {}), grants.LATE_KEY: True})
        yield ToolRanLate(said=late, fork=room.taken_back[body.tool_proposal].fork)
        return
    tool = find_granted(room, command, body.tool_proposal, body.grant)
    labels = room.members[command.actor.principal].labels
    by_executor = True if EXECUTOR_LABEL in labels else UNSET
    yield ToolFinished(said=body, fork=tool.fork, by_executor=by_executor)
    if (link := decision_binding.decision_link_of(tool)) is not None:
        yield from rulings.rule_on_step_run(room, command, tool, link, step_result_of(body))


def step_result_of(body: ToolResult) -> StepResult:
    """A tool's result in the form that the decision kernel reads."""
    value = body.result.get("value") if isinstance(body.result, dict) else body.result
    measured = isinstance(value, int | float) and not isinstance(value, bool)
    fault = (body.metadata or {}).get("fault")
    return StepResult(
        item="",
        step="",
        success=body.success,
        output=body.error or str(body.result or ""),
        value=str(value)[:MAX_VALUE_LENGTH] if measured else "",
        fault=fault if isinstance(fault, str) else "",
    )


def expire_grants(room: Room, command: Command) -> Iterator[EventOrEffect]:
    for tool in room.tools.values():
        if tool.expires_at is not None and tool.expires_at <= command.at:
            yield ToolExpired(tool=tool.id, fork=tool.fork)
            notice = Failure(
                Reason.GATE_FAILED, "Its grant expired before a result arrived", tool.id
            )
            yield Relay(notice, None if tool.fork is None else room.members_in(tool.fork))


def on_proposed(room: Room, event: ToolProposed, record: Record) -> Room:
    tool = proposal_of(record.id, event.said, record.ref, record.fork, event.computed or None)
    return replace(room, tools={**room.tools, tool.id: tool})


def on_started(room: Room, event: ToolStarted, record: Record) -> Room:
    tool = room.tools.get(event.said.tool_proposal)
    if tool is None:
        return room
    return replace(room, tools={**room.tools, tool.id: replace(tool, started=True)})


def on_printed(room: Room, event: ToolPrinted, record: Record) -> Room:
    """The first output uses the grant, if the agent did not report the start."""
    tool = room.tools.get(event.said.tool_proposal)
    if tool is None or tool.started:
        return room
    return replace(room, tools={**room.tools, tool.id: replace(tool, started=True)})


def on_ran_late(room: Room, event: ToolRanLate, record: Record) -> Room:
    return replace(room, taken_back=without_keys(room.taken_back, event.said.tool_proposal))


def on_finished(room: Room, event: ToolFinished, record: Record) -> Room:
    """Close the proposal; a successful step of a decision can be cited as evidence for a while."""
    if event.said.success:
        room = decision_binding.remember_run(room, event.said.tool_proposal)
    return grants.close_proposals(room, "finished", event.said.tool_proposal)


def on_expired(room: Room, event: ToolExpired, record: Record) -> Room:
    return grants.close_proposals(room, "expired", event.tool)


DECIDE: Deciders = {
    **standing_grants.DECIDE,
    ToolPropose: propose_tool,
    ToolApprove: approve_tool,
    ToolReject: reject_tool,
    ToolExecute: start_tool,
    ToolOutput: add_output,
    ToolResult: finish_tool,
}
EVOLVE: Evolvers = {
    **decision_binding.EVOLVE,
    **grants.EVOLVE,
    **standing_grants.EVOLVE,
    ToolProposed: on_proposed,
    ToolStarted: on_started,
    ToolPrinted: on_printed,
    ToolFinished: on_finished,
    ToolRanLate: on_ran_late,
    ToolExpired: on_expired,
}
