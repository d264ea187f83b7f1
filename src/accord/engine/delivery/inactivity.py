"""Heartbeats: pings members and records those who do not respond as idle or away."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from accord.core.kernel.actor import PRESENCE_ACTOR, Actor
from accord.core.kernel.context import HeartbeatPolicy, Inactivity
from accord.core.kernel.effects import ReplayedMessage
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Instant
from accord.engine.ports import EnginePorts
from accord.engine.scheduling import Scheduler
from accord.engine.streams.stream import Stream, SubmitSystemMessage


class HeartbeatMonitor:
    """Pings every session that has a connection."""

    def __init__(
        self,
        ports: EnginePorts,
        streams: Mapping[str, Stream],
        broadcast: Callable[[str, bytes], AbstractSet[str]],
        submit: SubmitSystemMessage,
    ) -> None:
        self._ports = ports
        self._streams = streams
        self._broadcast = broadcast
        self._submit = submit
        # Called with the silence of each member, for members who use several servers.
        self.report_silence: Callable[[str, str, int], None] | None = None
        self.scheduler = Scheduler(ports.clock, self.ping_stream)

    def start(self, stream: str, seat: str) -> None:
        """A member connected: they count as active now, and the session is pinged from now on."""
        opened = self._streams.get(stream)
        policy = heartbeat_policy_of(opened)
        if opened is None or policy is None:
            return
        now = self._ports.clock.now()
        opened.last_seen[seat] = now
        if stream not in self.scheduler.deadlines:
            self.scheduler.set(stream, now + policy.interval_ms)

    def stop(self, stream: str, seat: str) -> None:
        """Forget a member whose last connection is gone."""
        if opened := self._streams.get(stream):
            opened.last_seen.pop(seat, None)
            opened.inactive.pop(seat, None)

    def ping_stream(self, stream: str) -> None:
        """Ping all connections and record members that have been silent for too long."""
        opened = self._streams.get(stream)
        policy = heartbeat_policy_of(opened)
        now = self._ports.clock.now()
        seats = set[str]() if policy is None else self._ping(stream, policy, now)
        if opened is None or policy is None or not seats:
            self.scheduler.set(stream, None)
            return
        for seat in sorted(seats):
            self._check_activity(opened, policy, seat, now)
        opened.last_seen = {seat: at for seat, at in opened.last_seen.items() if seat in seats}
        self.scheduler.set(stream, self._next_beat_at(opened, policy, now))

    def on_activity(self, stream: Stream, actor: Actor) -> None:
        """Any message of a member counts as activity, even a refused one (UNI-22)."""
        if actor.principal in stream.last_seen and stream.context.presence.is_member(
            stream.tip.state, actor
        ):
            stream.last_seen[actor.principal] = self._ports.clock.now()
            self.end_inactivity(stream, actor.principal)

    def end_inactivity(self, stream: Stream, seat: str) -> None:
        """Record that an inactive member is active again."""
        policy = heartbeat_policy_of(stream)
        if stream.inactive.pop(seat, None) and policy is not None:
            self._record_inactivity(stream, policy, seat, Inactivity.ENDED)

    def _ping(self, stream: str, policy: HeartbeatPolicy, now: Instant) -> AbstractSet[str]:
        """Ping all connections of a session; returns whose they are."""
        said = ReplayedMessage(self._ports.new_id(), SYSTEM, policy.ping)
        frame = self._ports.codec.encode_replayed(now, stream.partition("/")[2], said)
        return self._broadcast(stream, frame)

    def _check_activity(
        self, stream: Stream, policy: HeartbeatPolicy, seat: str, now: Instant
    ) -> None:
        silence = now - stream.last_seen.setdefault(seat, now)
        if self.report_silence is not None:
            self.report_silence(stream.id, seat, silence)
        if silence < policy.idle_after_ms:
            return
        how = Inactivity.AWAY if silence >= policy.away_after_ms else Inactivity.IDLE
        if stream.inactive.get(seat) is not how:
            stream.inactive[seat] = how
            self._record_inactivity(stream, policy, seat, how)

    def _record_inactivity(
        self, stream: Stream, policy: HeartbeatPolicy, seat: str, how: Inactivity
    ) -> None:
        last = stream.last_seen.get(seat, self._ports.clock.now())
        self._submit(stream.id, policy.inactivity_body(seat, last, how), PRESENCE_ACTOR)

    def _next_beat_at(self, stream: Stream, policy: HeartbeatPolicy, now: Instant) -> Instant:
        """The next ping, or the next moment at which a silent member turns idle or away."""
        due = [now + policy.interval_ms]
        for last in stream.last_seen.values():
            due += [
                last + limit
                for limit in (policy.idle_after_ms, policy.away_after_ms)
                if last + limit > now
            ]
        return min(due)


def heartbeat_policy_of(stream: Stream | None) -> HeartbeatPolicy | None:
    return None if stream is None else stream.context.presence.heartbeat_policy(stream.base.state)
