"""What the engine asks of the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import msgspec

# A verb of Pact needs two of the small ones below, and none of these.
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from accord.core.kernel.chain import Covered, Head
    from accord.core.kernel.cuts import Cut
    from accord.core.kernel.log import Body, Instant, Message, Recall, Record, Say, Tell


class Row(msgspec.Struct, frozen=True, gc=False):
    """A record as stores keep it: bytes and their place. Stores never look into `body`."""

    stream: str
    version: int
    id: str
    body: bytes
    hash: bytes


class Snapshot(msgspec.Struct, frozen=True):
    """A state folded up to `version`; a cache that may be deleted at any time.

    `shape` says which code wrote it; another shape is not read.
    """

    version: int
    shape: str
    blob: bytes


class StoreError(Exception):
    """The store cannot do it; nothing of what was asked has been kept.

    `place` is where the store lies, which is for the operator to know and for nobody else.
    """

    def __init__(self, sentence: str, place: str = "") -> None:
        super().__init__(sentence)
        self.place = place

    @property
    def told(self) -> str:
        """The sentence as people outside hear it."""
        return str(self).replace(self.place, "the log") if self.place else str(self)


class ForeignStoreError(StoreError):
    """The file is damaged, of a later version or not ours; it was not touched."""


class LaterStoreError(ForeignStoreError):
    """A later version wrote the file; it was not touched."""


class NoRoomError(StoreError):
    """The disk is full."""


class UnknownStoreError(StoreError):
    """What was named is no store at all."""


class DamagedError(ForeignStoreError):
    """What is stored is not what was written; trying again does not help."""


class Conflict(Exception):  # noqa: N818 - the outcome of a race, not a fault
    """Somebody else appended first; fold again and decide again."""


class Duplicate(Exception):  # noqa: N818 - a retry, not a fault
    """The stream holds a row with this id already."""

    def __init__(self, stream: str, id: str) -> None:
        super().__init__(f"{stream} holds {id} already")
        self.stream = stream
        self.id = id


class EventLog(Protocol):
    """The one log. A store is right when the contract suite passes, and never before."""

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        """Keep all rows or none, durably, right after version `expected`.

        Raises Conflict when the stream is at another version, Duplicate when it holds one of the
        ids already, StoreError when the rows could not be kept. Appends that arrive while another
        one is being made durable share the next commit; one that fails leaves the others alone.
        """
        ...

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        """Rows of one stream behind version `after`, in order, none missing."""
        ...

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        """Those rows of the stream that have one of these ids, in order of version."""
        ...

    async def streams(self, prefix: str = "") -> dict[str, int]:
        """Names that begin with `prefix`, each with its newest version."""
        ...

    async def position(self) -> int:
        """The position of the newest row over all streams, 0 when there is none."""
        ...

    def tail(self, after: int) -> AsyncGenerator[list[tuple[int, Row]], None]:
        """Every row of every stream behind position `after`, in the order of commit, for ever.

        Comes in batches, as committed or larger; none is empty.

        Positions grow and have no gap a later row could appear in; rows that other processes
        append to the same store are seen within half a second.
        """
        ...

    async def cursor(self, name: str) -> int:
        """The position a worker has reached; 0 when it never moved."""
        ...

    async def advance(self, name: str, position: int) -> None:
        """Remember that the worker is done with everything up to `position`; never goes back."""
        ...

    async def snapshot(self, stream: str) -> Snapshot | None:
        """The newest snapshot of the stream, if one was kept."""
        ...

    async def keep(self, stream: str, snapshot: Snapshot) -> None:
        """Keep this snapshot instead of an older one. Need not be durable."""
        ...

    async def heads(self, stream: str) -> list[Head]:
        """Signed heads of the stream, oldest first."""
        ...

    async def signed(self, stream: str) -> int:
        """The furthest version that a signed head or cut of the stream reaches; 0 for none."""
        ...

    async def covered(self) -> Covered:
        """How far signed heads and cuts reach, summed over all streams, at one moment."""
        ...

    async def sign(self, head: Head) -> None:
        """Keep a signed head. An equal one is kept once."""
        ...

    async def close(self) -> None:
        """Let go of the store once everything appended is durable; twice is once."""
        ...


@runtime_checkable
class Measured(Protocol):
    """A store that knows how large it is."""

    def sizes(self) -> Mapping[str, int]:
        """Bytes, by part."""
        ...


@runtime_checkable
class Prunable(Protocol):
    """A store that can remove the beginning of a stream and say so."""

    async def cut(self, stream: str) -> Cut | None:
        """Where the stream begins now, if its beginning was removed."""
        ...

    async def prune(self, cut: Cut) -> None:
        """Keep the cut, then remove the rows before it; Conflict where they are not as it says."""
        ...

    async def finish_pruning(self) -> None:
        """Remove what a process that was killed had still to remove."""
        ...


class Mark(NamedTuple):
    """How a ledger was when it was read; another mark means that somebody wrote."""

    size: int = 0
    changed: int = 0
    node: int = 0


class Ledger(Protocol):
    """A log in a working tree, which other programs write too."""

    def read(self) -> tuple[bytes, Mark]:
        """All of it; nothing where there is none."""
        ...

    def append(self, expected: Mark, lines: bytes) -> Mark:
        """Add whole lines at its end, durably and in one piece; the mark it has from then on.

        Raises Conflict when somebody wrote since `expected`.
        """
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Nobody who asks for the same lock writes meanwhile; Refused when it takes too long."""
        ...


class Sealed(Protocol):
    """A record with its bytes."""

    @property
    def record(self) -> Record:
        """The record."""
        ...

    @property
    def body(self) -> bytes:
        """As stored."""
        ...

    @property
    def frame(self) -> bytes | None:
        """As sent, if it has a form on the wire."""
        ...

    @property
    def start(self) -> int:
        """Where in the body that form begins."""
        ...

    @property
    def end(self) -> int:
        """And where it ends; 0 if there is none."""
        ...


class Codec(Protocol):
    """Records to bytes and back."""

    def seal(self, record: Record) -> Sealed:
        """The bytes to keep and the bytes to send."""
        ...

    def seal_alike(self, records: Sequence[Record]) -> Sequence[Sealed]:
        """The same for records that differ from the first in place, id, time and words alone."""
        ...

    def unseal(self, stream: str, version: int, body: bytes) -> Sealed:
        """The record in stored bytes."""
        ...

    def say(self, id: str, at: Instant, message: Message, said: Say | Tell) -> bytes:
        """An effect as it is sent."""
        ...

    def recall(self, at: Instant, room: str, recalled: Recall, ref: str | None = None) -> bytes:
        """Something said before, said again to somebody who was not there."""
        ...

    def whisper(self, record: Record, value: str) -> bytes:
        """A record's envelope with the value that is never kept."""
        ...

    def whispered(self, body: Body, value: str) -> Body:
        """What was said, with its value."""
        ...


class Clock(Protocol):
    """Time, so that tests can move it."""

    def now(self) -> int:
        """Milliseconds since 1970; never goes back while the process lives."""
        ...
