"""Which rooms are over, so that a start opens the others alone; a cache one may delete."""

import msgspec

from accord.engine.cell import Cell
from accord.engine.ports import EventLog, Snapshot, StoreError
from accord.engine.snapshots import CHECKSUM, checksum

NAME = "engine/quiet"
Versions = dict[str, int]


class Quiet:
    """Rooms as they stood after the last start: ended, nobody there, nothing due."""

    def __init__(self, events: EventLog) -> None:
        self.events = events

    async def known(self, shape: str) -> Versions:
        """The version at which each was found quiet, by code that saw rooms the same way."""
        kept = await self.events.snapshot(NAME)
        if (
            kept is None
            or kept.shape != shape
            or checksum(kept.blob[CHECKSUM:]) != kept.blob[:CHECKSUM]
        ):
            return {}
        try:
            return msgspec.msgpack.decode(kept.blob[CHECKSUM:], type=Versions)
        except msgspec.MsgspecError:
            return {}

    async def keep(self, shape: str, versions: Versions) -> None:
        """For the next start; where it cannot be kept, that start takes longer."""
        blob = msgspec.msgpack.encode(versions)
        try:
            position = await self.events.position()
            await self.events.keep(NAME, Snapshot(position, shape, checksum(blob) + blob))
        except StoreError:
            return


def is_over(cell: Cell) -> bool:
    """Whether nobody can be in it any more, and waking up once more would change nothing."""
    context, state = cell.context, cell.base.state
    ended = context.beats(state) is None and not any(context.present(state))
    return cell.idle and cell.deadline is None and ended
