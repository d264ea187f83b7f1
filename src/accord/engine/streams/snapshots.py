"""Snapshots of stream states, so that opening a stream does not depend on its age."""

from hashlib import sha256
from types import GenericAlias
from typing import Any

import msgspec

from accord.core.kernel.context import Context
from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.engine.ports import EventLog, ForeignStoreError, Snapshot, StoreError
from accord.engine.streams import verified_reads
from accord.engine.streams.stream import Stream, StreamPosition

SNAPSHOT_INTERVAL_RECORDS = 1000
# Raise this when an evolver changes its meaning; changed types are noticed anyway.
SHAPE_EPOCH = 5
CHECKSUM_BYTES = 32


class Snapshots:
    """Reads and writes the snapshots of one log."""

    def __init__(self, events: EventLog) -> None:
        self.events = events
        self.shapes: dict[str, str] = {}

    def shape(self, context: Context[Any]) -> str:
        """Identifies the types that a snapshot of this context consists of today."""
        if context.name not in self.shapes:
            schema = msgspec.json.encode(
                msgspec.json.schema(context.state_type), order="deterministic"
            )
            digest = sha256(schema + str(SHAPE_EPOCH).encode()).hexdigest()
            self.shapes[context.name] = digest[:16]
        return self.shapes[context.name]

    def is_due(self, stream: Stream) -> bool:
        """Whether enough records were added since the last snapshot."""
        return stream.base.version - stream.snapshot_version >= SNAPSHOT_INTERVAL_RECORDS

    async def take(self, stream: Stream) -> None:
        """Store the durable state of the stream."""
        base = stream.base
        stream.snapshot_version = base.version
        kept = (base.state, base.seq, base.hash, base.at)
        shape = self.shape(stream.context)
        try:
            blob = msgspec.msgpack.encode(kept)
            await self.events.save_snapshot(
                stream.id, Snapshot(base.version, shape, with_checksum(blob))
            )
        except OverflowError:
            pass  # an integer over 64 bits: no snapshot, so opening is slower
        except StoreError:
            stream.snapshot_version = 0  # it is a cache; the next commit tries again

    async def start_position(self, stream: Stream) -> StreamPosition:
        """The position before the first record, or behind the retention cut."""
        cut = await verified_reads.cut(self.events, stream.id)
        return stream.base if cut is None else position_after_cut(stream.context, cut)

    async def latest_position(self, stream: Stream) -> StreamPosition:
        """The position of the newest usable snapshot, or the initial one."""
        kept = await self.events.snapshot(stream.id)
        if kept is None or kept.shape != self.shape(stream.context):
            return stream.base
        form = GenericAlias(tuple, (stream.context.state_type, int, bytes, int))
        try:
            state, seq, last, at = msgspec.msgpack.decode(without_checksum(kept.blob), type=form)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return stream.base
        return StreamPosition(state, kept.version, seq, last, at)


def encode_cut_state(state: Any, seq: int, at: int) -> bytes:
    """The state as a retention cut stores it."""
    return msgspec.msgpack.encode((state, seq, at))


def position_after_cut(context: Context[Any], cut: RetentionCut) -> StreamPosition:
    """The state that a cut stores; StoreError if this version cannot read it."""
    form = GenericAlias(tuple, (context.state_type, int, int))
    try:
        state, seq, at = msgspec.msgpack.decode(cut.state, type=form)
    except msgspec.MsgspecError as error:
        detail = f"The stored state of {cut.stream} cannot be read: {error}"
        raise ForeignStoreError(detail) from error
    return StreamPosition(state, cut.version, seq, cut.hash, at)


def with_checksum(blob: bytes) -> bytes:
    """The bytes with their checksum in front."""
    return checksum(blob) + blob


def without_checksum(kept: bytes) -> bytes:
    """The bytes behind their checksum; ValueError if it does not match."""
    blob = kept[CHECKSUM_BYTES:]
    if checksum(blob) != kept[:CHECKSUM_BYTES]:
        raise ValueError("damaged")
    return blob


def checksum(blob: bytes) -> bytes:
    """A damaged snapshot could decode to another state, so it must be detected."""
    return sha256(blob).digest()
