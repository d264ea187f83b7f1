"""PVP v1: decodes a JSON envelope to a message, encodes a record as an envelope."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct, defstruct, inspect
from msgspec.json import Decoder, Encoder

from accord.core import room
from accord.core.dialects.nesting import MAX_NESTING_DEPTH, can_nest, is_too_deep
from accord.core.dialects.refusals import pvp_error
from accord.core.kernel.ids import MAX_ID_LENGTH, SYSTEM, TRUNK_NAMES, is_id, is_visible
from accord.core.kernel.limits import Limits, limit_exceeded
from accord.core.kernel.messages import Body, ChunkBatch, Failure, Message
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import is_iso, to_iso
from accord.core.room.approval.gate_timeouts import GateTimeout
from accord.core.room.membership.joining import SessionJoin

VERSION = 1
MAX_MESSAGE_BYTES = Limits().message
MAX_CAUSAL_REFS = 64
MAX_TIMESTAMP_LENGTH = 64
# Errors of msgspec that quote the value.
ENUM_ERROR_PREFIXES = ("Invalid enum value", "Invalid value")

# The 41 names of the table in PVP 4.3 (OPEN-1).
PRIMITIVES = frozenset(
    {
        "session.create",
        "session.join",
        "session.leave",
        "session.end",
        "session.config_update",
        "participant.announce",
        "participant.role_change",
        "heartbeat.ping",
        "heartbeat.pong",
        "presence.update",
        "context.add",
        "context.update",
        "context.remove",
        "secret.share",
        "secret.revoke",
        "prompt.draft",
        "prompt.submit",
        "prompt.amend",
        "thinking.start",
        "thinking.chunk",
        "thinking.end",
        "response.start",
        "response.chunk",
        "response.end",
        "tool.propose",
        "tool.approve",
        "tool.reject",
        "tool.execute",
        "tool.output",
        "tool.result",
        "gate.request",
        "gate.approve",
        "gate.reject",
        "gate.timeout",
        "interrupt.raise",
        "interrupt.acknowledge",
        "fork.create",
        "fork.switch",
        "merge.propose",
        "merge.execute",
        "error",
    }
)

BODY_TYPES: tuple[type[Body], ...] = (*room.DECIDE, GateTimeout)
BODIES = {body.type: body for body in BODY_TYPES if body.type in PRIMITIVES}

Name = Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]
NameOrEmpty = Annotated[str, Meta(max_length=MAX_ID_LENGTH)]


# How msgspec's error ends when a limit is exceeded, and the details to report.
LIMIT_ERRORS = {
    f"length <= {MAX_CAUSAL_REFS} - at `$.causal_refs`": {"limit": "refs", "most": MAX_CAUSAL_REFS},
    **{
        f"length <= {MAX_ID_LENGTH} - at `$.{name}`": {"limit": "id", "most": MAX_ID_LENGTH}
        for name in ("id", "session", "sender", "ref", "causal_refs[...]", "fork")
    },
}


class IncomingEnvelope(Struct, frozen=True, gc=False):
    """An envelope from a client; fields that the server assigns are ignored."""

    v: int
    id: Name
    ts: Annotated[str, Meta(max_length=MAX_TIMESTAMP_LENGTH)]
    session: NameOrEmpty
    sender: Name
    type: str
    payload: Raw
    ref: Name | None = None
    causal_refs: Annotated[tuple[Name, ...], Meta(max_length=MAX_CAUSAL_REFS)] | None = None
    fork: NameOrEmpty | None = None


# All fields except id, time and payload.
SHARED_FIELDS = attrgetter("v", "session", "sender", "type", "ref", "causal_refs", "fork")
GET_ID, GET_TS, GET_PAYLOAD = attrgetter("id"), attrgetter("ts"), attrgetter("payload")
GET_SEQ, GET_BODY = attrgetter("seq"), attrgetter("said")


def chunk_decoder(body: type[Body]) -> Callable[[bytes], Any]:
    """A decoder that reads an envelope of this type together with its payload."""
    return Decoder(
        defstruct("ChunkEnvelope", [("payload", body)], bases=(IncomingEnvelope,), gc=False)
    ).decode


class OutgoingEnvelope(Struct, frozen=True, omit_defaults=True, gc=False):
    """An envelope that the server sends."""

    v: int
    id: str
    ts: str
    session: str
    sender: str
    type: str
    payload: Any
    ref: str | None = None
    seq: int = 0
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None


class _Token(Struct, frozen=True):
    token: str | None = None


_envelope = Decoder(IncomingEnvelope).decode
PayloadDecoder = Callable[[Raw], Body]


def payload_decoder(body: type[Body]) -> PayloadDecoder:
    """A decoder for payloads of this type; checks the depth only if the type can nest."""
    decode = Decoder(body).decode
    return with_depth_limit(decode) if can_nest(inspect.type_info(body)) else decode


def with_depth_limit(decode: PayloadDecoder) -> PayloadDecoder:
    """Adds the depth check; payloads with few brackets cannot be deep and skip it."""

    def decode_bounded(raw: Raw) -> Body:
        body, text = decode(raw), bytes(raw)
        if text.count(b"{") + text.count(b"[") > MAX_NESTING_DEPTH and is_too_deep(body):
            detail = f"A payload may be nested at most {MAX_NESTING_DEPTH} levels deep"
            raise Refused(Reason.MALFORMED, detail, {"limit": "depth", "most": MAX_NESTING_DEPTH})
        return body

    return decode_bounded


_payload_decoders = {name: payload_decoder(body) for name, body in BODIES.items()}
# Chunks arrive in large numbers and alike; none of their payloads can nest.
_chunk_decoders = {name: chunk_decoder(body) for name, body in BODIES.items() if body.is_chunk}
_token = Decoder(_Token).decode
encode = Encoder().encode

DECODE_ERRORS = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


# Decoding


def decode(data: bytes, max_bytes: int = MAX_MESSAGE_BYTES) -> Message:
    """The well-formed message in these bytes; the caller verifies the sender."""
    if len(data) > max_bytes:
        detail = f"A message may have at most {max_bytes} bytes; this one has {len(data)}"
        raise limit_exceeded("message", max_bytes, detail)
    envelope = decode_envelope(data)
    names = envelope.id + envelope.sender
    is_plain = names.isascii() and names.isprintable()
    if not is_plain or envelope.v != VERSION or not is_iso(envelope.ts):
        check_envelope(envelope)
    try:
        body = _payload_decoders[envelope.type](envelope.payload)
    except KeyError:
        raise Refused(
            Reason.MALFORMED, f"{envelope.type[:64]} is not a message type of PVP v1"
        ) from None
    except DECODE_ERRORS as error:
        raise Refused(
            Reason.MALFORMED, f"Bad payload of {envelope.type}: {describe_error(error)}"
        ) from None
    return _message(envelope, body)


def decode_envelope(data: bytes) -> IncomingEnvelope:
    """The envelope in these bytes, whatever its payload; raises Refused."""
    try:
        if not data.isascii():
            data.decode()  # msgspec does not check the encoding of fields that it skips
        return _envelope(data)
    except DECODE_ERRORS as error:
        detail = f"Not a PVP envelope: {error}"
        raise Refused(Reason.MALFORMED, detail, exceeded_limit(str(error))) from error


def _message(envelope: IncomingEnvelope, body: Body) -> Message:
    return Message(
        envelope.id,
        envelope.ts,
        envelope.session,
        envelope.sender,
        body,
        envelope.ref,
        envelope.causal_refs or (),
        None if envelope.fork in TRUNK_NAMES else envelope.fork,
    )


def decode_chunks(frames: Sequence[bytes], max_bytes: int = MAX_MESSAGE_BYTES) -> ChunkBatch | None:
    """The messages in these frames if they are valid chunks of one stream; else None.

    None does not tell what is wrong; the caller then decodes the frames one by one.
    """
    try:
        if not b"".join(frames).isascii():
            deque(map(bytes.decode, frames), maxlen=0)
        decode = _chunk_decoders.get(_envelope(frames[0]).type)
        envelopes = (
            list(map(decode, frames)) if decode and len(max(frames, key=len)) <= max_bytes else []
        )
    except DECODE_ERRORS:
        return None
    if not envelopes or list(map(SHARED_FIELDS, envelopes)).count(
        SHARED_FIELDS(envelopes[0])
    ) < len(envelopes):
        return None
    ids, times, first = list(map(GET_ID, envelopes)), list(map(GET_TS, envelopes)), envelopes[0]
    names = first.sender + "".join(ids)
    is_plain = names.isascii() and names.isprintable() and first.v == VERSION
    if not is_plain or not all(map(is_iso, set(times))):
        return None
    return ChunkBatch(_message(first, first.payload), ids, times, list(map(GET_PAYLOAD, envelopes)))


def exceeded_limit(error: str) -> dict[str, Any] | None:
    """The details of the protocol limit that an envelope exceeds, if it is one."""
    return next((details for end, details in LIMIT_ERRORS.items() if error.endswith(end)), None)


def check_envelope(envelope: IncomingEnvelope) -> None:
    """The checks of an envelope that its types cannot express."""
    if envelope.v != VERSION:
        detail = f"Version {envelope.v} is not supported; this server speaks version {VERSION}"
        raise Refused(Reason.UNSUPPORTED_VERSION, detail, {"supported_versions": [VERSION]})
    if not is_visible(envelope.id) or not is_visible(envelope.sender):
        raise Refused(Reason.MALFORMED, "id and sender must have 1 to 128 printable characters")
    if not is_iso(envelope.ts):
        raise Refused(Reason.MALFORMED, f"ts is not an ISO 8601 timestamp: {envelope.ts}")


def describe_error(error: Exception) -> str:
    """The error and its path, without the invalid enum value, which may be secret or long."""
    text = str(error)
    prefix = next((known for known in ENUM_ERROR_PREFIXES if text.startswith(known)), None)
    return text if prefix is None else prefix + text[text.rfind(" - at ") :]


def token_of(data: bytes) -> str | None:
    """The token in a `session.join`; it is not part of the decoded message."""
    try:
        envelope = _envelope(data)
        return _token(envelope.payload).token if envelope.type == SessionJoin.type else None
    except DECODE_ERRORS:
        return None


# Encoding


def encode_frame(record: Record) -> bytes | None:
    """The record as an encoded envelope, or None if it is not sent to clients."""
    said = record.said
    return None if said is None else encode(envelope_of(record, said))


def envelope_of(record: Record, said: Body) -> OutgoingEnvelope:
    """The envelope of a record with this body."""
    return OutgoingEnvelope(
        VERSION,
        record.id,
        record.ts,
        record.stream.partition("/")[2],
        record.sender,
        said.type,
        said,
        record.ref,
        record.seq,
        record.causal_refs,
        record.fork,
    )


def envelopes_of(records: Sequence[Record], first_body: Body) -> Iterator[OutgoingEnvelope]:
    """The envelopes of records that differ only in `seq`, id, time and body.

    `first_body` is the body of the first one.
    """
    first = records[0]
    return map(
        OutgoingEnvelope,
        repeat(VERSION),
        map(GET_ID, records),
        map(GET_TS, records),
        repeat(first.stream.partition("/")[2]),
        repeat(first.sender),
        repeat(first_body.type),
        map(GET_BODY, records),
        repeat(first.ref),
        map(GET_SEQ, records),
        repeat(first.causal_refs),
        repeat(first.fork),
    )


def encode_relayed(message: Message) -> bytes:
    """A signal as its sender sent it."""
    return encode(
        OutgoingEnvelope(
            VERSION,
            message.id,
            message.ts,
            message.room,
            message.sender,
            message.body.type,
            message.body,
            message.ref,
            0,
            message.causal_refs,
            message.fork,
        )
    )


def encode_notice(
    id: str, at: int, session: str, body: Body, ref: str | None = None, sender: str = SYSTEM
) -> bytes:
    """A message that is sent without being stored, by default from the server."""
    return encode(OutgoingEnvelope(VERSION, id, to_iso(at), session, sender, body.type, body, ref))


def encode_refusal(
    id: str,
    at: int,
    session: str,
    refusal: Refused,
    related_to: str | None = None,
) -> bytes:
    """A refusal as an `error` for the sender of the refused message."""
    problem = pvp_error(refusal, related_to)
    return encode(
        OutgoingEnvelope(VERSION, id, to_iso(at), session, SYSTEM, "error", problem, related_to)
    )


def encode_failure(id: str, at: int, session: str, failure: Failure) -> bytes:
    """A failure as an `error` for the members it concerns."""
    return encode_refusal(
        id, at, session, Refused(failure.reason, failure.detail), failure.related_to
    )


class _Identification(Struct, frozen=True):
    id: Any = None
    session: Any = None


_identification = Decoder(_Identification).decode


def session_and_id_of(data: bytes) -> tuple[str, str | None]:
    """Session and id of bytes that were refused, as far as they are readable (OPEN-49)."""
    try:
        identified = _identification(data)
    except DECODE_ERRORS:
        return "", None
    session = (
        identified.session
        if isinstance(identified.session, str) and is_id(identified.session)
        else ""
    )
    related = identified.id if isinstance(identified.id, str) and is_id(identified.id) else None
    return session, related
