"""The streams in memory: reads them from the log, keeps them in step with it, and evicts them.

Everything here reads the log or forgets what can be read again. It decides, delivers and answers
nothing; the engine does that with what is returned.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import dropwhile, islice
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec.structs import replace

from accord.core.kernel.context import Context, fold
from accord.core.kernel.refusal import Reason, Refused
from accord.engine.ports import Clock, DamagedError, EncodedRecord, Row, StoreError
from accord.engine.streams.snapshots import Snapshots
from accord.engine.streams.stream import Stream, StreamPosition, Submission
from accord.engine.streams.verified_reads import RecordReader, check_chain

log = logging.getLogger("accord.engine")

MAX_STREAMS = 4096
# Upper bound for all windows together, checked now and then.
MAX_CACHE_BYTES = 256 << 20
SIZE_CHECK_EVERY_OPENS = 64
# Ended rooms stay in memory with their connections until this many others have ended.
MAX_ENDED_STREAMS = 64
# Of streams whose state stays in memory, the records of those used last stay too: so many bytes.
MAX_KEPT_WINDOW_BYTES = 32 << 20
# Ids looked up in the store by one query.
MAX_RETRY_LOOKUPS = 500
RECORD = attrgetter("record")


class ForeignRecords(NamedTuple):
    """Records that another process appended, and whether they changed the state."""

    records: list[EncodedRecord]
    state_changed: bool


class StreamCache:
    """The streams in memory, by id."""

    def __init__(
        self,
        reader: RecordReader,
        snapshots: Snapshots,
        contexts: Mapping[str, Context[Any]],
        clock: Clock,
        window: int,
        is_in_use: Callable[[str], bool],
    ) -> None:
        self.streams: dict[str, Stream] = {}
        self._reader = reader
        self._snapshots = snapshots
        self._contexts = contexts
        self._clock = clock
        self._window = window
        self._is_in_use = is_in_use
        self._open_count = 0
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._kept_windows: OrderedDict[str, int] = OrderedDict()  # by stream, with their bytes
        self._kept_bytes = 0

    def create(self, stream: str) -> Stream:
        """An empty stream; it may decide nothing before `load`."""
        opened = Stream(stream, self._contexts[stream.partition("/")[0]], self._window)
        self._evict_unused()
        self.streams[stream] = opened
        return opened

    def state_at_hand(self, stream: str) -> Any | None:
        """The durable state of a stream that keeps it, if it is in memory and not being read."""
        opened = self.streams.get(stream)
        if opened is None or opened.hold_count or not opened.context.keeps_state:
            return None
        self.evict_if_idle(opened)
        return opened.base.state

    # Reading

    async def load(self, stream: Stream) -> None:
        """Read the stream from the log."""
        kept, rows = await self._since_snapshot(stream)
        base, _ = self._fold(stream, kept, rows)
        await self._fill_window(stream, base.version, len(rows))
        stream.snapshot_version = kept.version
        stream.clock_ahead = max(0, base.at - self._clock.now())
        stream.reset_to(base)

    async def catch_up(self, stream: Stream, known: Sequence[Row] = ()) -> ForeignRecords:
        """Fold what other processes appended; drops what is decided and not durable.

        `known` are newest rows of the stream that were read already.
        """
        before = stream.base
        rows = continuation(stream.id, before, known)
        if rows is None:
            rows = await self._reader.rows(stream.id, before.version)
        stream.drop_pending_records()
        base, fresh = self._fold(stream, before, rows)
        stream.reset_to(base)
        return ForeignRecords(fresh, base.state is not before.state)

    async def look_up(self, stream: Stream, submission: Submission, ids: Sequence[str]) -> None:
        """Give the message these records; None for an id that does not exist."""
        here = await self._reader.records(stream.id, ids)
        submission.looked_up = {**submission.looked_up, **dict.fromkeys(ids), **here}

    async def look_up_retries(self, stream: Stream, waiting: list[Submission], id: str) -> None:
        """Find messages that are retries older than the window, or give our own ids a new time."""
        retries = dropwhile(lambda submission: submission.message.id != id, waiting)
        behind = list(islice(retries, MAX_RETRY_LOOKUPS))
        # Look up the ids behind it too: retries come in bursts, and deciding again for each is
        # quadratic.
        ids = [each for submission in behind if (each := submission.message.id) not in stream.index]
        found = await self._reader.records(stream.id, ids)
        for submission in behind:
            if before := found.get(submission.message.id):
                submission.looked_up = {**submission.looked_up, submission.message.id: before}
        if not behind:
            # Ids that the server derives depend on the time, so a later time gives other ids.
            later = max(self._clock.now() + stream.clock_ahead, stream.base.at) + 1
            stream.reset_to(replace(stream.base, at=later))

    async def check_fold(self, stream: Stream) -> None:
        """Check mode: folding the stored records must give the state in memory."""
        base = stream.base
        rows = await self._reader.rows(stream.id)
        encoded = map(self._reader.decode, [r for r in rows if r.version <= base.version])
        state = fold(stream.context, stream.context.initial_state(stream.id), map(RECORD, encoded))
        if state != base.state:
            log.critical("state.differs", extra={"stream": stream.id})
            raise AssertionError(f"{stream.id} at {base.version}: {state} is not {base.state}")

    async def _since_snapshot(self, stream: Stream) -> tuple[StreamPosition, list[Row]]:
        """The newest snapshot that matches the log, and the rows behind it."""
        kept = await self._snapshots.latest_position(stream)
        if kept.version:
            rows = await self._reader.rows(stream.id, kept.version - 1)
            if rows and rows[0].hash == kept.hash:
                return kept, rows[1:]
        start = await self._snapshots.start_position(stream)
        return start, await self._reader.rows(stream.id, start.version)

    async def _fill_window(self, stream: Stream, version: int, loaded: int) -> None:
        """Read the newest records into the window if the snapshot left too few to read."""
        if loaded < self._window and version > loaded:
            after = max(0, version - self._window)
            rows = await self._reader.rows(stream.id, after, version - after)
            stream.clear_window()
            stream.add_to_window(list(map(self._reader.decode, rows)))

    def _fold(
        self, stream: Stream, place: StreamPosition, rows: Iterable[Row]
    ) -> tuple[StreamPosition, list[EncodedRecord]]:
        """The position after these rows, and their records."""
        fresh: list[EncodedRecord] = []
        state, version, seq = place.state, place.version, place.seq
        last, at = place.hash, place.at
        for row in rows:
            encoded = self._reader.decode(row)
            record = encoded.record
            state = fold(stream.context, state, (record,))
            version, last, at = row.version, row.hash, max(at, record.at)
            seq = record.seq or seq
            fresh.append(encoded)
        stream.add_to_window(fresh)
        return StreamPosition(state, version, seq, last, at), fresh

    # Eviction

    def _evict_unused(self) -> None:
        """Evict the least recently used streams that have no connection."""
        streams = self.streams
        self._open_count += 1
        if len(streams) < MAX_STREAMS and not self._is_over_size():
            return
        quiet = (s for s, c in streams.items() if c.is_idle and not self._is_in_use(s))
        for stream in list(islice(quiet, max(1, len(streams) // 4))):
            del streams[stream]

    def _is_over_size(self) -> bool:
        if self._open_count % SIZE_CHECK_EVERY_OPENS:
            return False
        return sum(opened.window_bytes for opened in self.streams.values()) > MAX_CACHE_BYTES

    def evict(self, stream: str) -> None:
        """Evict a stream whose beginning was removed, so that it is read again."""
        opened = self.streams.get(stream)
        if opened is not None and opened.is_idle and not self._is_in_use(stream):
            del self.streams[stream]

    def evict_if_idle(self, stream: Stream) -> str | None:
        """Evict a stream that does not exist; returns an ended one that is too old to be kept."""
        if not stream.is_idle or self.streams.get(stream.id) is not stream:
            return None
        if stream.base.version == 0:
            del self.streams[stream.id]
        elif stream.context.keeps_state:
            self._keep_window(stream)
        elif has_ended(stream):
            return self._retire_ended(stream.id)
        return None

    def _keep_window(self, stream: Stream) -> None:
        """Keep the records of the streams used last, and only the state of the others."""
        kept, size = self._kept_windows, stream.window_bytes
        self._kept_bytes += size - kept.pop(stream.id, 0)
        kept[stream.id] = size
        while self._kept_bytes > MAX_KEPT_WINDOW_BYTES and len(kept) > 1:
            oldest, size = kept.popitem(last=False)
            self._kept_bytes -= size
            opened = self.streams.get(oldest)
            if opened is not None and opened.is_idle:
                opened.clear_window()

    def _retire_ended(self, stream: str) -> str | None:
        """Keep the newest ended streams; returns the oldest one if there are too many."""
        self._ended[stream] = None
        self._ended.move_to_end(stream)
        return self._ended.popitem(last=False)[0] if len(self._ended) > MAX_ENDED_STREAMS else None

    def drop(self, stream: Stream) -> None:
        """Forget a stream that cannot be read; the next message opens it again."""
        if self.streams.get(stream.id) is stream:
            del self.streams[stream.id]


def continuation(stream: str, base: StreamPosition, known: Sequence[Row]) -> list[Row] | None:
    """The known rows behind this position, if they follow it without a gap and match the chain."""
    rows = [row for row in known if row.version > base.version]
    if not rows or rows[0].version != base.version + 1:
        return None
    try:
        return check_chain(stream, rows, base.version, base.hash)
    except DamagedError:  # reading from the store reports it
        return None


def unreadable_refusal(error: StoreError) -> Refused:
    return Refused(reason_for(error), f"The store cannot be read: {error.public_message}")


def reason_for(error: Exception) -> Reason:
    """Whether a retry may help."""
    return Reason.DAMAGED if isinstance(error, DamagedError) else Reason.UNAVAILABLE


def has_ended(stream: Stream) -> bool:
    """Whether the room has ended: no connected member, no deadline, no heartbeat."""
    context, state = stream.context, stream.base.state
    at_rest = (
        stream.is_idle
        and stream.deadline is None
        and not any(context.presence.connected_members(state))
    )
    return at_rest and context.presence.heartbeat_policy(state) is None
