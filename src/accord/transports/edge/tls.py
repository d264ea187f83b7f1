"""TLS in front of HTTP: a handshake with a timeout, counted against the connection limits."""

import asyncio
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]  # not documented, so pinned

from accord.transports.edge.buffers import fill_buffers
from accord.transports.edge.connection_limits import ConnectionLimits
from accord.transports.edge.http_protocol import (
    HEAD_TIMEOUT_S,
    BoundedHttpProtocol,
    http_protocol_class,
)

# The first byte of a TLS handshake record.
TLS_HANDSHAKE_BYTE = 0x16
MIN_HANDSHAKE_TIMEOUT_S = 0.1
# After the client half-closes: how often to check whether everything received was processed, and
# how long that may take for a connection that is read slowly.
DRAIN_POLL_S = 0.02
DRAIN_TIMEOUT_S = 10
# A poll can come before the read that a resumed connection has scheduled, for example after the
# process was not scheduled for a while. So one poll without progress does not mean that no more can
# be read: between this many, everything that was ready has run.
MAX_STALLED_POLLS = 5
PLAIN_HTTP_REFUSAL = "This port requires TLS; use https:// or wss:// in the address"


class BufferCountingContext:
    """Wraps an SSLContext to keep its BIOs: only they know how many bytes are unread."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context
        self.incoming_bio: ssl.MemoryBIO | None = None
        self.ssl_object: ssl.SSLObject | None = None

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, **kwargs: Any
    ) -> ssl.SSLObject:
        """Delegates to the context."""
        self.incoming_bio = incoming
        self.ssl_object = self.context.wrap_bio(incoming, outgoing, **kwargs)
        return self.ssl_object

    @property
    def unread_bytes(self) -> int:
        """Bytes received but not yet read; 0 before the handshake is done."""
        if (
            self.incoming_bio is None
            or self.ssl_object is None
            or self.ssl_object.version() is None
        ):
            return 0
        return self.incoming_bio.pending + self.ssl_object.pending()


class Drain:
    """Decides when a half-closed connection has delivered everything it received."""

    def __init__(self, unread: int, deadline: float) -> None:
        self.unread = unread
        self.deadline = deadline
        self.stalled_polls = 0

    def is_over(self, unread: int, now: float, *, is_paused: bool) -> bool:
        """Everything is read, or nothing more will be: a record is incomplete, or time is up."""
        progressed = unread < self.unread or is_paused
        self.stalled_polls = 0 if progressed else self.stalled_polls + 1
        self.unread = unread
        return not unread or self.stalled_polls >= MAX_STALLED_POLLS or now >= self.deadline


class TlsProtocol(SSLProtocol):  # type: ignore[misc]  # it has no types
    """uvloop's TLS, which releases the connection's slot and keeps data received before EOF."""

    def __init__(self, connection: "TlsConnection", remaining: float) -> None:
        self.counting_context = BufferCountingContext(connection.context)
        self.drain: Drain | None = None
        super().__init__(
            connection.loop,
            connection.http_protocol,
            self.counting_context,
            None,
            server_side=True,
            ssl_handshake_timeout=remaining,
            ssl_shutdown_timeout=connection.connection_limits.stall_timeout_s,
        )
        self.connection = connection
        self.lost = False

    def eof_received(self) -> bool:
        """Half-closed: uvloop would drop what it has not delivered, so deliver that first."""
        unread, loop = self._unread_bytes, self.connection.loop
        if not unread:
            super().eof_received()
            return False
        if self.drain is None:
            self.drain = Drain(unread, loop.time() + DRAIN_TIMEOUT_S)
            loop.call_later(DRAIN_POLL_S, self._poll_drain, self.drain)
        return True

    def _poll_drain(self, drain: Drain) -> None:
        if self.lost:
            return
        loop = self.connection.loop
        is_paused = not self._get_app_transport().is_reading()
        if drain.is_over(self._unread_bytes, loop.time(), is_paused=is_paused):
            super().eof_received()
        else:
            loop.call_later(DRAIN_POLL_S, self._poll_drain, drain)

    @property
    def _unread_bytes(self) -> int:
        return self.counting_context.unread_bytes + self.connection.http_protocol.unread_bytes

    def connection_lost(self, exc: Exception | None) -> None:
        """Closed, maybe before the handshake, when HTTP is not told."""
        self.lost = True
        self.connection.release()
        super().connection_lost(exc)


class TlsConnection(asyncio.Protocol):
    """A connection until its first bytes; counted as unauthenticated from the start."""

    def __init__(self, http: BoundedHttpProtocol, context: ssl.SSLContext) -> None:
        self.http_protocol = http
        self.connection_limits: ConnectionLimits = http.connection_limits
        self.loop = http.loop
        self.context = context
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvloop does
        self.tcp_transport = self.http_protocol.tcp_transport = transport
        if self.connection_limits.admit(transport, self.loop.time()):
            self.timer = self.loop.call_later(HEAD_TIMEOUT_S, transport.abort)
        else:
            transport.abort()  # without TLS there is no way to say why

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's shape
        """Closed before the first byte."""
        self.release()

    def data_received(self, data: bytes) -> None:
        """Start TLS, or refuse a client that speaks plain HTTP."""
        if self.timer is None:
            return
        remaining = max(MIN_HANDSHAKE_TIMEOUT_S, self.timer.when() - self.loop.time())
        self._cancel_timer()
        if data[0] == TLS_HANDSHAKE_BYTE:
            self._start_handshake(data, remaining)
        else:
            self._refuse_plain_http()

    def release(self) -> None:
        """Give up the connection's slot."""
        self._cancel_timer()
        self.connection_limits.release(self.tcp_transport)

    def _start_handshake(self, data: bytes, remaining: float) -> None:
        tls = TlsProtocol(self, remaining)
        self.tcp_transport.set_protocol(tls)
        tls.connection_made(self.tcp_transport)
        fill_buffers(data, tls.get_buffer, tls.buffer_updated)

    def _refuse_plain_http(self) -> None:
        self.release()
        self.http_protocol.tcp_transport = None
        self.tcp_transport.set_protocol(self.http_protocol)
        self.http_protocol.connection_made(self.tcp_transport)
        self.http_protocol.refuse(HTTPStatus.BAD_REQUEST, PLAIN_HTTP_REFUSAL)

    def _cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def protocol_factory(
    limits: ConnectionLimits, tls: Callable[[], ssl.SSLContext] | None
) -> Callable[..., asyncio.Protocol]:
    """What uvicorn calls for every connection; plain HTTP when `tls` is None."""
    http = http_protocol_class(limits)
    if tls is None:
        return http

    def new_connection(**kwargs: Any) -> TlsConnection:
        return TlsConnection(http(**kwargs), tls())

    return new_connection
