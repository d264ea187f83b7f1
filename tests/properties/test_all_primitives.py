"""Every primitive at random over a real engine: no border is crossed, no value kept, stop obeyed.

Nobody is asked about a step that the rules do not allow, and the rules approve nothing themselves.

`ACCORD_LONG=1` tries many more of them, and others each time.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import replace

from accord.core.docket.session_kernel import SessionKernel
from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import MS_PER_SECOND, to_iso
from accord.core.room.conversation.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.conversation.prompts import PromptAmend, PromptDraft
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.conversation.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.forks import ForkSwitch
from accord.core.room.membership.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.room_settings import Category, ServerPolicy
from accord.core.room.shared_context.context_items import ContextAdd, ContextUpdate
from accord.core.room.shared_context.secrets import SecretRevoke, SecretShare
from accord.core.room.state import Urgency
from accord.engine.delivery import joining as arrivals_module
from accord.engine.streams import snapshots as snapshots_module
from accord.stores.memory import MemoryLog
from tests.core.room.decisions.test_evidence_check import FREES, SAW, TWICE
from tests.core.room.decisions.test_rulings import ALONE, BATCH, DEPLOY, PASSED
from tests.helpers.docket.batch_text import CHANGE_BLOCK, item
from tests.helpers.engine.harness import EngineHarness, ManualClock, PendingReply, RecordingPeer
from tests.helpers.log_audit.decision_audit import DecisionAudit
from tests.helpers.log_audit.visibility_audit import VisibilityAudit
from tests.helpers.room.logged_room import (
    context_add,
    context_remove,
    context_update,
    fork_create,
    merge_execute,
    merge_propose,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    DAVE,
    STREAM,
    prompt_submit,
    role_change,
    session_create,
    session_join,
    tool_approve,
    tool_execute,
    tool_propose,
    tool_result,
)
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
pytestmark = [
    pytest.mark.timeout(7200 if LONG else 300),
    proves(
        "UNI-12",
        "UNI-18",
        "OPEN-135",
        "PVP-3.2-1",
        "PVP-10-2",
        "PVP-10-3",
        "OPEN-37",
        "OPEN-42",
        "OPEN-45",
        "OPEN-47",
    ),
]
REPLAY_WINDOW = 8
EVERYBODY = (ALICE, BOB, CAROL, DAVE, CLAUDE, CODEX)
AGENTS = (CLAUDE, CODEX)
ROLES = {
    "bob": (Role.NAVIGATOR, Role.DRIVER),
    "carol": (Role.DRIVER,),
    "dave": (Role.APPROVER,),
}
KEYS = ("k0", "k1", "k2")
HOUSE = ServerPolicy(decision_kernel=SessionKernel())
REACHED: Counter[str] = Counter()
BATCHES = ("d0", "d1")
STEPS = (
    *(("TESTS", "suite_green=YES/NO"), ("TESTS", "again=YES/NO"), ("DEPLOY", "deployed=YES/NO")),
    *(("DEPLOY", "other=YES/NO"), ("NONE", "deployed=YES/NO")),
)
# What is decided, what happened, what did not, and what agents may not say.
TEXTS = (BATCH, ALONE, PASSED, SAW, *FREES, "nothing", item("DEPLOY", more=CHANGE_BLOCK, plan=None))

seats = st.lists(st.sampled_from(EVERYBODY), min_size=1, max_size=3, unique=True)
people = st.sampled_from(EVERYBODY)
agents = st.sampled_from(AGENTS)
which = st.integers(0, 7)


class AllPrimitives(RuleBasedStateMachine):
    """One room in which all that PVP has happens in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(arrivals_module, "PAGE_ROWS", 3)
        self.patch.setattr(snapshots_module, "SNAPSHOT_INTERVAL_RECORDS", 5)
        self.log, self.clock = MemoryLog(), ManualClock()
        self.oracle = VisibilityAudit()
        self.rulings = DecisionAudit(
            frozenset(who.principal for who in EVERYBODY if who not in AGENTS)
        )
        self.values: dict[str, set[str]] = {}
        self.ears: dict[RecordingPeer, int] = {}
        self.count = 0

    def teardown(self) -> None:
        REACHED.update(self.rulings.counts)
        if hasattr(self, "stage"):
            self.run(self.stage.close())
        self.loop.close()
        self.patch.undo()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    @initialize()
    def begin(self) -> None:
        """Everybody is there, something was said, and some have gone aside."""
        self.stage = EngineHarness(self.log, clock=self.clock, window=REPLAY_WINDOW, policy=HOUSE)
        self._say(ALICE, session_create())
        for who in EVERYBODY[1:]:
            self._join(who, None)
        self._say(ALICE, prompt_submit())
        self._say(BOB, fork_create("Aside", CLAUDE, point=self._id("prompt.submit", 0)))

    # How a step is made and looked at

    def _say(
        self, who: Actor, body: Body, ref: str | None = None, fork: str | None = None
    ) -> PendingReply:
        self.count += 1
        reply = PendingReply()

        def ask() -> None:
            nonlocal reply
            ear = self._ear(who)
            reply = self.stage.submit(who, body, f"m{self.count}", ref, fork=fork, ear=ear)

        self._do(ask)
        assert reply.count == 1
        if reply.refusal:
            assert reply.refusal.reason is not Reason.INTERNAL, reply.refusal.detail
            assert not any(value in repr(reply.refusal) for value in self.values)
        return reply

    def _do(self, step: Callable[[], object]) -> None:
        """One thing happens; everything settles, and is looked at."""

        async def breath() -> None:
            step()
            await self.stage.wait_until_idle()

        peers = self.stage.engine.delivery
        before = {ear for ear in self.ears if peers.is_subscribed(STREAM, ear)}
        self.run(breath())
        known = len(self.oracle.wire_records)
        self.oracle.recent_members = set(self.oracle.members)
        self._read_on()
        fresh = self.oracle.wire_records[known:]
        for ear in list(self.ears):
            got = self._check_frames(ear)
            if ear in before and peers.is_subscribed(STREAM, ear):
                mine = [h.seq for h in fresh if self.oracle.can_see(h, ear.principal)]
                assert got == mine, f"{ear.principal} heard {got} of {mine}"
        assert self.stage.engine.failures == []

    def _read_on(self) -> None:
        for row in self.run(self.log.read(STREAM, self.oracle.version)):
            assert not any(value.encode() in row.body for value in self.values)
            self.oracle.read(row)
            stored = json.loads(row.body)
            said = stored.get("said") or {}
            actor = stored.get("actor") or said.get("sender", "")
            self.rulings.read(stored["kind"], row.id, actor, said)
        kept = self.run(self.log.snapshot(STREAM))
        assert not kept or not any(value.encode() in kept.blob for value in self.values)

    def _check_frames(self, ear: RecordingPeer) -> list[int]:
        """Nothing it may not see, each number once and rising; the numbers it just heard."""
        new = ear.received[self.ears[ear] :]
        self.ears[ear] = len(ear.received)
        assert ear.seqs == sorted(set(ear.seqs))
        for frame in new:
            self._check_frame(ear.principal, frame)
        if not ear.is_connected:
            del self.ears[ear]
        return [frame["seq"] for frame in new if "seq" in frame]

    def _check_frame(self, seat: str, frame: dict[str, Any]) -> None:
        oracle, text = self.oracle, json.dumps(frame)
        assert all(seat in allowed for v, allowed in self.values.items() if v in text), "a leak"
        if "seq" in frame:
            heard = oracle.wire_records[frame["seq"] - 1]
            assert heard.id == frame["id"]
            assert oracle.can_see(heard, seat), f"{seat} saw {frame['type']}"
            return
        named = frame["payload"].get("visible_to")
        if frame["type"] == "context.add" and named is not None:
            assert seat in named or seat == frame["sender"]
        if frame.get("fork"):
            assert seat in oracle.forks[frame["fork"]].readers

    # Who and what is meant

    def _ear(self, who: Actor) -> RecordingPeer:
        ear = self.stage.peers.get(who.principal)
        if ear is None or not ear.is_connected:
            ear = self.stage.connect(who)
            self.ears[ear] = 0
        return ear

    def _id(self, kind: str, index: int) -> str:
        """The id of something of that kind, mostly a late one."""
        known = self.oracle.ids.get(kind) or ["never"]
        return known[-1 - index % len(known)]

    def _fork(self, who: Actor, index: int) -> str | None:
        mine = [id for id, each in self.oracle.forks.items() if who.principal in each.readers]
        choices: list[str | None] = [None, *(mine or self.oracle.forks)]
        return choices[index % len(choices)]

    # Talking

    @rule(who=people, agent=agents, index=which, kind=st.sampled_from(["ask", "draft", "amend"]))
    def prompt(self, who: Actor, agent: Actor, index: int, kind: str) -> None:
        fork = self._fork(who, index)
        bodies: dict[str, Body] = {
            "ask": prompt_submit(agent),
            "draft": PromptDraft(content="Pl", contributors=(who.principal,)),
            "amend": PromptAmend(self._id("prompt.submit", index), "And", "Forgot"),
        }
        self._say(who, bodies[kind], None, fork)

    @rule(who=agents, index=which, shown=st.one_of(st.just(None), seats), thinks=st.booleans())
    def start(self, who: Actor, index: int, shown: list[Actor] | None, thinks: bool) -> None:
        prompt, fork = self._id("prompt.submit", index), self._fork(who, index)
        visible_to: Any = "approvers_only" if shown is None else tuple(w.principal for w in shown)
        thinking = ThinkingStart(who.principal, prompt, visible_to)
        self._say(who, thinking if thinks else ResponseStart(who.principal, prompt), None, fork)

    @rule(who=agents, index=which, end=st.booleans(), thinks=st.booleans())
    def go_on(self, who: Actor, index: int, end: bool, thinks: bool) -> None:
        ref = self._id("thinking.start" if thinks else "response.start", index)
        more: Body = ThinkingChunk("hm") if thinks else ResponseChunk("Well")
        last: Body = ThinkingEnd("so") if thinks else ResponseEnd("complete")
        self._say(who, last if end else more, ref)

    @rule(who=people, index=which, kind=st.sampled_from(["add", "update", "remove"]), to=seats)
    def context(self, who: Actor, index: int, kind: str, to: list[Actor]) -> None:
        key = KEYS[index % len(KEYS)]
        named = None if index % 2 else [each.principal for each in to]
        bodies: dict[str, Body] = {
            "add": context_add(key, f"text {self.count}", to=named),
            "update": context_update(key, f"more {self.count}"),
            "remove": context_remove(key),
        }
        self._say(who, bodies[kind], None, self._fork(who, index))

    @rule(who=people, scope=seats, index=which, brief=st.booleans())
    def share(self, who: Actor, scope: list[Actor], index: int, brief: bool) -> None:
        value = f"mem:xyzzy-{self.count}-plugh"
        self.values[value] = {who.principal, *(each.principal for each in scope)}
        expires = to_iso(self.clock.now() + 60 * MS_PER_SECOND) if brief else None
        key, named = KEYS[index % len(KEYS)], tuple(each.principal for each in scope)
        self._say(who, SecretShare(key, named, value, expires))

    @rule(who=people, index=which)
    def revoke(self, who: Actor, index: int) -> None:
        self._say(who, SecretRevoke(KEYS[index % len(KEYS)], "Leaked"))

    @rule(index=which, agent=agents, back=people, shown=st.one_of(st.just("all"), seats))
    def story(self, index: int, agent: Actor, back: Actor, shown: Any) -> None:
        """Somebody talks with an agent where both are, then somebody else comes in afresh."""
        places = [None, *(i for i, b in self.oracle.forks.items() if agent.principal in b.readers)]
        fork = places[-1 - index % len(places)]
        named = shown if shown == "all" else tuple(who.principal for who in shown)
        for who in (ALICE, BOB, CAROL):
            if who.principal in self.oracle.readers(fork):
                self._say(who, PromptDraft(content="Pl", contributors=(who.principal,)), None, fork)
                self._say(who, prompt_submit(agent), None, fork)
                self._say(who, context_add(f"{who.principal}-{index}", "text"), None, fork)
        self._say(
            agent, ThinkingStart(agent.principal, self._id("prompt.submit", 0), named), None, fork
        )
        self._say(agent, ThinkingChunk("hm"), self._id("thinking.start", 0))
        self._say(agent, tool_propose(agent), None, fork)
        self._join(back, None)

    # Acting and stopping

    @rule(who=agents, index=which, gated=st.booleans())
    def propose(self, who: Actor, index: int, gated: bool) -> None:
        category = Category.SHELL_EXECUTE if gated else Category.FILE_READ
        self._say(who, tool_propose(who, category=category), None, self._fork(who, index))

    @rule(who=people, index=which, what=st.sampled_from(["approve", "execute", "finish"]))
    def tool(self, who: Actor, index: int, what: str) -> None:
        id = self._id("tool.propose", index)
        bodies: dict[str, Body] = {
            "approve": tool_approve(who, id),
            "execute": tool_execute(id),
            "finish": tool_result(id),
        }
        self._say(who, bodies[what])

    # Deciding

    @rule(who=people, index=which, text=st.sampled_from(TEXTS), cites=st.booleans())
    def decide(self, who: Actor, index: int, text: str, cites: bool) -> None:
        """Batches, news, lies and judgements, by anybody, anywhere, about one of two decisions."""
        batch, fork = BATCHES[index % 2], self._fork(who, index // 2)
        cited = [self._id("tool.propose", index)] if cites else []
        content = {"batch": text, "evidence": cited}
        if who not in AGENTS and index % 4 == 1:
            content["guards"] = ["deploy"] if index == 1 else []
        key = f"decision:{batch}"
        body: Body = ContextUpdate(key, "News", new_content=content)
        if index % 3 == 0:
            key = key if index else f"{key}:{who.principal}"
            body = ContextAdd(key=key, content_type="structured", content=content)
        self._say(who, body, None, fork)

    @rule(who=people, index=which)
    def undecide(self, who: Actor, index: int) -> None:
        batch, part = BATCHES[index % 2], ("", "#snapshot", "#convergence", f":{who.principal}")
        body = context_remove(f"decision:{batch}{part[index // 2]}")
        self._say(who, body, None, self._fork(who, index // 4))

    @rule(who=agents, index=which, step=st.sampled_from(STEPS), whole=st.booleans())
    def bind(self, who: Actor, index: int, step: tuple[str, str], whole: bool) -> None:
        link = {"batch": BATCHES[index % 2], "item": step[0]} | ({"step": step[1]} if whole else {})
        body = tool_propose(who, category=Category.DEPLOY, arguments={"decision": link})
        reply = self._say(who, body, None, self._fork(who, index // 2))
        assert whole or reply.refusal, "half a binding was taken"

    @rule(who=agents, index=which, well=st.booleans(), begins=st.booleans(), deploys=st.booleans())
    def release(self, who: Actor, index: int, well: bool, begins: bool, deploys: bool) -> None:
        """Decided by a person, proposed, approved if somebody is asked, run, and told about."""
        fork = self._fork(who, index)
        content = {"batch": TWICE + DEPLOY, "guards": ["deploy"] if index % 2 else []}
        body = ContextAdd(key="decision:d0", content_type="structured", content=content)
        self._say(ALICE, body, None, fork)
        for name, step in STEPS[: 3 if deploys else 1]:
            link = {"batch": "d0", "item": name, "step": step}
            said = tool_propose(who, category=Category.DEPLOY, arguments={"decision": link})
            if self._say(who, said, None, fork).refusal:
                return
            id = self._id("tool.propose", 0)
            self._say(ALICE, tool_approve(ALICE, id))
            if begins:
                self._say(who, tool_execute(id))
            self._say(who, replace(tool_result(id), success=well))
            news = {"batch": SAW, "evidence": [id]}
            self._say(who, ContextUpdate("decision:d0", "News", new_content=news), None, fork)

    @rule(who=people, agent=st.one_of(st.none(), agents), urgency=st.sampled_from(Urgency))
    def interrupt(self, who: Actor, agent: Actor | None, urgency: Urgency) -> None:
        self._say(who, InterruptRaise(urgency, "Enough", agent.principal if agent else None))

    @rule(who=agents, index=which)
    def acknowledge(self, who: Actor, index: int) -> None:
        id = self._id("interrupt.raise", index)
        self._say(who, InterruptAcknowledge(id, who.principal, "acknowledged"))

    # Forks

    @rule(who=people, others=seats, index=which, copy=st.booleans())
    def fork(self, who: Actor, others: list[Actor], index: int, copy: bool) -> None:
        point = self._id("prompt.submit", index)
        self._say(
            who, fork_create("Aside", *others, point=point, copy=copy), None, self._fork(who, index)
        )

    @rule(who=people, index=which)
    def switch(self, who: Actor, index: int) -> None:
        names = ["main", *self.oracle.forks]
        self._say(who, ForkSwitch(names[index % len(names)]))

    @rule(who=people, index=which, onto=which, strategy=st.sampled_from(MergeStrategy))
    def merge(self, who: Actor, index: int, onto: int, strategy: MergeStrategy) -> None:
        source, into = self._fork(who, index) or "aside", self._fork(who, onto) or "main"
        self._say(who, merge_propose(source, into, strategy=strategy))

    @rule(who=people, index=which, settled=st.booleans())
    def execute_merge(self, who: Actor, index: int, settled: bool) -> None:
        id = self._id("merge.propose", index)
        self._say(who, tool_approve(who, id))
        reply = self._say(who, merge_execute(id))
        if settled and reply.refusal and reply.refusal.details:
            keys = reply.refusal.details.get("conflicts", ())
            self._say(who, merge_execute(id, dict.fromkeys(keys, "use_source")))

    # Coming and going

    @rule(who=people, known=st.booleans())
    def join(self, who: Actor, known: bool) -> None:
        """Somebody comes in afresh or says what they heard last: it is one and the same story."""
        ear = self.stage.peers.get(who.principal)
        last = ear.ids[-1] if known and ear and ear.ids else None
        self._join(who, last)

    def _join(self, who: Actor, last: str | None) -> None:
        self.stage.peers.pop(who.principal, None)
        role = (Role.DRIVER,) if who in AGENTS else ROLES.get(who.principal, (Role.ADMIN,))
        reply = self._say(who, session_join(who, *role), last)
        if reply.refusal:
            return
        got, oracle = self.stage.peers[who.principal].seqs, self.oracle
        since = next((h.version for h in oracle.wire_records if h.id == last), None)
        if since is not None:
            assert got == oracle.visible_seqs(who.principal, since)
        else:
            story = oracle.visible_seqs(who.principal)
            assert got == story[len(story) - len(got) :]
            assert {*oracle.visible_seqs(who.principal, oracle.version - REPLAY_WINDOW)} <= {*got}

    @rule(who=st.sampled_from(EVERYBODY[1:]), politely=st.booleans())
    def go(self, who: Actor, politely: bool) -> None:
        if politely:
            self._say(who, SessionLeave())
        elif who.principal in self.stage.peers:
            self._do(self.stage.peers[who.principal].disconnect)

    @rule(who=people, role=st.sampled_from([Role.OBSERVER, Role.DRIVER, Role.APPROVER]))
    def demote(self, who: Actor, role: Role) -> None:
        member = self.run(self.stage.state()).members.get(who.principal)
        if member is not None and who is not ALICE:
            self._say(ALICE, role_change(ALICE, who, member.roles, (role,)))

    @rule(who=people, asks=st.booleans())
    def live(self, who: Actor, asks: bool) -> None:
        self._say(who, HeartbeatPing() if asks else HeartbeatPong())

    @rule(seconds=st.sampled_from([1, 31, 61, 121, 301]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self._do(self.stage.engine.heartbeat.scheduler.run_due)
        for _ in range(3):
            self._do(self.stage.engine.scheduler.run_due)

    @precondition(lambda self: self.count % 9 == 0)
    @rule()
    def restart(self) -> None:
        """Another process takes over; it holds no value, and clients come back."""
        self.run(self.stage.close())
        before = self.stage.peers
        self.ears.clear()
        self.stage = EngineHarness(self.log, clock=self.clock, window=REPLAY_WINDOW, policy=HOUSE)
        self.run(self.stage.engine.start())
        self._read_on()
        assert repr(self.stage.engine.vault) == "Vault(0 values)"
        assert self.run(self.stage.state()).secrets == {}
        for who in EVERYBODY:
            if who.principal in self.oracle.members and who.principal in before:
                self._join(who, next(iter(before[who.principal].ids[-1:]), None))


class TestAllPrimitives(AllPrimitives.TestCase):  # type: ignore[misc, valid-type]
    """The machine, and that it came to what it is for."""

    @classmethod
    def tearDownClass(cls) -> None:
        """Rules that never ruled would hold every promise."""
        super().tearDownClass()
        assert REACHED.keys() >= {"ruled", "asked", "cleared", "ran", "cited"}


TestAllPrimitives.settings = settings(
    max_examples=3000 if LONG else 20,
    stateful_step_count=80 if LONG else 50,
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=list(HealthCheck),
)
