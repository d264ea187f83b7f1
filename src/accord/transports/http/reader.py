"""What a room said behind a message, for one reader."""

from itertools import islice
from typing import NamedTuple

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.state import Room
from accord.core.views import sessions
from accord.engine import proven
from accord.engine.cell import Cell
from accord.engine.ports import Sealed
from accord.transports.archive import LARGEST_ANSWER, STEP, Archive


class Spot(NamedTuple):
    """A room as it stands, and where a reader is in it."""

    room: Room
    cell: Cell


class Page(NamedTuple):
    """Some envelopes, the id of the last, and how far the log was looked through."""

    frames: list[bytes]
    last: str
    since: int
    more: bool


class Reader:
    """Reads rooms by message id, as far as the reader could hear them."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.engine = archive.engine

    async def spot(self, id: str, actor: Actor) -> Spot:
        """The room, if it exists for this reader; raises Refused."""
        room = await self.archive.room(id, actor)
        cell = self.engine.cells.get(f"room/{id}")
        if cell is None:
            raise Refused(Why.UNAVAILABLE, "The session is being looked up; try again")
        return Spot(room, cell)

    async def version(self, spot: Spot, seat: str, id: str) -> int:
        """Where a message is that this reader could hear; any other does not exist."""
        found = spot.cell.index.get(id)
        if found is None:
            rows = await proven.find(self.engine.events, spot.cell.stream, [id])
            found = next(map(self.engine.unsealed, rows), None)
        if spot.room.ended:
            await self._ensure_kept(spot, id, found)
        durable = found is not None and found.record.version <= spot.cell.base.version
        if found is None or not durable or not sessions.may_read(spot.room, seat, found.record):
            raise Refused(Why.UNKNOWN, f"There is no message {id[:128]} here", {"unknown": [id]})
        return found.record.version

    async def _ensure_kept(self, spot: Spot, id: str, found: Sealed | None) -> None:
        """Refuse to go on from where something was removed since: the gap would not be noticed."""
        cut = await proven.cut(self.engine.events, spot.cell.stream)
        if cut is not None and (found is None or found.record.version < cut.version):
            detail = f"What was said in {spot.room.id} was removed by retention; ask without after"
            raise Refused(Why.REMOVED, detail, {"unknown": [id]})

    @staticmethod
    def window_start(cell: Cell) -> int:
        """The version behind which somebody new is told what was said."""
        return max(0, cell.base.version - cell.most)

    async def page(self, id: str, actor: Actor, since: int, limit: int) -> Page:
        """What is there behind a version; never more than an answer may hold."""
        async with self.archive.turn:
            return await self._page(id, actor, since, limit)

    async def _page(self, id: str, actor: Actor, since: int, limit: int) -> Page:
        frames: list[bytes] = []
        last, size = "", 0
        while True:
            room, cell = await self.spot(id, actor)
            batch = await self._behind(room, cell, since)
            if not batch:
                return Page(frames, last, since, more=False)
            for sealed in batch:
                frame, record = sealed.frame, sealed.record
                if frame and sessions.may_read(room, actor.seat, record):
                    size += len(frame)
                    if len(frames) == limit or (frames and size > LARGEST_ANSWER):
                        return Page(frames, last, since, more=True)
                    frames.append(frame)
                    last = record.id
                since = record.version

    async def _behind(self, room: Room, cell: Cell, since: int) -> list[Sealed]:
        """The next records, as far as the state knows of them.

        Of a session that is over the store has the word: another process may have removed them.
        """
        missing = cell.base.version - since
        if missing <= 0:
            return []
        if missing <= len(cell.window) and not room.ended:
            return list(islice(cell.window, len(cell.window) - missing, None))
        rows = await proven.read(self.engine.events, cell.stream, since, min(STEP, missing))
        return list(map(self.engine.unsealed, rows))
