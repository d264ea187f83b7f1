"""Workers see every row at least once; signed heads verify."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from accord.core.kernel.integrity.hash_chain import genesis_hash, link_hash
from accord.engine import workers
from accord.engine.ports import EventLog, Row
from accord.engine.workers import HeadSigner, Signer
from accord.stores.memory import MemoryLog
from accord.stores.sqlite import SqliteLog
from tests.engine.conftest import Make
from tests.helpers.engine.harness import FaultyLog, ManualClock, yield_to_loop
from tests.helpers.room.scenario import ALICE, CLAUDE, STREAM, T0, prompt_submit
from tests.spec import proves


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again without a pause."""
    monkeypatch.setattr(workers, "RETRY_DELAY_S", 0.0)


class Scribe:
    """Notes and acts; it can break in the middle of an act, and wait for the test."""

    name = "scribe"
    pause = 0.0

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.done: list[str] = []
        self.acts = 0
        self.breaks = False
        self.may_act = asyncio.Event()
        self.may_act.set()

    def note(self, rows: Iterable[Row]) -> None:
        self.noted += [row.id for row in rows]

    async def act(self) -> None:
        self.acts += 1
        todo = list(self.noted)
        await self.may_act.wait()
        if self.breaks:
            raise ZeroDivisionError
        self.done += dict.fromkeys(id for id in todo if id not in self.done)


@asynccontextmanager
async def working(log: EventLog, worker: workers.Worker) -> AsyncIterator[None]:
    """While inside, it works; then it is killed."""
    task = asyncio.create_task(workers.run_worker(log, worker))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def rows(*ids: str, after: Row | None = None) -> list[Row]:
    """Rows of one stream."""
    version, last, made = 0, genesis_hash("s"), list[Row]()
    if after is not None:
        version, last = after.version, after.hash
    for id in ids:
        version, last = version + 1, link_hash(last, id.encode())
        made.append(Row("s", version, id, id.encode(), last))
    return made


async def test_worker_handles_every_row_and_stores_its_cursor() -> None:
    log, scribe = MemoryLog(), Scribe()
    first = rows("a", "b")
    await log.append("s", 0, first)

    async with working(log, scribe):
        await yield_to_loop()
        await log.append("s", 2, rows("c", after=first[-1]))
        await yield_to_loop()

    assert scribe.done == ["a", "b", "c"]
    assert await log.cursor("scribe") == 3


async def test_worker_killed_while_acting_sees_the_rows_again() -> None:
    log, scribe = MemoryLog(), Scribe()
    await log.append("s", 0, rows("a", "b"))
    scribe.may_act.clear()
    async with working(log, scribe):
        await yield_to_loop()
    assert scribe.done == []
    assert await log.cursor("scribe") == 0

    successor = Scribe()
    async with working(log, successor):
        await yield_to_loop()

    assert successor.done == ["a", "b"]
    assert await log.cursor("scribe") == 2


async def test_rows_during_an_act_are_handled_by_the_next() -> None:
    log, scribe = MemoryLog(), Scribe()
    first = rows("a")
    await log.append("s", 0, first)
    scribe.may_act.clear()

    async with working(log, scribe):
        await yield_to_loop()
        more = rows("b", "c", "d", after=first[-1])
        for n, row in enumerate(more):
            await log.append("s", 1 + n, [row])
            await yield_to_loop()
        assert await log.cursor("scribe") == 0
        scribe.may_act.set()
        await yield_to_loop()

    assert scribe.done == ["a", "b", "c", "d"]
    assert scribe.acts == 2, "many rows make one act"
    assert await log.cursor("scribe") == 4


async def test_failing_worker_restarts_at_its_cursor() -> None:
    log, scribe = MemoryLog(), Scribe()
    await log.append("s", 0, rows("a"))
    scribe.breaks = True

    async with working(log, scribe):
        await yield_to_loop()
        assert await log.cursor("scribe") == 0
        scribe.breaks = False
        await yield_to_loop(100)

    assert scribe.done == ["a"]
    assert await log.cursor("scribe") == 1


@pytest.mark.parametrize("trouble", ["cursor", "tail", "advance"])
async def test_worker_survives_store_failures(trouble: str) -> None:
    log, scribe = FaultyLog(), Scribe()
    await log.append("s", 0, rows("a"))
    log.failing.add(trouble)

    async with working(log, scribe):
        await yield_to_loop()
        log.failing.clear()
        await yield_to_loop(100)

    assert scribe.done == ["a"]
    assert await log.cursor("scribe") == 1


async def test_cursor_is_durable(tmp_path: Path) -> None:
    path = str(tmp_path / "accord.db")
    log, scribe = await SqliteLog.open(path), Scribe()
    await log.append("s", 0, rows("a", "b"))
    async with working(log, scribe):
        while await log.cursor("scribe") < 2:
            await yield_to_loop()
    await log.close()

    log, successor = await SqliteLog.open(path), Scribe()
    async with working(log, successor):
        await log.append("s", 2, rows("c", after=rows("a", "b")[-1]))
        while not successor.done:
            await yield_to_loop()
    await log.close()

    assert successor.done == ["c"]


# Heads


class Pen:
    """Signs with a key of its own."""

    def __init__(self) -> None:
        self.key = Ed25519PrivateKey.generate()

    def signer(self) -> tuple[str, Signer]:
        return "pen", self.key


@proves("PVP-1.2-1")
async def test_signed_heads_verify(make: Make) -> None:
    stage = make()
    pen = Pen()
    await stage.open_room(CLAUDE)
    signer = HeadSigner(stage.log, pen, ManualClock())
    signer.pause = 0.0

    async with working(stage.log, signer):
        await yield_to_loop()
        await stage.send(ALICE, prompt_submit())
        await yield_to_loop()

    newest = (await stage.log.read(STREAM))[-1]
    heads = await stage.log.heads(STREAM)
    assert (heads[-1].version, heads[-1].hash) == (newest.version, newest.hash)
    for head in heads:
        assert (head.at, head.key) == (T0, "pen")
        pen.key.public_key().verify(head.signature, head.signed_bytes())


async def test_head_that_was_not_stored_is_signed_later(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    await stage.open_room(room="other")
    signer = HeadSigner(log, Pen(), ManualClock())
    signer.pause = 0.0
    log.failing.add("sign")

    async with working(log, signer):
        await yield_to_loop()
        assert await log.heads(STREAM) == []
        log.failing.clear()
        await yield_to_loop(100)

    assert len(await log.heads(STREAM)) == 1
    assert len(await log.heads("room/other")) == 1
