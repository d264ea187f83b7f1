"""Routes frames from the one connection to the joined sessions, and applies backpressure."""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from accord.client.connection.outbox import AcceptedFuture, AcceptedMessage, Outbox
from accord.client.connection.session_link import SessionLink
from accord.client.envelope import (
    NO_REFS,
    Envelope,
    EnvelopeHead,
    MessageRefs,
    OutgoingMessage,
    build_message,
    decode_envelope,
    error_report_of,
    parse_head,
)
from accord.client.errors import ClientError, ServerRefused
from accord.client.http_reader import HttpReader
from accord.client.identity import Identity
from accord.core.dialects.refusals import pvp_error
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body, Lifetime
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import to_iso
from accord.core.kernel.ulid import ulid
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.membership.joining import SessionJoin
from accord.core.room.session_lifecycle import SessionCreate

log = logging.getLogger("accord.client")

MAX_ERROR_CHARS = 500


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """A new id for a message or a session."""
    return ulid(now_ms(), os.urandom(10))


class MessageStamp(NamedTuple):
    """The id and timestamp of a new message."""

    id: str
    ts: str


def new_message_stamp() -> MessageStamp:
    """A fresh id and the current time."""
    return MessageStamp(new_id(), to_iso(now_ms()))


class SessionRouter:
    """All joined sessions of a client, and messages posted to sessions it has not joined."""

    def __init__(
        self,
        identity: Identity,
        http_reader: HttpReader,
        send_text: Callable[[str], None],
        stamp: Callable[[], MessageStamp],
    ) -> None:
        self.id = identity.id
        self._http_reader = http_reader
        self._send_text = send_text
        self._stamp = stamp
        self._is_connected = False
        self._session_links: dict[str, SessionLink] = {}
        self._posted = Outbox()
        self._missed_ends: set[str] = set()
        self._reading_may_resume = asyncio.Event()
        self._failure: ClientError | None = None
        self._reconnect_requested = False

    # Sessions

    def find(self, session: str) -> SessionLink | None:
        """The session, if it is joined or being joined."""
        return self._session_links.get(session)

    async def join_session(
        self, session: str, join: SessionJoin, create: SessionCreate | None, max_unread: int
    ) -> SessionLink:
        """Join a session; raises ServerRefused if the server does not allow it."""
        self.raise_if_failed()
        link = SessionLink(self, session, join, create, max_unread)
        self._session_links[session] = link
        if self._is_connected:
            link.on_connected()
        self.resume_reading()
        try:
            await asyncio.shield(link.joined)
        except asyncio.CancelledError:
            link.finish()
            raise
        return link

    def post(self, session: str, body: Body, refs: MessageRefs = NO_REFS) -> AcceptedFuture:
        """Send one message to a session that is not joined; the principal must be a member."""
        self.raise_if_failed()
        pending = self._posted.add(self.new_message(session, body, refs))
        if self._is_connected:
            self.send(pending.message)
        self.resume_reading()
        if body.lifetime is Lifetime.SIGNAL:
            # The server does not acknowledge a signal from outside the session.
            self._posted.accept(AcceptedMessage(pending.message.id, 0, None))
        return pending.future

    def raise_if_failed(self) -> None:
        """Raise the error that ended the connection, if it has ended."""
        if self._failure is not None:
            raise self._failure

    # Called by session links

    def new_message(self, session: str, body: Body, refs: MessageRefs = NO_REFS) -> OutgoingMessage:
        """A message with a new id and the current time."""
        return build_message(*self._stamp(), session, self.id, body, refs)

    def send(self, message: OutgoingMessage) -> None:
        """Send on the current connection; without one, do nothing."""
        if self._is_connected:
            self._send_text(message.text)

    def resume_reading(self) -> None:
        """Re-check whether reading may continue."""
        self._reading_may_resume.set()

    def remove_session(self, session: str) -> None:
        """Forget a session that has ended or was left."""
        self._session_links.pop(session, None)
        self._missed_ends.discard(session)

    def read_missed_end(self, session: str) -> None:
        """Read the rest of a session over HTTP: it ended while the client was disconnected."""
        self._missed_ends.add(session)

    def reconnect(self) -> None:
        """Drop the current connection and open a new one."""
        self._reconnect_requested = True

    # Called by the connection

    def on_connected(self) -> None:
        """Rejoin every session, and resend posted messages that are not acknowledged."""
        self._is_connected = True
        self._reconnect_requested = False
        for link in list(self._session_links.values()):
            link.on_connected()
        for message in self._posted.unacknowledged():
            self.send(message)

    def on_connection_lost(self, why: str) -> None:
        """Notify every session; the connection will be retried."""
        self._is_connected = False
        for link in self._session_links.values():
            link.on_connection_lost(self._transport_error(link.id, why))

    def _transport_error(self, session: str, why: str) -> Envelope:
        """PVP 19.5: readers receive a transport failure as an `error` message."""
        detail = f"The connection was lost: {why}"[:MAX_ERROR_CHARS]
        body = error_report_of(pvp_error(Refused(Reason.TRANSPORT, detail)))
        id, ts = new_message_stamp()
        return Envelope(id, ts, session, SYSTEM, body)

    def on_failed(self, error: ClientError) -> None:
        """End every session: the connection will not come back."""
        if self._failure is None:
            self._is_connected = False
            self._failure = error
            self._posted.fail(error)
            for link in list(self._session_links.values()):
                link.finish(error)

    async def on_frame(self, data: bytes) -> None:
        """Route a frame, then wait while any inbox is full."""
        head = parse_head(data)
        if head is None:
            log.warning("the server sent a frame that is not an envelope: %.200r", data)
            return
        is_error = head.type == ErrorReport.type
        envelope = decode_envelope(head)
        if not (is_error and envelope is not None and self._handle_refusal(envelope)):
            self._dispatch(head, envelope)
        for session in list(self._missed_ends):
            await self._read_rest(session)
        if self._reconnect_requested:
            raise ConnectionError("the server could not readmit this client; reconnecting")
        await self._apply_backpressure()

    def _dispatch(self, head: EnvelopeHead, envelope: Envelope | None) -> None:
        if head.id in self._posted:
            self._posted.accept(AcceptedMessage(head.id, head.seq, envelope))
        if link := self._session_links.get(head.session):
            link.receive(head.id, head.seq, envelope)

    def _handle_refusal(self, envelope: Envelope) -> bool:
        """Pass an error to the caller whose message it answers; returns whether there is one."""
        body = envelope.body
        if not isinstance(body, ErrorReport) or body.related_to is None:
            return False
        error = ServerRefused(
            body.code, body.message, recoverable=body.recoverable, details=body.details
        )
        links = list(self._session_links.values())
        if error.details.get("stopping") and self._is_awaiting(body.related_to):
            return True
        return self._posted.refuse(body.related_to, error) or any(
            link.on_refused(body.related_to, error) for link in links
        )

    def _is_awaiting(self, id: str) -> bool:
        """Whether this message is unacknowledged, to be resent after the server restarts."""
        return id in self._posted or any(
            link.is_awaiting(id) for link in self._session_links.values()
        )

    async def _read_rest(self, session: str) -> None:
        self._missed_ends.discard(session)
        link = self._session_links.get(session)
        if link is None:
            return
        try:
            async for envelope in self._http_reader.history(session, link.last_seq):
                link.receive(envelope.id, envelope.seq, envelope)
        except ClientError as error:
            link.finish(error)
        else:
            link.finish()

    async def _apply_backpressure(self) -> None:
        """Never while a caller waits for a response, which may be the next frame."""
        while self._any_inbox_full() and not self._awaits_response():
            self._reading_may_resume.clear()
            await self._reading_may_resume.wait()

    def _any_inbox_full(self) -> bool:
        return any(link.inbox.is_full for link in self._session_links.values())

    def _awaits_response(self) -> bool:
        return bool(self._posted) or any(
            link.awaits_response for link in self._session_links.values()
        )
