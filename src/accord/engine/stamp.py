"""Events as records in their place on the log: numbered, sealed and folded, then chained."""

from collections.abc import Sequence
from copy import copy

from accord.core.kernel.chain import link
from accord.core.kernel.ids import SYSTEM, derived
from accord.core.kernel.log import Body, Event, Message, Record
from accord.core.kernel.times import iso
from accord.engine.cell import Asked, Cell, Place
from accord.engine.ports import Codec, Row, Sealed


def stamp(codec: Codec, cell: Cell, asked: Asked, events: Sequence[Event]) -> tuple[Sealed, ...]:
    """The records of these events; the cell stands behind the last, or where it was."""
    if len(events) == 1:
        return (stamp_one(codec, cell, asked, events[0]),)
    if not events:
        return ()
    now = copy(cell.place)
    spoken = own_voice(asked.message, events)
    made: list[Sealed] = []
    for place, event in enumerate(events):
        own = place == spoken
        record = (
            said_by(asked, cell, now, event) if own else added_to(asked, cell, now, event, place)
        )
        made.append(codec.seal(record))
        now.state = cell.context.evolve[type(event)](now.state, event, record)
        now.version, now.seq, now.at = record.version, record.seq or now.seq, record.at
    cell.place = now
    cell.made += made
    cell.index.update((sealed.record.id, sealed) for sealed in made)
    return tuple(made)


def stamp_one(codec: Codec, cell: Cell, asked: Asked, event: Event) -> Sealed:
    """The same for the one event that almost every message leads to, without a copy."""
    now = cell.place
    record = said_by(asked, cell, now, event)
    sealed = codec.seal(record)
    now.state = cell.context.evolve[type(event)](now.state, event, record)
    now.version, now.seq, now.at = record.version, record.seq or now.seq, record.at
    cell.made.append(sealed)
    cell.index[record.id] = sealed
    return sealed


def chained(stream: str, before: bytes, made: Sequence[Sealed]) -> list[Row]:
    """Records as rows, each sealed together with all before it.

    All of a commit in one go: hashing one by one between other work takes twice as long.
    """
    rows = []
    for sealed in made:
        record, body = sealed.record, sealed.body
        before = link(before, body)
        rows.append(Row(stream, record.version, record.id, body, before))
    return rows


def said_by(asked: Asked, cell: Cell, now: Place, event: Event) -> Record:
    """An event as what the sender said: its envelope is the message's."""
    message = asked.message
    said: Body | None = getattr(event, "said", None)
    return Record(
        cell.stream,
        now.version + 1,
        0 if said is None else now.seq + 1,
        message.id,
        asked.at,
        asked.actor.seat,
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


def added_to(asked: Asked, cell: Cell, now: Place, event: Event, place: int) -> Record:
    """An event as what the server adds: the `place`th of what the message led to."""
    message = asked.message
    said: Body | None = getattr(event, "said", None)
    return Record(
        cell.stream,
        now.version + 1,
        0 if said is None else now.seq + 1,
        derived(asked.at, cell.stream, message.id, str(place)),
        asked.at,
        asked.actor.seat,
        message.id,
        iso(asked.at),
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
