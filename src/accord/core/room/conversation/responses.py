"""Responses: an agent's answer to a prompt, streamed in chunks."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, Evolvers, unchanged
from accord.core.kernel.limits import limit_exceeded
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission
from accord.core.room.conversation.prompts import PromptSubmit, answer_key
from accord.core.room.field_types import Id, SafeInt, ShortText, Text
from accord.core.room.state import AgentStream, Room, without_keys
from accord.core.room.visibility import outcome_key, remember_outcomes


class UsageStats(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens, cost and latency of a response (PVP 12.2)."""

    input_tokens: SafeInt
    output_tokens: SafeInt
    thinking_tokens: SafeInt | None = None
    cost_usd: float | None = None
    model: ShortText | None = None
    latency_ms: SafeInt | None = None


class ResponseStart(Body, frozen=True, omit_defaults=True, gc=False):
    """Start a response to a prompt."""

    type = "response.start"
    needs = Permission.ACT_AS_AGENT
    forkable = True
    cites_others = True

    agent: Id
    prompt_ref: Id

    def claimed_ids(self) -> Iterator[str]:
        yield self.agent

    def cited_ids(self) -> Iterator[str]:
        yield self.prompt_ref


class ResponseChunk(Body, frozen=True, omit_defaults=True, gc=False):
    """The next part of a response."""

    type = "response.chunk"
    needs = Permission.ACT_AS_AGENT
    forkable = True
    is_chunk = True

    text: Text


class ResponseEnd(Body, frozen=True, omit_defaults=True, gc=False):
    """End a response."""

    type = "response.end"
    needs = Permission.ACT_AS_AGENT
    forkable = True

    finish_reason: Literal["complete", "interrupted", "error", "max_tokens", "tool_use"]
    usage: UsageStats | None = None
    metadata: dict[str, Any] | None = None


class ResponseStarted(Event, frozen=True, kw_only=True, gc=False):
    """A response started."""

    name = "response.started"

    said: ResponseStart


class ResponseChunked(Event, frozen=True, kw_only=True, gc=False):
    """A response continued."""

    name = "response.chunked"

    said: ResponseChunk


class ResponseEnded(Event, frozen=True, kw_only=True, gc=False):
    """A response ended."""

    name = "response.ended"

    said: ResponseEnd


def start_response(room: Room, command: Command, body: ResponseStart) -> Iterator[Event]:
    check_stream_start(room, command, body.prompt_ref)
    yield ResponseStarted(said=body)


def check_stream_start(room: Room, command: Command, prompt: str) -> None:
    """Refuse a stream that answers no prompt, or one more than the limit."""
    if not isinstance(command.cited_records[prompt].said, PromptSubmit):
        raise Refused(Reason.MALFORMED, f"prompt_ref {prompt} is not a prompt.submit")
    if len(room.streams) >= (max_streams := command.policy.limits.streams):
        detail = f"{max_streams} streams are open, the most a session may have; end one first"
        raise limit_exceeded("streams", max_streams, detail)


def find_own_stream(room: Room, command: Command, *, thinking: bool) -> AgentStream:
    """The sender's open stream; a message that names a fork must mean a stream in that fork."""
    stream, fork = select_own_stream(room, command, thinking=thinking), command.message.fork
    if fork is not None and fork != stream.fork:
        place = "the trunk" if stream.fork is None else f"fork {stream.fork}"
        raise Refused(Reason.WRONG_STATE, f"{stream.id} is in {place}, not in fork {fork}")
    return stream


def select_own_stream(room: Room, command: Command, *, thinking: bool) -> AgentStream:
    """The sender's stream that `ref` names, or its only one (OPEN-44)."""
    agent, ref = command.actor.principal, command.message.ref
    if ref is not None:
        stream = room.streams.get(ref)
        if stream is not None and stream.agent == agent and stream.thinking is thinking:
            return stream
        what = "thinking stream" if thinking else "response"
        raise Refused(Reason.WRONG_STATE, f"{ref} is not an open {what} of {agent}")
    streams = room.streams.values()
    own = [stream for stream in streams if stream.agent == agent and stream.thinking is thinking]
    if len(own) != 1:
        what = "thinking streams" if thinking else "responses"
        count = len(own) or "no"
        detail = f"{agent} has {count} open {what}; set `ref` to the message that started it"
        raise Refused(Reason.WRONG_STATE, detail)
    return own[0]


def add_response_chunk(room: Room, command: Command, body: ResponseChunk) -> Iterable[Event]:
    stream = find_own_stream(room, command, thinking=False)
    return (ResponseChunked(said=body, ref=stream.id, fork=stream.fork),)


def end_response(room: Room, command: Command, body: ResponseEnd) -> Iterator[Event]:
    stream = find_own_stream(room, command, thinking=False)
    yield ResponseEnded(said=body, ref=stream.id, fork=stream.fork)


def open_stream(room: Room, stream: AgentStream) -> Room:
    return replace(room, streams={**room.streams, stream.id: stream})


def close_stream(room: Room, id: str | None, outcome: str) -> Room:
    stream = room.streams.get(id or "")
    if stream is None:
        return room
    past = remember_outcomes(room.past, {outcome_key(stream.fork, stream.id): outcome})
    return replace(room, streams=without_keys(room.streams, stream.id), past=past)


def on_started(room: Room, event: ResponseStarted, record: Record) -> Room:
    body = event.said
    return open_stream(room, AgentStream(record.id, body.agent, body.prompt_ref, fork=record.fork))


def on_ended(room: Room, event: ResponseEnded, record: Record) -> Room:
    """Close the stream; the prompt is answered, unless the agent continues after a tool call."""
    stream = room.streams.get(record.ref or "")
    reason = event.said.finish_reason
    if stream is not None and reason != "tool_use":
        answered = {answer_key(stream.agent, stream.prompt): reason}
        room = replace(room, answered=remember_outcomes(room.answered, answered))
    return close_stream(room, record.ref, reason)


DECIDE: Deciders = {
    ResponseStart: start_response,
    ResponseChunk: add_response_chunk,
    ResponseEnd: end_response,
}
EVOLVE: Evolvers = {
    ResponseStarted: on_started,
    ResponseChunked: unchanged,
    ResponseEnded: on_ended,
}
