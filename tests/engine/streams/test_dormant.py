"""A start opens rooms in which something may be due, and no others."""

from accord.engine.ports import EventLog, Snapshot
from accord.engine.streams.startup import SNAPSHOT_NAME
from accord.stores.memory import MemoryLog
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness, FaultyLog
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    prompt_submit,
    session_create,
    session_end,
    tool_propose,
)

OPEN, OVER = "open", "over"


class Watched(FaultyLog):
    """Remembers which streams were opened."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self.opened: set[str] = set()

    async def snapshot(self, stream: str) -> Snapshot | None:
        self.opened |= {stream.removeprefix("room/")} - {SNAPSHOT_NAME}
        return await super().snapshot(stream)


async def two_rooms(stage: EngineHarness) -> None:
    """One that is over, and one with a gate."""
    await stage.open_room(BOB, CLAUDE, room=OVER)
    await stage.send(ALICE, session_end(), room=OVER)
    await stage.open_room(BOB, CLAUDE, room=OPEN)
    await stage.send(CLAUDE, tool_propose(), room=OPEN)


async def started(stage: EngineHarness) -> set[str]:
    """The rooms that a start opens."""
    log = Watched(stage.log)
    again = stage.restart(log)
    await again.engine.start()
    await again.close()
    return log.opened


async def test_inactive_room_is_not_opened_by_the_next_start(make: Make) -> None:
    stage = make()
    await two_rooms(stage)

    assert await started(stage) == {OPEN, OVER}
    assert await started(stage) == set()


async def test_room_with_new_records_is_opened(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)
    await stage.send(ALICE, session_create(), room="new")
    await stage.send(ALICE, session_end(), room="new")

    assert await started(stage) == {"new"}
    assert await started(stage) == set()


async def test_room_with_a_passed_deadline_is_opened(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)
    stage.clock.advance(10_000)

    assert await started(stage) == {OPEN}
    assert not (await stage.restart().state(OPEN)).gates


async def test_future_deadline_is_armed_without_opening_the_room(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)

    again = make(stage.log, clock=stage.clock)
    await again.engine.start()
    assert not again.engine.streams
    await again.advance_time(10_000)

    assert not (await again.state(OPEN)).gates


async def test_deadline_uses_the_clock_of_the_room(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)
    stage.clock.advance(-3600)

    again = make(stage.log, clock=stage.clock)
    await again.engine.start()
    await again.advance_time(3000)

    assert not (await again.state(OPEN)).gates


async def test_room_without_members_is_still_open(make: Make) -> None:
    stage = make()
    await stage.open_room(CLAUDE)
    await stage.send(CLAUDE, prompt_submit(), "before")
    for ear in stage.peers.values():
        ear.disconnect()
    await stage.advance_time(100_000)

    assert await started(stage) == {"r"}
    assert await started(stage) == set()
    assert await stage.restart().engine.start() == {"room/r": ("default", "alice")}


async def test_ended_room_is_unchanged_after_a_restart(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)

    again = stage.restart()
    gists = await again.engine.start()
    assert gists == {f"room/{OPEN}": ("default", "alice"), f"room/{OVER}": ()}
    assert again.engine.streams == {}
    ended = await again.engine.state(f"room/{OVER}")
    assert ended == await stage.engine.state(f"room/{OVER}")
    await again.close()


async def test_damaged_or_foreign_list_is_ignored(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)
    kept = await stage.log.snapshot(SNAPSHOT_NAME)
    assert kept is not None
    for shape, blob in (("other", kept.blob), (kept.shape, kept.blob[:-1] + b"\xff"), ("", b"")):
        await stage.log.save_snapshot(SNAPSHOT_NAME, Snapshot(kept.version, shape, blob))
        assert await started(stage) == {OPEN, OVER}


async def test_unsaved_list_does_not_fail_the_start(make: Make) -> None:
    log = FaultyLog(MemoryLog())
    stage = make(log)
    await two_rooms(stage)
    log.failing.add("keep")

    assert await started(stage) == {OPEN, OVER}
    assert await started(stage) == {OPEN, OVER}
