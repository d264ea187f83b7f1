"""A real engine on a log that waits and fails as a test wishes, with ears for everybody.

    stage = Stage()
    await stage.open(CLAUDE)
    await stage.say(ALICE, prompts(), "p")
    assert stage.ears["claude"].ids[-1] == "p"

`Tricky` is the log that waits and fails; `Stage.again` is a second process on the same log.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from itertools import count
from typing import Any

from accord.core import room as rooms
from accord.core.dialects import canonical
from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.chain import Covered, Head, genesis, link
from accord.core.kernel.ids import derived
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.times import SECOND, iso
from accord.core.room.state import House, Room
from accord.engine.cell import Asked, Outcome
from accord.engine.engine import Engine, World
from accord.engine.ports import Clock, EventLog, Row, Sealed, Snapshot, StoreError
from accord.stores.memory import MemoryLog
from tests.helpers.room import ALICE, HOUSE, ROOM, STREAM, T0, creates, joins

TURNS = 25
_stages = count(1)


async def turns(count: int = TURNS) -> None:
    """Let everything go on that waits for nothing but its turn."""
    for _ in range(count):
        await asyncio.sleep(0)


class Watch:
    """Time moves when the test says so."""

    def __init__(self, at: int = T0) -> None:
        self.at = at

    def now(self) -> int:
        return self.at

    def move(self, seconds: float) -> None:
        """Some time passes, or is taken back."""
        self.at += int(seconds * SECOND)


class Tricky:
    """Another log, but any of its methods can be made to wait or to fail, and each is counted."""

    def __init__(self, log: EventLog | None = None) -> None:
        self.log = log or MemoryLog()
        self.calls: Counter[str] = Counter()
        self.rows_read = 0
        self.failing: set[str] = set()
        self.spared: Counter[str] = Counter()  # how many calls go well before they fail
        self._held: dict[str, asyncio.Event] = {}

    def hold(self, *methods: str) -> None:
        """From now on these wait."""
        self._held |= {name: asyncio.Event() for name in methods}

    def release(self, *methods: str) -> None:
        """They go on, and wait no more; without names, all do."""
        for name in methods or tuple(self._held):
            self._held.pop(name).set()

    async def _pass(self, name: str) -> None:
        self.calls[name] += 1
        if name in self._held:
            await self._held[name].wait()
        if name in self.failing and self.spared[name]:
            self.spared[name] -= 1
        elif name in self.failing:
            raise StoreError(f"{name} fails")

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        await self._pass("append")
        await self.log.append(stream, expected, rows)

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        await self._pass("read")
        rows = await self.log.read(stream, after, limit)
        self.rows_read += len(rows)
        return rows

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        await self._pass("find")
        return await self.log.find(stream, ids)

    async def streams(self, prefix: str = "") -> dict[str, int]:
        await self._pass("streams")
        return await self.log.streams(prefix)

    async def position(self) -> int:
        await self._pass("position")
        return await self.log.position()

    async def tail(self, after: int) -> AsyncGenerator[list[tuple[int, Row]], None]:
        await self._pass("tail")
        async for batch in self.log.tail(after):
            await self._pass("tail")
            yield batch

    async def cursor(self, name: str) -> int:
        await self._pass("cursor")
        return await self.log.cursor(name)

    async def advance(self, name: str, position: int) -> None:
        await self._pass("advance")
        await self.log.advance(name, position)

    async def snapshot(self, stream: str) -> Snapshot | None:
        await self._pass("snapshot")
        return await self.log.snapshot(stream)

    async def keep(self, stream: str, snapshot: Snapshot) -> None:
        await self._pass("keep")
        await self.log.keep(stream, snapshot)

    async def heads(self, stream: str) -> list[Head]:
        return await self.log.heads(stream)

    async def signed(self, stream: str) -> int:
        return await self.log.signed(stream)

    async def covered(self) -> Covered:
        return await self.log.covered()

    async def sign(self, head: Head) -> None:
        await self._pass("sign")
        await self.log.sign(head)

    async def close(self) -> None:
        await self.log.close()


class Ear:
    """A connection that remembers what it was sent."""

    def __init__(self, engine: Engine, who: Actor, runtime: str) -> None:
        self.engine = engine
        self.seat = who.seat
        self.runtime = runtime
        self.private = True
        self.alive = True
        self.closed: str | None = None
        self.invited = False
        self.writes: list[list[dict[str, Any]]] = []
        self._reads = asyncio.Event()
        self._reads.set()

    # What the engine asks of a peer

    @staticmethod
    def join(frames: list[bytes]) -> bytes:
        return b"\n".join(frames)

    def write(self, data: bytes) -> None:
        if self.alive:
            self.writes.append([json.loads(line) for line in data.splitlines()])

    async def drained(self) -> None:
        await self._reads.wait()

    def close(self, reason: str, *, again: bool = False) -> None:
        self.closed, self.invited = reason, again
        asyncio.get_running_loop().call_soon(self.hang_up)

    # What a test does with it

    def hang_up(self) -> None:
        """The connection is lost."""
        if self.alive:
            self.alive = False
            self._reads.set()
            self.engine.peers.gone(self)

    def stall(self) -> None:
        """It does not read."""
        self._reads.clear()

    def resume(self) -> None:
        """It reads again."""
        self._reads.set()

    # What it heard

    @property
    def heard(self) -> list[dict[str, Any]]:
        """Everything, in order."""
        return [each for write in self.writes for each in write]

    @property
    def ids(self) -> list[str]:
        """The ids of what is on record."""
        return [each["id"] for each in self.heard if "seq" in each]

    @property
    def seqs(self) -> list[int]:
        """The numbers of what is on record."""
        return [each["seq"] for each in self.heard if "seq" in each]

    @property
    def types(self) -> list[str]:
        """What kind of things were said."""
        return [each["type"] for each in self.heard]


class Reply:
    """The answer to a message, once there is one."""

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self.count = 0

    def __call__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.count += 1

    def __bool__(self) -> bool:
        """Whether it came."""
        return self.outcome is not None

    @property
    def refused(self) -> Refused | None:
        """Why not, if not."""
        assert self.outcome is not None, "nobody answered"
        return self.outcome.refused

    @property
    def sealed(self) -> tuple[Sealed, ...]:
        """The records of what was accepted."""
        assert self.outcome is not None, "nobody answered"
        assert self.outcome.refused is None, self.outcome.refused.detail
        return self.outcome.sealed


class Stage:
    """One engine, and everybody's connections to it."""

    def __init__(
        self,
        log: EventLog | None = None,
        *,
        clock: Clock | None = None,
        house: House = HOUSE,
        window: int = 1000,
        check: bool = True,
    ) -> None:
        self.log = log or MemoryLog()
        self.clock: Any = clock or Watch()
        self.options: dict[str, Any] = {"house": house, "window": window, "check": check}
        self._name = f"m{next(_stages)}"
        self._made = count(1)
        world = World(canonical, self.clock, self._new_id, house)
        self.engine = Engine(self.log, [rooms.CONTEXT], world, window=window, check=check)
        self.ears: dict[str, Ear] = {}
        self._said = 0
        self._connections = 0

    def _new_id(self) -> str:
        return derived(T0, self._name, str(next(self._made)))

    # Saying

    def connect(self, who: Actor, runtime: str | None = None) -> Ear:
        """A new connection, through which this person speaks from now on."""
        self._connections += 1
        ear = Ear(self.engine, who, runtime or f"{who.seat}-{self._connections}")
        self.ears[who.seat] = ear
        return ear

    def ask(
        self,
        who: Actor,
        body: Body,
        id: str | None = None,
        ref: str | None = None,
        *,
        room: str = ROOM,
        ear: Ear | None = None,
        causal_refs: tuple[str, ...] = (),
        fork: str | None = None,
    ) -> Reply:
        """Somebody says something; the answer comes when it comes."""
        self._said += 1
        if ear is None and who.kind is not Kind.SYSTEM:
            ear = self.ears.get(who.seat) or self.connect(who)
        name = id or f"{self._name}.{self._said}"
        message = Message(name, iso(T0), room, who.seat, body, ref, causal_refs, fork)
        reply = Reply()
        self.engine.submit(f"room/{room}", Asked(message, who, reply, ear))
        return reply

    async def say(
        self,
        who: Actor,
        body: Body,
        id: str | None = None,
        ref: str | None = None,
        **more: Any,
    ) -> tuple[Sealed, ...]:
        """The records of what somebody says; raises Refused."""
        reply = self.ask(who, body, id, ref, **more)
        await self.engine.settle()
        if reply.refused:
            raise reply.refused
        return reply.sealed

    async def open(self, *others: Actor, room: str = ROOM, **config: Any) -> None:
        """Alice makes a session, the others come in as drivers."""
        await self.say(ALICE, creates(**config), room=room)
        for who in others:
            await self.say(who, joins(who, Role.DRIVER), room=room)

    async def wait(self, seconds: float) -> None:
        """Time passes, and what is due is done."""
        self.clock.move(seconds)
        self.engine.scheduler.run_due()
        await self.engine.settle()

    async def beat(self, seconds: float) -> None:
        """Time passes, and everybody is asked for a sign of life if that is due."""
        self.clock.move(seconds)
        self.engine.pulse.scheduler.run_due()
        await self.engine.settle()

    async def settle(self) -> None:
        """Nothing is under way any more."""
        await self.engine.settle()

    # What there is

    async def state(self, room: str = ROOM) -> Room:
        """The room as it stands."""
        state: Room = await self.engine.state(f"room/{room}")
        return state

    async def records(self, stream: str = STREAM) -> list[Sealed]:
        """What is on the log, whose versions, numbers and hashes must be as they should."""
        rows = await base(self.log).read(stream)
        check_rows(stream, rows)
        return [canonical.unseal(row.stream, row.version, row.body) for row in rows]

    async def ids(self, stream: str = STREAM) -> list[str]:
        """The ids of what was said, in order."""
        return [s.record.id for s in await self.records(stream) if s.frame]

    # Ends

    def again(self, log: EventLog | None = None) -> "Stage":
        """Another process on the same log, at the same time of day."""
        return Stage(log or self.log, clock=self.clock, **self.options)

    async def close(self) -> None:
        """The engine had no trouble."""
        await self.engine.settle()
        self.engine.scheduler.stop()
        self.engine.pulse.scheduler.stop()
        assert self.engine.failures == []


def base(log: EventLog) -> EventLog:
    """The log that keeps the rows."""
    return base(log.log) if isinstance(log, Tricky) else log


def check_rows(stream: str, rows: Iterable[Row]) -> None:
    """Versions count from 1, numbers too, times never go back, and each hash seals its row."""
    version, seq, at, last = 0, 0, 0, genesis(stream)
    for row in rows:
        record = canonical.unseal(row.stream, row.version, row.body).record
        version, last = version + 1, link(last, row.body)
        seq += record.said is not None
        assert (row.version, row.hash, row.id) == (version, last, record.id)
        assert record.seq == (seq if record.said is not None else 0)
        assert record.at >= at
        at = record.at
