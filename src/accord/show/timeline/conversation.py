"""Turns of a conversation: prompts, thinking, responses and interrupts."""

from accord.show.foreign_json import JsonObject, as_text, as_texts
from accord.show.text import join_words
from accord.show.timeline.state import MessageHandler, TimelineState, WireEnvelope


def on_prompt(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    title = f"asks {as_text(payload.get('target_agent'))}"
    timeline.add_turn(envelope, "prompt", title, text=as_text(payload.get("content")))


def on_prompt_amend(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    title = "amends the prompt"
    if reason := as_text(payload.get("reason")):
        title += f" ({reason})"
    timeline.add_turn(envelope, "prompt", title, text=as_text(payload.get("amendment")))


def on_response_start(
    timeline: TimelineState, envelope: WireEnvelope, _payload: JsonObject
) -> None:
    turn = timeline.add_turn(envelope, "answer", "answers")
    timeline.answers[as_text(envelope.get("id"))] = turn


def on_chunk(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    if turn := timeline.answers.get(as_text(envelope.get("ref"))):
        turn.text += as_text(payload.get("text"))


def on_response_end(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    turn = timeline.answers.pop(as_text(envelope.get("ref")), None)
    reason = as_text(payload.get("finish_reason"))
    if turn and reason in {"interrupted", "error", "max_tokens"}:
        turn.title, turn.mood = f"answers ({reason.replace('_', ' ')})", "bad"


def on_thinking_start(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    visible_to = payload.get("visible_to")
    if visible_to in (None, "all"):
        readers = ""
    elif visible_to == "approvers_only":
        readers = " for those who may approve"
    else:
        readers = f" for {join_words(as_texts(visible_to))}"
    turn = timeline.add_turn(envelope, "thought", f"thinks{readers}")
    timeline.answers[as_text(envelope.get("id"))] = turn


def on_thinking_end(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    turn = timeline.answers.pop(as_text(envelope.get("ref")), None)
    if turn and not turn.text:
        turn.text = as_text(payload.get("summary"))


def on_interrupt(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    target = as_text(payload.get("target")) or "every agent"
    urgency = as_text(payload.get("urgency"))
    demand = "stop everything (emergency)" if urgency == "emergency" else urgency
    parts = (as_text(payload.get("message")), as_text(payload.get("inject_context")))
    text = "\n".join(filter(None, parts))
    timeline.add_turn(envelope, "interrupt", f"tells {target} to {demand}", text=text, mood="bad")


def on_interrupt_acknowledge(
    timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject
) -> None:
    titles = {"paused": "has paused", "stopped": "has stopped", "ignored": "continues anyway"}
    title = titles.get(as_text(payload.get("action_taken")), "has received the interrupt")
    timeline.add_turn(envelope, "note", title, text=as_text(payload.get("ignore_reason")))


HANDLERS: dict[str, MessageHandler] = {
    "prompt.submit": on_prompt,
    "prompt.amend": on_prompt_amend,
    "response.start": on_response_start,
    "thinking.chunk": on_chunk,
    "response.chunk": on_chunk,
    "response.end": on_response_end,
    "thinking.start": on_thinking_start,
    "thinking.end": on_thinking_end,
    "interrupt.raise": on_interrupt,
    "interrupt.acknowledge": on_interrupt_acknowledge,
}
