"""Where the pact of a repository lies, in one place or several."""

from pathlib import Path

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.commit_links import LedgerRemove
from accord.pact.mirror import ledger_file as places
from accord.pact.mirror.recorder import PACT_ACTOR
from accord.stores.memory import MemoryLog
from tests.core.work.story import assigned
from tests.pact.mirror.scene import ASSIGN, INIT, MERGED, REPO, SHOWN, House, Ledger, at_work


@pytest.mark.parametrize("directory", ["", ".pact", "/a/../b", "/a\0b"])
def test_a_place_is_named_by_its_whole_path(directory: str) -> None:
    with pytest.raises(Refused, match="absolute path") as no:
        House(MemoryLog()).mirrors.check_directory(REPO, directory)
    assert no.value.reason is Reason.MALFORMED


async def lying(house: House, *ledgers: Ledger) -> None:
    for each in ledgers:
        await house.place(each)
    await house.mirrors.sync_all()


async def places_of(house: House) -> dict[str, tuple[int, int, str]]:
    found = await house.mirrors.ledger_statuses(await house.engine.state(f"repo/{REPO}"))
    return {
        Path(each["directory"]).name: (each["events"], each["alone"], each["trouble"])
        for each in found
    }


async def test_what_lies_where_is_told_apart(tmp_path: Path) -> None:
    one = Ledger(tmp_path / "one").add(INIT, ASSIGN)
    two = Ledger(tmp_path / "two").add(INIT, SHOWN)
    with two.path.open("ab") as file:
        file.write(b"nonsense\n")
    house = House(MemoryLog())
    assert await house.mirrors.ledger_statuses(await house.engine.state(f"repo/{REPO}")) == []
    await lying(house, one, two)

    assert await places_of(house) == {"one": (2, 1, ""), "two": (2, 1, "")}
    assert ((await house.now(one))["unread"], (await house.now(two))["unread"]) == ([], [3])
    one.path.unlink()
    assert (await house.now(one))["trouble"] == places.UNREADABLE_NOTICE
    assert (await house.now(two))["trouble"] == ""
    assert (await house.mirrors.sync_now(REPO, "/nowhere"))["trouble"] == ""


async def test_what_lay_in_a_place_that_is_gone_still_counts_after_a_restart(
    tmp_path: Path,
) -> None:
    one = Ledger(tmp_path / "one").add(INIT, ASSIGN)
    two = Ledger(tmp_path / "two").add(INIT, assigned("T2", feature="cart", branch="cart"))
    house = House(MemoryLog())
    await lying(house, one, two)

    two.path.unlink()
    house = await house.again()
    for _ in range(3):
        await house.mirrors.sync_all()
    assert list(house.mirrors.pacts[REPO].replica.work.tasks) == ["T1", "T2"]
    assert await places_of(house) == {"one": (2, 2, ""), "two": (0, 1, places.UNREADABLE_NOTICE)}

    await house.say(f"repo/{REPO}", LedgerRemove(str(two.directory)), PACT_ACTOR)
    await house.mirrors.sync_all()
    await house.mirrors.sync_all()
    assert list(house.mirrors.pacts[REPO].replica.work.tasks) == ["T1"]


async def test_a_place_makes_way_only_if_it_is_gone_and_nobody_would_miss_it(
    tmp_path: Path,
) -> None:
    one = Ledger(tmp_path / "one").add(INIT, ASSIGN, SHOWN)
    two, three = Ledger(tmp_path / "two").add(INIT), Ledger(tmp_path / "three").add(INIT, SHOWN)
    alone = Ledger(tmp_path / "alone").add(INIT, MERGED)
    house = House(MemoryLog())
    await lying(house, one, two, three, alone)

    async def needless() -> list[str]:
        repo = await house.engine.state(f"repo/{REPO}")
        return [Path(each).name for each in await house.mirrors.removable_directories(repo)]

    assert await needless() == []
    alone.path.unlink()
    assert await needless() == []
    two.path.unlink()
    three.path.unlink()
    assert await needless() == ["two"]


async def test_nobody_takes_away_what_a_session_goes_by(tmp_path: Path) -> None:
    one, two = Ledger(tmp_path / "one").add(INIT, ASSIGN), Ledger(tmp_path / "two").add(INIT)
    house = await at_work(one)
    repo = await house.engine.state(f"repo/{REPO}")
    with pytest.raises(Refused, match="2 events exist only") as no:
        await house.mirrors.check_removable(repo, str(one.directory))
    assert (no.value.reason, no.value.details) == (Reason.WRONG_STATE, {"alone": 2})

    await lying(house, two)
    repo = await house.engine.state(f"repo/{REPO}")
    await house.mirrors.check_removable(repo, str(two.directory))
    await house.say(f"repo/{REPO}", LedgerRemove(str(two.directory)), PACT_ACTOR)
    empty = House(MemoryLog())
    await lying(empty, Ledger(tmp_path / "empty"))
    with pytest.raises(Refused, match="the last directory"):
        await empty.mirrors.check_removable(
            await empty.engine.state(f"repo/{REPO}"), str(tmp_path / "empty")
        )
