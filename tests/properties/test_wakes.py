"""Random messages, typing, reading, role changes and crashes: no wake meets a person's input.

None is lost or doubled either: what an agent has not read was followed by a wake, or by a notice
that one failed for a reason that a terminal can have. `ACCORD_LONG=1` tries many more of them.
"""

import asyncio
import os
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from accord.core.attention.runtimes import HumanInput
from accord.core.attention.state import Seat, stream_of
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.wake_events import WakeEnded
from accord.core.attention.waking.wake_limits import WakePolicy
from accord.core.attention.waking.waker_port import WakeReport, WakeTarget
from accord.core.kernel.actor import TIMER_ACTOR, Actor, CredentialRights
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Elapsed, Message
from accord.core.kernel.role_permissions import Capability, Kind, ThreadRole
from accord.core.kernel.timestamps import to_iso
from accord.engine.workers import finish_worker
from accord.identity.token_signing import Keyring
from accord.transports.msg.waking.reactions import AttentionWorker
from tests.helpers.threads.local_service import LocalService
from tests.helpers.threads.thread_rules import agent
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
pytestmark = proves("MSG-3.8-1", "MSG-3.8-6", "MSG-3.8-7", "OPEN-127", "OPEN-129")
SECOND = 1000
POLICY = WakePolicy(quiet_ms=20 * SECOND, cool_down_ms=30 * SECOND)
SEAT = Seat("default", "coder")
CODER = agent("coder")
SUPERVISOR = Actor(
    "coder",
    Kind.AGENT,
    "S2",
    credential=CredentialRights(capabilities=frozenset({Capability.SUPERVISE})),
)
THREADS = 2
# Why a wake may fail here: a crash, a person who left a draft, a supervisor that was not back yet.
CAUSES_OF_A_TERMINAL = {
    WakeCause.INTERRUPTED,
    WakeCause.HUMAN_COLLISION,
    WakeCause.NO_FALLBACK,
    WakeCause.UNMANAGED,
}
roles = st.sampled_from([ThreadRole.WORKER, ThreadRole.REVIEWER, ThreadRole.ORCHESTRATOR])
threads = st.integers(0, THREADS - 1)
events = st.sampled_from(["", "fix_pushed", "re_review_requested", "thread_escalated"])


Result = TypeVar("Result")


class Delivery(NamedTuple):
    """A prompt that reached the terminal."""

    at: int
    thread: str
    wake: str


class Terminal:
    """The agent's terminal with its supervisor, which outlive every server."""

    def __init__(self, machine: "WakeMachine") -> None:
        self.machine = machine
        self.typed_at: int | None = None
        self.line_empty = True
        self.deliveries: list[Delivery] = []
        self.wrong: list[str] = []  # an exception here would only be a failed wake

    async def human_input(self, target: WakeTarget) -> Mapping[str, HumanInput]:
        await asyncio.sleep(0)
        return {"S2": HumanInput(self.typed_at, self.line_empty)}

    async def deliver(
        self, target: WakeTarget, session_id: str, wake: str, prompt: str
    ) -> WakeReport:
        """A supervisor looks again before it pastes; here the rules alone must be right.

        It types the same wake once, as a supervisor does.
        """
        if wake not in {each.wake for each in self.deliveries}:
            self.type_prompt(wake, prompt)
        await asyncio.sleep(0)
        return WakeReport(WakeAction.TRIGGER_RUNTIME, WakeResult.DELIVERED, WakeCause.UNREAD)

    def type_prompt(self, wake: str, prompt: str) -> None:
        now = self.machine.local.clock.now()
        quiet = self.typed_at is None or now - self.typed_at >= POLICY.quiet_ms
        if not quiet:
            self.wrong.append("a person typed within the quiet window")
        if not self.line_empty:
            self.wrong.append("a person's draft is in the line")
        thread = prompt.split("in thread ", 1)[1].split(".", 1)[0]
        for earlier in self.deliveries:
            if earlier.thread == thread and now - earlier.at < POLICY.cool_down_ms:
                self.wrong.append("woken twice for the same thread")
        if not self.machine.unread(thread):
            self.wrong.append("woken for what was read")
        self.deliveries.append(Delivery(now, thread, wake))


class WakeMachine(RuleBasedStateMachine):
    """Two threads of a planner and a supervised agent."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.terminal = Terminal(self)
        self.local: LocalService = self.run(self._make())
        self.worker = self.started()
        self.names: list[str] = []
        for _ in range(THREADS):
            made = {"title": "T", "participants": ["planner", "coder"]}
            answer = self.run(self.local.call(agent("planner"), "create_thread", **made))
            self.names.append(answer.thread_id)
        self.addressed: dict[str, list[tuple[int, int]]] = {name: [] for name in self.names}
        self.last = dict.fromkeys(self.names, 0)
        self.acked = dict.fromkeys(self.names, 0)
        self.beat()

    async def _make(self) -> LocalService:
        return LocalService(Keyring.open(Path(self.folder.name) / "keys"))

    def started(self) -> AttentionWorker:
        self.local.service.wakes.terminals = self.terminal
        return AttentionWorker(self.local.service)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(work)

    def unread(self, thread: str) -> int:
        return self.last[thread] - self.acked[thread]

    def beat(self) -> None:
        beat = {"runtime": "codex_cli", "status": "idle", "line_empty": self.terminal.line_empty}
        self.run(self.local.call(SUPERVISOR, "heartbeat_session", **beat))

    # What happens

    @rule(place=threads, role=roles, event=events, named=st.booleans(), act=st.booleans())
    def post(self, place: int, role: ThreadRole, event: str, named: bool, act: bool) -> None:
        thread = self.names[place]
        metadata: dict[str, Any] = {"to": ["coder"]} if named else {}
        kind = {"kind": "event", "metadata": metadata | {"event_type": event}} if event else {}
        more = kind or {"metadata": metadata}
        answer = self.run(self.local.post(agent("planner", role), thread, "look", **more))
        self.last[thread] = answer.seq
        wakes_all = event in {"re_review_requested", "thread_escalated"}
        if named or (wakes_all and role is not ThreadRole.WORKER):
            self.addressed[thread].append((answer.seq, self.local.clock.now()))
        if act:
            self.react()

    @rule(place=threads)
    def read_and_acknowledge(self, place: int) -> None:
        thread = self.names[place]
        self.react()
        self.sync(thread)
        ack = {"thread_id": thread, "last_read_seq": self.last[thread]}
        self.run(self.local.call(CODER, "ack_read", **ack))
        self.acked[thread] = self.last[thread]

    @rule(leaves_draft=st.booleans())
    def type(self, leaves_draft: bool) -> None:
        self.terminal.typed_at = self.local.clock.now()
        self.terminal.line_empty = not leaves_draft
        self.beat()

    @rule()
    def send_the_draft(self) -> None:
        self.terminal.line_empty = True
        self.beat()

    @rule(seconds=st.sampled_from([1, 5, 12, 20, 31, 61]))
    def wait(self, seconds: int) -> None:
        self.local.clock.at += seconds * SECOND
        self.beat()
        self.tick()

    @rule(turns=st.integers(0, 40))
    def crash_while_reacting(self, turns: int) -> None:
        self.run(self._crash(turns))
        self.worker = self.started()
        self.beat()
        # A supervisor that finds the server again takes up what was under way.
        self.run(self.local.service.wakes.take_up(SEAT, "S2"))

    async def _crash(self, turns: int) -> None:
        reacting = asyncio.ensure_future(finish_worker(self.local.log, self.worker))
        for _ in range(turns):
            await asyncio.sleep(0)
        self.local.engine.tasks.cancel_all()
        wakes = self.local.service.wakes
        # Killed, not stopped: what was under way records nothing any more.
        self.local.start()
        for task in (reacting, *wakes._running):
            task.cancel()
        await asyncio.gather(reacting, *wakes._running, return_exceptions=True)

    # Time and reactions

    def tick(self) -> None:
        self.run(self._tick())
        self.react()

    async def _tick(self) -> None:
        stream, now = stream_of(*SEAT), to_iso(self.local.clock.now())
        room = stream.partition("/")[2]
        message = Message(self.local.engine.new_id(), now, room, SYSTEM, Elapsed())
        await self.local.service.submitter.answer_to(stream, message, TIMER_ACTOR)

    def react(self) -> None:
        """Let the server handle everything that was committed, and finish its wakes."""
        self.run(self._react())
        for thread in self.names:
            self.sync(thread)

    async def _react(self) -> None:
        reached = -1
        while reached != (reached := await self.local.log.position()):
            await finish_worker(self.local.log, self.worker)
            running = set(self.local.service.wakes._running)
            for task in running:
                await task
            await self.local.engine.wait_until_idle()

    def sync(self, thread: str) -> None:
        """The server's own messages count as unread too."""
        found = self.run(self.local.call(CODER, "get_thread", thread_id=thread))
        self.last[thread] = found.last_seq

    @invariant()
    def no_wake_meets_a_person_or_repeats_another(self) -> None:
        assert self.terminal.wrong == []
        assert self.ends() <= CAUSES_OF_A_TERMINAL, "a wake ended by an error of ours"

    def ends(self) -> set[WakeCause]:
        """Why wakes have failed so far."""
        rows = self.run(self.local.log.read(stream_of(*SEAT)))
        events = [self.local.engine.decode_row(row).record.event for row in rows]
        ended = [each.outcome for each in events if isinstance(each, WakeEnded)]
        return {each.cause for each in ended if each.result is WakeResult.FAILED}

    def teardown(self) -> None:
        try:
            self.check_the_end()
        finally:
            self.run(self.local.stop())
            self.runner.close()
            self.folder.cleanup()

    def check_the_end(self) -> None:
        self.terminal.line_empty, self.terminal.typed_at = True, None
        self.beat()
        for _ in range(6):  # beyond the longest a wake may be under way, and beyond the cost bound
            self.local.clock.at += 31 * 60 * SECOND
            self.beat()
            self.tick()
            self.tick()
        assert self.terminal.wrong == []
        for thread in self.names:
            self.check_nothing_lost(thread)

    def check_nothing_lost(self, thread: str) -> None:
        read = {"thread_id": thread, "limit": 200, "peek": True}
        page = self.run(self.local.call(agent("planner"), "read_messages", **read))
        failures = [
            message.seq
            for message in page.messages
            if message.kind == "system" and message.metadata.get("notice") == "wake_ended"
        ]
        for seq, at in self.addressed[thread]:
            woken = any(
                each.thread == thread and each.at >= at for each in self.terminal.deliveries
            )
            told = any(failure > seq for failure in failures)
            assert woken or told or seq <= self.acked[thread], f"message {seq} woke nobody"
        [attention] = [self.run(self.local.service.attention_of(*SEAT))]
        assert attention.waking.open == {}, "a wake is left open"


TestWakes = WakeMachine.TestCase
TestWakes.settings = settings(
    max_examples=300 if LONG else 30, stateful_step_count=50 if LONG else 20, deadline=None
)


@pytest.fixture
def machine() -> Iterator[WakeMachine]:
    """One machine whose steps a test chooses."""
    machine = WakeMachine()
    yield machine
    machine.run(machine.local.stop())
    machine.runner.close()
    machine.folder.cleanup()


def typed_at_and_addressed(machine: WakeMachine) -> None:
    machine.type(leaves_draft=False)
    machine.post(0, ThreadRole.WORKER, "", named=True, act=True)


def test_a_message_is_delivered_once_the_quiet_window_is_over(machine: WakeMachine) -> None:
    typed_at_and_addressed(machine)
    machine.wait(12)
    assert machine.terminal.deliveries == []
    machine.wait(12)
    assert [each.thread for each in machine.terminal.deliveries] == [machine.names[0]]
    assert machine.terminal.wrong == []


def test_without_the_quiet_window_the_machine_finds_it(
    machine: WakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HumanInput, "is_busy", lambda self, *_: not self.line_empty)
    typed_at_and_addressed(machine)
    assert machine.terminal.wrong == ["a person typed within the quiet window"]


def test_a_wake_of_before_a_crash_is_typed_once(machine: WakeMachine) -> None:
    """Killed at each step from the decision on: the terminal is asked again, with the same id."""
    for turns in range(40):
        before = len(machine.terminal.deliveries)
        machine.post(0, ThreadRole.WORKER, "", named=True, act=False)
        machine.crash_while_reacting(turns)
        machine.react()
        for _ in range(3):
            machine.wait(31)
        assert len(machine.terminal.deliveries) == before + 1, turns
        machine.read_and_acknowledge(0)
        machine.wait(61 * 60)
    assert machine.terminal.wrong == []
