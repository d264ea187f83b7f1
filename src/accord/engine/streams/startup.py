"""Start-up: all members are disconnected, and deadlines that passed take effect (OPEN-31).

Opening every room would make a start slower with each session ever held. So the rooms in which
nothing happens before a known deadline are stored as a list at the end of a start, and the next
start leaves those closed that have not changed since.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice

import msgspec

from accord.core.kernel.messages import Instant
from accord.engine.ports import Clock, EventLog, Snapshot, StoreError
from accord.engine.scheduling import Scheduler
from accord.engine.streams.snapshots import with_checksum, without_checksum
from accord.engine.streams.stream import Stream
from accord.engine.streams.stream_cache import StreamCache

# Rooms opened at once; they are evicted before the next ones are opened.
STREAMS_PER_BATCH = 32
SNAPSHOT_NAME = "engine/quiet"

RoomSummaries = dict[str, tuple[str, ...]]


class DormantRoom(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An inactive room: its version and time, its next deadline, and no connected member."""

    version: int
    at: Instant
    due: Instant | None
    summary: tuple[str, ...]


DormantRooms = dict[str, DormantRoom]


class Startup:
    """Opens every room in which something is due, and leaves inactive ones closed."""

    def __init__(
        self,
        events: EventLog,
        scheduler: Scheduler,
        stream_cache: StreamCache,
        open_room: Callable[[str], Awaitable[None]],
        wait_until_idle: Callable[[], Awaitable[None]],
    ) -> None:
        self._events = events
        self._scheduler = scheduler
        self._stream_cache = stream_cache
        self._open_room = open_room
        self._wait_until_idle = wait_until_idle

    async def run(self, shape: str, clock: Clock) -> RoomSummaries:
        """Returns a summary of each readable room; `shape` identifies the code of their state."""
        newest = await self._events.streams("room/")
        known, now = await load_dormant_rooms(self._events, shape), clock.now()
        # A room whose time is ahead of our clock is opened, because its time continues from now.
        rests = {s: r for s, r in known.items() if newest.get(s) == r.version and r.at <= now}
        summaries = {stream: rest.summary for stream, rest in rests.items()}
        for stream, rest in rests.items():
            self._scheduler.set(stream, rest.due)
        for streams in batches(newest.keys() - rests.keys()):
            for stream in streams:
                await self._open_room(stream)
            await self._wait_until_idle()
            summaries |= self._summaries(streams)
            rests |= self._dormant_among(streams)
        self._scheduler.run_due()
        await self._wait_until_idle()
        woken = list(self._stream_cache.streams.keys() & newest.keys())
        summaries |= self._summaries(woken)
        rests |= self._dormant_among(woken)
        await save_dormant_rooms(self._events, shape, rests)
        return summaries

    def _summaries(self, streams: Iterable[str]) -> RoomSummaries:
        opened = self._stream_cache.streams
        return {
            s: opened[s].context.presence.dormant_summary(opened[s].base.state)
            for s in streams
            if s in opened
        }

    def _dormant_among(self, streams: Iterable[str]) -> DormantRooms:
        """The inactive ones among these rooms; they are evicted again."""
        opened = self._stream_cache.streams
        found = {s: rest for s in streams if s in opened and (rest := dormant_room_of(opened[s]))}
        for stream in found:
            self._stream_cache.evict(stream)
        return found


async def load_dormant_rooms(events: EventLog, shape: str) -> DormantRooms:
    """The list of the last start; empty if other code wrote it."""
    kept = await events.snapshot(SNAPSHOT_NAME)
    if kept is None or kept.shape != shape:
        return {}
    try:
        return msgspec.msgpack.decode(without_checksum(kept.blob), type=DormantRooms)
    except (msgspec.MsgspecError, ValueError):
        return {}


async def save_dormant_rooms(events: EventLog, shape: str, rests: DormantRooms) -> None:
    """Store the list for the next start, which is only slower without it."""
    blob = with_checksum(msgspec.msgpack.encode(rests))
    try:
        position = await events.position()
        await events.save_snapshot(SNAPSHOT_NAME, Snapshot(position, shape, blob))
    except StoreError:
        return


def dormant_room_of(stream: Stream) -> DormantRoom | None:
    """The entry of a room that a start need not open before its deadline; None if it must."""
    context, base = stream.context, stream.base
    stirs = (
        not stream.is_idle
        or stream.clock_ahead
        or any(context.presence.connected_members(base.state))
    )
    if stirs or not base.version:
        return None
    return DormantRoom(
        base.version, base.at, stream.deadline, context.presence.dormant_summary(base.state)
    )


def batches(streams: Iterable[str]) -> Iterator[list[str]]:
    left = iter(streams)
    while batch := list(islice(left, STREAMS_PER_BATCH)):
        yield batch
