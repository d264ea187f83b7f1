"""`GET /sessions/{id}/events`: a session as server-sent events."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Protocol

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from accord.core.kernel.refusal import Reason, Refused
from accord.engine.counters import EngineCounters
from accord.engine.delivery.inactivity import heartbeat_policy_of
from accord.identity.token_expiry import ExpiryTimer
from accord.identity.token_signing import Identity
from accord.transports.edge.http_protocol import ABORT_STATE_KEY
from accord.transports.http.auth import Authenticator, Caller
from accord.transports.http.messages.message_pages import MessageReader
from accord.transports.http.messages.waiting_limits import Waiters, wait_disconnect, wait_first
from accord.transports.http.responses import JSON_HEADERS

log = logging.getLogger("accord.events")

# During replay, more is read from the log only once most of this has been sent.
MAX_BUFFERED_BYTES = 1 << 20
KEEP_ALIVE_INTERVAL_S = 15
CLOSE_TIMEOUT_S = 1
RETRY_LINE = b"retry: 1000\n\n"
KEEP_ALIVE_COMMENT = b": still here\n\n"
LAST_EVENT_ID_HEADER = "last-event-id"

_runtimes = count(1)


class _EnvelopeHead(Struct, frozen=True, gc=False):
    id: str
    type: str
    seq: int = 0


_decode_head = msgspec.json.Decoder(_EnvelopeHead).decode


def format_event(frame: bytes) -> bytes:
    """One envelope as an event; only stored messages get an id to resume from."""
    head = _decode_head(frame)
    id = f"id: {head.id}\n" if head.seq else ""
    return b"".join((f"event: {head.type}\n{id}data: ".encode(), frame, b"\n\n"))


class EventSubscriber:
    """A reader of one session; a peer like a WebSocket connection, but it cannot send."""

    def __init__(
        self, caller: Caller, abort: Callable[[], None], max_backlog: int, counters: EngineCounters
    ) -> None:
        self.caller = caller
        self.max_backlog = max_backlog
        self.counters = counters
        self.principal = caller.actor.principal
        self.is_secure = caller.secure
        self.runtime = f"events:{next(_runtimes)}"
        self.is_connected = True
        self.abort = abort
        self.abort_timer: asyncio.TimerHandle | None = None
        self.pending: deque[bytes] = deque([RETRY_LINE])
        self.pending_bytes = 0
        self.has_data = asyncio.Event()
        self.has_capacity = asyncio.Event()
        self.has_capacity.set()

    @staticmethod
    def join_frames(frames: list[bytes]) -> bytes:
        """All frames in one write."""
        return b"".join(map(format_event, frames))

    def write(self, data: bytes) -> None:
        """Queue data; a reader too far behind is disconnected and can resume (OPEN-51)."""
        if not self.is_connected:
            return
        self.pending.append(data)
        self.pending_bytes += len(data)
        if self.pending_bytes > self.max_backlog:
            log.warning("reader.cut_off", extra={"principal": self.principal})
            self.counters.slow_disconnects += 1
            self._stop()
            self.abort()
        elif self.pending_bytes > MAX_BUFFERED_BYTES:
            self.has_capacity.clear()
        self.has_data.set()

    async def drain(self) -> None:
        """Wait until the reader keeps up."""
        await self.has_capacity.wait()

    def close(self, reason: str, *, reconnect: bool = False) -> None:  # noqa: ARG002 - a peer's shape
        """End the stream; a client that may read reconnects by itself."""
        if self.is_connected:
            self._stop()
            loop = asyncio.get_running_loop()
            self.abort_timer = loop.call_later(CLOSE_TIMEOUT_S, self.abort)

    end_wait = close

    def take_pending(self) -> bytes:
        """Everything written since the last call."""
        data = b"".join(self.pending)
        self.pending.clear()
        self.pending_bytes = 0
        self.has_data.clear()
        self.has_capacity.set()
        return data

    def _stop(self) -> None:
        self.is_connected = False
        self.pending.clear()
        self.has_data.set()
        self.has_capacity.set()


class EventStreams:
    """All open event streams."""

    def __init__(self, authenticator: Authenticator, reader: MessageReader) -> None:
        self.authenticator = authenticator
        self.reader = reader
        self.engine = reader.engine
        self.waiters = Waiters(authenticator.intake.limits)

    async def open_stream(self, request: Request) -> Response:
        """200 with a stream that stays open."""
        caller = self.authenticator.authenticate_counted(request)
        abort = getattr(request.state, ABORT_STATE_KEY, lambda: None)
        max_backlog = self.authenticator.intake.limits.backlog
        subscriber = EventSubscriber(caller, abort, max_backlog, self.engine.counters)
        self.waiters.add(subscriber)
        try:
            await self._subscribe(subscriber, request.path_params["id"], last_event_id(request))
        except BaseException:
            self.waiters.remove(subscriber)
            raise
        return EventStreamResponse(self, subscriber)

    async def _subscribe(self, subscriber: EventSubscriber, id: str, after: str | None) -> None:
        """Replay what was missed, then deliver live."""
        actor = subscriber.caller.actor
        position = await self.reader.position(id, actor)
        since = None
        if after is not None:
            since = await self.reader.version_of(position, actor.principal, after)
            position = await self.reader.position(id, actor)
        if actor.principal not in position.room.members:
            raise Refused(Reason.NO_MEMBER, "You are not a member of this session; join it first")
        self.engine.joining.resume(position.stream, subscriber, since)

    def unsubscribe(self, subscriber: EventSubscriber) -> None:
        """Stop delivery; the connection may serve other requests afterwards."""
        subscriber.is_connected = False
        if subscriber.abort_timer is not None:
            subscriber.abort_timer.cancel()
        self.waiters.remove(subscriber)
        self.engine.delivery.connection_lost(subscriber)


class EventStreamResponse(Response):
    """The streaming response: events, and comments as keep-alive."""

    media_type = "text/event-stream"
    charset = "utf-8"

    def __init__(self, events: EventStreams, subscriber: EventSubscriber) -> None:
        self.status_code = 200
        self.background = None
        self.body = b""
        self.init_headers({**JSON_HEADERS, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self.streams = events
        self.subscriber = subscriber

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send until the reader disconnects, loses access, or the server stops."""
        timer = expiry_timer(self.subscriber, self.streams.authenticator.intake.seconds_valid)
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            pump = asyncio.create_task(self._pump(send))
            await wait_first(pump, asyncio.create_task(wait_disconnect(receive)))
        finally:
            if timer is not None:
                timer.cancel()
            self.streams.unsubscribe(self.subscriber)

    async def _pump(self, send: Send) -> None:
        subscriber, delivery = self.subscriber, self.streams.engine.delivery
        while subscriber.is_connected:
            if data := subscriber.take_pending():
                await send({"type": "http.response.body", "body": data, "more_body": True})
            if not delivery.streams_of.get(subscriber):
                break  # they left the session
            try:
                async with asyncio.timeout(self._keep_alive_s()):
                    await subscriber.has_data.wait()
            except TimeoutError:
                subscriber.pending.append(KEEP_ALIVE_COMMENT)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _keep_alive_s(self) -> float:
        """Seconds until the next sign of life: following is activity, so before idleness."""
        engine, actor = self.streams.engine, self.subscriber.caller.actor
        seconds: float = KEEP_ALIVE_INTERVAL_S
        for name in engine.delivery.streams_of.get(self.subscriber, ()):
            stream = engine.streams.get(name)
            if stream is not None and (policy := heartbeat_policy_of(stream)) is not None:
                engine.heartbeat.on_activity(stream, actor)
                seconds = min(seconds, policy.idle_after_ms / 2000)
        return seconds


class ExpiringReader(Protocol):
    """The reader of a stream that must not outlive its token."""

    caller: Caller

    def close(self, reason: str) -> None: ...


def expiry_timer(
    subscriber: ExpiringReader, seconds_left: Callable[[Identity], float]
) -> ExpiryTimer | None:
    """The stream ends when its token expires."""
    identity = subscriber.caller.identity
    if identity is None:
        return None
    return ExpiryTimer(
        partial(seconds_left, identity), partial(subscriber.close, "the token has expired")
    )


def last_event_id(request: Request) -> str | None:
    """Where to resume: the `Last-Event-ID` header that browsers send, or `after`."""
    header = request.headers.get(LAST_EVENT_ID_HEADER)
    if header is not None:
        return header.encode("latin-1").decode("utf-8", "replace")
    return request.query_params.get("after")
