"""Decides messages one at a time, ahead of the commit.

THE PROBLEM. A commit waits for the disk, which takes far longer than deciding a message. If every
message waited for the commit of the one before it, the disk would limit each session to a few
hundred messages a second. So the engine decides ahead: message N+1 is decided against the state
that message N leads to, before N is durable. All messages decided during one commit share the next.

VALUES OUT. `Decider.decide` knows the codec, the clock and the policy of the server, and no other
part of the engine. It reads and advances one stream, and returns a value: an `Outcome`,
`RecordsNeeded`, or `SenderReturned`. `Engine._decide` is the only caller. It does what the value
says: it posts the outcome to the committer, looks records up, or records that the sender is active
again. So deciding does no I/O and calls nothing that could decide another message meanwhile.

WHAT IS AHEAD. A stream has two positions. `stream.base` is durable. `stream.tip` is `base` plus
everything decided since. Rules read the state of `tip`; new records are stamped with the next
version, `seq` and time of `tip`, are folded into its state at once, and are added to
`pending_records` (to be stored) and `index` (so that a retry finds them). Nothing of this is
visible outside: the engine answers the sender and delivers to readers after the commit. A refusal
waits as well, since it may rest on records that are not durable yet.

WHEN AHEAD WAS WRONG. Another process may append to the same stream first. The append then raises
Conflict, the engine drops everything beyond `base`, folds the foreign records, and puts the
messages back into `stream.queue` in their old order, to be decided again. That works because
deciding has no side effects: effects such as relays and secrets are carried out after the commit.
If the store fails, everything beyond `base` is refused.

RECORDS THAT ARE NOT IN MEMORY. Only the newest records of a stream are in memory (the window). A
command sometimes needs an older one: it cites a message (`ref`, `causal_refs`), or it is refused
and could be a retry of a message that was accepted long ago, which must get its first outcome and
not a refusal (OPEN-36). Deciding is synchronous, so it cannot wait for the disk. Instead:

1. `decide` returns `RecordsNeeded` with the ids. Nothing was changed.

2. `Engine._decide` puts the message at the FRONT of `stream.queue` and holds the stream
(`hold_count`). While a stream is held, new messages queue up behind it, so their order is kept.

3. `StreamCache.look_up` reads the records and stores them in `submission.looked_up`, with None for
an id that does not exist. It runs concurrently with commits of the same stream.

4. When the hold ends, the engine decides the queue from the front. The parked message finds its
records in `looked_up` and does not ask again, because an id that is known to be missing is there
too. So a message is never parked twice for the same id.

A SENDER WHO WAS INACTIVE. Their return is recorded before what they send. Recording it is a message
of its own, so `decide` returns `SenderReturned` once the rules accept the message and before
anything is stamped. The engine submits the return and decides the message again.

Each of these paths ends in exactly one `Outcome` for each message, also when the rules raise an
unexpected exception. A sender is therefore always answered.
"""

import logging
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import msgspec

from accord.core.kernel.context import Command, EventOrEffect
from accord.core.kernel.effects import Effect
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body, Instant, Lifetime, Message
from accord.core.kernel.records import Event, Record, server_record_id
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.engine.chunk_fast_path import append_chunk, remember_chunk
from accord.engine.ports import Clock, Codec, EncodedRecord
from accord.engine.streams.stream import Outcome, Stream, StreamPosition, Submission

log = logging.getLogger("accord.engine")

# Enum lookups are slow, and these are needed for every message.
SERVER, SIGNAL = Kind.SYSTEM, Lifetime.SIGNAL
NO_RECORDS: Mapping[str, Record] = {}


class RecordsNeeded(msgspec.Struct, frozen=True):
    """Records outside the window are needed to decide a message; nothing was changed."""

    ids: tuple[str, ...]


class SenderReturned(msgspec.Struct, frozen=True):
    """The sender was inactive, which has to be recorded as ended before the message is stamped."""

    seat: str


Decision = Outcome | RecordsNeeded | SenderReturned


class Decider:
    """Decides messages against the tip of their stream."""

    def __init__(self, codec: Codec, clock: Clock, policy: Any) -> None:
        self._codec = codec
        self._clock = clock
        self._policy = policy

    def decide(self, stream: Stream, submission: Submission) -> Decision:
        """The outcome of this message, or what has to happen before it can be decided."""
        message = submission.message
        chunks = stream.chunk_streams.get(message.ref) if message.body.is_chunk else None
        try:
            now = self._clock.now() + stream.clock_ahead
            if chunks is not None and chunks.matches(stream, submission):
                return Outcome(
                    submission, (append_chunk(self._codec, stream, chunks, message, now),)
                )
            return self._decide_by_rules(stream, submission, now)
        except Refused as refusal:
            if self._may_be_old_retry(stream, submission):
                return RecordsNeeded((message.id,))
            repeated = self._repeated_outcome(stream, submission, refusal.may_repeat)
            return repeated or Outcome(submission, refusal=refusal)
        except Exception:
            about = {"stream": stream.id, "type": message.body.type}
            log.exception("decide.failed", extra=about)
            detail = "The server failed to handle this; nothing was changed, its log says why"
            return Outcome(submission, refusal=Refused(Reason.INTERNAL, detail))

    def _may_be_old_retry(self, stream: Stream, submission: Submission) -> bool:
        """Whether a refused message could be a retry of one older than the window (OPEN-36)."""
        id = submission.message.id
        known = id in stream.index or id in submission.looked_up or submission.actor.kind is SERVER
        return not known and stream.base.version > len(stream.window)

    def _repeated_outcome(
        self, stream: Stream, submission: Submission, id: str
    ) -> Outcome | RecordsNeeded | None:
        """The outcome of the sender's earlier message `id`, if this one has the same content."""
        if not id:
            return None
        before = stream.index.get(id) or submission.looked_up.get(id)
        if before is None:
            return None if id in submission.looked_up else RecordsNeeded((id,))
        said, sender = before.record.said, before.record.actor
        is_same = said is not None and submission.message.body.is_retry_of(said)
        if not is_same or sender != submission.actor.principal:
            return None
        return self._outcome_again(stream, submission, before)

    def _decide_by_rules(self, stream: Stream, submission: Submission, now: Instant) -> Decision:
        message, actor = submission.message, submission.actor
        before = stream.index.get(message.id) or submission.looked_up.get(message.id)
        if before is not None:
            return self._first_outcome(stream, submission, before)
        seat = actor.principal
        if message.sender != seat and actor.kind is not SERVER:
            detail = f"The sender is {message.sender}, but you are authenticated as {seat}"
            raise Refused(Reason.CLAIM_MISMATCH, detail)
        submission.decided_at = at = max(now, stream.tip.at)
        facts = self._apply_rules(stream, submission)
        if isinstance(facts, RecordsNeeded):
            return facts
        stream.last_seen[seat] = at
        if seat in stream.inactive:
            return SenderReturned(seat)
        if message.body.is_chunk:
            remember_chunk(stream, message, actor, facts)
        if len(facts) == 1 and isinstance(event := facts[0], Event):
            return Outcome(submission, (stamp_one(self._codec, stream, submission, event),))
        return self._outcome_of_many(stream, submission, facts)

    def _apply_rules(
        self, stream: Stream, submission: Submission
    ) -> tuple[EventOrEffect, ...] | RecordsNeeded:
        """Run the rules of the context on a message."""
        message, actor, context = submission.message, submission.actor, stream.context
        ask = Command(message, actor, submission.decided_at, NO_RECORDS, self._policy)
        state, ref, body = stream.tip.state, message.ref, message.body
        context.admit(state, ask)
        vouched = ref is None or context.knows_id(state, ref, actor.principal)
        if message.causal_refs or body.cites_others or not vouched:
            cited = self._cited_records(stream, submission)
            if isinstance(cited, RecordsNeeded):
                return cited
            ask.cited_records = cited
        return tuple(context.decide[type(body)](state, ask, body))

    def _outcome_of_many(
        self, stream: Stream, submission: Submission, facts: tuple[EventOrEffect, ...]
    ) -> Outcome:
        """The outcome of a message with no event, with several, or with effects."""
        events = [fact for fact in facts if isinstance(fact, Event)]
        says = tuple(fact for fact in facts if isinstance(fact, Effect))
        if says and not events and submission.message.body.lifetime is SIGNAL:
            stream.remember_signal(submission.message)
        return Outcome(submission, stamp(self._codec, stream, submission, events), says)

    def _cited_records(
        self, stream: Stream, submission: Submission
    ) -> Mapping[str, Record] | RecordsNeeded:
        """The records a message cites; each must exist and be visible to its sender (OPEN-35)."""
        message, seat = submission.message, submission.actor.principal
        if message.body.free_ref:
            return NO_RECORDS
        cited = set(message.body.cited_ids())
        named = {*message.causal_refs, *((message.ref,) if message.ref else ())}
        state, knows = stream.tip.state, stream.context.knows_id
        vouched = {
            id for id in named if stream.has_signal(id, message.fork) or knows(state, id, seat)
        }
        found: dict[str, Record] = {}
        missing: list[str] = []
        for name in cited | (named - vouched):
            encoded = stream.index.get(name) or submission.looked_up.get(name)
            if encoded is None or not is_visible(stream, encoded, seat):
                missing.append(name)
            else:
                found[name] = encoded.record
        if missing:
            unseen = tuple(
                n for n in missing if n not in submission.looked_up and n not in stream.index
            )
            if unseen:
                return RecordsNeeded(unseen)
            detail = f"No such message here: {', '.join(sorted(missing))}"
            raise Refused(Reason.MALFORMED, detail, {"unknown": sorted(missing)})
        return found

    def _first_outcome(
        self, stream: Stream, submission: Submission, before: EncodedRecord
    ) -> Outcome:
        """A retry gets its first outcome; the same id for another message is refused (OPEN-36)."""
        record, body = before.record, submission.message.body
        state = stream.tip.state
        same_sender = (
            record.actor == submission.actor.principal
            and stream.context.presence.is_member(state, submission.actor)
        )
        if not same_sender:  # a non-member learns that, and not whether the id exists
            now = self._clock.now()
            ask = Command(submission.message, submission.actor, now, NO_RECORDS, self._policy)
            stream.context.admit(state, ask)
        if not same_sender or (record.said is not None and not body.is_retry_of(record.said)):
            detail = (
                f"The id {submission.message.id} was already used for another message; use a new id"
            )
            raise Refused(Reason.KEY_REUSED, detail)
        return self._outcome_again(stream, submission, before)

    def _outcome_again(
        self, stream: Stream, submission: Submission, before: EncodedRecord
    ) -> Outcome:
        """What the message of this record led to, as far as its sender may still see it."""
        cause = before.record.cause
        first = [s for s in stream.index.values() if s.record.cause == cause]
        first.sort(key=lambda encoded: encoded.record.version)
        again = tuple(s for s in first if is_visible(stream, s, submission.actor.principal)) or (
            before,
        )
        return Outcome(submission, again, is_retry=True)


def is_visible(stream: Stream, encoded: EncodedRecord, seat: str) -> bool:
    """Whether this member may see the record, with everything decided so far."""
    to = stream.context.presence.audience(stream.tip.state, encoded.record)
    return encoded.record.said is not None and (to is None or seat in to)


# Events become records: numbered, encoded, and folded into the tip


def stamp(
    codec: Codec, stream: Stream, submission: Submission, events: Sequence[Event]
) -> tuple[EncodedRecord, ...]:
    """Records of these events; advances the tip behind the last one, or leaves it on an error."""
    if len(events) == 1:
        return (stamp_one(codec, stream, submission, events[0]),)
    if not events:
        return ()
    now = copy(stream.tip)
    spoken = sender_event_index(submission.message, events)
    made: list[EncodedRecord] = []
    for place, event in enumerate(events):
        own = place == spoken
        record = (
            sender_record(submission, stream, now, event)
            if own
            else server_record(submission, stream, now, event, place)
        )
        made.append(codec.encode_record(record))
        now.state = stream.context.evolve[type(event)](now.state, event, record)
        now.version, now.seq, now.at = record.version, record.seq or now.seq, record.at
    stream.tip = now
    stream.pending_records += made
    stream.index.update((encoded.record.id, encoded) for encoded in made)
    return tuple(made)


def stamp_one(codec: Codec, stream: Stream, submission: Submission, event: Event) -> EncodedRecord:
    """The same for a single event, the usual case, without copying the position."""
    now = stream.tip
    record = sender_record(submission, stream, now, event)
    encoded = codec.encode_record(record)
    now.state = stream.context.evolve[type(event)](now.state, event, record)
    now.version, now.seq, now.at = record.version, record.seq or now.seq, record.at
    stream.pending_records.append(encoded)
    stream.index[record.id] = encoded
    return encoded


def sender_record(
    submission: Submission, stream: Stream, now: StreamPosition, event: Event
) -> Record:
    """The record of the sender's own message, with its id and time."""
    message = submission.message
    said: Body | None = getattr(event, "said", None)
    return Record(
        stream.id,
        now.version + 1,
        0 if said is None else now.seq + 1,
        message.id,
        submission.decided_at,
        submission.actor.principal,
        message.id,
        message.ts,
        message.sender,
        event,
        said,
        event.ref or message.ref,
        message.causal_refs,
        event.fork or (message.fork if message.body.forkable else None),
        event.to,
    )


def server_record(
    submission: Submission, stream: Stream, now: StreamPosition, event: Event, place: int
) -> Record:
    """A record that the server adds: number `place` of what the message led to."""
    message = submission.message
    said: Body | None = getattr(event, "said", None)
    return Record(
        stream.id,
        now.version + 1,
        0 if said is None else now.seq + 1,
        server_record_id(submission.decided_at, stream.id, message.id, place),
        submission.decided_at,
        submission.actor.principal,
        message.id,
        to_iso(submission.decided_at),
        SYSTEM,
        event,
        said,
        event.ref,
        (),
        event.fork or (message.fork if message.body.forkable else None),
        event.to,
    )


def sender_event_index(message: Message, events: Sequence[Event]) -> int:
    """Index of the event that carries the sender's message; the others are the server's."""
    for place, event in enumerate(events):
        if type(getattr(event, "said", None)) is type(message.body):
            return place
    return 0
