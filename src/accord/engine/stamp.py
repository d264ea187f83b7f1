"""Events as records in their place on the log: numbered, sealed and folded, then chained."""

from collections.abc import Iterable, Sequence
from copy import copy

from accord.core.kernel.chain import link
from accord.core.kernel.ids import SYSTEM, derived
from accord.core.kernel.log import Ask, Body, Event, Message, Record
from accord.core.kernel.times import iso
from accord.engine.cell import Cell, Place
from accord.engine.ports import Codec, Row, Sealed


def stamp(codec: Codec, cell: Cell, ask: Ask, events: Sequence[Event]) -> tuple[Sealed, ...]:
    """The records of these events; the cell stands behind the last, or where it was."""
    if len(events) == 1:
        return (stamp_one(codec, cell, ask, events[0]),)
    if not events:
        return ()
    now = copy(cell.place)
    spoken = own_voice(ask.message, events)
    made: list[Sealed] = []
    for place, event in enumerate(events):
        own = place == spoken
        record = said_by(ask, cell, now, event) if own else added_to(ask, cell, now, event, place)
        made.append(codec.seal(record))
        now.state = cell.context.evolve[type(event)](now.state, event, record)
        now.version, now.seq, now.at = record.version, record.seq or now.seq, ask.at
    cell.place = now
    cell.made += made
    cell.index.update((sealed.record.id, sealed) for sealed in made)
    return tuple(made)


def stamp_one(codec: Codec, cell: Cell, ask: Ask, event: Event) -> Sealed:
    """The same for the one event that almost every message leads to, without a copy."""
    now = cell.place
    record = said_by(ask, cell, now, event)
    sealed = codec.seal(record)
    now.state = cell.context.evolve[type(event)](now.state, event, record)
    now.version, now.seq, now.at = record.version, record.seq or now.seq, record.at
    cell.made.append(sealed)
    cell.index[record.id] = sealed
    return sealed


def chained(stream: str, before: bytes, made: Iterable[Sealed]) -> list[Row]:
    """Records as rows, each sealed together with all before it.

    All of a commit in one go: hashing one by one between other work takes twice as long.
    """
    rows: list[Row] = []
    for sealed in made:
        record, body = sealed.record, sealed.body
        before = link(before, body)
        rows.append(Row(stream, record.version, record.id, body, before))
    return rows


def said_by(ask: Ask, cell: Cell, now: Place, event: Event) -> Record:
    """An event as what the sender said: its envelope is the message's."""
    message = ask.message
    said: Body | None = getattr(event, "said", None)
    return Record(
        cell.stream,
        now.version + 1,
        0 if said is None else now.seq + 1,
        message.id,
        ask.at,
        ask.actor.seat,
        message.id,
        message.ts,
        message.sender,
        event,
        said,
        event.ref or message.ref,
        message.causal_refs,
        event.fork or (message.fork if message.body.scoped else None),
        event.to,
    )


def added_to(ask: Ask, cell: Cell, now: Place, event: Event, place: int) -> Record:
    """An event as what the server adds: the `place`th of what the message led to."""
    message = ask.message
    said: Body | None = getattr(event, "said", None)
    return Record(
        cell.stream,
        now.version + 1,
        0 if said is None else now.seq + 1,
        derived(ask.at, cell.stream, message.id, str(place)),
        ask.at,
        ask.actor.seat,
        message.id,
        iso(ask.at),
        SYSTEM,
        event,
        said,
        event.ref,
        (),
        event.fork or (message.fork if message.body.scoped else None),
        event.to,
    )


def own_voice(message: Message, events: Sequence[Event]) -> int:
    """Which of the events is what the sender said; the others are the server's."""
    for place, event in enumerate(events):
        if type(getattr(event, "said", None)) is type(message.body):
            return place
    return 0
