"""Records as stored bytes, the same in every store."""

# What a stored record is
# -----------------------
#
# A store keeps one row per record: stream, version, hash and `body`. The body is what this module
# encodes and decodes, one JSON object with these keys:
#
#   kind    the name of the event
#   at      the server's time in milliseconds
#   actor   who caused it, and
#   cause   the id of the message that did; both left out where the envelope implies everything
#   id      only without an envelope; likewise `fork`
#   to      the members that the record is restricted to, if it is
#   fact    the fields of the event that are not on the wire, if it has any
#   said    the PVP envelope, if the record is sent to clients; always the last key
#
# Stream and version are not in the body: they are the key of the row, and the hash chain, which
# starts with a hash of the stream's name, binds the body to its place.
#
# Why the envelope is inside. `said` is the envelope byte for byte as it was sent. Delivery and
# replay cut these bytes out of the body (`EncodedRecord.frame`) instead of encoding the record
# again. That is faster, and it guarantees that a client that reconnects receives exactly what it
# would have received live, even from a later version of Accord that would encode the same payload
# differently. Records without `said` are internal: they are folded but never sent, and their `seq`
# is 0.
#
# Encode and decode. `encode_record` returns the record together with its bytes and the position of
# the envelope. The record in it is the one that decoding these bytes gives, so that a live engine
# and one that restarts from the log fold the same values; an internal record therefore loses the
# fields that are not stored. `decode_record` accepts more than `encode_record` writes: an unknown
# kind, or a known one with a payload that it cannot have, becomes an `UnknownEvent`, which folding
# ignores while its frame is still delivered. So an older version can read the log of a newer one.
# Most records are plain: the envelope implies everything except kind and time. They take a fast
# path that encodes the whole object at once; the result has the same form.
#
# The hash. A record's hash is the SHA-256 of its predecessor's hash followed by the body, see
# `kernel.integrity.hash_chain`. It covers the stored bytes, never a re-encoding, so nothing here
# may rewrite existing bodies, and a change of the encoding affects new records only. Because the
# envelope is part of the body, the hash also covers exactly what members were sent. Secrets are the
# exception, because `encode_with_secret` adds the value for delivery only and it is never stored.
#
# Invariants
# - Decoding what `encode_record` returned gives the same record and the same frame.
# - Bodies written by any earlier version stay readable; new fields have a default.

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, get_type_hints

import msgspec
from msgspec import UNSET, Raw
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from accord.core import room
from accord.core.attention import context as attention
from accord.core.dialects import pvp
from accord.core.kernel.effects import Relay, ReplayedMessage, ServerNotice
from accord.core.kernel.messages import Body, Failure, Instant, Message, UnreadableBody
from accord.core.kernel.records import Event, Record, UnknownEvent
from accord.core.people import context as people
from accord.core.provenance import commit_links
from accord.core.room import threads
from accord.core.room.shared_context.secrets import SecretShare
from accord.core.work import mirror

EVENTS: dict[str, type[Event]] = {
    event.name: event
    for context in (
        room.CONTEXT,
        threads.CONTEXT,
        attention.CONTEXT,
        people.CONTEXT,
        commit_links.CONTEXT,
        mirror.CONTEXT,
    )
    for event in context.evolve
}
ENVELOPE_FIELDS = frozenset({"said", "ref", "to", "fork"})
SAID_MARKER = b',"said":'
SAID_MARKER_LENGTH = len(SAID_MARKER)


class ServerFields(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The fields of a stored record outside the envelope."""

    kind: str
    at: Instant
    actor: str
    cause: str
    id: str = ""
    to: tuple[str, ...] | None = None
    fact: Any = None
    fork: str | None = None


class PlainRecord(msgspec.Struct, frozen=True, gc=False):
    """A stored record whose envelope implies all other fields."""

    kind: str
    at: Instant
    said: pvp.OutgoingEnvelope


class StoredRecord(msgspec.Struct, frozen=True, gc=False):
    """A decoded body; `actor` and `cause` are empty where the envelope implies them."""

    kind: str
    at: Instant
    actor: str = ""
    cause: str = ""
    id: str = ""
    to: frozenset[str] | None = None
    fact: Raw = Raw(b"{}")
    fork: str | None = None
    said: Raw = Raw()


class StoredEnvelope(msgspec.Struct, frozen=True, gc=False):
    """The envelope inside a stored record."""

    id: str
    ts: str
    sender: str
    type: str
    payload: Raw
    ref: str | None = None
    seq: int = 0
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None


class EncodedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record with its stored bytes; the envelope is `body[start:end]`."""

    record: Record
    body: bytes
    start: int = 0
    end: int = 0

    @property
    def frame(self) -> bytes | None:
        """The envelope as sent, None for an internal record; cut out of the body on demand."""
        return self.body[self.start : self.end] if self.end else None


def _own_fields(event: type[Event]) -> list[str]:
    return [name for name in event.__struct_fields__ if name not in ENVELOPE_FIELDS]


def _fact_maker(event: type[Event]) -> Callable[[Event], msgspec.Struct | None]:
    """Makes what is stored of the own fields of such an event; None if it has none that are set.

    A field that is unset was added later and is left out, as it was then.
    """
    names = sorted(_own_fields(event))
    if not names:
        return lambda _: None
    form = msgspec.defstruct(f"{event.__name__}StoredFact", [(name, Any) for name in names])
    if len(names) == 1:
        get_one = attrgetter(names[0])
        return lambda event: None if (value := get_one(event)) is UNSET else form(value)
    get = attrgetter(*names)
    return lambda event: form(*get(event))


def _fact_decoder(event: type[Event]) -> "Decoder[Any]":
    hints = get_type_hints(event)
    defaults = {f.name: f.default for f in msgspec.structs.fields(event) if not f.required}
    fields = [
        (name, hints[name], defaults[name]) if name in defaults else (name, hints[name])
        for name in sorted(_own_fields(event), key=lambda name: name in defaults)
    ]
    return Decoder(msgspec.defstruct(f"{event.__name__}Fact", fields))


READABLE_EVENTS: tuple[type[Event], ...] = (*EVENTS.values(), UnknownEvent)
_OWN_FIELDS = {event: _own_fields(event) for event in READABLE_EVENTS}
_FACT_MAKERS = {event: _fact_maker(event) for event in READABLE_EVENTS}
_FACT_DECODERS = {event: _fact_decoder(event) for event in READABLE_EVENTS}
# The body type of each event; events without an entry have no body, or any.
_BODY_OF_EVENT: dict[type[Event], type[Body]] = {
    event: said
    for event in EVENTS.values()
    if (said := get_type_hints(event).get("said", Body)) is not Body
}
_BODY_DECODERS = {name: Decoder(body).decode for name, body in pvp.BODIES.items()}
_decode_stored = Decoder(StoredRecord).decode
_decode_envelope = Decoder(StoredEnvelope).decode
_encode = Encoder(order="deterministic").encode


def encode_record(record: Record) -> EncodedRecord:
    """The bytes to store and to send, with the record as decoding them would give it."""
    event, said = record.event, record.said
    fact = _FACT_MAKERS[type(event)](event)
    if said is not None and fact is None and _has_plain_envelope(record):
        # Encoding everything at once and finding the envelope is faster than inserting it.
        body = pvp.encode(PlainRecord(event.name, record.at, pvp.envelope_of(record, said)))
        return EncodedRecord(
            record, body, body.index(SAID_MARKER) + SAID_MARKER_LENGTH, len(body) - 1
        )
    frame = pvp.encode_frame(record)
    server_fields = _encode(
        ServerFields(
            event.name,
            record.at,
            record.actor,
            record.cause,
            "" if frame else record.id,
            tuple(sorted(record.to)) if record.to is not None else None,
            fact,
            None if frame else record.fork,
        )
    )
    if frame is None:
        return EncodedRecord(
            _internal_record(record.stream, record.version, record.id, record, event), server_fields
        )
    body = b"%b%b%b}" % (server_fields[:-1], SAID_MARKER, frame)
    return EncodedRecord(record, body, len(body) - 1 - len(frame), len(body) - 1)


def _is_plain(record: Record) -> bool:
    """Whether the envelope, if there is one, implies everything except kind and time."""
    fact = _FACT_MAKERS[type(record.event)](record.event)
    return fact is None and _has_plain_envelope(record)


def _has_plain_envelope(record: Record) -> bool:
    """Whether it implies recipients, actor and cause."""
    return record.to is None and record.actor == record.sender and record.cause == record.id


def encode_similar_records(records: Sequence[Record]) -> list[EncodedRecord]:
    """Like `encode_record`, for records that differ only in position, id, time and body."""
    first = records[0]
    said = first.said
    if said is None or not _is_plain(first):
        return list(map(encode_record, records))
    plain = map(
        PlainRecord, repeat(first.event.name), repeat(first.at), pvp.envelopes_of(records, said)
    )
    bodies = list(map(pvp.encode, plain))
    start = bodies[0].index(SAID_MARKER) + SAID_MARKER_LENGTH
    return [
        EncodedRecord(record, body, start, len(body) - 1)
        for record, body in zip(records, bodies, strict=True)
    ]


def decode_record(stream: str, version: int, body: bytes) -> EncodedRecord:
    """The record in the body of a stored row."""
    stored = _decode_stored(body)
    envelope = _decode_envelope(stored.said) if stored.said != Raw() else None
    kind = _event_type(stored.kind, envelope)
    fact = _FACT_DECODERS[kind].decode(stored.fact)
    facts = {name: getattr(fact, name) for name in _OWN_FIELDS[kind]}
    if envelope is None:
        event = kind(fork=stored.fork, **facts)
        return EncodedRecord(_internal_record(stream, version, stored.id, stored, event), body)
    decode = _BODY_DECODERS.get(envelope.type) if kind is not UnknownEvent else None
    payload: Body = decode(envelope.payload) if decode else UnreadableBody()
    body_field = {} if kind is UnknownEvent else {"said": payload}
    event = kind(ref=envelope.ref, to=stored.to, fork=envelope.fork, **body_field, **facts)
    record = Record(
        stream,
        version,
        envelope.seq,
        envelope.id,
        stored.at,
        stored.actor or envelope.sender,
        stored.cause or envelope.id,
        envelope.ts,
        envelope.sender,
        event,
        payload,
        envelope.ref,
        envelope.causal_refs,
        envelope.fork,
        stored.to,
    )
    start = body.rindex(stored.said)
    return EncodedRecord(record, body, start, start + len(bytes(stored.said)))


def _event_type(name: str, envelope: StoredEnvelope | None) -> type[Event]:
    """The event class for this kind; UnknownEvent if it cannot have the envelope's payload."""
    kind = EVENTS.get(name, UnknownEvent)
    body_type = _BODY_OF_EVENT.get(kind)
    if body_type is None or envelope is None:
        return kind
    return kind if pvp.BODIES.get(envelope.type) is body_type else UnknownEvent


def _internal_record(
    stream: str, version: int, id: str, source: Record | StoredRecord, event: Event
) -> Record:
    """A record that is never sent, so it has no sender, timestamp or references."""
    return Record(
        stream,
        version,
        0,
        id,
        source.at,
        source.actor,
        source.cause,
        "",
        "",
        event,
        fork=source.fork,
    )


def encode_effect(id: str, at: Instant, message: Message, effect: Relay | ServerNotice) -> bytes:
    """An effect as the frame to send."""
    if isinstance(effect, ServerNotice):
        return pvp.encode_notice(id, at, message.room, effect.body, effect.ref)
    if isinstance(effect.body, Failure):
        return pvp.encode_failure(id, at, message.room, effect.body)
    return pvp.encode_relayed(message)


def encode_replayed(
    at: Instant, room: str, replayed: ReplayedMessage, ref: str | None = None
) -> bytes:
    """A replayed message as the frame to send."""
    return pvp.encode_notice(replayed.id, at, room, replayed.body, ref, replayed.sender)


def encode_with_secret(record: Record, value: str) -> bytes:
    """The frame of a secret with its value, which is never stored."""
    body = record.said and body_with_secret(record.said, value)
    return pvp.encode_frame(replace(record, said=body)) or b""


def body_with_secret(body: Body, value: str) -> Body:
    """The body with the secret's value, for the members who may see it."""
    return replace(body, value_ref=value) if isinstance(body, SecretShare) else body
