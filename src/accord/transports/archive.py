"""Reading sessions over HTTP: the list, one session, what was said in it."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.core.dialects.codes import CODES
from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import TRUNK
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.state import Room
from accord.core.views import sessions
from accord.core.views.gaps import ensure_next
from accord.engine import proven
from accord.engine.engine import Engine
from accord.engine.opener import unreadable
from accord.engine.ports import DamagedError, Row, StoreError
from accord.transports.endpoint import Endpoint, Query, mounted

LARGEST_PAGE = 1000
USUAL_PAGE = 200
LARGEST_ANSWER = 4 << 20
# How many rows are looked at in one go; each may have a MiB.
STEP = 100
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
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

    async def room(self, id: str, actor: Actor) -> Room:
        """The session, if it exists for this reader; raises Refused."""
        room: Room = await self.engine.state(f"room/{id}")
        if not sessions.known_to(room, actor):
            raise Refused(Why.NO_ROOM, f"There is no session {id}")
        return room

    async def listing(self, actor: Actor) -> list[dict[str, Any]]:
        """Every session the reader is or was in, newest first."""
        names = await self.index.of(actor)
        rooms = [await self._readable(name) for name in names]
        mine = [room for room in rooms if room and sessions.known_to(room, actor)]
        mine.sort(key=lambda room: room.created_at, reverse=True)
        return [sessions.summary(room, actor.seat) for room in mine]

    async def _readable(self, name: str) -> Room | None:
        """None for a damaged one: whoever asks for it by name is told, the list goes on."""
        try:
            room: Room = await self.engine.state(name)
        except DamagedError:
            return None
        return room

    async def transcript(self, room: Room, seat: str, after: int, limit: int) -> Page:
        """Envelopes behind `seq` number `after`, oldest first."""
        frames: list[bytes] = []
        # A record's `seq` is never above its version.
        version, heard, last, size = after, after, after, 0
        while rows := await proven.read(self.engine.events, f"room/{room.id}", version, STEP):
            for row in rows:
                sealed = self.engine.codec.unseal(row.stream, row.version, row.body)
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


class Index:
    """Which rooms somebody is or was in; a room is looked into again once it has moved on."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.seen: dict[str, int] = {}
        self.rooms: dict[tuple[str, str], set[str]] = {}

    async def of(self, actor: Actor) -> list[str]:
        """The streams that may be known to this principal."""
        newest = await self.engine.events.streams("room/")
        for name, version in newest.items():
            if version > self.seen.get(name, 0):
                await self._look(name, version)
        return list(self.rooms.get((actor.workspace, actor.seat), ()))

    async def _look(self, name: str, version: int) -> None:
        try:
            room: Room = await self.engine.state(name)
        except DamagedError:
            self.seen[name] = version
            return
        cell = self.engine.cells.get(name)
        if cell is not None:
            self.seen[name] = cell.base.version
        for seat in (*room.members, *room.former):
            self.rooms.setdefault((room.workspace, seat), set()).add(name)


def answer(value: Any, status: int = 200) -> Response:
    """JSON."""
    return raw(msgspec.json.encode(value), status)


def raw(data: bytes, status: int = 200) -> Response:
    """JSON that is bytes already."""
    return Response(data, status, HEADERS, "application/json")


def refusal(no: Refused) -> Response:
    """The error, as every HTTP route of ours says it."""
    codes = CODES[no.why]
    problem = {"code": codes.pvp, "message": no.detail, "details": no.details or {}}
    response = answer({"error": problem}, codes.http)
    if no.details and "retry_after_ms" in no.details:
        response.headers["retry-after"] = str(-(-no.details["retry_after_ms"] // 1000))
    return response


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
    return answer({"sessions": await desk.archive.listing(actor)})


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
AFTER = Query("after", "the last `seq` the caller has", 0, 0, 1 << 53)
LIMIT = Query("limit", "how many messages at most", USUAL_PAGE, 1, LARGEST_PAGE)

TABLE: tuple[Endpoint, ...] = (
    Endpoint("GET", "/sessions", listing),
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


def guarded(handler: Callable[[Request], Awaitable[Response]]) -> Callable[..., Any]:
    """The handler with refusals and store failures answered properly."""

    async def guarded_handler(request: Request) -> Response:
        try:
            return await handler(request)
        except Refused as no:
            return refusal(no)
        except StoreError as error:
            return refusal(unreadable(error))

    return guarded_handler
