"""What a room keeps at hand is bounded by bytes, and nobody misses anything for it."""

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from accord.core.kernel.authority import Role
from accord.core.kernel.limits import Limits
from accord.engine import arrivals as arrivals_module
from accord.engine import cell as cell_module
from tests.helpers.engine import Stage, turns
from tests.helpers.room import ALICE, BOB, CLAUDE, STREAM, joins, prompts

SMALL = 3000
SAID = 40


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """An engine that takes note of its own mistakes."""
    stage = Stage()
    yield stage
    await stage.close()


async def talk(stage: Stage) -> None:
    """Much is said."""
    await stage.open(CLAUDE)
    for number in range(SAID):
        await stage.say(ALICE, prompts(), f"p{number}")


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_short_window_hides_nothing_from_a_newcomer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, restarted: bool
) -> None:
    monkeypatch.setattr(cell_module, "LARGEST_WINDOW", SMALL)
    await talk(stage)
    if restarted:
        stage.engine.cells.clear()
    bob = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")
    await stage.say(ALICE, prompts(), "live")

    cell = stage.engine.cells[STREAM]
    assert cell.weight == sum(len(sealed.body) for sealed in cell.window) <= SMALL
    assert set(cell.index) == {sealed.record.id for sealed in cell.window}
    assert bob.ids == await stage.ids()
    assert len(bob.heard) == len(bob.ids)


async def test_a_retry_from_before_a_short_window_is_a_retry(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_module, "LARGEST_WINDOW", SMALL)
    await talk(stage)
    before = await stage.ids()
    again = stage.ask(ALICE, prompts(), "p0")
    await stage.settle()
    assert again.outcome is not None
    assert again.outcome.again
    assert await stage.ids() == before


async def test_one_record_is_at_hand_however_long(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_module, "LARGEST_WINDOW", 1)
    await talk(stage)
    assert len(stage.engine.cells[STREAM].window) == 1


async def test_what_is_long_is_told_in_pieces_to_who_reads_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals_module, "LARGEST_WRITE", SMALL)
    monkeypatch.setattr(arrivals_module, "FIRST_PAGE", 2)
    await talk(stage)
    bob = stage.connect(BOB)
    bob.stall()
    stage.ask(BOB, joins(BOB, Role.DRIVER), "join")
    for number in range(3):
        reply = stage.ask(ALICE, prompts(), f"meanwhile{number}")
        while not reply:
            await turns(1)
    assert len(bob.writes) == 1, "who does not read is told no more"
    bob.resume()
    await stage.settle()
    await stage.say(ALICE, prompts(), "live")
    assert bob.ids == await stage.ids()
    assert len(bob.writes) > 5


@pytest.mark.parametrize("size", [16_000, 17_000])
async def test_what_everybody_is_told_of_a_member_is_short(stage: Stage, size: int) -> None:
    await stage.open(CLAUDE)
    metadata = {"note": "x" * size}
    plain = joins(BOB, Role.DRIVER)
    join = replace(plain, participant=replace(plain.participant, metadata=metadata))
    announced = replace(joins(ALICE).participant, metadata=metadata)
    for reply in (stage.ask(BOB, join), stage.ask(ALICE, announced)):
        await stage.settle()
        assert (reply.refused is None) == (size < Limits().metadata)
