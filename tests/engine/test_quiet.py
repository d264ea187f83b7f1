"""A start opens the rooms in which something may be due, and no others."""

from accord.engine.ports import Snapshot
from accord.engine.quiet import NAME
from accord.stores.memory import MemoryLog
from tests.engine.conftest import Make
from tests.helpers.engine import Stage, Tricky
from tests.helpers.room import ALICE, BOB, CLAUDE, creates, ends, prompts, proposes

OPEN, OVER = "open", "over"


async def two_rooms(stage: Stage) -> None:
    """One that is over, and one with a gate."""
    await stage.open(BOB, CLAUDE, room=OVER)
    await stage.say(ALICE, ends(), room=OVER)
    await stage.open(BOB, CLAUDE, room=OPEN)
    await stage.say(CLAUDE, proposes(), room=OPEN)


async def started(stage: Stage) -> set[str]:
    """The rooms that a start opens."""
    again = stage.again()
    await again.engine.start()
    found = {name.removeprefix("room/") for name in again.engine.cells}
    await again.close()
    return found


async def test_a_room_that_was_found_quiet_is_not_opened_again(make: Make) -> None:
    stage = make()
    await two_rooms(stage)

    assert await started(stage) == {OPEN, OVER}
    assert await started(stage) == {OPEN}


async def test_one_where_something_happened_since_is_opened(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)
    await stage.say(ALICE, creates(), room="new")
    await stage.say(ALICE, ends(), room="new")

    assert await started(stage) == {OPEN, "new"}
    assert await started(stage) == {OPEN}


async def test_one_that_everybody_left_is_still_open(make: Make) -> None:
    stage = make()
    await stage.open(CLAUDE)
    await stage.say(CLAUDE, prompts(), "before")
    for ear in stage.ears.values():
        ear.hang_up()
    await stage.wait(100_000)

    assert await started(stage) == await started(stage) == {"r"}


async def test_what_is_over_is_found_as_it_was(make: Make) -> None:
    stage = make()
    await two_rooms(stage)
    await started(stage)

    again = stage.again()
    await again.engine.start()
    assert again.engine.over == {f"room/{OVER}"}
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
