"""One stream in memory: its state, its place in the log, and what is not committed yet."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from accord.core.kernel.actor import Actor
from accord.core.kernel.chain import genesis
from accord.core.kernel.log import (
    Context,
    Effect,
    Event,
    Instant,
    Message,
    Record,
    Silence,
)
from accord.core.kernel.refusal import Refused
from accord.engine.flow import Flow
from accord.engine.ports import Sealed

if TYPE_CHECKING:
    from accord.engine.run import Run

MOST_SIGNALS = 256
MOST_FLOWS = 64
# What a stream keeps at hand, besides so many records.
LARGEST_WINDOW = 8 << 20
NOTHING: Mapping[str, Sealed | None] = {}
BODY, ID = attrgetter("body"), attrgetter("record.id")


class Peer(Protocol):
    """A live connection of one principal."""

    seat: str
    runtime: str
    private: bool  # nobody on the way can read along

    @property
    def alive(self) -> bool:
        """Whether it is still connected."""
        ...

    @staticmethod
    def join(frames: list[bytes]) -> bytes:
        """Several frames as one write of this transport; made once for all its peers."""
        ...

    def write(self, data: bytes) -> None:
        """Send what `join` made; a peer that is too slow is cut off."""
        ...

    async def drained(self) -> None:
        """Wait until it has taken most of what was written."""
        ...

    def close(self, reason: str, *, again: bool = False) -> None:
        """End the connection and say why; `again` invites it to come back."""
        ...


class Asked(msgspec.Struct, gc=False, eq=False):
    """A message under way, until it is answered. `found` is what had to be looked up for it."""

    message: Message
    actor: Actor
    answer: "Answerer | None" = None
    peer: Peer | None = None
    found: Mapping[str, Sealed | None] = NOTHING
    at: Instant = 0  # when it was decided

    def tell(self, outcome: "Outcome") -> None:
        """Answer whoever asked, once.

        Whoever keeps the outcome must not be kept by it: neither would ever be let go, since these
        are not looked at by the collector.
        """
        answer, self.answer = self.answer, None
        if answer is not None:
            answer(outcome)

    def refuse(self, no: Refused) -> None:
        """Tell whoever asked that it was not even decided."""
        self.tell(Outcome(self, refused=no))


class Place(msgspec.Struct, gc=False):
    """Where a stream stands: state and everything the next record is stamped with."""

    state: Any
    version: int
    seq: int
    hash: bytes
    at: Instant


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What became of a message: its records, or why it was refused; told after the commit.

    `again` marks the answer to a retry, which the room does not hear a second time.
    """

    asked: Asked
    sealed: tuple[Sealed, ...] = ()
    says: tuple[Effect, ...] = ()
    refused: Refused | None = None
    again: bool = False

    def waiting(self) -> Iterator[Asked]:
        """Who waits for it."""
        yield self.asked


Answerer = Callable[[Outcome], None]


class Cell:
    """A stream: `place` moves on with what is decided, `base` is what is durable."""

    __slots__ = (
        "ahead",
        "base",
        "busy",
        "cause",
        "committing",
        "context",
        "deadline",
        "flows",
        "index",
        "kept",
        "made",
        "most",
        "newest",
        "outbox",
        "place",
        "queue",
        "quiet",
        "seen",
        "signals",
        "since",
        "stream",
        "underway",
        "unstored",
        "waiting",
        "weight",
        "window",
    )

    def __init__(self, stream: str, context: Context[Any], window: int) -> None:
        self.stream = stream
        self.context = context
        self.stand(Place(context.start(stream), 0, 0, genesis(stream), 0))
        self.window: deque[Sealed] = deque()
        self.most = window
        self.weight = 0
        self.index: dict[str, Sealed] = {}
        self.queue: deque[Asked] = deque()
        self.outbox: list[Outcome | Run] = []
        self.underway: list[Outcome | Run] = []
        self.made: list[Sealed] = []
        self.unstored = 0  # what was decided weighs so much until it is durable
        self.busy = 0  # how many reasons there are to decide nothing just now
        self.newest = 0
        self.committing = False
        self.deadline: Instant | None = 0  # not known; what was scheduled for it may be wrong
        self.waiting: list[asyncio.Future[None]] = []
        self.kept = 0
        self.seen: dict[str, Instant] = {}
        self.quiet: dict[str, Silence] = {}
        self.signals: dict[str, str | None] = {}  # drafts and the like, and where they were sent
        self.flows: dict[str | None, Flow] = {}  # by the `ref` of their pieces
        self.since = 0.0  # when the oldest of the outbox was decided
        self.cause: contextvars.Context | None = None  # what it was part of, if anybody traces
        self.ahead = 0  # how far the time of its records is ahead of our clock

    def stand(self, base: Place) -> None:
        """This is durable, and nothing is decided beyond it."""
        self.base, self.place = base, copy(base)

    def remember(self, fresh: Sequence[Sealed]) -> None:
        """Keep committed records at hand; the oldest give way."""
        window, index = self.window, self.index
        window.extend(fresh)
        index.update(zip(map(ID, fresh), fresh, strict=True))
        weight = self.weight + sum(map(len, map(BODY, fresh)))
        old = [window.popleft() for _ in range(len(window) - self.most)]
        weight -= sum(map(len, map(BODY, old)))
        while weight > LARGEST_WINDOW and len(window) > 1:
            old.append(window.popleft())
            weight -= len(old[-1].body)
        deque(map(index.pop, map(ID, old), repeat(None)), maxlen=0)
        self.weight = weight

    def forget_window(self) -> None:
        """Have no record at hand."""
        self.window.clear()
        self.index.clear()
        self.weight = 0

    def note_signal(self, message: Message) -> None:
        """A signal may be referred to for a while; the oldest that nobody refers to give way."""
        signals = self.signals
        if message.ref in signals:
            signals[message.ref] = signals.pop(message.ref)
        signals[message.id] = message.fork
        if len(signals) > MOST_SIGNALS:
            del signals[next(iter(signals))]

    def note_flow(self, message: Message, actor: Actor, event: Event) -> None:
        """More of this may follow."""
        if len(self.flows) >= MOST_FLOWS:
            self.flows.clear()
        self.flows[message.ref] = Flow.after(self.place.state, message, actor, event)

    def signalled(self, id: str, fork: str | None) -> bool:
        """Whether such a signal was sent in that fork not long ago."""
        return id in self.signals and self.signals[id] == fork

    def may_see(self, record: Record, seat: str) -> bool:
        """Whether a record is for this seat, as things stand."""
        to = record.to if record.fork is None else self.context.audience(self.base.state, record)
        return to is None or seat in to

    def forget_pending(self) -> None:
        """Stand where the log stands: nothing of what ran ahead counts any more."""
        self.made = []
        self.stand(self.base)
        self.index = {sealed.record.id: sealed for sealed in self.window}

    def undecide(self) -> list[Asked]:
        """Drop what was decided and is not durable; the messages that had led to it."""
        decided = (*self.underway, *self.outbox)
        self.underway, self.outbox, self.made = [], [], []
        return [asked for each in decided for asked in each.waiting()]

    def pending(self) -> Iterator[Asked]:
        """Every message that is not answered yet."""
        for decided in (*self.underway, *self.outbox):
            yield from decided.waiting()
        yield from self.queue

    @property
    def idle(self) -> bool:
        """Whether nothing of it is under way."""
        return not (self.busy or self.committing or self.queue or self.outbox or self.made)
