"""Signing heads: a worker that lets anybody find an edited, dropped or cut-off record."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from accord.core.kernel.chain import Head
from accord.engine.ports import Clock, EventLog, Row

# How long rows may wait for a signature that covers them, in seconds.
PAUSE = 1.0
ENDING = b'{"kind":"session.ended"'


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
    """Signs the newest row of each stream that grew, at most once a second."""

    name = "heads"

    def __init__(self, events: EventLog, signer: Signer, clock: Clock) -> None:
        self.events = events
        self.signer = signer
        self.clock = clock

    async def handle(self, rows: Sequence[Row]) -> None:
        """One signature per stream covers all its rows; then let some more gather."""
        newest = {row.stream: row for row in rows}
        for row in newest.values():
            await self.events.sign(self.head(row))
        if not any(row.body.startswith(ENDING) for row in rows):
            await asyncio.sleep(PAUSE)

    def head(self, row: Row) -> Head:
        """A signed statement that the stream ends, or ended, in this row."""
        kid, key = self.signer.signer()
        head = Head(row.stream, row.version, row.hash, self.clock.now(), kid)
        return replace(head, signature=key.sign(head.claim()))
