"""Bringing streams to hand, keeping them in step with the log, and letting them go."""

import logging
from collections import OrderedDict
from collections.abc import Coroutine, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from accord.core.kernel.log import fold
from accord.core.kernel.refusal import Refused, Why
from accord.engine import proven
from accord.engine.cell import Cell, Place
from accord.engine.ports import DamagedError, Row, Sealed, StoreError
from accord.engine.quiet import is_over

if TYPE_CHECKING:
    from accord.engine.engine import Engine

log = logging.getLogger("accord.engine")

MOST_CELLS = 4096
# What the streams at hand may weigh together, looked at now and then.
MOST_BYTES = 256 << 20
EVERY = 64
# Rooms that ended stay at hand, with whoever heard them end, until so many others have.
MOST_OVER = 64


class Opener:
    """Which streams are at hand, and that each stands where the log stands."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self._opened = 0
        self._over: OrderedDict[str, None] = OrderedDict()

    def open(self, stream: str) -> Cell:
        """A cell for a stream that is not at hand; it is busy until it was read."""
        name = stream.partition("/")[0]
        cell = Cell(stream, self.engine.contexts[name], self.engine.window)
        self._make_room()
        self.engine.cells[stream] = cell
        self.hold(cell, self._load(cell))
        return cell

    def hold(self, cell: Cell, work: Coroutine[Any, Any, None]) -> None:
        """Do this while the stream decides nothing."""
        cell.busy += 1
        self.engine.spawn(self.held(cell, work))

    async def held(self, cell: Cell, work: Coroutine[Any, Any, None]) -> None:
        """Do this for a cell that is marked busy for it, then free the cell."""
        try:
            await work
        except StoreError as error:
            self._give_up(cell, error)
        except Exception as error:
            log.exception("stream.damaged", extra={"stream": cell.stream})
            self._give_up(cell, DamagedError(f"{cell.stream} is damaged: {error}"))
        else:
            self._free(cell)

    async def _load(self, cell: Cell) -> None:
        kept, rows = await self._since_snapshot(cell)
        base, _ = self._fold(cell, kept, rows)
        await self._fill_window(cell, base.version, len(rows))
        cell.kept = kept.version
        cell.ahead = max(0, base.at - self.engine.clock.now())
        cell.stand(base)
        self.engine.reschedule(cell)

    async def _since_snapshot(self, cell: Cell) -> tuple[Place, list[Row]]:
        """The newest snapshot that fits the log, and the rows behind it."""
        kept = await self.engine.snapshots.latest(cell)
        if kept.version:
            rows = await proven.read(self.engine.events, cell.stream, kept.version - 1)
            if rows and rows[0].hash == kept.hash:
                return kept, rows[1:]
        start = await self.engine.snapshots.start(cell)
        return start, await proven.read(self.engine.events, cell.stream, start.version)

    async def _fill_window(self, cell: Cell, version: int, loaded: int) -> None:
        """Have the newest records at hand, however few the snapshot left to read."""
        if loaded < self.engine.window and version > loaded:
            after = max(0, version - self.engine.window)
            rows = await proven.read(self.engine.events, cell.stream, after, version - after)
            cell.forget_window()
            cell.remember(list(map(self.engine.unsealed, rows)))

    def _fold(self, cell: Cell, place: Place, rows: Iterable[Row]) -> tuple[Place, list[Sealed]]:
        """Where the stream stands behind these rows, and the records in them."""
        fresh: list[Sealed] = []
        state, version, seq = place.state, place.version, place.seq
        last, at = place.hash, place.at
        for row in rows:
            sealed = self.engine.unsealed(row)
            record = sealed.record
            state = fold(cell.context, state, (record,))
            version, last, at = row.version, row.hash, max(at, record.at)
            seq = record.seq or seq
            fresh.append(sealed)
        cell.remember(fresh)
        return Place(state, version, seq, last, at), fresh

    def _free(self, cell: Cell) -> None:
        """Go on with what had to wait, once there is no other reason to."""
        cell.busy -= 1
        if cell.busy:
            return
        for ready in cell.waiting:
            if not ready.done():
                ready.set_result(None)
        cell.waiting.clear()
        while cell.queue and not cell.busy:
            self.engine.decider.take(cell, cell.queue.popleft())
        self.keep_up(cell)
        self.let_go(cell)

    def _make_room(self) -> None:
        """Let the longest unused streams go that nobody listens to."""
        cells = self.engine.cells
        self._opened += 1
        if len(cells) < MOST_CELLS and not self._too_heavy():
            return
        quiet = (s for s, c in cells.items() if c.idle and not self._wanted(s))
        for stream in list(islice(quiet, max(1, len(cells) // 4))):
            del cells[stream]

    def _too_heavy(self) -> bool:
        if self._opened % EVERY:
            return False
        return sum(cell.weight for cell in self.engine.cells.values()) > MOST_BYTES

    def _wanted(self, stream: str) -> bool:
        return stream in self.engine.pinned or self.engine.peers.listened(stream)

    def forget(self, stream: str) -> None:
        """Read this stream anew when somebody next asks: its beginning was removed."""
        cell = self.engine.cells.get(stream)
        if cell is not None and cell.idle and not self._wanted(stream):
            del self.engine.cells[stream]

    def let_go(self, cell: Cell) -> None:
        """Forget a stream that does not exist, and after a while one in which nothing happens."""
        if not cell.idle or self.engine.cells.get(cell.stream) is not cell:
            return
        if cell.base.version == 0:
            del self.engine.cells[cell.stream]
        elif is_over(cell):
            self._retire(cell.stream)

    def _retire(self, stream: str) -> None:
        """It is over: nobody is told anything of it any more, once enough others are."""
        self._over[stream] = None
        self._over.move_to_end(stream)
        if len(self._over) > MOST_OVER:
            oldest, _ = self._over.popitem(last=False)
            self.engine.peers.disperse(oldest)
            self.forget(oldest)

    def _give_up(self, cell: Cell, error: StoreError) -> None:
        """The store failed: whoever waits is told, and the next message tries afresh.

        It stays busy, so that nothing ever happens in it again.
        """
        detail = "damaged" if isinstance(error, DamagedError) else str(error)
        log.error("stream.unreadable", extra={"stream": cell.stream, "detail": detail})
        if self.engine.cells.get(cell.stream) is cell:
            del self.engine.cells[cell.stream]
        for ready in cell.waiting:
            if not ready.done():
                ready.set_exception(error)
        waiting = list(cell.pending())
        self.engine.load.less(cell, cell.unstored)
        cell.outbox, cell.made = [], []
        cell.queue.clear()
        self.engine.refuse(waiting, unreadable(error))
        self.engine.peers.cut_off(cell.stream)  # behind the answers, which it would cut off too

    def keep_up(self, cell: Cell) -> None:
        """Fold what others appended as soon as nothing of ours is under way.

        While something is, its own append finds the conflict.
        """
        if cell.newest > cell.base.version and cell.idle:
            self.hold(cell, self.catch_up(cell))

    async def catch_up(self, cell: Cell) -> None:
        """Fold what others appended, and tell the room."""
        rows = await proven.read(self.engine.events, cell.stream, cell.base.version)
        before = cell.base
        cell.forget_pending()
        base, fresh = self._fold(cell, before, rows)
        cell.stand(base)
        self.engine.peers.deliver_foreign(cell, fresh)
        turned = base.state is not before.state
        self.engine.committer.publish(cell.stream, fresh, turned=turned)
        if turned:
            self.engine.reschedule(cell)


def unreadable(error: StoreError) -> Refused:
    """Why a message could not be decided."""
    return Refused(kind_of(error), f"The store cannot be read: {error.told}")


def kind_of(error: Exception) -> Why:
    """Whether to try again later makes sense."""
    return Why.DAMAGED if isinstance(error, DamagedError) else Why.UNAVAILABLE
