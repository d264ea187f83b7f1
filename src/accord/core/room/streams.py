"""Responses: an agent's answer, chunk by chunk."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from accord.core.kernel.authority import May
from accord.core.kernel.limits import reached
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Record, stay
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.fields import Id, Number, Short, Text
from accord.core.room.past import past_key, remember
from accord.core.room.prompts import PromptSubmit, answer_key
from accord.core.room.state import Room, Stream, without


class UsageStats(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What an answer cost (PVP 12.2)."""

    input_tokens: Number
    output_tokens: Number
    thinking_tokens: Number | None = None
    cost_usd: float | None = None
    model: Short | None = None
    latency_ms: Number | None = None


class ResponseStart(Body, frozen=True, omit_defaults=True, gc=False):
    """Begin an answer to a prompt."""

    type = "response.start"
    needs = May.ACT
    scoped = True
    names_others = True

    agent: Id
    prompt_ref: Id

    def claims(self) -> Iterator[str]:
        """An agent answers for itself."""
        yield self.agent

    def cites(self) -> Iterator[str]:
        """The prompt."""
        yield self.prompt_ref


class ResponseChunk(Body, frozen=True, omit_defaults=True, gc=False):
    """More of an answer."""

    type = "response.chunk"
    needs = May.ACT
    scoped = True
    flows = True

    text: Text


class ResponseEnd(Body, frozen=True, omit_defaults=True, gc=False):
    """The answer is over."""

    type = "response.end"
    needs = May.ACT
    scoped = True

    finish_reason: Literal["complete", "interrupted", "error", "max_tokens", "tool_use"]
    usage: UsageStats | None = None
    metadata: dict[str, Any] | None = None


class ResponseStarted(Event, frozen=True, kw_only=True, gc=False):
    """An answer began."""

    name = "response.started"

    said: ResponseStart


class ResponseChunked(Event, frozen=True, kw_only=True, gc=False):
    """More of an answer was given."""

    name = "response.chunked"

    said: ResponseChunk


class ResponseEnded(Event, frozen=True, kw_only=True, gc=False):
    """An answer ended."""

    name = "response.ended"

    said: ResponseEnd


def start(room: Room, ask: Ask, body: ResponseStart) -> Iterator[Event]:
    """An answer to a prompt that was submitted here."""
    check_start(room, ask, body.prompt_ref)
    yield ResponseStarted(said=body)


def check_start(room: Room, ask: Ask, prompt: str) -> None:
    """A stream answers a prompt, and not too many are open."""
    if not isinstance(ask.known[prompt].said, PromptSubmit):
        raise Refused(Why.MALFORMED, f"prompt_ref {prompt} is not a prompt.submit")
    if len(room.streams) >= (most := ask.house.limits.streams):
        raise reached("streams", most, f"{most} streams are open; end one first")


def mine(room: Room, ask: Ask, *, thinking: bool) -> Stream:
    """The stream that is meant; whoever names a fork means one that goes on there."""
    stream, fork = named(room, ask, thinking=thinking), ask.message.fork
    if fork is not None and fork != stream.fork:
        place = "the trunk" if stream.fork is None else f"fork {stream.fork}"
        raise Refused(Why.WRONG_STATE, f"{stream.id} goes on in {place}, not in fork {fork}")
    return stream


def named(room: Room, ask: Ask, *, thinking: bool) -> Stream:
    """The sender's stream that `ref` names, or its only one (OPEN-44)."""
    seat, ref = ask.actor.seat, ask.message.ref
    if ref is not None:
        stream = room.streams.get(ref)
        if stream is not None and stream.agent == seat and stream.thinking is thinking:
            return stream
        what = "thinking" if thinking else "response"
        raise Refused(Why.WRONG_STATE, f"{ref} is not an open {what} of {seat}")
    streams = room.streams.values()
    own = [stream for stream in streams if stream.agent == seat and stream.thinking is thinking]
    if len(own) != 1:
        what = "thinking streams" if thinking else "responses"
        count = len(own) or "no"
        raise Refused(Why.WRONG_STATE, f"{seat} has {count} open {what}; set ref to its start")
    return own[0]


def chunk(room: Room, ask: Ask, body: ResponseChunk) -> Iterable[Event]:
    """More text for an open stream of the sender's."""
    stream = mine(room, ask, thinking=False)
    return (ResponseChunked(said=body, ref=stream.id, fork=stream.fork),)


def end(room: Room, ask: Ask, body: ResponseEnd) -> Iterator[Event]:
    """Close an open stream of the sender's."""
    stream = mine(room, ask, thinking=False)
    yield ResponseEnded(said=body, ref=stream.id, fork=stream.fork)


def opened(room: Room, stream: Stream) -> Room:
    """One more open stream."""
    return replace(room, streams={**room.streams, stream.id: stream})


def closed(room: Room, id: str | None, ended: str) -> Room:
    """One less."""
    stream = room.streams.get(id or "")
    if stream is None:
        return room
    past = remember(room.past, {past_key(stream.fork, stream.id): ended})
    return replace(room, streams=without(room.streams, stream.id), past=past)


def on_started(room: Room, event: ResponseStarted, record: Record) -> Room:
    """Remember the open stream."""
    said = event.said
    return opened(room, Stream(record.id, said.agent, said.prompt_ref, fork=record.fork))


def on_ended(room: Room, event: ResponseEnded, record: Record) -> Room:
    """Forget it; a prompt is answered unless the agent goes on after a tool."""
    stream = room.streams.get(record.ref or "")
    reason = event.said.finish_reason
    if stream is not None and reason != "tool_use":
        answered = {answer_key(stream.agent, stream.prompt): reason}
        room = replace(room, answered=remember(room.answered, answered))
    return closed(room, record.ref, reason)


DECIDE: Deciders = {ResponseStart: start, ResponseChunk: chunk, ResponseEnd: end}
EVOLVE: Evolvers = {ResponseStarted: on_started, ResponseChunked: stay, ResponseEnded: on_ended}
