"""Turns about tools and gates: proposals, votes, grants and results."""

from accord.core.kernel.timestamps import is_before_timeout
from accord.show.foreign_json import JsonObject, as_int, as_object, as_text, as_texts
from accord.show.text import (
    MAX_SPAN_S,
    describe_quorum,
    describe_verdict,
    format_duration,
    join_words,
    plural,
    render_invocation,
)
from accord.show.timeline.state import SYSTEM, MessageHandler, TimelineState, WireEnvelope


def on_tool_propose(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    name = as_text(payload.get("tool_name"))
    timeline.tools[as_text(envelope.get("id"))] = name
    risk, category = as_text(payload.get("risk_level")), as_text(payload.get("category"))
    timeline.add_turn(
        envelope,
        "proposal",
        f"proposes {name} ({category}, {risk} risk)",
        text=as_text(payload.get("description")),
        code=render_invocation(payload.get("arguments")),
        mood="bad" if risk in {"high", "critical"} else "",
    )


def on_gate_request(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    id = as_text(envelope.get("id"))
    tool = timeline.tools.get(as_text(payload.get("action_ref")))
    timeline.gates[id] = tool or as_text(payload.get("action_type"))
    seconds = as_int(payload.get("timeout_seconds"))
    timeline.limits[id] = (as_text(envelope.get("ts")), seconds)
    within = f", within {format_duration(seconds)}" if seconds else ""
    title = f"The gate needs {describe_quorum(payload.get('quorum'))}{within}"
    ruling = payload.get("decision")
    if envelope.get("sender") != SYSTEM:
        text = as_text(payload.get("message"))
    else:
        text = f"By the rules of {describe_verdict(as_object(ruling))}" if ruling else ""
    timeline.add_turn(envelope, "gate", title, text=text, mood="wait")


def on_approve(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    title = f"approves {_subject(timeline, payload)}".rstrip()
    text = as_text(payload.get("comment"))
    timeline.add_turn(envelope, "vote", title, text=text, mood="good")


def on_reject(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    is_granted = as_text(payload.get("tool_proposal")) in timeline.granted
    verb = "takes back the approval of" if is_granted else "rejects"
    title = f"{verb} {_subject(timeline, payload)}".rstrip()
    timeline.add_turn(envelope, "vote", title, text=as_text(payload.get("reason")), mood="bad")


def _subject(timeline: TimelineState, payload: JsonObject) -> str:
    gate = timeline.gates.get(as_text(payload.get("gate")), "")
    return timeline.tools.get(as_text(payload.get("tool_proposal")), gate)


def on_gate_timeout(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    gate = as_text(payload.get("gate"))
    received = as_int(payload.get("approvals_received"))
    required = as_int(payload.get("approvals_required"))
    opened_at, limit = timeline.limits.get(gate, ("", 0))
    closed_early = is_before_timeout(opened_at, limit, as_text(envelope.get("ts")))
    outcome = f"time is up, {as_text(payload.get('resolution'))}"
    why = "closed with the session" if closed_early else outcome
    subject = timeline.gates.get(gate, "")
    title = f"{subject}: {why} ({received} of {plural(required, 'approval')})"
    timeline.add_turn(envelope, "vote", title.removeprefix(": "), mood="bad")


def on_tool_execute(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    if envelope.get("sender") != SYSTEM:
        return
    timeline.granted.add(as_text(payload.get("tool_proposal")))
    name = _tool_name(timeline, payload)
    approvers = join_words(as_texts(payload.get("approved_by")))
    why = f"approved by {approvers}" if approvers else "no gate needed"
    timeline.add_turn(envelope, "grant", f"{name} may run, {why}", mood="good")


def on_tool_output(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    proposal = as_text(payload.get("tool_proposal"))
    if proposal not in timeline.outputs:
        title = f"runs {_tool_name(timeline, payload)}"
        timeline.outputs[proposal] = timeline.add_turn(envelope, "output", title)
    timeline.outputs[proposal].code += as_text(payload.get("text"))


def on_tool_result(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    timeline.outputs.pop(as_text(payload.get("tool_proposal")), None)
    name = _tool_name(timeline, payload)
    took = format_duration(min(as_int(payload.get("duration_ms")), MAX_SPAN_S * 1000) / 1000)
    succeeded = bool(payload.get("success"))
    title = f"finished {name} in {took}" if succeeded else f"failed at {name} after {took}"
    mood = "good" if succeeded else "bad"
    timeline.add_turn(envelope, "result", title, text=as_text(payload.get("error")), mood=mood)


def _tool_name(timeline: TimelineState, payload: JsonObject) -> str:
    return timeline.tools.get(as_text(payload.get("tool_proposal")), "it")


HANDLERS: dict[str, MessageHandler] = {
    "tool.propose": on_tool_propose,
    "gate.request": on_gate_request,
    "tool.approve": on_approve,
    "gate.approve": on_approve,
    "tool.reject": on_reject,
    "gate.reject": on_reject,
    "gate.timeout": on_gate_timeout,
    "tool.execute": on_tool_execute,
    "tool.output": on_tool_output,
    "tool.result": on_tool_result,
}
