"""A disk that fails at any moment: nobody is told what is not so, and later all goes on."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Why
from accord.engine.ports import StoreError
from accord.stores.sqlite import SqliteLog
from tests.helpers.engine import Reply, Stage, check_rows
from tests.helpers.room import ALICE, BOB, CLAUDE, STREAM, joins, prompts, proposes
from tests.stores.failing import FailingDisk, Fault

# Far beyond what the story asks of a disk; the sweep ends where nothing failed any more.
MOST = 400
FOR_EVER = 1 << 30


@pytest.fixture
def disk() -> Iterator[FailingDisk]:
    """A disk that can be made to fail."""
    failing = FailingDisk()
    yield failing
    failing.unregister()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits in the write-ahead log is copied all the time."""
    monkeypatch.setattr("accord.stores.sqlite.checkpoint.OFTEN", 3)
    monkeypatch.setattr("accord.stores.sqlite.checkpoint.LARGE", 8)


async def story(stage: Stage) -> list[tuple[str, Reply]]:
    """Several say something; each is answered."""
    asked = [
        ("a", stage.ask(ALICE, prompts(), "a")),
        ("b", stage.ask(CLAUDE, proposes(), "b")),
        ("c", stage.ask(BOB, joins(BOB, Role.DRIVER), "c")),
    ]
    await stage.settle()
    asked.append(("d", stage.ask(ALICE, prompts(), "d")))
    await stage.settle()
    return asked


def told_truly(asked: list[tuple[str, Reply]], kept: set[str]) -> int:
    """Each is stored and was told so, or is not and was told so; how many were refused."""
    refused = 0
    for id, reply in asked:
        assert reply.count == 1
        if reply.refused is None:
            assert id in kept, "acknowledged and not stored"
        else:
            refused += 1
            assert id not in kept, "refused and stored"
            assert reply.refused.why is Why.UNAVAILABLE
            assert reply.refused.detail.count(" ") > 5
    return refused


@pytest.mark.parametrize("times", [1, FOR_EVER])
@pytest.mark.parametrize("fault", [apsw.IOError, apsw.FullError])
async def test_whenever_the_disk_fails_the_sender_is_told_and_nobody_else(
    disk: FailingDisk, tmp_path: Path, fault: Fault, times: int
) -> None:
    trouble = 0
    for first in range(1, MOST):
        path = str(tmp_path / f"{first}.db")
        log = await SqliteLog.open(path)
        stage = Stage(log, check=False)
        await stage.open(CLAUDE)
        disk.fail(first, times, fault)
        asked = await story(stage)
        asked_enough = disk.count < first
        disk.heal()

        kept = set(await stage.ids())
        trouble += told_truly(asked, kept)
        assert set(stage.ears["claude"].ids) <= kept, "heard what is not stored"
        for id, reply in asked:
            if reply.refused is not None:
                body = {"b": proposes(), "c": joins(BOB, Role.DRIVER)}.get(id, prompts())
                await stage.say({"b": CLAUDE, "c": BOB}.get(id, ALICE), body, id)
        assert {"a", "b", "c", "d"} <= set(stage.ears["claude"].ids)
        await stage.close()
        await log.close()
        await whole(path)
        if asked_enough:
            break
    else:
        pytest.fail("the story never ends")
    assert trouble


async def whole(path: str) -> None:
    """What is there is as it should be."""
    log = await SqliteLog.open(path)
    check_rows(STREAM, await log.read(STREAM))
    assert await log.check() == []
    await log.close()


@pytest.mark.parametrize("fault", [apsw.IOError, apsw.FullError])
async def test_a_log_that_could_not_be_opened_can_be_later(
    disk: FailingDisk, tmp_path: Path, fault: Fault
) -> None:
    refused = 0
    for first in range(1, MOST):
        path = str(tmp_path / f"{first}.db")
        disk.fail(first, FOR_EVER, fault)
        try:
            await (await SqliteLog.open(path)).close()
        except StoreError as no:
            refused += path in str(no)
        enough = disk.count < first
        disk.heal()
        await whole(path)
        if enough:
            break
    else:
        pytest.fail("opening never ends")
    assert refused
