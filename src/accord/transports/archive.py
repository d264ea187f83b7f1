"""Reading sessions over HTTP: the list, one session, what was said in it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import TRUNK
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.state import Room
from accord.core.views import sessions
from accord.core.views.gaps import ensure_next
from accord.engine import proven
from accord.engine.engine import Engine
from accord.engine.ports import DamagedError, Row
from accord.transports.endpoint import Endpoint, Query, mounted
from accord.transports.index import Index, Seen
from accord.transports.replies import answer, guarded, raw

LARGEST_PAGE = 1000
USUAL_PAGE = 200
LARGEST_ANSWER = 4 << 20
# How many rows are looked at in one go; each may have a MiB.
STEP = 100
# A page may take some MiB while it is put together: so many at a time, the others wait.
MOST_AT_ONCE = 8
Identify = Callable[[Request], Awaitable[Actor]]


class Page(NamedTuple):
    """A stretch of a transcript."""

    frames: list[bytes]
    next: int
    more: bool


class Archive:
    """What a caller may read."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.index = Index(engine)
        self.turn = asyncio.Semaphore(MOST_AT_ONCE)

    async def room(self, id: str, actor: Actor) -> Room:
        """The session, if it exists for this reader; raises Refused."""
        room: Room = await self.engine.state(f"room/{id}")
        if not sessions.known_to(room, actor):
            raise Refused(Why.NO_ROOM, f"There is no session {id}")
        return room

    async def listing(self, actor: Actor) -> list[dict[str, Any]]:
        """Every session the reader is or was in, newest first."""
        found = await self.index.of(actor)
        lines = [await self._line(name, seen, actor) for name, seen in found.items()]
        mine = [line for line in lines if line is not None]
        mine.sort(key=lambda line: line["created_at"], reverse=True)
        return mine

    async def stretch(self, actor: Actor, after: str, limit: int) -> tuple[list[Any], bool]:
        """So many of them behind that session, and whether there are more."""
        whole = await self.listing(actor)
        places = {each["id"]: place for place, each in enumerate(whole, 1)}
        if after and after not in places:
            raise Refused(Why.MALFORMED, "after is the id of a session of this list")
        start = places[after] if after else 0
        return whole[start : start + limit], len(whole) > start + limit

    async def _line(self, name: str, seen: Seen, actor: Actor) -> dict[str, Any] | None:
        """None for a damaged one: whoever asks for it by name is told, the list goes on."""
        if seen.line is not None:
            return seen.line.told(actor.seat)
        try:
            room: Room = await self.engine.state(name)
        except DamagedError:
            return None
        return sessions.summary(room, actor.seat) if sessions.known_to(room, actor) else None

    async def transcript(self, room: Room, seat: str, after: int, limit: int) -> Page:
        """Envelopes behind `seq` number `after`, oldest first."""
        async with self.turn:
            return await self._transcript(room, seat, after, limit)

    async def _transcript(self, room: Room, seat: str, after: int, limit: int) -> Page:
        frames: list[bytes] = []
        # A record's `seq` is never above its version.
        version, heard, last, size = after, after, after, 0
        while rows := await proven.read(self.engine.events, f"room/{room.id}", version, STEP):
            for row in rows:
                sealed = self.engine.unsealed(row)
                frame, seq = sealed.frame, sealed.record.seq
                ensure_next(room.id, sealed.record, version, heard)
                version, heard = row.version, max(heard, seq)
                if seq <= after or not frame or not sessions.may_read(room, seat, sealed.record):
                    continue
                size += len(frame)
                if len(frames) == limit or (frames and size > LARGEST_ANSWER):
                    return Page(frames, last, more=True)
                frames.append(frame)
                last = seq
        return Page(frames, last, more=False)

    async def rows(self, room: Room) -> list[Row]:
        """The stored rows of a session."""
        return await proven.read(self.engine.events, f"room/{room.id}")


class Desk(NamedTuple):
    """Where readers come: who they are, and what there is."""

    archive: Archive
    identify: Identify

    async def room(self, request: Request) -> tuple[Room, Actor]:
        """The session that is asked for, and who asks."""
        actor = await self.identify(request)
        return await self.archive.room(request.path_params["id"], actor), actor


async def listing(desk: Desk, request: Request) -> Response:
    """The sessions the caller is or was in, newest first."""
    actor = await desk.identify(request)
    after, limit = BEHIND.text(request) or "", SESSIONS.number(request)
    page, more = await desk.archive.stretch(actor, after, limit)
    return answer({"sessions": page, "has_more": more})


async def detail(desk: Desk, request: Request) -> Response:
    """One session as it stands, as far as the caller sees it."""
    room, actor = await desk.room(request)
    return answer(sessions.detail(room, actor.seat))


async def context(desk: Desk, request: Request) -> Response:
    """One item of the context with what stands in it."""
    room, actor = await desk.room(request)
    fork = FORK.text(request)
    place = None if not fork or fork in TRUNK else fork
    return answer(sessions.context(room, actor.seat, KEY.text(request) or "", place))


async def transcript(desk: Desk, request: Request) -> Response:
    """What was said behind a `seq`, oldest first."""
    room, actor = await desk.room(request)
    after, limit = AFTER.number(request), LIMIT.number(request)
    page = await desk.archive.transcript(room, actor.seat, after, limit)
    more = b"true" if page.more else b"false"
    messages = b",".join(page.frames)
    return raw(b'{"messages":[%b],"next":%d,"has_more":%b}' % (messages, page.next, more))


KEY = Query("key", "the key of the item")
FORK = Query("fork", "the fork it is in; without it, the trunk")
BEHIND = Query("after", "the id of the last session the caller has")
SESSIONS = Query("limit", "how many sessions at most", LARGEST_PAGE, 1, LARGEST_PAGE)
AFTER = Query("after", "the last `seq` the caller has", 0, 0, 1 << 53)
LIMIT = Query("limit", "how many messages at most", USUAL_PAGE, 1, LARGEST_PAGE)

TABLE: tuple[Endpoint, ...] = (
    Endpoint("GET", "/sessions", listing, query=(BEHIND, SESSIONS)),
    Endpoint("GET", "/sessions/{id}", detail),
    Endpoint("GET", "/sessions/{id}/context", context, query=(KEY, FORK)),
    Endpoint("GET", "/sessions/{id}/transcript", transcript, query=(AFTER, LIMIT)),
)


def routes(archive: Archive, identify: Identify) -> list[Route]:
    """The table as routes."""
    desk = Desk(archive, identify)

    def serve(row: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def handler(request: Request) -> Response:
            return await row.handler(desk, request)

        return guarded(handler)

    return mounted(TABLE, serve)
