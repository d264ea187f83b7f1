"""Decodes received envelopes and encodes outgoing ones."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder

from accord.core.dialects import pvp
from accord.core.dialects.refusals import Problem
from accord.core.kernel.messages import Body
from accord.core.room.conversation.error_reports import ErrorReport

from .errors import ServerRefused

# The server refuses a message that is too large, but closes the connection on a frame this large.
MAX_FRAME_BYTES = 4 << 20


class EnvelopeHead(Struct, frozen=True, gc=False):
    """An envelope whose payload is not decoded yet; unknown fields are ignored."""

    id: str
    session: str
    sender: str
    type: str
    ts: str = ""
    payload: Raw = Raw(b"{}")
    ref: str | None = None
    seq: int = 0
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None


class Envelope(Struct, frozen=True):
    """A received message with its sender, its position in the session and its typed body."""

    id: str
    ts: str
    session: str
    sender: str
    body: Body
    ref: str | None = None
    seq: int = 0
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None

    @property
    def type(self) -> str:
        """The message type as written on the wire, such as `tool.propose`."""
        return self.body.type


class MessageRefs(NamedTuple):
    """What a message refers to: the message it answers, its causes, and its fork."""

    ref: str | None = None
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None


NO_REFS = MessageRefs()


class OutgoingMessage(Struct, frozen=True):
    """An encoded message; sending it several times has one effect (OPEN-36)."""

    id: str
    session: str
    body: Body
    text: str


_decode_head = Decoder(EnvelopeHead).decode
_decode_problem = Decoder(Problem).decode


def parse_head(data: bytes) -> EnvelopeHead | None:
    """Decode everything but the payload; None if the data is not an envelope."""
    try:
        return _decode_head(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def decode_envelope(head: EnvelopeHead) -> Envelope | None:
    """Decode the payload too; None for message types unknown to this client (OPEN-2)."""
    decoder = _BODY_DECODERS.get(head.type)
    if decoder is None:
        return None
    try:
        body = decoder(head.payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return Envelope(
        head.id,
        head.ts,
        head.session,
        head.sender,
        body,
        head.ref,
        head.seq,
        head.causal_refs,
        head.fork,
    )


def decode_error_report(payload: Raw) -> ErrorReport:
    """Decode an error with any code: a newer server may send codes this client does not know."""
    return error_report_of(_decode_problem(payload))


def error_report_of(problem: Problem) -> ErrorReport:
    """The message body for the payload of an `error`."""
    return ErrorReport(
        code=problem.code,  # type: ignore[arg-type]  # may be a code of a newer server
        message=problem.message,
        recoverable=problem.recoverable,
        details=dict(problem.details) if problem.details else None,
        related_to=problem.related_to,
    )


_BODY_DECODERS: dict[str, Callable[[Raw], Any]] = {
    **{name: Decoder(body).decode for name, body in pvp.BODIES.items()},
    ErrorReport.type: decode_error_report,
}


def build_message(
    id: str,
    ts: str,
    session: str,
    sender: str,
    body: Body,
    refs: MessageRefs = NO_REFS,
) -> OutgoingMessage:
    """Encode a message; raises ServerRefused if it is too large to send."""
    envelope = pvp.OutgoingEnvelope(
        pvp.VERSION,
        id,
        ts,
        session,
        sender,
        body.type,
        body,
        refs.ref,
        0,
        refs.causal_refs,
        refs.fork,
    )
    data = pvp.encode(envelope)
    if len(data) > MAX_FRAME_BYTES:
        limit = (
            f"This message has {len(data)} bytes; the limit is {pvp.MAX_MESSAGE_BYTES}."
            " Shorten it, or share large content by reference"
        )
        raise ServerRefused("CONTEXT_TOO_LARGE", limit, details={"limit": pvp.MAX_MESSAGE_BYTES})
    return OutgoingMessage(id, session, body, data.decode())
