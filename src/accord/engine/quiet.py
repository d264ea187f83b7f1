"""Where rooms rest that nobody is in, so that a start opens the others alone; a cache."""

import msgspec

from accord.core.kernel.log import Instant
from accord.engine.cell import Cell
from accord.engine.ports import EventLog, Snapshot, StoreError
from accord.engine.snapshots import checked, whole

NAME = "engine/quiet"


class Rest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A room as a start left it: at this version and time, nobody there, nothing due sooner."""

    version: int
    at: Instant
    due: Instant | None
    gist: tuple[str, ...]


Rests = dict[str, Rest]


class Quiet:
    """Reads and writes the list of the rooms at rest."""

    def __init__(self, events: EventLog) -> None:
        self.events = events

    async def known(self, shape: str) -> Rests:
        """The list that the last start kept, if its code saw rooms the same way."""
        kept = await self.events.snapshot(NAME)
        if kept is None or kept.shape != shape:
            return {}
        try:
            return msgspec.msgpack.decode(whole(kept.blob), type=Rests)
        except (msgspec.MsgspecError, ValueError):
            return {}

    async def keep(self, shape: str, rests: Rests) -> None:
        """For the next start; where it cannot be kept, that start takes longer."""
        blob = checked(msgspec.msgpack.encode(rests))
        try:
            position = await self.events.position()
            await self.events.keep(NAME, Snapshot(position, shape, blob))
        except StoreError:
            return


def rest_of(cell: Cell) -> Rest | None:
    """How a room rests, if waking it up once more would change nothing before its deadline."""
    context, base = cell.context, cell.base
    stirs = not cell.idle or cell.ahead or any(context.present(base.state))
    if stirs or not base.version:
        return None
    return Rest(base.version, base.at, cell.deadline, context.gist(base.state))


def is_over(cell: Cell) -> bool:
    """Whether nobody can be in it any more, and waking up once more would change nothing."""
    context, state = cell.context, cell.base.state
    at_rest = cell.idle and cell.deadline is None and not any(context.present(state))
    return at_rest and context.beats(state) is None
