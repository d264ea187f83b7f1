"""One stream in memory: durable position, decided position, and what is between them.

A stream is the unit of order and of consistency. All messages of a session pass through its
`Stream` object, one after another, on one event loop; so no locks are needed. The fields below fall
into four groups.

TWO POSITIONS. `base` is where the log on disk is: version, `seq`, hash, time and state after the
newest durable record. `tip` is where deciding is: `base` plus all records decided since. Rules read
and advance `tip`. Readers (`Engine.state`, replay, visibility on delivery) use `base`, so that
nothing is shown that a crash could undo. When nothing is pending both are equal. The hash of `tip`
is not maintained: rows are chained when they are committed.

FROM MESSAGE TO ANSWER. A `Submission` is in exactly one of these places:

- `queue`: not decided. The stream is held (`hold_count` > 0), because it is being read, is catching
up with another process, or waits for records of the message at the front. Otherwise messages are
decided when they arrive, and the queue is empty.

- `outbox`: decided, and waiting for the next commit. Its records are in `pending_records`.

- `in_flight`: decided, and part of the commit that is running (`committing`). When a commit starts,
`outbox` becomes `in_flight` and `pending_records` are taken along.

- answered: the commit succeeded, `base` advanced, delivery and `Submission.resolve` ran.

If the append finds that another process was first, or the store fails, `roll_back` empties
`in_flight` and `outbox` and returns their messages, which are decided again or refused; and
`drop_pending_records` sets `tip` back to `base`.

THE WINDOW. `window` holds the newest committed records (1000 by default, and at most 8 MiB), so
that retries, citations and replays rarely read from disk. `index` finds a record by id: everything
in the window, and everything decided but not committed. A record enters `index` when it is decided
and `window` when it is committed; it leaves both when newer ones displace it. What is older has to
be looked up in the store (see `engine/decider.py`).

OTHER PROCESSES. Several processes may share a log. `newest_version` is the newest version seen on
the log's tail. If it is ahead of `base` while the stream is idle, the stream catches up. While it
is not idle, its own append raises Conflict, which leads to the same.

The rest are caches of what the log does not contain: who was active when (`last_seen`, `inactive`),
recent signals (`signals`), results of chunks (`chunk_streams`). They may be lost at any time.
"""

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
from accord.core.kernel.context import Context, Inactivity
from accord.core.kernel.effects import Effect
from accord.core.kernel.integrity.hash_chain import genesis_hash
from accord.core.kernel.messages import Body, Instant, Message
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Refused
from accord.engine.ports import EncodedRecord, StoreError

if TYPE_CHECKING:  # a stream only keeps them; that module has the rules and imports this one
    from accord.engine.chunk_fast_path import ChunkBatchOutcome, ChunkStream

MAX_SIGNALS = 256
# Seconds between looks whether a commit has ended.
COMMIT_CHECK_INTERVAL_S = 0.0005
# Upper bound of a window in bytes, besides its bound in records.
MAX_WINDOW_BYTES = 8 << 20
NONE_LOOKED_UP: Mapping[str, EncodedRecord | None] = {}
BODY, ID = attrgetter("body"), attrgetter("record.id")


class Peer(Protocol):
    """A live connection of one principal."""

    principal: str
    runtime: str
    is_secure: bool  # the transport is encrypted or local

    @property
    def is_connected(self) -> bool: ...

    @staticmethod
    def join_frames(frames: list[bytes]) -> bytes:
        """Several frames as one write of this transport; done once for all its peers."""
        ...

    def write(self, data: bytes) -> None:
        """Send what `join_frames` returned; a peer that is too slow is disconnected."""
        ...

    async def drain(self) -> None:
        """Wait until most of what was written was received."""
        ...

    def close(self, reason: str, *, reconnect: bool = False) -> None:
        """Close the connection with a reason; `reconnect` invites the client to come back."""
        ...


class Submission(msgspec.Struct, gc=False, eq=False):
    """A message until it is answered; `looked_up` holds records read from the store for it."""

    message: Message
    actor: Actor
    on_outcome: "OnOutcome | None" = None
    peer: Peer | None = None
    looked_up: Mapping[str, EncodedRecord | None] = NONE_LOOKED_UP
    decided_at: Instant = 0  # time of its records
    is_confirmed: bool = False  # a refusal rests on a state that was current

    def resolve(self, outcome: "Outcome") -> None:
        """Answer the sender, once.

        The callback is dropped then: it may refer to the outcome, and these structs are not tracked
        by the garbage collector, so a cycle would never be freed.
        """
        answer, self.on_outcome = self.on_outcome, None
        if answer is not None:
            answer(outcome)

    def refuse(self, refusal: Refused) -> None:
        """Answer that the message was refused without being decided."""
        self.resolve(Outcome(self, refusal=refusal))


class StreamPosition(msgspec.Struct, gc=False):
    """A position in a stream: the state, and what the next record is numbered from."""

    state: Any
    version: int
    seq: int
    hash: bytes
    at: Instant


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The result of a message, delivered after the commit: its records, or why it was refused.

    `is_retry` marks the answer to a retry, which is not delivered to the session again.
    """

    submission: Submission
    records: tuple[EncodedRecord, ...] = ()
    effects: tuple[Effect, ...] = ()
    refusal: Refused | None = None
    is_retry: bool = False

    def submissions(self) -> Iterator[Submission]:
        yield self.submission


OnOutcome = Callable[[Outcome], None]


class SubmitSystemMessage(Protocol):
    """Submits a message of the server itself to a stream."""

    def __call__(
        self, stream: str, body: Body, actor: Actor, answer: OnOutcome | None = None
    ) -> None: ...


class Stream:
    """One stream in memory; the top of this file explains its fields."""

    __slots__ = (
        "base",
        "chunk_streams",
        "clock_ahead",
        "committing",
        "context",
        "deadline",
        "hold_count",
        "id",
        "in_flight",
        "inactive",
        "index",
        "last_seen",
        "max_window",
        "newest_version",
        "outbox",
        "outbox_since",
        "pending_records",
        "queue",
        "ready_waiters",
        "signals",
        "snapshot_version",
        "tip",
        "trace_context",
        "unstored_bytes",
        "window",
        "window_bytes",
    )

    def __init__(self, stream: str, context: Context[Any], window: int) -> None:
        self.id = stream
        self.context = context
        self.reset_to(StreamPosition(context.initial_state(stream), 0, 0, genesis_hash(stream), 0))
        self.window: deque[EncodedRecord] = deque()
        self.max_window = window
        self.window_bytes = 0
        self.index: dict[str, EncodedRecord] = {}
        self.queue: deque[Submission] = deque()
        self.outbox: list[Outcome | ChunkBatchOutcome] = []
        self.in_flight: list[Outcome | ChunkBatchOutcome] = []
        self.pending_records: list[EncodedRecord] = []
        self.unstored_bytes = 0  # size of what is decided and not durable
        self.hold_count = 0  # reasons not to decide now
        self.newest_version = 0
        self.committing = False
        self.deadline: Instant | None = 0  # 0: unknown
        self.ready_waiters: list[asyncio.Future[None]] = []
        self.snapshot_version = 0
        self.last_seen: dict[str, Instant] = {}
        self.inactive: dict[str, Inactivity] = {}
        self.signals: dict[str, str | None] = {}  # id of a signal to its fork
        self.chunk_streams: dict[str | None, ChunkStream] = {}  # by the `ref` of the chunks
        self.outbox_since = 0.0  # when the oldest outcome in the outbox was decided
        self.trace_context: contextvars.Context | None = None  # of the request, if traces are on
        self.clock_ahead = 0  # by how much the newest record is ahead of our clock

    def reset_to(self, base: StreamPosition) -> None:
        """Set the durable position; nothing is decided beyond it."""
        self.base, self.tip = base, copy(base)

    def add_to_window(self, fresh: Sequence[EncodedRecord]) -> None:
        """Add committed records; the oldest ones are dropped beyond the limits."""
        window, index = self.window, self.index
        window.extend(fresh)
        index.update(zip(map(ID, fresh), fresh, strict=True))
        weight = self.window_bytes + sum(map(len, map(BODY, fresh)))
        old = [window.popleft() for _ in range(len(window) - self.max_window)]
        weight -= sum(map(len, map(BODY, old)))
        while weight > MAX_WINDOW_BYTES and len(window) > 1:
            old.append(window.popleft())
            weight -= len(old[-1].body)
        deque(map(index.pop, map(ID, old), repeat(None)), maxlen=0)
        self.window_bytes = weight

    def adopt_newest(self, records: Sequence[EncodedRecord]) -> None:
        """Use records that were read from the log as the window, if they are more than it has."""
        is_end = bool(records) and records[-1].record.version == self.base.version
        if is_end and len(records) > len(self.window) and self.is_idle:
            self.clear_window()
            self.add_to_window(records)

    def clear_window(self) -> None:
        self.window.clear()
        self.index.clear()
        self.window_bytes = 0

    def remember_signal(self, message: Message) -> None:
        """Allow citing this signal for a while; the least recently cited is dropped first."""
        signals = self.signals
        if message.ref in signals:
            signals[message.ref] = signals.pop(message.ref)
        self.remember_signal_id(message.id, message.fork)

    def remember_signal_id(self, id: str, fork: str | None) -> None:
        self.signals[id] = fork
        if len(self.signals) > MAX_SIGNALS:
            del self.signals[next(iter(self.signals))]

    def has_signal(self, id: str, fork: str | None) -> bool:
        """Whether a recent signal with this id was sent in this fork."""
        return id in self.signals and self.signals[id] == fork

    def may_see(self, record: Record, seat: str) -> bool:
        """Whether this member may see the record, in the durable state."""
        to = (
            record.to
            if record.fork is None
            else self.context.presence.audience(self.base.state, record)
        )
        return to is None or seat in to

    def drop_pending_records(self) -> None:
        """Go back to the durable position."""
        self.pending_records = []
        self.reset_to(self.base)
        self.index = {encoded.record.id: encoded for encoded in self.window}

    def roll_back(self) -> list[Submission]:
        """Drop what is decided and not durable; returns its messages."""
        decided = (*self.in_flight, *self.outbox)
        self.in_flight, self.outbox, self.pending_records = [], [], []
        return [submission for each in decided for submission in each.submissions()]

    async def commit_ended(self) -> None:
        """Wait until no commit is running."""
        while self.committing:  # noqa: ASYNC110 - there is no event, and it ends in milliseconds
            await asyncio.sleep(COMMIT_CHECK_INTERVAL_S)

    def abandon(self, error: StoreError) -> list[Submission]:
        """Give up what is queued and decided; returns the messages that have to be answered."""
        for ready in self.ready_waiters:
            if not ready.done():
                ready.set_exception(error)
        waiting = list(self.unanswered())
        self.outbox, self.pending_records = [], []
        self.queue.clear()
        return waiting

    def unanswered(self) -> Iterator[Submission]:
        """Every message that is not answered yet."""
        for decided in (*self.in_flight, *self.outbox):
            yield from decided.submissions()
        yield from self.queue

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued, decided or being committed."""
        return not (
            self.hold_count or self.committing or self.queue or self.outbox or self.pending_records
        )


class Vault:
    """Secret values by stream and key; never stored, logged or shown."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], str] = {}

    def hold(self, stream: str, key: str, value: str) -> None:
        """Hold a value; replaces an older one."""
        self._values[stream, key] = value

    def value(self, stream: str, key: str) -> str | None:
        return self._values.get((stream, key))

    def values(self, stream: str) -> list[str]:
        """All values of a stream, for the filter that removes them from text."""
        return [value for (where, _), value in self._values.items() if where == stream]

    def drop(self, stream: str, key: str) -> None:
        self._values.pop((stream, key), None)

    def __repr__(self) -> str:
        return f"Vault({len(self._values)} values)"
