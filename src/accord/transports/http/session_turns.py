"""`GET /sessions/{id}/turns`: turns backwards, with each stream of chunks as one message."""

from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from accord.core.dialects import pvp
from accord.core.kernel.records import Record
from accord.core.room.state import Room
from accord.core.views import sessions
from accord.core.views.folded_transcript import FoldedMessage, fold_chunks, newest_turns
from accord.engine.engine import Engine
from accord.engine.streams import verified_reads
from accord.engine.streams.verified_reads import read_rows, verified
from accord.transports.http.endpoint import Endpoint, QueryParameter
from accord.transports.http.responses import raw_json_response
from accord.transports.http.sessions import SessionEndpoints, conversation_stream

DEFAULT_TURNS, MAX_TURNS = 20, 100
ROWS_PER_READ, ROWS_PER_SEARCH = 400, 4
MAX_SEQ = 1 << 53
# One answer covers at most so many records and bytes, even if that is less than a turn.
MAX_RECORDS = 20_000
MAX_BYTES = 2 << 20


class TurnsRead(NamedTuple):
    """Readable records in order with their frames, and where older ones begin."""

    records: list[Record]
    frames: dict[int, bytes]  # by version
    first_seq: int
    more: bool

    def encoded_messages(self) -> list[bytes]:
        """The messages, with each stream of chunks as one."""
        return [self._encode(message) for message in fold_chunks(self.records)]

    def _encode(self, message: FoldedMessage) -> bytes:
        record, payload = message
        if payload is None or record.said is None:
            return self.frames[record.version]
        envelope = pvp.envelope_of(record, record.said)
        return pvp.encode(msgspec.structs.replace(envelope, payload=payload))


class TurnReader:
    """Reads the log of one session backwards, as far as one member may read it."""

    def __init__(self, engine: Engine, room: Room, seat: str) -> None:
        self.engine = engine
        self.room = room
        self.seat = seat
        self.stream = conversation_stream(room.id)

    async def read(self, before: int, turns: int) -> TurnsRead:
        """The newest turns whose messages have a `seq` below `before`; 0: the newest of all."""
        newest = (await self.engine.events.streams(self.stream)).get(self.stream, 0)
        cut = await verified_reads.cut(self.engine.events, self.stream)
        oldest = cut.version if cut else 0
        end = await self._version_before(before, oldest, newest) if before else newest
        records: list[Record] = []
        frames: dict[int, bytes] = {}
        size, looked_at, first_seq = 0, 0, before
        while end > oldest:
            start = max(oldest, end - ROWS_PER_READ)
            rows = await verified_reads.read(self.engine.events, self.stream, start, end - start)
            page: list[Record] = []
            for row in rows:
                encoded = self.engine.decode_row(row)
                record = encoded.record
                if encoded.frame and sessions.may_read(self.room, self.seat, record):
                    page.append(record)
                    frames[record.version] = encoded.frame
                    size += len(encoded.frame)
            numbered = [record.seq for record in page if record.seq]
            first_seq = numbered[0] if numbered else first_seq
            records = [*page, *records]
            looked_at, end = looked_at + len(rows), start
            kept, more = newest_turns(records, turns)
            if more:
                return TurnsRead(list(kept), frames, kept[0].seq, more=True)
            if looked_at >= MAX_RECORDS or size >= MAX_BYTES:
                break
        return TurnsRead(records, frames, first_seq, more=end > oldest and bool(records))

    async def _version_before(self, seq: int, oldest: int, newest: int) -> int:
        """The last version whose `seq` is below this one; `seq` grows with the version."""
        low, high = oldest, newest
        while low < high:
            middle = (low + high + 1) // 2
            if await self._seq_at(middle, high) < seq:
                low = middle
            else:
                high = middle - 1
        return low

    async def _seq_at(self, version: int, last: int) -> int:
        """The `seq` of this version, or of the next one that has a form on the wire."""
        rows = read_rows(verified(self.engine.events), self.stream, version - 1, ROWS_PER_SEARCH)
        async for row in rows:
            if row.version > last:
                break
            if seq := self.engine.decode_row(row).record.seq:
                return seq
        return MAX_SEQ


async def turns(endpoints: SessionEndpoints, request: Request) -> Response:
    """The newest turns before a `seq`, each stream of chunks as one message, oldest first."""
    room, actor = await endpoints.room_and_actor(request)
    before, limit = BEFORE_QUERY.parse_int(request), TURNS_QUERY.parse_int(request)
    async with endpoints.sessions.read_slots:
        reader = TurnReader(endpoints.sessions.engine, room, actor.principal)
        read = await reader.read(before, limit)
    messages = b",".join(read.encoded_messages())
    position = {
        "first": read.first_seq,
        "last": read.records[-1].seq if read.records else 0,
        "last_id": read.records[-1].id if read.records else None,
        "has_more": read.more,
    }
    return raw_json_response(b'{"messages":[%b],%b' % (messages, msgspec.json.encode(position)[1:]))


BEFORE_QUERY = QueryParameter(
    "before", "the `first` of the page you have; 0: the newest", 0, 0, MAX_SEQ
)
TURNS_QUERY = QueryParameter("limit", "maximum number of turns", DEFAULT_TURNS, 1, MAX_TURNS)
TURN_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/sessions/{id}/turns", turns, query=(BEFORE_QUERY, TURNS_QUERY)),
)
