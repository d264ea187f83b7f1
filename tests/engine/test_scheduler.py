"""Deadlines are part of the state: clock changes and restarts do not lose them."""

import asyncio

import pytest

from accord.core.kernel.messages import Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import MS_PER_SECOND
from accord.core.room.room_settings import Category, GateResolution, ServerPolicy
from accord.core.room.state import Presence
from accord.engine.engine import Engine
from accord.engine.scheduling import MAX_SLEEP_S, Scheduler, SystemClock
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness, FaultyLog, ManualClock, yield_to_loop
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    T0,
    gate_on,
    prompt_submit,
    session_end,
    session_join,
    tool_approve,
    tool_propose,
    tool_result,
)
from tests.spec import proves

PATIENCE = 300  # seconds, of a gate


async def proposed(stage: EngineHarness) -> None:
    """Claude waits for somebody to approve."""
    await stage.open_room(BOB, CLAUDE)
    await stage.send(CLAUDE, tool_propose(), "t")


def resolutions(stage: EngineHarness, seat: str = "alice") -> list[str]:
    """How gates ended in time, as somebody heard it."""
    heard = stage.peers[seat].received
    return [each["payload"]["resolution"] for each in heard if each["type"] == "gate.timeout"]


@proves("UNI-23", "PVP-14.3-3")
async def test_gate_expires_at_its_deadline_and_not_before(stage: EngineHarness) -> None:
    await proposed(stage)

    await stage.advance_time(PATIENCE - 0.001)
    assert resolutions(stage) == []
    await stage.advance_time(0.001)

    assert resolutions(stage) == ["rejected"]
    assert stage.peers["alice"].types[-2:] == ["gate.timeout", "error"]
    with pytest.raises(Refused) as no:
        await stage.send(CLAUDE, tool_result("t"))
    assert no.value.reason is Reason.GATE_FAILED
    assert stage.engine.scheduler.deadlines == {}


@proves("OPEN-24")
async def test_vote_before_the_timeout_wins(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await proposed(stage)

    log.hold("append")
    vote = stage.submit(ALICE, tool_approve(ALICE, "t"), "vote")
    stage.clock.advance(PATIENCE)
    stage.engine.scheduler.run_due()
    log.release()
    await stage.wait_until_idle()

    assert vote.records
    assert resolutions(stage) == []
    assert await stage.send(CLAUDE, tool_result("t"))


@proves("OPEN-24")
async def test_timeout_before_the_vote_wins(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await proposed(stage)

    log.hold("append")
    stage.clock.advance(PATIENCE)
    stage.engine.scheduler.run_due()
    vote = stage.submit(ALICE, tool_approve(ALICE, "t"), "vote")
    log.release()
    await stage.wait_until_idle()

    assert resolutions(stage) == ["rejected"]
    assert vote.refusal
    assert vote.refusal.reason is Reason.WRONG_STATE


@proves("OPEN-24")
async def test_vote_that_lost_against_another_process_is_refused(make: Make) -> None:
    one = make()
    await proposed(one)
    two = one.restart()
    await two.state()

    await one.advance_time(PATIENCE)
    vote = two.submit(ALICE, tool_approve(ALICE, "t"), "vote")
    await two.advance_time(0)

    assert vote.refusal
    assert vote.refusal.reason is Reason.WRONG_STATE
    assert [s.record.said.type for s in await one.records() if s.record.said].count(
        "gate.timeout"
    ) == 1
    await two.close()


@proves("OPEN-31")
async def test_restart_keeps_deadlines(make: Make) -> None:
    first = make()
    await proposed(first)
    gate = gate_on(await first.state(), "t")
    first.clock.advance(100)

    second = make(first.log, clock=first.clock)
    await second.engine.start()
    assert gate_on(await second.state(), "t").expires_at == gate.expires_at
    bob = second.connect(BOB)
    await second.send(BOB, session_join(BOB, Role.DRIVER))

    await second.advance_time(PATIENCE - 101)
    assert "gate.timeout" not in bob.types
    await second.advance_time(1)

    assert resolutions(second, "bob") == ["rejected"]


@proves("OPEN-31")
@pytest.mark.parametrize("policy", list(GateResolution))
async def test_restart_rejects_gates_that_expired_meanwhile(
    make: Make, policy: GateResolution
) -> None:
    house = ServerPolicy(gate_seconds=300, on_gate_timeout=policy)
    first = make(policy=house)
    await first.open_room(BOB, CLAUDE)
    await first.send(CLAUDE, tool_propose(category=Category.EXTERNAL_API), "ask")
    first.clock.advance(PATIENCE + 1)

    second = make(first.log, clock=first.clock, policy=house)
    await second.engine.start()

    room = await second.state()
    assert room.gates == {}
    assert room.past["ask"] == "timed out, rejected"
    assert {member.presence for member in room.members.values()} == {Presence.DISCONNECTED}


@proves("OPEN-31", "OPEN-32")
async def test_restart_disconnects_members_and_keeps_the_rest(make: Make) -> None:
    first = make()
    await proposed(first)
    before = await first.state()

    second = make(first.log, clock=first.clock)
    await second.engine.start()

    after = await second.state()
    assert after.gates == before.gates
    assert after.tools == before.tools
    assert after.config == before.config
    assert after.members.keys() == before.members.keys()
    assert {member.presence for member in after.members.values()} == {Presence.DISCONNECTED}
    said = [s.record for s in await second.records()][-3:]
    assert {record.actor for record in said} == {"system:presence"}


async def test_second_restart_adds_no_records(make: Make) -> None:
    first = make()
    await proposed(first)
    await make(first.log, clock=first.clock).engine.start()
    rows = await first.log.position()

    await make(first.log, clock=first.clock).engine.start()

    assert await first.log.position() == rows


async def test_ended_session_has_no_deadlines(make: Make) -> None:
    stage = make()
    await proposed(stage)
    await stage.send(ALICE, session_end())
    rows = await stage.log.position()

    stage.peers["bob"].disconnect()
    await stage.advance_time(10_000)
    other = stage.restart()
    await other.engine.start()

    assert stage.engine.scheduler.deadlines == {}
    assert await stage.log.position() == rows
    await other.close()


async def test_deadline_is_retried_after_a_store_failure(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await proposed(stage)

    log.failing.add("append")
    await stage.advance_time(PATIENCE)
    assert resolutions(stage) == []
    log.failing.clear()
    await stage.advance_time(1)

    assert resolutions(stage) == ["rejected"]


async def test_deadline_of_an_evicted_stream_still_counts(make: Make) -> None:
    stage = make()
    await proposed(stage)
    for ear in stage.peers.values():
        ear.disconnect()
    await stage.wait_until_idle()
    stage.engine.streams.clear()

    await stage.advance_time(PATIENCE)

    assert (await stage.state()).gates == {}


# Clocks that jump


class Machine:
    """A wall clock that somebody sets, and a steady one that nobody can."""

    def __init__(self) -> None:
        self.wall = T0 * 1_000_000
        self.steady = 5_000_000_000

    def pass_(self, seconds: float) -> None:
        """Time passes."""
        self.wall += int(seconds * 1e9)
        self.steady += int(seconds * 1e9)

    def clock(self) -> SystemClock:
        """What a process that starts now goes by."""
        return SystemClock(lambda: self.wall, lambda: self.steady)


def on_machine(make: Make, machine: Machine, log: object = None) -> EngineHarness:
    """A stage whose time is the machine's."""
    return make(log, clock=machine.clock())


async def due(engine: Engine) -> None:
    """What is due is done."""
    engine.scheduler.run_due()
    await engine.wait_until_idle()


@proves("UNI-23", "OPEN-38")
@pytest.mark.parametrize("jump", [86_400, -86_400])
async def test_setting_the_clock_does_not_move_a_deadline(make: Make, jump: float) -> None:
    machine = Machine()
    stage = on_machine(make, machine)
    await proposed(stage)

    machine.wall += int(jump * 1e9)
    machine.pass_(PATIENCE - 1)
    await due(stage.engine)
    assert resolutions(stage) == []
    machine.pass_(1)
    await due(stage.engine)

    assert resolutions(stage) == ["rejected"]
    await stage.records()


@proves("UNI-23", "OPEN-38")
async def test_restart_with_a_clock_set_back_continues_record_time(
    make: Make,
) -> None:
    machine = Machine()
    first = on_machine(make, machine)
    await first.open_room(BOB, CLAUDE)
    machine.pass_(60)
    await first.send(ALICE, prompt_submit(), "p")
    machine.wall -= int(86_400 * 1e9)

    second = on_machine(make, machine, first.log)
    await second.engine.start()
    bob = second.connect(BOB)
    await second.send(BOB, session_join(BOB, Role.DRIVER))
    await second.send(CLAUDE, tool_propose(), "t", ear=second.connect(CLAUDE))
    machine.pass_(PATIENCE - 1)
    await due(second.engine)
    assert "gate.timeout" not in bob.types
    machine.pass_(2)
    await due(second.engine)

    assert resolutions(second, "bob") == ["rejected"], "a day later would be a day too late"
    await second.records()


@proves("OPEN-38")
async def test_wrong_sender_time_is_accepted(make: Make) -> None:
    stage = make()
    await stage.open_room(CLAUDE)
    for n, ts in enumerate(("1970-01-01T00:00:00Z", "2199-12-31T23:59:59.999Z")):
        message = Message(f"t{n}", ts, "r", "alice", prompt_submit())
        (said,) = await stage.engine.handle(message, ALICE)
        assert said.record.ts == ts
        assert said.record.at == T0
    assert stage.peers["claude"].ids[-2:] == ["t0", "t1"]


# The scheduler by itself


async def test_scheduler_calls_each_stream_at_its_deadline() -> None:
    clock, called = ManualClock(), list[str]()

    def due(stream: str) -> None:
        called.append(stream)
        scheduler.set(stream, None)

    scheduler = Scheduler(clock, due)
    scheduler.set("a", T0 + 2 * MS_PER_SECOND)
    scheduler.set("b", T0 + 1 * MS_PER_SECOND)
    scheduler.set("c", T0 + 1 * MS_PER_SECOND)
    scheduler.set("c", None)
    scheduler.set("b", T0 + 3 * MS_PER_SECOND)

    for _ in range(4):
        clock.advance(1)
        scheduler.run_due()

    assert called == ["a", "b"]
    scheduler.stop()
    clock.advance(100)
    scheduler.run_due()
    assert called == ["a", "b"]


async def test_scheduler_checks_the_clock_at_least_once_a_minute() -> None:
    """A timer of the loop does not know that the machine slept."""
    clock, called = ManualClock(), list[str]()
    scheduler = Scheduler(clock, called.append)

    scheduler.set("a", T0 + 86_400 * MS_PER_SECOND)

    assert scheduler.timer is not None
    assert scheduler.timer.when() - asyncio.get_running_loop().time() <= MAX_SLEEP_S
    scheduler.stop()


async def test_scheduler_timer_fires_by_itself(make: Make) -> None:
    stage = make()
    await proposed(stage)

    stage.clock.advance(PATIENCE)
    stage.engine.scheduler._arm()
    for _ in range(1000):
        await yield_to_loop()
        if resolutions(stage):
            break

    assert resolutions(stage) == ["rejected"]
