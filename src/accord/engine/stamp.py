"""Events as records in their place on the log: numbered, sealed, chained and folded."""

from collections.abc import Sequence

import msgspec

from accord.core.kernel.chain import link
from accord.core.kernel.ids import SYSTEM, derived
from accord.core.kernel.log import Ask, Body, Event, Message, Record
from accord.core.kernel.times import iso
from accord.engine.cell import Cell, Place
from accord.engine.ports import Codec, Row, Sealed


class Made(msgspec.Struct, frozen=True, gc=False):
    """What deciding a message made."""

    sealed: tuple[Sealed, ...]
    rows: Sequence[Row]
    after: Place


def stamp(codec: Codec, cell: Cell, ask: Ask, events: list[Event]) -> Made:
    """Events as records in their place, sealed and folded; the cell is left as it was."""
    if len(events) == 1:
        return stamp_one(codec, cell, ask, events[0])
    if not events:
        return Made((), (), cell.place)
    message, actor, at = ask.message, ask.actor, ask.at
    now = cell.place
    state, version, seq, last = now.state, now.version, now.seq, now.hash
    spoken = own_voice(message, events)
    scope = message.fork if message.body.scoped else None
    made: list[Sealed] = []
    rows: list[Row] = []
    for place, event in enumerate(events):
        version += 1
        said: Body | None = getattr(event, "said", None)
        if said is not None:
            seq += 1
        if place == spoken:
            record = Record(
                cell.stream,
                version,
                seq if said is not None else 0,
                message.id,
                at,
                actor.seat,
                message.id,
                message.ts,
                message.sender,
                event,
                said,
                event.ref or message.ref,
                message.causal_refs,
                event.fork or scope,
                event.to,
            )
        else:
            record = Record(
                cell.stream,
                version,
                seq if said is not None else 0,
                derived(at, cell.stream, message.id, str(place)),
                at,
                actor.seat,
                message.id,
                iso(at),
                SYSTEM,
                event,
                said,
                event.ref,
                (),
                event.fork or scope,
                event.to,
            )
        sealed = codec.seal(record)
        last = link(last, sealed.body)
        state = cell.context.evolve[type(event)](state, event, record)
        rows.append(Row(cell.stream, version, record.id, sealed.body, last))
        made.append(sealed)
    return Made(tuple(made), rows, Place(state, version, seq, last, at))


def stamp_one(codec: Codec, cell: Cell, ask: Ask, event: Event) -> Made:
    """The same for the one event that almost every message leads to, without detours."""
    message, at, now, stream = ask.message, ask.at, cell.place, cell.stream
    said: Body | None = getattr(event, "said", None)
    id, version = message.id, now.version + 1
    seq = now.seq if said is None else now.seq + 1
    record = Record(
        stream,
        version,
        0 if said is None else seq,
        id,
        at,
        ask.actor.seat,
        id,
        message.ts,
        message.sender,
        event,
        said,
        event.ref or message.ref,
        message.causal_refs,
        event.fork or (message.fork if message.body.scoped else None),
        event.to,
    )
    sealed = codec.seal(record)
    last = link(now.hash, sealed.body)
    state = cell.context.evolve[type(event)](now.state, event, record)
    row = Row(stream, version, id, sealed.body, last)
    return Made((sealed,), (row,), Place(state, version, seq, last, at))


def own_voice(message: Message, events: list[Event]) -> int:
    """Which of the events is what the sender said; the others are the server's."""
    for place, event in enumerate(events):
        if type(getattr(event, "said", None)) is type(message.body):
            return place
    return 0
