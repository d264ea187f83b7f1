"""Thinking: what an agent lets some or all see of its reasoning."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta

from accord.core.kernel.authority import May
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Record, Seats, stay
from accord.core.room import streams
from accord.core.room.fields import Id, Short, Text, Visibility
from accord.core.room.state import Room, Stream


class ThinkingStart(Body, frozen=True, omit_defaults=True, gc=False):
    """Begin to think aloud about a prompt."""

    type = "thinking.start"
    needs = May.ACT
    scoped = True
    names_others = True

    agent: Id
    prompt_ref: Id
    visible_to: Visibility

    def claims(self) -> Iterator[str]:
        """An agent thinks for itself."""
        yield self.agent

    def cites(self) -> Iterator[str]:
        """The prompt."""
        yield self.prompt_ref


class ThinkingChunk(Body, frozen=True, omit_defaults=True, gc=False):
    """More of it."""

    type = "thinking.chunk"
    needs = May.ACT
    scoped = True
    flows = True

    text: Text


class ThinkingEnd(Body, frozen=True, omit_defaults=True, gc=False):
    """Done thinking."""

    type = "thinking.end"
    needs = May.ACT
    scoped = True

    summary: Short | None = None
    duration_ms: Annotated[int, Meta(ge=0)] | None = None


class ThinkingStarted(Event, frozen=True, kw_only=True, gc=False):
    """An agent thinks aloud."""

    name = "thinking.started"

    said: ThinkingStart


class ThinkingChunked(Event, frozen=True, kw_only=True, gc=False):
    """More of it."""

    name = "thinking.chunked"

    said: ThinkingChunk


class ThinkingEnded(Event, frozen=True, kw_only=True, gc=False):
    """It has ended."""

    name = "thinking.ended"

    said: ThinkingEnd


def seen_by(room: Room, agent: str, visible_to: Visibility) -> Seats | None:
    """Who may see it now; approvers are those who may approve at this moment (OPEN-44)."""
    if visible_to == "all":
        return None
    if visible_to == "approvers_only":
        able = {seat for seat, member in room.members.items() if May.APPROVE in member.may}
        return frozenset(able) | {agent}
    return frozenset(visible_to) | {agent}


def start(room: Room, ask: Ask, body: ThinkingStart) -> Iterator[Event]:
    """About a prompt that was submitted here."""
    streams.check_start(room, ask, body.prompt_ref)
    yield ThinkingStarted(said=body, to=seen_by(room, body.agent, body.visible_to))


def chunk(room: Room, ask: Ask, body: ThinkingChunk) -> Iterable[Event]:
    """For those who may see it now."""
    stream = streams.mine(room, ask, thinking=True)
    to = seen_by(room, stream.agent, stream.visible_to)
    return (ThinkingChunked(said=body, ref=stream.id, to=to, fork=stream.fork),)


def end(room: Room, ask: Ask, body: ThinkingEnd) -> Iterator[Event]:
    """The summary is no more public than the thinking was."""
    stream = streams.mine(room, ask, thinking=True)
    yield ended(room, stream, body)


def ended(room: Room, stream: Stream, body: ThinkingEnd) -> ThinkingEnded:
    """The end of a stream, for those who may see it."""
    to = seen_by(room, stream.agent, stream.visible_to)
    return ThinkingEnded(said=body, ref=stream.id, to=to, fork=stream.fork)


def interruption(room: Room, stream: Stream) -> Event:
    """Close a stream whose agent cannot any more."""
    if stream.thinking:
        return ended(room, stream, ThinkingEnd())
    said = streams.ResponseEnd(finish_reason="interrupted")
    return streams.ResponseEnded(said=said, ref=stream.id, fork=stream.fork)


def interrupted(room: Room, agent: str | None = None) -> Iterator[Event]:
    """Close what is open, for an agent that went or a session that ends."""
    for stream in room.streams.values():
        if agent is None or stream.agent == agent:
            yield interruption(room, stream)


def on_started(room: Room, event: ThinkingStarted, record: Record) -> Room:
    """Remember the open stream and who may see it."""
    said = event.said
    stream = Stream(
        record.id,
        said.agent,
        said.prompt_ref,
        thinking=True,
        visible_to=said.visible_to,
        fork=record.fork,
    )
    return streams.opened(room, stream)


def on_ended(room: Room, event: ThinkingEnded, record: Record) -> Room:
    """Forget it."""
    return streams.closed(room, record.ref, "ended")


DECIDE: Deciders = {ThinkingStart: start, ThinkingChunk: chunk, ThinkingEnd: end}
EVOLVE: Evolvers = {ThinkingStarted: on_started, ThinkingChunked: stay, ThinkingEnded: on_ended}
