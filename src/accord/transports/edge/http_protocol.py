"""One HTTP/1.1 connection, with a bound on everything a client can make the server hold.

Problem. uvicorn assumes a reverse proxy in front of it. Alone on a port, a single client can hold a
slot, memory or the event loop for as long as it likes:

- send a head slowly, or without an end, and never a request;
- send thousands of requests and read no response;
- send a body in one-byte chunks, each of which costs as much CPU as a large one;
- stop reading in the middle of a response;
- be refused while it is still sending: closing then resets the connection, and the client sees the
  reset instead of the reason.

Defence. Every state of a connection has a bound on its bytes and a timer or an eviction rule:

    state                  bytes                      ends after
    ---------------------  -------------------------  -------------------------------------------
    waiting for a request  head limit (32 KiB)        10 s (HEAD_TIMEOUT_S), or eviction
    reading a body         limits of the route        `body_seconds` of the route
    between requests       nothing                    eviction, uvicorn's keep-alive timeout
    pipelined requests     64 open responses          the 65th closes the connection
    writing a response     shared limit on unread     `stall_seconds` without any progress
                           bytes of all connections
    refused (lingering)    1 MiB, 64 connections      1 s (LINGER_S)

Eviction. A connection that waits (no request, no principal, or a response it does not read) is in
`ConnectionLimits.waiting_since`, oldest first. When the server is full, the oldest gives way, but
never within its first second. So many silent connections do not keep anyone out: a flood only
evicts itself.

Order of events. httptools calls back synchronously, uvicorn subclasses those callbacks, and this
class wraps uvicorn's:

    data_received -> PacedFlowControl.feed -> _parse -> httptools
        on_message_begin      a head begins: restart its timer and its byte count
        on_headers_complete   check size and pipelining, stop the timer, start the request
        on_body               body bytes are counted by the route; reset the byte count
        on_message_complete   the request is complete
    on_response_complete      the connection waits again, or reads the next pipelined request

`bytes_read` counts what httptools consumed without a callback that allows it: head, chunk
extensions and trailers share one limit. Raising ValueError inside a callback is the only way to
stop httptools; it then asks for a 400 (`send_400_response`), which `refuse` ignores if a better
reason was sent already.

Refusing. `refuse` writes the response, half-closes, and keeps reading for a moment without looking
at the bytes, so that the client gets the reason. Inside a response nothing can be said any more,
and the connection is aborted.

Upgrades. A WebSocket upgrade is validated here (`websocket_upgrade`), because picows accepts less
than clients send; every other upgrade is declined and parsed as a normal request
(`declined_upgrade`). After an upgrade this object only holds the connection's slot.

The measured effects and the other modules of this package: docs/explanation/edge.md.
"""

import asyncio
import ipaddress
import logging
from functools import lru_cache
from http import HTTPStatus
from typing import Any, ClassVar

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from accord.transports.edge import websocket_upgrade
from accord.transports.edge.connection_limits import ConnectionLimits
from accord.transports.edge.declined_upgrade import UpgradeDecliningParser
from accord.transports.edge.early_refusals import encode_refusal
from accord.transports.edge.http_read_pacing import PARSE_SLICE_BYTES, PacedFlowControl

log = logging.getLogger("accord.http")

# The largest upgrade request that picows reads.
MAX_UPGRADE_HEAD = (16 << 10) - 64
HEAD_TIMEOUT_S = 10
# Requests a client may pipeline before the first response; anything after them is not read.
MAX_PIPELINED = 64
OK = HTTPStatus.OK.value
OK_LINE = b"HTTP/1.1 200 OK\r\n"
# After a refusal the client may finish sending; a reset would destroy the response unread.
LINGER_S = 1
MAX_LINGER_BYTES = 1 << 20
# Keys of the request's ASGI state: functions that abort the connection and that write a whole
# response, whether the connection cannot be read on its way, and the body if it is short and all of
# it is here. `receive` gives it too.
ABORT_STATE_KEY = "abort"
RESPOND_STATE_KEY = "respond"
SECURE_STATE_KEY = "private"
BODY_STATE_KEY = "body"
MAX_BODY_IN_STATE = 64 << 10
# Where `respond` leaves the status.
STATUS_STATE_KEY = "status"


def is_secure(transport: asyncio.Transport) -> bool:
    """Whether no third party can read the connection: TLS, or a peer on this machine."""
    if transport.get_extra_info("sslcontext") is not None:
        return True
    try:
        peer = ipaddress.ip_address(transport.get_extra_info("peername")[0])
    except (TypeError, IndexError, ValueError):  # not an IP address, or disconnected already
        return False
    mapped = getattr(peer, "ipv4_mapped", None)
    return (mapped or peer).is_loopback


class BoundedHttpProtocol(HttpToolsProtocol):
    """One HTTP/1.1 connection with bounded heads, timeouts and write buffers."""

    connection_limits: ClassVar[ConnectionLimits]
    flow: PacedFlowControl
    parser: UpgradeDecliningParser  # type: ignore[assignment]  # what uvicorn asks of its own

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parser = UpgradeDecliningParser(self)
        self.declines_upgrade = False
        self.in_head = True
        self.refused = False
        self.pipeline_full = False
        self.bytes_read = 0
        self.status = HTTPStatus.BAD_REQUEST
        self.timer: asyncio.TimerHandle | None = None
        self.stall_timer: asyncio.TimerHandle | None = None
        self.idle_since: float | None = None
        self.open_cycles: list[RequestResponseCycle] = []
        self.tcp_transport: asyncio.Transport | None = None
        self.secure = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self.flow = PacedFlowControl(transport, self.connection_limits.parse_budget, self._parse)
        self.secure = is_secure(transport)
        if self.tcp_transport is not None:
            self.connection_limits.release(self.tcp_transport)
            self.connection_limits.tcp_transports[transport] = self.tcp_transport
        if self.connection_limits.admit(transport, self.loop.time()):
            self.timer = self.loop.call_later(HEAD_TIMEOUT_S, self._refuse_late_head)
        else:
            self.refuse(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"The server has {self.connection_limits.max_connections} connections; "
                "try again later (connections)",
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self.connection_limits.release(self.transport)
        self._cancel_timer()
        self._cancel_stall()
        self._cancel_keepalive()
        self.flow.stop()
        for cycle in self.open_cycles:  # uvicorn tells only the last one
            cycle.disconnected = True
            cycle.message_event.set()
            cycle.scope["state"].pop(RESPOND_STATE_KEY, None)  # it refers to this object
        if self.scope is not None:
            self.scope["state"].pop(RESPOND_STATE_KEY, None)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read.

        Count its buffer, and make it evictable like an idle connection.
        """
        super().pause_writing()
        self.connection_limits.mark_waiting(self.transport, self.loop.time())
        self.connection_limits.unread.watch(self.transport)
        self.loop.call_soon(
            self.connection_limits.unread.cut_off_slowest
        )  # by then the socket has taken what it can
        self._watch_stall()

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self._cancel_stall()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self.connection_limits.mark_active(self.transport)

    def data_received(self, data: bytes) -> None:
        self.flow.feed(data)

    @property
    def unread_bytes(self) -> int:
        """Bytes received but not parsed yet."""
        flow: PacedFlowControl | None = self.flow  # None before the TLS handshake is done
        return len(flow.unparsed) if flow is not None else 0

    def _parse(self, data: memoryview) -> None:
        self.bytes_read += len(data)
        if self.refused:
            if self.bytes_read > MAX_LINGER_BYTES:
                self.transport.abort()
            return
        super().data_received(data)  # type: ignore[arg-type]  # the parser takes either
        if self.in_head and self.timer is None and not self.refused:  # a part of a head
            self.timer = self.loop.call_later(HEAD_TIMEOUT_S, self._refuse_late_head)
        if self.bytes_read > self.connection_limits.max_head_bytes:
            self._refuse_long_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        # Lets a handler drop a client that does not read; uvicorn would wait for it.
        state = self.scope["state"]
        state[ABORT_STATE_KEY] = self.transport.abort
        state[SECURE_STATE_KEY] = self.secure
        if not self.in_head:
            self.in_head = True
            self.bytes_read = 0
            if self.timer is not None:
                self._cancel_timer()  # most heads arrive whole; `_parse` starts it for the others

    def on_headers_complete(self) -> None:
        upgrades = self.parser.should_upgrade()
        self.declines_upgrade = (
            upgrades and not self._should_upgrade() and not self.parser.is_tunnel()
        )
        if self.declines_upgrade:
            return  # the head is parsed again without the upgrade
        max_bytes = self.connection_limits.max_head_bytes
        if self._is_longer_head(min(MAX_UPGRADE_HEAD, max_bytes) if upgrades else max_bytes):
            self._refuse_long_head()
            raise ValueError("too long")  # stops the parser, which then asks for a 400
        while self.open_cycles and self.open_cycles[0].response_complete:
            del self.open_cycles[0]  # responses are complete in the order of their requests
        if len(self.open_cycles) >= MAX_PIPELINED:
            self.pipeline_full = True
            raise ValueError("too many")  # as above
        self.in_head = False
        self.bytes_read = 0
        if self.timer is not None:
            self._cancel_timer()
        if not upgrades and not self.flow.write_paused:
            self.connection_limits.mark_active(self.transport)
        if not upgrades:
            self.scope["state"][RESPOND_STATE_KEY] = self.respond
        super().on_headers_complete()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and cycle not in self.open_cycles:
            self.open_cycles.append(cycle)

    def _is_longer_head(self, max_bytes: int) -> bool:
        """Whether the head is longer than this; it began in the slice before `bytes_read`."""
        if self.bytes_read + PARSE_SLICE_BYTES <= max_bytes:
            return False
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        return size > max_bytes

    def on_body(self, body: bytes) -> None:
        """Reset the byte count.

        Bytes outside head and body, such as trailers, share the head's limit.
        """
        self.bytes_read = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.declines_upgrade:
            return
        if self.timer is not None:
            self._cancel_timer()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and len(cycle.body) <= MAX_BODY_IN_STATE:
            self.scope["state"][BODY_STATE_KEY] = cycle.body
        super().on_message_complete()

    def respond(self, scope: Scope, headers: bytes, body: bytes) -> bool:
        """Write a successful response as `send` would in two steps; False: do it that way.

        `headers` are complete lines, without those that uvicorn adds.
        """
        cycle: RequestResponseCycle | None = self.cycle
        if (
            cycle is None
            or cycle.scope is not scope  # pipelined requests are in progress
            or cycle.response_started
            or cycle.disconnected
            or not cycle.keep_alive
            or self.flow.write_paused
        ):
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        start = response_start(tuple(cycle.default_headers))
        self.transport.write(b"%b%b\r\n%b" % (start, headers, body))
        scope["state"][STATUS_STATE_KEY] = OK
        cycle.on_response()
        return True

    def on_response_complete(self) -> None:
        """As uvicorn does it, but for the timer of an idle connection."""
        cycle: RequestResponseCycle | None = self.cycle
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            else:
                self._start_idling()
        self.connection_limits.mark_waiting(self.transport, self.loop.time())
        if cycle is not None and cycle.response_complete and cycle.more_body:
            self._cancel_timer()  # the rest of the request body is not needed
            self.timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.abort)

    def _start_idling(self) -> None:
        """Close after the keep-alive time; one timer serves many requests, as most are followed."""
        self.idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._close_later(self.timeout_keep_alive)

    def _close_later(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self.timeout_keep_alive_task = None
        if self.idle_since is None:  # the next response starts the timer again
            return
        left = self.idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._close_later(left)
        else:
            self.timeout_keep_alive_handler()

    def _unset_keepalive_if_required(self) -> None:
        self.idle_since = None

    def _cancel_keepalive(self) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def handle_websocket_upgrade(self) -> None:
        self._cancel_stall()
        self._cancel_keepalive()
        if wrong := websocket_upgrade.find_upgrade_error(self.scope):
            self.refuse(*wrong)
        elif any(not cycle.response_complete for cycle in self.open_cycles):
            self.transport.abort()  # an HTTP response would be written between WebSocket frames
        else:
            self._upgrade()
        # The parser and this object reference each other; uvicorn breaks the cycle only without an
        # upgrade.
        self.parser = None  # type: ignore[assignment]  # for good
        if not self.refused:  # bytes after a refusal are still counted, until there are too many
            self.flow.stop()

    def _upgrade(self) -> None:
        self.scope["headers"] = websocket_upgrade.normalized_headers(self.headers)
        try:
            super().handle_websocket_upgrade()
        except Exception as error:  # noqa: BLE001 - whatever it is, the connection ends
            log.warning("upgrade.failed", extra={"error": type(error).__name__})
            self.connection_limits.release(self.transport)
            self.transport.abort()

    def shutdown(self) -> None:
        """The server stops; a TLS client that does not confirm the close is not waited for."""
        super().shutdown()
        if self.tcp_transport is not None and self.transport.is_closing():
            self.loop.call_later(LINGER_S, self._abort_if_flushed)

    def _abort_if_flushed(self) -> None:
        if not self.connection_limits.unread_of(self.transport):
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        self.refuse(HTTPStatus.BAD_REQUEST, msg)

    def refuse(self, status: HTTPStatus, why: str) -> None:
        """Send the refusal, keep reading for a moment so that it arrives, then close."""
        if self.refused or self.transport.is_closing():
            return
        self.refused = True
        self.bytes_read = 0
        self._cancel_timer()
        cycle: RequestResponseCycle | None = self.cycle
        if self.pipeline_full:
            self.open_cycles[
                -1
            ].keep_alive = False  # everything up to here is answered, then the connection closes
            return
        if cycle is not None and not cycle.response_complete:
            self.transport.abort()  # inside a response there is no way to send an error
            return
        self.transport.write(encode_refusal(status, why))
        if not self.connection_limits.start_linger(self.transport):
            tls = (
                self.tcp_transport is not None
            )  # a graceful TLS close needs the client's cooperation
            self.transport.abort() if tls else self.transport.close()
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.timer = self.loop.call_later(LINGER_S, self.transport.abort)

    def _refuse_long_head(self) -> None:
        why = (
            f"Request line and headers exceed {self.connection_limits.max_head_bytes} bytes (head)"
        )
        self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why)

    def _refuse_late_head(self) -> None:
        self.refuse(HTTPStatus.REQUEST_TIMEOUT, f"No complete request within {HEAD_TIMEOUT_S} s")

    def _watch_stall(self, unread: int | None = None) -> None:
        """Abort the connection if nothing was read since the last check."""
        size = self.connection_limits.unread_of(self.transport)
        if unread is not None and size >= unread:
            self.transport.abort()
        else:
            self.stall_timer = self.loop.call_later(
                self.connection_limits.stall_timeout_s, self._watch_stall, size
            )

    def _cancel_stall(self) -> None:
        self.connection_limits.unread.unwatch(self.transport)
        if self.stall_timer is not None:
            self.stall_timer.cancel()
            self.stall_timer = None

    def _cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


@lru_cache(4)
def response_start(general: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Status line and general headers of a successful response; they change once a second."""
    return b"".join([OK_LINE, *(b"%b: %b\r\n" % header for header in general)])


def http_protocol_class(limits: ConnectionLimits) -> type[BoundedHttpProtocol]:
    """The protocol class that uvicorn instantiates for each connection of one server."""
    return type("Http", (BoundedHttpProtocol,), {"connection_limits": limits})
