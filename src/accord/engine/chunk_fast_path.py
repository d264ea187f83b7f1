"""When a chunk may skip the rules, and why that is safe.

A streamed answer arrives as hundreds of chunks. Each would run the full rules: membership,
permissions, forks, interrupts, cited records. Almost always the rules give the result they gave for
the chunk before, so the engine remembers that result and reuses it.

Reuse is safe because deciding is a pure function. `decide(state, command)` reads nothing but the
state of the stream, the message, the actor, the cited records and the server policy, which does not
change while a process runs. If all of these are the same as for an earlier chunk, except for the
chunk's own text and id, then the result is the same too, except for that text and id. So nothing is
predicted here; a result is used a second time.

A `ChunkStream` is remembered for a chunk (`remember_chunk`) only if the rules turned it into
exactly one event that carries the body unchanged, and that event changes no state (its evolver is
`unchanged`). So one chunk never invalidates the result for the next one.

A later message reuses the result only if `matches` holds:

- The state is the same object (`is`, not `==`). Evolving builds a new object for every change, so
identity proves that no event with an effect was decided since: no member left, no permission was
revoked, no interrupt arrived, no answer was closed.

- The actor is the same object. A new connection or a new token makes a new actor, with rights that
have to be checked.

- Sender, body type and fork are equal. `ref` is equal too, since chunk streams are found by it.

- The message cites nothing. Citations are looked up and checked for each message.

- The id is new. A known id is a retry, which gets its first outcome instead of a second record.

- The sender is not marked inactive. Otherwise a record of their return comes first.

If one of these fails, the chunk takes the ordinary path, which then remembers a new result. The
fast path never refuses anything, so an error in `matches` that is too strict costs time only. After
every commit that changed the state the remembered results are dropped; that saves memory and is not
needed for correctness.

Chunks of one answer that arrive in one read of the socket go one step further: `decide_batch`
stamps and encodes all of them together. It requires besides that all ids differ from each other.
The engine calls it only if nothing is queued before them and the store is not behind
(`Engine.submit_chunks`), and posts the outcome that it returns.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, repeat
from typing import Any, TypeGuard

import msgspec

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Context, EventOrEffect, unchanged
from accord.core.kernel.messages import Body, ChunkBatch, Instant, MemberIds, Message
from accord.core.kernel.records import Event, Record
from accord.engine.ports import Codec, EncodedRecord
from accord.engine.streams.stream import (
    OnOutcome,
    Outcome,
    Peer,
    Stream,
    StreamPosition,
    Submission,
)

MAX_CHUNK_STREAMS = 64


class ChunkStream(msgspec.Struct, frozen=True, gc=False):
    """The result of the last chunk of one answer, and the inputs that it was decided from."""

    state: Any
    actor: Actor
    body_type: type[Body]
    fork: str | None  # as in the message
    event: Callable[..., Event]
    ref: str | None  # this and the next two as in the event
    to: MemberIds | None
    event_fork: str | None
    record_ref: str | None  # this and the next one as in the record
    record_fork: str | None
    is_simple: bool  # not in a fork, carries no secret, changes no membership

    @classmethod
    def from_chunk(cls, state: Any, message: Message, actor: Actor, event: Event) -> "ChunkStream":
        """Remember what the rules made of this message."""
        body = message.body
        within = event.fork or (message.fork if body.forkable else None)
        plain = within is None and not event.carries_secret and event.membership is None
        into = (event.ref, event.to, event.fork)
        record = (event.ref or message.ref, within)
        return cls(state, actor, type(body), message.fork, type(event), *into, *record, plain)

    def matches(self, stream: Stream, submission: Submission) -> bool:
        """Whether the rules would give the same result; see the top of this file."""
        message, sender = submission.message, submission.message.sender
        return (
            self.state is stream.tip.state
            and self.actor is submission.actor
            and self.actor.principal == sender
            and self.body_type is type(message.body)
            and self.fork == message.fork
            and not message.causal_refs
            and not submission.looked_up
            and message.id not in stream.index
            and sender not in stream.inactive
        )

    def record(self, stream: str, now: StreamPosition, message: Message, at: Instant) -> Record:
        """The record of one more chunk."""
        id, sender, body = message.id, message.sender, message.body
        return Record(
            stream,
            now.version + 1,
            now.seq + 1,
            id,
            at,
            sender,
            id,
            message.ts,
            sender,
            self.event(said=body, ref=self.ref, to=self.to, fork=self.event_fork),
            body,
            self.record_ref,
            (),
            self.record_fork,
            self.to,
        )

    def records(
        self, stream: str, now: StreamPosition, batch: ChunkBatch, at: Instant
    ) -> list[Record]:
        """The records of several chunks; built by `map` because this runs for every chunk."""
        event, ref, to, into = self.event, self.ref, self.to, self.event_fork
        ids, bodies, sender = batch.ids, batch.bodies, batch.first.sender
        return list(
            map(
                Record,
                repeat(stream),
                count(now.version + 1),
                count(now.seq + 1),
                ids,
                repeat(at),
                repeat(sender),
                ids,
                batch.times,
                repeat(sender),
                [event(said=body, ref=ref, to=to, fork=into) for body in bodies],
                bodies,
                repeat(self.record_ref),
                repeat(()),
                repeat(self.record_fork),
                repeat(to),
            )
        )


class ChunkBatchOutcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a batch: one record per chunk, none of which changes membership.

    The sender receives the records through the session, and is answered only on a refusal.
    """

    batch: ChunkBatch
    actor: Actor
    on_outcome: OnOutcome
    peer: Peer
    records: Sequence[EncodedRecord]
    to: MemberIds | None

    def frames(self) -> list[bytes]:
        """What subscribers receive; sliced here because a property call each is too slow."""
        return [each.body[each.start : each.end] for each in self.records]

    def submissions(self) -> Iterator[Submission]:
        for message in self.batch.messages():
            yield Submission(message, self.actor, self.on_outcome, self.peer)

    def outcomes(self) -> Iterator[Outcome]:
        for submission, encoded in zip(self.submissions(), self.records, strict=True):
            yield Outcome(submission, (encoded,))


def remember_chunk(
    stream: Stream, message: Message, actor: Actor, facts: tuple[EventOrEffect, ...]
) -> None:
    """Remember what the rules made of this chunk, if later chunks may reuse it."""
    if len(facts) != 1 or not changes_no_state(fact := facts[0], message.body, stream.context):
        return
    if len(stream.chunk_streams) >= MAX_CHUNK_STREAMS:
        stream.chunk_streams.clear()
    stream.chunk_streams[message.ref] = ChunkStream.from_chunk(
        stream.tip.state, message, actor, fact
    )


def changes_no_state(fact: EventOrEffect, body: Body, context: Context[Any]) -> TypeGuard[Event]:
    """Whether the event only records the message and changes no state."""
    said = getattr(fact, "said", None) is body
    return said and isinstance(fact, Event) and context.evolve[type(fact)] is unchanged


def append_chunk(
    codec: Codec, stream: Stream, chunks: ChunkStream, message: Message, now: Instant
) -> EncodedRecord:
    """Append one more chunk with the result of the one before; skips the rules."""
    place = stream.tip
    record = chunks.record(stream.id, place, message, max(now, place.at))
    encoded = codec.encode_record(record)
    stream.last_seen[record.actor] = place.at = record.at
    place.version, place.seq = record.version, record.seq
    stream.pending_records.append(encoded)
    stream.index[record.id] = encoded
    return encoded


def append_chunks(
    codec: Codec, stream: Stream, chunks: ChunkStream, batch: ChunkBatch, now: Instant
) -> Sequence[EncodedRecord]:
    """Append a batch of chunks; slower than `append_chunk` for a single one."""
    place = stream.tip
    records = chunks.records(stream.id, place, batch, max(now, place.at))
    encoded = codec.encode_similar_records(records)
    last = records[-1]
    stream.last_seen[last.actor] = place.at = last.at
    place.version, place.seq = last.version, last.seq
    stream.pending_records += encoded
    stream.index.update(zip(batch.ids, encoded, strict=True))
    return encoded


def decide_batch(
    codec: Codec,
    stream: Stream,
    batch: ChunkBatch,
    actor: Actor,
    on_outcome: OnOutcome,
    peer: Peer,
    now: Instant,
) -> ChunkBatchOutcome | None:
    """Append the batch; None: nothing was done, decide the chunks one by one."""
    chunks, ids = stream.chunk_streams.get(batch.first.ref), batch.ids
    if (
        chunks is None
        or not chunks.is_simple
        or not chunks.matches(stream, Submission(batch.first, actor))
        or not stream.index.keys().isdisjoint(ids)
        or len(set(ids)) < len(ids)
    ):
        return None
    try:
        encoded = append_chunks(codec, stream, chunks, batch, now)
    except Exception:  # noqa: BLE001 - the ordinary path meets it again and answers
        return None
    return ChunkBatchOutcome(batch, actor, on_outcome, peer, encoded, chunks.to)
