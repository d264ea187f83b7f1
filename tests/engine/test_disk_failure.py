"""A disk that fails at any call: no false acknowledgement, and recovery afterwards."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.engine.ports import StoreError
from accord.stores.sqlite import SqliteLog
from tests.helpers.engine.harness import EngineHarness, PendingReply, check_rows
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    STREAM,
    prompt_submit,
    session_join,
    tool_propose,
)
from tests.stores.failing_disk import FailingDisk, Fault

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
    monkeypatch.setattr("accord.stores.sqlite.writer.CHECKPOINT_INTERVAL_PAGES", 3)
    monkeypatch.setattr("accord.stores.sqlite.writer.RESTART_WAL_PAGES", 8)


async def story(stage: EngineHarness) -> list[tuple[str, PendingReply]]:
    """Several say something; each is answered."""
    asked = [
        ("a", stage.submit(ALICE, prompt_submit(), "a")),
        ("b", stage.submit(CLAUDE, tool_propose(), "b")),
        ("c", stage.submit(BOB, session_join(BOB, Role.DRIVER), "c")),
    ]
    await stage.wait_until_idle()
    asked.append(("d", stage.submit(ALICE, prompt_submit(), "d")))
    await stage.wait_until_idle()
    return asked


def told_truly(asked: list[tuple[str, PendingReply]], kept: set[str]) -> int:
    """Each is stored and was told so, or is not and was told so; how many were refused."""
    refused = 0
    for id, reply in asked:
        assert reply.count == 1
        if reply.refusal is None:
            assert id in kept, "acknowledged and not stored"
        else:
            refused += 1
            assert id not in kept, "refused and stored"
            assert reply.refusal.reason is Reason.UNAVAILABLE
            assert reply.refusal.detail.count(" ") > 5
    return refused


@pytest.mark.parametrize("times", [1, FOR_EVER])
@pytest.mark.parametrize("fault", [apsw.IOError, apsw.FullError])
async def test_disk_failure_at_any_call_refuses_the_sender_and_delivers_nothing(
    disk: FailingDisk, tmp_path: Path, fault: Fault, times: int
) -> None:
    trouble = 0
    for first in range(1, MOST):
        path = str(tmp_path / f"{first}.db")
        log = await SqliteLog.open(path)
        stage = EngineHarness(log, check=False)
        await stage.open_room(CLAUDE)
        disk.fail(first, times, fault)
        asked = await story(stage)
        asked_enough = disk.count < first
        disk.heal()

        kept = set(await stage.ids())
        trouble += told_truly(asked, kept)
        assert set(stage.peers["claude"].ids) <= kept, "heard what is not stored"
        for id, reply in asked:
            if reply.refusal is not None:
                body = {"b": tool_propose(), "c": session_join(BOB, Role.DRIVER)}.get(
                    id, prompt_submit()
                )
                await stage.send({"b": CLAUDE, "c": BOB}.get(id, ALICE), body, id)
        assert {"a", "b", "c", "d"} <= set(stage.peers["claude"].ids)
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
async def test_log_that_failed_to_open_opens_later(
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
