"""Reading sessions over HTTP: list, detail, context and transcript."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import TRUNK_NAMES
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.state import Room
from accord.core.room.threads.state import Thread, is_thread_id, stream_of
from accord.core.views import gate_card, sessions
from accord.core.views.retention_gap import ensure_no_gap
from accord.core.views.thread_sessions import watched_thread
from accord.engine.engine import Engine
from accord.engine.ports import DamagedError, Row
from accord.engine.streams import verified_reads
from accord.engine.streams.verified_reads import read_rows, verified
from accord.transports.http.endpoint import Endpoint, QueryParameter, routes_of
from accord.transports.http.responses import json_response, raw_json_response, with_refusals
from accord.transports.http.session_index import IndexEntry, SessionIndex

MAX_PAGE_SIZE = 1000
DEFAULT_PAGE_SIZE = 200
MAX_RESPONSE_BYTES = 4 << 20
# Rows per read from the store; each may have a MiB.
ROWS_PER_READ = 100
# Building a page can take several MiB, so only this many are built at once.
MAX_CONCURRENT_READS = 8
Authenticate = Callable[[Request], Awaitable[Actor]]


def conversation_stream(id: str) -> str:
    """The stream of a session, or of a thread that is watched as one (UNI-6)."""
    return stream_of(id) if is_thread_id(id) else f"room/{id}"


class TranscriptSlice(NamedTuple):
    """A page of a transcript."""

    frames: list[bytes]
    next: int
    more: bool


class SessionReader:
    """Reads sessions on behalf of a caller."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.index = SessionIndex(engine)
        self.read_slots = asyncio.Semaphore(MAX_CONCURRENT_READS)
        self.on_read: Callable[[str, Actor], None] = lambda *_: None  # called for each read

    async def readable_room(self, id: str, actor: Actor) -> Room:
        """The session if this reader may know of it; raises Refused."""
        if is_thread_id(id):
            thread: Thread = await self.engine.state(stream_of(id))
            return watched_thread(thread, actor)
        room: Room = await self.engine.state(f"room/{id}")
        if not sessions.is_known_to(room, actor):
            raise Refused(Reason.NO_ROOM, f"There is no session {id}")
        return room

    async def list_sessions(self, actor: Actor) -> list[dict[str, Any]]:
        """All sessions the reader is or was in, newest first."""
        entries = await self.index.sessions_of(actor)
        lines = [await self._summarize(name, entry, actor) for name, entry in entries.items()]
        visible = [line for line in lines if line is not None]
        visible.sort(key=lambda line: line["created_at"], reverse=True)
        return visible

    async def page_of_sessions(
        self, actor: Actor, after: str, limit: int
    ) -> tuple[list[Any], bool]:
        """Up to `limit` sessions after that one, and whether there are more."""
        all_sessions = await self.list_sessions(actor)
        positions = {item["id"]: place for place, item in enumerate(all_sessions, 1)}
        if after and after not in positions:
            raise Refused(Reason.MALFORMED, "after must be the id of a session in this list")
        start = positions[after] if after else 0
        return all_sessions[start : start + limit], len(all_sessions) > start + limit

    async def _summarize(self, name: str, entry: IndexEntry, actor: Actor) -> dict[str, Any] | None:
        """None for a damaged session, so that the list works.

        Asking for it by id reports the damage.
        """
        if entry.ended_summary is not None:
            return entry.ended_summary.summary_for(actor.principal)
        try:
            room: Room = await self.engine.state(name)
        except DamagedError:
            return None
        return (
            sessions.session_summary(room, actor.principal)
            if sessions.is_known_to(room, actor)
            else None
        )

    async def read_transcript(
        self, room: Room, seat: str, after: int, limit: int
    ) -> TranscriptSlice:
        """Envelopes after `seq` `after`, oldest first."""
        async with self.read_slots:
            return await self._read_transcript(room, seat, after, limit)

    async def _read_transcript(
        self, room: Room, seat: str, after: int, limit: int
    ) -> TranscriptSlice:
        frames: list[bytes] = []
        # A record's `seq` is never above its version.
        version, last_seq, last, size = after, after, after, 0
        read = verified(self.engine.events)
        async for row in read_rows(read, conversation_stream(room.id), after, ROWS_PER_READ):
            encoded = self.engine.decode_row(row)
            frame, seq = encoded.frame, encoded.record.seq
            ensure_no_gap(room.id, encoded.record, version, last_seq)
            version, last_seq = row.version, max(last_seq, seq)
            if seq <= after or not frame or not sessions.may_read(room, seat, encoded.record):
                continue
            size += len(frame)
            if len(frames) == limit or (frames and size > MAX_RESPONSE_BYTES):
                return TranscriptSlice(frames, last, more=True)
            frames.append(frame)
            last = seq
        return TranscriptSlice(frames, last, more=False)

    async def stored_rows(self, room: Room) -> list[Row]:
        """The stored rows of a session."""
        return await verified_reads.read(self.engine.events, conversation_stream(room.id))


class SessionEndpoints(NamedTuple):
    """What the session endpoints need."""

    sessions: SessionReader
    authenticate: Authenticate

    async def room_and_actor(self, request: Request) -> tuple[Room, Actor]:
        """The requested session and the caller."""
        actor = await self.authenticate(request)
        room = await self.sessions.readable_room(request.path_params["id"], actor)
        self.sessions.on_read(conversation_stream(room.id), actor)
        return room, actor


async def listing(endpoints: SessionEndpoints, request: Request) -> Response:
    """Lists the sessions you are or were in, newest first."""
    actor = await endpoints.authenticate(request)
    after, limit = (
        AFTER_SESSION_QUERY.get_text(request) or "",
        SESSION_LIMIT_QUERY.parse_int(request),
    )
    page, more = await endpoints.sessions.page_of_sessions(actor, after, limit)
    return json_response({"sessions": page, "has_more": more})


async def detail(endpoints: SessionEndpoints, request: Request) -> Response:
    """One session's current state, as far as you may see it."""
    room, actor = await endpoints.room_and_actor(request)
    seen = sessions.session_detail(room, actor.principal)
    return json_response(gate_card.with_cards(seen, room, actor.principal))


async def context(endpoints: SessionEndpoints, request: Request) -> Response:
    """One context item with its content."""
    room, actor = await endpoints.room_and_actor(request)
    fork = FORK_QUERY.get_text(request)
    place = None if not fork or fork in TRUNK_NAMES else fork
    return json_response(
        sessions.context_item(room, actor.principal, KEY_QUERY.get_text(request) or "", place)
    )


async def transcript(endpoints: SessionEndpoints, request: Request) -> Response:
    """Messages after a `seq`, oldest first."""
    room, actor = await endpoints.room_and_actor(request)
    after, limit = AFTER_SEQ_QUERY.parse_int(request), MESSAGE_LIMIT_QUERY.parse_int(request)
    page = await endpoints.sessions.read_transcript(room, actor.principal, after, limit)
    more = b"true" if page.more else b"false"
    messages = b",".join(page.frames)
    return raw_json_response(
        b'{"messages":[%b],"next":%d,"has_more":%b}' % (messages, page.next, more)
    )


KEY_QUERY = QueryParameter("key", "the item's key")
FORK_QUERY = QueryParameter("fork", "the fork; the trunk if omitted")
AFTER_SESSION_QUERY = QueryParameter("after", "the id of the last session you received")
SESSION_LIMIT_QUERY = QueryParameter(
    "limit", "maximum number of sessions", MAX_PAGE_SIZE, 1, MAX_PAGE_SIZE
)
AFTER_SEQ_QUERY = QueryParameter("after", "the last `seq` you received", 0, 0, 1 << 53)
MESSAGE_LIMIT_QUERY = QueryParameter(
    "limit", "maximum number of messages", DEFAULT_PAGE_SIZE, 1, MAX_PAGE_SIZE
)

SESSION_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/sessions", listing, query=(AFTER_SESSION_QUERY, SESSION_LIMIT_QUERY)),
    Endpoint("GET", "/sessions/{id}", detail),
    Endpoint("GET", "/sessions/{id}/context", context, query=(KEY_QUERY, FORK_QUERY)),
    Endpoint(
        "GET", "/sessions/{id}/transcript", transcript, query=(AFTER_SEQ_QUERY, MESSAGE_LIMIT_QUERY)
    ),
)


def routes(
    reader: SessionReader, identify: Authenticate, table: tuple[Endpoint, ...] = SESSION_ENDPOINTS
) -> list[Route]:
    endpoints = SessionEndpoints(reader, identify)

    def serve(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def handler(request: Request) -> Response:
            return await endpoint.handler(endpoints, request)

        return with_refusals(handler)

    return routes_of(table, serve)
