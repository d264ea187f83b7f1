"""A start: whoever was connected is not, and what fell due meanwhile is done (OPEN-31)."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from accord.engine.ports import DamagedError
from accord.engine.quiet import Quiet, Rests, rest_of

if TYPE_CHECKING:
    from accord.engine.engine import Engine

# Rooms that are opened together; they are let go before the next ones are.
AT_ONCE = 32
Gists = dict[str, tuple[str, ...]]


class Waking:
    """Opens every room in which something may have happened, and no more of them than it must."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.quiet = Quiet(engine.events)

    async def run(self) -> Gists:
        """What there is to know of each room that can be read."""
        engine = self.engine
        shape = engine.snapshots.shape(engine.contexts["room"])
        newest = await engine.events.streams("room/")
        known, now = await self.quiet.known(shape), engine.clock.now()
        # One whose time is ahead of our clock is opened, because its time goes on from now.
        rests = {s: r for s, r in known.items() if newest.get(s) == r.version and r.at <= now}
        gists = {stream: rest.gist for stream, rest in rests.items()}
        for stream, rest in rests.items():
            engine.scheduler.set(stream, rest.due)
        for streams in batches(newest.keys() - rests.keys()):
            await self._wake(streams)
            gists |= self._gists(streams)
            rests |= self._resting(streams)
        engine.scheduler.run_due()
        await engine.settle()
        woken = list(engine.cells.keys() & newest.keys())
        gists |= self._gists(woken)
        rests |= self._resting(woken)
        await self.quiet.keep(shape, rests)
        return gists

    async def _wake(self, streams: list[str]) -> None:
        engine = self.engine
        present = engine.contexts["room"].present
        for stream in streams:
            try:
                state = await engine.state(stream)
            except DamagedError:  # reported by whoever read it; the other rooms go on
                continue
            for seat in present(state):
                engine.peers.absent(stream, seat)
            engine.due(stream)
        await engine.settle()

    def _gists(self, streams: Iterable[str]) -> Gists:
        cells = self.engine.cells
        return {s: cells[s].context.gist(cells[s].base.state) for s in streams if s in cells}

    def _resting(self, streams: Iterable[str]) -> Rests:
        """Those that rest; nobody listens yet, so they need not stay at hand."""
        cells = self.engine.cells
        found = {s: rest for s in streams if s in cells and (rest := rest_of(cells[s]))}
        for stream in found:
            self.engine.opener.forget(stream)
        return found


def batches(streams: Iterable[str]) -> Iterator[list[str]]:
    """So many at once."""
    left = iter(streams)
    while batch := list(islice(left, AT_ONCE)):
        yield batch
