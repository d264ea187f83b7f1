"""Wakes that were handed to a terminal: put back while it is busy, over when it is gone."""

from msgspec.structs import replace

from accord.core.attention.runtimes import HumanInput, RuntimeStatus
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.state import WakeFacts, WakePhase
from accord.core.attention.waking.wake_events import (
    RuntimeLost,
    RuntimeRegistered,
    WakeDeferred,
    WakeEnded,
    WakeStarted,
)
from accord.core.kernel.records import Event
from tests.core.attention.waking.scenario import (
    AUTOMATIC,
    MINUTE,
    Agent,
    dormant,
    live,
    supervised,
)
from tests.spec import proves

WORKING = HumanInput(None, line_empty=False, working=True)
DRAFT = HumanInput(None, line_empty=False)


def started() -> Agent:
    """An agent whose wake was handed to its terminal."""
    agent, facts = supervised()
    (event,) = agent.ask(facts=facts)
    assert isinstance(event, WakeStarted)
    assert event.open.session_id == "S1"
    return agent


def put_back(agent: Agent, cause: WakeCause = WakeCause.HUMAN_INPUT) -> list[Event]:
    """The terminal did not take it."""
    return agent.end(WakeResult.DEFERRED, action=WakeAction.TRIGGER_RUNTIME, cause=cause)


def test_a_host_in_the_middle_of_a_turn_is_not_disturbed() -> None:
    agent, facts = supervised(WORKING)
    (event,) = agent.ask(facts=facts)
    assert isinstance(event, WakeDeferred)
    assert (event.open.phase, event.open.cause) == (WakePhase.WAITING, WakeCause.AWAKE)
    assert event.open.next_at == agent.now + agent.policy.working_ms
    (event,) = agent.look(live(agent))
    assert isinstance(event, WakeStarted)


def test_a_message_waits_for_a_supervisor_that_is_not_connected_until_it_is() -> None:
    agent, facts = supervised()
    (event,) = agent.ask(AUTOMATIC, replace(facts, reachable=frozenset()))
    assert isinstance(event, WakeDeferred)
    assert (event.open.phase, event.open.cause) == (WakePhase.WAITING, WakeCause.SUPERVISOR_AWAY)
    assert event.open.next_at == agent.now + agent.policy.reconnect_ms
    (event,) = agent.look(live(agent))
    assert isinstance(event, WakeStarted)


def test_a_message_that_waited_for_a_supervisor_in_vain_is_said_to_have_failed() -> None:
    agent, facts = supervised()
    agent.ask(AUTOMATIC, replace(facts, reachable=frozenset()))
    agent.after(2 * MINUTE)
    (event,) = agent.look(WakeFacts(unread=3))
    assert isinstance(event, WakeEnded)
    assert (event.outcome.result, event.outcome.cause) == (WakeResult.FAILED, WakeCause.UNMANAGED)


def test_a_draft_elsewhere_does_not_hide_that_the_host_works() -> None:
    assert WORKING.with_draft(5) == HumanInput(5, line_empty=False, working=True)


@proves("MSG-3.8-6", "MSG-3.8-7")
def test_a_wake_that_met_a_person_after_all_waits_again_and_does_not_count() -> None:
    agent = started()
    (event,) = put_back(agent)
    assert isinstance(event, WakeDeferred)
    waits = event.open
    assert (waits.phase, waits.cause, waits.waited) == (
        WakePhase.DEFERRED,
        WakeCause.HUMAN_INPUT,
        True,
    )
    assert waits.next_at == agent.now + agent.policy.recheck_ms
    assert waits.until == agent.now + agent.policy.max_defer_ms
    assert agent.waking.starts == ()
    assert agent.waking.running is None


@proves("OPEN-127")
def test_the_time_that_a_wake_waits_for_a_person_does_not_begin_anew() -> None:
    agent = started()
    put_back(agent)
    until = agent.waking.open["W1"].until
    agent.after(agent.policy.recheck_ms)
    agent.look(live(agent))
    assert agent.waking.running is not None
    put_back(agent)
    assert agent.waking.open["W1"].until == until
    agent.after(agent.policy.max_defer_ms)
    (event,) = agent.look(live(agent, DRAFT))
    assert isinstance(event, WakeEnded)
    assert event.outcome.cause is WakeCause.HUMAN_COLLISION


def test_a_wake_that_met_a_working_host_waits_without_an_end() -> None:
    agent = started()
    (event,) = put_back(agent, WakeCause.AWAKE)
    assert isinstance(event, WakeDeferred)
    assert (event.open.phase, event.open.until) == (WakePhase.WAITING, None)
    assert event.open.next_at == agent.now + agent.policy.working_ms


def test_a_terminal_that_falls_silent_ends_its_wake() -> None:
    agent = started()
    lost, ended = agent.lose()
    assert isinstance(lost, RuntimeLost)
    assert isinstance(ended, WakeEnded)
    assert (ended.outcome.result, ended.outcome.cause) == (
        WakeResult.FAILED,
        WakeCause.INTERRUPTED,
    )


def test_a_terminal_that_closes_ends_its_wake() -> None:
    agent = started()
    gone, ended = agent.beat(RuntimeStatus.OFFLINE, supervises=True)
    assert isinstance(gone, RuntimeRegistered)
    assert isinstance(ended, WakeEnded)
    assert agent.waking.running is None


def test_a_terminal_that_closes_ends_no_wake_of_another() -> None:
    agent = started()
    agent.beat(session="S2")
    (gone,) = agent.beat(RuntimeStatus.OFFLINE, session="S2")
    assert isinstance(gone, RuntimeRegistered)
    assert agent.waking.running is not None


def test_a_program_that_ends_does_not_end_a_wake_by_command() -> None:
    agent = dormant()
    facts = replace(live(agent), beats={}, reachable=frozenset(), resumable=frozenset({"S1"}))
    agent.ask(facts=facts)
    assert agent.waking.running is not None
    (gone,) = agent.beat(RuntimeStatus.OFFLINE)
    assert isinstance(gone, RuntimeRegistered)
    assert agent.waking.running is not None
