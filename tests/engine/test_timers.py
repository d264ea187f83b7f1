"""Deadlines come from state: the clock moves, the scheduler runs, and a restart forgets none."""

import asyncio

import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.log import Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import SECOND
from accord.core.room.state import Category, House, Presence, Resolution
from accord.engine.clock import SystemClock
from accord.engine.engine import Engine
from accord.engine.scheduler import LONGEST_NAP, Scheduler
from tests.engine.conftest import Make
from tests.helpers.engine import Stage, Tricky, Watch, turns
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    T0,
    approves_tool,
    ends,
    finishes,
    gate_on,
    joins,
    prompts,
    proposes,
)
from tests.spec import proves

PATIENCE = 300  # seconds, of a gate


async def proposed(stage: Stage) -> None:
    """Claude waits for somebody to approve."""
    await stage.open(BOB, CLAUDE)
    await stage.say(CLAUDE, proposes(), "t")


def resolutions(stage: Stage, seat: str = "alice") -> list[str]:
    """How gates ended in time, as somebody heard it."""
    heard = stage.ears[seat].heard
    return [each["payload"]["resolution"] for each in heard if each["type"] == "gate.timeout"]


@proves("UNI-23", "PVP-14.3-3")
async def test_a_gate_expires_when_its_time_has_come_and_not_before(stage: Stage) -> None:
    await proposed(stage)

    await stage.wait(PATIENCE - 0.001)
    assert resolutions(stage) == []
    await stage.wait(0.001)

    assert resolutions(stage) == ["rejected"]
    assert stage.ears["alice"].types[-2:] == ["gate.timeout", "error"]
    with pytest.raises(Refused) as no:
        await stage.say(CLAUDE, finishes("t"))
    assert no.value.why is Why.GATE_FAILED
    assert stage.engine.scheduler.when == {}


@proves("OPEN-24")
async def test_a_vote_sequenced_before_the_timeout_wins(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await proposed(stage)

    log.hold("append")
    vote = stage.ask(ALICE, approves_tool(ALICE, "t"), "vote")
    stage.clock.move(PATIENCE)
    stage.engine.scheduler.run_due()
    log.release()
    await stage.settle()

    assert vote.sealed
    assert resolutions(stage) == []
    assert await stage.say(CLAUDE, finishes("t"))


@proves("OPEN-24")
async def test_a_timeout_sequenced_before_the_vote_wins(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await proposed(stage)

    log.hold("append")
    stage.clock.move(PATIENCE)
    stage.engine.scheduler.run_due()
    vote = stage.ask(ALICE, approves_tool(ALICE, "t"), "vote")
    log.release()
    await stage.settle()

    assert resolutions(stage) == ["rejected"]
    assert vote.refused
    assert vote.refused.why is Why.WRONG_STATE


@proves("OPEN-24")
async def test_a_vote_that_lost_the_race_on_another_server_is_refused(make: Make) -> None:
    one = make()
    await proposed(one)
    two = one.again()
    await two.state()

    await one.wait(PATIENCE)
    vote = two.ask(ALICE, approves_tool(ALICE, "t"), "vote")
    await two.wait(0)

    assert vote.refused
    assert vote.refused.why is Why.WRONG_STATE
    assert [s.record.said.type for s in await one.records() if s.record.said].count(
        "gate.timeout"
    ) == 1
    await two.close()


@proves("OPEN-31")
async def test_a_restart_keeps_deadlines(make: Make) -> None:
    first = make()
    await proposed(first)
    gate = gate_on(await first.state(), "t")
    first.clock.move(100)

    second = make(first.log, clock=first.clock)
    await second.engine.start()
    assert gate_on(await second.state(), "t").expires_at == gate.expires_at
    bob = second.connect(BOB)
    await second.say(BOB, joins(BOB, Role.DRIVER))

    await second.wait(PATIENCE - 101)
    assert "gate.timeout" not in bob.types
    await second.wait(1)

    assert resolutions(second, "bob") == ["rejected"]


@proves("OPEN-31")
@pytest.mark.parametrize("policy", list(Resolution))
async def test_a_restart_rejects_what_ran_out_meanwhile_whatever_policy_says(
    make: Make, policy: Resolution
) -> None:
    house = House(on_gate_timeout=policy)
    first = make(house=house)
    await first.open(BOB, CLAUDE)
    await first.say(CLAUDE, proposes(category=Category.EXTERNAL_API), "ask")
    first.clock.move(PATIENCE + 1)

    second = make(first.log, clock=first.clock, house=house)
    await second.engine.start()

    room = await second.state()
    assert room.gates == {}
    assert room.past["ask"] == "timed out, rejected"
    assert {member.presence for member in room.members.values()} == {Presence.DISCONNECTED}


@proves("OPEN-31", "OPEN-32")
async def test_after_a_restart_nobody_is_there_and_all_else_is_as_it_was(make: Make) -> None:
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


async def test_a_second_restart_says_nothing_new(make: Make) -> None:
    first = make()
    await proposed(first)
    await make(first.log, clock=first.clock).engine.start()
    rows = await first.log.position()

    await make(first.log, clock=first.clock).engine.start()

    assert await first.log.position() == rows


async def test_an_ended_session_has_no_deadlines_and_nobody_leaves_it(make: Make) -> None:
    stage = make()
    await proposed(stage)
    await stage.say(ALICE, ends())
    rows = await stage.log.position()

    stage.ears["bob"].hang_up()
    await stage.wait(10_000)
    other = stage.again()
    await other.engine.start()

    assert stage.engine.scheduler.when == {}
    assert await stage.log.position() == rows
    await other.close()


async def test_a_deadline_that_the_store_could_not_keep_is_tried_again(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await proposed(stage)

    log.failing.add("append")
    await stage.wait(PATIENCE)
    assert resolutions(stage) == []
    log.failing.clear()
    await stage.wait(1)

    assert resolutions(stage) == ["rejected"]


async def test_the_deadline_of_a_room_that_made_way_still_counts(make: Make) -> None:
    stage = make()
    await proposed(stage)
    for ear in stage.ears.values():
        ear.hang_up()
    await stage.settle()
    stage.engine.cells.clear()

    await stage.wait(PATIENCE)

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


def on_machine(make: Make, machine: Machine, log: object = None) -> Stage:
    """A stage whose time is the machine's."""
    return make(log, clock=machine.clock())


async def due(engine: Engine) -> None:
    """What is due is done."""
    engine.scheduler.run_due()
    await engine.settle()


@proves("UNI-23", "OPEN-38")
@pytest.mark.parametrize("jump", [86_400, -86_400])
async def test_setting_the_clock_neither_hastens_nor_delays_a_gate(make: Make, jump: float) -> None:
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
async def test_after_a_restart_with_a_clock_set_back_time_goes_on_where_it_stood(
    make: Make,
) -> None:
    machine = Machine()
    first = on_machine(make, machine)
    await first.open(BOB, CLAUDE)
    machine.pass_(60)
    await first.say(ALICE, prompts(), "p")
    machine.wall -= int(86_400 * 1e9)

    second = on_machine(make, machine, first.log)
    await second.engine.start()
    bob = second.connect(BOB)
    await second.say(BOB, joins(BOB, Role.DRIVER))
    await second.say(CLAUDE, proposes(), "t", ear=second.connect(CLAUDE))
    machine.pass_(PATIENCE - 1)
    await due(second.engine)
    assert "gate.timeout" not in bob.types
    machine.pass_(2)
    await due(second.engine)

    assert resolutions(second, "bob") == ["rejected"], "a day later would be a day too late"
    await second.records()


@proves("OPEN-38")
async def test_a_sender_whose_clock_is_wrong_is_taken_as_it_is(make: Make) -> None:
    stage = make()
    await stage.open(CLAUDE)
    for n, ts in enumerate(("1970-01-01T00:00:00Z", "2199-12-31T23:59:59.999Z")):
        message = Message(f"t{n}", ts, "r", "alice", prompts())
        (said,) = await stage.engine.handle(message, ALICE)
        assert said.record.ts == ts
        assert said.record.at == T0
    assert stage.ears["claude"].ids[-2:] == ["t0", "t1"]


# The scheduler by itself


async def test_the_scheduler_calls_each_stream_once_its_time_has_come() -> None:
    clock, called = Watch(), list[str]()

    def due(stream: str) -> None:
        called.append(stream)
        scheduler.set(stream, None)

    scheduler = Scheduler(clock, due)
    scheduler.set("a", T0 + 2 * SECOND)
    scheduler.set("b", T0 + 1 * SECOND)
    scheduler.set("c", T0 + 1 * SECOND)
    scheduler.set("c", None)
    scheduler.set("b", T0 + 3 * SECOND)

    for _ in range(4):
        clock.move(1)
        scheduler.run_due()

    assert called == ["a", "b"]
    scheduler.stop()
    clock.move(100)
    scheduler.run_due()
    assert called == ["a", "b"]


async def test_the_scheduler_looks_again_before_long() -> None:
    """A timer of the loop does not know that the machine slept."""
    clock, called = Watch(), list[str]()
    scheduler = Scheduler(clock, called.append)

    scheduler.set("a", T0 + 86_400 * SECOND)

    assert scheduler.timer is not None
    assert scheduler.timer.when() - asyncio.get_running_loop().time() <= LONGEST_NAP
    scheduler.stop()


async def test_the_scheduler_runs_by_itself(make: Make) -> None:
    stage = make()
    await proposed(stage)

    stage.clock.move(PATIENCE)
    stage.engine.scheduler._arm()
    for _ in range(1000):
        await turns()
        if resolutions(stage):
            break

    assert resolutions(stage) == ["rejected"]
