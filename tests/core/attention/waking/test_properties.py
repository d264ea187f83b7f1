"""Whatever happens in whichever order: nobody is typed over, nothing storms, nothing is lost."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from accord.core.attention.runtimes import HumanInput, RuntimeStatus, newest_live, observe_all
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.state import WakeFacts, WakeOrder, WakePhase
from accord.core.attention.waking.wake_events import WakeDue, WakeEnded, WakeSkipped, WakeStarted
from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Refused
from tests.core.attention.waking.scenario import HOUR, POLICY, SECOND, Agent, live

THREADS = ("th_1", "th_2", "th_3")
threads = st.sampled_from(THREADS)
steps = st.sampled_from([0, 1, SECOND, 5 * SECOND, 20 * SECOND, 60 * SECOND, 15 * 60 * SECOND])


class Wakes(RuleBasedStateMachine):
    """An agent, a person at its terminal, callers, a clock, and commands that end or do not."""

    def __init__(self) -> None:
        super().__init__()
        self.agent = Agent()
        self.human = HumanInput(None, line_empty=True)
        self.unread = dict.fromkeys(THREADS, 0)
        self.owed: dict[str, int] = {}  # when the newest unread message of a thread arrived
        self.settled: dict[str, int] = {}  # when a wake of a thread was skipped or ended
        self.started: list[tuple[int, str, WakeStarted]] = []
        self.reached: list[tuple[int, str]] = []
        self.wakes = 0

    def facts(self, thread: str, *, spawn: bool = False) -> WakeFacts:
        return replace(
            live(self.agent, self.human, spawn=spawn),
            unread=self.unread[thread],
            resumable=frozenset({"S1"}),
        )

    def run(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, WakeStarted):
                self.check_start(event)
                self.started.append((self.agent.now, event.open.order.thread, event))
            if isinstance(event, WakeEnded | WakeSkipped):
                self.settled[event.thread] = self.agent.now
            if isinstance(event, WakeEnded) and event.outcome.did_something:
                self.reached.append((event.outcome.triggered_at, event.thread))

    def check_start(self, event: WakeStarted) -> None:
        """No wake inside a quiet window, nor while the line is not empty."""
        assert self.unread[event.open.order.thread] > 0
        assert not self.agent.waking.paused_by
        if event.open.action is not WakeAction.TRIGGER_RUNTIME:
            return
        assert self.human.line_empty
        if not event.open.order.forced:
            assert not self.human.is_busy(self.agent.now, POLICY.quiet_ms)

    @rule(ms=steps)
    def time_passes(self, ms: int) -> None:
        self.agent.after(ms)
        # The engine's timer runs as soon as a deadline has passed, and the server looks again.
        for event in self.agent.tick():
            self.run([event])
            if isinstance(event, WakeDue):
                self.run(self.agent.look(self.facts(event.thread), event.wake))

    @rule(
        status=st.sampled_from(RuntimeStatus),
        supervises=st.booleans(),
        resumable=st.booleans(),
    )
    def beats(self, status: RuntimeStatus, supervises: bool, resumable: bool) -> None:
        self.agent.beat(status, supervises=supervises, resumable=resumable)

    @rule()
    def falls_silent(self) -> None:
        self.agent.lose()

    @rule(empty=st.booleans())
    def person_types(self, empty: bool) -> None:
        self.human = HumanInput(self.agent.now, line_empty=empty)

    @rule()
    def person_clears_the_line(self) -> None:
        self.human = replace(self.human, line_empty=True)

    @rule(thread=threads)
    def message_addresses_the_agent(self, thread: str) -> None:
        self.unread[thread] += 1
        self.ask(thread, automatic=True)
        self.owed[thread] = self.agent.now

    @rule(thread=threads, forced=st.booleans(), spawn=st.booleans())
    def somebody_triggers(self, thread: str, forced: bool, spawn: bool) -> None:
        self.ask(thread, forced=forced, spawn=spawn)

    def ask(
        self, thread: str, *, automatic: bool = False, forced: bool = False, spawn: bool = False
    ) -> None:
        self.wakes += 1
        order = WakeOrder(
            thread=thread, by="planner", automatic=automatic, forced=forced, autonomous=not forced
        )
        before, facts = self.agent.waking, self.facts(thread, spawn=spawn)
        try:
            events = self.agent.ask(order, facts, f"W{self.wakes}")
        except Refused:
            assert self.agent.waking is before
            return
        self.run(events)
        if automatic and not events:
            active = newest_live(
                observe_all(before.runtimes, facts.beats, self.agent.now), managed=False
            )
            if active and active.status is RuntimeStatus.ACTIVE:
                self.settled[thread] = self.agent.now

    @rule(thread=threads)
    def agent_reads(self, thread: str) -> None:
        self.unread[thread] = 0
        self.owed.pop(thread, None)

    @rule(worked=st.booleans())
    def command_ends(self, worked: bool) -> None:
        running = self.agent.waking.running
        if running is None:
            return
        result = WakeResult.FALLBACK_USED if worked else WakeResult.FAILED
        self.run(self.agent.end(result, wake=running.wake))

    @rule(paused=st.booleans())
    def person_pauses(self, paused: bool) -> None:
        self.agent.pause(paused=paused)

    @invariant()
    def at_most_one_wake_runs(self) -> None:
        running = [o for o in self.agent.waking.open.values() if o.phase is WakePhase.RUNNING]
        assert len(running) <= 1

    @invariant()
    def at_most_one_unforced_wake_reaches_a_thread_in_a_cool_down(self) -> None:
        for at, thread, event in self.started:
            reached = [when for when, where in self.reached if where == thread and when < at]
            if reached and not event.open.order.forced:
                assert at - max(reached) >= POLICY.cool_down_ms

    @invariant()
    def no_hour_has_more_unforced_wakes_than_allowed(self) -> None:
        unforced = [at for at, _, event in self.started if not event.open.order.forced]
        for at in unforced:
            within = [one for one in unforced if at - HOUR < one <= at]
            assert len(within) <= POLICY.wakes_per_hour

    @invariant()
    def nothing_is_lost_by_coalescing(self) -> None:
        """An unread message led to a start after it, to a wake that waits, or to a recorded no."""
        waking = self.agent.waking
        for thread, arrived in self.owed.items():
            since = [at for at, where, _ in self.started if where == thread and at >= arrived]
            on_record = waking.skipped.get(thread)
            recorded = on_record and on_record.at > arrived - POLICY.cool_down_ms
            settled = self.settled.get(thread, 0) >= arrived
            assert waking.waiting(thread) or since or recorded or settled

    @invariant()
    def a_wait_for_a_person_ends(self) -> None:
        for one in self.agent.waking.open.values():
            if one.cause is WakeCause.HUMAN_INPUT and one.phase is WakePhase.DEFERRED:
                assert one.until is not None
                assert self.agent.now <= one.until + POLICY.recheck_ms or one.next_at <= (
                    self.agent.now + POLICY.recheck_ms
                )

    @invariant()
    def the_registry_says_what_is_live(self) -> None:
        seen = observe_all(self.agent.waking.runtimes, {}, self.agent.now)
        managed = newest_live(seen, managed=True)
        assert managed is None or managed.is_live


Wakes.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestWakes = Wakes.TestCase
