"""A start opens the rooms in which something may have happened, and no others."""

from accord.engine.ports import EventLog, Snapshot
from accord.engine.quiet import NAME
from accord.stores.memory import MemoryLog
from tests.engine.conftest import Make
from tests.helpers.engine import Stage, Tricky
from tests.helpers.room import ALICE, BOB, CLAUDE, creates, ends, prompts, proposes

OPEN, OVER = "open", "over"


class Watched(Tricky):
    """Remembers which streams were opened."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self.opened: set[str] = set()

    async def snapshot(self, stream: str) -> Snapshot | None:
        self.opened |= {stream.removeprefix("room/")} - {NAME}
        return await super().snapshot(stream)


async def two_rooms(stage: Stage) -> None:
    """One that is over, and one with a gate."""
    await stage.open(BOB, CLAUDE, room=OVER)
    await stage.say(ALICE, ends(), room=OVER)
    await stage.open(BOB, CLAUDE, room=OPEN)
    await stage.say(CLAUDE, proposes(), room=OPEN)


async def started(stage: Stage) -> set[str]:
    """The rooms that a start opens."""
    log = Watched(stage.log)
    again = stage.again(log)
    await again.engine.start()
    await again.close()
    return log.opened


async def test_a_room_that_was_found_quiet_is_not_opened_again(make: Make) -> None:
    stage = make()
    await two_rooms(stage)

    assert await started(stage) == {OPEN, OVER}
    assert await started(stage) == set()


async def test_one_where_something_happened_since_is_opened(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)
    await stage.say(ALICE, creates(), room="new")
    await stage.say(ALICE, ends(), room="new")

    assert await started(stage) == {"new"}
    assert await started(stage) == set()


async def test_one_in_which_something_is_due_is_opened(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)
    stage.clock.move(10_000)

    assert await started(stage) == {OPEN}
    assert not (await stage.again().state(OPEN)).gates


async def test_a_deadline_that_is_still_to_come_is_kept_without_opening(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)

    again = make(stage.log, clock=stage.clock)
    await again.engine.start()
    assert not again.engine.cells
    await again.wait(10_000)

    assert not (await again.state(OPEN)).gates


async def test_a_deadline_counts_by_the_clock_of_the_room(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)
    stage.clock.move(-3600)

    again = make(stage.log, clock=stage.clock)
    await again.engine.start()
    await again.wait(3000)

    assert not (await again.state(OPEN)).gates


async def test_one_that_everybody_left_is_still_open(make: Make) -> None:
    stage = make()
    await stage.open(CLAUDE)
    await stage.say(CLAUDE, prompts(), "before")
    for ear in stage.ears.values():
        ear.hang_up()
    await stage.wait(100_000)

    assert await started(stage) == {"r"}
    assert await started(stage) == set()
    assert await stage.again().engine.start() == {"room/r": ("default", "alice")}


async def test_what_is_over_is_found_as_it_was(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)

    again = stage.again()
    gists = await again.engine.start()
    assert gists == {f"room/{OPEN}": ("default", "alice"), f"room/{OVER}": ()}
    assert again.engine.cells == {}
    ended = await again.engine.state(f"room/{OVER}")
    assert ended == await stage.engine.state(f"room/{OVER}")
    await again.close()


async def test_a_damaged_or_foreign_list_is_no_list(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)
    kept = await stage.log.snapshot(NAME)
    assert kept is not None
    for shape, blob in (("other", kept.blob), (kept.shape, kept.blob[:-1] + b"\xff"), ("", b"")):
        await stage.log.keep(NAME, Snapshot(kept.version, shape, blob))
        assert await started(stage) == {OPEN, OVER}


async def test_a_list_that_cannot_be_kept_is_done_without(make: Make) -> None:
    log = Tricky(MemoryLog())
    stage = make(log)
    await two_rooms(stage)
    log.failing.add("keep")

    assert await started(stage) == {OPEN, OVER}
    assert await started(stage) == {OPEN, OVER}
