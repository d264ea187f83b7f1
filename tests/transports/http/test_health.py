"""Whether a server can work is looked into once, however often somebody asks."""

import asyncio
from pathlib import Path

import pytest

from accord.stores.memory import MemoryLog
from accord.transports.http import health
from accord.transports.http.health import Readiness, WorkerCheck, check_passes, store_check
from tests.contract.rows import rows
from tests.helpers.attacks.approval_scene import get
from tests.helpers.engine.harness import FaultyLog
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.helpers.stores.write_lock import hold_write_lock


class Time:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


async def test_concurrent_readiness_requests_share_one_check() -> None:
    log, time = FaultyLog(), Time()
    ready = Readiness({"store": store_check(log)}, lambda: False, time)

    for _ in range(50):
        assert await ready.failing_checks() == ()
    await asyncio.gather(*(ready.failing_checks() for _ in range(50)))
    assert log.calls["advance"] == 1
    time.at += health.CHECK_CACHE_S
    await asyncio.gather(*(ready.failing_checks() for _ in range(50)))
    assert log.calls["advance"] == 2


@pytest.mark.parametrize("method", ["advance", "position"])
async def test_a_store_that_fails_is_named(method: str) -> None:
    log, time = FaultyLog(), Time()
    ready = Readiness({"store": store_check(log)}, lambda: False, time)
    assert await ready.failing_checks() == ()
    log.failing.add(method)
    time.at += health.CHECK_CACHE_S
    assert await ready.failing_checks() == ("store",)
    log.failing.clear()
    time.at += health.CHECK_CACHE_S
    assert await ready.failing_checks() == ()


async def test_a_store_that_hangs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CHECK_TIMEOUT_S", 0.01)
    log = FaultyLog()
    log.hold("advance")
    assert not await check_passes(store_check(log))
    log.release()


async def test_who_stops_is_not_ready_and_asks_nobody() -> None:
    log = FaultyLog()
    ready = Readiness({"store": store_check(log)}, lambda: True)
    assert await ready.failing_checks() == ("stopping",)
    assert not log.calls


async def test_a_worker_may_be_behind_but_must_move() -> None:
    log, time = MemoryLog(), Time()
    following = WorkerCheck(log, ["heads"], lambda: True, time)
    assert await following()
    await log.append("room/r", 0, rows("room/r", 3))
    assert await following()
    time.at += health.WORKER_STUCK_S - 1
    assert await following()
    await log.advance("heads", 1)
    time.at += 2
    assert await following()
    time.at += health.WORKER_STUCK_S
    assert not await following()
    await log.advance("heads", 3)
    assert await following()


async def test_a_worker_that_ended_follows_nothing() -> None:
    assert not await WorkerCheck(MemoryLog(), ["heads"], lambda: False)()


async def test_a_real_server_says_that_it_cannot_write(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        assert await get(f"{server.url}/readyz", Host="balancer") == (200, {"status": "ready"})
        assert await locked_out(server) == (503, ["store"])
        status, _ = await get(f"{server.url}/healthz")
        assert status == 200


async def locked_out(server: ServerProcess) -> tuple[int, list[str]]:
    """What it says while somebody else holds the file."""
    with hold_write_lock(server.home / "accord.db"):
        while True:
            status, said = await get(f"{server.url}/readyz")
            if status != 200:
                return status, said["failed"]
