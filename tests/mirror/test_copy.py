"""From the file to the log: complete, once, in the order of the file, whatever happens between."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from accord.core.dialects.pactmirror import told
from accord.core.kernel.refusal import Refused
from accord.core.work.mirror import PactArrange
from accord.engine.ports import StoreError
from accord.mirror import copy as copies
from accord.mirror.copy import Copy
from accord.stores.memory import MemoryLog
from tests.core.work.story import BOB, folded, line
from tests.helpers.engine import Tricky
from tests.helpers.git import a_repository
from tests.mirror.scene import ACCEPTED, ASSIGN, INIT, MERGED, REPO, SHOWN, House, Ledger, ids
from tests.spec import proves

WHOLE = (INIT, ASSIGN, SHOWN, ACCEPTED, MERGED)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / ".pact")


async def followed(house: House, ledger: Ledger) -> Copy:
    await house.place(ledger)
    await house.mirrors.look()
    return house.mirrors.pacts[REPO].copy


def work_of(copy: Copy) -> Any:
    assert copy.told is not None
    return copy.told.work


@proves("OPEN-137", "UNI-7")
async def test_what_the_file_says_is_on_the_log_and_the_file_is_as_it_was(ledger: Ledger) -> None:
    house = House(MemoryLog())
    before = ledger.add(*WHOLE).path.read_bytes()

    copy = await followed(house, ledger)

    assert await house.recorded() == ids(*WHOLE)
    assert work_of(copy) == folded(*WHOLE)
    assert ledger.path.read_bytes() == before
    assert sorted(path.name for path in ledger.directory.iterdir()) == ["log.jsonl"]


@proves("UNI-11")
async def test_looking_again_records_nothing(ledger: Ledger) -> None:
    house = House(MemoryLog())
    ledger.add(*WHOLE)
    await followed(house, ledger)
    position = await house.events.position()

    await house.mirrors.look()
    house = await house.again()
    await house.mirrors.look()

    assert await house.events.position() == position
    assert work_of(house.mirrors.pacts[REPO].copy) == folded(*WHOLE)


@proves("OPEN-137")
@pytest.mark.parametrize("good", range(8))
async def test_a_server_that_dies_at_any_point_is_made_up_for_by_the_next(
    ledger: Ledger, good: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "BATCH", 1)
    log = Tricky()
    house = House(log)
    ledger.add(INIT, ASSIGN)
    await followed(house, ledger)
    ledger.write(ASSIGN, SHOWN, INIT, ACCEPTED, MERGED)
    log.failing, log.spared["append"] = {"append"}, good
    await house.mirrors.look()

    log.failing = set()
    house = await house.again()
    await house.mirrors.look()

    recorded = await house.recorded()
    assert sorted(recorded) == sorted(ids(*WHOLE))
    copy = house.mirrors.pacts[REPO].copy
    assert work_of(copy) == folded(ASSIGN, SHOWN, INIT, ACCEPTED, MERGED)
    assert copy.events == len(WHOLE)


async def test_what_cannot_be_stored_is_tried_again(ledger: Ledger) -> None:
    log = Tricky()
    house = House(log)
    await house.place(ledger.add(INIT))
    log.failing = {"append"}
    await house.mirrors.look()
    assert house.mirrors.pacts[REPO].copy.told is None

    log.failing = set()
    await house.mirrors.look()

    assert await house.recorded() == ids(INIT)


async def test_what_cannot_be_stored_is_not_tried_without_a_pause(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "MOST_AT_ONCE", 1)
    log = Tricky()
    house = House(log)
    await house.place(ledger.add(INIT, ASSIGN))
    log.failing = {"append"}
    await house.mirrors.look()
    copy = house.mirrors.pacts[REPO].copy
    assert (copy.events, copy.more) == (0, False)

    log.failing = set()
    await house.mirrors.look()

    assert (copy.events, copy.more) == (1, True)


@proves("OPEN-137")
async def test_what_is_gone_is_believed_at_the_second_look(ledger: Ledger) -> None:
    house = House(MemoryLog())
    copy = await followed(house, ledger.add(*WHOLE))

    ledger.write(INIT)
    await house.mirrors.look()
    assert work_of(copy) == folded(*WHOLE)
    ledger.write(*WHOLE)
    await house.mirrors.look()
    assert work_of(copy) == folded(*WHOLE)
    ledger.write(INIT, ASSIGN)
    await house.mirrors.look()
    await house.mirrors.look()

    assert work_of(copy) == folded(INIT, ASSIGN)
    ledger.write(*WHOLE)
    await house.mirrors.look()
    assert work_of(copy) == folded(*WHOLE)
    assert await house.recorded() == ids(*WHOLE)


async def test_a_log_that_is_gone_changes_nothing(ledger: Ledger) -> None:
    house = House(MemoryLog())
    copy = await followed(house, ledger.add(*WHOLE))

    for broken in (b"", b"nonsense"):
        ledger.path.write_bytes(broken)
        await house.mirrors.look()
        await house.mirrors.look()
        assert work_of(copy) == folded(*WHOLE)
    assert copy.trouble() == "" or copy.faults() == [1]


@proves("OPEN-137")
@pytest.mark.parametrize("seed", range(4))
async def test_branches_that_git_merges_and_rebases_are_followed(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    house = House(MemoryLog())
    repository = a_repository(
        tmp_path / "code", {".gitattributes": ".pact/log.jsonl merge=union\n", "a": "a\n"}
    )
    ledger = Ledger(repository.root / ".pact").add(INIT, ASSIGN)
    repository.act("add", "."), repository.act("commit", "-q", "-m", "pact")
    copy = await followed(house, ledger)
    for number in range(3):
        repository.act("switch", "-q", "-c", f"side-{number}")
        ledger.add(line("join", BOB, roles=[], at=10 + number, id=f"side-{number}"))
        repository.act("commit", "-qam", "side")
        repository.act("switch", "-q", "main")
        ledger.add(line("join", BOB, roles=[], at=10 + number, id=f"main-{number}"))
        repository.act("commit", "-qam", "main")
        await house.mirrors.look()
        how = chance.choice([("merge", "-q", "--no-edit"), ("rebase", "-q")])
        repository.act(*how, f"side-{number}")
        await house.mirrors.look()
        await house.mirrors.look()

    lines = ledger.path.read_text("utf-8").splitlines()
    assert len(lines) == 8
    assert list(copy._image.lines() if copy._image else ()) == lines
    assert work_of(copy) == told(lines).work
    assert sorted(await house.recorded()) == sorted(
        [*ids(INIT, ASSIGN), *(f"{side}-{n}" for side in ("main", "side") for n in range(3))]
    )


async def test_two_servers_on_one_log_record_each_event_once(ledger: Ledger) -> None:
    one = House(MemoryLog())
    await one.place(ledger.add(INIT))
    other = await one.again()
    await one.mirrors.look()
    ledger.write(ASSIGN, INIT, SHOWN)

    await asyncio.gather(one.mirrors.look(), other.mirrors.look())
    third = await one.again()
    await third.mirrors.look()

    assert sorted(await third.recorded()) == sorted(ids(ASSIGN, INIT, SHOWN))
    assert work_of(third.mirrors.pacts[REPO].copy) == folded(ASSIGN, INIT, SHOWN)


async def test_much_is_brought_in_turns(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "BATCH", 2)
    monkeypatch.setattr(copies, "MOST_AT_ONCE", 2)
    house = House(MemoryLog())
    copy = await followed(house, ledger.add(*WHOLE))
    assert (copy.events, copy.more) == (2, True)

    await house.mirrors.look()
    await house.mirrors.look()

    assert (copy.events, copy.more) == (5, False)
    assert work_of(copy) == folded(*WHOLE)


async def test_an_order_that_others_changed_meanwhile_is_refused(ledger: Ledger) -> None:
    house = House(MemoryLog())
    await followed(house, ledger.add(INIT))

    with pytest.raises(Refused, match="look again"):
        await house.say(f"work/{REPO}", PactArrange(7, 0, 1), copies.PACT)


async def test_a_log_that_cannot_be_read_is_read_later(ledger: Ledger) -> None:
    log = Tricky()
    house = House(log)
    await house.place(ledger.add(INIT))
    fresh = House(log)
    log.failing = {"streams"}
    assert not await fresh.mirrors._find()
    with pytest.raises(StoreError):
        await log.streams()

    log.failing = set()
    assert await fresh.mirrors._find()
    await fresh.mirrors.look()
    assert await fresh.recorded() == ids(INIT)
