"""WebSocket: one envelope per text frame, on uvicorn's port through picows."""

import asyncio
import logging
import re
import struct
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar
from urllib.parse import parse_qs

from picows import (
    WSAutoPingStrategy,
    WSCloseCode,
    WSFrame,
    WSListener,
    WSMsgType,
    WSTransport,
    WSUpgradeRequest,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
)
from picows.picows import WSProtocol  # type: ignore[attr-defined]

from accord.core.dialects import pvp
from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import is_id
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.members import SessionJoin
from accord.engine.cell import Outcome
from accord.engine.lane import Lane, lane
from accord.engine.peers import may_see
from accord.transports.archive import refusal
from accord.transports.bucket import SHORT, Bucket, is_rate
from accord.transports.crowd import Crowd
from accord.transports.guard import check_origin
from accord.transports.head import is_private
from accord.transports.identity import Identity, bearer
from accord.transports.porch import Porch
from accord.transports.reception import Reception

log = logging.getLogger("accord.websocket")

SUBPROTOCOL = "pvp.v1"
PATHS = frozenset({"/", "/ws"})
# Until somebody has signed in.
LARGEST_FIRST_FRAME = 64 << 10
MOST_FRAGMENTS = 4096
# So much nonsense in a row is no mistake.
MOST_MISTAKES = 100
SIGN_IN_SECONDS = 10
HANDSHAKE_SECONDS = 10
LAST_SECONDS = 10
GOODBYE_SECONDS = 2
# A connection that is silent this long is asked for a sign of life, and given as long again.
PING_SECONDS = 30
READ_BUFFER = 2048

TEXT = WSMsgType.TEXT
CONTINUATION = WSMsgType.CONTINUATION
CLOSE = WSMsgType.CLOSE
BINARY = WSMsgType.BINARY
PING = WSMsgType.PING
PONG = 0x8A
OPENING = re.compile(rb'\{"v":\s*1,\s*"id":\s*"([!#-\[\]-~]{1,128})"')
# Refusals of what nobody looked into.
UNREAD = frozenset({Why.TOO_MANY, Why.TOO_LARGE})

SMALL, MEDIUM = 126, 1 << 16
_medium = struct.Struct("!BBH").pack
_large = struct.Struct("!BBQ").pack


@lru_cache(4096)
def head(size: int) -> bytes:
    """What a server's text frame of so many bytes begins with."""
    if size < SMALL:
        return bytes((0x81, size))
    return _medium(0x81, 126, size) if size < MEDIUM else _large(0x81, 127, size)


def glimpse(data: bytes) -> tuple[str, str | None]:
    """The id of a message that nobody reads, if it stands where it usually does."""
    opening = OPENING.match(data, 0, SMALL * 2)
    id = opening[1].decode("ascii") if opening else ""
    return "", id if is_id(id) else None


class Connection(WSListener):
    """One socket of one principal; any number of sessions (OPEN-30)."""

    def __init__(self, hall: "Hall", identity: Identity | None, runtime: str) -> None:
        self.hall = hall
        self.reception = hall.reception
        self.identity = identity
        self.actor: Actor | None = identity.actor if identity else None
        self.seat = self.actor.seat if self.actor else ""
        self.runtime = runtime
        self.bucket: Bucket | None = None
        self.partial = bytearray()
        self.fragments = 0
        self.mistakes = 0
        self.unread = 0
        self.lane: Lane | None = None
        self.leaving = False
        self.private = False
        self.lags = False
        limits = self.reception.limits
        self.most, self.backlog = limits.message, limits.backlog
        self.limit = limits.frame if self.reception.is_open else LARGEST_FIRST_FRAME
        self.timer: asyncio.TimerHandle | None = None
        self.writable = asyncio.Event()
        self.writable.set()

    # What the engine asks of a peer

    @property
    def alive(self) -> bool:
        """Whether it is still connected."""
        return self in self.hall.connections

    @staticmethod
    def join(frames: list[bytes]) -> bytes:
        """All frames in one write."""
        return b"".join(chain.from_iterable(zip(map(head, map(len, frames)), frames, strict=True)))

    def write(self, data: bytes) -> None:
        """Send; a reader too far behind is cut off and resumes by replay (OPEN-51)."""
        raw = self.raw
        if raw.is_closing() or self.leaving:
            return
        if raw.get_write_buffer_size() > self.backlog:
            log.warning("reader.cut_off", extra={"principal": self.seat})
            self.reception.engine.tally.cut_off += 1
            raw.abort()
        else:
            raw.write(data)
            if self.lags:
                self.hall.porch.unread.more(len(data))

    async def drained(self) -> None:
        """Wait until the reader keeps up."""
        await self.writable.wait()

    def close(
        self,
        reason: str,
        code: WSCloseCode = WSCloseCode.POLICY_VIOLATION,
        *,
        again: bool = False,
    ) -> None:
        """End the connection and say why; `again` invites it to come back."""
        if again:
            code = WSCloseCode.TRY_AGAIN_LATER
        if not self.raw.is_closing():
            self.transport.send_close(code, reason.encode()[:120])
            self.transport.disconnect()
            # Whoever does not read does not keep it open for that.
            asyncio.get_running_loop().call_later(LAST_SECONDS, self.raw.abort)

    def say_goodbye(self) -> None:
        """The server stops. It still reads for a moment: what is unread would undo the words."""
        if not self.leaving and not self.raw.is_closing():
            self.transport.send_close(WSCloseCode.SERVICE_RESTART, b"the server stops")
            self.leaving = True
            asyncio.get_running_loop().call_later(GOODBYE_SECONDS, self.raw.abort)

    # What picows tells

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Open; whoever has not signed in yet has ten seconds for it."""
        self.transport = transport
        self.raw: Any = transport.underlying_transport
        self.private = is_private(self.raw)
        self.take = self.reception.taker(private=self.private)
        self.hall.connections.add(self)
        self.bucket = self.reception.buckets.fresh(asyncio.get_running_loop().time())
        if self.identity is not None:
            self._signed_in(self.identity)
        elif self.reception.is_open:
            self.hall.porch.known(self.raw)
        else:
            loop = asyncio.get_running_loop()
            self.timer = loop.call_later(SIGN_IN_SECONDS, self.close, "no token within 10 s")

    def on_ws_disconnected(self, transport: WSTransport) -> None:  # noqa: ARG002 - picows' shape
        """Gone."""
        self.hall.connections.discard(self)
        self.hall.crowd.leave(self)
        self.hall.porch.unread.remove(self.raw)
        self.writable.set()
        if self.timer:
            self.timer.cancel()
        self.reception.engine.peers.gone(self)

    def pause_writing(self) -> None:
        """The reader lags."""
        self.lags = True
        self.writable.clear()
        self.hall.porch.unread.add(self.raw)
        asyncio.get_running_loop().call_soon(self.hall.porch.unread.check)

    def resume_writing(self) -> None:
        """The reader has caught up."""
        self.lags = False
        self.writable.set()
        self.hall.porch.unread.remove(self.raw)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """A frame; a message may come in several."""
        kind = frame.msg_type
        self.unread = 0
        ended: object = transport.close_handshake
        if kind is CLOSE:
            self._goodbye(frame.get_close_code())
        elif ended is not None:
            pass  # what comes behind the end is not heard
        elif frame.rsv1 or frame.rsv2 or frame.rsv3:
            self.close("no extension was agreed on", WSCloseCode.PROTOCOL_ERROR)
        elif kind is TEXT and frame.fin and not self.fragments:
            self.receive(frame.get_payload_as_bytes())
        elif kind is TEXT or kind is CONTINUATION:
            self._fragment(frame)
        elif kind is PING:
            self._pong(frame.get_payload_as_bytes())
        elif kind is BINARY:
            self._binary(frame.payload_size)

    def _goodbye(self, code: WSCloseCode) -> None:
        """The other side ends it; without a code of its own it hears that all is well."""
        if not self.leaving:
            self.transport.send_close(WSCloseCode.OK if code == WSCloseCode.NO_INFO else code)
        self.transport.disconnect()

    def _fragment(self, frame: WSFrame) -> None:
        starts = frame.msg_type is TEXT
        if starts == bool(self.fragments):
            self.close("a fragment out of order", WSCloseCode.PROTOCOL_ERROR)
            return
        self.partial += frame.get_payload_as_bytes()
        self.fragments += 1
        if len(self.partial) > self.limit or self.fragments > MOST_FRAGMENTS:
            self.partial = bytearray()
            self.close("message too big", WSCloseCode.MESSAGE_TOO_BIG)
        elif frame.fin:
            whole, self.partial, self.fragments = bytes(self.partial), bytearray(), 0
            self.receive(whole)

    def _pong(self, data: bytes) -> None:
        """A sign of life, for those who do not ask for it all the time."""
        bucket = self.bucket
        if bucket is not None:
            bucket.weigh(len(data), asyncio.get_running_loop().time())
            if bucket.messages < 1:
                return
            bucket.messages -= 1
        self.write(bytes((PONG, len(data))) + data)

    def _binary(self, size: int) -> None:
        if self.bucket is not None:
            self.bucket.bytes -= size
        self._mistaken(Refused(Why.MALFORMED, "Send text frames; binary ones are not PVP"))

    # Messages

    def receive(self, data: bytes) -> None:
        """One message from the wire; whatever is wrong with it is answered, not thrown."""
        if self.leaving:
            return
        message: Message | None = None
        size = len(data)
        try:
            if self.bucket is not None:
                self.bucket.weigh(size, asyncio.get_running_loop().time())
                if self.bucket.spent:
                    self.bucket.glance(data)
            message = pvp.decode(data, self.most)
            actor = self.actor or self._sign_in(message, data)
            if self.bucket is not None:
                self.bucket.count(message.body.type, size)
            self.mistakes = 0
            if self.lane is None or not self.lane.take(message, actor, self.answered, self):
                self.take(message, actor, self, self.answered, quiet=True)
                self.lane = lane(self.reception.engine, message)
        except Refused as no:
            if message is not None and self.actor is not None:
                self.refuse(no, message.room, message.id, type(message.body))
            elif self.actor is not None and is_rate(no):
                self.refuse(no, *(pvp.gist(data) if size <= SHORT else glimpse(data)))
            else:
                self._mistaken(no, data)

    def _mistaken(self, no: Refused, data: bytes = b"") -> None:
        """Answer what makes no sense, or comes from nobody; not for ever."""
        self.mistakes += 1
        if self.mistakes > MOST_MISTAKES:
            self.close("nothing but mistakes")
            return
        if self.bucket is not None and no.why is not Why.TOO_MANY:
            self.bucket.messages -= 1
        self.refuse(no, *(glimpse(data) if no.why in UNREAD else pvp.gist(data)))

    def answered(self, outcome: Outcome) -> None:
        """What became of a message: an error for the sender, or again what a retry led to."""
        if outcome.refused is not None:
            message = outcome.asked.message
            self.refuse(outcome.refused, message.room, message.id, type(message.body))
        elif outcome.again:
            again = [f for s in outcome.sealed if (f := s.frame) and may_see(s.record, self.seat)]
            if again:
                self.write(self.join(again))

    def refuse(
        self,
        no: Refused,
        session: str = "",
        related_to: str | None = None,
        kind: type[Body] | None = None,
    ) -> None:
        """The error, to its cause alone (OPEN-49)."""
        said = self.reception.refusal(no, session, related_to, kind, self.seat)
        self.write(self.join([said]))

    # Identity

    def _sign_in(self, message: Message, data: bytes) -> Actor:
        """Whom this connection speaks for from now on."""
        if self.reception.is_open:
            actor = self.reception.presume(message, self.runtime)
            self._bind(actor)
            return actor
        token = pvp.token_of(data) if isinstance(message.body, SessionJoin) else None
        if token is None:
            detail = "Sign in first: a token at the upgrade, or in a session.join"
            raise Refused(Why.UNAUTHENTICATED, detail)
        identity = self.reception.identify(token)
        self._signed_in(identity)
        return identity.actor

    def _signed_in(self, identity: Identity) -> None:
        """The connection ends with its token."""
        self.identity = identity
        self._bind(identity.actor)
        if self.timer:
            self.timer.cancel()
        left = self.reception.left(identity)
        loop = asyncio.get_running_loop()
        self.timer = loop.call_later(left, self.close, "the token has expired")

    def _bind(self, actor: Actor) -> None:
        self.hall.crowd.enter(self, actor)
        self.actor = actor
        self.seat = actor.seat
        self.limit = self.reception.limits.frame
        self.bucket = self.reception.buckets.of(actor, asyncio.get_running_loop().time())
        self.hall.porch.known(self.raw)


class Hall:
    """All connections of a server, and how one is let in."""

    def __init__(self, reception: Reception, porch: Porch | None = None) -> None:
        self.reception = reception
        self.porch = porch or Porch()
        self.connections: set[Connection] = set()
        self.crowd: Crowd[Connection] = Crowd(reception.limits.connections_per_principal)
        self.count = 0

    def admit(self, request: WSUpgradeRequest) -> Any:
        """A connection for an upgrade request, or the HTTP answer that refuses it."""
        path, _, query = request.path.decode("latin-1").partition("?")
        protocols = header(request, "Sec-WebSocket-Protocol")
        offered = [p.strip() for h in protocols for p in h.split(",")]
        try:
            hosts, origins = header(request, "Host"), header(request, "Origin")
            check_origin(hosts, origins, strict=self.reception.is_open)
            ensure_spoken(path)
            token = bearer(header(request, "Authorization"), offered)
            identity = self.reception.identify(token) if token else None
            if identity is not None:
                self.crowd.check(identity.actor)
        except Refused as no:
            return refused(no)
        connection = Connection(self, identity, self.runtime(query))
        chosen = {"Sec-WebSocket-Protocol": SUBPROTOCOL} if SUBPROTOCOL in offered else {}
        response = WSUpgradeResponse.create_101_response(chosen)
        return WSUpgradeResponseWithListener(response, connection)

    def runtime(self, query: str) -> str:
        """The runtime a client says it is; without one, each connection is its own."""
        named = parse_qs(query).get("runtime", [""])[0][:128]
        self.count += 1
        return f"named:{named}" if named else f"connection:{self.count}"

    def revoke(self, jti: str) -> None:
        """End whatever was opened with a revoked token."""
        for connection in list(self.connections):
            identity = connection.identity
            if identity is not None and identity.claims.jti == jti:
                connection.close("the token was revoked")

    def say_goodbye(self) -> None:
        """The server stops; clients come back by themselves."""
        for connection in list(self.connections):
            connection.say_goodbye()


def header(request: WSUpgradeRequest, name: str) -> list[str]:
    """All values of a header."""
    values: list[str] = request.headers.getall(name, [])
    return values


def ensure_spoken(path: str) -> None:
    """Elsewhere there is nobody to talk to."""
    if path not in PATHS:
        raise Refused(Why.NO_ROUTE, "PVP is spoken on /ws")


def refused(no: Refused) -> WSUpgradeResponseWithListener:
    """The answer to an upgrade that is not granted, as every other over HTTP."""
    said = refusal(no)
    del said.headers["content-length"]  # picows adds its own
    response = WSUpgradeResponse.create_error_response(
        said.status_code, bytes(said.body), said.headers
    )
    return WSUpgradeResponseWithListener(response, None)


class PicowsProtocol(WSProtocol):  # type: ignore[misc]
    """uvicorn calls `data_received` once, with the request's head, then hands over."""

    admit: ClassVar[Callable[[WSUpgradeRequest], Any]]
    porch: ClassVar[Porch]
    frame: ClassVar[int]

    def __init__(self, config: Any, server_state: Any, app_state: Any) -> None:  # noqa: ARG002
        super().__init__(
            None,
            None,
            False,  # noqa: FBT003 - picows takes these by position
            type(self).admit,
            logging.getLogger("picows"),
            True,  # noqa: FBT003
            HANDSHAKE_SECONDS,
            True,  # noqa: FBT003
            PING_SECONDS,
            PING_SECONDS,
            WSAutoPingStrategy.PING_WHEN_IDLE,
            False,  # noqa: FBT003 - pings are answered as everything is
            type(self).frame,
            None,
            READ_BUFFER,
        )
        self.server_state = server_state

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.raw = transport
        super().connection_made(transport)  # fails where the other side is gone already
        self.server_state.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server_state.connections.discard(self)
        self.porch.leave(self.raw)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        try:
            while data:
                room = self.get_buffer(len(data))
                size = min(len(room), len(data))
                room[:size] = data[:size]
                data = data[size:]
                super().buffer_updated(size)
        except BaseException:
            self.server_state.connections.discard(self)
            raise

    def buffer_updated(self, nbytes: int) -> None:
        listener = self.listener
        listener.lane = None  # anything may have happened since the last
        if listener.actor is not None:
            super().buffer_updated(nbytes)
            return
        listener.unread += nbytes  # every frame sets it to nothing
        super().buffer_updated(nbytes)
        if listener.unread > listener.limit:
            listener.close("message too big", WSCloseCode.MESSAGE_TOO_BIG)

    def shutdown(self) -> None:
        if self.listener is not None:
            self.listener.say_goodbye()
        elif not self.raw.is_closing():
            self.transport.disconnect()


def protocol_class(hall: Hall) -> type[Any]:
    """Picows as the class that uvicorn hands an upgrade to, for one server."""
    frame = hall.reception.limits.frame
    own = {"admit": staticmethod(hall.admit), "porch": hall.porch, "frame": frame}
    return type("Picows", (PicowsProtocol,), own)
