"""The log of this machine, for reading: whoever may read the files may read it all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from accord.core import room as rooms
from accord.core.dialects import canonical
from accord.core.kernel.log import fold
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.state import Room
from accord.core.views import sessions
from accord.core.views.gaps import ensure_next
from accord.engine import proven
from accord.engine.ports import DamagedError, EventLog, Row
from accord.engine.snapshots import resumed
from accord.stores import open_log

PREFIX = "room/"
PAGE = 1000


def ensure_there(url: str) -> None:
    """Refuse where opening would make a new log."""
    scheme, _, path = url.partition(":")
    if scheme == "sqlite" and not Path(path).is_file():
        detail = f"There is no log at {path}; `accord serve` makes one, --data-dir names another"
        raise Refused(Why.UNKNOWN, detail)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[EventLog]:
    """The log, if there is one; looking makes none."""
    ensure_there(url)
    events = await open_log(url)
    try:
        yield events
    finally:
        await events.close()


async def rows(events: EventLog, stream: str, after: int = 0) -> AsyncIterator[Row]:
    """Every row of a stream, a page at a time."""
    while page := await events.read(stream, after, PAGE):
        for row in page:
            yield row
        after = page[-1].version


def unsealed(row: Row) -> canonical.Sealed:
    """The record in a row."""
    return canonical.unseal(row.stream, row.version, row.body)


class Shelf:
    """Sessions on a log, as the operator of the machine sees them."""

    def __init__(self, events: EventLog) -> None:
        self._events = events

    async def listing(self) -> list[dict[str, Any]]:
        """Every session, newest first."""
        found = []
        for name in await self._events.streams(PREFIX):
            with suppress(DamagedError):  # `accord verify` speaks of these
                found.append(await self._room(name))
        found.sort(key=lambda room: room.created_at, reverse=True)
        return [sessions.summary(room, None) for room in found if room.exists]

    async def detail(self, id: str) -> dict[str, Any]:
        """Everything about a session but what was said."""
        room = await self._room(PREFIX + id)
        if not room.exists:
            raise Refused(Why.NO_ROOM, f"There is no session {id}")
        return sessions.detail(room, None)

    async def context(self, id: str, key: str, fork: str | None = None) -> dict[str, Any]:
        """One item of the context with what stands in it."""
        room = await self._room(PREFIX + id)
        return sessions.context(room, None, key, fork)

    async def transcript(self, id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """What was said behind `seq` number `after`, as envelopes, oldest first."""
        version, heard = after, after  # a number is never above its version
        async for row in self._rows(PREFIX + id, after):
            sealed = unsealed(row)
            ensure_next(id, sealed.record, version, heard)
            version, heard = row.version, max(heard, sealed.record.seq)
            if sealed.record.seq > after and (frame := sealed.frame):
                yield msgspec.json.decode(frame)

    async def head(self, id: str) -> str:
        """`version:hash` of the session's newest record."""
        newest = (await self._events.streams(PREFIX + id)).get(PREFIX + id, 0)
        found = await self._events.read(PREFIX + id, newest - 1) if newest else []
        return f"{found[-1].version}:{found[-1].hash.hex()}" if found else ""

    async def _rows(self, stream: str, after: int) -> AsyncIterator[Row]:
        """Every row that is what was once stored; DamagedError at the first that is not."""
        while page := await proven.read(self._events, stream, after, PAGE):
            for row in page:
                yield row
            after = page[-1].version

    async def _room(self, stream: str) -> Room:
        room, after = rooms.CONTEXT.start(stream), 0
        if cut := await proven.cut(self._events, stream):
            room, after = resumed(rooms.CONTEXT, cut).state, cut.version
        async for row in self._rows(stream, after):
            room = fold(rooms.CONTEXT, room, (unsealed(row).record,))
        return room
