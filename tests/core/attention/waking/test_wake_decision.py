"""Every outcome of a wake: who is woken, how, when, and why not."""

import pytest
from msgspec.structs import replace

from accord.core.attention.runtimes import HumanInput, RuntimeStatus
from accord.core.attention.waking.outcomes import (
    SENTENCES,
    WakeAction,
    WakeCause,
    WakeResult,
)
from accord.core.attention.waking.state import WakeFacts, WakeOrder, WakePhase
from accord.core.attention.waking.wake_events import (
    WakeDeferred,
    WakeDue,
    WakeEnded,
    WakeSkipped,
    WakeStarted,
)
from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Reason, Refused
from tests.core.attention.waking.scenario import (
    AUTOMATIC,
    BY_OPERATOR,
    FORCED,
    FREE,
    HOUR,
    MINUTE,
    ORDER,
    POLICY,
    RESUMABLE,
    SECOND,
    SPAWNABLE,
    T0,
    THREAD,
    UNREAD,
    Agent,
    dormant,
    live,
    supervised,
)
from tests.spec import proves

OTHER = WakeOrder(thread="th_2", by="planner")
TYPING = HumanInput(T0 - 3 * SECOND, line_empty=True)
DRAFT = HumanInput(T0 - HOUR, line_empty=False)


def started(events: list[Event]) -> WakeStarted:
    (event,) = events
    assert isinstance(event, WakeStarted)
    return event


def deferred(events: list[Event]) -> WakeDeferred:
    (event,) = events
    assert isinstance(event, WakeDeferred)
    return event


def skipped(events: list[Event]) -> WakeCause:
    (event,) = events
    assert isinstance(event, WakeSkipped)
    return event.cause


def ended(events: list[Event]) -> WakeEnded:
    (event,) = events
    assert isinstance(event, WakeEnded)
    return event


def refused(agent: Agent, order: WakeOrder, facts: WakeFacts) -> Reason:
    before = agent.waking
    with pytest.raises(Refused) as refusal:
        agent.ask(order, facts)
    assert agent.waking is before
    assert refusal.value.detail in SENTENCES.values()
    return refusal.value.reason


def woken() -> Agent:
    """Woken by resume five seconds ago; the command has ended."""
    agent = dormant()
    agent.ask(ORDER, RESUMABLE)
    agent.after(SECOND).end()
    return agent.after(4 * SECOND)


# Whether there is anything to wake for


@proves("MSG-3.8-1")
def test_a_dormant_agent_with_unread_messages_is_woken() -> None:
    event = started(dormant().ask(ORDER, RESUMABLE))
    assert event.open.action is WakeAction.RESUME_SESSION
    assert event.open.cause is WakeCause.UNREAD
    assert event.session_id == "S1"


@proves("MSG-3.8-1")
@pytest.mark.parametrize("order", [ORDER, FORCED], ids=["asked", "forced"])
def test_nothing_unread_wakes_nobody(order: WakeOrder) -> None:
    facts = replace(RESUMABLE, unread=0)
    assert skipped(dormant().ask(order, facts)) is WakeCause.NOTHING_UNREAD


def test_a_message_that_needs_no_wake_leaves_no_record() -> None:
    assert dormant().ask(AUTOMATIC, replace(RESUMABLE, unread=0)) == []
    agent = Agent()
    agent.beat(RuntimeStatus.ACTIVE)
    assert agent.ask(AUTOMATIC, RESUMABLE) == []


def test_a_paused_agent_is_woken_by_nothing_until_a_person_resumes_it() -> None:
    agent = dormant()
    assert len(agent.pause()) == 1
    assert agent.pause() == []
    assert skipped(agent.ask(FORCED, RESUMABLE)) is WakeCause.PAUSED
    assert len(agent.pause(paused=False)) == 1
    assert agent.pause(paused=False) == []
    started(agent.ask(ORDER, RESUMABLE))


def test_every_cause_has_its_sentence() -> None:
    assert set(SENTENCES) == set(WakeCause)


# Managed runtimes, and the person at the terminal


@proves("MSG-3.8-4", "MSG-3.8-10")
def test_a_live_managed_runtime_is_triggered_first_and_a_new_session_is_its_fallback() -> None:
    agent, facts = supervised()
    event = started(agent.ask(ORDER, replace(facts, can_spawn=True)))
    assert (event.open.action, event.session_id) == (WakeAction.TRIGGER_RUNTIME, "S1")
    assert event.open.fallback is WakeAction.SPAWN_SESSION


def test_the_newest_managed_runtime_is_preferred_to_an_active_unmanaged_one() -> None:
    agent, facts = supervised()
    agent.beat(RuntimeStatus.ACTIVE, session="S2")
    assert started(agent.ask(ORDER, facts)).session_id == "S1"


@proves("MSG-3.8-6", "MSG-3.8-7", "MSG-3.8-9")
@pytest.mark.parametrize("human", [TYPING, DRAFT], ids=["typing", "draft"])
def test_human_input_defers_for_at_most_a_minute_and_is_looked_at_every_five_seconds(
    human: HumanInput,
) -> None:
    agent, facts = supervised(human)
    waits = deferred(agent.ask(ORDER, replace(facts, can_spawn=True))).open
    assert (waits.phase, waits.cause) == (WakePhase.DEFERRED, WakeCause.HUMAN_INPUT)
    assert (waits.next_at, waits.until) == (T0 + 5 * SECOND, T0 + 60 * SECOND)
    assert waits.fallback is WakeAction.SPAWN_SESSION
    assert agent.after(5 * SECOND - 1).tick() == []
    (due,) = agent.after(1).tick()
    assert due == WakeDue(thread=THREAD, wake="W1", next_at=T0 + 10 * SECOND)


def test_a_deferred_wake_is_delivered_once_the_quiet_window_is_over() -> None:
    agent, facts = supervised(TYPING)
    agent.ask(ORDER, facts)
    agent.after(15 * SECOND).tick()
    assert agent.look(live(agent, TYPING)) == []  # 18 s after the last key
    agent.after(5 * SECOND).tick()
    event = started(agent.look(live(agent, TYPING)))
    assert (event.open.asked_at, event.open.started_at) == (T0, T0 + 20 * SECOND)


def test_a_draft_in_the_line_is_not_typed_over_however_old_it_is() -> None:
    agent, facts = supervised(DRAFT)
    agent.ask(ORDER, facts)
    for _ in range(11):
        agent.after(5 * SECOND).tick()
        assert agent.look(live(agent, DRAFT)) == []
    agent.after(5 * SECOND).tick()
    over = ended(agent.look(live(agent, DRAFT)))
    assert (over.outcome.result, over.outcome.cause) == (
        WakeResult.FAILED,
        WakeCause.HUMAN_COLLISION,
    )
    assert over.deferred
    assert agent.waking.open == {}


def test_after_a_minute_a_fallback_that_does_not_touch_the_session_is_used() -> None:
    agent, facts = supervised(DRAFT)
    agent.ask(ORDER, facts)
    agent.after(60 * SECOND)
    event = started(agent.look(live(agent, DRAFT, spawn=True)))
    assert (event.open.action, event.open.cause) == (
        WakeAction.SPAWN_SESSION,
        WakeCause.HUMAN_INPUT,
    )


@proves("MSG-3.8-8", "MSG-6-11")
def test_an_operator_forces_a_wake_past_what_waits_and_not_past_a_person() -> None:
    agent, facts = supervised(TYPING)
    agent.ask(ORDER, facts)
    assert agent.ask(FORCED, facts, "W2") == []  # joins the one that waits for the person
    event = started(agent.ask(FORCED, live(agent, FREE), "W3"))
    assert (event.open.wake, event.open.cause) == ("W3", WakeCause.FORCED)
    assert (event.open.order.reason, [*agent.waking.open]) == ("the release waits", ["W3"])
    agent, facts = supervised(TYPING)
    assert deferred(agent.ask(FORCED, facts)).open.cause is WakeCause.HUMAN_INPUT
    agent, facts = supervised(DRAFT)
    assert refused(agent, FORCED, facts) is Reason.HUMAN_INPUT


def test_a_managed_runtime_whose_supervisor_is_not_connected_takes_a_new_session() -> None:
    agent, facts = supervised()
    unreachable = replace(facts, reachable=frozenset())
    assert refused(agent, ORDER, unreachable) is Reason.WAKE_FAILED
    spawn = started(agent.ask(ORDER, replace(unreachable, can_spawn=True)))
    assert spawn.open.action is WakeAction.SPAWN_SESSION


# Unmanaged runtimes


@proves("MSG-3.8-5")
def test_an_unmanaged_dormant_runtime_is_resumed_and_else_a_new_session_is_begun() -> None:
    both = started(dormant().ask(ORDER, replace(RESUMABLE, can_spawn=True)))
    assert (both.open.action, both.open.fallback) == (
        WakeAction.RESUME_SESSION,
        WakeAction.SPAWN_SESSION,
    )
    alone = started(dormant().ask(ORDER, SPAWNABLE))
    assert (alone.open.action, alone.session_id) == (WakeAction.SPAWN_SESSION, "")


def test_a_runtime_that_says_it_cannot_be_resumed_is_not() -> None:
    agent = Agent()
    agent.beat(resumable=False)
    agent.after(2 * MINUTE)
    assert refused(agent, ORDER, RESUMABLE) is Reason.UNMANAGED_RUNTIME


def test_an_active_unmanaged_runtime_is_left_alone() -> None:
    agent = Agent()
    agent.beat(RuntimeStatus.ACTIVE)
    assert skipped(agent.ask(ORDER, RESUMABLE)) is WakeCause.AWAKE


@pytest.mark.parametrize("seen", [True, False], ids=["dormant", "never seen"])
def test_without_a_fallback_an_unmanaged_target_is_refused(seen: bool) -> None:
    assert refused(dormant() if seen else Agent(), ORDER, UNREAD) is Reason.UNMANAGED_RUNTIME


def test_an_automatic_wake_without_a_way_is_recorded_and_refuses_nobody() -> None:
    assert skipped(Agent().ask(AUTOMATIC, UNREAD)) is WakeCause.UNMANAGED


# Cool-down, coalescing, cost


def test_a_trigger_within_the_cool_down_is_skipped_and_names_the_earlier_wake() -> None:
    agent = woken()
    assert skipped(agent.ask(ORDER, RESUMABLE, "W2")) is WakeCause.COOL_DOWN
    assert agent.waking.last[THREAD].wake == "W1"
    started(agent.after(25 * SECOND).ask(ORDER, RESUMABLE, "W3"))


def test_another_thread_has_its_own_cool_down() -> None:
    started(woken().ask(OTHER, RESUMABLE, "W2"))


def test_an_operator_lifts_the_cool_down_by_force_alone() -> None:
    assert skipped(woken().ask(BY_OPERATOR, RESUMABLE, "W2")) is WakeCause.COOL_DOWN
    started(woken().ask(FORCED, RESUMABLE, "W2"))


def test_a_wake_that_did_nothing_starts_no_cool_down() -> None:
    agent = dormant()
    agent.ask(ORDER, RESUMABLE)
    failed = ended(agent.end(WakeResult.FAILED, cause=WakeCause.COMMAND_FAILED))
    assert not failed.deferred
    started(agent.ask(ORDER, RESUMABLE, "W2"))


def test_an_automatic_wake_within_the_cool_down_waits_for_its_end() -> None:
    agent = woken()
    waits = deferred(agent.ask(AUTOMATIC, RESUMABLE, "W2")).open
    assert (waits.cause, waits.phase) == (WakeCause.COOL_DOWN, WakePhase.WAITING)
    assert waits.next_at == agent.now + 25 * SECOND
    agent.after(25 * SECOND).tick()
    assert started(agent.look(RESUMABLE, "W2")).open.wake == "W2"


def test_a_wake_that_waited_less_than_a_millisecond_still_owes_its_caller_the_outcome() -> None:
    agent, busy = supervised(TYPING)
    deferred(agent.ask(ORDER, busy))
    started(agent.look(live(agent)))
    assert ended(agent.end(WakeResult.DELIVERED)).deferred


@proves("UNI-24")
def test_an_agent_at_work_in_the_session_is_woken_only_when_it_has_stopped() -> None:
    present = replace(RESUMABLE, is_present=True)
    agent = dormant()
    waits = deferred(agent.ask(AUTOMATIC, present, "W1")).open
    assert (waits.cause, waits.next_at) == (WakeCause.AWAKE, agent.now + 30 * SECOND)
    agent.after(30 * SECOND).tick()
    assert deferred(agent.look(present)).open.next_at == agent.now + 30 * SECOND
    agent.after(30 * SECOND).tick()
    started(agent.look(RESUMABLE))


def test_who_asks_for_a_wake_decides_whether_the_agent_is_at_work() -> None:
    started(dormant().ask(ORDER, replace(RESUMABLE, is_present=True)))


def test_a_waiting_wake_ends_quietly_when_the_agent_has_read_meanwhile() -> None:
    agent = woken()
    agent.ask(AUTOMATIC, RESUMABLE, "W2")
    agent.after(25 * SECOND).tick()
    over = ended(agent.look(replace(RESUMABLE, unread=0), "W2"))
    assert (over.outcome.result, over.outcome.cause) == (
        WakeResult.SKIPPED,
        WakeCause.READ_MEANWHILE,
    )
    assert not over.deferred


def test_a_burst_joins_the_wake_that_waits() -> None:
    agent, facts = supervised(TYPING)
    agent.ask(ORDER, facts)
    assert agent.ask(ORDER, facts, "W2") == []
    assert agent.ask(AUTOMATIC, facts, "W3") == []
    assert list(agent.waking.open) == ["W1"]


def test_a_wake_under_way_is_not_repeated_and_others_wait_for_it() -> None:
    agent = dormant()
    agent.ask(ORDER, RESUMABLE)
    assert skipped(agent.ask(ORDER, RESUMABLE, "W2")) is WakeCause.UNDER_WAY
    waits = deferred(agent.ask(OTHER, RESUMABLE, "W3")).open
    assert (waits.cause, waits.phase) == (WakeCause.UNDER_WAY, WakePhase.WAITING)
    assert agent.ask(OTHER, RESUMABLE, "W4") == []
    agent.after(MINUTE).end()
    assert agent.waking.open["W3"].next_at == agent.now
    agent.tick()
    started(agent.look(RESUMABLE, "W3"))


def test_a_message_that_arrives_while_a_wake_runs_is_looked_at_when_it_has_ended() -> None:
    agent = dormant()
    agent.ask(AUTOMATIC, RESUMABLE)
    agent.after(SECOND)
    assert deferred(agent.ask(AUTOMATIC, RESUMABLE, "W2")).open.cause is WakeCause.UNDER_WAY
    assert agent.ask(AUTOMATIC, RESUMABLE, "W3") == []
    assert agent.look(RESUMABLE, "W2") == []
    assert agent.waking.running is not None
    agent.after(SECOND).end()
    assert [type(event) for event in agent.tick()] == [WakeDue]
    waits = deferred(agent.look(RESUMABLE, "W2")).open
    assert waits.cause is WakeCause.COOL_DOWN
    agent.after(28 * SECOND).tick()
    started(agent.look(RESUMABLE, "W2"))


def test_the_bound_of_an_hour_holds_over_all_threads() -> None:
    agent = dormant()
    for number in range(POLICY.wakes_per_hour):
        order = replace(ORDER, thread=f"th_{number}")
        started(agent.ask(order, RESUMABLE, f"W{number}"))
        agent.after(MINUTE).end(wake=f"W{number}")
    assert skipped(agent.ask(replace(ORDER, thread="th_x"), RESUMABLE)) is WakeCause.COST_BOUND
    waits = deferred(agent.ask(replace(AUTOMATIC, thread="th_y"), RESUMABLE, "WY")).open
    assert waits.cause is WakeCause.COST_BOUND
    assert waits.next_at == agent.waking.starts[0] + HOUR
    started(agent.ask(replace(FORCED, thread="th_z"), RESUMABLE, "WZ"))


def test_a_politeness_loop_stops_what_agents_ask_for_and_not_what_people_do() -> None:
    loop = replace(RESUMABLE, polite_run=POLICY.polite_messages)
    assert skipped(dormant().ask(AUTOMATIC, loop)) is WakeCause.POLITENESS_LOOP
    assert skipped(dormant().ask(ORDER, loop)) is WakeCause.POLITENESS_LOOP
    started(dormant().ask(BY_OPERATOR, loop))
    started(dormant().ask(AUTOMATIC, replace(loop, polite_run=5)))


# The audit


def test_a_storm_of_triggers_is_recorded_once_in_a_cool_down() -> None:
    agent = Agent()
    agent.beat(RuntimeStatus.ACTIVE)
    assert len([agent.ask(ORDER, RESUMABLE, f"W{n}") for n in range(50) if n < 1]) == 1
    assert all(agent.ask(ORDER, RESUMABLE, f"W{n}") == [] for n in range(1, 50))
    assert skipped(agent.after(30 * SECOND).ask(ORDER, RESUMABLE)) is WakeCause.AWAKE
    empty = replace(RESUMABLE, unread=0)
    assert skipped(agent.ask(ORDER, empty)) is WakeCause.NOTHING_UNREAD


def test_old_entries_of_the_audit_are_forgotten_by_the_state() -> None:
    agent = Agent()
    agent.beat(RuntimeStatus.ACTIVE)
    agent.ask(OTHER, replace(RESUMABLE, unread=0))
    agent.after(HOUR).ask(ORDER, replace(RESUMABLE, unread=0))
    assert list(agent.waking.skipped) == [THREAD]
    agent = woken()
    agent.after(HOUR).ask(OTHER, RESUMABLE, "W2")
    agent.end(wake="W2")
    assert list(agent.waking.last) == ["th_2"]
    assert len(agent.waking.starts) == 1


def test_a_wake_that_never_ended_is_recorded_as_interrupted_and_not_repeated() -> None:
    agent = dormant()
    agent.ask(ORDER, RESUMABLE)
    assert agent.after(POLICY.run_ms - 1).tick() == []
    over = ended(agent.after(1).tick())
    assert (over.outcome.result, over.outcome.cause) == (
        WakeResult.FAILED,
        WakeCause.INTERRUPTED,
    )
    assert agent.end() == []
    assert agent.look(RESUMABLE) == []
    assert agent.tick() == []


def test_the_outcome_of_a_deferred_wake_is_owed_to_its_caller() -> None:
    agent, facts = supervised(TYPING)
    agent.ask(ORDER, facts)
    agent.after(20 * SECOND)
    started(agent.look(live(agent)))
    over = ended(agent.end(WakeResult.DELIVERED, action=WakeAction.TRIGGER_RUNTIME))
    assert over.deferred
    assert over.outcome.triggered_at == T0 + 20 * SECOND
    assert over.outcome.deferred_until is None


def test_looking_at_a_wake_that_runs_or_is_another_changes_nothing() -> None:
    agent = dormant()
    agent.ask(ORDER, RESUMABLE)
    assert agent.look(RESUMABLE) == []
    assert agent.look(RESUMABLE, "W9") == []
    assert agent.end(wake="W9") == []


def test_a_wait_whose_reason_changes_is_recorded() -> None:
    agent = woken()
    agent.ask(AUTOMATIC, RESUMABLE, "W2")
    agent.after(25 * SECOND).tick()
    agent.beat(supervises=True)
    waits = deferred(agent.look(live(agent, DRAFT), "W2")).open
    assert (waits.cause, waits.until) == (WakeCause.HUMAN_INPUT, agent.now + MINUTE)
    started(agent.look(live(agent, FREE), "W2"))
