"""One socket: its frames, its messages, and whom it speaks for."""

import asyncio
import logging
import re
import struct
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from picows import WSCloseCode, WSFrame, WSListener, WSMsgType, WSTransport

from accord.core.dialects import pvp
from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import is_id
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.members import SessionJoin
from accord.engine.cell import Asked, Outcome
from accord.engine.peers import may_see
from accord.transports.bucket import SHORT, Bucket, is_rate
from accord.transports.expiry import Expiry
from accord.transports.head import is_private
from accord.transports.identity import Identity
from accord.transports.turns import REST_S

if TYPE_CHECKING:
    from accord.transports.hall import Hall

log = logging.getLogger("accord.websocket")

# Until somebody has signed in.
LARGEST_FIRST_FRAME = 64 << 10
MOST_FRAGMENTS = 4096
# So much nonsense in a row is no mistake.
MOST_MISTAKES = 100
SIGN_IN_SECONDS = 10
LAST_SECONDS = 10
GOODBYE_SECONDS = 2

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
        self.frames: list[bytes] = []  # of this read, not looked at yet
        self.leaving = False
        self.private = False
        self.lags = False
        limits = self.reception.limits
        self.most, self.backlog = limits.message, limits.backlog
        self.limit = limits.frame if self.reception.is_open else LARGEST_FIRST_FRAME
        self.timer: asyncio.TimerHandle | Expiry | None = None
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
        if raw.is_closing() or self.transport.is_close_frame_sent:
            return
        if raw.get_write_buffer_size() > self.backlog:
            log.warning("reader.cut_off", extra={"principal": self.seat})
            self.reception.engine.tally.cut_off += 1
            raw.abort()
        else:
            raw.write(data)
            if self.lags:
                self.hall.porch.unread.more(len(data))

    def worked(self, seconds: float) -> None:
        """So long it took to work off what it sent."""
        if self.bucket is not None:
            self.bucket.worked(seconds)

    @property
    def rest(self) -> float:
        """For how many seconds nobody has to hear it: one who sends too much makes others wait."""
        bucket = self.bucket
        return REST_S * self.hall.crowd.size(self) if bucket is not None and bucket.spent else 0.0

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
            self._end(code, reason.encode()[:120])
            self.transport.disconnect()
            # Whoever does not read does not keep it open for that.
            asyncio.get_running_loop().call_later(LAST_SECONDS, self.raw.abort)

    def say_goodbye(self) -> None:
        """The server stops. It still reads for a moment: what is unread would undo the words."""
        if not self.leaving and not self.raw.is_closing():
            self._end(WSCloseCode.SERVICE_RESTART, b"the server stops")
            asyncio.get_running_loop().call_later(GOODBYE_SECONDS, self.raw.abort)

    def _end(self, code: WSCloseCode, reason: bytes = b"") -> None:
        """Nothing more is heard; why is said once, and picows may have said it."""
        if not self.transport.is_close_frame_sent:
            self.transport.send_close(code, reason)
        self.leaving = True

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
            self.timer = None  # it knows of us, and we of it
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

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:  # noqa: ARG002 - picows' shape
        """A frame; a message may come in several."""
        kind = frame.msg_type
        self.unread = 0
        reserved = frame.rsv1 or frame.rsv2 or frame.rsv3
        whole = kind is TEXT and frame.fin and not self.fragments and not reserved
        if whole and self.actor is not None:
            if not self.leaving:
                self.frames.append(frame.get_payload_as_bytes())
            return
        try:
            self.work_off()
            self._sort(frame, kind, whole=whole, reserved=reserved)
        except BaseException:
            self.leaving = True  # picows ends it; nothing is heard behind what was not
            raise

    def _sort(self, frame: WSFrame, kind: WSMsgType, *, whole: bool, reserved: bool) -> None:
        if kind is CLOSE:
            self._goodbye(frame.get_close_code())
        elif self.leaving:
            # What comes behind the end is not heard. That picows has sent its own end is no sign:
            # it reads a frame ahead, and this one came before what it ended it for.
            pass
        elif reserved:
            self.close("no extension was agreed on", WSCloseCode.PROTOCOL_ERROR)
        elif whole:
            self.receive(frame.get_payload_as_bytes())
        elif kind is TEXT or kind is CONTINUATION:
            self._fragment(frame)
        elif kind is PING:
            self._pong(frame.get_payload_as_bytes())
        elif kind is BINARY:
            self._binary(frame.payload_size)

    def _goodbye(self, code: WSCloseCode) -> None:
        """The other side ends it; without a code of its own it hears that all is well."""
        self._end(WSCloseCode.OK if code == WSCloseCode.NO_INFO else code)
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

    def work_off(self) -> None:
        """What this read brought so far; also where picows ended it for what came behind."""
        frames, self.frames = self.frames, []
        if len(frames) > 1 and self._together(frames):
            return
        for data in frames:
            self.receive(data)

    def _together(self, frames: list[bytes]) -> bool:
        """Whether these were pieces of one answer, and taken as such."""
        actor, bucket, size = self.actor, self.bucket, sum(map(len, frames))
        if actor is None or self.leaving:
            return False
        if bucket is not None and not bucket.affords(size, asyncio.get_running_loop().time()):
            return False
        pieces = pvp.pieces(frames, self.most)
        if pieces is None:
            return False
        if not self.reception.take_together(pieces, actor, self.answered, self):
            return False
        if bucket is not None:
            bucket.bytes -= size
        self.mistakes = 0
        return True

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
            self.take(Asked(message, actor, self.answered, self))
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
            if self.bucket is not None:
                self.bucket.refused(message.body.type)
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
        left, end = self.reception.left, partial(self.close, "the token has expired")
        self.timer = Expiry(partial(left, identity), end)

    def _bind(self, actor: Actor) -> None:
        self.hall.crowd.enter(self, actor)
        self.actor = actor
        self.seat = actor.seat
        self.limit = self.reception.limits.frame
        self.bucket = self.reception.buckets.of(actor, asyncio.get_running_loop().time())
        self.hall.porch.known(self.raw)
