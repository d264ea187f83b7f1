"""PVP v1: one JSON envelope to one message, one record to one envelope."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct, defstruct
from msgspec.json import Decoder, Encoder

from accord.core import room
from accord.core.dialects.codes import CODES
from accord.core.dialects.nesting import decoder
from accord.core.kernel.ids import LONGEST_ID, SYSTEM, TRUNK, is_id, is_visible
from accord.core.kernel.limits import Limits, reached
from accord.core.kernel.log import Body, Failure, Message, Pieces, Record
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import is_iso, iso
from accord.core.room.members import SessionJoin
from accord.core.room.timeouts import GateTimeout

VERSION = 1
LARGEST_MESSAGE = Limits().message
MOST_REFS = 64
LONGEST_TIME = 64
# As msgspec says it, with the value behind.
NO_WORD = ("Invalid enum value", "Invalid value")

# PVP 4.3 as its table has it: 41 names (OPEN-1).
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

SPOKEN: tuple[type[Body], ...] = (*room.DECIDE, GateTimeout)
BODIES = {body.type: body for body in SPOKEN if body.type in PRIMITIVES}

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
NameOrEmpty = Annotated[str, Meta(max_length=LONGEST_ID)]


# How a type's own complaint ends, and which limit it is about.
FIXED = {
    f"length <= {MOST_REFS} - at `$.causal_refs`": {"limit": "refs", "most": MOST_REFS},
    **{
        f"length <= {LONGEST_ID} - at `$.{name}`": {"limit": "id", "most": LONGEST_ID}
        for name in ("id", "session", "sender", "ref", "causal_refs[...]", "fork")
    },
}


class Envelope(Struct, frozen=True, gc=False):
    """An envelope as it comes in; what the server assigns is not read."""

    v: int
    id: Name
    ts: Annotated[str, Meta(max_length=LONGEST_TIME)]
    session: NameOrEmpty
    sender: Name
    type: str
    payload: Raw
    ref: Name | None = None
    causal_refs: Annotated[tuple[Name, ...], Meta(max_length=MOST_REFS)] | None = None
    fork: NameOrEmpty | None = None


# All but id, time and payload.
ALIKE = attrgetter("v", "session", "sender", "type", "ref", "causal_refs", "fork")
ID, TIME, PAYLOAD = attrgetter("id"), attrgetter("ts"), attrgetter("payload")
SEQ, SAID = attrgetter("seq"), attrgetter("said")


def piece(body: type[Body]) -> Callable[[bytes], Any]:
    """Reads an envelope of this type in one go, with its payload."""
    return Decoder(defstruct("Piece", [("payload", body)], bases=(Envelope,), gc=False)).decode


class Sent(Struct, frozen=True, omit_defaults=True, gc=False):
    """An envelope as it goes out."""

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


class Problem(Struct, frozen=True, omit_defaults=True):
    """The payload of an error."""

    code: str
    message: str
    recoverable: bool
    details: Mapping[str, Any] | None = None
    related_to: str | None = None


class _Token(Struct, frozen=True):
    token: str | None = None


_envelope = Decoder(Envelope).decode
_payloads = {name: decoder(body) for name, body in BODIES.items()}
# What flows comes in many pieces that are alike; none of these can nest.
_pieces = {name: piece(body) for name, body in BODIES.items() if body.flows}
_token = Decoder(_Token).decode
encode = Encoder().encode

Mistakes = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


# Reading


def decode(data: bytes, most: int = LARGEST_MESSAGE) -> Message:
    """The message in these bytes, whole and well-formed; who sent it is for the edge to check."""
    if len(data) > most:
        detail = f"A message may have {most} bytes; this one has {len(data)}"
        raise reached("message", most, detail)
    said = opened(data)
    names = said.id + said.sender
    plain = names.isascii() and names.isprintable()
    if not plain or said.v != VERSION or not is_iso(said.ts):
        check(said)
    try:
        body = _payloads[said.type](said.payload)
    except KeyError:
        raise Refused(Why.MALFORMED, f"{said.type[:64]} is not a type of PVP v1") from None
    except Mistakes as error:
        raise Refused(Why.MALFORMED, f"Bad payload of {said.type}: {told_of(error)}") from None
    return _message(said, body)


def opened(data: bytes) -> Envelope:
    """The envelope in these bytes, whatever it holds; raises Refused."""
    try:
        if not data.isascii():
            data.decode()  # what is not read would not be looked at, either
        return _envelope(data)
    except Mistakes as error:
        detail = f"Not a PVP envelope: {error}"
        raise Refused(Why.MALFORMED, detail, past(str(error))) from error


def _message(said: Envelope, body: Body) -> Message:
    return Message(
        said.id,
        said.ts,
        said.session,
        said.sender,
        body,
        said.ref,
        said.causal_refs or (),
        None if said.fork in TRUNK else said.fork,
    )


def pieces(frames: Sequence[bytes], most: int = LARGEST_MESSAGE) -> Pieces | None:
    """What `decode` makes of each of these, if they are pieces of one answer; else None.

    Nothing is said of what is wrong: whoever gets None takes them one by one.
    """
    try:
        if not b"".join(frames).isascii():
            deque(map(bytes.decode, frames), maxlen=0)
        read = _pieces.get(_envelope(frames[0]).type)
        said = list(map(read, frames)) if read and len(max(frames, key=len)) <= most else []
    except Mistakes:
        return None
    if not said or list(map(ALIKE, said)).count(ALIKE(said[0])) < len(said):
        return None
    ids, times, first = list(map(ID, said)), list(map(TIME, said)), said[0]
    names = first.sender + "".join(ids)
    plain = names.isascii() and names.isprintable() and first.v == VERSION
    if not plain or not all(map(is_iso, set(times))):
        return None
    return Pieces(_message(first, first.payload), ids, times, list(map(PAYLOAD, said)))


def past(error: str) -> dict[str, Any] | None:
    """Which limit of the protocol an envelope goes past."""
    return next((told for end, told in FIXED.items() if error.endswith(end)), None)


def check(said: Envelope) -> None:
    """What the types alone cannot say of an envelope."""
    if said.v != VERSION:
        detail = f"Version {said.v} is not supported; this server speaks version {VERSION}"
        raise Refused(Why.VERSION, detail, {"supported_versions": [VERSION]})
    if not is_visible(said.id) or not is_visible(said.sender):
        raise Refused(Why.MALFORMED, "id and sender are 1 to 128 printable characters")
    if not is_iso(said.ts):
        raise Refused(Why.MALFORMED, f"ts is not an ISO 8601 timestamp: {said.ts}")


def told_of(error: Exception) -> str:
    """What is wrong and where; a value that is no word of ours may be a secret, or long."""
    text = str(error)
    no_word = next((each for each in NO_WORD if text.startswith(each)), None)
    return text if no_word is None else no_word + text[text.rfind(" - at ") :]


def token_of(data: bytes) -> str | None:
    """The credential inside a `session.join`; it is read here and goes no further."""
    try:
        said = _envelope(data)
        return _token(said.payload).token if said.type == SessionJoin.type else None
    except Mistakes:
        return None


# Writing


def frame(record: Record) -> bytes | None:
    """The record as an envelope, or None where it has no form on the wire."""
    said = record.said
    return None if said is None else encode(sent(record, said))


def sent(record: Record, said: Body) -> Sent:
    """The envelope of a record, of which this is what was said."""
    return Sent(
        VERSION,
        record.id,
        record.ts,
        record.stream[5:],  # after "room/"
        record.sender,
        said.type,
        said,
        record.ref,
        record.seq,
        record.causal_refs,
        record.fork,
    )


def sent_alike(records: Sequence[Record], said: Body) -> Iterator[Sent]:
    """The envelopes of records that differ in place, id, time and words alone from the first.

    What that one says is `said`.
    """
    first = records[0]
    return map(
        Sent,
        repeat(VERSION),
        map(ID, records),
        map(TIME, records),
        repeat(first.stream[5:]),
        repeat(first.sender),
        repeat(said.type),
        map(SAID, records),
        repeat(first.ref),
        map(SEQ, records),
        repeat(first.causal_refs),
        repeat(first.fork),
    )


def relayed(message: Message) -> bytes:
    """A message as its sender sent it, for signals."""
    return encode(
        Sent(
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


def told(
    id: str, at: int, session: str, body: Body, ref: str | None = None, sender: str = SYSTEM
) -> bytes:
    """A message of the server's own that is not kept, or what somebody said before."""
    return encode(Sent(VERSION, id, iso(at), session, sender, body.type, body, ref))


def refusal(
    id: str,
    at: int,
    session: str,
    no: Refused,
    related_to: str | None = None,
) -> bytes:
    """A refusal as the error its sender gets."""
    codes = CODES[no.why]
    problem = Problem(codes.pvp, no.detail, codes.recoverable, no.details, related_to)
    return encode(Sent(VERSION, id, iso(at), session, SYSTEM, "error", problem, related_to))


def failure(id: str, at: int, session: str, news: Failure) -> bytes:
    """Bad news for the room."""
    return refusal(id, at, session, Refused(news.why, news.detail), news.related_to)


class _Gist(Struct, frozen=True):
    id: Any = None
    session: Any = None


_gist = Decoder(_Gist).decode


def gist(data: bytes) -> tuple[str, str | None]:
    """Session and id of bytes that were refused, as far as they can be made out (OPEN-49)."""
    try:
        seen = _gist(data)
    except Mistakes:
        return "", None
    session = seen.session if isinstance(seen.session, str) and is_id(seen.session) else ""
    related = seen.id if isinstance(seen.id, str) and is_id(seen.id) else None
    return session, related
