"""Retention: removes the records of sessions that ended, and keeps the log verifiable.

Nothing is removed unless the operator configured or requested it. Only sessions that ended are
affected: everything before their end is removed, and a signed cut states what was removed, when,
and who requested it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from accord.core import room as rooms
from accord.core.kernel.context import fold
from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.session_lifecycle import SessionEnded, without_history
from accord.data_dir import KEYS_DIR_NAME
from accord.engine.ports import Clock, EventLog, Prunable, StoreError
from accord.engine.scheduling import SystemClock
from accord.engine.streams.snapshots import encode_cut_state
from accord.engine.streams.verified_reads import read_rows
from accord.engine.workers import SigningKeys
from accord.identity.keyring import Keyring
from accord.operations import verify
from accord.operations.local_log import ROOM_PREFIX, decode_row, open_existing_log
from accord.stores.sqlite import pruning

log = logging.getLogger("accord.retention")

# The ending is at most this far from the newest record; what was decided with it follows.
END_SEARCH_ROWS = 64
# Small pages, so that other work of the server is not delayed.
PAGE_ROWS = 100
DAY_MS = 86_400_000
RUN_INTERVAL_S = 3600.0
SQLITE = "sqlite"


class EndedSession(NamedTuple):
    """The record with which a session ended."""

    stream: str
    version: int
    at: Instant


class PrunedSession(msgspec.Struct, frozen=True):
    """What was removed of a session, or would be in a dry run."""

    stream: str
    records: int
    ended_at: Instant


class PruneAuthority(NamedTuple):
    """Who signs the cut, where public keys are, and who requested the removal."""

    signer: SigningKeys
    keys: Path
    by: str
    reason: str


class Retention:
    """Finds sessions that are due on one log and removes their records."""

    def __init__(self, events: EventLog, clock: Clock, trust: PruneAuthority) -> None:
        if not isinstance(events, Prunable):
            raise Refused(Reason.MALFORMED, "This store does not support retention")
        self.events = events
        self.store: Prunable = events
        self.clock = clock
        self.trust = trust
        self._open_sessions: dict[str, int] = {}

    async def due_sessions(self, keep: int) -> list[EndedSession]:
        """Sessions that ended at least `keep` milliseconds ago and still have their records."""
        latest = self.clock.now() - keep
        found = []
        for stream, newest in (await self.events.streams(ROOM_PREFIX)).items():
            if self._open_sessions.get(stream) == newest:
                continue
            ending = await self.find_end(stream, newest)
            if ending is None:
                self._open_sessions[stream] = newest
            elif ending.at <= latest:
                found.append(ending)
            await asyncio.sleep(0)
        return found

    async def find_end(self, stream: str, newest: int) -> EndedSession | None:
        """How the session ended; None while it is open, and once its records were removed."""
        rows = await self.events.read(stream, max(0, newest - END_SEARCH_ROWS))
        for row in reversed(rows):
            record = decode_row(row).record
            if isinstance(record.event, SessionEnded):
                cut = await self.store.cut(stream)
                done = cut is not None and cut.version >= row.version - 1
                return None if done else EndedSession(stream, row.version, record.at)
        return None

    async def prune(self, ending: EndedSession) -> PrunedSession:
        """Remove what came before the end; Refused if the stream does not verify."""
        chain = verify.ChainWalker(
            ending.stream, await verify.load_keys(self.events, self.trust.keys)
        )
        try:
            cut = await self._verify_and_fold(chain, ending)
        except (verify.ChainFault, *verify.DECODE_ERRORS) as fault:
            detail = f"{ending.stream} failed verification ({fault}); nothing of it was removed"
            raise Refused(Reason.WRONG_STATE, detail) from fault
        kid, key = self.trust.signer.signer()
        cut = msgspec.structs.replace(cut, key=kid)
        signed = msgspec.structs.replace(cut, signature=key.sign(cut.signed_bytes()))
        await self.store.prune(signed)
        return PrunedSession(ending.stream, cut.version, ending.at)

    async def _verify_and_fold(
        self, chain: verify.ChainWalker, ending: EndedSession
    ) -> RetentionCut:
        """Verify every record, and fold those to be removed."""
        room, seq, at, last = rooms.CONTEXT.initial_state(ending.stream), 0, 0, b""
        chain.add_heads(await self.events.heads(ending.stream))
        async for row in read_rows(self.events.read, ending.stream, rows=PAGE_ROWS):
            chain.check_row(row)
            if row.version < ending.version:
                record = decode_row(row).record
                room = fold(rooms.CONTEXT, room, (record,))
                seq, at, last = record.seq or seq, max(at, record.at), row.hash
        chain.finish()
        authority, now = self.trust, self.clock.now()
        state = encode_cut_state(without_history(room), seq, at)
        return RetentionCut(
            chain.stream, ending.version - 1, last, now, authority.by, authority.reason, state, ""
        )


@asynccontextmanager
async def open_offline(home: Path, url: str, by: str, reason: str) -> AsyncIterator[Retention]:
    """Retention without a running server, on the same files."""
    async with open_existing_log(url) as events:
        keys = home / KEYS_DIR_NAME
        yield Retention(events, SystemClock(), PruneAuthority(Keyring.open(keys), keys, by, reason))


def shrink_store(url: str) -> int:
    """Shrink the database file, if it is one; no other process may use it meanwhile."""
    scheme, _, path = url.partition(":")
    return pruning.shrink(path) if scheme == SQLITE else 0


def free_store_bytes(url: str) -> int:
    """Bytes in the file that are free for reuse; PostgreSQL reuses them by itself."""
    scheme, _, path = url.partition(":")
    return pruning.free_bytes(path) if scheme == SQLITE else 0


async def run_retention(
    retention: Retention, days: int, on_pruned: Callable[[str], None], every: float = RUN_INTERVAL_S
) -> None:
    """Remove what is due, now and every hour; a session that fails does not stop the others."""
    while True:
        try:
            await retention.store.finish_pruning()
            for ending in await retention.due_sessions(days * DAY_MS):
                await _prune_one(retention, ending, on_pruned)
        except StoreError as error:
            log.warning("retention.failed", extra={"detail": str(error)})
        await asyncio.sleep(every)


async def _prune_one(
    retention: Retention, ending: EndedSession, on_pruned: Callable[[str], None]
) -> None:
    try:
        pruned = await retention.prune(ending)
    except Refused as refusal:
        log.warning("retention.refused", extra={"stream": ending.stream, "reason": refusal.reason})
    else:
        log.info("retention.removed", extra={"count": pruned.records, "stream": pruned.stream})
        on_pruned(pruned.stream)
