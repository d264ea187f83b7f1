"""However much there is in a pact, a session is told so much, and heeds all of it."""

import asyncio
from typing import Any

import pytest

from accord.core.room.content import TASKS
from accord.core.room.state import Lane, Pact, Room
from accord.core.views import tasks
from accord.engine.ports import StoreError
from accord.mirror import place as places
from accord.mirror import telling
from tests.core.work.story import BOB, assigned, line
from tests.helpers.engine import turns
from tests.mirror.scene import ACCEPTED, MERGED, REPO, SESSION, SHOWN, TOLD, Ledger, at_work
from tests.spec import proves


def many(number: int, words: str = "") -> list[dict[str, Any]]:
    """So many features, each with a task."""
    names = [f"f{n}{words}" for n in range(number)]
    return [assigned(f"T{n}", feature=each, branch=each) for n, each in enumerate(names)]


@proves("UNI-17", "UNI-21")
async def test_however_long_a_pact_is_a_session_is_told_so_much_and_heeds_all_of_it(
    ledger: Ledger,
) -> None:
    house = await at_work(ledger.add(*many(2000, words="x" * 200)))
    while house.mirrors.pacts[REPO].copy.more:
        await house.mirrors.look()
    room = await house.room()

    assert room.pact is not None
    assert room.pact.trouble == telling.TOO_MANY
    rows = await house.events.read(f"room/{SESSION}")
    assert max(len(row.body) for row in rows) < telling.LARGEST_LANES + tasks.LARGEST + 5000
    content = room.shelf[""][TASKS].content
    assert isinstance(content, dict)
    assert content["trouble"] == telling.TOO_MANY
    assert len(content["tasks"]) + content["left_out"] == 2000


async def test_a_session_hears_that_a_feature_is_merged_and_then_nothing_more(
    ledger: Ledger,
) -> None:
    house = await at_work(ledger.add(SHOWN, ACCEPTED))
    assert lanes_in(await house.room()) == (Lane("cart", "cart"),)

    ledger.add(MERGED)
    await house.mirrors.look()
    assert lanes_in(await house.room()) == (Lane("cart", "cart", shipped=True),)
    ledger.add(line("join", BOB, roles=[], at=7))
    await house.mirrors.look()

    assert await house.said() == [TOLD, TOLD]
    ledger.add(assigned("T5", feature="till", branch="till", at=8))
    await house.mirrors.look()
    merged = Lane("cart", "cart", shipped=True)
    assert lanes_in(await house.room()) == (Lane("till", "till", ("T5",)), merged)


def lanes_in(room: Room) -> tuple[Lane, ...]:
    assert room.pact is not None
    return room.pact.lanes


async def test_a_feature_of_a_branch_that_no_fork_can_have_is_not_told(ledger: Ledger) -> None:
    long = "b" * (telling.LONGEST_BRANCH + 1)
    tasks = [assigned(f"T{n}", feature="cart", branch="cart") for n in range(20, 40)]
    house = await at_work(ledger.add(assigned("T9", feature="far", branch=long), *tasks))

    (lane,) = lanes_in(await house.room())

    assert (lane.feature, len(lane.open)) == ("cart", telling.MOST_OPEN)
    assert (await house.room()).pact == Pact(REPO, (lane,))


@proves("UNI-21")
async def test_a_session_whose_pact_cannot_be_followed_is_told_so(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = await at_work(ledger)

    (place,) = house.mirrors.pacts[REPO].copy.places.values()
    monkeypatch.setattr(place, "_most", 10)
    ledger.add(SHOWN)
    await house.mirrors.look()

    room = await house.room()
    assert room.pact is not None
    assert room.pact.trouble == places.TOO_LARGE.format(most=0)
    assert room.pacts[REPO].trouble == room.pact.trouble
    monkeypatch.undo()
    ledger.add(ACCEPTED)
    await house.mirrors.look()
    room = await house.room()
    assert room.pact is not None
    assert room.pact.trouble == ""


async def test_what_fails_in_the_middle_of_a_long_log_waits_for_the_next_look(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = await at_work(ledger)
    house.mirrors.pause = 60
    house.mirrors.pacts[REPO].copy.more = True  # the look before was not the last
    asked = list[str]()

    async def state(stream: str) -> Any:
        asked.append(stream)
        raise StoreError("the disk does not answer")

    monkeypatch.setattr(house.engine, "state", state)
    running = asyncio.create_task(house.mirrors.run())
    await turns(100)
    tries = len(asked)
    await turns(100)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert tries
    assert len(asked) == tries
