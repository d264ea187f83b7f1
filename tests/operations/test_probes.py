"""Whether a server can work is looked into once, however often somebody asks."""

import asyncio
from pathlib import Path

import pytest

from accord.stores.memory import MemoryLog
from accord.transports import probes
from accord.transports.probes import Following, Readiness, passes, store_works
from tests.contract.rows import rows
from tests.helpers.busy import written_by_another
from tests.helpers.engine import Tricky
from tests.helpers.server import ServerProcess, a_server
from tests.security.scene import get


class Time:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


async def test_many_questions_are_one_look() -> None:
    log, time = Tricky(), Time()
    ready = Readiness({"store": store_works(log)}, lambda: False, time)

    for _ in range(50):
        assert await ready.failed() == ()
    await asyncio.gather(*(ready.failed() for _ in range(50)))
    assert log.calls["advance"] == 1
    time.at += probes.FRESH_S
    await asyncio.gather(*(ready.failed() for _ in range(50)))
    assert log.calls["advance"] == 2


@pytest.mark.parametrize("method", ["advance", "position"])
async def test_a_store_that_fails_is_named(method: str) -> None:
    log, time = Tricky(), Time()
    ready = Readiness({"store": store_works(log)}, lambda: False, time)
    assert await ready.failed() == ()
    log.failing.add(method)
    time.at += probes.FRESH_S
    assert await ready.failed() == ("store",)
    log.failing.clear()
    time.at += probes.FRESH_S
    assert await ready.failed() == ()


async def test_a_store_that_hangs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "PATIENCE_S", 0.01)
    log = Tricky()
    log.hold("advance")
    assert not await passes(store_works(log))
    log.release()


async def test_who_stops_is_not_ready_and_asks_nobody() -> None:
    log = Tricky()
    ready = Readiness({"store": store_works(log)}, lambda: True)
    assert await ready.failed() == ("stopping",)
    assert not log.calls


async def test_a_worker_may_be_behind_but_must_move() -> None:
    log, time = MemoryLog(), Time()
    following = Following(log, ["heads"], lambda: True, time)
    assert await following()
    await log.append("room/r", 0, rows("room/r", 3))
    assert await following()
    time.at += probes.STUCK_S - 1
    assert await following()
    await log.advance("heads", 1)
    time.at += 2
    assert await following()
    time.at += probes.STUCK_S
    assert not await following()
    await log.advance("heads", 3)
    assert await following()


async def test_a_worker_that_ended_follows_nothing() -> None:
    assert not await Following(MemoryLog(), ["heads"], lambda: False)()


async def test_a_real_server_says_that_it_cannot_write(tmp_path: Path) -> None:
    with a_server(tmp_path) as server:
        assert await get(f"{server.url}/readyz", Host="balancer") == (200, {"status": "ready"})
        assert await locked_out(server) == (503, ["store"])
        status, _ = await get(f"{server.url}/healthz")
        assert status == 200


async def locked_out(server: ServerProcess) -> tuple[int, list[str]]:
    """What it says while somebody else holds the file."""
    with written_by_another(server.home / "accord.db"):
        while True:
            status, said = await get(f"{server.url}/readyz")
            if status != 200:
                return status, said["failed"]
