"""States kept so that opening a stream does not depend on its age; a cache one may delete."""

from hashlib import sha256
from types import GenericAlias
from typing import Any

import msgspec

from accord.core.kernel.cuts import Cut
from accord.core.kernel.log import Context
from accord.engine import proven
from accord.engine.cell import Cell, Place
from accord.engine.ports import EventLog, ForeignStoreError, Snapshot, StoreError

EVERY = 1000
# Raise this when an evolver means something else than before; a changed shape is noticed anyway.
EPOCH = 3
CHECKSUM = 32


class Snapshots:
    """Reads and writes the snapshots of one log."""

    def __init__(self, events: EventLog) -> None:
        self.events = events
        self.shapes: dict[str, str] = {}

    def shape(self, context: Context[Any]) -> str:
        """A name for what a snapshot of this context looks like today."""
        if context.name not in self.shapes:
            schema = msgspec.json.encode(msgspec.json.schema(context.state), order="deterministic")
            digest = sha256(schema + str(EPOCH).encode()).hexdigest()
            self.shapes[context.name] = digest[:16]
        return self.shapes[context.name]

    def due(self, cell: Cell) -> bool:
        """Whether enough has happened since the last one."""
        return cell.base.version - cell.kept >= EVERY

    async def take(self, cell: Cell) -> None:
        """Keep the durable state of the stream."""
        base = cell.base
        cell.kept = base.version
        kept = (base.state, base.seq, base.hash, base.at)
        shape = self.shape(cell.context)
        try:
            blob = msgspec.msgpack.encode(kept)
            await self.events.keep(cell.stream, Snapshot(base.version, shape, checked(blob)))
        except OverflowError:
            pass  # a number of more than 64 bits; opening takes longer, that is all
        except StoreError:
            cell.kept = 0  # only a cache; the next commit tries again

    async def start(self, cell: Cell) -> Place:
        """Where the stream begins: at nothing, or behind what was removed of it."""
        cut = await proven.cut(self.events, cell.stream)
        return cell.base if cut is None else resumed(cell.context, cut)

    async def latest(self, cell: Cell) -> Place:
        """Where the newest usable snapshot stands, or the very beginning."""
        kept = await self.events.snapshot(cell.stream)
        if kept is None or kept.shape != self.shape(cell.context):
            return cell.base
        form = GenericAlias(tuple, (cell.context.state, int, bytes, int))
        try:
            state, seq, last, at = msgspec.msgpack.decode(whole(kept.blob), type=form)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return cell.base
        return Place(state, kept.version, seq, last, at)


def left(state: Any, seq: int, at: int) -> bytes:
    """A state in the form in which a cut keeps it."""
    return msgspec.msgpack.encode((state, seq, at))


def resumed(context: Context[Any], cut: Cut) -> Place:
    """The state that a cut keeps; StoreError where this code does not understand it."""
    form = GenericAlias(tuple, (context.state, int, int))
    try:
        state, seq, at = msgspec.msgpack.decode(cut.state, type=form)
    except msgspec.MsgspecError as error:
        detail = f"What is kept of {cut.stream} cannot be read: {error}"
        raise ForeignStoreError(detail) from error
    return Place(state, cut.version, seq, cut.hash, at)


def checked(blob: bytes) -> bytes:
    """The bytes with their checksum in front."""
    return checksum(blob) + blob


def whole(kept: bytes) -> bytes:
    """The bytes behind their checksum; ValueError where they are not those that it was made of."""
    blob = kept[CHECKSUM:]
    if checksum(blob) != kept[:CHECKSUM]:
        raise ValueError("damaged")
    return blob


def checksum(blob: bytes) -> bytes:
    """A damaged snapshot could be another state, so it is not read."""
    return sha256(blob).digest()
