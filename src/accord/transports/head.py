"""The heads of requests: how long they may be, and how long they may take."""

import asyncio
import ipaddress
import logging
from http import HTTPStatus
from typing import Any, ClassVar

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from accord.transports import upgrade
from accord.transports.offers import Parser
from accord.transports.pace import Paced
from accord.transports.porch import Porch

log = logging.getLogger("accord.http")

# What picows reads of an upgrade.
LARGEST_UPGRADE = (16 << 10) - 64
HEAD_SECONDS = 10
# So many requests may be sent before the first is answered; what comes behind them is not read.
MOST_AT_ONCE = 64
# Whoever is refused may finish its sentence, so that it hears why.
LINGER_SECONDS = 1
LARGEST_REST = 1 << 20
# The code of what is refused before it is a request.
SAID = {
    HTTPStatus.BAD_REQUEST: "INVALID_MESSAGE",
    HTTPStatus.REQUEST_TIMEOUT: "TIMEOUT",
    HTTPStatus.UPGRADE_REQUIRED: "INVALID_MESSAGE",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "CONTEXT_TOO_LARGE",
    HTTPStatus.SERVICE_UNAVAILABLE: "INTERNAL_ERROR",
}
# Under these names a request's state holds what ends its connection at once, and whether nobody
# on the way can read along.
ABORT = "abort"
PRIVATE = "private"


def is_private(transport: asyncio.Transport) -> bool:
    """Whether nobody between here and the other end can read along: TLS, or this machine."""
    if transport.get_extra_info("sslcontext") is not None:
        return True
    try:
        peer = ipaddress.ip_address(transport.get_extra_info("peername")[0])
    except (TypeError, IndexError, ValueError):  # no address of the internet, or gone already
        return False
    mapped = getattr(peer, "ipv4_mapped", None)
    return (mapped or peer).is_loopback


class BoundedHttp(HttpToolsProtocol):
    """HTTP whose heads are short and come in time."""

    porch: ClassVar[Porch]
    flow: Paced
    parser: Parser  # type: ignore[assignment]  # what uvicorn asks of its own

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.parser = Parser(self)
        self.declines = False
        self.heading = True
        self.refused = False
        self.full = False
        self.read = 0
        self.status = HTTPStatus.BAD_REQUEST
        self.timer: asyncio.TimerHandle | None = None
        self.stall: asyncio.TimerHandle | None = None
        self.asked: list[RequestResponseCycle] = []
        self.under: asyncio.Transport | None = None
        self.private = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self.flow = Paced(transport, self.porch.ration, self._parse)
        self.private = is_private(transport)
        if self.under is not None:
            self.porch.leave(self.under)
            self.porch.under[transport] = self.under
        if self.porch.arrive(transport, self.loop.time()):
            self.timer = self.loop.call_later(HEAD_SECONDS, self._too_late)
        else:
            self.refuse(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{self.porch.most} are connected; try again (connections)",
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self.porch.leave(self.transport)
        self._cancel()
        self._moves()
        self.flow.stop()
        for cycle in self.asked:  # uvicorn alone would tell none but the last
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The answer is not read: whoever takes up room so gives way like one who does not ask."""
        super().pause_writing()
        self.porch.wait(self.transport, self.loop.time())
        self.porch.unread.add(self.transport)
        self.loop.call_soon(self.porch.unread.check)  # by then the socket has what it can take
        self._watch()

    def resume_writing(self) -> None:
        """It is read."""
        super().resume_writing()
        self._moves()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self.porch.known(self.transport)

    def data_received(self, data: bytes) -> None:
        self.flow.feed(data)

    @property
    def unheard(self) -> int:
        """So many bytes have come that nobody has looked at."""
        flow: Paced | None = self.flow  # none before the handshake is done
        return len(flow.left) if flow is not None else 0

    def _parse(self, data: memoryview) -> None:
        self.read += len(data)
        if self.refused:
            if self.read > LARGEST_REST:
                self.transport.abort()
            return
        super().data_received(data)  # type: ignore[arg-type]  # the parser takes either
        if self.read > self.porch.head:
            self._too_long()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        # Whoever does not read is not waited for; uvicorn alone would.
        self.scope["state"][ABORT] = self.transport.abort
        self.scope["state"][PRIVATE] = self.private
        if not self.heading:
            self.heading = True
            self.read = 0
            self._cancel()
            self.timer = self.loop.call_later(HEAD_SECONDS, self._too_late)

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        upgrades = self.parser.should_upgrade()
        self.declines = upgrades and not self._should_upgrade() and not self.parser.is_tunnel()
        if self.declines:
            return  # it is read once more, as any other
        if size > (min(LARGEST_UPGRADE, self.porch.head) if upgrades else self.porch.head):
            self._too_long()
            raise ValueError("too long")  # stops the parser, which asks for a 400
        self.asked = [each for each in self.asked if not each.response_complete]
        if len(self.asked) >= MOST_AT_ONCE:
            self.full = True
            raise ValueError("too many")  # likewise
        self.heading = False
        self.read = 0
        self._cancel()
        if not upgrades and not self.flow.write_paused:
            self.porch.known(self.transport)
        super().on_headers_complete()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and cycle not in self.asked:
            self.asked.append(cycle)

    def on_body(self, body: bytes) -> None:
        """What is neither head nor body, as trailers are, may not be longer than a head."""
        self.read = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.declines:
            return
        self._cancel()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        super().on_response_complete()
        self.porch.wait(self.transport, self.loop.time())
        if cycle is not None and cycle.response_complete and cycle.more_body:
            self._cancel()  # nobody wants the rest of it
            self.timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def handle_websocket_upgrade(self) -> None:
        self._moves()
        if wrong := upgrade.trouble(self.scope):
            self.refuse(*wrong)
        elif any(not each.response_complete for each in self.asked):
            self.transport.abort()  # an answer would come in the middle of what is said then
        else:
            self._upgrade()
        # The parser holds us and we it; uvicorn lets go of it only where nothing was upgraded.
        self.parser = None  # type: ignore[assignment]  # for good
        if not self.refused:  # what comes behind a refusal is counted, and soon too much
            self.flow.stop()

    def _upgrade(self) -> None:
        self.scope["headers"] = upgrade.plain(self.headers)
        try:
            super().handle_websocket_upgrade()
        except Exception as error:  # noqa: BLE001 - whatever it is, the connection ends
            log.warning("upgrade.failed", extra={"error": type(error).__name__})
            self.porch.leave(self.transport)
            self.transport.abort()

    def shutdown(self) -> None:
        """The server stops; whoever does not answer that TLS ends is not waited for."""
        super().shutdown()
        if self.under is not None and self.transport.is_closing():
            self.loop.call_later(LINGER_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        if not self.porch.size(self.transport):
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        self.refuse(HTTPStatus.BAD_REQUEST, msg)

    def refuse(self, status: HTTPStatus, why: str) -> None:
        """Say why, read what is still on its way for a moment, and hang up."""
        if self.refused or self.transport.is_closing():
            return
        self.refused = True
        self.read = 0
        self._cancel()
        cycle: RequestResponseCycle | None = self.cycle
        if self.full:
            self.asked[-1].keep_alive = False  # up to here all are answered, and then it ends
            return
        if cycle is not None and not cycle.response_complete:
            self.transport.abort()  # in the middle of an answer there is nothing to say
            return
        problem = {"code": SAID[status], "message": why, "details": {}}
        body = msgspec.json.encode({"error": problem})
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\n"
        kind = "content-type: application/json\r\nx-content-type-options: nosniff\r\n"
        more = f"{upgrade.MORE.get(status, '')}content-length: {len(body)}\r\n\r\n"
        self.transport.write((head + kind + more).encode("ascii") + body)
        if not self.porch.linger(self.transport):
            tls = self.under is not None  # whose end the other side would have to agree to
            self.transport.abort() if tls else self.transport.close()
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _too_long(self) -> None:
        why = f"The head of a request may have {self.porch.head} bytes (head)"
        self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why)

    def _too_late(self) -> None:
        self.refuse(HTTPStatus.REQUEST_TIMEOUT, f"No request within {HEAD_SECONDS} s")

    def _watch(self, unread: int | None = None) -> None:
        """Look again and again whether anything was read."""
        size = self.porch.size(self.transport)
        if unread is not None and size >= unread:
            self.transport.abort()
        else:
            self.stall = self.loop.call_later(self.porch.stall, self._watch, size)

    def _moves(self) -> None:
        self.porch.unread.remove(self.transport)
        if self.stall is not None:
            self.stall.cancel()
            self.stall = None

    def _cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def http_class(porch: Porch) -> type[BoundedHttp]:
    """HTTP as uvicorn takes it, for one server."""
    return type("Http", (BoundedHttp,), {"porch": porch})
