"""One joined session: joining, rejoining after a lost connection, and leaving."""

import asyncio
from typing import Protocol

from accord.client.connection.inbox import Inbox
from accord.client.connection.outbox import AcceptedFuture, AcceptedMessage, Outbox
from accord.client.envelope import NO_REFS, Envelope, MessageRefs, OutgoingMessage
from accord.client.errors import ClientError, Closed, ServerRefused, SessionOver
from accord.client.proposal_outcome import BoundedDict, DecisionTracker
from accord.core.kernel.messages import Body, Lifetime
from accord.core.room.conversation.prompts import PromptDraft
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.membership.joining import SessionJoin
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.session_lifecycle import SessionCreate, SessionEnd
from accord.core.room.shared_context.context_items import ContextAdd

# A rejoin refused with one of these codes is retried.
TRANSIENT_CODES = frozenset({"RATE_LIMITED", "INTERNAL_ERROR", "TIMEOUT", "TRANSPORT_ERROR"})
# Only these signals are acknowledged: by an echo or by a pong.
ECHOED_SIGNALS = (PromptDraft, HeartbeatPing)
# A leave refused with one of these codes means that the member is already gone.
ALREADY_LEFT_CODES = frozenset({"PARTICIPANT_NOT_FOUND", "SESSION_NOT_FOUND", "INVALID_STATE"})


class Router(Protocol):
    """What a session link needs of its router."""

    id: str

    def new_message(self, session: str, body: Body, refs: MessageRefs = NO_REFS) -> OutgoingMessage:
        """A message with a new id and the current time."""
        ...

    def send(self, message: OutgoingMessage) -> None:
        """Send on the current connection; without one, do nothing."""
        ...

    def resume_reading(self) -> None:
        """Re-check whether reading may continue."""
        ...

    def remove_session(self, session: str) -> None:
        """Forget a session that has ended or was left."""
        ...

    def read_missed_end(self, session: str) -> None:
        """Read the rest of a session over HTTP: it ended while the client was disconnected."""
        ...

    def reconnect(self) -> None:
        """Drop the current connection and open a new one."""
        ...


class SessionLink:
    """The state of one session in one client, kept across connections."""

    def __init__(
        self,
        router: Router,
        id: str,
        join: SessionJoin,
        create: SessionCreate | None,
        max_unread: int,
    ) -> None:
        self.router = router
        self.id = id
        self.inbox = Inbox(max_unread, router.resume_reading)
        self.decisions = DecisionTracker(router.resume_reading)
        self.joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._join = join
        self._create = router.new_message(id, create) if create is not None else None
        self._create_sent = False
        self._join_id = ""
        self._is_attached = False
        self._leaving = False
        self._end_error: ClientError | None = None
        self._outbox = Outbox()
        self._last_seq = 0
        self._last_id: str | None = None
        self._seen_ids: BoundedDict[bool] = BoundedDict()
        self._announcement_ids: dict[str, str] = {}
        self._latest_ids: dict[str | None, str] = {}

    @property
    def is_attached(self) -> bool:
        """Whether the current connection receives the session's messages."""
        return self._is_attached

    @property
    def awaits_response(self) -> bool:
        """Whether a caller waits for a response, so that reading must continue."""
        return not self._is_attached or bool(self._outbox) or bool(self.decisions)

    @property
    def last_seq(self) -> int:
        """The `seq` of the latest message received."""
        return self._last_seq

    def is_awaiting(self, id: str) -> bool:
        """Whether this message is not acknowledged yet."""
        return id in self._outbox

    # The connection

    def on_connected(self) -> None:
        """On a new connection, send the join with the last message seen (OPEN-37)."""
        if self._leaving:
            self._resend_unacknowledged()
        elif self._create is not None and not self._create_sent:
            self._create_sent = True
            self._join_id = self._create.id
            self.router.send(self._create)
        else:
            if self._create is not None:
                self.router.send(self._create)
            self._send_join()

    def _send_join(self) -> None:
        message = self.router.new_message(self.id, self._join, MessageRefs(self._last_id))
        self._join_id = message.id
        self.router.send(message)

    def on_connection_lost(self, error: Envelope) -> None:
        """Report the loss to the reader; unacknowledged messages are resent later."""
        if self._is_attached:
            self.inbox.put(error)
        self._is_attached = False
        self._join_id = ""

    def _resend_unacknowledged(self) -> None:
        for message in self._outbox.unacknowledged():
            self.router.send(message)

    # Sending

    def submit(self, body: Body, refs: MessageRefs = NO_REFS) -> AcceptedFuture:
        """Send in order; the future resolves even if the connection is lost in between."""
        if self._end_error is not None:
            raise self._end_error
        message = self.router.new_message(self.id, body, refs)
        if body.lifetime is Lifetime.SIGNAL and not isinstance(body, ECHOED_SIGNALS):
            return self._send_signal(message)
        if isinstance(body, SessionJoin):
            self._join = body
        self._leaving = self._leaving or isinstance(body, SessionLeave)
        pending = self._outbox.add(message)
        if self._is_attached:
            self.router.send(message)
        self.router.resume_reading()
        return pending.future

    def _send_signal(self, message: OutgoingMessage) -> AcceptedFuture:
        """Signals are neither acknowledged nor resent."""
        if self._is_attached:
            self.router.send(message)
        future: AcceptedFuture = asyncio.get_running_loop().create_future()
        future.set_result(AcceptedMessage(message.id, 0, None))
        return future

    # Receiving

    def receive(self, id: str, seq: int, envelope: Envelope | None) -> None:
        """Process one message; `envelope` is None for types unknown to this client."""
        if envelope is not None and self._handle_heartbeat(envelope):
            return
        is_new = self._is_new(id, seq, envelope)
        self._outbox.accept(AcceptedMessage(id, seq, envelope))
        if envelope is not None and is_new:
            self._remember_latest(envelope)
            self.decisions.receive(envelope)
            self.inbox.put(envelope)
        if self._create is not None and id == self._create.id:
            self._create = None
        if id == self._join_id:
            self._on_joined()
        if envelope is not None and self._is_last_message(envelope):
            self.finish()

    def _handle_heartbeat(self, envelope: Envelope) -> bool:
        """Answer pings and resolve pongs; readers see neither."""
        match envelope.body:
            case HeartbeatPing():
                self.router.send(
                    self.router.new_message(self.id, HeartbeatPong(), MessageRefs(envelope.id))
                )
                return True
            case HeartbeatPong():
                self._outbox.accept(AcceptedMessage(envelope.ref or "", 0, envelope))
                return True
            case _:
                return False

    def _is_new(self, id: str, seq: int, envelope: Envelope | None) -> bool:
        """Deduplicate by `seq`, or by id for messages without one."""
        if seq:
            if seq <= self._last_seq:
                return False
            self._last_seq, self._last_id = seq, id
            if envelope is not None and isinstance(envelope.body, ContextAdd):
                # A rejoin replays the shared context, whose messages then have no `seq`.
                self._seen_ids[id] = True
        elif id in self._seen_ids:
            return False
        else:
            self._seen_ids[id] = True
        return envelope is None or self._is_new_announcement(envelope)

    def _remember_latest(self, envelope: Envelope) -> None:
        if envelope.seq:
            self._latest_ids[envelope.fork] = envelope.id

    def latest_id(self, fork: str | None) -> str:
        """The latest message received in a fork, or in the trunk it comes from."""
        return self._latest_ids.get(fork) or self._latest_ids.get(None, "")

    def _is_new_announcement(self, envelope: Envelope) -> bool:
        """Joining replays announcements that may have been received before (OPEN-30)."""
        body = envelope.body
        if not isinstance(body, ParticipantAnnounce):
            return True
        if self._announcement_ids.get(body.id) == envelope.id:
            return False
        self._announcement_ids[body.id] = envelope.id
        return True

    def _on_joined(self) -> None:
        self._join_id = ""
        self._is_attached = True
        if not self.joined.done():
            self.joined.set_result(None)
        self._resend_unacknowledged()

    def _is_last_message(self, envelope: Envelope) -> bool:
        """Whether the session is over for this member; a leave from before a rejoin is history."""
        body = envelope.body
        if isinstance(body, SessionEnd):
            return True
        mine = isinstance(body, SessionLeave) and self.router.id in {
            body.participant,
            envelope.sender,
        }
        return mine and (self._is_attached or self._leaving)

    # Refusals and the end

    def on_refused(self, id: str, error: ServerRefused) -> bool:
        """Handle an error about a message; returns whether this session sent it."""
        if id == self._join_id or (self._create is not None and id == self._create.id):
            self._on_join_refused(error)
            return True
        known = self._outbox.refuse(id, error)
        if known and self._leaving and error.code in ALREADY_LEFT_CODES:
            self.finish()
        return known

    def _on_join_refused(self, error: ServerRefused) -> None:
        returning = self.joined.done()
        if returning and error.recoverable and error.code in TRANSIENT_CODES:
            self.router.reconnect()
        elif returning and error.code == "INVALID_STATE" and not error.recoverable:
            self.router.read_missed_end(self.id)
        else:
            self.finish(error)

    def finish(self, error: ClientError | None = None) -> None:
        """End the session in this client and fail every waiting caller."""
        if self._end_error is not None:
            return
        self._end_error = error or SessionOver(
            f"The session {self.id} has ended, or this member left it"
        )
        self.router.remove_session(self.id)
        self.inbox.close(None if isinstance(error, Closed) else error)
        self._outbox.fail(self._end_error)
        self.decisions.fail(self._end_error)
        if not self.joined.done():
            self.joined.set_exception(self._end_error)
            self.joined.exception()
