"""Presence of members without a lasting connection: they are present while they keep acting."""

import asyncio
from collections import OrderedDict

from accord.core.kernel.actor import Actor
from accord.core.room.state import Room
from accord.engine.delivery.inactivity import heartbeat_policy_of
from accord.engine.engine import Engine
from accord.engine.scheduling import Scheduler
from accord.engine.streams.stream import Peer, Stream
from accord.transports.http.auth import HTTP_RUNTIME

MAX_POLLING_MEMBERS = 10_000


class PollingMember:
    """A peer for a member without a connection; it reads from the log, so nothing is sent to it."""

    def __init__(self, presence: "PollingPresence", stream: str, seat: str) -> None:
        self.presence = presence
        self.stream = stream
        self.principal = seat
        self.runtime = HTTP_RUNTIME
        self.is_secure = False  # nothing is sent
        self.is_connected = True
        self.last_seen = presence.engine.clock.now()

    @staticmethod
    def join_frames(frames: list[bytes]) -> bytes:  # noqa: ARG004 - a peer's shape
        return b""

    def write(self, data: bytes) -> None:
        """Nothing: the member polls."""

    async def drain(self) -> None: ...

    def close(self, reason: str, *, reconnect: bool = False) -> None:  # noqa: ARG002 - a peer's shape
        """Not present until the next request."""
        asyncio.get_running_loop().call_soon(self.presence.drop, self)


class PollingPresence:
    """Members present over HTTP, and when each was last seen."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.members: OrderedDict[str, PollingMember] = OrderedDict()
        self.scheduler = Scheduler(engine.clock, self._on_timeout)
        engine.delivery.on_unsubscribed_act = self._on_unsubscribed_act
        engine.delivery.on_subscribe = self._on_subscribe

    def member(self, stream: str, seat: str) -> PollingMember:
        """The peer that joins: the one already present, or a new one."""
        return self._tracked(stream, seat) or PollingMember(self, stream, seat)

    def track(self, member: PollingMember) -> None:
        """After a join: start the presence timeout if it succeeded."""
        if self._is_delivered(member):
            name = presence_key(member.stream, member.principal)
            self.members[name] = member
            self.members.move_to_end(name)
            self._evict_oldest()
            self._touch(member)

    def _evict_oldest(self) -> None:
        """Drop those not seen for longest."""
        while len(self.members) > MAX_POLLING_MEMBERS:
            _, oldest = self.members.popitem(last=False)
            self.drop(oldest)

    def on_act(self, cell: Stream, actor: Actor) -> None:
        """Any read or message is a sign of life (OPEN-50): without a connection, a return."""
        if cell.context.name != "room":  # a thread that is watched has no presence
            return
        self.engine.heartbeat.on_activity(cell, actor)
        if (there := self._tracked(cell.id, actor.principal)) is not None:
            self._touch(there)
        elif self._is_returning(cell, actor):
            member = PollingMember(self, cell.id, actor.principal)
            self.engine.joining.mark_present(cell, member)
            self.track(member)

    def _is_returning(self, cell: Stream, actor: Actor) -> bool:
        """A member with a token; without tokens, one who joined over HTTP before (OPEN-29)."""
        room: Room = cell.base.state
        member = room.members.get(actor.principal)
        if member is None or room.ended:
            self.members.pop(presence_key(cell.id, actor.principal), None)
            return False
        was_here = (
            presence_key(cell.id, actor.principal) in self.members or member.transport == "http"
        )
        delivery = self.engine.delivery
        elsewhere = any(p.principal == actor.principal for p in delivery.connections(cell.id))
        elsewhere = elsewhere or delivery.is_elsewhere(cell.id, actor.principal)
        return not elsewhere and (actor.credential is not None or was_here)

    def on_request(self, stream: str, actor: Actor) -> None:
        """Like `on_act`, for a session that may not be in memory any more."""
        if (cell := self.engine.streams.get(stream)) is not None:
            self.on_act(cell, actor)

    def _on_unsubscribed_act(self, cell: Stream, actor: Actor) -> None:
        """Not at once: the engine is delivering the outcome of the act."""
        asyncio.get_running_loop().call_soon(self.on_act, cell, actor)

    def _on_subscribe(self, stream: str, peer: Peer) -> None:
        """A connection says better than earlier requests whether its member is there."""
        there = self._tracked(stream, peer.principal)
        if there is not None and there is not peer:
            self.drop(there)

    def drop(self, member: PollingMember) -> None:
        """Remove from presence until the next request."""
        member.is_connected = False
        if self.members.get(name := presence_key(member.stream, member.principal)) is member:
            self.scheduler.set(name, None)
        self.engine.delivery.connection_lost(member)

    def _tracked(self, stream: str, seat: str) -> PollingMember | None:
        member = self.members.get(presence_key(stream, seat))
        return member if member is not None and self._is_delivered(member) else None

    def _is_delivered(self, member: PollingMember) -> bool:
        return member.stream in self.engine.delivery.streams_of.get(member, ())

    def _touch(self, member: PollingMember) -> None:
        member.last_seen = self.engine.clock.now()
        name = presence_key(member.stream, member.principal)
        if name not in self.scheduler.deadlines:
            self.scheduler.set(name, member.last_seen + self._timeout_ms(member.stream))

    def _on_timeout(self, name: str) -> None:
        """Keep members seen since; disconnect the others."""
        member = self.members.get(name)
        if member is None:
            self.scheduler.set(name, None)
            return
        until = member.last_seen + self._timeout_ms(member.stream)
        if until > self.engine.clock.now():
            self.scheduler.set(name, until)
        else:
            self.drop(member)

    def _timeout_ms(self, stream: str) -> int:
        """Milliseconds of silence: idle, then away, then one missed heartbeat."""
        beats = heartbeat_policy_of(self.engine.streams.get(stream))
        return beats.away_after_ms + beats.interval_ms if beats is not None else 0


def presence_key(stream: str, seat: str) -> str:
    """One key per session and member; neither contains a line break."""
    return f"{stream}\n{seat}"
