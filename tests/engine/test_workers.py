"""Workers see every row at least once, whatever happens; heads are signed and can be checked."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from accord.core.kernel.chain import genesis, link
from accord.engine import workers
from accord.engine.heads import HeadSigner, Key
from accord.engine.ports import EventLog, Row
from accord.stores.memory import MemoryLog
from accord.stores.sqlite import SqliteLog
from tests.engine.conftest import Make
from tests.helpers.engine import Tricky, Watch, turns
from tests.helpers.room import ALICE, CLAUDE, STREAM, T0, prompts
from tests.spec import proves


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again without a pause."""
    monkeypatch.setattr(workers, "PATIENCE", 0.0)


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
    task = asyncio.create_task(workers.run(log, worker))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def rows(*ids: str, after: Row | None = None) -> list[Row]:
    """Rows of one stream."""
    version, last, made = 0, genesis("s"), list[Row]()
    if after is not None:
        version, last = after.version, after.hash
    for id in ids:
        version, last = version + 1, link(last, id.encode())
        made.append(Row("s", version, id, id.encode(), last))
    return made


async def test_a_worker_does_everything_and_remembers_how_far_it_is() -> None:
    log, scribe = MemoryLog(), Scribe()
    first = rows("a", "b")
    await log.append("s", 0, first)

    async with working(log, scribe):
        await turns()
        await log.append("s", 2, rows("c", after=first[-1]))
        await turns()

    assert scribe.done == ["a", "b", "c"]
    assert await log.cursor("scribe") == 3


async def test_a_worker_that_was_killed_in_the_act_sees_it_again() -> None:
    log, scribe = MemoryLog(), Scribe()
    await log.append("s", 0, rows("a", "b"))
    scribe.may_act.clear()
    async with working(log, scribe):
        await turns()
    assert scribe.done == []
    assert await log.cursor("scribe") == 0

    successor = Scribe()
    async with working(log, successor):
        await turns()

    assert successor.done == ["a", "b"]
    assert await log.cursor("scribe") == 2


async def test_what_comes_during_an_act_is_done_in_the_next() -> None:
    log, scribe = MemoryLog(), Scribe()
    first = rows("a")
    await log.append("s", 0, first)
    scribe.may_act.clear()

    async with working(log, scribe):
        await turns()
        more = rows("b", "c", "d", after=first[-1])
        for n, row in enumerate(more):
            await log.append("s", 1 + n, [row])
            await turns()
        assert await log.cursor("scribe") == 0
        scribe.may_act.set()
        await turns()

    assert scribe.done == ["a", "b", "c", "d"]
    assert scribe.acts == 2, "many rows make one act"
    assert await log.cursor("scribe") == 4


async def test_a_worker_that_breaks_begins_again_where_it_was() -> None:
    log, scribe = MemoryLog(), Scribe()
    await log.append("s", 0, rows("a"))
    scribe.breaks = True

    async with working(log, scribe):
        await turns()
        assert await log.cursor("scribe") == 0
        scribe.breaks = False
        await turns(100)

    assert scribe.done == ["a"]
    assert await log.cursor("scribe") == 1


@pytest.mark.parametrize("trouble", ["cursor", "tail", "advance"])
async def test_a_worker_outlives_trouble_with_the_store(trouble: str) -> None:
    log, scribe = Tricky(), Scribe()
    await log.append("s", 0, rows("a"))
    log.failing.add(trouble)

    async with working(log, scribe):
        await turns()
        log.failing.clear()
        await turns(100)

    assert scribe.done == ["a"]
    assert await log.cursor("scribe") == 1


async def test_a_cursor_is_as_durable_as_the_log(tmp_path: Path) -> None:
    path = str(tmp_path / "accord.db")
    log, scribe = await SqliteLog.open(path), Scribe()
    await log.append("s", 0, rows("a", "b"))
    async with working(log, scribe):
        while await log.cursor("scribe") < 2:
            await turns()
    await log.close()

    log, successor = await SqliteLog.open(path), Scribe()
    async with working(log, successor):
        await log.append("s", 2, rows("c", after=rows("a", "b")[-1]))
        while not successor.done:
            await turns()
    await log.close()

    assert successor.done == ["c"]


# Heads


class Pen:
    """Signs with a key of its own."""

    def __init__(self) -> None:
        self.key = Ed25519PrivateKey.generate()

    def signer(self) -> tuple[str, Key]:
        return "pen", self.key


@proves("PVP-1.2-1")
async def test_heads_are_signed_and_can_be_checked(make: Make) -> None:
    stage = make()
    pen = Pen()
    await stage.open(CLAUDE)
    signer = HeadSigner(stage.log, pen, Watch())
    signer.pause = 0.0

    async with working(stage.log, signer):
        await turns()
        await stage.say(ALICE, prompts())
        await turns()

    newest = (await stage.log.read(STREAM))[-1]
    heads = await stage.log.heads(STREAM)
    assert (heads[-1].version, heads[-1].hash) == (newest.version, newest.hash)
    for head in heads:
        assert (head.at, head.key) == (T0, "pen")
        pen.key.public_key().verify(head.signature, head.claim())


async def test_a_head_that_could_not_be_kept_is_signed_later(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    await stage.open(room="other")
    signer = HeadSigner(log, Pen(), Watch())
    signer.pause = 0.0
    log.failing.add("sign")

    async with working(log, signer):
        await turns()
        assert await log.heads(STREAM) == []
        log.failing.clear()
        await turns(100)

    assert len(await log.heads(STREAM)) == 1
    assert len(await log.heads("room/other")) == 1
