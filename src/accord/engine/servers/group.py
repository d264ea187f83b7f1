"""This server among those on one log: presence across servers, and what it takes over from others.

WHO IS CONNECTED WHERE. Each server claims the members that are connected to it, in the store. A
member is recorded as disconnected by the server that loses the last connection, if no other server
claims the member. What a server that ended has claimed is looked through by all others; the first
record wins, and the rest decides again to nothing.

WHAT IF TWO SEE IT DIFFERENTLY. A server that reads in the log that a member is disconnected who is
connected to it records the return. So a claim that came too late corrects itself.

REFUSALS. What is accepted is checked by its append. A refusal rests on a state that may be a moment
old, so the server reads what is new in the stream and decides again before it refuses.

DEADLINES. A server sets timers for the streams that it has read. When another one ends, the
remaining ones read the streams that it wrote, so that no deadline is forgotten.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Protocol

import msgspec

from accord.core.kernel.actor import PRESENCE_ACTOR
from accord.core.kernel.messages import Instant
from accord.engine.delivery.delivery import Delivery
from accord.engine.delivery.inactivity import HeartbeatMonitor, heartbeat_policy_of
from accord.engine.delivery.joining import JoinHandler
from accord.engine.ports import Claim, Clock, EncodedRecord, Row, ServerLink, StoreError
from accord.engine.scheduling import BackgroundTasks
from accord.engine.servers.bus import SignalBus
from accord.engine.servers.relays import RelayExchange
from accord.engine.streams.stream import Stream, Submission

log = logging.getLogger("accord.servers")

# Streams read at once when another server has ended.
STREAMS_PER_BATCH = 32
CLAIM_TOPIC, SEEN_TOPIC = "claim", "seen"


class ClaimSignal(msgspec.Struct, frozen=True, array_like=True):
    """A server has, or no longer has, a connection of this member."""

    stream: str
    member: str
    is_here: bool


class SeenSignal(msgspec.Struct, frozen=True, array_like=True):
    """For how long a member has been silent, who is connected to several servers."""

    stream: str
    member: str
    silence_ms: int


class GroupEngine(Protocol):
    """The parts of the engine that the group works with."""

    delivery: Delivery
    joining: JoinHandler
    heartbeat: HeartbeatMonitor
    streams: dict[str, Stream]
    tasks: BackgroundTasks
    clock: Clock

    def fall_behind(self, stream: Stream, version: int) -> None:
        """The log has this version; catch up with it."""
        ...

    async def review_presence(self, stream: str) -> None:
        """Record members as disconnected who are connected nowhere, and arm the deadlines."""
        ...


class ServerGroup:
    """Connects an engine with the other servers on its log."""

    def __init__(self, link: ServerLink, engine: GroupEngine) -> None:
        self.link = link
        self.bus = SignalBus(link)
        self._engine = engine
        self._elsewhere: dict[int, set[Claim]] = {}
        self._claimed: set[Claim] = set()
        self._written_elsewhere: set[str] = set()
        self._is_handing_over = False
        self.change_listeners: list[Callable[[], None]] = []
        self.unopened_row_listeners: list[Callable[[Row], None]] = []
        self.relays = RelayExchange(
            self.bus, engine.delivery, engine.streams, engine.fall_behind, self._on_activity
        )
        self.bus.subscribe(CLAIM_TOPIC, self._on_claim)
        self.bus.subscribe(SEEN_TOPIC, self._on_seen)
        engine.delivery.join_group(self.is_elsewhere, self._on_connections, self.relays.send)
        engine.heartbeat.report_silence = self._report_silence

    async def start(self) -> None:
        """Become one of the servers, and learn who is connected to the others."""
        await self.link.start(self)

    def is_elsewhere(self, stream: str, member: str) -> bool:
        """Whether the member is connected to another server, as far as is known here."""
        claim = (stream, member)
        return self._is_handing_over or any(claim in c for c in self._elsewhere.values())

    async def stop(self) -> None:
        """Leave the group; if others remain, they wait for the members to come back to them."""
        await self.link.stop(hand_over=self._is_handing_over)

    def hand_over(self) -> None:
        """Before the connections are closed: record no one as disconnected, others will."""
        self._is_handing_over = bool(self.link.others)

    # What the engine tells

    def is_current(self, stream: Stream, submission: Submission) -> bool:
        """Whether a refusal rests on a state that no other server can have changed meanwhile.

        If records are pending, their append finds that out, and the refusal waits for it. A message
        is looked at twice at most, so the answer after catching up is yes. Also of a server that
        knows of no other: one that has just started is known a second later.
        """
        if submission.is_confirmed or stream.pending_records:
            return True
        submission.is_confirmed = True
        return False

    def _on_connections(self, stream: str, member: str) -> None:
        """A connection of this member began or ended."""
        claim = (stream, member)
        is_here = any(p.principal == member for p in self._engine.delivery.connections(stream))
        if is_here is (claim in self._claimed) or (self._is_handing_over and not is_here):
            return
        if is_here:
            self._claimed.add(claim)
            self.link.claim(claim)
        else:
            self._claimed.discard(claim)
            self.link.release(claim)
        self.bus.publish(CLAIM_TOPIC, ClaimSignal(stream, member, is_here))

    def on_unopened_rows(self, rows: Sequence[Row]) -> None:
        """Rows of streams that are not in memory here, so another server wrote them."""
        self._written_elsewhere.update(row.stream for row in rows)
        for row in rows:
            for listener in self.unopened_row_listeners:
                listener(row)

    def on_foreign_records(self, stream: Stream, fresh: Sequence[EncodedRecord]) -> None:
        """Records of other servers were delivered."""
        for member in {encoded.record.actor for encoded in fresh} & stream.last_seen.keys():
            self._on_activity(stream, member)
        if any(encoded.record.actor == PRESENCE_ACTOR.principal for encoded in fresh):
            self._correct_presence(stream)
        self.relays.on_caught_up(stream)

    def _correct_presence(self, stream: Stream) -> None:
        """Members who are connected here are not disconnected."""
        here = {peer.principal for peer in self._engine.delivery.connections(stream.id)}
        for member in here.difference(stream.context.presence.connected_members(stream.base.state)):
            self._engine.joining.record_return(stream, member)

    def _report_silence(self, stream: str, member: str, silence_ms: int) -> None:
        if self.is_elsewhere(stream, member):
            self.bus.publish(SEEN_TOPIC, SeenSignal(stream, member, silence_ms))

    # What the other servers tell

    def on_signals(self, sender: int, text: bytes) -> None:
        """Signals arrived."""
        self.bus.receive(sender, text)

    def on_claims(self, claims: Mapping[int, set[Claim]]) -> None:
        """Who is connected to which other server."""
        self._elsewhere = dict(claims)

    def on_servers_changed(self) -> None:
        """A server came or went."""
        log.info("servers.changed", extra={"count": len(self.link.others) + 1})
        for listener in self.change_listeners:
            listener()

    def on_server_ended(self, server: int) -> None:
        """Record its members as disconnected, unless they are connected somewhere else."""
        log.warning("server.ended", extra={"server": server})
        claims = self._elsewhere.pop(server, set())
        streams = {stream for stream, _ in claims} | self._written_elsewhere
        self._written_elsewhere = set()
        self._engine.tasks.spawn(self._review(streams | self._engine.streams.keys()))

    def on_link_lost(self) -> None:
        """Signals may be lost."""
        self.relays.deliver_all()

    async def _review(self, streams: set[str]) -> None:
        left = iter(sorted(streams))
        while batch := list(islice(left, STREAMS_PER_BATCH)):
            for stream in batch:
                with suppress(StoreError):
                    await self._engine.review_presence(stream)
            await asyncio.sleep(0)

    def _on_claim(self, server: int, content: msgspec.Raw) -> None:
        signal = msgspec.json.decode(content, type=ClaimSignal)
        claims = self._elsewhere.setdefault(server, set())
        change = claims.add if signal.is_here else claims.discard
        change((signal.stream, signal.member))

    def _on_seen(self, _server: int, content: msgspec.Raw) -> None:
        signal = msgspec.json.decode(content, type=SeenSignal)
        stream = self._engine.streams.get(signal.stream)
        if stream is not None and signal.member in stream.last_seen:
            at = self._engine.clock.now() - signal.silence_ms
            policy = heartbeat_policy_of(stream)
            if policy is not None and signal.silence_ms < policy.idle_after_ms:
                self._on_activity(stream, signal.member, at)

    def _on_activity(self, stream: Stream, member: str, at: Instant | None = None) -> None:
        """The member acted on another server."""
        if member in stream.last_seen:
            at = self._engine.clock.now() if at is None else at
            stream.last_seen[member] = max(at, stream.last_seen[member])
            self._engine.heartbeat.end_inactivity(stream, member)
