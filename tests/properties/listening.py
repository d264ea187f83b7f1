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
from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import Quorum
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Why
from accord.core.room.lifecycle import SessionCreate
from accord.core.room.members import SessionJoin
from accord.core.room.state import Category, House, Resolution
from accord.engine import arrivals as arrivals_module
from accord.engine import opener
from accord.engine import snapshots as snapshots_module
from accord.stores.memory import MemoryLog
from tests.helpers.audit import Audit
from tests.helpers.audited import Person
from tests.helpers.engine import Ear, Reply, Stage, Tricky, Watch, turns
from tests.helpers.room import ALICE, BOB, CAROL, CLAUDE, CODEX, creates, joins
from tests.properties.drawn import DAVE, EVERYBODY, GARBAGE, ROOMS, quorums

WINDOW = 8


class Said(NamedTuple):
    """A message that was sent."""

    who: Actor
    room: str
    body: Body
    id: str
    ref: str | None


class Segment:
    """What one connection heard of one room since it came in."""

    def __init__(self, after: int | None) -> None:
        self.after = after
        self.got: list[int] = []


class Listening(RuleBasedStateMachine):
    """A few rooms, with connections that come and go; after each step all of it is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(arrivals_module, "PAGE", 3)
        self.patch.setattr(snapshots_module, "EVERY", 5)
        self.patch.setattr(opener, "MOST_CELLS", 2)
        self.log = Tricky(MemoryLog())
        self.clock = Watch()
        self.hints: dict[str, bool] = {}
        self.audits = {room: Audit(f"room/{room}", self.hints) for room in ROOMS}
        self.before = dict.fromkeys(ROOMS, 0)
        self.sent: list[Said] = []
        self.asked: list[tuple[Reply, str]] = []
        self.segments: dict[tuple[Ear, str], Segment] = {}
        self.refs: dict[tuple[Ear, str], str | None] = {}
        self.listening: set[tuple[Ear, str]] = set()
        self.ears: dict[Ear, int] = {}
        self.last: dict[tuple[str, str], str] = {}
        self.stages: list[Stage] = []
        self.following: list[asyncio.Task[None]] = []
        self.now: dict[str, Ear] = {}
        self.count = 0
        self.silent = False
        self.answers: list[tuple[Reply, str]] = []

    def teardown(self) -> None:
        self.run(self._stop())
        self.loop.close()
        self.patch.undo()

    # How a step is made

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    @initialize(
        policy=st.sampled_from(Resolution), quorum=quorums, servers=st.sampled_from([1, 1, 2])
    )
    def begin(self, policy: Resolution, quorum: Quorum, servers: int) -> None:
        """One server or two on one log, and a room in which something can happen."""
        self.house = House(on_gate_timeout=policy)
        self.servers = servers
        self.run(self._start())
        few = (Category.SHELL_EXECUTE, Category.DEPLOY)
        room = creates(default_gate_quorum=quorum, require_approval_for=few)
        self._do(lambda: self._ask(ALICE, "r1", room))
        for who, role in (
            (BOB, Role.NAVIGATOR),
            (CAROL, Role.ADVERSARY),
            (DAVE, Role.APPROVER),
            (CLAUDE, Role.DRIVER),
            (CODEX, Role.NAVIGATOR),
        ):
            self._do(partial(self._ask, who, "r1", joins(who, role)))

    async def _start(self) -> None:
        for _ in range(self.servers):
            stage = Stage(self.log, clock=self.clock, house=self.house, window=WINDOW)
            self.stages.append(stage)
            await stage.engine.start()
            self.following.append(asyncio.create_task(stage.engine.follow()))

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
            await turns(8)
            for stage in self.stages:
                await stage.settle()

    def _ear(self, who: Actor) -> Ear:
        ear = self.now.get(who.seat)
        if ear is None or not ear.alive:
            stage = self.stages[self.count % len(self.stages)]
            ear = self.now[who.seat] = stage.connect(who)
            self.ears[ear] = 0
        return ear

    def _due(self) -> None:
        for stage in self.stages:
            stage.engine.scheduler.run_due()

    def _ask(
        self,
        who: Actor,
        room: str,
        body: Body,
        ref: str | None = None,
        id: str | None = None,
    ) -> Reply:
        """Somebody says something; it may still wait for its answer."""
        self.count += 1
        ear, name = self._ear(who), id or f"{who.seat}-{self.count}"
        stream = f"room/{room}"
        enters = isinstance(body, SessionJoin | SessionCreate)
        if enters and not ear.engine.peers.hears(stream, ear):
            self.refs[ear, room] = ref
        if id is None:
            self.sent.append(Said(who, room, body, name, ref))
            self.hints[name] = bool(getattr(body, "requires_approval", False))
        stage = next(each for each in self.stages if each.engine is ear.engine)
        reply = stage.ask(who, body, name, ref, room=room, ear=ear)
        self.asked.append((reply, name))
        return reply

    def _do(self, *steps: Callable[[], object], failing: bool = False) -> None:
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
        self._read_on()
        self._check_hearing()
        self._check_presence()

    # What is looked at

    def _check_answers(self, *, alone: bool, failing: bool) -> None:
        asked, self.asked = self.asked, []
        for reply, name in asked:
            assert reply.count == 1, f"{name} was answered {reply.count} times"
            if reply.refused:
                trouble = reply.refused.why in {Why.INTERNAL, Why.UNAVAILABLE}
                assert failing or not trouble, reply.refused.detail
        self.silent = alone and len(asked) == 1 and nothing_new(asked[0][0])
        self.answers = asked

    def _read_on(self) -> None:
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
            if not reply.refused and reply.sealed:
                room = reply.sealed[0].record.stream.removeprefix("room/")
                assert name in self.audits[room].ids, "what was acknowledged is not there"

    def _check_hearing(self) -> None:
        now = {
            (ear, room)
            for ear in self.ears
            for room in ROOMS
            if ear.engine.peers.hears(f"room/{room}", ear)
        }
        for pair in now - self.listening:
            ref = self.refs.get(pair)
            audit = self.audits[pair[1]]
            after = next((n for n, h in enumerate(audit.heard, 1) if h.id == ref), None)
            self.segments[pair] = Segment(after)
        for ear, seen in list(self.ears.items()):
            for frame in ear.heard[seen:]:
                self._check_frame(ear, frame)
            self.ears[ear] = len(ear.heard)
            if not ear.alive:
                del self.ears[ear]
        for ear, room in now:
            self._check_complete(self.segments[ear, room], self.audits[room], ear.seat)
        for ear, room in self.listening - now:
            self._check_last(self.segments.pop((ear, room)), room, ear)
        self.listening = {pair for pair in now if pair[0].alive}

    def _check_frame(self, ear: Ear, frame: dict[str, Any]) -> None:
        """Nobody hears of a room they are not in, nor what they may not see, nor after leaving."""
        room, seat = frame["session"], ear.seat
        audit, since = self.audits[room], self.before[room]
        assert audit.was_in(seat, since), f"{seat} heard of {room}"
        if "seq" not in frame:
            return
        record = audit.heard[frame["seq"] - 1]
        assert record.id == frame["id"]
        assert audit.visible(frame["seq"], seat), f"{seat} saw {record.id}"
        if record.version > since:
            inside = seat in audit.insiders[record.version] or record.leaves == seat
            assert inside or any(seat in each for each in audit.insiders[record.version :])
        if segment := self.segments.get((ear, room)):
            segment.got.append(frame["seq"])
            self.last[seat, room] = frame["id"]

    def _check_complete(self, segment: Segment, audit: Audit, seat: str) -> None:
        """Everything it may see, in order, each once, from where it left off until now."""
        got = segment.got
        assert got, "who comes in hears that it did"
        if segment.after is not None:
            assert got[0] == audit.next_visible(segment.after, seat)
        else:
            older = audit.heard[: got[0] - 1]
            unheard = [each for each in older if each.to is None or seat in each.to]
            assert len(unheard) < 1 or unheard[-1].version <= audit.version - min(
                WINDOW, len(got)
            ), "less than the window"
        for one, two in pairwise(got):
            assert two == audit.next_visible(one, seat), f"{seat} heard {two} after {one}"
        assert audit.next_visible(got[-1], seat) is None, "not everything was heard"
        segment.after, segment.got = got[-2] if len(got) > 1 else segment.after, got[-1:]
        if segment.after is None:
            segment.after = audit_before(audit, got[-1], seat)

    def _check_presence(self) -> None:
        """Who has no connection is known to be gone, and who has one is not taken for gone."""
        unsaid = set().union(*(stage.engine.peers.unsaid for stage in self.stages))
        for room, audit in self.audits.items():
            connected = {ear.seat for ear, where in self.listening if where == room}
            for seat, person in () if audit.ended else audit.members.items():
                lost = person.presence == "disconnected"
                later = (f"room/{room}", seat) in unsaid and (
                    audit.version == self.before[room] or self.servers > 1
                )
                assert lost or seat in connected or later, seat
                # Servers do not tell each other who is connected.
                assert not lost or seat not in connected or self.servers > 1, seat

    def _check_last(self, segment: Segment, room: str, ear: Ear) -> None:
        """Who leaves hears that, and nothing after."""
        audit, since = self.audits[room], self.before[room]
        left = [n for n, each in enumerate(audit.heard, 1) if each.leaves == ear.seat]
        if ear.alive and left and audit.heard[left[-1] - 1].version > since:
            assert segment.got[-1] in left, "the last to hear is the leave"

    @invariant()
    def nothing_went_wrong_unnoticed(self) -> None:
        """A fresh fold equals the cache, after every commit; nothing else died either."""
        for stage in self.stages:
            assert stage.engine.failures == []

    # Who and what is meant

    def _room(self, room: str, *, sly: bool) -> str:
        return room if sly or self.audits[room].members else "r1"

    def _who(self, room: str, index: int, sly: bool, fit: Callable[[str, Person], bool]) -> Actor:
        """Somebody in the room who might do this; who is sly does what they should not."""
        members = self.audits[room].members
        likely = [who for who in EVERYBODY if who.seat in members]
        able = [who for who in likely if fit(who.seat, members[who.seat])]
        choices = EVERYBODY if sly else able or likely or EVERYBODY
        return choices[index % len(choices)]

    def _some(self, choices: Iterable[str], index: int, *, sly: bool) -> str:
        """One of these, or something that makes no sense."""
        known = sorted(choices)
        if sly or not known:
            return GARBAGE[index % len(GARBAGE)]
        return known[index % len(known)]


def nothing_new(reply: Reply) -> bool:
    """Whether the answer says that nothing was changed by the message."""
    return reply.refused is not None or bool(reply.outcome and reply.outcome.again)


def audit_before(audit: Audit, seq: int, seat: str) -> int:
    """The number before which nothing is missing when this one is heard."""
    earlier = [each for each in range(1, seq) if audit.visible(each, seat)]
    return earlier[-1] if earlier else 0
