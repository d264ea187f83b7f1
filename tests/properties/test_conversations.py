"""Random conversations over a real engine, read against an independent model after every step.

`ACCORD_LONG=1` tries many more of them, and others each time.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from accord.core.kernel.actor import Actor, Grant
from accord.core.kernel.authority import Capability, Kind, Role
from accord.core.kernel.ballot import (
    AllOf,
    AnyOf,
    Everyone,
    Majority,
    Named,
    OfLabel,
    OfRole,
    Quorum,
)
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Why
from accord.core.room.lifecycle import SessionCreate
from accord.core.room.members import SessionJoin, SessionLeave
from accord.core.room.prompts import PromptSubmit
from accord.core.room.state import Category, House, OnTimeout, Resolution, Risk
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from accord.engine import opener
from accord.engine import peers as peers_module
from accord.engine import snapshots as snapshots_module
from accord.stores.memory import MemoryLog
from tests.helpers.audit import KNOWN_TOOLS, PROMPTING, Audit, Person
from tests.helpers.engine import Ear, Reply, Stage, Tricky, Watch, turns
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    announces,
    approves,
    approves_tool,
    changes_roles,
    configures,
    creates,
    ends,
    executes,
    finishes,
    joins,
    prints,
    prompts,
    proposes,
    rejects,
    rejects_tool,
    requests,
)
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
pytestmark = [
    pytest.mark.timeout(7200 if LONG else 300),
    proves(
        "PVP-1.2-2",
        "PVP-3.2-1",
        "PVP-3.2-2",
        "PVP-4.2-5",
        "PVP-4.2-8",
        "PVP-6.2-11",
        "PVP-14-1",
        "PVP-14.2-1",
        "PVP-14.2-2",
        "PVP-14.2-3",
        "PVP-14.2-4",
        "PVP-14.2-5",
        "PVP-14.3-1",
        "PVP-14.3-2",
        "PVP-19.5-2",
        "OPEN-12",
        "OPEN-14",
        "OPEN-16",
        "OPEN-17",
        "OPEN-18",
        "OPEN-20",
        "OPEN-21",
        "OPEN-22",
        "OPEN-23",
        "OPEN-24",
        "OPEN-31",
        "OPEN-35",
        "OPEN-36",
        "OPEN-37",
        "UNI-9",
        "UNI-11",
        "UNI-12",
        "UNI-15",
    ),
]

WINDOW = 8
ROOMS = ("r1", "r2", "r3")
# Dave shows a credential, the others are taken on trust.
DAVE = Actor(
    "dave",
    Kind.HUMAN,
    grant=Grant(
        frozenset({Role.APPROVER, Role.DRIVER}),
        frozenset({Capability.APPROVE}),
        frozenset({"security"}),
    ),
)
HUMANS = (ALICE, BOB, CAROL, DAVE)
AGENTS = (CLAUDE, CODEX)
EVERYBODY = (*HUMANS, *AGENTS)
GARBAGE = ("never said", "r1", "alice", "x" * 128)

# What is drawn

people = st.sampled_from(EVERYBODY)
# Mostly one room, so that much happens in it.
rooms = st.sampled_from((*ROOMS[:1] * 5, *ROOMS))
which = st.integers(0, 5)
sly = st.sampled_from([False, False, False, False, True])
roles = st.lists(st.sampled_from(Role), max_size=2, unique=True).map(tuple)
plain_quorums: st.SearchStrategy[Quorum] = st.one_of(
    st.integers(1, 3).map(AnyOf),
    st.just(Everyone()),
    st.just(Majority()),
    st.builds(OfRole, st.sampled_from((Role.NAVIGATOR, Role.APPROVER, Role.ADMIN)), st.just(1)),
    st.builds(OfLabel, st.just("security"), st.just(1)),
    st.lists(st.sampled_from([who.seat for who in EVERYBODY]), min_size=1, max_size=2).map(
        lambda seats: Named(tuple(seats))
    ),
)
quorums = st.one_of(
    plain_quorums,
    st.lists(plain_quorums, min_size=1, max_size=2).map(lambda rules: AllOf(tuple(rules))),
)
changes = st.one_of(
    st.builds(lambda quorum: {"default_gate_quorum": quorum}, quorums),
    st.sampled_from(OnTimeout).map(lambda policy: {"on_participant_timeout": policy}),
    st.lists(st.sampled_from(Category), max_size=3, unique=True).map(
        lambda listed: {"require_approval_for": listed}
    ),
    st.integers(1, 6).map(lambda most: {"max_participants": most}),
    st.sampled_from([{"no_such_rule": 1}, {"idle_timeout_seconds": -1}]),
)


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


class Conversations(RuleBasedStateMachine):
    """Several people and agents in a few rooms, with connections that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(peers_module, "PAGE", 3)
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

    def _prompts(self, room: str) -> list[tuple[Actor, str]]:
        ids = self.audits[room].ids
        said = [each for each in self.sent if each.room == room and each.id in ids]
        return [(each.who, each.id) for each in said if isinstance(each.body, PromptSubmit)][-3:]

    # Talking

    @rule(room=rooms, index=which, sly=sly, agent=st.sampled_from((CLAUDE, CLAUDE, CODEX, BOB)))
    def prompt(self, room: str, index: int, sly: bool, agent: Actor) -> None:
        room = self._room(room, sly=sly)
        who = self._who(room, index, sly, lambda _, person: person.may("prompt", PROMPTING))
        self._do(lambda: self._ask(who, room, prompts(agent)))

    @rule(room=rooms, index=which, sly=sly, what=st.sampled_from(["start", "chunk", "end"]))
    def respond(self, room: str, index: int, sly: bool, what: str) -> None:
        room = self._room(room, sly=sly)
        streams = self.audits[room].streams
        answer = self._some(streams, index, sly=sly)
        prompt = self._some([id for _, id in self._prompts(room)], index, sly=sly)
        who = self._who(room, index, sly, lambda seat, _: seat == streams.get(answer, "claude"))
        body, ref = {
            "start": (ResponseStart(who.seat, prompt), None),
            "chunk": (ResponseChunk("Hello"), answer),
            "end": (ResponseEnd("complete"), answer),
        }[what]
        self._do(lambda: self._ask(who, room, body, ref))

    @rule(room=rooms, index=which, sly=sly)
    def announce(self, room: str, index: int, sly: bool) -> None:
        room = self._room(room, sly=sly)
        who = self._who(room, index, sly, lambda *_: True)
        self._do(lambda: self._ask(who, room, announces(who, Role.ADMIN, name="Me")))

    @rule(room=rooms, index=which, chunks=st.integers(0, 2), ends=st.booleans(), agent=which)
    def answer(self, room: str, index: int, chunks: int, ends: bool, agent: int) -> None:
        """Somebody asks and an agent answers, or begins to."""
        room = self._room(room, sly=False)
        whom = self._who(room, agent, False, lambda _, person: person.kind == "agent")
        self.prompt(room, index, False, whom)
        asked, start = self.sent[-1].id, f"start-{self.count}"
        self._do(lambda: self._ask(whom, room, ResponseStart(whom.seat, asked), None, start))
        for _ in range(chunks):
            self._do(lambda: self._ask(whom, room, ResponseChunk("Hello"), start))
        if ends:
            self._do(lambda: self._ask(whom, room, ResponseEnd("complete"), start))

    # Asking for approval

    @rule(
        room=rooms,
        index=which,
        sly=sly,
        category=st.sampled_from((Category.FILE_READ, *Category)),
        risk=st.sampled_from(Risk),
        name=st.sampled_from((*KNOWN_TOOLS, "run_tests", "run_tests")),
        wants=st.booleans(),
    )
    def propose(
        self,
        room: str,
        index: int,
        sly: bool,
        category: Category,
        risk: Risk,
        name: str,
        wants: bool,
    ) -> None:
        room = self._room(room, sly=sly)
        who = self._who(room, index, sly, lambda _, person: person.kind == "agent")
        body = proposes(who, tool_name=name, category=category, risk=risk, requires_approval=wants)
        self._do(lambda: self._ask(who, room, body))

    @rule(
        room=rooms,
        index=which,
        sly=sly,
        quorum=quorums,
        timeout=st.sampled_from([0, 60]),
        kind=st.sampled_from(["prompt", "merge"]),
    )
    def request(
        self, room: str, index: int, sly: bool, quorum: Quorum, timeout: int, kind: Any
    ) -> None:
        room = self._room(room, sly=sly)
        own = self._prompts(room) or [(ALICE, "never said")]
        who, action = own[index % len(own)]
        if sly:
            who = EVERYBODY[index % len(EVERYBODY)]
        body = requests(action, quorum=quorum, timeout=timeout, action_type=kind)
        self._do(lambda: self._ask(who, room, body))

    # Voting

    @rule(
        room=rooms,
        index=which,
        sly=sly,
        yes=st.sampled_from([True, True, True, False]),
        by_tool=st.booleans(),
        times=st.integers(1, 2),
    )
    def vote(self, room: str, index: int, sly: bool, yes: bool, by_tool: bool, times: int) -> None:
        """Somebody votes, perhaps twice, perhaps without the right to."""
        room = self._room(room, sly=sly)
        who = self._who(room, index, sly, lambda _, person: person.approves)
        body = self._ballot(who, room, index, yes=yes, by_tool=by_tool)
        for _ in range(times):
            self._do(lambda: self._ask(who, room, body))

    @rule(
        room=rooms,
        order=st.permutations(EVERYBODY),
        index=st.integers(0, 2),
        at_once=st.booleans(),
        veto=st.sampled_from([None, None, None, BOB]),
    )
    def poll(
        self,
        room: str,
        order: list[Actor],
        index: int,
        at_once: bool,
        veto: Actor | None,
    ) -> None:
        """Everybody votes on the same gate, agents and strangers too."""
        busy = [each for each, audit in self.audits.items() if audit.gates]
        if not busy:
            return
        room = room if room in busy else busy[0]
        gate = self._some(self.audits[room].gates, index, sly=False)
        votes = [(who, rejects(who, gate) if who is veto else approves(who, gate)) for who in order]
        steps = [partial(self._ask, who, room, body) for who, body in votes]
        if at_once:
            self._do(*steps)
        else:
            for step in steps:
                self._do(step)

    def _ballot(self, who: Actor, room: str, index: int, *, yes: bool, by_tool: bool) -> Body:
        audit = self.audits[room]
        if by_tool:
            actions = {gate.action for gate in audit.gates.values()} or audit.dead
            name = self._some(actions, index, sly=False)
            return approves_tool(who, name) if yes else rejects_tool(who, name)
        name = self._some(audit.gates, index, sly=False)
        return approves(who, name) if yes else rejects(who, name)

    @rule(
        room=rooms,
        index=which,
        category=st.sampled_from(Category),
        order=st.lists(st.sampled_from(HUMANS), max_size=4, unique=True),
        twist=st.sampled_from([None, None, "demote", "rejoin", "leave", "patience", "sleep"]),
        uses=st.lists(st.sampled_from(["execute", "output", "result", "theft"]), max_size=3),
    )
    def story(
        self,
        room: str,
        index: int,
        category: Category,
        order: list[Actor],
        twist: str | None,
        uses: list[str],
    ) -> None:
        """An agent proposes, some approve, the agent runs it; unless something comes between."""
        room = self._room(room, sly=False)
        agent = self._who(room, index, False, lambda _, person: person.kind == "agent")
        body = proposes(agent, category=category, requires_approval=True)
        self._do(partial(self._ask, agent, room, body))
        proposal = self.sent[-1].id
        for place, who in enumerate(order):
            self._do(partial(self._ask, who, room, approves_tool(who, proposal)))
            if place == 0:
                self._twist(room, twist, who, index)
        for what in uses:
            thief = AGENTS[1 - AGENTS.index(agent)] if agent in AGENTS else CLAUDE
            who = thief if what == "theft" else agent
            self._do(partial(self._ask, who, room, run(what, proposal)))

    def _twist(self, room: str, twist: str | None, who: Actor, index: int) -> None:
        member = self.audits[room].members.get(who.seat)
        role = (Role.OBSERVER, Role.DRIVER, Role.NAVIGATOR)[index % 3]
        if twist == "demote" and member:
            held = tuple(map(Role, member.roles))
            self._do(lambda: self._ask(ALICE, room, changes_roles(ALICE, who, held, (role,))))
        elif twist == "rejoin":
            self._do(lambda: self._ask(who, room, joins(who, role)))
        elif twist == "leave":
            self._do(lambda: self._ask(who, room, SessionLeave()))
        elif twist in {"patience", "sleep"}:
            self.wait(301 if twist == "patience" else 3601)

    # Running

    @rule(
        room=rooms,
        index=which,
        sly=sly,
        what=st.sampled_from(["execute", "output", "result"]),
        shown=st.sampled_from(["none", "right", "wrong"]),
        dead=sly,
    )
    def use(self, room: str, index: int, sly: bool, what: str, shown: str, dead: bool) -> None:
        """An agent runs what it was granted, or something else, or somebody else's."""
        room = self._room(room, sly=sly)
        audit = self.audits[room]
        name = self._some(audit.dead if dead else audit.tools, index, sly=False)
        tool = audit.tools.get(name)
        who = self._who(room, index, False, lambda seat, _: tool is None or tool.agent == seat)
        if sly:
            who = (*AGENTS, BOB)[index % 3]
        grant = {"none": None, "wrong": "another"}.get(shown, tool.grant if tool else None)
        self._do(lambda: self._ask(who, room, run(what, name, grant)))

    # Coming and going

    @rule(room=rooms, who=people, sly=sly, quorum=quorums, most=st.integers(2, 6))
    def create(self, room: str, who: Actor, sly: bool, quorum: Quorum, most: int) -> None:
        free = [each for each in ROOMS if not self.audits[each].version]
        room = room if sly or not free else free[0]
        body = creates(default_gate_quorum=quorum, max_participants=most)
        self._do(lambda: self._ask(who, room, body))

    @rule(
        who=people,
        room=rooms,
        wanted=roles,
        how=st.sampled_from(["plain", "last", "old", "open", "garbage"]),
        fresh=st.booleans(),
        index=which,
    )
    def join(
        self, who: Actor, room: str, wanted: tuple[Role, ...], how: str, fresh: bool, index: int
    ) -> None:
        audit, ref = self.audits[room], None
        seen = [each.id for n, each in enumerate(audit.heard, 1) if audit.visible(n, who.seat)]
        if how == "last":
            ref = self.last.get((who.seat, room))
        elif how == "old" and seen:
            ref = seen[index * 7 % len(seen)]
        elif how == "open" and (audit.tools or audit.gates):
            ref = min({**audit.tools, **audit.gates})
        elif how == "garbage":
            ref = "never said"
        if fresh:
            self.now.pop(who.seat, None)
        self._do(lambda: self._ask(who, room, joins(who, *wanted), ref))

    @rule(room=rooms, index=which, sly=sly, how=st.sampled_from(["leave", "hang up", "hang up"]))
    def go(self, room: str, index: int, sly: bool, how: str) -> None:
        room = self._room(room, sly=sly)
        who = self._who(room, index, sly, lambda *_: True)
        ear = self.now.get(who.seat)
        if how == "leave":
            self._do(lambda: self._ask(who, room, SessionLeave()))
        elif ear is not None:
            self._do(ear.hang_up)

    @rule(room=rooms, index=which, who=people, sly=sly, new=roles, lying=sly)
    def change_roles(
        self,
        room: str,
        index: int,
        who: Actor,
        sly: bool,
        new: tuple[Role, ...],
        lying: bool,
    ) -> None:
        room = self._room(room, sly=sly)
        by = self._who(room, index, sly, lambda _, person: "admin" in person.roles)
        member = self.audits[room].members.get(who.seat)
        held = (Role.OBSERVER,) if lying or not member else tuple(map(Role, member.roles))
        self._do(lambda: self._ask(by, room, changes_roles(by, who, held, new)))

    @rule(room=rooms, index=which, sly=sly, change=changes)
    def configure(self, room: str, index: int, sly: bool, change: dict[str, Any]) -> None:
        room = self._room(room, sly=sly)
        who = self._who(room, index, sly, lambda _, person: "admin" in person.roles)
        self._do(lambda: self._ask(who, room, configures(**change)))

    @precondition(lambda self: self.count > 60)
    @rule(room=rooms, index=which, sly=sly)
    def end(self, room: str, index: int, sly: bool) -> None:
        room = self._room(room, sly=sly)
        who = self._who(room, index, sly, lambda _, person: "admin" in person.roles)
        self._do(lambda: self._ask(who, room, ends()))

    # Repeating

    @rule(index=st.integers(0, 30), fresh=st.booleans())
    def retry(self, index: int, fresh: bool) -> None:
        """The same message once more, perhaps on another connection: nothing happens twice."""
        said = self.sent[-1 - index % len(self.sent)]
        known = said.id in self.audits[said.room].ids
        if fresh:
            self.now.pop(said.who.seat, None)
        self._do(lambda: self._ask(said.who, said.room, said.body, said.ref, said.id))
        reply, _ = self.answers[0]
        if known:
            assert not reply.refused, reply.refused.detail
            assert reply.sealed[0].record.cause == said.id

    @rule(who=people, index=st.integers(0, 30))
    def reuse(self, who: Actor, index: int) -> None:
        """Another message under an id that is taken."""
        said = self.sent[-1 - index % len(self.sent)]
        if said.id in self.audits[said.room].ids:
            body = prompts(CLAUDE, "Different")
            self._do(lambda: self._ask(who, said.room, body, None, said.id))
            assert self.answers[0][0].refused

    # Time, and what goes wrong

    @rule(seconds=st.sampled_from([1, 1, 61, 299, 301, 3601]))
    def wait(self, seconds: int) -> None:
        """Time passes; what is due by then is done."""
        self.clock.move(seconds)
        for _ in range(4):
            self._do(self._due)
        now = self.clock.now()
        for audit in self.audits.values():
            for gate in audit.gates.values():
                assert audit.paused is not None or gate.expires is None or gate.expires > now
            assert all(not tool.grant or tool.expires > now for tool in audit.tools.values())

    @rule(back=st.booleans(), down=st.sampled_from([0, 0, 301]))
    def restart(self, back: bool, down: int) -> None:
        """The process is gone, with every connection; another takes over, and clients resume."""
        self.run(self._stop())
        self.clock.move(down)
        self.now.clear()
        self.ears.clear()
        self.listening.clear()
        self.segments.clear()
        self.run(self._start())
        self.answers, self.silent = [], False
        for audit in self.audits.values():
            audit.slept = True
        self._read_on()
        for audit in self.audits.values():
            here = {person.presence for person in audit.members.values()}
            assert audit.ended or here <= {"disconnected"}
            audit.slept = False
        for who in EVERYBODY if back else ():
            self.resume(who)

    @rule(who=people)
    def resume(self, who: Actor) -> None:
        """A client connects again, to every room it is in, and says what it heard last."""
        self.now.pop(who.seat, None)
        for room, audit in self.audits.items():
            if who.seat in audit.members:
                ref = self.last.get((who.seat, room))
                role = Role.DRIVER if who.kind is Kind.AGENT else Role.APPROVER
                self._do(partial(self._ask, who, room, joins(who, role), ref))

    @rule(
        room=rooms,
        moves=st.lists(
            st.tuples(
                people, st.sampled_from(["say", "vote", "go", "lose", "race", "come", "due"])
            ),
            min_size=2,
            max_size=5,
        ),
        index=st.integers(0, 1),
        failing=sly,
    )
    def burst(self, room: str, moves: list[tuple[Actor, str]], index: int, failing: bool) -> None:
        """Several things in one breath, decided before any is committed, or lost all together."""
        came: set[str] = set()

        def move(who: Actor, what: str) -> None:
            match what:
                case "say":
                    self._ask(who, room, prompts())
                case "vote":
                    self._ask(who, room, self._ballot(who, room, index, yes=True, by_tool=False))
                case "go" if who.seat not in came:
                    self._ask(who, room, SessionLeave())
                case "lose" if who.seat in self.now and who.seat not in came:
                    self.now[who.seat].hang_up()
                case "come" if who.seat not in came:
                    came.add(who.seat)
                    self.now.pop(who.seat, None)
                    self._ask(who, room, joins(who, Role.DRIVER))
                case "race" if who.seat in self.now and who.seat not in came:
                    came.add(who.seat)
                    old = self.now.pop(who.seat)
                    self._ask(who, room, joins(who, Role.DRIVER))
                    old.hang_up()
                case "due":
                    self._due()
                case _:
                    pass

        self._do(*(partial(move, who, what) for who, what in moves), failing=failing)


def run(what: str, proposal: str, grant: str | None = None) -> Body:
    """What an agent says of a tool that it runs."""
    if what == "execute":
        return executes(proposal)
    if what == "result":
        return finishes(proposal, grant=grant)
    return prints(proposal, grant=grant)


def nothing_new(reply: Reply) -> bool:
    """Whether the answer says that nothing was changed by the message."""
    return reply.refused is not None or bool(reply.outcome and reply.outcome.again)


def audit_before(audit: Audit, seq: int, seat: str) -> int:
    """The number before which nothing is missing when this one is heard."""
    earlier = [each for each in range(1, seq) if audit.visible(each, seat)]
    return earlier[-1] if earlier else 0


TestConversations = Conversations.TestCase
TestConversations.settings = settings(
    max_examples=5000 if LONG else 250,
    stateful_step_count=60 if LONG else 40,
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=list(HealthCheck),
)
