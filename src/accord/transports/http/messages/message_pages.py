"""Reading a session's messages by message id, as far as one reader may see them."""

from itertools import islice
from typing import NamedTuple

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.state import Room
from accord.core.views import sessions
from accord.engine.ports import EncodedRecord
from accord.engine.streams import verified_reads
from accord.engine.streams.stream import Stream
from accord.transports.http.sessions import (
    MAX_RESPONSE_BYTES,
    ROWS_PER_READ,
    SessionReader,
    conversation_stream,
)


class ReadPosition(NamedTuple):
    """A session's state and its stream."""

    room: Room
    stream: Stream


class EncodedPage(NamedTuple):
    """Envelopes, the id of the last one, and the log version read so far."""

    frames: list[bytes]
    last_id: str
    version: int
    has_more: bool


class MessageReader:
    """Reads messages of a session that a reader may see."""

    def __init__(self, sessions: SessionReader) -> None:
        self.sessions = sessions
        self.engine = sessions.engine

    async def position(self, id: str, actor: Actor) -> ReadPosition:
        """The session if this reader may know of it; raises Refused."""
        room = await self.sessions.readable_room(id, actor)
        stream = self.engine.streams.get(conversation_stream(id))
        if stream is None:
            raise Refused(Reason.UNAVAILABLE, "The session is being loaded; try again")
        return ReadPosition(room, stream)

    async def version_of(self, position: ReadPosition, seat: str, id: str) -> int:
        """The version of a message visible to this reader; others are reported as unknown."""
        record_found = position.stream.index.get(id)
        if record_found is None:
            rows = await verified_reads.find(self.engine.events, position.stream.id, [id])
            record_found = next(map(self.engine.decode_row, rows), None)
        if position.room.ended:
            await self._ensure_not_removed(position, id, record_found)
        durable = (
            record_found is not None and record_found.record.version <= position.stream.base.version
        )
        if (
            record_found is None
            or not durable
            or not sessions.may_read(position.room, seat, record_found.record)
        ):
            raise Refused(
                Reason.NOT_FOUND,
                f"There is no message {id[:128]} in this session",
                {"unknown": [id]},
            )
        return record_found.record.version

    async def _ensure_not_removed(
        self, position: ReadPosition, id: str, record_found: EncodedRecord | None
    ) -> None:
        """Refuse to continue after a message removed by retention: the gap would go unnoticed."""
        cut = await verified_reads.cut(self.engine.events, position.stream.id)
        if cut is not None and (record_found is None or record_found.record.version < cut.version):
            detail = (
                f"Messages of {position.room.id} were removed by retention; ask again without after"
            )
            raise Refused(Reason.REMOVED, detail, {"unknown": [id]})

    @staticmethod
    def window_start(stream: Stream) -> int:
        """The version after which a new reader gets history."""
        return max(0, stream.base.version - stream.max_window)

    async def read_page(self, id: str, actor: Actor, since: int, limit: int) -> EncodedPage:
        """Messages after a version, up to the response size limit."""
        async with self.sessions.read_slots:
            return await self._read_page(id, actor, since, limit)

    async def _read_page(self, id: str, actor: Actor, since: int, limit: int) -> EncodedPage:
        frames: list[bytes] = []
        last, size = "", 0
        while True:
            room, stream = await self.position(id, actor)
            batch = await self._records_after(room, stream, since)
            if not batch:
                return EncodedPage(frames, last, since, has_more=False)
            for encoded in batch:
                frame, record = encoded.frame, encoded.record
                if frame and sessions.may_read(room, actor.principal, record):
                    size += len(frame)
                    if len(frames) == limit or (frames and size > MAX_RESPONSE_BYTES):
                        return EncodedPage(frames, last, since, has_more=True)
                    frames.append(frame)
                    last = record.id
                since = record.version

    async def _records_after(self, room: Room, stream: Stream, since: int) -> list[EncodedRecord]:
        """The next records, up to the version of the state.

        An ended session is read from the store, because another process may have removed records.
        """
        remaining = stream.base.version - since
        if remaining <= 0:
            return []
        if remaining <= len(stream.window) and not room.ended:
            return list(islice(stream.window, len(stream.window) - remaining, None))
        rows = await verified_reads.read(
            self.engine.events, stream.id, since, min(ROWS_PER_READ, remaining)
        )
        return list(map(self.engine.decode_row, rows))
