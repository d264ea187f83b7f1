"""Decides about a call before it runs: no decision, a refusal, or leave for a granted call.

no decision   it needs no gate; the host asks its user as it always does
deny          it is refused outright, it waits for people, or nothing can be known about it
allow         people granted exactly this call, and the grant is used up by saying so
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from accord.api.responses import ComputedCall, OpenProposal, SessionDetail
from accord.client.errors import ClientError, ServerRefused
from accord.core.policy.call_classification import classify
from accord.core.policy.call_findings import RISKS, SEVERITY, Classification
from accord.core.policy.policy_toml import NO_POLICY, Policy
from accord.core.policy.reported_call import Place, ReportedCall, reported_metadata
from accord.core.room.approval.gates import ALWAYS_GATED_RISKS, possible_categories
from accord.core.room.approval.grants import ToolExecute
from accord.core.room.approval.tool_proposals import ToolPropose
from accord.core.room.conversation.interrupts import HALTING_URGENCIES, InterruptAcknowledge
from accord.core.room.room_settings import Category
from accord.daemon.agent_link import AgentLink
from accord.daemon.host_calls import HostCall
from accord.daemon.transcripts import read_usage
from accord.hosts.gate_hook import ALLOW, DENY, NONE
from accord.hosts.hook_events import REFUSED_OUTRIGHT
from accord.real_paths import resolve
from accord.shell_parser import parse_shell

STATE_TIMEOUT_S = 5.0
# A standing grant votes at once; a person takes longer than a hook should wait.
APPROVAL_WAIT_S = 0.5
OPEN_STATUSES = frozenset({"active", "paused"})
CONNECT_AGAIN = "Ask the user to run `accord connect` for another session, or `accord disconnect`."
REAL_PATHS = "real_paths"
MAX_SHOWN_CALL = 160


class Decision(NamedTuple):
    """The answer to a hook, and the granted proposal that an allowed call runs under."""

    decision: str
    reason: str = ""
    proposal: str = ""


NO_DECISION = Decision(NONE)


class ClassifiedCall(NamedTuple):
    """A call, its form for the rules, what they say, and the arguments that people approve."""

    call: HostCall
    reported: ReportedCall
    found: Classification
    arguments: dict[str, Any]


def decide(link: AgentLink, call: HostCall, protected: tuple[str, ...]) -> Decision:
    """The decision about a call that is about to run."""
    if call.is_own_tool:
        return interrupted_decision(link, link.state) or NO_DECISION
    state = link.wait_for_state(STATE_TIMEOUT_S)
    classified = classify_call(link, call, protected)
    found = classified.found
    if found.refusal:
        return deny(f"{REFUSED_OUTRIGHT}: {found.refusal}. No approval would change that.")
    if state is None:
        return away_decision(link, found)
    if (interrupted := interrupted_decision(link, state)) is not None:
        return interrupted
    if state.status not in OPEN_STATUSES:
        return deny(f"the session {state.id} has ended ({state.status}). {CONNECT_AGAIN}")
    if state.standing != "member":  # a former member is shown, as the only one
        return deny(f"{link.connection.agent} is not in the session {state.id}. {CONNECT_AGAIN}")
    if any(fork.merged for fork in state.forks if fork.id == link.connection.fork):
        return deny(merged_sentence(link))
    if not needs_gate(state, link.policy or NO_POLICY, call.tool, found):
        return NO_DECISION
    return ask_people(link, classified)


def merged_sentence(link: AgentLink) -> str:
    """What to do when the fork of a connection has ended."""
    connection = link.connection
    return (
        f"the fork {connection.fork} of the session {connection.session} was merged and can only "
        f"be read. Ask the user to run `accord connect {connection.host} --fork main`."
    )


def classify_call(link: AgentLink, call: HostCall, protected: tuple[str, ...]) -> ClassifiedCall:
    """What the newest policy says about the call, with symbolic links followed."""
    policy = link.policy or NO_POLICY
    place = Place(
        cwd=call.cwd,
        worktree=str(Path(link.connection.root).resolve()),
        home=call.home,
        protected=protected,
        mcp_server=call.mcp_server,
    )
    reported = resolve(call.reported(place), parse_shell, policy)
    arguments = dict(call.arguments)
    elsewhere = {path: list(real) for path, real in reported.place.resolved.items() if real}
    if elsewhere:  # where a link leads is part of what people approve
        arguments[REAL_PATHS] = elsewhere
    return ClassifiedCall(call, reported, classify(reported, policy, parse_shell), arguments)


def needs_gate(state: SessionDetail, policy: Policy, tool: str, found: Classification) -> bool:
    """Whether the server would gate it; it computes the same from the call and its own policy."""
    configured = frozenset(state.config.require_approval_for)
    if found.is_read:
        return bool(configured & {Category.ALL, Category.FILE_READ})
    categories = possible_categories(tool, found.category) | frozenset(found.categories)
    by_config = Category.ALL in configured | categories or bool(configured & categories)
    return not policy.signed or by_config or found.risk in ALWAYS_GATED_RISKS


def away_decision(link: AgentLink, found: Classification) -> Decision:
    """Without the server only a read of the newest policy passes."""
    if link.is_refused:
        return deny(f"the Accord server does not let this agent in: {link.problem} {CONNECT_AGAIN}")
    if found.is_read and link.policy is not None:
        return NO_DECISION
    return deny(
        f"the Accord server at {link.connection.url} cannot be asked ({link.problem}), and this is "
        "not a read. Tell the user, and try the same call again when the server is back."
    )


def interrupted_decision(link: AgentLink, state: SessionDetail | None) -> Decision | None:
    """What interrupts mean for this call; they are acknowledged here, where they take effect.

    A stopped agent may do nothing until a person prompts it again. A pause refuses one call.
    """
    if state is None:
        return None
    raised = link.take_interrupts()
    for each in raised:
        is_stop = each.payload.urgency in HALTING_URGENCIES
        action: Literal["stopped", "paused"] = "stopped" if is_stop else "paused"
        with suppress(ClientError):
            link.send(InterruptAcknowledge(each.id, link.connection.agent, action), each.id)
    said = f' They said: "{raised[-1].payload.message}".' if raised else ""
    if (urgency := state.halted.get(link.connection.agent)) is not None:
        return deny(
            f"people stopped this agent ({urgency}).{said} Stop working now and tell the user; it "
            "may go on after a person prompts it in the session."
        )
    if any(each.payload.urgency not in HALTING_URGENCIES for each in raised):
        return deny(f"people ask this agent to pause.{said} Stop here and wait for the user.")
    return None


def ask_people(link: AgentLink, classified: ClassifiedCall) -> Decision:
    """Use the grant of exactly this call, or propose it once and refuse until it is granted."""
    try:
        with link.lock:
            same = find_proposals(link, classified)
            for granted in same:
                if granted.approved and granted.gated and use_grant(link, granted.id):
                    return allowed(granted.id)
            proposal = next((each for each in same if not each.approved), None)
            if proposal is None and (why := link.take_rejection(signature(classified))):
                return deny(f"{why} Do not try it again unless the user asks for it.")
            id = proposal.id if proposal else propose(link, classified)
            link.remember_proposal(signature(classified), id)
        return await_grant(link, classified, id)
    except ServerRefused as refusal:
        return deny(f"{refusal.message} ({refusal.code}).")
    except ClientError as error:
        return deny(f"the Accord server did not answer ({error}). Try the same call again later.")


def find_proposals(link: AgentLink, classified: ClassifiedCall) -> list[OpenProposal]:
    """The agent's open proposals of exactly this call, oldest first.

    A granted one may be used already, if its result was never reported. The agent can propose by
    itself, and say anything about its call: only what the server classed counts, and only if people
    were asked about no less than this call is.
    """
    tool, arguments = classified.call.tool, classified.arguments
    fork = link.connection.fork or None
    return [
        each
        for each in link.own_proposals()
        if (each.tool_name, each.arguments, each.fork) == (tool, arguments, fork)
        and is_as_grave(each.computed, classified.found)
    ]


def is_as_grave(computed: ComputedCall | None, found: Classification) -> bool:
    """Whether the server itself found a proposal to be at least what the call is."""
    if computed is None:
        return False
    category = SEVERITY.index(computed.category) >= SEVERITY.index(found.category)
    return category and RISKS.index(computed.risk_level) >= RISKS.index(found.risk)


def use_grant(link: AgentLink, proposal: str) -> bool:
    """Tell the server that the call starts, which uses the grant; False if it was used before."""
    try:
        link.send(ToolExecute(tool_proposal=proposal, approved_by=()), proposal)
    except ServerRefused as refusal:
        if refusal.code in {"INVALID_STATE", "GATE_FAILED"}:
            link.refresh()
            if (state := link.state) and link.connection.agent in state.halted:
                raise
            return False
        raise
    return True


def propose(link: AgentLink, classified: ClassifiedCall, *, requires_approval: bool = True) -> str:
    """Propose the call; returns the proposal's id."""
    call, found = classified.call, classified.found
    connection = link.connection
    link.use_model(call.model or read_usage(connection.host, call.transcript, call.home).model)
    metadata = reported_metadata(classified.reported, connection.repository, connection.host)
    if link.model:
        metadata["model"] = link.model
    if call.subagent is not None:
        metadata["subagent"] = call.subagent._asdict()
    if call.host_session:
        metadata["host_session"] = call.host_session
    body = ToolPropose(
        tool_name=call.tool,
        arguments=classified.arguments,
        agent=connection.agent,
        risk_level=found.risk,
        description=call.caption or shown_call(call, connection.root),
        requires_approval=requires_approval,
        category=found.category,
        metadata=metadata,
    )
    id = link.send(body, link.prompt_of(call.host_session))
    link.refresh()
    return id


def await_grant(link: AgentLink, classified: ClassifiedCall, proposal: str) -> Decision:
    """Allow the call if it is granted within a moment; otherwise say what to do."""
    deadline = time.monotonic() + APPROVAL_WAIT_S
    while True:
        known = next((each for each in link.own_proposals() if each.id == proposal), None)
        if known is None:
            why = link.take_rejection(signature(classified)) or "its gate was closed."
            return deny(f"{why} Do not try it again unless the user asks for it.")
        if known.approved:
            return allowed(proposal) if use_grant(link, proposal) else waiting(link, classified, "")
        left = deadline - time.monotonic()
        if left <= 0:
            return waiting(link, classified, proposal)
        link.wait_for_change(left)


def signature(classified: ClassifiedCall) -> bytes:
    """Identifies a call: the tool and all arguments, the working directory among them."""
    call = [classified.call.tool, classified.arguments]
    return msgspec.json.encode(call, order="deterministic")


def waiting(link: AgentLink, classified: ClassifiedCall, proposal: str) -> Decision:
    """The refusal that names the gate and what to do."""
    state = link.state
    gates = state.gates if state else ()
    gate = next((each.id for each in gates if each.action and each.action.id == proposal), proposal)
    found = classified.found
    return deny(
        f"it needs approval first: {found.explanation} ({found.category}, risk {found.risk}). "
        f"It waits at gate {gate} in the session {link.connection.session}. Tell the user to run "
        f"`accord approve {gate}` or to decide on the page. After that, make exactly the same call "
        "again: it then passes once. Do not look for another way to do it."
    )


def shown_call(call: HostCall, root: str) -> str:
    """The command or file of a call in one line; the tool's name is shown beside it."""
    shown = call.arguments.get("command") or call.arguments.get("file_path")
    text = shown if isinstance(shown, str) and shown else call.tool
    return " ".join(text.removeprefix(f"{root}/").split())[:MAX_SHOWN_CALL]


def allowed(proposal: str) -> Decision:
    """An answer that lets the call run once."""
    return Decision(ALLOW, "Approved in Accord; this approval is used up now.", proposal)


def deny(sentence: str) -> Decision:
    return Decision(DENY, f"Accord refused this call: {sentence}")
