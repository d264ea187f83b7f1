"""An agent that is addressed and stays silent is noticed once, and only while it is silent."""

from accord.core.attention.runtimes import RuntimeStatus
from accord.core.attention.waking.wake_events import RuntimeLost, SilenceNoticed
from tests.core.attention.waking.scenario import MINUTE, POLICY, T0, THREAD, Agent


def noticed(agent: Agent) -> list[int]:
    return [event.seq for event in agent.tick() if isinstance(event, SilenceNoticed)]


def test_silence_is_noticed_after_fifteen_minutes_once() -> None:
    agent = Agent()
    agent.address(7)
    assert list(agent.waking.deadlines(POLICY.silence_ms)) == [T0 + 15 * MINUTE]
    assert noticed(agent.after(15 * MINUTE - 1)) == []
    (event,) = agent.after(1).tick()
    assert event == SilenceNoticed(thread=THREAD, message="msg_7", seq=7, by="planner", since=T0)
    assert noticed(agent.after(60 * MINUTE)) == []
    assert list(agent.waking.deadlines(POLICY.silence_ms)) == []


def test_reading_ends_the_silence_and_ordinary_reading_is_not_stored() -> None:
    agent = Agent()
    assert agent.answer(3) == []
    agent.address(7)
    assert agent.answer(6) == []
    assert len(agent.answer(7)) == 1
    assert agent.answer(9) == []
    assert noticed(agent.after(15 * MINUTE)) == []


def test_what_came_after_the_part_that_was_read_is_awaited_anew() -> None:
    agent = Agent()
    agent.address(7)
    agent.after(MINUTE).address(9)
    agent.after(MINUTE).answer(8)
    assert noticed(agent.after(14 * MINUTE)) == []
    assert noticed(agent.after(MINUTE)) == [9]


def test_after_an_answer_the_next_silence_is_noticed_again() -> None:
    agent = Agent()
    agent.address(7)
    assert noticed(agent.after(15 * MINUTE)) == [7]
    agent.answer(7)
    agent.address(8)
    assert noticed(agent.after(15 * MINUTE)) == [8]


def test_a_runtime_is_lost_once() -> None:
    agent = Agent()
    assert agent.lose() == []
    agent.beat(supervises=True)
    assert agent.lose() == [RuntimeLost(session_id="S1")]
    assert agent.waking.runtimes["S1"].status is RuntimeStatus.OFFLINE
    assert not agent.waking.runtimes["S1"].supervised
    assert agent.lose() == []
    assert len(agent.beat()) == 1
    assert agent.beat() == []
