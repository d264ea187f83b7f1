"""Waking as a part of the context: who may ask for what, and when the timer looks."""

import pytest

from accord.core.attention.context import CONTEXT
from accord.core.attention.runtimes import HeartbeatReport, RuntimeStatus
from accord.core.attention.state import Attention
from accord.core.attention.trigger_answers import TriggerAnswer, TriggerAnswered
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeOutcome, WakeResult
from accord.core.attention.waking.state import WakeFacts, WakeOrder
from accord.core.attention.waking.wake_events import (
    AgentAddressed,
    AgentPaused,
    RuntimeLost,
    RuntimeRegistered,
    SilenceNoticed,
    WakeEnded,
    WakeStarted,
)
from accord.core.attention.waking.wake_messages import (
    AgentAddress,
    AgentAnswer,
    AgentPause,
    RuntimeReport,
    RuntimeSilent,
    WakeAsk,
    WakeEnd,
    WakeLook,
)
from accord.core.kernel.actor import POLICY_ACTOR, TIMER_ACTOR, Actor
from accord.core.kernel.context import Command
from accord.core.kernel.messages import Body, Elapsed, Message
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.room.room_settings import ServerPolicy

STREAM = "attention/default/reviewer"
T0 = 1_750_000_000_000
REVIEWER = Actor("reviewer", Kind.AGENT, "S1")
PLANNER = Actor("planner", Kind.AGENT, "S2")
POLICY = ServerPolicy(silence_seconds=60, wakes_per_hour=1)
BEAT = RuntimeReport(
    HeartbeatReport(session_id="S1", runtime="codex_cli", status=RuntimeStatus.IDLE, resumable=True)
)
ORDER = WakeOrder(thread="th_1", by="planner")
FACTS = WakeFacts(unread=1, can_spawn=True)


class Stream:
    """The context as the engine uses it."""

    def __init__(self) -> None:
        self.state: Attention = CONTEXT.initial_state(STREAM)
        self.now = T0

    def send(self, body: Body, actor: Actor = POLICY_ACTOR, id: str = "M1") -> list[type[Event]]:
        message = Message(id, "", "default/reviewer", actor.principal, body)
        command = Command(message, actor, self.now, {}, POLICY)
        CONTEXT.admit(self.state, command)
        events = list(CONTEXT.decide[type(body)](self.state, command, body))
        for event in events:
            assert isinstance(event, Event)
            record = Record(STREAM, 1, 0, id, self.now, actor.principal, id, "", "", event)
            self.state = CONTEXT.evolve[type(event)](self.state, event, record)
        return [type(event) for event in events]  # type: ignore[misc]


def test_an_agent_reports_its_own_runtime_and_nobody_elses() -> None:
    stream = Stream()
    assert stream.send(BEAT, REVIEWER) == [RuntimeRegistered]
    with pytest.raises(Refused) as refused:
        stream.send(BEAT, PLANNER)
    assert refused.value.reason is Reason.CLAIM_MISMATCH


@pytest.mark.parametrize(
    "body",
    [
        WakeAsk(ORDER, FACTS),
        WakeLook("W1", FACTS),
        WakeEnd("W1", WakeAction.NONE, WakeResult.FAILED, WakeCause.INTERRUPTED),
        AgentPause("reviewer", paused=False),
        AgentAddress("th_1", "msg_1", 1, "planner"),
        RuntimeSilent("S1"),
    ],
    ids=lambda body: body.type,
)
def test_an_agent_decides_nothing_about_its_own_wakes(body: Body) -> None:
    with pytest.raises(Refused) as refused:
        Stream().send(body, REVIEWER)
    assert refused.value.reason is Reason.FORBIDDEN


def test_a_wake_is_asked_for_looked_at_and_ended_under_its_messages_id() -> None:
    stream = Stream()
    assert stream.send(WakeAsk(ORDER, FACTS), id="W1") == [WakeStarted]
    assert list(stream.state.waking.open) == ["W1"]
    assert stream.send(WakeLook("W1", FACTS)) == []
    end = WakeEnd("W1", WakeAction.SPAWN_SESSION, WakeResult.FALLBACK_USED, WakeCause.UNREAD)
    assert stream.send(end) == [WakeEnded]


def test_the_operators_bounds_apply_and_the_timer_knows_when_to_look() -> None:
    stream = Stream()
    stream.send(WakeAsk(ORDER, FACTS), id="W1")
    end = WakeEnd("W1", WakeAction.SPAWN_SESSION, WakeResult.FALLBACK_USED, WakeCause.UNREAD)
    stream.send(end)
    stream.now += 60_000
    stream.send(WakeAsk(ORDER, FACTS), id="W2")
    assert stream.state.waking.skipped["th_1"].cause is WakeCause.COST_BOUND
    assert stream.send(AgentAddress("th_1", "msg_1", 1, "planner")) == [AgentAddressed]
    assert list(CONTEXT.deadlines(stream.state, POLICY)) == [stream.now + 60_000]
    assert stream.send(Elapsed(), TIMER_ACTOR) == []
    stream.now += 60_000
    assert stream.send(Elapsed(), TIMER_ACTOR) == [SilenceNoticed]
    assert len(stream.send(AgentAnswer("th_1", 1), REVIEWER)) == 1


def test_a_runtime_is_lost_and_an_agent_paused_by_the_server_alone() -> None:
    stream = Stream()
    stream.send(BEAT, REVIEWER)
    assert stream.send(RuntimeSilent("S1")) == [RuntimeLost]
    assert stream.send(AgentPause("olga")) == [AgentPaused]


def test_an_agent_keeps_the_answer_to_its_own_request_and_nothing_changes() -> None:
    stream = Stream()
    outcome = WakeOutcome(
        wake="W1",
        action=WakeAction.NONE,
        result=WakeResult.SKIPPED,
        cause=WakeCause.NOTHING_UNREAD,
        triggered_at=T0,
    )
    answer, before = TriggerAnswer("coder", ORDER, outcome), stream.state
    assert stream.send(answer, REVIEWER) == [TriggerAnswered]
    assert stream.state is before
    assert TriggerAnswer("other", ORDER, outcome).is_retry_of(answer)
