"""However much there is in a pact, a session is told so much, and heeds all of it."""

from typing import Any

import pytest

from accord.core.room.forking.fork_state import PactFeature, PactSummary
from accord.core.room.shared_context.item_content import TASKS_KEY
from accord.core.room.state import Room
from accord.core.views import session_tasks
from accord.pact.mirror import ledger_file as places
from accord.pact.mirror import room_updates
from tests.core.work.story import BOB, assigned, line
from tests.pact.mirror.scene import ACCEPTED, MERGED, REPO, SESSION, SHOWN, TOLD, Ledger, at_work
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
    room = await house.room()

    assert room.pact is not None
    assert room.pact.trouble == room_updates.TOO_MANY_FEATURES_NOTICE
    rows = await house.events.read(f"room/{SESSION}")
    assert (
        max(len(row.body) for row in rows)
        < room_updates.MAX_LANES_BYTES + session_tasks.MAX_CONTENT_BYTES + 5000
    )
    content = room.shelf[""][TASKS_KEY].content
    assert isinstance(content, dict)
    assert content["trouble"] == room_updates.TOO_MANY_FEATURES_NOTICE
    assert len(content["tasks"]) + content["left_out"] == 2000


async def test_a_session_hears_that_a_feature_is_merged_and_then_nothing_more(
    ledger: Ledger,
) -> None:
    house = await at_work(ledger.add(SHOWN, ACCEPTED))
    assert lanes_in(await house.room()) == (PactFeature("cart", "cart"),)

    ledger.add(MERGED)
    await house.mirrors.sync_all()
    assert lanes_in(await house.room()) == (PactFeature("cart", "cart", shipped=True),)
    ledger.add(line("join", BOB, roles=[], at=7))
    await house.mirrors.sync_all()

    assert await house.said() == [TOLD, TOLD]
    ledger.add(assigned("T5", feature="till", branch="till", at=8))
    await house.mirrors.sync_all()
    merged = PactFeature("cart", "cart", shipped=True)
    assert lanes_in(await house.room()) == (PactFeature("till", "till", ("T5",)), merged)


def lanes_in(room: Room) -> tuple[PactFeature, ...]:
    assert room.pact is not None
    return room.pact.lanes


async def test_a_feature_of_a_branch_that_no_fork_can_have_is_not_told(ledger: Ledger) -> None:
    long = "b" * (room_updates.MAX_BRANCH_LENGTH + 1)
    tasks = [assigned(f"T{n}", feature="cart", branch="cart") for n in range(20, 40)]
    house = await at_work(ledger.add(assigned("T9", feature="far", branch=long), *tasks))

    (lane,) = lanes_in(await house.room())

    assert (lane.feature, len(lane.open)) == ("cart", room_updates.MAX_OPEN_TASKS)
    assert (await house.room()).pact == PactSummary(REPO, (lane,))


@proves("UNI-21")
async def test_a_session_whose_pact_cannot_be_followed_is_told_so(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = await at_work(ledger)

    (place,) = house.mirrors.pacts[REPO].replica.ledger_files.values()
    monkeypatch.setattr(place, "_max_bytes", 10)
    ledger.add(SHOWN)
    await house.mirrors.sync_all()

    room = await house.room()
    assert room.pact is not None
    assert room.pact.trouble == places.TOO_LARGE_NOTICE.format(most=0)
    assert room.pacts[REPO].trouble == room.pact.trouble
    monkeypatch.undo()
    ledger.add(ACCEPTED)
    await house.mirrors.sync_all()
    room = await house.room()
    assert room.pact is not None
    assert room.pact.trouble == ""
