"""Reads the log of this machine directly; access is governed by file permissions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from accord.core import room as rooms
from accord.core.dialects import stored_records
from accord.core.kernel.context import fold
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.state import Room
from accord.core.views import sessions
from accord.core.views.retention_gap import ensure_no_gap
from accord.engine.ports import DamagedError, EventLog, Row
from accord.engine.streams import verified_reads
from accord.engine.streams.snapshots import position_after_cut
from accord.engine.streams.verified_reads import read_rows, verified
from accord.stores import open_log

ROOM_PREFIX = "room/"


def ensure_log_exists(url: str) -> None:
    """Refuse if there is no log file, since opening would create one."""
    scheme, _, path = url.partition(":")
    if scheme == "sqlite" and not Path(path).is_file():
        raise no_log(path, "name another --data-dir")


async def ensure_database_has_log(url: str) -> None:
    """Refuse if the database has no log, since opening would create one."""
    if url.partition(":")[0] in {"postgresql", "postgres"}:
        from accord.stores.postgres.errors import DatabaseName
        from accord.stores.postgres.log import has_log

        if not await has_log(url):
            raise no_log(str(DatabaseName.from_url(url)), "name another --store")
    if url.startswith("nats:"):
        from accord.stores.nats.address import NatsAddress
        from accord.stores.nats.log import has_log as stream_exists

        if not await stream_exists(url):
            raise no_log(str(NatsAddress.from_url(url)), "name another --store")


def no_log(place: str, otherwise: str) -> Refused:
    hint = f"start `accord serve` to create one, or {otherwise}"
    return Refused(Reason.NOT_FOUND, f"There is no log at {place}; {hint}")


@asynccontextmanager
async def open_existing_log(url: str) -> AsyncIterator[EventLog]:
    """Open the log if it exists; never creates one."""
    ensure_log_exists(url)
    await ensure_database_has_log(url)
    events = await open_log(url)
    try:
        yield events
    finally:
        await events.close()


def decode_row(row: Row) -> stored_records.EncodedRecord:
    return stored_records.decode_record(row.stream, row.version, row.body)


class LocalSessions:
    """Sessions on a log, as the operator of the machine sees them."""

    def __init__(self, events: EventLog) -> None:
        self._events = events

    async def listing(self) -> list[dict[str, Any]]:
        """Every session, newest first."""
        found = []
        for name in await self._events.streams(ROOM_PREFIX):
            with suppress(DamagedError):  # `accord verify` reports these
                found.append(await self._room(name))
        found.sort(key=lambda room: room.created_at, reverse=True)
        return [sessions.session_summary(room, None) for room in found if room.exists]

    async def detail(self, id: str) -> dict[str, Any]:
        """Everything about a session except its messages."""
        room = await self._room(ROOM_PREFIX + id)
        if not room.exists:
            raise Refused(Reason.NO_ROOM, f"There is no session {id}")
        return sessions.session_detail(room, None)

    async def context(self, id: str, key: str, fork: str | None = None) -> dict[str, Any]:
        """One context item with its content."""
        room = await self._room(ROOM_PREFIX + id)
        return sessions.context_item(room, None, key, fork)

    async def transcript(self, id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Messages behind `seq` number `after`, as envelopes, oldest first."""
        version, heard = after, after  # a `seq` is never larger than its version
        async for row in read_rows(verified(self._events), ROOM_PREFIX + id, after):
            sealed = decode_row(row)
            ensure_no_gap(id, sealed.record, version, heard)
            version, heard = row.version, max(heard, sealed.record.seq)
            if sealed.record.seq > after and (frame := sealed.frame):
                yield msgspec.json.decode(frame)

    async def head(self, id: str) -> str:
        """`version:hash` of the session's newest record."""
        newest = (await self._events.streams(ROOM_PREFIX + id)).get(ROOM_PREFIX + id, 0)
        found = await self._events.read(ROOM_PREFIX + id, newest - 1) if newest else []
        return f"{found[-1].version}:{found[-1].hash.hex()}" if found else ""

    async def _room(self, stream: str) -> Room:
        room, after = rooms.CONTEXT.initial_state(stream), 0
        if cut := await verified_reads.cut(self._events, stream):
            room, after = position_after_cut(rooms.CONTEXT, cut).state, cut.version
        async for row in read_rows(verified(self._events), stream, after):
            room = fold(rooms.CONTEXT, room, (decode_row(row).record,))
        return room
