"""Thinking: the part of an agent's reasoning that it shows to some or all members."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta

from accord.core.kernel.context import Command, Deciders, Evolvers, unchanged
from accord.core.kernel.messages import Body, MemberIds
from accord.core.kernel.records import Event, Record
from accord.core.kernel.role_permissions import Permission
from accord.core.room.conversation import responses
from accord.core.room.field_types import Id, ShortText, Text, Visibility
from accord.core.room.state import AgentStream, Room


class ThinkingStart(Body, frozen=True, omit_defaults=True, gc=False):
    """Start a stream of thinking about a prompt."""

    type = "thinking.start"
    needs = Permission.ACT_AS_AGENT
    forkable = True
    cites_others = True

    agent: Id
    prompt_ref: Id
    visible_to: Visibility

    def claimed_ids(self) -> Iterator[str]:
        yield self.agent

    def cited_ids(self) -> Iterator[str]:
        yield self.prompt_ref


class ThinkingChunk(Body, frozen=True, omit_defaults=True, gc=False):
    """The next part of the thinking."""

    type = "thinking.chunk"
    needs = Permission.ACT_AS_AGENT
    forkable = True
    is_chunk = True

    text: Text


class ThinkingEnd(Body, frozen=True, omit_defaults=True, gc=False):
    """End the thinking."""

    type = "thinking.end"
    needs = Permission.ACT_AS_AGENT
    forkable = True

    summary: ShortText | None = None
    duration_ms: Annotated[int, Meta(ge=0)] | None = None


class ThinkingStarted(Event, frozen=True, kw_only=True, gc=False):
    """An agent started to show its thinking."""

    name = "thinking.started"

    said: ThinkingStart


class ThinkingChunked(Event, frozen=True, kw_only=True, gc=False):
    """The thinking continued."""

    name = "thinking.chunked"

    said: ThinkingChunk


class ThinkingEnded(Event, frozen=True, kw_only=True, gc=False):
    """The thinking ended."""

    name = "thinking.ended"

    said: ThinkingEnd


def thinking_readers(room: Room, agent: str, visible_to: Visibility) -> MemberIds | None:
    """The members who may read it now; approvers are those who may approve at present (OPEN-44)."""
    if visible_to == "all":
        return None
    if visible_to == "approvers_only":
        approvers = {m.id for m in room.members.values() if Permission.APPROVE in m.may}
        return frozenset(approvers) | {agent}
    return frozenset(visible_to) | {agent}


def start_thinking(room: Room, command: Command, body: ThinkingStart) -> Iterator[Event]:
    responses.check_stream_start(room, command, body.prompt_ref)
    yield ThinkingStarted(said=body, to=thinking_readers(room, body.agent, body.visible_to))


def add_thinking_chunk(room: Room, command: Command, body: ThinkingChunk) -> Iterable[Event]:
    stream = responses.find_own_stream(room, command, thinking=True)
    to = thinking_readers(room, stream.agent, stream.visible_to)
    return (ThinkingChunked(said=body, ref=stream.id, to=to, fork=stream.fork),)


def end_thinking(room: Room, command: Command, body: ThinkingEnd) -> Iterator[Event]:
    """End the thinking; its summary goes to the same readers."""
    stream = responses.find_own_stream(room, command, thinking=True)
    yield thinking_ended(room, stream, body)


def thinking_ended(room: Room, stream: AgentStream, body: ThinkingEnd) -> ThinkingEnded:
    to = thinking_readers(room, stream.agent, stream.visible_to)
    return ThinkingEnded(said=body, ref=stream.id, to=to, fork=stream.fork)


def interruption_event(room: Room, stream: AgentStream) -> Event:
    """End a stream whose agent left, or whose fork or session ended."""
    if stream.thinking:
        return thinking_ended(room, stream, ThinkingEnd())
    body = responses.ResponseEnd(finish_reason="interrupted")
    return responses.ResponseEnded(said=body, ref=stream.id, fork=stream.fork)


def interrupt_streams(room: Room, agent: str | None = None) -> Iterator[Event]:
    """End the open streams of one agent, or of all."""
    for stream in room.streams.values():
        if agent is None or stream.agent == agent:
            yield interruption_event(room, stream)


def on_started(room: Room, event: ThinkingStarted, record: Record) -> Room:
    body = event.said
    stream = AgentStream(
        record.id,
        body.agent,
        body.prompt_ref,
        thinking=True,
        visible_to=body.visible_to,
        fork=record.fork,
    )
    return responses.open_stream(room, stream)


def on_ended(room: Room, event: ThinkingEnded, record: Record) -> Room:
    return responses.close_stream(room, record.ref, "ended")


DECIDE: Deciders = {
    ThinkingStart: start_thinking,
    ThinkingChunk: add_thinking_chunk,
    ThinkingEnd: end_thinking,
}
EVOLVE: Evolvers = {
    ThinkingStarted: on_started,
    ThinkingChunked: unchanged,
    ThinkingEnded: on_ended,
}
