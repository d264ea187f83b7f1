"""Rooms that are not there, and too many of them."""

import asyncio

import pytest

from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Refused, Why
from accord.engine import opener
from tests.engine.conftest import Make
from tests.helpers.engine import Ear, Tricky, turns
from tests.helpers.room import ALICE, BOB, CAROL, CLAUDE, creates, joins, prompts


async def test_a_room_that_does_not_exist_costs_no_memory(make: Make) -> None:
    stage = make()

    for n in range(20):
        with pytest.raises(Refused) as no:
            await stage.say(BOB, joins(BOB), room=f"nowhere-{n}")
        assert no.value.why is Why.NO_ROOM
        assert not (await stage.state(f"nowhere-{n}")).exists

    assert stage.engine.cells == {}
    assert stage.engine.scheduler.when == {}
    assert stage.engine.peers.rooms == {}


async def test_asking_for_a_room_twice_while_it_is_made_loses_neither(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    log.hold("read")
    looking = asyncio.create_task(stage.engine.state("room/r"))
    await turns()
    made = stage.ask(ALICE, creates())
    log.release()
    await looking
    await stage.settle()

    assert made.sealed
    assert "room/r" in stage.engine.cells


async def test_the_rooms_nobody_listens_to_make_way(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "MOST_CELLS", 8)
    stage = make()
    for n in range(4):
        await stage.open(room=f"heard-{n}")
    quiet = Ear(stage.engine, CAROL, "away")
    for n in range(20):
        await stage.say(CAROL, creates(), room=f"quiet-{n}", ear=quiet)
        stage.engine.peers.detach(f"room/quiet-{n}", quiet)

    assert len(stage.engine.cells) <= 8
    assert {f"room/heard-{n}" for n in range(4)} <= stage.engine.cells.keys()
    assert (await stage.state("quiet-0")).exists


async def test_what_is_looked_at_in_passing_stays_at_hand(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "MOST_CELLS", 4)
    stage = make()
    await stage.open()
    stage.engine.peers.detach("room/r", stage.ears["alice"])
    stage.engine.peek("room/r")
    for n in range(10):
        await stage.open(room=f"other-{n}")
        stage.engine.peers.detach(f"room/other-{n}", stage.ears["alice"])

    seen = stage.engine.peek("room/r")

    assert seen is not None
    assert seen.exists


async def test_a_look_in_passing_does_not_wait_for_the_store(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    log.hold("find")
    stage.ask(ALICE, prompts(), ref="unknown")
    await turns()

    seen = stage.engine.peek("room/r")

    assert seen is not None
    log.release()


async def test_a_room_that_cannot_keep_up_says_so(make: Make) -> None:
    log = Tricky()
    await make(log).open(CLAUDE)
    stage = make(log)
    stage.engine.load.limits = Limits(queue=3)

    log.hold("read")
    replies = [stage.ask(ALICE, prompts()) for _ in range(5)]

    assert [bool(reply) for reply in replies] == [False, False, False, True, True]
    assert replies[4].refused
    assert replies[4].refused.why is Why.TOO_MANY
    assert replies[4].refused.details == {"limit": "queue", "most": 3, "retry_after_ms": 1000}
    log.release()
    await stage.settle()
    assert all(reply.sealed for reply in replies[:3])


async def test_streams_at_hand_weigh_no_more_than_they_may(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "MOST_BYTES", 20_000)
    monkeypatch.setattr(opener, "EVERY", 1)
    stage = make()
    for n in range(30):
        await stage.open(CLAUDE, room=f"r{n}")
        for ear in list(stage.ears.values()):
            ear.hang_up()
        stage.ears.clear()
        await stage.settle()

    heaviest = max(cell.weight for cell in stage.engine.cells.values())
    assert sum(cell.weight for cell in stage.engine.cells.values()) < 20_000 + 2 * heaviest
    assert (await stage.state("r0")).exists
