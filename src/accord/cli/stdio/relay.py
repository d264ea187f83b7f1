"""Relays PVP messages between lines and a server, exactly once even if connections are lost."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder
from websockets.asyncio.client import ClientConnection

from accord.cli.stdio.line_io import InputLine
from accord.client.connection.reconnect import ReconnectLoop
from accord.client.connection.router import new_id, now_ms
from accord.client.connection.websocket import CONNECTION_ERRORS
from accord.client.envelope import MAX_FRAME_BYTES, EnvelopeHead, parse_head
from accord.core.dialects import pvp
from accord.core.kernel.limits import limit_exceeded
from accord.core.kernel.messages import Lifetime
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import to_iso
from accord.core.room.membership.heartbeats import HeartbeatPing

log = logging.getLogger("accord.stdio")

MAX_PENDING = 10_000
MAX_UNNUMBERED = 4096
RESPONSE_TIMEOUT_S = 10
MAX_ERROR_LENGTH = 500
JOIN, CREATE, LEAVE, END = "session.join", "session.create", "session.leave", "session.end"
ANNOUNCE, ERROR = "participant.announce", "error"
ENTRY_TYPES = frozenset({JOIN, CREATE})
# The server responds to these only with errors.
UNANSWERED = frozenset(
    name
    for name, body in pvp.BODIES.items()
    if body.lifetime is Lifetime.SIGNAL and name != HeartbeatPing.type
)
# A rejoin that is refused with one of these codes is retried.
TRANSIENT_CODES = frozenset({"INTERNAL_ERROR", "RATE_LIMITED"})

# A message must be one line; line breaks between its JSON tokens become spaces.
NEWLINES_TO_SPACES = bytes.maketrans(b"\r\n", b"  ")


class _Reference(Struct, frozen=True):
    participant: str | None = None
    related_to: str | None = None
    code: str = ""


_NO_REFERENCE = _Reference()
_decode_reference = Decoder(_Reference).decode


def _reference_of(payload: Raw) -> _Reference:
    """What a message refers to; empty if its payload has another shape."""
    try:
        return _decode_reference(payload)
    except (msgspec.MsgspecError, RecursionError):
        return _NO_REFERENCE


class JoinedSession:
    """A joined session: how to rejoin it, and the last message received."""

    def __init__(self, sender: str, payload: Raw) -> None:
        self.sender = sender
        self.payload = payload
        self.last_id: str | None = None
        self.last_seq = 0
        self.unnumbered: OrderedDict[str, None] = OrderedDict()

    def is_new(self, head: EnvelopeHead) -> bool:
        """Whether the message was not received before: by `seq`, or by id if it has none."""
        if head.seq:
            if head.seq <= self.last_seq:
                return False
            self.last_seq, self.last_id = head.seq, head.id
            if head.type != ANNOUNCE:
                return True
        elif head.id in self.unnumbered:
            return False
        self.unnumbered[head.id] = None
        if len(self.unnumbered) > MAX_UNNUMBERED:
            self.unnumbered.popitem(last=False)
        return True


class StdioRelay:
    """Sends lines as messages and writes messages as lines."""

    def __init__(self, loop: ReconnectLoop) -> None:
        self.loop = loop
        self.put: Callable[[bytes], None] = lambda _: None
        self.wait_for_room: Callable[[], Awaitable[None]] = no_wait
        self.socket: ClientConnection | None = None
        self.connected = asyncio.Event()
        self.joined: dict[str, JoinedSession] = {}
        self.pending: OrderedDict[str, pvp.IncomingEnvelope] = OrderedDict()
        self.rejoins: dict[str, str] = {}
        self.response_event = asyncio.Event()
        self.must_reconnect = False

    # Sending

    async def send_line(self, line: InputLine) -> None:
        """Send one input line, or write an error message in response."""
        await self.wait_for_room()
        if not line.data.strip():
            return
        try:
            said = self._parse_line(line)
        except Refused as refusal:
            self._write_refusal(refusal, *pvp.session_and_id_of(line.data))
            return
        awaited = said.type not in UNANSWERED
        if awaited:
            self._add_pending(said)
        try:
            await self._send(line.data.strip().decode())
        except CONNECTION_ERRORS as error:
            # Pending messages already got an error when the connection was lost.
            if not awaited or self.pending.pop(said.id, None) is not None:
                self._write_transport_error(
                    f"The message was not sent: {error}", said.session, said.id
                )

    def _parse_line(self, line: InputLine) -> pvp.IncomingEnvelope:
        if not line.complete:
            limit = (
                f"A line has at most {MAX_FRAME_BYTES} bytes, and a message {pvp.MAX_MESSAGE_BYTES}"
            )
            raise limit_exceeded("message", pvp.MAX_MESSAGE_BYTES, limit)
        said = pvp.decode_envelope(line.data)
        pvp.check_envelope(said)
        return said

    def _add_pending(self, said: pvp.IncomingEnvelope) -> None:
        self.pending[said.id] = said
        if len(self.pending) > MAX_PENDING:
            self.pending.popitem(last=False)

    async def _send(self, text: str) -> None:
        if self.socket is None:
            raise ConnectionError("there is no connection to the server")
        await self.socket.send(text)

    # Receiving

    async def run(self) -> None:
        """Connect and reconnect; raises errors for which a retry is useless."""
        await self.loop.run(self._run_connection, self._on_connection_lost)

    async def _run_connection(self, socket: ClientConnection) -> None:
        """Rejoin every session, then relay messages."""
        self.must_reconnect = False
        for text in list(self._rejoin_messages()):
            await socket.send(text)
        self.socket = socket
        self.connected.set()
        while not self.must_reconnect:
            self._on_frame(await socket.recv(decode=False))
            await self.wait_for_room()
        self._on_connection_lost("the server refused the rejoin for now")

    def _rejoin_messages(self) -> Iterator[str]:
        """Messages that rejoin each session after the last message received (OPEN-37)."""
        for session, place in self.joined.items():
            id = new_id()
            self.rejoins[id] = session
            yield encode_message(id, session, place.sender, JOIN, place.payload, place.last_id)

    def _on_connection_lost(self, why: str) -> None:
        """Write an error for every session and every pending message (PVP 19.5)."""
        if self.socket is None:
            return
        self.socket = None
        self.connected.clear()
        self.rejoins.clear()
        for session in self.joined:
            self._write_transport_error(f"The connection was lost: {why}", session)
        pending, self.pending = self.pending, OrderedDict()
        self.response_event.set()
        for id, said in pending.items():
            advice = "it may have arrived; send it again with the same id, it counts once"
            self._write_transport_error(
                f"The connection was lost before the response; {advice}", said.session, id
            )

    def _on_frame(self, data: bytes) -> None:
        said = parse_head(data) if is_utf8(data) else None
        if said is None:
            log.warning("the server sent something that is not an envelope: %.200r", data)
            return
        if said.type == ERROR:
            if self._on_error(said):
                return
        elif not self._on_message(said):
            return
        self.put(data.translate(NEWLINES_TO_SPACES))

    def _pop_pending(self, id: str) -> pvp.IncomingEnvelope | None:
        self.response_event.set()
        return self.pending.pop(id, None)

    def _on_message(self, said: EnvelopeHead) -> bool:
        """Process a message; returns whether it is new to the reader."""
        asked = self._pop_pending(said.id)
        if asked is not None and asked.type in ENTRY_TYPES and said.session not in self.joined:
            self.joined[said.session] = JoinedSession(asked.sender, self._rejoin_payload(asked))
        self.rejoins.pop(said.id, None)
        place = self.joined.get(said.session)
        news = place is None or place.is_new(said) or asked is not None
        if place is not None and self._ends_membership(said, place):
            self._forget_session(said.session)
        return news

    def _rejoin_payload(self, asked: pvp.IncomingEnvelope) -> Raw:
        """The payload of a rejoin: as in the first join, or made for the session's creator."""
        if asked.type == JOIN:
            return asked.payload
        who = {
            "id": asked.sender,
            "name": asked.sender,
            "type": self.loop.identity.kind,
            "roles": self.loop.identity.roles,
            "transport": "stdio",
        }
        return Raw(pvp.encode({"participant": who, "supported_versions": [pvp.VERSION]}))

    def _ends_membership(self, said: EnvelopeHead, place: JoinedSession) -> bool:
        if said.type == END:
            return True
        if said.type != LEAVE:
            return False
        return place.sender in {said.sender, _reference_of(said.payload).participant}

    def _on_error(self, said: EnvelopeHead) -> bool:
        """Process an error; returns whether it is hidden from the reader."""
        about = _reference_of(said.payload)
        related = about.related_to or ""
        self._pop_pending(related)
        back = self.rejoins.pop(related, None)
        if back is not None and about.code in TRANSIENT_CODES:
            self.must_reconnect = True
            return True
        if back is not None:
            self._forget_session(back)
        return False

    # Ending

    async def finish(self) -> None:
        """Wait for the responses to everything that was sent; raises TimeoutError."""
        async with asyncio.timeout(RESPONSE_TIMEOUT_S):
            await self._wait_until(lambda: not self.pending)

    async def _wait_until(self, over: Callable[[], bool]) -> None:
        while not over():
            self.response_event.clear()
            await self.response_event.wait()

    def _forget_session(self, session: str) -> None:
        """Forget a session that was left or has ended."""
        self.joined.pop(session, None)
        self.response_event.set()

    def _write_refusal(self, refusal: Refused, session: str, related_to: str | None) -> None:
        self.put(pvp.encode_refusal(new_id(), now_ms(), session, refusal, related_to))

    def _write_transport_error(self, why: str, session: str, related_to: str | None = None) -> None:
        self._write_refusal(Refused(Reason.TRANSPORT, why[:MAX_ERROR_LENGTH]), session, related_to)


def encode_message(
    id: str, session: str, sender: str, type: str, payload: Raw, ref: str | None = None
) -> str:
    """A message as JSON text."""
    sent = pvp.OutgoingEnvelope(
        pvp.VERSION, id, to_iso(now_ms()), session, sender, type, payload, ref
    )
    return pvp.encode(sent).decode()


def is_utf8(data: bytes) -> bool:
    """Whether the frame is valid UTF-8; JSON decoding skips parts without checking that."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


async def no_wait() -> None:
    """Return at once: the default without backpressure."""
