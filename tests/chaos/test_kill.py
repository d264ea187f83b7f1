"""`kill -9` under load: what was acknowledged is there, once and in order, and the chain holds.

`ACCORD_ROUNDS` says how often, `ACCORD_SEED` at which moments.
"""

import asyncio
import os
import random
import shutil
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from accord.client import Accepted, Client, Session
from accord.client.backoff import Retry
from accord.core.kernel.log import Body
from accord.core.room.prompts import PromptSubmit
from accord.core.room.streams import ResponseChunk, ResponseStart
from accord.engine.ports import Row
from accord.stores.sqlite import SqliteLog
from accord.verify import check_all
from tests.helpers.ear import Ear
from tests.helpers.engine import check_rows
from tests.helpers.server import ServerProcess, a_server
from tests.spec import proves

ROUNDS = int(os.environ.get("ACCORD_ROUNDS", "20"))
SEED = int(os.environ.get("ACCORD_SEED", "1"))
AT_ONCE = 16
MOST_PER_ROUND = 300
SOON = Retry(floor=0.01, cap=0.05)
PEOPLE = {
    "alice": ("human", ("admin", "driver")),
    "bob": ("human", ("driver",)),
    "claude": ("agent", ("driver",)),
}
ROWS = """
    SELECT s.name, r.version, r.id, r.body, r.hash
    FROM records r JOIN streams s ON s.key = r.stream ORDER BY r.pos
"""


class Tally:
    """Counts what was acknowledged by anybody."""

    def __init__(self) -> None:
        self.count = 0
        self._news = asyncio.Event()

    def add(self) -> None:
        """One more."""
        self.count += 1
        self._news.set()

    async def reach(self, count: int) -> None:
        """Until there are that many."""
        while self.count < count:
            self._news.clear()
            await self._news.wait()


class Speaker:
    """Says one thing after another, several at once, and notes what was acknowledged."""

    def __init__(self, session: Session, words: Callable[[int], Body], ref: str | None) -> None:
        self.session = session
        self.words = words
        self.ref = ref
        self.said = 0
        self.acknowledged: list[Accepted] = []

    async def speak(self, tally: Tally, enough: asyncio.Event) -> None:
        """Until it is enough; then until everything is acknowledged."""
        waiting: deque[asyncio.Future[Accepted]] = deque()
        while waiting or not enough.is_set():
            if len(waiting) < AT_ONCE and not enough.is_set():
                waiting.append(self.session.say(self.words(self.said), self.ref))
                self.said += 1
            else:
                self.acknowledged.append(await waiting.popleft())
                tally.add()


class Said(NamedTuple):
    """The part of a stored envelope that is looked at."""

    id: str
    seq: int
    sender: str
    text: str


class _Payload(msgspec.Struct):
    content: str = ""
    text: str = ""


class _Envelope(msgspec.Struct):
    id: str
    sender: str
    payload: _Payload
    seq: int


class _Stored(msgspec.Struct):
    said: _Envelope | None = None


_read = msgspec.json.Decoder(_Stored).decode


def envelopes(rows: list[Row]) -> list[Said]:
    """What was said, as it is kept."""
    found = (_read(row.body).said for row in rows)
    return [
        Said(said.id, said.seq, said.sender, said.payload.content or said.payload.text)
        for said in found
        if said is not None
    ]


def stored(home: Path, scratch: Path) -> dict[str, list[Row]]:
    """The rows of every stream in a copy of the files as the dead process left them."""
    scratch.mkdir(exist_ok=True)
    for file in home.glob("accord.db*"):
        shutil.copy(file, scratch / file.name)
    streams: dict[str, list[Row]] = {}
    with closing(sqlite3.connect(scratch / "accord.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for stream, *rest in db.execute(ROWS):
            streams.setdefault(stream, []).append(Row(stream, *rest))
    shutil.rmtree(scratch)
    return streams


def check(streams: dict[str, list[Row]], speakers: list[Speaker]) -> None:
    """Versions, numbers and hashes hold; what was acknowledged is there once, in its place."""
    for stream, rows in streams.items():
        if stream.startswith("room/"):
            check_rows(stream, rows)
    for speaker in speakers:
        kept = envelopes(streams[f"room/{speaker.session.id}"])
        places = {each.id: each.seq for each in kept}
        assert len(places) == len(kept), "something is there twice"
        for accepted in speaker.acknowledged:
            assert places.get(accepted.id) == accepted.seq, "what was acknowledged is lost"
        mine = [each.text for each in kept if each.text.startswith(f"{speaker.session.me}:")]
        assert mine == [f"{speaker.session.me}:{n}" for n in range(len(mine))], "out of order"


@asynccontextmanager
async def people(server: ServerProcess) -> AsyncIterator[dict[str, Client]]:
    """Everybody, with a token each; they reconnect by themselves."""
    async with AsyncExitStack() as stack:
        made = {}
        for id, (kind, roles) in PEOPLE.items():
            token = server.issue(id, kind, roles)
            client = Client(server.url, token=token, retry=SOON)
            made[id] = await stack.enter_async_context(client)
        yield made


def prompt(who: str) -> Callable[[int], Body]:
    return lambda n: PromptSubmit(f"{who}:{n}", "claude", (who,), ())


def chunk(n: int) -> Body:
    return ResponseChunk(f"claude:{n}")


@proves(
    "PVP-1.2-1",
    "PVP-3.2-2",
    "PVP-19.1-3",
    "PVP-19.5-1",
    "PVP-19.5-2",
    "OPEN-31",
    "OPEN-35",
    "OPEN-36",
    "OPEN-37",
    "UNI-7",
    "UNI-9",
    "UNI-11",
)
@pytest.mark.timeout(60 + 20 * ROUNDS)
async def test_what_was_acknowledged_outlives_every_kill(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    with a_server(tmp_path / "server") as server:
        async with people(server) as who, AsyncExitStack() as stack:
            one, two = await who["alice"].create(), await who["bob"].create()
            bob, claude = await who["bob"].join(one.id), await who["claude"].join(one.id)
            await who["claude"].join(two.id, listen=False)
            asked = (await one.send(prompt("alice")(0))).id
            start = (await claude.send(ResponseStart("claude", asked))).id
            speakers = [
                Speaker(one, lambda n: prompt("alice")(n + 1), None),
                Speaker(bob, prompt("bob"), None),
                Speaker(claude, chunk, start),
                Speaker(two, prompt("bob"), None),
            ]
            ears = [await stack.enter_async_context(Ear(each)) for each in (one, bob, claude, two)]
            tally, enough = Tally(), asyncio.Event()
            speaking = [asyncio.create_task(each.speak(tally, enough)) for each in speakers]

            for number in range(ROUNDS):
                await tally.reach(tally.count + rng.randrange(MOST_PER_ROUND))
                await asyncio.to_thread(server.kill)
                streams = stored(server.home, tmp_path / f"round-{number}")
                check(streams, speakers)
                await asyncio.to_thread(server.start)
                await same_over_http(who, streams)

            enough.set()
            await asyncio.gather(*speaking)
            for speaker, ear in zip(speakers, ears, strict=True):
                await ear.until_seq(speaker.acknowledged[-1].seq)
                ear.check_once_in_order()
            await asyncio.to_thread(server.stop)
            streams = stored(server.home, tmp_path / "end")
            check(streams, speakers)
            for speaker, ear in zip(speakers, ears, strict=True):
                kept = [said.id for said in envelopes(streams[f"room/{speaker.session.id}"])]
                heard = [each.id for each in ear.kept]
                assert heard == kept[kept.index(heard[0]) :][: len(heard)], "not everything, once"
                assert {each.id for each in speaker.acknowledged} <= set(heard)
    await chain_holds(server.home)


async def same_over_http(who: dict[str, Client], streams: dict[str, list[Row]]) -> None:
    """The transcript begins with what the dead process had kept."""
    for stream, rows in streams.items():
        kind, _, session = stream.partition("/")
        if kind == "room":
            kept = envelopes(rows)
            after = max(0, kept[-1].seq - MOST_PER_ROUND)
            read = [each.id async for each in who["bob"].history(session, after)]
            assert read[: len(kept) - after] == [each.id for each in kept[after:]]


async def chain_holds(home: Path) -> None:
    """`accord verify` finds nothing, and signatures cover what they should."""
    log = await SqliteLog.open(str(home / "accord.db"))
    try:
        findings = [each async for each in check_all(log, home / "keys")]
    finally:
        await log.close()
    assert findings
    for finding in findings:
        assert finding.holds, finding.problem
        assert finding.signed > 0
