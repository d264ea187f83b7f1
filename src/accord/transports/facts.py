"""One look at a running server: everything there is to count about it."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from accord.core.room.state import Presence, Room
from accord.engine.engine import Engine
from accord.engine.lag import Lag
from accord.engine.ports import StoreError
from accord.engine.tally import Tally
from accord.transports.hall import Hall
from accord.transports.porch import Porch
from accord.transports.requests import Requests

PATIENCE_S = 1.0


class Census(NamedTuple):
    """Who and what is in the sessions at hand."""

    sessions: int = 0
    gates: int = 0
    members: Mapping[Presence, int] = {}

    @classmethod
    def of(cls, rooms: Iterable[Room]) -> "Census":
        """Count them."""
        there = [room for room in rooms if room.exists and not room.ended]
        members = Counter(m.presence for room in there for m in room.members.values())
        return cls(len(there), sum(len(room.gates) for room in there), members)


class Sources(NamedTuple):
    """Where the numbers are."""

    engine: Engine
    hall: Hall
    porch: Porch
    lag: Lag
    requests: Requests
    workers: tuple[str, ...]
    certificate_ends: float | None = None


class Facts(NamedTuple):
    """One look at everything."""

    sources: Sources
    census: Census
    position: int | None
    reached: Mapping[str, int]

    @property
    def tally(self) -> Tally:
        """What the engine counted."""
        return self.sources.engine.tally


async def look(sources: Sources) -> Facts:
    """Everything as it stands; of a store that does not answer, nothing."""
    cells = sources.engine.cells
    rooms = [c.base.state for name, c in list(cells.items()) if name.startswith("room/")]
    events, reached, position = sources.engine.events, dict[str, int](), None
    try:
        async with asyncio.timeout(PATIENCE_S):
            position = await events.position()
            for name in sources.workers:
                reached[name] = await events.cursor(name)
    except (StoreError, TimeoutError):
        pass
    return Facts(sources, Census.of(rooms), position, reached)
