"""Responses: an agent's answer, chunk by chunk."""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from accord.core.kernel.authority import May
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Record, stay
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.prompts import PromptSubmit
from accord.core.room.state import Id, Number, Room, Short, Stream, Text, remember, without


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

    text: Text


class ResponseEnd(Body, frozen=True, omit_defaults=True, gc=False):
    """The answer is over."""

    type = "response.end"
    needs = May.ACT

    finish_reason: Literal["complete", "interrupted", "error", "max_tokens", "tool_use"]
    usage: UsageStats | None = None


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
    if not isinstance(ask.known[body.prompt_ref].said, PromptSubmit):
        raise Refused(Why.MALFORMED, f"prompt_ref {body.prompt_ref} is not a prompt.submit")
    if len(room.streams) >= ask.house.most_open:
        limit = ask.house.most_open
        raise Refused(Why.WRONG_STATE, f"{limit} streams are open; end one first")
    yield ResponseStarted(said=body)


def mine(room: Room, ask: Ask) -> str:
    """The sender's stream that `ref` names, or its only one (OPEN-44)."""
    seat, ref = ask.actor.seat, ask.message.ref
    if ref is not None:
        stream = room.streams.get(ref)
        if stream is not None and stream.agent == seat:
            return ref
        raise Refused(Why.WRONG_STATE, f"{ref} is not an open response of {seat}")
    own = [stream.id for stream in room.streams.values() if stream.agent == seat]
    if len(own) != 1:
        count = len(own) or "no"
        raise Refused(Why.WRONG_STATE, f"{seat} has {count} open responses; set ref to its start")
    return own[0]


def chunk(room: Room, ask: Ask, body: ResponseChunk) -> Iterator[Event]:
    """More text for an open stream of the sender's."""
    yield ResponseChunked(said=body, ref=mine(room, ask))


def end(room: Room, ask: Ask, body: ResponseEnd) -> Iterator[Event]:
    """Close an open stream of the sender's."""
    yield ResponseEnded(said=body, ref=mine(room, ask))


def interrupted(room: Room, agent: str | None = None) -> Iterator[Event]:
    """Close what is open, for an agent that went or a session that ends."""
    for stream in room.streams.values():
        if agent is None or stream.agent == agent:
            yield ResponseEnded(said=ResponseEnd(finish_reason="interrupted"), ref=stream.id)


def on_started(room: Room, event: ResponseStarted, record: Record) -> Room:
    """Remember the open stream."""
    stream = Stream(id=record.id, agent=event.said.agent, prompt=event.said.prompt_ref)
    return replace(room, streams={**room.streams, stream.id: stream})


def on_ended(room: Room, event: ResponseEnded, record: Record) -> Room:
    """Forget it."""
    if record.ref is None or record.ref not in room.streams:
        return room
    past = remember(room.past, {record.ref: event.said.finish_reason})
    return replace(room, streams=without(room.streams, record.ref), past=past)


DECIDE: Deciders = {ResponseStart: start, ResponseChunk: chunk, ResponseEnd: end}
EVOLVE: Evolvers = {ResponseStarted: on_started, ResponseChunked: stay, ResponseEnded: on_ended}
