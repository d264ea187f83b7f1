"""Servers on one log, and what everybody hears: how a step is made, and what is looked at."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import Quorum
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.membership.joining import SessionJoin
from accord.core.room.room_settings import Category, GateResolution, ServerPolicy
from accord.core.room.session_lifecycle import SessionCreate
from accord.engine.delivery import joining as arrivals_module
from accord.engine.streams import snapshots as snapshots_module
from accord.engine.streams import stream_cache
from accord.stores.memory import MemoryLog
from tests.helpers.engine.harness import (
    EngineHarness,
    FaultyLog,
    ManualClock,
    PendingReply,
    RecordingPeer,
    yield_to_loop,
)
from tests.helpers.log_audit.approval_audit import ApprovalAudit
from tests.helpers.log_audit.audit_model import AuditedMember
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    session_create,
    session_join,
)
from tests.properties.strategies import DAVE, EVERYBODY, ROOMS, UNKNOWN_IDS, quorums

REPLAY_WINDOW = 8


class SentMessage(NamedTuple):
    """A message that was sent."""

    who: Actor
    room: str
    body: Body
    id: str
    ref: str | None


class ReceivedSegment:
    """What one connection heard of one room since it came in."""

    def __init__(self, after: int | None) -> None:
        self.after = after
        self.got: list[int] = []


class ObservedRooms(RuleBasedStateMachine):
    """A few rooms, with connections that come and go; after each step all of it is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(arrivals_module, "PAGE_ROWS", 3)
        self.patch.setattr(snapshots_module, "SNAPSHOT_INTERVAL_RECORDS", 5)
        self.patch.setattr(stream_cache, "MAX_STREAMS", 2)
        self.log = FaultyLog(MemoryLog())
        self.clock = ManualClock()
        self.hints: dict[str, bool] = {}
        self.audits = {room: ApprovalAudit(f"room/{room}", self.hints) for room in ROOMS}
        self.before = dict.fromkeys(ROOMS, 0)
        self.sent: list[SentMessage] = []
        self.asked: list[tuple[PendingReply, str]] = []
        self.segments: dict[tuple[RecordingPeer, str], ReceivedSegment] = {}
        self.refs: dict[tuple[RecordingPeer, str], str | None] = {}
        self.listening: set[tuple[RecordingPeer, str]] = set()
        self.ears: dict[RecordingPeer, int] = {}
        self.last: dict[tuple[str, str], str] = {}
        self.stages: list[EngineHarness] = []
        self.following: list[asyncio.Task[None]] = []
        self.now: dict[str, RecordingPeer] = {}
        self.count = 0
        self.silent = False
        self.answers: list[tuple[PendingReply, str]] = []

    def teardown(self) -> None:
        self.run(self._stop())
        self.loop.close()
        self.patch.undo()

    # How a step is made

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    @initialize(
        policy=st.sampled_from(GateResolution), quorum=quorums, servers=st.sampled_from([1, 1, 2])
    )
    def begin(self, policy: GateResolution, quorum: Quorum, servers: int) -> None:
        """One server or two on one log, and a room in which something can happen."""
        self.house = ServerPolicy(gate_seconds=300, on_gate_timeout=policy)
        self.servers = servers
        self.run(self._start())
        few = (Category.SHELL_EXECUTE, Category.DEPLOY)
        room = session_create(default_gate_quorum=quorum, require_approval_for=few)
        self._run_steps(lambda: self._send(ALICE, "r1", room))
        for who, role in (
            (BOB, Role.NAVIGATOR),
            (CAROL, Role.ADVERSARY),
            (DAVE, Role.APPROVER),
            (CLAUDE, Role.DRIVER),
            (CODEX, Role.NAVIGATOR),
        ):
            self._run_steps(partial(self._send, who, "r1", session_join(who, role)))

    async def _start(self) -> None:
        for _ in range(self.servers):
            stage = EngineHarness(
                self.log, clock=self.clock, policy=self.house, window=REPLAY_WINDOW
            )
            self.stages.append(stage)
            await stage.engine.start()
            self.following.append(asyncio.create_task(stage.engine.follow_log()))

    async def _stop(self) -> None:
        for task in self.following:
            task.cancel()
        await asyncio.gather(*self.following, return_exceptions=True)
        for stage in self.stages:
            await stage.close()
        self.stages.clear()
        self.following.clear()

    async def _settle(self) -> None:
        """Nothing is under way, and each server has heard what the others appended."""
        for _ in range(3 if self.servers > 1 else 1):
            await yield_to_loop(8)
            for stage in self.stages:
                await stage.wait_until_idle()

    def _connection(self, who: Actor) -> RecordingPeer:
        ear = self.now.get(who.principal)
        if ear is None or not ear.is_connected:
            stage = self.stages[self.count % len(self.stages)]
            ear = self.now[who.principal] = stage.connect(who)
            self.ears[ear] = 0
        return ear

    def _run_due(self) -> None:
        for stage in self.stages:
            stage.engine.scheduler.run_due()

    def _send(
        self,
        who: Actor,
        room: str,
        body: Body,
        ref: str | None = None,
        id: str | None = None,
    ) -> PendingReply:
        """Somebody says something; it may still wait for its answer."""
        self.count += 1
        ear, name = self._connection(who), id or f"{who.principal}-{self.count}"
        stream = f"room/{room}"
        enters = isinstance(body, SessionJoin | SessionCreate)
        if enters and not ear.engine.delivery.is_subscribed(stream, ear):
            self.refs[ear, room] = ref
        if id is None:
            self.sent.append(SentMessage(who, room, body, name, ref))
            self.hints[name] = bool(getattr(body, "requires_approval", False))
        stage = next(each for each in self.stages if each.engine is ear.engine)
        reply = stage.submit(who, body, name, ref, room=room, ear=ear)
        self.asked.append((reply, name))
        return reply

    def _run_steps(self, *steps: Callable[[], object], failing: bool = False) -> None:
        """Some steps in one breath; then everything settles and is looked at."""

        async def breath() -> None:
            if failing:
                self.log.failing.add("append")
            for step in steps:
                step()
            await self._settle()
            self.log.failing.clear()
            await self._settle()

        self.run(breath())
        self._check_answers(alone=len(steps) == 1, failing=failing)
        self._read_log()
        self._check_delivery()
        self._check_presence()

    # What is looked at

    def _check_answers(self, *, alone: bool, failing: bool) -> None:
        asked, self.asked = self.asked, []
        for reply, name in asked:
            assert reply.count == 1, f"{name} was answered {reply.count} times"
            if reply.refusal:
                trouble = reply.refusal.reason in {Reason.INTERNAL, Reason.UNAVAILABLE}
                assert failing or not trouble, reply.refusal.detail
        self.silent = alone and len(asked) == 1 and changed_nothing(asked[0][0])
        self.answers = asked

    def _read_log(self) -> None:
        for room, audit in self.audits.items():
            self.before[room] = audit.version
            rows = self.run(self.log.read(f"room/{room}", audit.version))
            for row in rows:
                audit.read(row)
            assert audit.expected == [], "something should have followed"
            # That somebody is lost, or back, may come to light whatever else is said.
            news = [row for row in rows if not row.body.startswith(b'{"kind":"member.presence"')]
            assert not (news and self.silent), "a refusal or a retry changed something"
        for reply, name in self.answers:
            if not reply.refusal and reply.records:
                room = reply.records[0].record.stream.removeprefix("room/")
                assert name in self.audits[room].ids, "what was acknowledged is not there"

    def _check_delivery(self) -> None:
        now = {
            (ear, room)
            for ear in self.ears
            for room in ROOMS
            if ear.engine.delivery.is_subscribed(f"room/{room}", ear)
        }
        for pair in now - self.listening:
            ref = self.refs.get(pair)
            audit = self.audits[pair[1]]
            after = next((n for n, h in enumerate(audit.wire_records, 1) if h.id == ref), None)
            self.segments[pair] = ReceivedSegment(after)
        for ear, seen in list(self.ears.items()):
            for frame in ear.received[seen:]:
                self._check_frame(ear, frame)
            self.ears[ear] = len(ear.received)
            if not ear.is_connected:
                del self.ears[ear]
        for ear, room in now:
            self._check_complete(self.segments[ear, room], self.audits[room], ear.principal)
        for ear, room in self.listening - now:
            self._check_last(self.segments.pop((ear, room)), room, ear)
        self.listening = {pair for pair in now if pair[0].is_connected}

    def _check_frame(self, ear: RecordingPeer, frame: dict[str, Any]) -> None:
        """Nobody hears of a room they are not in, nor what they may not see, nor after leaving."""
        room, seat = frame["session"], ear.principal
        audit, since = self.audits[room], self.before[room]
        assert audit.was_member_since(seat, since), f"{seat} heard of {room}"
        if "seq" not in frame:
            return
        record = audit.wire_records[frame["seq"] - 1]
        assert record.id == frame["id"]
        assert audit.can_see(frame["seq"], seat), f"{seat} saw {record.id}"
        if record.version > since:
            inside = seat in audit.members_by_version[record.version] or record.leaves == seat
            assert inside or any(
                seat in each for each in audit.members_by_version[record.version :]
            )
        if segment := self.segments.get((ear, room)):
            segment.got.append(frame["seq"])
            self.last[seat, room] = frame["id"]

    def _check_complete(self, segment: ReceivedSegment, audit: ApprovalAudit, seat: str) -> None:
        """Everything it may see, in order, each once, from where it left off until now."""
        got = segment.got
        assert got, "who comes in hears that it did"
        if segment.after is not None:
            assert got[0] == audit.next_visible(segment.after, seat)
        else:
            older = audit.wire_records[: got[0] - 1]
            unheard = [each for each in older if each.to is None or seat in each.to]
            assert len(unheard) < 1 or unheard[-1].version <= audit.version - min(
                REPLAY_WINDOW, len(got)
            ), "less than the window"
        for one, two in pairwise(got):
            assert two == audit.next_visible(one, seat), f"{seat} heard {two} after {one}"
        assert audit.next_visible(got[-1], seat) is None, "not everything was heard"
        segment.after, segment.got = got[-2] if len(got) > 1 else segment.after, got[-1:]
        if segment.after is None:
            segment.after = audit_before(audit, got[-1], seat)

    def _check_presence(self) -> None:
        """Who has no connection is known to be gone, and who has one is not taken for gone."""
        unsaid = set().union(*(stage.engine.delivery.unrecorded_absences for stage in self.stages))
        for room, audit in self.audits.items():
            connected = {ear.principal for ear, where in self.listening if where == room}
            for seat, person in () if audit.ended else audit.members.items():
                lost = person.presence == "disconnected"
                later = (f"room/{room}", seat) in unsaid and (
                    audit.version == self.before[room] or self.servers > 1
                )
                assert lost or seat in connected or later, seat
                # Servers do not tell each other who is connected.
                assert not lost or seat not in connected or self.servers > 1, seat

    def _check_last(self, segment: ReceivedSegment, room: str, ear: RecordingPeer) -> None:
        """Who leaves hears that, and nothing after."""
        audit, since = self.audits[room], self.before[room]
        left = [n for n, each in enumerate(audit.wire_records, 1) if each.leaves == ear.principal]
        if ear.is_connected and left and audit.wire_records[left[-1] - 1].version > since:
            assert segment.got[-1] in left, "the last to hear is the leave"

    @invariant()
    def nothing_went_wrong_unnoticed(self) -> None:
        """A fresh fold equals the cache, after every commit; nothing else died either."""
        for stage in self.stages:
            assert stage.engine.failures == []

    # Who and what is meant

    def _room(self, room: str, *, sly: bool) -> str:
        return room if sly or self.audits[room].members else "r1"

    def _pick_actor(
        self, room: str, index: int, sly: bool, fit: Callable[[str, AuditedMember], bool]
    ) -> Actor:
        """Somebody in the room who might do this; who is sly does what they should not."""
        members = self.audits[room].members
        likely = [who for who in EVERYBODY if who.principal in members]
        able = [who for who in likely if fit(who.principal, members[who.principal])]
        choices = EVERYBODY if sly else able or likely or EVERYBODY
        return choices[index % len(choices)]

    def _pick_id(self, choices: Iterable[str], index: int, *, sly: bool) -> str:
        """One of these, or something that makes no sense."""
        known = sorted(choices)
        if sly or not known:
            return UNKNOWN_IDS[index % len(UNKNOWN_IDS)]
        return known[index % len(known)]


def changed_nothing(reply: PendingReply) -> bool:
    """Whether the answer says that nothing was changed by the message."""
    return reply.refusal is not None or bool(reply.outcome and reply.outcome.is_retry)


def audit_before(audit: ApprovalAudit, seq: int, seat: str) -> int:
    """The number before which nothing is missing when this one is heard."""
    earlier = [each for each in range(1, seq) if audit.can_see(each, seat)]
    return earlier[-1] if earlier else 0
