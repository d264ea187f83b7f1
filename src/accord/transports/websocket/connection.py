"""One WebSocket connection: its frames, its messages and its principal."""

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
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.membership.joining import SessionJoin
from accord.engine.delivery.delivery import may_see
from accord.engine.streams.stream import Outcome, Submission
from accord.identity.token_expiry import ExpiryTimer
from accord.identity.token_signing import Identity
from accord.transports.edge.http_protocol import is_secure
from accord.transports.rate_limit import SHORT_MESSAGE_BYTES, Bucket, is_rate_refusal

if TYPE_CHECKING:
    from accord.transports.websocket.registry import WebSocketRegistry

log = logging.getLogger("accord.websocket")

# Until the connection has signed in.
MAX_UNAUTHENTICATED_FRAME = 64 << 10
MAX_FRAGMENTS = 4096
# A client that sends this many invalid messages in a row is disconnected.
MAX_MISTAKES = 100
SIGN_IN_TIMEOUT_S = 10
CLOSE_TIMEOUT_S = 10
SHUTDOWN_CLOSE_TIMEOUT_S = 2

TEXT = WSMsgType.TEXT
CONTINUATION = WSMsgType.CONTINUATION
CLOSE = WSMsgType.CLOSE
BINARY = WSMsgType.BINARY
PING = WSMsgType.PING
PONG_OPCODE = 0x8A
MESSAGE_ID_PATTERN = re.compile(rb'\{"v":\s*1,\s*"id":\s*"([!#-\[\]-~]{1,128})"')
# Refusals before the message is decoded.
UNDECODED_REASONS = frozenset({Reason.TOO_MANY, Reason.TOO_LARGE})

SHORT_FRAME_BYTES, MEDIUM_FRAME_BYTES = 126, 1 << 16
# A sender over its rate limit is not read for this long per connection of its principal. For
# thousands of connections that would be minutes, after which a client assumes that the server is
# gone.
PAUSE_PER_CONNECTION_S = 0.05
_pack_medium_header = struct.Struct("!BBH").pack
_pack_large_header = struct.Struct("!BBQ").pack


@lru_cache(4096)
def frame_header(size: int) -> bytes:
    """The header of an unmasked text frame with a payload of this size."""
    if size < SHORT_FRAME_BYTES:
        return bytes((0x81, size))
    return (
        _pack_medium_header(0x81, 126, size)
        if size < MEDIUM_FRAME_BYTES
        else _pack_large_header(0x81, 127, size)
    )


def find_message_id(data: bytes) -> tuple[str, str | None]:
    """The id of a message that is not decoded, if it is in the usual place."""
    match = MESSAGE_ID_PATTERN.match(data, 0, SHORT_FRAME_BYTES * 2)
    id = match[1].decode("ascii") if match else ""
    return "", id if is_id(id) else None


class Connection(WSListener):
    """One WebSocket of one principal, for any number of sessions (OPEN-30)."""

    def __init__(
        self, registry: "WebSocketRegistry", identity: Identity | None, runtime: str
    ) -> None:
        self.registry = registry
        self.intake = registry.intake
        self.identity = identity
        self.actor: Actor | None = identity.actor if identity else None
        self.principal = self.actor.principal if self.actor else ""
        self.runtime = runtime
        self.bucket: Bucket | None = None
        self.fragment_buffer = bytearray()
        self.fragment_count = 0
        self.mistakes = 0
        self.pending_bytes = 0
        self.pending_frames: list[bytes] = []  # of this read, not processed yet
        self.closing = False
        self.is_secure = False
        self.write_paused = False
        limits = self.intake.limits
        self.max_message, self.max_backlog = limits.message, limits.backlog
        self.max_frame = limits.frame if self.intake.is_open else MAX_UNAUTHENTICATED_FRAME
        self.timer: asyncio.TimerHandle | ExpiryTimer | None = None
        self.writable = asyncio.Event()
        self.writable.set()

    # The engine's Peer protocol

    @property
    def is_connected(self) -> bool:
        return self in self.registry.connections

    @staticmethod
    def join_frames(frames: list[bytes]) -> bytes:
        """All frames in one write."""
        return b"".join(
            chain.from_iterable(zip(map(frame_header, map(len, frames)), frames, strict=True))
        )

    def write(self, data: bytes) -> None:
        """Send; a reader too far behind is disconnected and resumes by replay (OPEN-51)."""
        transport = self.socket_transport
        if transport.is_closing() or self.transport.is_close_frame_sent:
            return
        if transport.get_write_buffer_size() > self.max_backlog:
            log.warning("reader.cut_off", extra={"principal": self.principal})
            self.intake.engine.counters.slow_disconnects += 1
            transport.abort()
        else:
            transport.write(data)
            if self.write_paused:
                self.registry.connection_limits.unread.add_bytes(len(data))

    def charge_work_time(self, seconds: float) -> None:
        """Charge the sender for the CPU time its messages took."""
        if self.bucket is not None:
            self.bucket.charge_work_time(seconds)

    @property
    def read_pause_s(self) -> float:
        """Seconds to pause reading from a principal that exceeds its rate limit."""
        bucket = self.bucket
        return (
            PAUSE_PER_CONNECTION_S * self.registry.principal_connections.count_of(self)
            if bucket is not None and bucket.is_exhausted
            else 0.0
        )

    async def drain(self) -> None:
        """Wait until the reader keeps up."""
        await self.writable.wait()

    def close(
        self,
        reason: str,
        code: WSCloseCode = WSCloseCode.POLICY_VIOLATION,
        *,
        reconnect: bool = False,
    ) -> None:
        """Close with a reason; `reconnect` tells the client to try again."""
        if reconnect:
            code = WSCloseCode.TRY_AGAIN_LATER
        if not self.socket_transport.is_closing():
            self._send_close(code, reason.encode()[:120])
            self.transport.disconnect()
            # A client that does not read cannot keep the connection open.
            asyncio.get_running_loop().call_later(CLOSE_TIMEOUT_S, self.socket_transport.abort)

    def close_for_shutdown(self) -> None:
        """Close because the server stops.

        Unread input would reset the connection before the client reads.
        """
        if not self.closing and not self.socket_transport.is_closing():
            self._send_close(WSCloseCode.SERVICE_RESTART, b"the server is stopping")
            asyncio.get_running_loop().call_later(
                SHUTDOWN_CLOSE_TIMEOUT_S, self.socket_transport.abort
            )

    def _send_close(self, code: WSCloseCode, reason: bytes = b"") -> None:
        """Send one close frame, unless picows already did, and process no more messages."""
        if not self.transport.is_close_frame_sent:
            self.transport.send_close(code, reason)
        self.closing = True

    # Callbacks of picows

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Opened; a client without a token must sign in within ten seconds."""
        self.transport = transport
        self.socket_transport: Any = transport.underlying_transport
        self.is_secure = is_secure(self.socket_transport)
        self.submit = self.intake.submit_for(secure=self.is_secure)
        self.registry.connections.add(self)
        self.bucket = self.intake.buckets.new_bucket(asyncio.get_running_loop().time())
        if self.identity is not None:
            self._set_identity(self.identity)
        elif self.intake.is_open:
            self.registry.connection_limits.mark_active(self.socket_transport)
        else:
            loop = asyncio.get_running_loop()
            self.timer = loop.call_later(SIGN_IN_TIMEOUT_S, self.close, "not signed in within 10 s")

    def on_ws_disconnected(self, transport: WSTransport) -> None:  # noqa: ARG002 - picows' shape
        self.registry.connections.discard(self)
        self.registry.principal_connections.remove(self)
        self.registry.connection_limits.unread.unwatch(self.socket_transport)
        self.writable.set()
        if self.timer:
            self.timer.cancel()
            self.timer = None  # breaks a reference cycle
        self.intake.engine.delivery.connection_lost(self)

    def pause_writing(self) -> None:
        """The reader lags."""
        self.write_paused = True
        self.writable.clear()
        self.registry.connection_limits.unread.watch(self.socket_transport)
        asyncio.get_running_loop().call_soon(self.registry.connection_limits.unread.cut_off_slowest)

    def resume_writing(self) -> None:
        """The reader has caught up."""
        self.write_paused = False
        self.writable.set()
        self.registry.connection_limits.unread.unwatch(self.socket_transport)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:  # noqa: ARG002 - picows' shape
        """One frame; complete text frames of a signed-in client are processed after the read."""
        kind = frame.msg_type
        self.pending_bytes = 0
        reserved = frame.rsv1 or frame.rsv2 or frame.rsv3
        complete = kind is TEXT and frame.fin and not self.fragment_count and not reserved
        if complete and self.actor is not None:
            if not self.closing:
                self.pending_frames.append(frame.get_payload_as_bytes())
            return
        try:
            self.process_pending()
            self._dispatch_frame(frame, kind, complete=complete, reserved=reserved)
        except BaseException:
            self.closing = True  # picows closes the connection; process nothing more
            raise

    def _dispatch_frame(
        self, frame: WSFrame, kind: WSMsgType, *, complete: bool, reserved: bool
    ) -> None:
        if kind is CLOSE:
            self._on_close_frame(frame.get_close_code())
        elif self.closing:
            # Frames after our close are ignored. picows having sent a close is no criterion: it
            # reads a frame ahead, and this one came before the one it objected to.
            pass
        elif reserved:
            self.close("no extension was negotiated", WSCloseCode.PROTOCOL_ERROR)
        elif complete:
            self.receive(frame.get_payload_as_bytes())
        elif kind is TEXT or kind is CONTINUATION:
            self._on_fragment(frame)
        elif kind is PING:
            self._answer_ping(frame.get_payload_as_bytes())
        elif kind is BINARY:
            self._reject_binary(frame.payload_size)

    def _on_close_frame(self, code: WSCloseCode) -> None:
        """Echo the close code; without one, send a normal closure."""
        self._send_close(WSCloseCode.OK if code == WSCloseCode.NO_INFO else code)
        self.transport.disconnect()

    def _on_fragment(self, frame: WSFrame) -> None:
        starts = frame.msg_type is TEXT
        if starts == bool(self.fragment_count):
            self.close("a fragment out of order", WSCloseCode.PROTOCOL_ERROR)
            return
        self.fragment_buffer += frame.get_payload_as_bytes()
        self.fragment_count += 1
        if len(self.fragment_buffer) > self.max_frame or self.fragment_count > MAX_FRAGMENTS:
            self.fragment_buffer = bytearray()
            self.close("message too big", WSCloseCode.MESSAGE_TOO_BIG)
        elif frame.fin:
            complete, self.fragment_buffer, self.fragment_count = (
                bytes(self.fragment_buffer),
                bytearray(),
                0,
            )
            self.receive(complete)

    def _answer_ping(self, data: bytes) -> None:
        """Answer a ping, within the rate limit."""
        bucket = self.bucket
        if bucket is not None:
            bucket.charge_bytes(len(data), asyncio.get_running_loop().time())
            if bucket.messages_left < 1:
                return
            bucket.messages_left -= 1
        self.write(bytes((PONG_OPCODE, len(data))) + data)

    def _reject_binary(self, size: int) -> None:
        if self.bucket is not None:
            self.bucket.bytes_left -= size
        self._reject_malformed(
            Refused(Reason.MALFORMED, "Send text frames; PVP does not use binary frames")
        )

    # Messages

    def process_pending(self) -> None:
        """Process the frames of this read, also when picows closed because of a later one."""
        frames, self.pending_frames = self.pending_frames, []
        if len(frames) > 1 and self._take_chunk_batch(frames):
            return
        for data in frames:
            self.receive(data)

    def _take_chunk_batch(self, frames: list[bytes]) -> bool:
        """Submit chunks of one response together; False when they are something else."""
        actor, bucket, size = self.actor, self.bucket, sum(map(len, frames))
        if actor is None or self.closing:
            return False
        if bucket is not None and not bucket.can_afford(size, asyncio.get_running_loop().time()):
            return False
        chunks = pvp.decode_chunks(frames, self.max_message)
        if chunks is None:
            return False
        if not self.intake.take_chunk_batch(chunks, actor, self.on_outcome, self):
            return False
        if bucket is not None:
            bucket.bytes_left -= size
        self.mistakes = 0
        return True

    def receive(self, data: bytes) -> None:
        """Process one message; errors are sent to the client, not raised."""
        if self.closing:
            return
        message: Message | None = None
        size = len(data)
        try:
            if self.bucket is not None:
                self.bucket.charge_bytes(size, asyncio.get_running_loop().time())
                if self.bucket.is_exhausted:
                    self.bucket.precheck(data)
            message = pvp.decode(data, self.max_message)
            actor = self.actor or self._sign_in(message, data)
            if self.bucket is not None:
                self.bucket.charge_message(message.body.type, size)
            self.mistakes = 0
            self.submit(Submission(message, actor, self.on_outcome, self))
        except Refused as refusal:
            if message is not None and self.actor is not None:
                self.refuse(refusal, message.room, message.id, type(message.body))
            elif self.actor is not None and is_rate_refusal(refusal):
                self.refuse(
                    refusal,
                    *(
                        pvp.session_and_id_of(data)
                        if size <= SHORT_MESSAGE_BYTES
                        else find_message_id(data)
                    ),
                )
            else:
                self._reject_malformed(refusal, data)

    def _reject_malformed(self, refusal: Refused, data: bytes = b"") -> None:
        """Send an error for an invalid or unauthenticated message, up to a limit."""
        self.mistakes += 1
        if self.mistakes > MAX_MISTAKES:
            self.close("too many invalid messages")
            return
        if self.bucket is not None and refusal.reason is not Reason.TOO_MANY:
            self.bucket.messages_left -= 1
        self.refuse(
            refusal,
            *(
                find_message_id(data)
                if refusal.reason in UNDECODED_REASONS
                else pvp.session_and_id_of(data)
            ),
        )

    def on_outcome(self, outcome: Outcome) -> None:
        """Send the error, or for a retry the records the first attempt led to."""
        if outcome.refusal is not None:
            message = outcome.submission.message
            if self.bucket is not None:
                self.bucket.charge_refusal(message.body.type)
            self.refuse(outcome.refusal, message.room, message.id, type(message.body))
        elif outcome.is_retry:
            frames = [
                f for s in outcome.records if (f := s.frame) and may_see(s.record, self.principal)
            ]
            if frames:
                self.write(self.join_frames(frames))

    def refuse(
        self,
        refusal: Refused,
        session: str = "",
        related_to: str | None = None,
        kind: type[Body] | None = None,
    ) -> None:
        """Send the error to its sender only (OPEN-49)."""
        frame = self.intake.error_frame(refusal, session, related_to, kind, self.principal)
        self.write(self.join_frames([frame]))

    # Identity

    def _sign_in(self, message: Message, data: bytes) -> Actor:
        """Authenticate the connection by its first message."""
        if self.intake.is_open:
            actor = self.intake.assume_actor(message, self.runtime)
            self._bind_actor(actor)
            return actor
        token = pvp.token_of(data) if isinstance(message.body, SessionJoin) else None
        if token is None:
            detail = "Sign in first: send a token with the upgrade request or in session.join"
            raise Refused(Reason.UNAUTHENTICATED, detail)
        identity = self.intake.identify(token)
        self._set_identity(identity)
        return identity.actor

    def _set_identity(self, identity: Identity) -> None:
        """Use this identity; the connection ends when its token expires."""
        self.identity = identity
        self._bind_actor(identity.actor)
        if self.timer:
            self.timer.cancel()
        seconds_left, end = self.intake.seconds_valid, partial(self.close, "the token has expired")
        self.timer = ExpiryTimer(partial(seconds_left, identity), end)

    def _bind_actor(self, actor: Actor) -> None:
        self.registry.principal_connections.add(self, actor)
        self.actor = actor
        self.principal = actor.principal
        self.max_frame = self.intake.limits.frame
        self.bucket = self.intake.buckets.bucket_of(actor, asyncio.get_running_loop().time())
        self.registry.connection_limits.mark_active(self.socket_transport)
