"""Retention: what was said in sessions that ended is removed, and the log still holds.

Nothing is removed unless somebody asked for it. Only sessions that ended are touched: of those
everything before their end goes, and a signed cut says what it was, when, and on whose word.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from accord import verify
from accord.core import room as rooms
from accord.core.kernel.cuts import Cut
from accord.core.kernel.log import Instant, fold
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.lifecycle import SessionEnded
from accord.core.room.remains import remains
from accord.engine.clock import SystemClock
from accord.engine.heads import Signer
from accord.engine.ports import Clock, EventLog, Prunable, Row, StoreError
from accord.engine.snapshots import left
from accord.home import KEYS
from accord.reading import PREFIX, opened, unsealed
from accord.stores.sqlite import pruning
from accord.transports.keyring import Keyring

log = logging.getLogger("accord.retention")

# How far from its end a session's ending may be: what came in with it comes right after.
TAIL = 64
# Rows that are looked at in one go beside everything else that the server does.
FEW = 100
DAY_MS = 86_400_000
EVERY_S = 3600.0


class Ending(NamedTuple):
    """The record with which a session ended."""

    stream: str
    version: int
    at: Instant


class Pruned(msgspec.Struct, frozen=True):
    """What was removed of a session, or would be."""

    stream: str
    records: int
    ended_at: Instant


class Trust(NamedTuple):
    """Who signs for a removal, where public keys lie, and on whose word it is done."""

    signer: Signer
    keys: Path
    by: str
    reason: str


class Retention:
    """Finds what is due on one log and removes it."""

    def __init__(self, events: EventLog, clock: Clock, trust: Trust) -> None:
        if not isinstance(events, Prunable):
            raise Refused(Why.MALFORMED, "This store cannot remove anything")
        self.events = events
        self.store: Prunable = events
        self.clock = clock
        self.trust = trust
        self._open: dict[str, int] = {}

    async def due(self, keep: int) -> list[Ending]:
        """Sessions that ended `keep` milliseconds ago or earlier and still have their records."""
        latest = self.clock.now() - keep
        found = []
        for stream, newest in (await self.events.streams(PREFIX)).items():
            if self._open.get(stream) == newest:
                continue
            ending = await self.ending(stream, newest)
            if ending is None:
                self._open[stream] = newest
            elif ending.at <= latest:
                found.append(ending)
            await asyncio.sleep(0)
        return found

    async def ending(self, stream: str, newest: int) -> Ending | None:
        """How the session ended; None while it goes on, and once it was cut."""
        rows = await self.events.read(stream, max(0, newest - TAIL))
        for row in reversed(rows):
            record = unsealed(row).record
            if isinstance(record.event, SessionEnded):
                cut = await self.store.cut(stream)
                done = cut is not None and cut.version >= row.version - 1
                return None if done else Ending(stream, row.version, record.at)
        return None

    async def prune(self, ending: Ending) -> Pruned:
        """Remove what came before the end; Refused where the stream does not hold as it is."""
        chain = verify.Chain(ending.stream, await verify.gather(self.events, self.trust.keys))
        try:
            cut = await self._walk(chain, ending)
        except (verify.Fault, *verify.UNREADABLE) as fault:
            detail = f"{ending.stream} does not hold ({fault}), so nothing of it was removed"
            raise Refused(Why.WRONG_STATE, detail) from fault
        kid, key = self.trust.signer.signer()
        cut = msgspec.structs.replace(cut, key=kid)
        signed = msgspec.structs.replace(cut, signature=key.sign(cut.claim()))
        await self.store.prune(signed)
        return Pruned(ending.stream, cut.version, ending.at)

    async def _walk(self, chain: verify.Chain, ending: Ending) -> Cut:
        """Check every record, and fold those that go."""
        room, seq, at, last = rooms.CONTEXT.start(ending.stream), 0, 0, b""
        chain.take(await self.events.heads(ending.stream))
        async for row in pages(self.events, ending.stream):
            chain.follow(row)
            if row.version < ending.version:
                record = unsealed(row).record
                room = fold(rooms.CONTEXT, room, (record,))
                seq, at, last = record.seq or seq, max(at, record.at), row.hash
        chain.end()
        said, now = self.trust, self.clock.now()
        state = left(remains(room), seq, at)
        return Cut(chain.stream, ending.version - 1, last, now, said.by, said.reason, state, "")


async def pages(events: EventLog, stream: str) -> AsyncIterator[Row]:
    """Every row, few at a time, so that nobody waits for it."""
    after = 0
    while page := await events.read(stream, after, FEW):
        for row in page:
            yield row
        after = page[-1].version
        await asyncio.sleep(0)


@asynccontextmanager
async def on_files(home: Path, url: str, by: str, reason: str) -> AsyncIterator[Retention]:
    """Retention without a server, on the same files."""
    async with opened(url) as events:
        keys = home / KEYS
        yield Retention(events, SystemClock(), Trust(Keyring.open(keys), keys, by, reason))


def give_back(url: str) -> int:
    """Make the file as small as what is in it; nobody else may use it meanwhile."""
    return pruning.shrink(url.partition(":")[2])


def free_inside(url: str) -> int:
    """Bytes in the file that wait for what comes next."""
    return pruning.free(url.partition(":")[2])


async def run(
    retention: Retention, days: int, done: Callable[[str], None], every: float = EVERY_S
) -> None:
    """Remove what is due, now and every hour, for ever; one session that fails stops no other."""
    while True:
        try:
            await retention.store.finish_pruning()
            for ending in await retention.due(days * DAY_MS):
                await _try(retention, ending, done)
        except StoreError as error:
            log.warning("retention.failed", extra={"detail": str(error)})
        await asyncio.sleep(every)


async def _try(retention: Retention, ending: Ending, done: Callable[[str], None]) -> None:
    try:
        pruned = await retention.prune(ending)
    except Refused as no:
        log.warning("retention.refused", extra={"stream": ending.stream, "reason": no.why})
    else:
        log.info("retention.removed", extra={"count": pruned.records, "stream": pruned.stream})
        done(pruned.stream)
