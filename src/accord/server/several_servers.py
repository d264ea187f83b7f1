"""What a server shares with the others on its log: limits, delivery marks, heartbeats of runtimes.

The engine's part (presence, relays, state) is in `accord.engine.servers`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import msgspec

from accord.core.attention.delivery_marks import DeliveryMarks
from accord.core.attention.runtimes import HeartbeatReport, HumanInput
from accord.core.attention.state import Seat
from accord.core.people.state import People
from accord.core.room.session_lifecycle import SessionCreated, SessionEnded
from accord.engine.engine import Engine
from accord.engine.ports import EventLog, Row, ServerLink, SharedStore
from accord.engine.servers.group import ServerGroup
from accord.identity.keyring import KeyringError
from accord.identity.token_service import PEOPLE_STREAM
from accord.server.engine_factory import make_engine
from accord.transports.edge.connection_limits import PrincipalConnections
from accord.transports.http.messages.waiting_limits import Waiters
from accord.transports.intake import Intake
from accord.transports.msg.delivery_marks import MarkPlace
from accord.transports.msg.service import ThreadService

MARK_TOPIC, BEAT_TOPIC, DRAFT_TOPIC = "mark", "beat", "draft"
# Marks that moved within this time travel together.
MARK_DELAY_S = 0.05
# Marks that a server tells one that has just started.
MAX_TOLD_MARKS = 2000
# All servers together allow at most this multiple of a limit per participant.
MAX_LIMIT_FACTOR = 2.0
# A server that has been behind the log for this long is not ready.
MAX_LAG_S = 2.0
QUOTA_MARKERS = (b'"session.created"', b'"session.ended"')


class LimitedParts(Protocol):
    """The parts of a server that limit participants."""

    intake: Intake
    threads: ThreadService

    def principal_limits(self) -> list[PrincipalConnections[Any] | Waiters]:
        """Limits on what one principal has open at a time."""
        ...


class SharedMark(msgspec.Struct, frozen=True, array_like=True):
    """How far messages of a thread reached an agent."""

    place: MarkPlace
    delivered: int
    seen: int


class SharedBeat(msgspec.Struct, frozen=True, array_like=True):
    """A heartbeat of a runtime."""

    seat: Seat
    report: HeartbeatReport
    human: HumanInput | None


class SeveralServers:
    """Keeps what is in the memory of several servers in agreement."""

    def __init__(self, group: ServerGroup, engine: Engine, parts: LimitedParts) -> None:
        self.group = group
        self._engine = engine
        self._parts = parts
        self._limits = [(each, each.max_per_principal) for each in parts.principal_limits()]
        self._posts_per_minute = parts.threads.quota.per_minute
        self._moved: dict[MarkPlace, None] = {}
        bus, threads = group.bus, parts.threads
        bus.subscribe(MARK_TOPIC, self._on_mark)
        bus.subscribe(BEAT_TOPIC, self._on_beat)
        bus.subscribe(DRAFT_TOPIC, self._on_draft)
        threads.marks.on_move = self._on_move
        threads.wakes.registry.on_beat = lambda *said: self._publish_beat(SharedBeat(*said))
        threads.wakes.conversations.on_draft = self._publish_draft
        parts.intake.is_elsewhere = group.is_elsewhere
        group.unopened_row_listeners.append(self._count_session)
        group.change_listeners.append(self._on_servers_changed)

    @property
    def link(self) -> ServerLink:
        return self.group.link

    # Limits

    def _on_servers_changed(self) -> None:
        self._set_share(min(1.0, MAX_LIMIT_FACTOR / (len(self.link.others) + 1)))
        for place in self._parts.threads.marks.newest(MAX_TOLD_MARKS):
            self._on_move(place)

    def _set_share(self, share: float) -> None:
        """Let each participant have this share of the limits on this server."""
        intake, threads = self._parts.intake, self._parts.threads
        intake.buckets.set_share(share)
        intake.session_quota.share = share
        threads.quota.per_minute = max(1, int(self._posts_per_minute * share))
        for part, whole in self._limits:
            part.max_per_principal = max(1, int(whole * share))

    def _count_session(self, row: Row) -> None:
        """Another server created or ended a session."""
        if any(marker in row.body for marker in QUOTA_MARKERS):
            encoded = self._engine.decode_row(row)
            if isinstance(encoded.record.event, SessionCreated | SessionEnded):
                self._parts.intake.session_quota.on_state_change(row.stream, [encoded])

    # Marks, heartbeats and drafts

    def _on_move(self, place: MarkPlace) -> None:
        if self.group.bus.is_alone:
            return
        if not self._moved:
            asyncio.get_running_loop().call_later(MARK_DELAY_S, self._publish_marks)
        self._moved[place] = None

    def _publish_marks(self) -> None:
        moved, self._moved = self._moved, {}
        for place in moved:
            marks = self._parts.threads.marks.at(place)
            self.group.bus.publish(MARK_TOPIC, SharedMark(place, marks.delivered, marks.seen))

    def _on_mark(self, _server: int, content: msgspec.Raw) -> None:
        mark = msgspec.json.decode(content, type=SharedMark)
        self._parts.threads.marks.merge(mark.place, DeliveryMarks(mark.delivered, mark.seen))

    def _publish_beat(self, beat: SharedBeat) -> None:
        self.group.bus.publish(BEAT_TOPIC, beat)

    def _on_beat(self, _server: int, content: msgspec.Raw) -> None:
        beat = msgspec.json.decode(content, type=SharedBeat)
        registry = self._parts.threads.wakes.registry
        registry.remember_beat(beat.seat, beat.report, beat.human, self._engine.clock.now())

    def _publish_draft(self, seat: Seat) -> None:
        self.group.bus.publish(DRAFT_TOPIC, seat)

    def _on_draft(self, _server: int, content: msgspec.Raw) -> None:
        seat = msgspec.json.decode(content, type=Seat)
        self._parts.threads.wakes.conversations.remember_draft(seat)

    # Work that one server does

    async def run_led(self, task: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this while no other server does; never returns."""
        while True:
            async with self.link.lead(task) as taken_away:
                running = asyncio.create_task(work())
                ending = asyncio.create_task(taken_away.wait())
                try:
                    await asyncio.wait({running, ending}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    running.cancel()
                    ending.cancel()
                    await asyncio.gather(running, ending, return_exceptions=True)


class LagCheck:
    """Whether this server keeps up with what all servers append."""

    def __init__(self, events: EventLog, engine: Engine) -> None:
        self._events = events
        self._engine = engine
        self._target = 0
        self._since = monotonic()
        self.records_behind = 0

    async def __call__(self) -> bool:
        position = await self._events.position()
        reached = self._engine.followed_position or 0
        self.records_behind = max(0, position - reached)
        if reached >= self._target:
            self._target, self._since = position, monotonic()
        return monotonic() - self._since < MAX_LAG_S


def signing_key_in(keys: Path) -> str:
    """The id of the key that would sign; empty if there is none."""
    return max((file.stem for file in keys.glob("*.pem")), default="")


async def link_to_others(events: EventLog, keys: Path) -> ServerLink | None:
    """The link to other servers on the log, if its store allows several; Refused if it is taken."""
    if not isinstance(events, SharedStore):
        return None
    link = await events.link_servers()
    people: People = await make_engine(events).state(PEOPLE_STREAM)
    await ensure_same_keys(link, people.active or "", keys)
    return link


async def ensure_same_keys(link: ServerLink, active: str, keys: Path) -> None:
    """Refuse to start with other signing keys than the servers that use the log."""
    if not active or signing_key_in(keys) == active or not await link.find_others():
        return
    raise KeyringError(
        f"Other servers on this log sign with the key {active}, and this one would not; copy all "
        f"files from the directory `keys` of one of them to {keys}, and remove others from it"
    )
