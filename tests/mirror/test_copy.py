"""From the file to the log: complete, once, in the order of the file, whatever happens between."""

import asyncio
import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest

from accord.core.dialects import pactmark
from accord.core.dialects.pactbook import Book, told
from accord.core.kernel.refusal import Refused
from accord.core.work.mirror import PactArrange, key_of
from accord.engine.ports import StoreError
from accord.mirror import copy as copies
from accord.mirror import place as places
from accord.mirror.copy import Copy
from accord.mirror.record import PACT
from accord.stores.memory import MemoryLog
from tests.core.work.story import BOB, assigned, folded, line
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
    assert copy.ready
    return copy.book.work()


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
    assert not house.mirrors.pacts[REPO].copy.ready

    log.failing = set()
    await house.mirrors.look()

    assert await house.recorded() == ids(INIT)


async def test_what_cannot_be_stored_is_not_tried_without_a_pause(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "BLOCK", 1)
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
    place = copy.places[str(ledger.directory)]
    assert (place.trouble, place.look.faults) == (places.UNREADABLE, (1,))


@proves("OPEN-137")
@pytest.mark.parametrize("every", [1, 2, 4096])
@pytest.mark.parametrize("seed", range(4))
async def test_branches_that_git_merges_and_rebases_are_followed(
    tmp_path: Path, seed: int, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pactmark, "EVERY", every)
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
    assert copy._image.order == [key_of(json.loads(each)["event_id"]) for each in lines]
    assert work_of(copy) == told(lines).work()
    assert sorted(await house.recorded()) == sorted(
        [*ids(INIT, ASSIGN), *(f"{side}-{n}" for side in ("main", "side") for n in range(3))]
    )


@pytest.mark.parametrize("first", ["ours", "theirs"])
async def test_late_lines_that_a_merge_brings_do_not_have_all_the_others_read_again(
    ledger: Ledger, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pactmark, "EVERY", 2)
    monkeypatch.setattr(copies, "BATCH", 1)
    house = House(MemoryLog())
    ours = [line("join", BOB, roles=[], at=at, id=f"ours-{at}") for at in (20, 21)]
    theirs = [line("join", BOB, roles=[], at=at, id=f"theirs-{at}") for at in (19, 20, 22)]
    copy = await followed(house, ledger.add(*WHOLE[:4], *ours))

    async def again(_: Copy) -> Book:
        raise AssertionError("everything was read once more")

    monkeypatch.setattr(Copy, "_rebind", again)
    both = (*ours, *theirs) if first == "ours" else (*theirs, *ours)
    ledger.write(*WHOLE[:4], *both)
    await house.mirrors.look()
    ledger.add(MERGED)
    await house.mirrors.look()

    assert copy.known
    assert work_of(copy) == folded(*WHOLE[:4], *both, MERGED)
    lines = ledger.path.read_text("utf-8").splitlines()
    assert (copy.book.times, copy.book.lines) == (told(lines).times, len(lines))


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
    monkeypatch.setattr(places, "BLOCK", 1)
    house = House(MemoryLog())
    copy = await followed(house, ledger.add(*WHOLE))
    assert (copy.events, copy.more, copy.ready) == (1, True, False)

    for _ in WHOLE[1:]:
        await house.mirrors.look()

    assert (copy.events, copy.more) == (5, False)
    assert work_of(copy) == folded(*WHOLE)


async def test_an_order_that_others_changed_meanwhile_is_refused(ledger: Ledger) -> None:
    house = House(MemoryLog())
    await followed(house, ledger.add(INIT))

    with pytest.raises(Refused, match="look again"):
        await house.say(f"work/{REPO}", PactArrange(7, 0, 1), PACT)


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


def forbid(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """What looks through all of a pact is not done."""

    def no(*_: Any) -> None:
        raise AssertionError

    for name in names:
        monkeypatch.setattr(Copy, name, no)


async def test_one_more_event_is_all_that_is_read_recorded_and_folded(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()
    house = House(log)
    house.engine.check = False  # which reads everything
    many = [assigned(f"T{n}", feature="cart", branch="cart") for n in range(3000)]
    copy = await followed(house, ledger.add(INIT, *many))
    while copy.more:
        await house.mirrors.look()
    put, read = list[int](), list[str]()
    fold, rows = Book.put, log.read

    def counted(book: Book, entries: list[Any]) -> None:
        put.append(len(entries))
        fold(book, entries)

    async def watched(stream: str, after: int = 0, limit: int | None = None) -> Any:
        read.append(stream)
        return await rows(stream, after, limit)

    forbid(monkeypatch, "_wanted", "_rebind")
    monkeypatch.setattr(Book, "put", counted)
    monkeypatch.setattr(log, "read", watched)
    ledger.add(line("checkpoint", BOB, "T7", "cart", evidence="12 pass", at=5))
    await house.mirrors.look()

    assert (put, read) == ([1], [])
    assert (copy.events, copy.book.lines) == (3002, 3002)
    assert work_of(copy).tasks["T7"].evidence == "12 pass"


async def test_what_comes_late_is_folded_where_its_time_is(ledger: Ledger) -> None:
    house = House(MemoryLog())
    late = (INIT, ACCEPTED, SHOWN, MERGED)
    copy = await followed(house, ledger.add(*late))
    assert work_of(copy) == folded(*late)

    ledger.add(ASSIGN)
    await house.mirrors.look()
    assert work_of(copy) == folded(*late, ASSIGN)
    ledger.add(line("join", BOB, roles=[], at=9))
    await house.mirrors.look()

    assert work_of(copy) == folded(*late, ASSIGN, line("join", BOB, roles=[], at=9))
    house = await house.again()
    await house.mirrors.look()
    assert work_of(house.mirrors.pacts[REPO].copy) == work_of(copy)


async def test_what_another_server_records_is_learned_from_the_log(ledger: Ledger) -> None:
    one = House(MemoryLog())
    copy = await followed(one, ledger.add(INIT))
    other = await one.again()
    await other.mirrors.look()
    ledger.add(ASSIGN, SHOWN)
    await other.mirrors.look()

    await one.engine.opener.catch_up(one.engine.cells[f"work/{REPO}"])
    await one.mirrors.look()

    assert work_of(copy) == folded(INIT, ASSIGN, SHOWN)
    assert await one.recorded() == ids(INIT, ASSIGN, SHOWN)


async def test_what_is_copied_of_a_long_log_is_reported(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(copies, "TOLD_EVERY", 2)
    monkeypatch.setattr(copies, "BATCH", 1)
    with caplog.at_level(logging.INFO, "accord.mirror"):
        await followed(House(MemoryLog()), ledger.add(*WHOLE))

    counts = [each.count for each in caplog.records if each.message == "pact.copied"]  # type: ignore[attr-defined]
    assert counts == [2, 4]


def renamed(number: int) -> list[dict[str, Any]]:
    """The same log, written anew with other ids."""
    return [{**each, "event_id": f"{each['event_id']}-{number}"} for each in WHOLE]


async def test_a_log_that_is_written_anew_with_other_ids_does_not_fill_the_servers(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    most = copies.Bounds(12, 1 << 30)
    monkeypatch.setattr(copies, "bounds", lambda _: most)
    monkeypatch.setattr(copies, "BATCH", 1)
    house = House(MemoryLog())
    copy = await followed(house, ledger.add(*WHOLE))
    for number in range(9):
        ledger.write(*renamed(number))
        await house.mirrors.look()
        await house.mirrors.look()

    assert len(await house.recorded()) == 12
    assert (await house.now(ledger))["trouble"] == most.sentence
    assert copy.blind == most.sentence
    assert [each.message for each in caplog.records].count("pact.full") == 1
    ledger.write(*WHOLE[::-1])
    house = await house.again()
    await house.mirrors.look()
    assert (await house.now(ledger))["trouble"] == ""
    ledger.add(*renamed(99))
    await house.mirrors.look()
    assert (await house.now(ledger))["trouble"] == most.sentence
    assert len(await house.recorded()) == 12


async def test_orders_that_change_without_end_do_not_fill_the_servers_log(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(MemoryLog())
    copy = await followed(house, ledger.add(*WHOLE))
    most = copies.Bounds(99, copy._image.weight + 1000)
    monkeypatch.setattr(copies, "bounds", lambda _: most)
    for number in range(20):
        ledger.write(*WHOLE[:: (-1) ** number])
        await house.mirrors.look()

    assert copy.full
    assert copy._image.weight < most.bytes + 1000
