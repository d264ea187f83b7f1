"""Signing heads: a worker that lets anybody find an edited, dropped or cut-off record."""

from collections.abc import Iterable
from typing import Protocol

from msgspec.structs import replace

from accord.core.kernel.chain import Head
from accord.engine.ports import Clock, EventLog, Row


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

    def note(self, rows: Iterable[Row]) -> None:
        """Remember how far each stream got."""
        self.newest |= {row.stream: row for row in rows}

    async def act(self) -> None:
        """Sign what grew."""
        for row in list(self.newest.values()):
            await self.events.sign(self.head(row))
            if self.newest[row.stream] is row:
                del self.newest[row.stream]

    def head(self, row: Row) -> Head:
        """A signed statement that the stream ends, or ended, in this row."""
        kid, key = self.signer.signer()
        head = Head(row.stream, row.version, row.hash, self.clock.now(), kid)
        return replace(head, signature=key.sign(head.claim()))
