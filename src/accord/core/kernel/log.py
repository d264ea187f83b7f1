"""Messages ask, events happened, records are events in their place on the one log."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import astuple

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, May
from accord.core.kernel.refusal import Refused, Why

Instant = int  # milliseconds since 1970, UTC
Seats = frozenset[str]


class Lifetime(Enum):
    """A FACT is on the log before anybody hears of it; a SIGNAL is relayed and forgotten."""

    FACT = "fact"
    SIGNAL = "signal"


class Door(Enum):
    """Whether an event lets its subject's connections in, or puts them out."""

    IN = "in"
    OUT = "out"


class Body(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is asked. Each class names its type on the wire and the verb it needs."""

    type: ClassVar[str]
    needs: ClassVar[May]
    lifetime: ClassVar[Lifetime] = Lifetime.FACT
    while_paused: ClassVar[bool] = False
    after_end: ClassVar[bool] = False
    names_others: ClassVar[bool] = False  # whether `cites` can yield anything
    scoped: ClassVar[bool] = False  # whether it can be said inside a fork
    refs_freely: ClassVar[bool] = False  # whether its `ref` may be to what is on no record
    flows: ClassVar[bool] = False  # whether its `ref` decides, and never what it says or when

    def claims(self) -> Iterator[str]:
        """Identities the payload states; each must be the sender's own (UNI-1)."""
        return iter(())

    def cites(self) -> Iterator[str]:
        """Ids of earlier messages that deciding needs to look at."""
        return iter(())

    def repeats(self, said: "Body") -> bool:
        """Whether this asks again what `said` recorded, as a retry does (OPEN-36)."""
        return self == said


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What happened. `said` is its form on the wire, if it has one.

    `ref` and `fork` override the envelope's; `to` restricts who may see the record.
    """

    name: ClassVar[str]
    door: ClassVar[Door | None] = None
    announced: ClassVar[bool] = False  # for the whole room, though it is about a fork
    whispers: ClassVar[bool] = False  # told live with a value that is never kept
    hushes: ClassVar[bool] = False  # makes an earlier value of that key worthless

    ref: str | None = None
    to: Seats | None = None
    fork: str | None = None


class Unread(Body, frozen=True, gc=False):
    """What a newer version said and this one cannot read; it is passed on as it is."""

    type = "unread"
    needs = May.SERVE


class Elapsed(Body, frozen=True, gc=False):
    """Time has passed where nothing is ever due."""

    type = "elapsed"
    needs = May.SERVE


class Unknown(Event, frozen=True, kw_only=True, gc=False):
    """What a newer version recorded and this one does not know; folding passes it by."""

    name = "unknown"


class Failure(msgspec.Struct, frozen=True):
    """Bad news about `related_to`, told to those whom it concerns."""

    why: Why
    detail: str
    related_to: str


class Effect(msgspec.Struct, frozen=True):
    """Something to do after the commit that may be lost."""


class Say(Effect, frozen=True):
    """An effect that may be lost: told to `to` (None: the room) and forgotten.

    A failure is told by the server; a body is relayed as its sender sent it.
    """

    body: Body | Failure
    to: Seats | None = None


class Tell(Effect, frozen=True):
    """The server itself says something that nobody keeps."""

    body: Body
    to: Seats | None = None
    ref: str | None = None


class Stash(Effect, frozen=True):
    """Hold a secret's value in memory, for as long as the room keeps its key."""

    key: str
    value: str

    def __repr__(self) -> str:
        return f"Stash(key={self.key!r}, value=…)"


class Forget(Effect, frozen=True):
    """Let a secret's value go."""

    key: str


class Recall(NamedTuple):
    """Something said before, said again to somebody who was not there."""

    id: str
    sender: str
    body: Body
    secret: str | None = None  # the key of a value to whisper with it
    late: bool = False  # told after what was missed, because it says how things stand now


class Message(msgspec.Struct, frozen=True, gc=False):
    """A body in its envelope, decoded once, not yet accepted."""

    id: str
    ts: str
    room: str
    sender: str
    body: Body
    ref: str | None = None
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None


class Pieces(NamedTuple):
    """Messages that differ from the first of them in their ids, times and bodies alone."""

    first: Message
    ids: Sequence[str]
    times: Sequence[str]
    bodies: Sequence[Body]

    def each(self) -> Iterator[Message]:
        """As they came."""
        _, _, room, sender, _, ref, causal_refs, fork = astuple(self.first)
        for id, ts, body in zip(self.ids, self.times, self.bodies, strict=True):
            yield Message(id, ts, room, sender, body, ref, causal_refs, fork)


class Record(msgspec.Struct, frozen=True, gc=False):
    """An event in its place: `version` counts the stream, `seq` what has a form on the wire."""

    stream: str
    version: int
    seq: int
    id: str
    at: Instant
    actor: str
    cause: str
    ts: str
    sender: str
    event: Event
    said: Body | None = None
    ref: str | None = None
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None
    to: Seats | None = None


class Ask(msgspec.Struct, gc=False):
    """A message with what the engine knows of it: who, when, and the records it cites."""

    message: Message
    actor: Actor
    at: Instant
    known: Mapping[str, Record]
    house: Any


State = TypeVar("State")
Fact = Event | Effect
# A tuple is what a decider of one event returns, because that is quicker than yielding it.
Decider = Callable[[Any, Ask, Any], Iterable[Fact]]
Evolver = Callable[[Any, Any, Record], Any]
Deciders = Mapping[type[Body], Decider]
Evolvers = Mapping[type[Event], Evolver]


class Silence(Enum):
    """How long somebody has said nothing: no longer, for a while, for long."""

    OVER = "over"
    IDLE = "idle"
    AWAY = "away"


class Beats(NamedTuple):
    """How often members are asked for a sign of life, and what silence means, in milliseconds."""

    every: Instant
    idle: Instant
    away: Instant
    ping: Body
    silent: Callable[[str, Instant, Silence], Body]


class Context(NamedTuple, Generic[State]):
    """The names every context exports; whoever has read one has read all."""

    name: str
    start: Callable[[str], State]
    decide: Deciders
    evolve: Evolvers
    admit: Callable[[State, Ask], None]
    state: type[State]
    deadlines: Callable[[State, Any], Iterator[Instant]] = lambda *_: iter(())
    tick: Body = Elapsed()
    knows: Callable[[State, str, str], bool] = lambda *_: False
    wake: Body | None = None
    audience: Callable[[State, Record], Seats | None] = lambda _, record: record.to
    welcome: Callable[[State, str], Iterator[Recall]] = lambda *_: iter(())
    beats: Callable[[State], Beats | None] = lambda _: None
    absent: Callable[[str, Instant], Body] | None = None
    back: Callable[[State, str, Instant], Body | None] = lambda *_: None
    present: Callable[[State], Iterator[str]] = lambda _: iter(())
    insider: Callable[[State, Actor], bool] = lambda *_: True
    gist: Callable[[State], tuple[str, ...]] = lambda _: ()


def server_only(detail: str) -> Callable[[object, Ask], None]:
    """How a context admits that nobody asks but the server; whoever does is told `detail`."""

    def admit(_: object, ask: Ask) -> None:
        if ask.actor.kind is not Kind.SYSTEM:
            raise Refused(Why.FORBIDDEN, detail)

    return admit


def idle(state: object, ask: Ask, body: Body) -> tuple[Fact, ...]:
    """A decider for what changes nothing."""
    return ()


def stay(state: State, event: Event, record: Record) -> State:
    """An evolver for what leaves no mark: the very same state object."""
    return state


def fold(context: Context[State], state: State, records: Iterable[Record]) -> State:
    """The state after these records; what no evolver knows passes by."""
    for record in records:
        if evolver := context.evolve.get(type(record.event)):
            state = evolver(state, record.event, record)
    return state
