"""From the file to the log: complete, once, in the order of the file, whatever happens between."""

import asyncio
import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.refusal import Refused
from accord.core.work.mirror import PactArrange, event_key
from accord.engine.ports import StoreError
from accord.pact.mirror import ledger_file as places
from accord.pact.mirror import replication as copies
from accord.pact.mirror.mirrored_work import MirroredWork, fold_lines
from accord.pact.mirror.recorder import PACT_ACTOR
from accord.pact.mirror.replication import Replica
from accord.stores.memory import MemoryLog
from tests.core.work.story import BOB, assigned, folded, line
from tests.helpers.engine.harness import FaultyLog
from tests.helpers.git.repositories import create_repository
from tests.pact.mirror.scene import ACCEPTED, ASSIGN, INIT, MERGED, REPO, SHOWN, House, Ledger, ids
from tests.spec import proves

WHOLE = (INIT, ASSIGN, SHOWN, ACCEPTED, MERGED)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / ".pact")


async def followed(house: House, ledger: Ledger) -> Replica:
    await house.place(ledger)
    await house.mirrors.sync_all()
    return house.mirrors.pacts[REPO].replica


def work_of(copy: Replica) -> Any:
    assert copy.is_ready
    return copy.work.work()


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

    await house.mirrors.sync_all()
    house = await house.again()
    await house.mirrors.sync_all()

    assert await house.events.position() == position
    assert work_of(house.mirrors.pacts[REPO].replica) == folded(*WHOLE)


@proves("OPEN-137")
@pytest.mark.parametrize("good", range(8))
async def test_a_server_that_dies_at_any_point_is_made_up_for_by_the_next(
    ledger: Ledger, good: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "BATCH_EVENTS", 1)
    log = FaultyLog()
    house = House(log)
    ledger.add(INIT, ASSIGN)
    await followed(house, ledger)
    ledger.write(ASSIGN, SHOWN, INIT, ACCEPTED, MERGED)
    log.failing, log.successes_before_failure["append"] = {"append"}, good
    await house.mirrors.sync_all()

    log.failing = set()
    house = await house.again()
    await house.mirrors.sync_all()

    recorded = await house.recorded()
    assert sorted(recorded) == sorted(ids(*WHOLE))
    copy = house.mirrors.pacts[REPO].replica
    assert work_of(copy) == folded(ASSIGN, SHOWN, INIT, ACCEPTED, MERGED)
    assert copy.event_count == len(WHOLE)


async def test_what_cannot_be_stored_is_tried_again(ledger: Ledger) -> None:
    log = FaultyLog()
    house = House(log)
    await house.place(ledger.add(INIT))
    log.failing = {"append"}
    await house.mirrors.sync_all()
    assert not house.mirrors.pacts[REPO].replica.is_ready

    log.failing = set()
    await house.mirrors.sync_all()

    assert await house.recorded() == ids(INIT)


@proves("OPEN-137")
async def test_what_is_gone_is_believed_at_the_second_look(ledger: Ledger) -> None:
    house = House(MemoryLog())
    copy = await followed(house, ledger.add(*WHOLE))

    ledger.write(INIT)
    await house.mirrors.sync_all()
    assert work_of(copy) == folded(*WHOLE)
    ledger.write(*WHOLE)
    await house.mirrors.sync_all()
    assert work_of(copy) == folded(*WHOLE)
    ledger.write(INIT, ASSIGN)
    await house.mirrors.sync_all()
    await house.mirrors.sync_all()

    assert work_of(copy) == folded(INIT, ASSIGN)
    ledger.write(*WHOLE)
    await house.mirrors.sync_all()
    assert work_of(copy) == folded(*WHOLE)
    assert await house.recorded() == ids(*WHOLE)


async def test_a_log_that_is_gone_changes_nothing(ledger: Ledger) -> None:
    house = House(MemoryLog())
    copy = await followed(house, ledger.add(*WHOLE))

    for broken in (b"", b"nonsense"):
        ledger.path.write_bytes(broken)
        await house.mirrors.sync_all()
        await house.mirrors.sync_all()
        assert work_of(copy) == folded(*WHOLE)
    place = copy.ledger_files[str(ledger.directory)]
    assert (place.trouble, place.status.faults) == (places.UNREADABLE_NOTICE, (1,))


@proves("OPEN-137")
@pytest.mark.parametrize("most_added", [0, 500])
@pytest.mark.parametrize("seed", range(4))
async def test_branches_that_git_merges_and_rebases_are_followed(
    tmp_path: Path, seed: int, most_added: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "MAX_LINES_ADDED", most_added)
    chance = random.Random(seed)
    house = House(MemoryLog())
    repository = create_repository(
        tmp_path / "code", {".gitattributes": ".pact/log.jsonl merge=union\n", "a": "a\n"}
    )
    ledger = Ledger(repository.root / ".pact").add(INIT, ASSIGN)
    repository.run_with_hooks("add", "."), repository.run_with_hooks("commit", "-q", "-m", "pact")
    copy = await followed(house, ledger)
    for number in range(3):
        repository.run_with_hooks("switch", "-q", "-c", f"side-{number}")
        ledger.add(line("join", BOB, roles=[], at=10 + number, id=f"side-{number}"))
        repository.run_with_hooks("commit", "-qam", "side")
        repository.run_with_hooks("switch", "-q", "main")
        ledger.add(line("join", BOB, roles=[], at=10 + number, id=f"main-{number}"))
        repository.run_with_hooks("commit", "-qam", "main")
        await house.mirrors.sync_all()
        how = chance.choice([("merge", "-q", "--no-edit"), ("rebase", "-q")])
        repository.run_with_hooks(*how, f"side-{number}")
        await house.mirrors.sync_all()
        await house.mirrors.sync_all()

    lines = ledger.path.read_text("utf-8").splitlines()
    assert len(lines) == 8
    assert copy._order.order == [event_key(json.loads(each)["event_id"]) for each in lines]
    assert work_of(copy) == fold_lines(lines).work()
    assert sorted(await house.recorded()) == sorted(
        [*ids(INIT, ASSIGN), *(f"{side}-{n}" for side in ("main", "side") for n in range(3))]
    )


async def test_two_servers_on_one_log_record_each_event_once(ledger: Ledger) -> None:
    one = House(MemoryLog())
    await one.place(ledger.add(INIT))
    other = await one.again()
    await one.mirrors.sync_all()
    ledger.write(ASSIGN, INIT, SHOWN)

    await asyncio.gather(one.mirrors.sync_all(), other.mirrors.sync_all())
    third = await one.again()
    await third.mirrors.sync_all()

    assert sorted(await third.recorded()) == sorted(ids(ASSIGN, INIT, SHOWN))
    assert work_of(third.mirrors.pacts[REPO].replica) == folded(ASSIGN, INIT, SHOWN)


async def test_an_order_that_others_changed_meanwhile_is_refused(ledger: Ledger) -> None:
    house = House(MemoryLog())
    await followed(house, ledger.add(INIT))

    with pytest.raises(Refused, match="try again"):
        await house.say(f"work/{REPO}", PactArrange(7, 0, 1), PACT_ACTOR)


async def test_a_log_that_cannot_be_read_is_read_later(ledger: Ledger) -> None:
    log = FaultyLog()
    house = House(log)
    await house.place(ledger.add(INIT))
    fresh = House(log)
    log.failing = {"streams"}
    assert not await fresh.mirrors._resume_all()
    with pytest.raises(StoreError):
        await log.streams()

    log.failing = set()
    assert await fresh.mirrors._resume_all()
    await fresh.mirrors.sync_all()
    assert await fresh.recorded() == ids(INIT)


def forbid(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """What looks through all of a pact is not done."""

    def no(*_: Any) -> None:
        raise AssertionError

    for name in names:
        monkeypatch.setattr(Replica, name, no)


async def test_one_more_event_is_all_that_is_read_recorded_and_folded(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()
    house = House(log)
    house.engine.check = False  # which reads everything
    many = [assigned(f"T{n}", feature="cart", branch="cart") for n in range(1000)]
    copy = await followed(house, ledger.add(INIT, *many))
    put, read = list[int](), list[str]()
    fold, rows = MirroredWork.add_lines, log.read

    def counted(book: MirroredWork, lines: list[str]) -> bool:
        put.append(len(lines))
        return fold(book, lines)

    async def watched(stream: str, after: int = 0, limit: int | None = None) -> Any:
        read.append(stream)
        return await rows(stream, after, limit)

    forbid(monkeypatch, "_file_order")
    monkeypatch.setattr(MirroredWork, "add_lines", counted)
    monkeypatch.setattr(log, "read", watched)
    ledger.add(line("checkpoint", BOB, "T7", "cart", evidence="12 pass", at=5))
    await house.mirrors.sync_all()

    assert (put, read) == ([1], [])
    assert copy.event_count == 1002
    assert work_of(copy).tasks["T7"].evidence == "12 pass"


async def test_what_comes_late_is_folded_where_its_time_is(ledger: Ledger) -> None:
    house = House(MemoryLog())
    late = (INIT, ACCEPTED, SHOWN, MERGED)
    copy = await followed(house, ledger.add(*late))
    assert work_of(copy) == folded(*late)

    ledger.add(ASSIGN)
    await house.mirrors.sync_all()
    assert work_of(copy) == folded(*late, ASSIGN)
    ledger.add(line("join", BOB, roles=[], at=9))
    await house.mirrors.sync_all()

    assert work_of(copy) == folded(*late, ASSIGN, line("join", BOB, roles=[], at=9))
    house = await house.again()
    await house.mirrors.sync_all()
    assert work_of(house.mirrors.pacts[REPO].replica) == work_of(copy)


async def test_what_another_server_records_is_learned_from_the_log(ledger: Ledger) -> None:
    one = House(MemoryLog())
    copy = await followed(one, ledger.add(INIT))
    other = await one.again()
    await other.mirrors.sync_all()
    ledger.add(ASSIGN, SHOWN)
    await other.mirrors.sync_all()

    await one.engine.catch_up(one.engine.streams[f"work/{REPO}"])
    await one.mirrors.sync_all()

    assert work_of(copy) == folded(INIT, ASSIGN, SHOWN)
    assert await one.recorded() == ids(INIT, ASSIGN, SHOWN)


async def test_what_is_copied_of_a_long_log_is_reported(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(copies, "PROGRESS_EVENTS", 2)
    monkeypatch.setattr(copies, "BATCH_EVENTS", 1)
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
    most = copies.ReplicaLimits(12, 1 << 30)
    monkeypatch.setattr(copies, "replica_limits", lambda _: most)
    monkeypatch.setattr(copies, "BATCH_EVENTS", 1)
    house = House(MemoryLog())
    copy = await followed(house, ledger.add(*WHOLE))
    for number in range(9):
        ledger.write(*renamed(number))
        await house.mirrors.sync_all()
        await house.mirrors.sync_all()

    assert len(await house.recorded()) == 12
    assert (await house.now(ledger))["trouble"] == most.sentence
    assert copy.blind_reason == most.sentence
    assert [each.message for each in caplog.records].count("pact.full") == 1
    ledger.write(*WHOLE[::-1])
    house = await house.again()
    await house.mirrors.sync_all()
    assert (await house.now(ledger))["trouble"] == ""
    ledger.add(*renamed(99))
    await house.mirrors.sync_all()
    assert (await house.now(ledger))["trouble"] == most.sentence
    assert len(await house.recorded()) == 12


async def test_orders_that_change_without_end_do_not_fill_the_servers_log(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(MemoryLog())
    copy = await followed(house, ledger.add(*WHOLE))
    most = copies.ReplicaLimits(99, copy._order.size_bytes + 1000)
    monkeypatch.setattr(copies, "replica_limits", lambda _: most)
    for number in range(20):
        ledger.write(*WHOLE[:: (-1) ** number])
        await house.mirrors.sync_all()

    assert copy.full_reason
    assert copy._order.size_bytes < most.bytes + 1000
