"""TLS at the door: a handshake that is done in time, and only then a request."""

import asyncio
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]  # not documented, so pinned

from accord.transports.buffers import pour
from accord.transports.head import HEAD_SECONDS, BoundedHttp, http_class
from accord.transports.porch import Porch

# What a handshake begins with.
HANDSHAKE = 0x16
SHORTEST_S = 0.1
# After the other end has closed its side: how often is looked whether all of it was heard, and for
# how long that may take whoever is read slowly.
LOOK_S = 0.02
LAST_SECONDS = 10
PLAIN = "This port speaks TLS; write https:// or wss:// in front of the address"


class Watched:
    """A context that keeps what it is given to read from: only there one sees what is unread."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context
        self.incoming: ssl.MemoryBIO | None = None
        self.opened: ssl.SSLObject | None = None

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, **how: Any
    ) -> ssl.SSLObject:
        """As the context does."""
        self.incoming = incoming
        self.opened = self.context.wrap_bio(incoming, outgoing, **how)
        return self.opened

    @property
    def unread(self) -> int:
        """So many bytes have come that nobody has read; nothing before the handshake is done."""
        if self.incoming is None or self.opened is None or self.opened.version() is None:
            return 0
        return self.incoming.pending + self.opened.pending()


class Tls(SSLProtocol):  # type: ignore[misc]  # it has no types
    """TLS on a connection that the porch knows of."""

    def __init__(self, doorway: "Doorway", left: float) -> None:
        self.watched = Watched(doorway.context)
        self.until = 0.0
        super().__init__(
            doorway.loop,
            doorway.http,
            self.watched,
            None,
            server_side=True,
            ssl_handshake_timeout=left,
            ssl_shutdown_timeout=doorway.porch.stall,
        )
        self.doorway = doorway
        self.gone = False

    def eof_received(self) -> bool:
        """No more comes. uvloop would drop what it has not handed on yet: that is heard first."""
        before, loop = self._unread, self.doorway.loop
        if not before:
            super().eof_received()
            return False
        if not self.until:
            self.until = loop.time() + LAST_SECONDS
            loop.call_later(LOOK_S, self._look, before)
        return True

    def _look(self, before: int) -> None:
        """Whether all was heard; half a record at the end never is."""
        if self.gone:
            return
        left, loop = self._unread, self.doorway.loop
        waits = not self._get_app_transport().is_reading()
        if left and (left < before or waits) and loop.time() < self.until:
            loop.call_later(LOOK_S, self._look, left)
        else:
            super().eof_received()

    @property
    def _unread(self) -> int:
        return self.watched.unread + self.doorway.http.unheard

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone, maybe before the handshake was done, of which HTTP hears nothing."""
        self.gone = True
        self.doorway.leave()
        super().connection_lost(exc)


class Doorway(asyncio.Protocol):
    """A connection until its first bytes; it waits and is counted like any stranger."""

    def __init__(self, http: BoundedHttp, context: ssl.SSLContext) -> None:
        self.http = http
        self.porch: Porch = http.porch
        self.loop = http.loop
        self.context = context
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvloop does
        """Somebody came."""
        self.raw = self.http.under = transport
        if self.porch.arrive(transport, self.loop.time()):
            self.timer = self.loop.call_later(HEAD_SECONDS, transport.abort)
        else:
            transport.abort()  # without TLS there is no way to say why

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's shape
        """Gone without a word."""
        self.leave()

    def data_received(self, data: bytes) -> None:
        """TLS, or somebody who does not know that it is spoken here."""
        if self.timer is None:
            return
        left = max(SHORTEST_S, self.timer.when() - self.loop.time())
        self._cancel()
        if data[0] == HANDSHAKE:
            self._greet(data, left)
        else:
            self._explain()

    def leave(self) -> None:
        """It does not wait any more."""
        self._cancel()
        self.porch.leave(self.raw)

    def _greet(self, data: bytes, left: float) -> None:
        tls = Tls(self, left)
        self.raw.set_protocol(tls)
        tls.connection_made(self.raw)
        pour(data, tls.get_buffer, tls.buffer_updated)

    def _explain(self) -> None:
        self.leave()
        self.http.under = None
        self.raw.set_protocol(self.http)
        self.http.connection_made(self.raw)
        self.http.refuse(HTTPStatus.BAD_REQUEST, PLAIN)

    def _cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def door(porch: Porch, tls: Callable[[], ssl.SSLContext] | None) -> Callable[..., asyncio.Protocol]:
    """What uvicorn makes for every connection of one server; HTTP at once where there is no TLS."""
    http = http_class(porch)
    if tls is None:
        return http

    def made(**given: Any) -> Doorway:
        return Doorway(http(**given), tls())

    return made
