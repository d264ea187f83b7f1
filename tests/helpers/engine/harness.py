"""A real engine on a log that can be made to wait or fail, with recording connections.

    harness = EngineHarness()
    await harness.open_room(CLAUDE)
    await harness.send(ALICE, prompt_submit(), "p")
    assert harness.peers["claude"].ids[-1] == "p"

`FaultyLog` is the log that waits and fails; `EngineHarness.restart` gives a second engine on the
same log.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from itertools import count
from typing import Any

from accord.core import room as rooms
from accord.core.dialects import stored_records
from accord.core.kernel.actor import Actor
from accord.core.kernel.integrity.hash_chain import (
    SignatureCoverage,
    SignedHead,
    genesis_hash,
    link_hash,
)
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.kernel.timestamps import MS_PER_SECOND, to_iso
from accord.core.kernel.ulid import derive_ulid
from accord.core.room.room_settings import ServerPolicy
from accord.core.room.state import Room
from accord.engine.engine import Engine
from accord.engine.ports import (
    Clock,
    EncodedRecord,
    EnginePorts,
    EventLog,
    Row,
    Snapshot,
    StoreError,
)
from accord.engine.streams.stream import Outcome, Submission
from accord.stores.memory import MemoryLog
from tests.helpers.room.scenario import (
    ALICE,
    DEFAULT_POLICY,
    ROOM,
    STREAM,
    T0,
    session_create,
    session_join,
)

LOOP_TURNS = 25
_stages = count(1)


async def yield_to_loop(count: int = LOOP_TURNS) -> None:
    """Run all tasks that are ready."""
    for _ in range(count):
        await asyncio.sleep(0)


class ManualClock:
    """A clock that moves only when the test sets it."""

    def __init__(self, at: int = T0) -> None:
        self.at = at

    def now(self) -> int:
        return self.at

    def advance(self, seconds: float) -> None:
        """Move the clock forward, or back with a negative number."""
        self.at += int(seconds * MS_PER_SECOND)


class FaultyLog:
    """A log whose methods can be made to wait or fail, and whose calls are counted."""

    def __init__(self, log: EventLog | None = None) -> None:
        self.log = log or MemoryLog()
        self.calls: Counter[str] = Counter()
        self.rows_read = 0
        self.failing: set[str] = set()
        # How many calls of a method succeed before it fails.
        self.successes_before_failure: Counter[str] = Counter()
        self._held: dict[str, asyncio.Event] = {}

    def hold(self, *methods: str) -> None:
        """Make these methods wait."""
        self._held |= {name: asyncio.Event() for name in methods}

    def release(self, *methods: str) -> None:
        """Let these methods continue; without names, all of them."""
        for name in methods or tuple(self._held):
            self._held.pop(name).set()

    async def _intercept(self, name: str) -> None:
        self.calls[name] += 1
        if name in self._held:
            await self._held[name].wait()
        if name in self.failing and self.successes_before_failure[name]:
            self.successes_before_failure[name] -= 1
        elif name in self.failing:
            raise StoreError(f"{name} fails")

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        await self._intercept("append")
        await self.log.append(stream, expected, rows)

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        await self._intercept("read")
        rows = await self.log.read(stream, after, limit)
        self.rows_read += len(rows)
        return rows

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        await self._intercept("find")
        return await self.log.find(stream, ids)

    async def streams(self, prefix: str = "") -> dict[str, int]:
        await self._intercept("streams")
        return await self.log.streams(prefix)

    async def position(self) -> int:
        await self._intercept("position")
        return await self.log.position()

    async def tail(self, after: int) -> AsyncGenerator[list[tuple[int, Row]], None]:
        await self._intercept("tail")
        async for batch in self.log.tail(after):
            await self._intercept("tail")
            yield batch

    async def cursor(self, name: str) -> int:
        await self._intercept("cursor")
        return await self.log.cursor(name)

    async def advance(self, name: str, position: int) -> None:
        await self._intercept("advance")
        await self.log.advance(name, position)

    async def snapshot(self, stream: str) -> Snapshot | None:
        await self._intercept("snapshot")
        return await self.log.snapshot(stream)

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        await self._intercept("keep")
        await self.log.save_snapshot(stream, snapshot)

    async def heads(self, stream: str) -> list[SignedHead]:
        return await self.log.heads(stream)

    async def signed_version(self, stream: str) -> int:
        return await self.log.signed_version(stream)

    async def signature_coverage(self) -> SignatureCoverage:
        return await self.log.signature_coverage()

    async def add_head(self, head: SignedHead) -> None:
        await self._intercept("sign")
        await self.log.add_head(head)

    async def close(self) -> None:
        await self.log.close()


class RecordingPeer:
    """A connection that records what it is sent."""

    def __init__(self, engine: Engine, who: Actor, runtime: str) -> None:
        self.engine = engine
        self.principal = who.principal
        self.runtime = runtime
        self.is_secure = True
        self.is_connected = True
        self.close_reason: str | None = None
        self.reconnect_invited = False
        self.writes: list[list[dict[str, Any]]] = []
        self._reading = asyncio.Event()
        self._reading.set()

    # Called by the engine

    @staticmethod
    def join_frames(frames: list[bytes]) -> bytes:
        return b"\n".join(frames)

    def write(self, data: bytes) -> None:
        if self.is_connected:
            self.writes.append([json.loads(line) for line in data.splitlines()])

    async def drain(self) -> None:
        await self._reading.wait()

    def close(self, reason: str, *, reconnect: bool = False) -> None:
        self.close_reason, self.reconnect_invited = reason, reconnect
        asyncio.get_running_loop().call_soon(self.disconnect)

    # Controlled by the test

    def disconnect(self) -> None:
        """Lose the connection."""
        if self.is_connected:
            self.is_connected = False
            self._reading.set()
            self.engine.delivery.connection_lost(self)

    def stop_reading(self) -> None:
        """Stop reading, so that the engine's queue fills."""
        self._reading.clear()

    def resume_reading(self) -> None:
        """Read again."""
        self._reading.set()

    # Received messages

    @property
    def received(self) -> list[dict[str, Any]]:
        """All envelopes in order."""
        return [each for write in self.writes for each in write]

    @property
    def ids(self) -> list[str]:
        """The ids of the stored messages."""
        return [each["id"] for each in self.received if "seq" in each]

    @property
    def seqs(self) -> list[int]:
        """The seqs of the stored messages."""
        return [each["seq"] for each in self.received if "seq" in each]

    @property
    def types(self) -> list[str]:
        """The types of all envelopes."""
        return [each["type"] for each in self.received]


class PendingReply:
    """The outcome of a submitted message, once there is one."""

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self.count = 0

    def __call__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.count += 1

    def __bool__(self) -> bool:
        """Whether the outcome is known."""
        return self.outcome is not None

    @property
    def refusal(self) -> Refused | None:
        """The refusal, or None if the message was accepted."""
        assert self.outcome is not None, "nobody answered"
        return self.outcome.refusal

    @property
    def records(self) -> tuple[EncodedRecord, ...]:
        """The records of an accepted message."""
        assert self.outcome is not None, "nobody answered"
        assert self.outcome.refusal is None, self.outcome.refusal.detail
        return self.outcome.records


class EngineHarness:
    """One engine and the recording connections of its members."""

    def __init__(
        self,
        log: EventLog | None = None,
        *,
        clock: Clock | None = None,
        policy: ServerPolicy = DEFAULT_POLICY,
        window: int = 1000,
        check: bool = True,
    ) -> None:
        self.log = log or MemoryLog()
        self.clock: Any = clock or ManualClock()
        self.options: dict[str, Any] = {"policy": policy, "window": window, "check": check}
        self._name = f"m{next(_stages)}"
        self._made = count(1)
        world = EnginePorts(stored_records, self.clock, self._new_id, policy)
        self.engine = Engine(self.log, [rooms.CONTEXT], world, window=window, check=check)
        self.peers: dict[str, RecordingPeer] = {}
        self._said = 0
        self._connections = 0

    def _new_id(self) -> str:
        return derive_ulid(T0, self._name, str(next(self._made)))

    # Sending

    def connect(self, who: Actor, runtime: str | None = None) -> RecordingPeer:
        """A new connection, which this member sends through from now on."""
        self._connections += 1
        ear = RecordingPeer(self.engine, who, runtime or f"{who.principal}-{self._connections}")
        self.peers[who.principal] = ear
        return ear

    def submit(
        self,
        who: Actor,
        body: Body,
        id: str | None = None,
        ref: str | None = None,
        *,
        room: str = ROOM,
        ear: RecordingPeer | None = None,
        causal_refs: tuple[str, ...] = (),
        fork: str | None = None,
    ) -> PendingReply:
        """Submit a message without waiting for its outcome."""
        self._said += 1
        if ear is None and who.kind is not Kind.SYSTEM:
            ear = self.peers.get(who.principal) or self.connect(who)
        name = id or f"{self._name}.{self._said}"
        message = Message(name, to_iso(T0), room, who.principal, body, ref, causal_refs, fork)
        reply = PendingReply()
        self.engine.submit(f"room/{room}", Submission(message, who, reply, ear))
        return reply

    async def send(
        self,
        who: Actor,
        body: Body,
        id: str | None = None,
        ref: str | None = None,
        **more: Any,
    ) -> tuple[EncodedRecord, ...]:
        """Send a message and return its records; raises Refused."""
        reply = self.submit(who, body, id, ref, **more)
        await self.engine.wait_until_idle()
        if reply.refusal:
            raise reply.refusal
        return reply.records

    async def open_room(self, *others: Actor, room: str = ROOM, **config: Any) -> None:
        """Alice creates a session, and the others join as drivers."""
        await self.send(ALICE, session_create(**config), room=room)
        for who in others:
            await self.send(who, session_join(who, Role.DRIVER), room=room)

    async def advance_time(self, seconds: float) -> None:
        """Advance the clock and run what is due."""
        self.clock.advance(seconds)
        self.engine.scheduler.run_due()
        await self.engine.wait_until_idle()

    async def run_heartbeats(self, seconds: float) -> None:
        """Advance the clock and send the heartbeats that are due."""
        self.clock.advance(seconds)
        self.engine.heartbeat.scheduler.run_due()
        await self.engine.wait_until_idle()

    async def wait_until_idle(self) -> None:
        """Wait until the engine has nothing left to do."""
        await self.engine.wait_until_idle()

    # State

    async def state(self, room: str = ROOM) -> Room:
        """The room's current state."""
        state: Room = await self.engine.state(f"room/{room}")
        return state

    async def records(self, stream: str = STREAM) -> list[EncodedRecord]:
        """The records of a stream, after checking versions, seqs and hashes."""
        rows = await underlying_log(self.log).read(stream)
        check_rows(stream, rows)
        return [stored_records.decode_record(row.stream, row.version, row.body) for row in rows]

    async def ids(self, stream: str = STREAM) -> list[str]:
        """The ids of the records with a wire form, in order."""
        return [s.record.id for s in await self.records(stream) if s.frame]

    # Restart and end

    def restart(self, log: EventLog | None = None) -> "EngineHarness":
        """A second engine on the same log, at the same time."""
        return EngineHarness(log or self.log, clock=self.clock, **self.options)

    async def close(self) -> None:
        """Stop the engine and assert that it had no failures."""
        await self.engine.wait_until_idle()
        self.engine.scheduler.stop()
        self.engine.heartbeat.scheduler.stop()
        assert self.engine.failures == []


def underlying_log(log: EventLog) -> EventLog:
    """The log that stores the rows."""
    return underlying_log(log.log) if isinstance(log, FaultyLog) else log


def check_rows(stream: str, rows: Iterable[Row]) -> None:
    """Assert that versions and seqs count from 1, times never decrease, and hashes are right."""
    version, seq, at, last = 0, 0, 0, genesis_hash(stream)
    for row in rows:
        record = stored_records.decode_record(row.stream, row.version, row.body).record
        version, last = version + 1, link_hash(last, row.body)
        seq += record.said is not None
        assert (row.version, row.hash, row.id) == (version, last, record.id)
        assert record.seq == (seq if record.said is not None else 0)
        assert record.at >= at
        at = record.at
