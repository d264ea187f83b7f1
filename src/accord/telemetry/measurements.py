"""One snapshot of everything the metrics report."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from accord.core.room.state import Presence, Room
from accord.engine.counters import EngineCounters
from accord.engine.engine import Engine
from accord.engine.ports import StoreError
from accord.telemetry.loop_lag import LoopLag
from accord.telemetry.middleware import RequestStats
from accord.transports.edge.connection_limits import ConnectionLimits
from accord.transports.websocket.registry import WebSocketRegistry

STORE_READ_TIMEOUT_S = 1.0


class SessionCounts(NamedTuple):
    """Members and gates of the sessions in memory."""

    sessions: int = 0
    gates: int = 0
    members: Mapping[Presence, int] = {}

    @classmethod
    def from_rooms(cls, rooms: Iterable[Room]) -> "SessionCounts":
        there = [room for room in rooms if room.exists and not room.ended]
        members = Counter(m.presence for room in there for m in room.members.values())
        return cls(len(there), sum(len(room.gates) for room in there), members)


class MetricSources(NamedTuple):
    """Where the numbers come from."""

    engine: Engine
    websockets: WebSocketRegistry
    connection_limits: ConnectionLimits
    loop_lag: LoopLag
    requests: RequestStats
    workers: tuple[str, ...]
    certificate_expires_at: float | None = None


class Measurements(NamedTuple):
    """One snapshot of all numbers."""

    sources: MetricSources
    session_counts: SessionCounts
    position: int | None
    worker_positions: Mapping[str, int]

    @property
    def counters(self) -> EngineCounters:
        return self.sources.engine.counters


async def measure(sources: MetricSources) -> Measurements:
    """Take a snapshot; values of a store that does not respond are left out."""
    cells = sources.engine.streams
    rooms = [c.base.state for name, c in list(cells.items()) if name.startswith("room/")]
    events, reached, position = sources.engine.events, dict[str, int](), None
    try:
        async with asyncio.timeout(STORE_READ_TIMEOUT_S):
            position = await events.position()
            for name in sources.workers:
                reached[name] = await events.cursor(name)
    except (StoreError, TimeoutError):
        pass
    return Measurements(sources, SessionCounts.from_rooms(rooms), position, reached)
