"""Signing heads: a worker that lets anybody find an edited, dropped or cut-off record."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Protocol

from msgspec.structs import replace

from accord.core.kernel.chain import Head
from accord.engine.ports import Clock, EventLog, Row

STREAM = attrgetter("stream")


class Key(Protocol):
    """A private key."""

    def sign(self, data: bytes) -> bytes:
        """The signature over the data."""
        ...


class Signer(Protocol):
    """Who signs."""

    def signer(self) -> tuple[str, Key]:
        """The key that signs, with its id."""
        ...


class HeadSigner:
    """Signs the newest row of each stream that grew; one signature covers all before it."""

    name = "heads"
    pause = 1.0

    def __init__(self, events: EventLog, signer: Signer, clock: Clock) -> None:
        self.events = events
        self.signer = signer
        self.clock = clock
        self.newest: dict[str, Row] = {}
        self.total: int | None = None

    def note(self, rows: Sequence[Row]) -> None:
        """Remember how far each stream got."""
        self.newest.update(zip(map(STREAM, rows), rows, strict=True))

    async def act(self) -> None:
        """Sign what grew."""
        for row in list(self.newest.values()):
            await self.sign(row)
            if self.newest[row.stream] is row:
                del self.newest[row.stream]

    async def sign(self, row: Row) -> None:
        """Keep a signed head of the row, which counts what is signed with it."""
        before, self.total = self.total, None  # known again only once the head is kept
        if before is None:
            covered = await self.events.covered()
            # What once was counted stays counted: a signature that is gone is never made up for.
            before = max(covered.records, covered.claimed)
        total = before + max(0, row.version - await self.events.signed(row.stream))
        await self.events.sign(self.head(row, total))
        self.total = total

    def head(self, row: Row, total: int) -> Head:
        """A signed statement that the stream ends, or ended, in this row."""
        kid, key = self.signer.signer()
        head = Head(row.stream, row.version, row.hash, self.clock.now(), kid, total=total)
        return replace(head, signature=key.sign(head.claim()))
