"""Ports: what the engine needs from the outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import msgspec

# Kept light: `accord pact` imports two of the small protocols below and must start fast.
if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from accord.core.kernel.effects import Relay, ReplayedMessage, ServerNotice
    from accord.core.kernel.integrity.hash_chain import SignatureCoverage, SignedHead
    from accord.core.kernel.integrity.retention_cut import RetentionCut
    from accord.core.kernel.messages import Body, Instant, Message
    from accord.core.kernel.records import Record


# A stream and a member who is connected to it.
Claim = tuple[str, str]


class Row(msgspec.Struct, frozen=True, gc=False):
    """A record as stores keep it: its bytes and its position. Stores never look into `body`."""

    stream: str
    version: int
    id: str
    body: bytes
    hash: bytes


class Snapshot(msgspec.Struct, frozen=True):
    """A state folded up to `version`; a cache that may be deleted at any time.

    `shape` identifies the code that wrote it; a snapshot of another shape is ignored.
    """

    version: int
    shape: str
    blob: bytes


class StoreError(Exception):
    """The store failed; nothing of the request was stored.

    `place` is the path of the store, which only the operator may see.
    """

    def __init__(self, sentence: str, place: str = "") -> None:
        super().__init__(sentence)
        self.location = place

    @property
    def public_message(self) -> str:
        """The message without the path, for clients."""
        return str(self).replace(self.location, "the log") if self.location else str(self)


class ForeignStoreError(StoreError):
    """The file is damaged, of a later version or not a log of Accord; it was not changed."""


class NewerStoreError(ForeignStoreError):
    """A later version of Accord wrote the file; it was not changed."""


class DiskFullError(StoreError):
    """The disk is full; the operator has to free space."""


class UnknownStoreError(StoreError):
    """The URL names no known kind of store."""


class DamagedError(ForeignStoreError):
    """Stored bytes differ from what was written; a retry does not help."""


class Conflict(Exception):  # noqa: N818 - the outcome of a race, not a fault
    """Another writer appended first; fold its records and decide again."""


class Duplicate(Exception):  # noqa: N818 - a retry, not a fault
    """The stream already has a row with this id."""

    def __init__(self, stream: str, id: str) -> None:
        super().__init__(f"{stream} holds {id} already")
        self.stream = stream
        self.id = id


class EventLog(Protocol):
    """The append-only log. The contract suite in tests/contract defines correct behaviour."""

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        """Store all rows or none, durably, right after version `expected`.

        Raises Conflict if the stream is at another version, Duplicate if it already has one of the
        ids, StoreError if the rows could not be stored. Appends that arrive during a commit share
        the next one; one that fails does not affect the others.
        """
        ...

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        """Rows of one stream behind version `after`, in order and without a gap."""
        ...

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        """Rows of the stream with these ids, in order of version."""
        ...

    async def streams(self, prefix: str = "") -> dict[str, int]:
        """Streams whose name begins with `prefix`, each with its newest version."""
        ...

    async def position(self) -> int:
        """Position of the newest row over all streams; 0 if there is none."""
        ...

    def tail(self, after: int) -> AsyncGenerator[list[tuple[int, Row]], None]:
        """Every row of every stream behind position `after`, in commit order; never ends.

        Yields non-empty batches, one commit or more each.

        Positions increase and leave no gap into which a later row could fall; rows that other
        processes append to the same store are seen within half a second.
        """
        ...

    async def cursor(self, name: str) -> int:
        """The position a worker has reached; 0 at first."""
        ...

    async def advance(self, name: str, position: int) -> None:
        """Store that the worker has handled everything up to `position`; never goes back."""
        ...

    async def snapshot(self, stream: str) -> Snapshot | None:
        """The newest snapshot of the stream, if there is one."""
        ...

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        """Store this snapshot instead of an older one; need not be durable."""
        ...

    async def heads(self, stream: str) -> list[SignedHead]:
        """Signed heads of the stream, oldest first."""
        ...

    async def signed_version(self, stream: str) -> int:
        """The newest version that a signed head or cut of the stream covers; 0 for none."""
        ...

    async def signature_coverage(self) -> SignatureCoverage:
        """How much signed heads and cuts cover, summed over all streams, at one moment."""
        ...

    async def add_head(self, head: SignedHead) -> None:
        """Store a signed head; an equal one is stored once."""
        ...

    async def close(self) -> None:
        """Close the store once everything appended is durable; may be called twice."""
        ...


@runtime_checkable
class MeasurableStore(Protocol):
    def sizes(self) -> Mapping[str, int]:
        """Bytes, by part of the store."""
        ...


@runtime_checkable
class ConnectedStore(Protocol):
    """A store whose connection may break."""

    @property
    def retries(self) -> int:
        """How many commits were sent again after a lost connection."""
        ...


class ServerListener(Protocol):
    """What a server is told about the others on its log. All of it is called on the event loop."""

    def on_signals(self, sender: int, text: bytes) -> None:
        """Signals that a server sent, this one's own too; all servers get them in one order."""
        ...

    def on_claims(self, claims: Mapping[int, set[Claim]]) -> None:
        """Which members are connected to which other server, all of them."""
        ...

    def on_server_ended(self, server: int) -> None:
        """A server has not given a sign of life for the time of a lease, or has stopped."""
        ...

    def on_servers_changed(self) -> None:
        """The number of other servers is another one than before."""
        ...

    def on_link_lost(self) -> None:
        """Signals that were sent or are under way may not arrive."""
        ...


class ServerLink(Protocol):
    """One server among those that use a log: signals, connected members, tasks of one server."""

    id: int
    others: frozenset[int]  # the other servers that are alive

    async def find_others(self) -> frozenset[int]:
        """The servers that are alive now, also before this one is one of them."""
        ...

    async def start(self, listener: ServerListener) -> None:
        """Become one of the servers; returns when the others are known."""
        ...

    def send(self, text: bytes) -> None:
        """Send a signal to all servers; it may be lost with the connection."""
        ...

    def claim(self, claim: Claim) -> None:
        """This server has a connection of this member."""
        ...

    def release(self, claim: Claim) -> None:
        """It has none any more."""
        ...

    def lead(self, task: str) -> AbstractAsyncContextManager[asyncio.Event]:
        """Waits until this server alone has the task; the event is set when that ends."""
        ...

    async def stop(self, *, hand_over: bool) -> None:
        """Stop being one of the servers; `hand_over` leaves the claims until the lease ends."""
        ...


@runtime_checkable
class SharedStore(Protocol):
    """A store that other machines can reach, where no file lock keeps a second server away."""

    async def claim_server(self) -> None:
        """Be the only one that uses this log, until it is closed; StoreError while a server is."""
        ...

    async def link_servers(self) -> ServerLink:
        """Use the log beside other servers; StoreError while it is claimed."""
        ...


@runtime_checkable
class CopyableStore(Protocol):
    """A store whose log can be copied to another store, with what `EventLog` does not show."""

    async def cursors(self) -> dict[str, int]:
        """The positions that workers have reached, by name."""
        ...

    async def begin_behind_cut(self, cut: RetentionCut) -> None:
        """Let a stream without records begin behind this cut; Conflict if it has records."""
        ...


@runtime_checkable
class Prunable(Protocol):
    """A store that can remove the beginning of a stream and prove it."""

    async def cut(self, stream: str) -> RetentionCut | None:
        """The retention cut of the stream, if its beginning was removed."""
        ...

    async def prune(self, cut: RetentionCut) -> None:
        """Store the cut, then remove the rows before it; Conflict if they do not match the cut."""
        ...

    async def finish_pruning(self) -> None:
        """Remove rows that a killed process had cut but not removed."""
        ...


class EncodedRecord(Protocol):
    """A record with its bytes."""

    @property
    def record(self) -> Record: ...

    @property
    def body(self) -> bytes:
        """The stored bytes of the record."""
        ...

    @property
    def frame(self) -> bytes | None:
        """As sent; None if it has no form on the wire."""
        ...

    @property
    def start(self) -> int:
        """Where in the body the sent form begins."""
        ...

    @property
    def end(self) -> int:
        """Where it ends; 0 if there is none."""
        ...


class Codec(Protocol):
    """Encodes records to bytes and decodes them."""

    def encode_record(self, record: Record) -> EncodedRecord:
        """The stored and the sent bytes of a record."""
        ...

    def encode_similar_records(self, records: Sequence[Record]) -> Sequence[EncodedRecord]:
        """Encode records that differ from the first in position, id, time and text only."""
        ...

    def decode_record(self, stream: str, version: int, body: bytes) -> EncodedRecord: ...

    def encode_effect(
        self, id: str, at: Instant, message: Message, said: Relay | ServerNotice
    ) -> bytes:
        """An effect as it is sent."""
        ...

    def encode_replayed(
        self, at: Instant, room: str, recalled: ReplayedMessage, ref: str | None = None
    ) -> bytes:
        """An earlier message, sent again to a connection that joins."""
        ...

    def encode_with_secret(self, record: Record, value: str) -> bytes:
        """A record's envelope with the secret value, which is never stored."""
        ...

    def body_with_secret(self, body: Body, value: str) -> Body:
        """A body with its secret value filled in."""
        ...


class Clock(Protocol):
    """A clock that tests can replace."""

    def now(self) -> int:
        """Milliseconds since 1970; never goes back while the process lives."""
        ...


class EnginePorts(NamedTuple):
    """What decides how the engine encodes, tells the time, names things and treats its users."""

    codec: Codec
    clock: Clock
    new_id: Callable[[], str]
    policy: Any
