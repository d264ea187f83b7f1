"""A disk that does not answer holds up its own repository, and no other."""

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from accord.pact.mirror import replication as copies
from accord.pact.mirror.background_call import BackgroundCall
from accord.pact.mirror.ledger_file import NO_ANSWER_NOTICE, LedgerFile
from accord.stores.memory import MemoryLog
from tests.pact.mirror.scene import ASSIGN, INIT, REPO, SHOWN, House, Ledger, ids

LONG = 60.0


async def test_an_answer_that_comes_late_is_told_to_whoever_asks_next() -> None:
    aside, answer, asked = BackgroundCall[bool](), Event(), list[int]()

    def question() -> bool:
        asked.append(1)
        return answer.wait(LONG)

    assert await aside.call(question, 0) is None
    assert await aside.call(question, LONG) is None
    answer.set()
    found = None
    while found is None:
        found = await aside.call(question, LONG)

    assert (found, asked) == (True, [1])
    assert await aside.call(lambda: False, LONG) is False


async def test_what_goes_wrong_is_raised_where_it_was_asked() -> None:
    def question() -> bool:
        raise ValueError("no")

    aside = BackgroundCall[bool]()
    with pytest.raises(ValueError, match="no"):
        await aside.call(question, LONG)
    assert await aside.call(lambda: True, LONG) is True


def hanging(stuck: Ledger, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Whoever looks at this ledger waits, as for a disk that is gone; the call brings it back."""
    disk, whole = Event(), LedgerFile.has_changed

    def changed(place: LedgerFile) -> bool:
        if place._ledger.path == stuck.path:
            disk.wait(LONG)
        return whole(place)

    monkeypatch.setattr(LedgerFile, "has_changed", changed)

    def answers() -> None:
        disk.set()
        monkeypatch.setattr(copies, "DISK_TIMEOUT_S", LONG)

    monkeypatch.setattr(copies, "DISK_TIMEOUT_S", 0.01)
    return answers


async def test_a_disk_that_hangs_holds_up_no_other_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stuck, other = Ledger(tmp_path / "a").add(INIT, ASSIGN), Ledger(tmp_path / "b").add(INIT)
    answers = hanging(stuck, monkeypatch)
    house = House(MemoryLog())
    await house.place(stuck, "stuck")
    await house.place(other, REPO)

    with caplog.at_level(logging.WARNING, "accord.mirror"):
        while not await house.recorded(REPO):
            await house.mirrors.sync_all()
        other.add(ASSIGN, SHOWN)
        while len(await house.recorded(REPO)) < 3:
            await house.mirrors.sync_all()
    found = await house.now(stuck, "stuck")

    assert (found["events"], found["trouble"]) == (0, NO_ANSWER_NOTICE)
    assert [each.stream for each in caplog.records if each.message == "pact.unseen"].count(  # type: ignore[attr-defined]
        "work/stuck"
    ) == 1
    answers()
    while not await house.recorded("stuck"):
        await house.mirrors.sync_all()
    assert await house.recorded("stuck") == ids(INIT, ASSIGN)
    assert (await house.now(stuck, "stuck"))["trouble"] == ""


async def test_what_lies_on_a_disk_that_hangs_has_not_vanished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Ledger(tmp_path / "a").add(INIT, ASSIGN), Ledger(tmp_path / "b").add(INIT, SHOWN)
    house = House(MemoryLog())
    await house.place(one)
    await house.place(two)
    await house.mirrors.sync_all()
    assert (await house.now(one))["events"] == 3

    answers = hanging(two, monkeypatch)
    house = await house.again()
    for _ in range(3):
        found = await house.now(two)
        assert (found["events"], found["trouble"]) == (3, NO_ANSWER_NOTICE)
    answers()
    while (found := await house.now(two))["trouble"]:
        pass
    two.write(INIT)
    await house.mirrors.sync_all()
    assert (await house.now(two))["events"] == 2
