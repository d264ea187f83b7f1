"""The port of a context: its state, deciders and evolvers, timers and presence."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from accord.core.kernel.actor import Actor
from accord.core.kernel.effects import Effect, ReplayedMessage
from accord.core.kernel.messages import Body, Elapsed, Instant, MemberIds, Message
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind


class Command(msgspec.Struct, gc=False):
    """A message with the verified sender, the time and the records that it cites."""

    message: Message
    actor: Actor
    at: Instant
    cited_records: Mapping[str, Record]
    policy: Any


State = TypeVar("State")


EventOrEffect = Event | Effect


# Deciders of a single event return a tuple, which is faster than a generator.
Decider = Callable[[Any, Command, Any], Iterable[EventOrEffect]]


Evolver = Callable[[Any, Any, Record], Any]


Deciders = Mapping[type[Body], Decider]


Evolvers = Mapping[type[Event], Evolver]


class Inactivity(Enum):
    """How long a member has been inactive: active again, for a while, for long."""

    ENDED = "over"
    IDLE = "idle"
    AWAY = "away"


class HeartbeatPolicy(NamedTuple):
    """Ping interval, and after how many milliseconds of silence a member is idle or away."""

    interval_ms: Instant
    idle_after_ms: Instant
    away_after_ms: Instant
    ping: Body
    inactivity_body: Callable[[str, Instant, Inactivity], Body]


class PresencePort(NamedTuple, Generic[State]):
    """What a context says about its members; the defaults suit one that has none."""

    audience: Callable[[State, Record], MemberIds | None] = lambda _, record: record.to
    replay_for: Callable[[State, str], Iterator[ReplayedMessage]] = lambda *_: iter(())
    heartbeat_policy: Callable[[State], HeartbeatPolicy | None] = lambda _: None
    disconnect_body: Callable[[str, Instant], Body] | None = None
    return_body: Callable[[State, str, Instant], Body | None] = lambda *_: None
    connected_members: Callable[[State], Iterator[str]] = lambda _: iter(())
    is_member: Callable[[State, Actor], bool] = lambda *_: True
    dormant_summary: Callable[[State], tuple[str, ...]] = lambda _: ()


class Context(NamedTuple, Generic[State]):
    """What the engine needs of a context.

    Six names; then timers, retries and presence where it has them.
    """

    name: str
    initial_state: Callable[[str], State]
    decide: Deciders
    evolve: Evolvers
    admit: Callable[[State, Command], None]
    state_type: type[State]
    deadlines: Callable[[State, Any], Iterator[Instant]] = lambda *_: iter(())
    tick_body: Body = Elapsed()
    startup_body: Body | None = None
    knows_id: Callable[[State, str, str], bool] = lambda *_: False
    presence: PresencePort[State] = PresencePort()
    # Whether the state stays in memory, for streams that are small, many and in use for long.
    keeps_state: bool = False


def server_only(detail: str) -> Callable[[object, Command], None]:
    """An `admit` that refuses every actor except the server, with `detail`."""

    def admit(_: object, command: Command) -> None:
        if command.actor.kind is not Kind.SYSTEM:
            raise Refused(Reason.FORBIDDEN, detail)

    return admit


def no_events(state: object, command: Command, body: Body) -> tuple[EventOrEffect, ...]:
    """A decider that changes nothing."""
    return ()


def unchanged(state: State, event: Event, record: Record) -> State:
    """An evolver for events that do not change the state; returns the same object."""
    return state


def fold(context: Context[State], state: State, records: Iterable[Record]) -> State:
    """The state after these records; events without an evolver are ignored."""
    for record in records:
        if evolver := context.evolve.get(type(record.event)):
            state = evolver(state, record.event, record)
    return state
