"""Feeds the session with what a host reports: prompts, answers, results, sessions and subagents.

The daemon speaks with the agent's credential alone, so everything here is the agent's own report.
A prompt that was typed in the host is therefore a message of the agent to itself: the record says
that its hook reported these words, and names no person who typed them, because nothing proves one.
"""

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec

from accord.client.connection.router import now_ms
from accord.client.errors import ServerRefused
from accord.core.attention.waking.prompt import is_wake_prompt
from accord.core.kernel.timestamps import to_iso
from accord.core.room.approval.tool_proposals import ToolOutput, ToolResult
from accord.core.room.conversation.prompts import PromptConfig, PromptSubmit
from accord.core.room.conversation.responses import (
    ResponseChunk,
    ResponseEnd,
    ResponseStart,
    UsageStats,
)
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.state import Presence
from accord.daemon import call_decision
from accord.daemon.agent_link import AgentLink
from accord.daemon.host_calls import (
    HookRequest,
    Subagent,
    call_of,
    host_session_of,
    subagent_of,
    text_of,
)
from accord.daemon.transcripts import TurnUsage, read_complete_usage
from accord.daemon.wake_prompts import cause_of_wake
from accord.hosts.hook_events import (
    POST_TOOL,
    PROMPT,
    SESSION_END,
    SESSION_START,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
)

FinishReason = Literal["complete", "tool_use"]
MAX_TEXT = 64 << 10
TYPED_IN_HOST = "typed in the host, reported by its hook"
WOKEN = "the host was woken, reported by its hook"
# How hosts write the exit code of a command into what the model reads.
EXIT_CODE = re.compile(r"^(?:Exit code|Exit Code|Process exited with code):? (-?\d+)", re.MULTILINE)


class Outcome(NamedTuple):
    """How a call ended, as far as the host says; `exit_code` is None where it does not."""

    success: bool
    output: str
    exit_code: int | None = None
    error: str = ""


class Report(NamedTuple):
    """An event and the link of the agent that it is about."""

    link: AgentLink
    request: HookRequest
    protected: tuple[str, ...]
    runs: dict[str, str]  # proposals of calls that are running, by the host's id of the call

    @property
    def payload(self) -> Mapping[str, Any]:
        """The event as the host sent it."""
        return self.request.payload

    @property
    def host_session(self) -> str:
        """The host's own id of its session."""
        return host_session_of(self.payload)


def report_event(report: Report) -> None:
    """Tell the session; raises ClientError."""
    handler = HANDLERS.get(report.request.event)
    if handler is not None:
        handler(report)


def on_session_start(report: Report) -> None:
    """The session is followed from now on, which shows the agent as present."""
    report.link.use_model(text_of(report.payload, "model"))


def on_session_end(report: Report) -> None:
    """The host has ended: the agent stays a member and is no longer present."""
    link = report.link
    try:
        link.send(PresenceUpdate(link.connection.agent, Presence.AWAY, to_iso(now_ms())))
    finally:
        link.end()


def on_prompt(report: Report) -> None:
    """Record the prompt under an id that follows from the turn, so that a later report finds it."""
    submit_prompt(report, text_of(report.payload, "prompt"))


def submit_prompt(report: Report, text: str) -> str:
    """Record the prompt of a turn, and return the one that the turn answers.

    A host that was woken for a prompt answers that one, and nothing is recorded.
    """
    link, prompt, authorship = report.link, prompt_id(report), TYPED_IN_HOST
    if is_wake_prompt(text):
        if cause := cause_of_wake(link, text):
            link.set_cause(prompt, cause)
            link.set_prompt(report.host_session, cause)
            return cause
        text, authorship = text.partition("\n")[0], WOKEN
    agent = link.connection.agent
    params = {"source": report.request.host, "authorship": authorship}
    body = PromptSubmit(
        content=text[:MAX_TEXT] or "(empty)",
        target_agent=agent,
        contributors=(agent,),
        context_keys=(),
        config=PromptConfig(provider_params=params),
    )
    link.send(body, id=prompt)
    link.set_prompt(report.host_session, prompt)
    return prompt


def prompt_id(report: Report) -> str:
    """An id of the turn: that of the host where it has one, else the prompt's own words."""
    payload = report.payload
    turn = (
        text_of(payload, "prompt_id")
        or text_of(payload, "turn_id")
        or text_of(payload, "generation_id")
        or text_of(payload, "prompt")
    )
    key = f"{report.link.connection.id}\n{report.host_session}\n{turn}"
    return f"prompt-{sha256(key.encode(errors='replace')).hexdigest()[:32]}"


def on_stop(report: Report) -> None:
    """Record the answer, with the tokens it took."""
    payload, link = report.payload, report.link
    text = text_of(payload, "last_assistant_message") or text_of(payload, "prompt_response")
    text = text or text_of(payload, "text")
    usage = read_complete_usage(
        report.request.host, text_of(payload, "transcript_path"), report.request.home
    )
    link.use_model(text_of(payload, "model") or usage.model)
    answer(report, text, usage)


def answer(report: Report, text: str, usage: TurnUsage, subagent: Subagent | None = None) -> None:
    """A response to the prompt of this turn; without a prompt there is nothing to answer."""
    link, agent = report.link, report.link.connection.agent
    prompt = link.cause_of(prompt_id(report))
    try:
        response = link.send(ResponseStart(agent=agent, prompt_ref=prompt), prompt)
    except ServerRefused:
        if not (words := text_of(report.payload, "prompt")):
            raise
        prompt = submit_prompt(report, words)
        response = link.send(ResponseStart(agent=agent, prompt_ref=prompt), prompt)
    for start in range(0, min(len(text), MAX_TEXT), MAX_TEXT // 4):
        link.send(ResponseChunk(text[start : start + MAX_TEXT // 4]), response)
    stats = UsageStats(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        thinking_tokens=usage.thinking_tokens or None,
        cost_usd=cost_of(usage, link.connection.price),
        model=usage.model or link.model or None,
    )
    metadata: dict[str, Any] = {"host": report.request.host, "model": usage.model or link.model}
    if subagent is not None:
        metadata["subagent"] = subagent._asdict()
    reason: FinishReason = "tool_use" if subagent else "complete"  # its parent goes on
    body = ResponseEnd(reason, stats if usage.is_known else None, metadata)
    link.send(body, response)


def cost_of(usage: TurnUsage, price: tuple[float, float] | None) -> float | None:
    """US dollars at the price that the person gave to `accord connect`; None without one."""
    if price is None:
        return None
    tokens = (usage.input_tokens, usage.output_tokens)
    return sum(count * each for count, each in zip(tokens, price, strict=True)) / 1_000_000


def on_subagent_start(report: Report) -> None:
    """Nothing to say yet: a subagent's calls and its answer name it."""


def on_subagent_stop(report: Report) -> None:
    """The subagent's answer, told apart from its parent's by `metadata.subagent`."""
    subagent = subagent_of(report.payload)
    text = text_of(report.payload, "last_assistant_message")
    if subagent is not None and text and report.link.prompt_of(report.host_session):
        answer(report, text, TurnUsage(), subagent)


def on_tool_result(report: Report) -> None:
    """Report how a granted call ended; a call that needed no grant is recorded now that it ran."""
    link, request = report.link, report.request
    call = call_of(request, link.connection)
    link.use_model(text_of(report.payload, "model"))
    if call.is_own_tool or link.state is None:
        return
    classified = call_decision.classify_call(link, call, report.protected)
    proposal = report.runs.pop(run_key(call.host_session, call.use_id), "")
    if not proposal:
        same = call_decision.find_proposals(link, classified)
        proposal = next((each.id for each in same if each.approved), "")
    if not proposal:
        proposal = propose_ungated(link, classified)
    if proposal:
        report_result(report, proposal)


def propose_ungated(link: AgentLink, classified: call_decision.ClassifiedCall) -> str:
    """Record a call that needed no gate; reads are too many and change nothing."""
    state, policy, found = link.state, link.policy, classified.found
    tool = classified.call.tool
    is_gated = (
        state is None or policy is None or call_decision.needs_gate(state, policy, tool, found)
    )
    if found.is_read or found.refusal or is_gated:
        return ""
    return call_decision.propose(link, classified, requires_approval=False)


def report_result(report: Report, proposal: str) -> None:
    """Output and result of a call."""
    link, outcome = report.link, outcome_of(report.payload)
    if outcome.output:
        body = ToolOutput(proposal, "stdout", outcome.output[:MAX_TEXT], complete=True)
        link.send(body, proposal)
    duration = report.payload.get("duration_ms", report.payload.get("duration", 0))
    link.send(
        ToolResult(
            tool_proposal=proposal,
            success=outcome.success,
            duration_ms=int(duration) if isinstance(duration, int | float) else 0,
            result={"exit_code": outcome.exit_code},
            error=outcome.error[:MAX_TEXT] or None,
            metadata={"reported_by": f"{report.request.host} hook"},
        ),
        proposal,
    )


def outcome_of(payload: Mapping[str, Any]) -> Outcome:
    """What the host says about the end of a call."""
    response = payload.get("tool_response", payload.get("tool_output"))
    name = text_of(payload, "hook_event_name").lower()
    error = text_of(payload, "error") or text_of(payload, "error_message")
    if isinstance(response, dict):
        problem = response.get("error") or (response.get("interrupted") and "interrupted")
        problem = problem or (response.get("isError") and "the tool reported an error")
        error = error or (problem if isinstance(problem, str) else "failed" if problem else "")
    output = output_of(response)
    code = EXIT_CODE.search(output) or EXIT_CODE.search(error)
    exit_code = int(code[1]) if code else None
    success = not error and not exit_code and not name.endswith("failure")
    return Outcome(success, output, exit_code, error or ("" if success else "the call failed"))


def output_of(response: object) -> str:
    """The text that the call printed or returned."""
    match response:
        case str():
            return response
        case {"stdout": str(out), "stderr": str(err)}:
            return f"{out}\n{err}".strip("\n") if err else out
        case {"llmContent": str(text)}:
            return text
        case None:
            return ""
        case _:
            return msgspec.json.encode(response).decode(errors="replace")


def run_key(host_session: str, use_id: str) -> str:
    """Identifies a running call; empty ids identify none."""
    return f"{host_session}\n{use_id}" if use_id else ""


HANDLERS: Mapping[str, Callable[[Report], None]] = {
    SESSION_START: on_session_start,
    SESSION_END: on_session_end,
    PROMPT: on_prompt,
    STOP: on_stop,
    SUBAGENT_START: on_subagent_start,
    SUBAGENT_STOP: on_subagent_stop,
    POST_TOOL: on_tool_result,
}
