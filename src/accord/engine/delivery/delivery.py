"""Which connections subscribe to a stream, what is written to them, and what happens on a loss."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import repeat
from typing import Any

from accord.core.kernel.actor import PRESENCE_ACTOR, Actor
from accord.core.kernel.context import Context
from accord.core.kernel.effects import DropSecret, Effect, HoldSecret, Relay, ServerNotice
from accord.core.kernel.messages import MemberIds
from accord.core.kernel.records import MembershipChange, Record
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Permission
from accord.engine.chunk_fast_path import ChunkBatchOutcome
from accord.engine.delivery.inactivity import HeartbeatMonitor
from accord.engine.delivery.join_entries import JoinEntry, Joins
from accord.engine.ports import EncodedRecord, EnginePorts
from accord.engine.streams.stream import (
    Outcome,
    Peer,
    Stream,
    Submission,
    SubmitSystemMessage,
    Vault,
)

# Enum lookups cost more than everything else done here for a record.
IN, OUT = MembershipChange.IN, MembershipChange.OUT
NO_PEERS: dict[Peer, None] = {}
# Refusals of the server's own messages that may succeed later.
TRANSIENT_REASONS = frozenset({Reason.UNAVAILABLE, Reason.TOO_MANY})
# The bytes of a message and the members it is for; None: all members.
AddressedFrame = tuple[bytes, MemberIds | None]
RelayListener = Callable[[Stream, Actor, Relay], None]
ALREADY_SENT: AddressedFrame = (b"", frozenset())
# A stream and one of its members.
OnConnections = Callable[[str, str], None]
IsElsewhere = Callable[[str, str], bool]
SendRelays = Callable[[Stream, Outcome, Sequence[AddressedFrame]], list[AddressedFrame]]


class Delivery:
    """Subscriptions of connections to streams, and writing to them.

    A connection in `subscribers` receives every committed record. One in `catching_up` is being
    sent the past; the value is None, or the version at which the member left again.
    """

    def __init__(
        self,
        ports: EnginePorts,
        contexts: Mapping[str, Context[Any]],
        streams: Mapping[str, Stream],
        vault: Vault,
        heartbeat: HeartbeatMonitor,
        submit: SubmitSystemMessage,
    ) -> None:
        self._ports = ports
        self._contexts = contexts
        self._streams = streams
        self._vault = vault
        self._heartbeat = heartbeat
        self._submit = submit
        self.subscribers: dict[str, dict[Peer, None]] = {}
        self.catching_up: dict[str, dict[Peer, int | None]] = {}
        self.streams_of: dict[Peer, set[str]] = {}
        self.unrecorded_absences: set[tuple[str, str]] = set()
        # Called after an act of a member through a connection that is not subscribed.
        self.on_unsubscribed_act: Callable[[Stream, Actor], None] = lambda *_: None
        self.on_subscribe: Callable[[str, Peer], None] = lambda *_: None
        self.on_relay: list[RelayListener] = []
        # Called when a connection begins and ends to receive a stream.
        self.connection_listeners: list[Callable[[str, Peer, bool], None]] = []
        # Set if other servers use the log too.
        self.is_elsewhere: IsElsewhere = lambda *_: False
        self._on_connections: OnConnections | None = None
        self._send_relays: SendRelays | None = None

    def join_group(
        self, is_elsewhere: IsElsewhere, on_connections: OnConnections, send_relays: SendRelays
    ) -> None:
        """There may be connections to other servers."""
        self.is_elsewhere, self._on_connections = is_elsewhere, on_connections
        self._send_relays = send_relays

    # Connections

    def is_subscribed(self, stream: str, peer: Peer) -> bool:
        return peer in self.subscribers.get(stream, ())

    def has_listeners(self, stream: str) -> bool:
        """Whether any connection is subscribed or still catching up."""
        return stream in self.subscribers or stream in self.catching_up

    def connections(self, stream: str) -> list[Peer]:
        """All connections that are subscribed or still catching up."""
        return [*self.subscribers.get(stream, ()), *self.catching_up.get(stream, ())]

    def has_other_runtime(self, stream: str, seat: str, runtime: str) -> bool:
        """Whether this member is connected, or connecting, with another runtime."""
        return any(
            p.principal == seat and p.runtime != runtime for p in self._connected_or_joining(stream)
        )

    def admit_connection(self, stream: str, peer: Peer) -> None:
        """Register a connection; an older one of the same runtime is closed."""
        self.streams_of.setdefault(peer, set()).add(stream)
        for old in self.connections(stream):
            if old is not peer and (old.principal, old.runtime) == (peer.principal, peer.runtime):
                self.unsubscribe(stream, old)
                old.close("replaced by a newer connection")

    def subscribe(self, stream: str, peer: Peer) -> None:
        """Deliver to this connection from now on."""
        self._stop_replay(stream, peer)
        self.subscribers.setdefault(stream, {})[peer] = None
        self.streams_of.setdefault(peer, set()).add(stream)
        self._heartbeat.start(stream, peer.principal)
        self.on_subscribe(stream, peer)
        self._tell_listeners(stream, peer, is_subscribed=True)
        self.report_connections(stream, peer.principal)

    def unsubscribe(self, stream: str, peer: Peer) -> None:
        self.stop_delivery(stream, peer)
        self.streams_of.get(peer, set()).discard(stream)

    def disconnect(self, stream: str, seat: str | None = None) -> None:
        """Close connections that may have missed something; a client reconnects and replays."""
        for peer in self.connections(stream):
            if seat is None or peer.principal == seat:
                self.stop_delivery(stream, peer)
                peer.close("the session was interrupted; join again", reconnect=True)

    def unsubscribe_all(self, stream: str) -> None:
        """Stop delivering an ended session; connections still replaying it may finish."""
        for peer in list(self.subscribers.get(stream, ())):
            self.unsubscribe(stream, peer)
        self._heartbeat.scheduler.set(stream, None)

    def stop_delivery(self, stream: str, peer: Peer) -> None:
        """Stop writing to a connection, which is not closed by this."""
        here = self.subscribers.get(stream, {})
        if peer in here:
            self._tell_listeners(stream, peer, is_subscribed=False)
        here.pop(peer, None)
        if not here:
            self.subscribers.pop(stream, None)
        self._stop_replay(stream, peer)
        self.report_connections(stream, peer.principal)

    def _tell_listeners(self, stream: str, peer: Peer, *, is_subscribed: bool) -> None:
        for listener in self.connection_listeners:
            listener(stream, peer, is_subscribed)

    def report_connections(self, stream: str, seat: str) -> None:
        """A connection of this member was added or removed."""
        if self._on_connections is not None:
            self._on_connections(stream, seat)

    def _stop_replay(self, stream: str, peer: Peer) -> None:
        """Forget a connection that has caught up or is gone."""
        joiners = self.catching_up.get(stream, {})
        joiners.pop(peer, None)
        if not joiners:
            self.catching_up.pop(stream, None)

    def connection_lost(self, peer: Peer) -> None:
        """A connection is gone; a member without another one is disconnected (OPEN-32)."""
        for stream in self.streams_of.pop(peer, set()):
            self.unsubscribe(stream, peer)
            self.mark_absent_if_gone(stream, peer.principal)

    def mark_absent_if_gone(self, stream: str, seat: str) -> None:
        """Record a member as disconnected unless another connection is open or joining."""
        is_here = any(peer.principal == seat for peer in self._connected_or_joining(stream))
        if not is_here and not self.is_elsewhere(stream, seat):
            self.record_absence(stream, seat)

    def _connected_or_joining(self, stream: str) -> Iterator[Peer]:
        """Subscribed connections, and those whose join is not answered yet."""
        yield from self.subscribers.get(stream, ())
        yield from (p for p, left in self.catching_up.get(stream, {}).items() if left is None)
        opened = self._streams.get(stream)
        for submission in opened.unanswered() if opened else ():
            if (
                submission.message.body.needs is Permission.ENTER
                and submission.peer
                and submission.peer.is_connected
            ):
                yield submission.peer

    def record_absence(self, stream: str, seat: str) -> None:
        """Record that this member is disconnected."""
        self._heartbeat.stop(stream, seat)
        context = self._contexts[stream.partition("/")[0]]
        if context.presence.disconnect_body is not None:
            body = context.presence.disconnect_body(seat, self._ports.clock.now())
            self._submit(
                stream, body, PRESENCE_ACTOR, partial(self._on_absence_outcome, stream, seat)
            )

    def _on_absence_outcome(self, stream: str, seat: str, outcome: Outcome) -> None:
        if outcome.refusal is not None and outcome.refusal.reason in TRANSIENT_REASONS:
            self.unrecorded_absences.add((stream, seat))

    def retry_unrecorded_absences(self, stream: str) -> None:
        """The store works again: record the disconnections that could not be recorded."""
        due = {each for each in self.unrecorded_absences if each[0] == stream}
        self.unrecorded_absences -= due
        for _, seat in due:
            self.mark_absent_if_gone(stream, seat)

    # Delivery

    def deliver(
        self, stream: Stream, outbox: Iterable[Outcome | ChunkBatchOutcome]
    ) -> Joins | None:
        """Write all outcomes to the members who may see them, in one write per connection."""
        lines: list[AddressedFrame] = []
        joins = Joins({}, [], [])
        here = self.subscribers.get(stream.id, NO_PEERS)
        heard = self.has_listeners(stream.id)
        for outcome in outbox:
            if isinstance(outcome, ChunkBatchOutcome):
                if outcome.peer in here:
                    lines += zip(outcome.frames(), repeat(outcome.to))
                else:
                    for each in outcome.outcomes():
                        self._distribute(stream, each, lines, joins)
            elif outcome.is_retry or outcome.refusal is not None:
                joins.undelivered.append(outcome)
            elif heard or joins.entering or outcome.effects or outcome.submission.peer is not None:
                self._distribute(stream, outcome, lines, joins)
        self.write_lines(stream.id, lines)
        return joins if joins.entering or joins.left or joins.undelivered else None

    def _distribute(
        self,
        stream: Stream,
        outcome: Outcome,
        lines: list[AddressedFrame],
        joins: Joins,
    ) -> None:
        """Add the frames of one outcome to `lines`; note who joins and remove who leaves."""
        if outcome.effects:
            self._apply_secret_effects(stream, outcome.effects)
        peer = outcome.submission.peer
        if peer is not None and peer not in self.subscribers.get(stream.id, NO_PEERS):
            self._deliver_to_outsider(stream, outcome, peer, joins.entering)
        for encoded in outcome.records:
            record = encoded.record
            event = record.event
            if (frame := encoded.frame) is not None:
                plain = record.fork is None and not event.carries_secret
                lines.append(
                    (frame, record.to) if plain else self._addressed_frame(stream, encoded, lines)
                )
            if event.membership is OUT:
                self.write_lines(stream.id, lines)
                lines.clear()
                self._remove_leaver(stream, record, joins)
        if outcome.effects:
            said = list(self._effect_frames(stream, outcome))
            lines += said if self._send_relays is None else self._send_relays(stream, outcome, said)
            self._deliver_effects_to_outsider(stream.id, peer, said, joins.entering)

    def _addressed_frame(
        self, stream: Stream, encoded: EncodedRecord, before: list[AddressedFrame]
    ) -> AddressedFrame:
        """Frame and audience; a secret is written to each peer now, after all of `before`."""
        record, frame = encoded.record, encoded.frame or b""
        to = (
            record.to
            if record.fork is None
            else stream.context.presence.audience(stream.base.state, record)
        )
        if not record.event.carries_secret:
            return frame, to
        self.write_lines(stream.id, before)
        before.clear()
        for peer in list(self.subscribers.get(stream.id, NO_PEERS)):
            if to is None or peer.principal in to:
                peer.write(peer.join_frames([self._frame_for(stream, encoded, peer)]))
        return ALREADY_SENT

    def _frame_for(self, stream: Stream, encoded: EncodedRecord, peer: Peer) -> bytes:
        """The record for this peer; a secret's value only on a secure connection (PVP 20.3)."""
        record = encoded.record
        if not record.event.carries_secret or not peer.is_secure:
            return encoded.frame or b""
        value = self._vault.value(stream.id, secret_key_of(record))
        return self._ports.codec.encode_with_secret(record, value or "")

    def _apply_secret_effects(self, stream: Stream, effects: Iterable[Effect]) -> None:
        """Hold and drop secret values after the record about them is durable."""
        for effect in effects:
            if isinstance(effect, HoldSecret):
                self._vault.hold(stream.id, effect.key, effect.value)
            elif isinstance(effect, DropSecret):
                self._vault.drop(stream.id, effect.key)

    def _effect_frames(self, stream: Stream, outcome: Outcome) -> Iterator[AddressedFrame]:
        """Frames of relays and notices, which are sent and never stored."""
        codec, clock, new_id, _ = self._ports
        for said in outcome.effects:
            if isinstance(said, Relay | ServerNotice):
                id, at = new_id(), clock.now()
                yield codec.encode_effect(id, at, outcome.submission.message, said), said.to
            if isinstance(said, Relay):
                for listener in self.on_relay:
                    listener(stream, outcome.submission.actor, said)

    def broadcast(self, stream: str, frame: bytes) -> set[str]:
        """Write this to all subscribers; returns who they are."""
        self.write_lines(stream, [(frame, None)])
        return {peer.principal for peer in self.subscribers.get(stream, ())}

    def _deliver_to_outsider(
        self, stream: Stream, outcome: Outcome, peer: Peer, entering: dict[Peer, JoinEntry]
    ) -> None:
        """A sender who is not subscribed joins now, or gets the records of this message only."""
        if peer in entering:
            return
        joiners = self.catching_up.get(stream.id, NO_PEERS)
        comes_in = any(encoded.record.event.membership is IN for encoded in outcome.records)
        if peer in joiners:
            if comes_in:
                joiners[peer] = None
        elif comes_in:
            entering[peer] = join_entry_of(stream, outcome.submission, peer)
        else:
            encoded = [
                s
                for s in until_leave(outcome.records, peer.principal)
                if s.frame and stream.may_see(s.record, peer.principal)
            ]
            mine = [self._frame_for(stream, each, peer) for each in encoded]
            if mine:
                peer.write(peer.join_frames(mine))
            self.on_unsubscribed_act(stream, outcome.submission.actor)

    def _deliver_effects_to_outsider(
        self,
        stream: str,
        peer: Peer | None,
        said: Iterable[AddressedFrame],
        entering: Container[Peer],
    ) -> None:
        """Send the response to a sender who is neither subscribed nor joining."""
        if peer is None or peer in entering or peer in self.connections(stream):
            return
        mine = [frame for frame, to in said if to is not None and peer.principal in to]
        if mine:
            peer.write(peer.join_frames(mine))

    def deliver_foreign(self, stream: Stream, fresh: Iterable[EncodedRecord]) -> None:
        """Deliver records that another process appended."""
        lines: list[AddressedFrame] = []
        for encoded in fresh:
            if encoded.record.event.revokes_secret:
                # The value held here is outdated; a new one is held by the process that received
                # it.
                self._vault.drop(stream.id, secret_key_of(encoded.record))
            if encoded.record.said is not None:
                lines.append(self._addressed_frame(stream, encoded, lines))
            if encoded.record.event.membership is OUT:
                self.write_lines(stream.id, lines)
                lines = []
                self._remove_leaver(stream, encoded.record, Joins({}, [], []))
        self.write_lines(stream.id, lines)

    def write_lines(self, stream: str, lines: list[AddressedFrame]) -> None:
        """Write frames to the subscribers they are for."""
        here = self.subscribers.get(stream)
        if not here or not lines:
            return
        frames = [frame for frame, to in lines if to is None]
        if len(frames) < len(lines):
            self._write_filtered(here, lines)
            return
        joined: dict[type[Peer], bytes] = {}
        for peer in list(here):
            kind = type(peer)
            if (data := joined.get(kind)) is None:
                data = joined[kind] = kind.join_frames(frames)
            peer.write(data)

    def _write_filtered(self, here: Iterable[Peer], lines: list[AddressedFrame]) -> None:
        for peer in list(here):
            mine = [frame for frame, to in lines if to is None or peer.principal in to]
            if mine:
                peer.write(peer.join_frames(mine))

    def _remove_leaver(self, stream: Stream, record: Record, joins: Joins) -> None:
        """A member who left receives nothing that comes after their leave."""
        seat: str = record.event.seat  # type: ignore[attr-defined]  # who goes out has one
        joiners = self.catching_up.get(stream.id, {})
        for peer in [peer for peer in joiners if peer.principal == seat]:
            joiners[peer] = record.version
        for peer in [p for p in self.subscribers.get(stream.id, ()) if p.principal == seat]:
            self.unsubscribe(stream.id, peer)
        for peer in [p for p in joins.entering if p.principal == seat]:
            joins.left.append((joins.entering.pop(peer), record.version))


def join_entry_of(stream: Stream, submission: Submission, peer: Peer) -> JoinEntry:
    """The join entry of a message; its `ref` names the last message the client has (OPEN-37)."""
    ref = submission.message.ref
    last = (stream.index.get(ref) or submission.looked_up.get(ref)) if ref else None
    submission = copy(
        submission
    )  # this one is answered now; a damaged page may have to be reported later
    if last:
        return JoinEntry(peer, last.record.version, submission=submission)
    return JoinEntry(peer, None, ref, ref is None, submission)


def until_leave(records: Iterable[EncodedRecord], seat: str) -> Iterator[EncodedRecord]:
    """The records up to this member's leave, behind which they receive nothing."""
    for encoded in records:
        yield encoded
        event = encoded.record.event
        if event.membership is OUT and event.seat == seat:  # type: ignore[attr-defined]  # as above
            return


def may_see(record: Record, seat: str) -> bool:
    return record.to is None or seat in record.to


def secret_key_of(record: Record) -> str:
    """Key of the secret that a record shares or revokes."""
    return record.said.key  # type: ignore[union-attr, no-any-return]  # such a body has one
