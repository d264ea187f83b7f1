"""Records as stored bytes: the same in every store, and what was sent is part of them.

A stored record is one JSON object; its last key, `said`, holds the envelope exactly as the room
heard it, so replay cuts it out instead of building it again.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Any, get_type_hints

import msgspec
from msgspec import Raw
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from accord.core import people, room
from accord.core.dialects import pvp
from accord.core.kernel.log import (
    Body,
    Event,
    Failure,
    Instant,
    Message,
    Recall,
    Record,
    Say,
    Tell,
    Unknown,
    Unread,
)
from accord.core.provenance import commits
from accord.core.room.secrets import SecretShare
from accord.core.work import mirror

EVENTS: dict[str, type[Event]] = {
    event.name: event
    for context in (room.CONTEXT, people.CONTEXT, commits.CONTEXT, mirror.CONTEXT)
    for event in context.evolve
}
ENVELOPE = frozenset({"said", "ref", "to", "fork"})
MARK = b',"said":'
AFTER = len(MARK)


class Meta(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What only the server knows of a record."""

    kind: str
    at: Instant
    actor: str
    cause: str
    id: str = ""
    to: tuple[str, ...] | None = None
    fact: Any = None
    fork: str | None = None


class Plain(msgspec.Struct, frozen=True, gc=False):
    """A record whose envelope tells everything else."""

    kind: str
    at: Instant
    said: pvp.Sent


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A stored record, read back; an actor or cause that the envelope tells is left out."""

    kind: str
    at: Instant
    actor: str = ""
    cause: str = ""
    id: str = ""
    to: frozenset[str] | None = None
    fact: Raw = Raw(b"{}")
    fork: str | None = None
    said: Raw = Raw()


class Said(msgspec.Struct, frozen=True, gc=False):
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


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """A record with its bytes: as stored, and as sent if it is ever sent."""

    record: Record
    body: bytes
    start: int = 0
    end: int = 0

    @property
    def frame(self) -> bytes | None:
        """The envelope, which is a part of what is stored: cut out when it is asked for."""
        return self.body[self.start : self.end] if self.end else None


def _own_fields(event: type[Event]) -> list[str]:
    return [name for name in event.__struct_fields__ if name not in ENVELOPE]


def _fact_decoder(event: type[Event]) -> "Decoder[Any]":
    hints = get_type_hints(event)
    defaults = {f.name: f.default for f in msgspec.structs.fields(event) if not f.required}
    fields = [
        (name, hints[name], defaults[name]) if name in defaults else (name, hints[name])
        for name in sorted(_own_fields(event), key=lambda name: name in defaults)
    ]
    return Decoder(msgspec.defstruct(f"{event.__name__}Fact", fields))


READABLE: tuple[type[Event], ...] = (*EVENTS.values(), Unknown)
_OWN = {event: _own_fields(event) for event in READABLE}
_FACTS = {event: _fact_decoder(event) for event in READABLE}
# What each event may say; without an entry it says nothing, or anything.
_SAYS: dict[type[Event], type[Body]] = {
    event: said
    for event in EVENTS.values()
    if (said := get_type_hints(event).get("said", Body)) is not Body
}
_BODIES = {name: Decoder(body).decode for name, body in pvp.BODIES.items()}
_PLAIN = frozenset(event for event in EVENTS.values() if not _OWN[event])
_stored = Decoder(Stored).decode
_said = Decoder(Said).decode
_encode = Encoder(order="deterministic").encode


def seal(record: Record) -> Sealed:
    """The bytes to keep and the bytes to send, with the record as these bytes tell it."""
    event, said = record.event, record.said
    if said is not None and _is_plain(record):
        # Cutting out what was encoded with the rest is quicker than putting it in.
        body = pvp.encode(Plain(event.name, record.at, pvp.sent(record, said)))
        return Sealed(record, body, body.index(MARK) + AFTER, len(body) - 1)
    frame = pvp.frame(record)
    own = _OWN[type(event)]
    meta = _encode(
        Meta(
            event.name,
            record.at,
            record.actor,
            record.cause,
            "" if frame else record.id,
            tuple(sorted(record.to)) if record.to is not None else None,
            {name: getattr(event, name) for name in own} if own else None,
            None if frame else record.fork,
        )
    )
    if frame is None:
        return Sealed(_unspoken(record.stream, record.version, record.id, record, event), meta)
    body = b"%b%b%b}" % (meta[:-1], MARK, frame)
    return Sealed(record, body, len(body) - 1 - len(frame), len(body) - 1)


def _is_plain(record: Record) -> bool:
    """Whether the envelope, if there is one, tells all there is to tell but kind and instant."""
    return (
        type(record.event) in _PLAIN
        and record.to is None
        and record.actor == record.sender
        and record.cause == record.id
    )


def seal_alike(records: Sequence[Record]) -> list[Sealed]:
    """The same for records that differ from the first in place, id, time and words alone."""
    first = records[0]
    said = first.said
    if said is None or not _is_plain(first):
        return list(map(seal, records))
    plain = map(Plain, repeat(first.event.name), repeat(first.at), pvp.sent_alike(records, said))
    bodies = list(map(pvp.encode, plain))
    start = bodies[0].index(MARK) + AFTER
    return [
        Sealed(record, body, start, len(body) - 1)
        for record, body in zip(records, bodies, strict=True)
    ]


def unseal(stream: str, version: int, body: bytes) -> Sealed:
    """The record in these stored bytes."""
    stored = _stored(body)
    said = _said(stored.said) if stored.said != Raw() else None
    kind = _kind(stored.kind, said)
    fact = _FACTS[kind].decode(stored.fact)
    facts = {name: getattr(fact, name) for name in _OWN[kind]}
    if said is None:
        event = kind(fork=stored.fork, **facts)
        return Sealed(_unspoken(stream, version, stored.id, stored, event), body)
    read = _BODIES.get(said.type) if kind is not Unknown else None
    heard: Body = read(said.payload) if read else Unread()
    words = {} if kind is Unknown else {"said": heard}
    event = kind(ref=said.ref, to=stored.to, fork=said.fork, **words, **facts)
    record = Record(
        stream,
        version,
        said.seq,
        said.id,
        stored.at,
        stored.actor or said.sender,
        stored.cause or said.id,
        said.ts,
        said.sender,
        event,
        heard,
        said.ref,
        said.causal_refs,
        said.fork,
        stored.to,
    )
    start = body.rindex(stored.said)
    return Sealed(record, body, start, start + len(bytes(stored.said)))


def _kind(name: str, said: Said | None) -> type[Event]:
    """The event of that name, if it can say what was said; else folding passes it by."""
    kind = EVENTS.get(name, Unknown)
    says = _SAYS.get(kind)
    if says is None or said is None:
        return kind
    return kind if pvp.BODIES.get(said.type) is says else Unknown


def _unspoken(stream: str, version: int, id: str, kept: Record | Stored, event: Event) -> Record:
    """A record without a form on the wire has nothing of an envelope but its id and its place."""
    return Record(
        stream, version, 0, id, kept.at, kept.actor, kept.cause, "", "", event, fork=kept.fork
    )


def say(id: str, at: Instant, message: Message, said: Say | Tell) -> bytes:
    """An effect as PVP readers get it."""
    if isinstance(said, Tell):
        return pvp.told(id, at, message.room, said.body, said.ref)
    if isinstance(said.body, Failure):
        return pvp.failure(id, at, message.room, said.body)
    return pvp.relayed(message)


def recall(at: Instant, room: str, recalled: Recall, ref: str | None = None) -> bytes:
    """Something said before, said again."""
    return pvp.told(recalled.id, at, room, recalled.body, ref, recalled.sender)


def whisper(record: Record, value: str) -> bytes:
    """The envelope of a secret with the value that is never kept."""
    said = record.said and whispered(record.said, value)
    return pvp.frame(replace(record, said=said)) or b""


def whispered(body: Body, value: str) -> Body:
    """A secret with its value, on its way to those who may have it."""
    return replace(body, value_ref=value) if isinstance(body, SecretShare) else body
