"""Pacts in directories, and an engine on a log that a test may break or start anew."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.timestamps import to_iso
from accord.core.provenance.commit_links import LedgerPlace, SessionBind
from accord.core.room.state import Room
from accord.core.work.mirror import Mirrored
from accord.engine.engine import Engine
from accord.engine.ports import EventLog
from accord.pact.mirror.recorder import PACT_ACTOR
from accord.pact.mirror.service import MirrorService
from accord.server.engine_factory import make_engine
from accord.stores.memory import MemoryLog
from tests.core.work.story import ANN, BOB, assigned, line, log
from tests.helpers.engine.harness import ManualClock
from tests.helpers.room.scenario import ALICE, session_create, session_join

REPO, SESSION = "shop-1", "s1"
INIT = line(
    *("init", ANN),
    project="shop",
    protocol_version=1,
    seats=[{"id": seat, "roles": ["worker"], "entry": f"{seat}.md"} for seat in (ANN, BOB)],
    base_branch="main",
)
ASSIGN = assigned("T1", feature="cart", branch="cart")
SHOWN = line("checkpoint", BOB, "T1", "cart", evidence="12 pass", at=2)
ACCEPTED = line("accept", ANN, "T1", "cart", at=3)
RETURNED = line("changes_requested", ANN, "T1", "cart", reason="more", at=3)
MERGED = line("merge", ANN, feature="cart", at=4)
# What a room puts on record.
ASKED, ENDED, TOLD = "review.asked", "review.ended", "tasks.mirrored"


class Ledger:
    """A directory with a log in it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.path = directory / "log.jsonl"

    def add(self, *events: dict[str, Any]) -> "Ledger":
        with self.path.open("ab") as file:
            file.write(log(*events))
        return self

    def write(self, *events: dict[str, Any]) -> "Ledger":
        """Another file in its place, as git does it."""
        fresh = self.path.with_name("fresh")
        fresh.write_bytes(log(*events))
        fresh.replace(self.path)
        return self


class House:
    """A server's engine and its mirrors, without the doors."""

    def __init__(self, events: EventLog) -> None:
        self.events = events
        self.engine: Engine = make_engine(events, clock=ManualClock(), check=True)
        self.mirrors = MirrorService(self.engine, pause=0)

    async def again(self) -> "House":
        """Another process on the same log; the first one is dead."""
        house = House(self.events)
        await house.engine.start()
        assert await house.mirrors._resume_all()
        return house

    async def place(self, ledger: Ledger, repo: str = REPO) -> None:
        directory = str(ledger.directory)
        self.mirrors.check_directory(repo, directory)
        await self.say(f"repo/{repo}", LedgerPlace(directory), PACT_ACTOR)

    async def open(self, *members: Actor, session: str = SESSION, creator: Actor) -> None:
        await self.say(f"room/{session}", session_create(), creator)
        for each in members:
            await self.join(each, session)

    async def join(self, who: Actor, session: str = SESSION) -> None:
        await self.say(f"room/{session}", session_join(who), who)

    async def bind(self, session: str = SESSION, repo: str = REPO) -> None:
        await self.say(f"repo/{repo}", SessionBind(session), PACT_ACTOR)

    async def say(self, stream: str, body: Body, who: Actor) -> None:
        sender = SYSTEM if who is PACT_ACTOR else who.principal
        name = stream.partition("/")[2]
        message = Message(self.engine.new_id(), to_iso(self.engine.clock.now()), name, sender, body)
        await self.engine.handle(message, who, stream=stream)

    async def now(self, ledger: Ledger, repo: str = REPO) -> Mapping[str, Any]:
        return await self.mirrors.sync_now(repo, str(ledger.directory))

    async def room(self, session: str = SESSION) -> Room:
        await self.engine.wait_until_idle()
        found: Room = await self.engine.state(f"room/{session}")
        return found

    async def said(self, session: str = SESSION) -> list[str]:
        """What the server said of the pact, oldest first."""
        rows = await self.events.read(f"room/{session}")
        kinds = [json.loads(row.body)["kind"] for row in rows]
        return [kind for kind in kinds if kind.startswith(("tasks.", "review."))]

    async def recorded(self, repo: str = REPO) -> list[str]:
        """The ids of the events that are mirrored, in the order they came."""
        rows = await self.events.read(f"work/{repo}")
        events = [
            self.engine.codec.decode_record(r.stream, r.version, r.body).record.event for r in rows
        ]
        return [json.loads(e.line)["event_id"] for e in events if isinstance(e, Mirrored)]


def ids(*events: dict[str, Any]) -> list[str]:
    return [each["event_id"] for each in events]


async def at_work(ledger: Ledger, *members: Actor) -> House:
    """A session that is bound to the repository."""
    house = House(MemoryLog())
    await house.open(*members, creator=ALICE)
    await house.place(ledger)
    await house.bind()
    await house.mirrors.sync_all()
    return house
