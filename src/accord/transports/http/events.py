"""`GET /sessions/{id}/events`: the room as server-sent events, as it goes on."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from accord.core.kernel.refusal import Refused, Why
from accord.engine.tally import Tally
from accord.transports.caller import Caller, Callers
from accord.transports.expiry import Expiry
from accord.transports.head import ABORT
from accord.transports.http.benches import Bench, first, hung_up
from accord.transports.http.reader import Reader
from accord.transports.identity import Identity
from accord.transports.replies import HEADERS

log = logging.getLogger("accord.events")

# Whoever is told what it missed is told more once it has read most of it.
LARGEST_CHUNK = 1 << 20
KEEP_ALIVE_SECONDS = 15
LAST_SECONDS = 1
HELLO = b"retry: 1000\n\n"
STILL_HERE = b": still here\n\n"
LAST_EVENT = "last-event-id"

_runtimes = count(1)


class _Head(Struct, frozen=True, gc=False):
    id: str
    type: str
    seq: int = 0


_head = msgspec.json.Decoder(_Head).decode


def event(frame: bytes) -> bytes:
    """One envelope as an event; only what has a place can be gone on from."""
    head = _head(frame)
    id = f"id: {head.id}\n" if head.seq else ""
    return b"".join((f"event: {head.type}\n{id}data: ".encode(), frame, b"\n\n"))


class Listener:
    """Somebody who listens to one room; a peer like a WebSocket, but mute."""

    def __init__(
        self, caller: Caller, abort: Callable[[], None], backlog: int, tally: Tally
    ) -> None:
        self.caller = caller
        self.backlog = backlog
        self.tally = tally
        self.seat = caller.actor.seat
        self.private = caller.private
        self.runtime = f"events:{next(_runtimes)}"
        self.alive = True
        self.abort = abort
        self.last_resort: asyncio.TimerHandle | None = None
        self.parts: deque[bytes] = deque([HELLO])
        self.size = 0
        self.news = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()

    @staticmethod
    def join(frames: list[bytes]) -> bytes:
        """All of them in one write."""
        return b"".join(map(event, frames))

    def write(self, data: bytes) -> None:
        """Keep it until it is read; who is too far behind is cut off and resumes (OPEN-51)."""
        if not self.alive:
            return
        self.parts.append(data)
        self.size += len(data)
        if self.size > self.backlog:
            log.warning("reader.cut_off", extra={"principal": self.seat})
            self.tally.cut_off += 1
            self._stop()
            self.abort()
        elif self.size > LARGEST_CHUNK:
            self.room.clear()
        self.news.set()

    async def drained(self) -> None:
        """Wait until the reader keeps up."""
        await self.room.wait()

    def close(self, reason: str, *, again: bool = False) -> None:  # noqa: ARG002 - a peer's shape
        """No more of it; whoever may comes back by itself."""
        if self.alive:
            self._stop()
            loop = asyncio.get_running_loop()
            self.last_resort = loop.call_later(LAST_SECONDS, self.abort)

    end = close

    def take(self) -> bytes:
        """Everything that was written since the last time."""
        data = b"".join(self.parts)
        self.parts.clear()
        self.size = 0
        self.news.clear()
        self.room.set()
        return data

    def _stop(self) -> None:
        self.alive = False
        self.parts.clear()
        self.news.set()
        self.room.set()


class Events:
    """Everybody who listens to events."""

    def __init__(self, callers: Callers, reader: Reader) -> None:
        self.callers = callers
        self.reader = reader
        self.engine = reader.engine
        self.bench = Bench(callers.reception.limits)

    async def take(self, request: Request) -> Response:
        """200 with a stream that does not end by itself."""
        caller = self.callers.asking(request)
        abort = getattr(request.state, ABORT, lambda: None)
        backlog = self.callers.reception.limits.backlog
        listener = Listener(caller, abort, backlog, self.engine.tally)
        self.bench.sit(listener)
        try:
            await self._let_in(listener, request.path_params["id"], last_event(request))
        except BaseException:
            self.bench.rise(listener)
            raise
        return Stream(self, listener)

    async def _let_in(self, listener: Listener, id: str, after: str | None) -> None:
        """In the room from now on, and what was missed first."""
        actor = listener.caller.actor
        spot = await self.reader.spot(id, actor)
        since = None
        if after is not None:
            since = await self.reader.version(spot, actor.seat, after)
            spot = await self.reader.spot(id, actor)
        if actor.seat not in spot.room.members:
            raise Refused(Why.NO_MEMBER, "You are not in this session; join it first")
        self.engine.arrivals.listen(spot.cell, listener, since)

    def gone(self, listener: Listener) -> None:
        """It listens no longer; its connection may serve somebody else's request next."""
        listener.alive = False
        if listener.last_resort is not None:
            listener.last_resort.cancel()
        self.bench.rise(listener)
        self.engine.peers.gone(listener)


class Stream(Response):
    """The answer that goes on: events as they come, comments while nothing does."""

    media_type = "text/event-stream"
    charset = "utf-8"

    def __init__(self, events: Events, listener: Listener) -> None:
        self.status_code = 200
        self.background = None
        self.body = b""
        self.init_headers({**HEADERS, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self.events = events
        self.listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Until the reader hangs up, may read no longer, or the server stops."""
        timer = expiry(self.listener, self.events.callers.reception.left)
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            pump = asyncio.create_task(self._pump(send))
            await first(pump, asyncio.create_task(hung_up(receive)))
        finally:
            if timer is not None:
                timer.cancel()
            self.events.gone(self.listener)

    async def _pump(self, send: Send) -> None:
        listener, peers = self.listener, self.events.engine.peers
        while listener.alive:
            if data := listener.take():
                await send({"type": "http.response.body", "body": data, "more_body": True})
            if not peers.places.get(listener):
                break  # they have left
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    await listener.news.wait()
            except TimeoutError:
                listener.parts.append(STILL_HERE)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def expiry(listener: Listener, left: Callable[[Identity], float]) -> Expiry | None:
    """The stream ends with its token."""
    identity = listener.caller.identity
    if identity is None:
        return None
    return Expiry(partial(left, identity), partial(listener.close, "the token has expired"))


def last_event(request: Request) -> str | None:
    """Where the reader left off: what a browser sends by itself, or `after`."""
    given = request.headers.get(LAST_EVENT)
    if given is not None:
        return given.encode("latin-1").decode("utf-8", "replace")
    return request.query_params.get("after")
