"""What a room keeps at hand is bounded by bytes, and nobody misses anything for it."""

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from accord.core.kernel.limits import Limits
from accord.core.kernel.role_permissions import Role
from accord.engine.delivery import joining as arrivals_module
from accord.engine.streams import stream as cell_module
from tests.helpers.engine.harness import EngineHarness, yield_to_loop
from tests.helpers.room.scenario import ALICE, BOB, CLAUDE, STREAM, prompt_submit, session_join

SMALL = 3000
SAID = 40


@pytest.fixture
async def stage() -> AsyncIterator[EngineHarness]:
    """An engine that takes note of its own mistakes."""
    stage = EngineHarness()
    yield stage
    await stage.close()


async def talk(stage: EngineHarness) -> None:
    """Much is said."""
    await stage.open_room(CLAUDE)
    for number in range(SAID):
        await stage.send(ALICE, prompt_submit(), f"p{number}")


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_short_window_hides_nothing_from_a_newcomer(
    stage: EngineHarness, monkeypatch: pytest.MonkeyPatch, *, restarted: bool
) -> None:
    monkeypatch.setattr(cell_module, "MAX_WINDOW_BYTES", SMALL)
    await talk(stage)
    if restarted:
        stage.engine.streams.clear()
    bob = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")
    await stage.send(ALICE, prompt_submit(), "live")

    cell = stage.engine.streams[STREAM]
    assert cell.window_bytes == sum(len(sealed.body) for sealed in cell.window) <= SMALL
    assert set(cell.index) == {sealed.record.id for sealed in cell.window}
    assert bob.ids == await stage.ids()
    assert len(bob.received) == len(bob.ids)


async def test_a_retry_from_before_a_short_window_is_a_retry(
    stage: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_module, "MAX_WINDOW_BYTES", SMALL)
    await talk(stage)
    before = await stage.ids()
    again = stage.submit(ALICE, prompt_submit(), "p0")
    await stage.wait_until_idle()
    assert again.outcome is not None
    assert again.outcome.is_retry
    assert await stage.ids() == before


async def test_one_record_is_at_hand_however_long(
    stage: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_module, "MAX_WINDOW_BYTES", 1)
    await talk(stage)
    assert len(stage.engine.streams[STREAM].window) == 1


async def test_what_is_long_is_told_in_pieces_to_who_reads_them(
    stage: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals_module, "MAX_WRITE_BYTES", SMALL)
    monkeypatch.setattr(arrivals_module, "FIRST_PAGE_ROWS", 2)
    await talk(stage)
    bob = stage.connect(BOB)
    bob.stop_reading()
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "join")
    for number in range(3):
        reply = stage.submit(ALICE, prompt_submit(), f"meanwhile{number}")
        while not reply:
            await yield_to_loop(1)
    assert len(bob.writes) == 1, "who does not read is told no more"
    bob.resume_reading()
    await stage.wait_until_idle()
    await stage.send(ALICE, prompt_submit(), "live")
    assert bob.ids == await stage.ids()
    assert len(bob.writes) > 5


@pytest.mark.parametrize("size", [16_000, 17_000])
async def test_what_everybody_is_told_of_a_member_is_short(stage: EngineHarness, size: int) -> None:
    await stage.open_room(CLAUDE)
    metadata = {"note": "x" * size}
    plain = session_join(BOB, Role.DRIVER)
    join = replace(plain, participant=replace(plain.participant, metadata=metadata))
    announced = replace(session_join(ALICE).participant, metadata=metadata)
    for reply in (stage.submit(BOB, join), stage.submit(ALICE, announced)):
        await stage.wait_until_idle()
        assert (reply.refusal is None) == (size < Limits().metadata)
