"""What several people say at random: a refusal changes nothing, and nobody hears too much."""

import asyncio
import json
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.core.dialects import pvp
from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room.shared_context import context_items
from accord.engine.streams.stream import Submission
from tests.core.dialects.envelopes import PAYLOADS, envelope
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.support.payload_generator import (
    ENVELOPE_DEFAULTS,
    MESSAGE_TYPES,
    PRINCIPALS,
    ByteChoices,
    PayloadGenerator,
)
from tests.fuzz.targets import FuzzInput
from tests.helpers.engine.harness import EngineHarness, PendingReply, RecordingPeer, check_rows
from tests.helpers.log_audit.visibility_audit import VisibilityAudit
from tests.helpers.pvp_appendix_a import APPENDIX_MESSAGES
from tests.helpers.room.logged_room import context_add, fork_create
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    DAVE,
    ROOM,
    STREAM,
    prompt_submit,
    session_create,
    session_join,
    tool_propose,
)

ACTORS = (ALICE, BOB, CAROL, DAVE, CLAUDE, CODEX, Actor("mallory", Kind.HUMAN))
ROLES = {"bob": (Role.NAVIGATOR, Role.DRIVER), "dave": (Role.APPROVER,)}
OUTSIDER = Actor("alice", Kind.HUMAN, workspace="elsewhere")
CLOCK_STEPS_S = (1, 31, 121, 301, 4000)
MAX_STEPS = 24
# No other bytes may say this; whoever hears it must be named.
SECRET = "xyzzy-plugh"


def seeds() -> Iterator[bytes]:
    """Every type said by everybody, and conversations as text."""
    for number in range(len(MESSAGE_TYPES)):
        yield bytes((0, 0, number)) * 8
        yield bytes((number % 7, 4, number, *range(40)))
    yield b"\n".join(json.dumps(said).encode() for said in APPENDIX_MESSAGES)
    for name in sorted(PAYLOADS):
        for seat in ("alice", "claude"):
            yield json.dumps(envelope(name, session=ROOM, sender=seat)).encode()


def make_runner(place: Path) -> FuzzInput:
    """A room for each input."""
    return lambda data: asyncio.run(run_session(data))


async def run_session(data: bytes) -> None:
    """One room, from the opening to the end."""
    await FuzzedSession(data).run()


def sender_of(line: bytes) -> object:
    """Who a line says it is from."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said.get("sender") if isinstance(said, dict) else None


class FuzzedSession:
    """One room in which the bytes decide who says what."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.stage = EngineHarness()
        self.oracle = VisibilityAudit()
        self.draw = ByteChoices(data)
        self.ids: dict[str, list[str]] = {"key": ["hidden", "k0"], "seat": list(PRINCIPALS)}
        self.said = 0

    async def run(self) -> None:
        """From the opening to the end."""
        await self._open()
        await (self._read_lines() if self.data.startswith(b"{") else self._send_generated())
        await self.stage.close()
        check_rows(STREAM, await self.stage.log.read(STREAM))

    async def _open(self) -> None:
        opening: list[tuple[Actor, Body]] = [(ALICE, session_create())]
        opening += [
            (who, session_join(who, *ROLES.get(who.principal, (Role.DRIVER,))))
            for who in ACTORS[1:6]
        ]
        opening += [(ALICE, prompt_submit()), (CLAUDE, tool_propose())]
        opening += [(BOB, context_add("hidden", SECRET, to=["claude"]))]
        for number, (who, body) in enumerate(opening):
            self.stage.submit(who, body, f"o{number}")
        await self.stage.wait_until_idle()
        await self.stage.send(BOB, fork_create("Aside", CLAUDE, point="o6"))
        await self._check_deliveries()

    async def _send_generated(self) -> None:
        speech = PayloadGenerator(self.draw, self.ids)
        for _ in range(MAX_STEPS):
            if not self.draw.has_more:
                return
            who, act = self.draw.pick((*ACTORS, OUTSIDER)), self.draw.byte() % 16
            if act == 13:
                await self._run_checked(self._wait())
            elif act == 14:
                await self._run_checked(self._disconnect(who))
            elif act == 15:
                await self._submit(who, self.draw.raw())
            else:
                await self._submit(who, self._envelope(speech, who.principal, act))

    def _envelope(self, speech: PayloadGenerator, me: str, act: int) -> bytes:
        name = self.draw.pick(MESSAGE_TYPES)
        self.said += 1
        whole = ENVELOPE_DEFAULTS | {
            "session": ROOM,
            "sender": me,
            "type": name,
            "id": f"m{self.said}",
        }
        whole["payload"] = speech.payload(name, me)
        if name.endswith((".chunk", ".end")) or act == 9:
            start = name.replace(".chunk", ".start").replace(".end", ".start")
            whole["ref"] = speech.id(start, me)
        if act in {10, 11}:
            whole["fork"] = speech.id("fork", me)
        if act == 12:
            whole["id"] = speech.id(self.draw.pick(MESSAGE_TYPES), me)
        return json.dumps(whole).encode()

    async def _read_lines(self) -> None:
        for line in self.data.split(b"\n")[:MAX_STEPS]:
            sender = sender_of(line)
            who = next(
                (each for each in ACTORS if each.principal == sender), self.draw.pick(ACTORS)
            )
            await self._submit(who, line)

    # One step, and what must hold after it

    async def _submit(self, who: Actor, data: bytes) -> None:
        try:
            message = pvp.decode(data)
        except Refused:
            return
        reply, ear = PendingReply(), self._subscriber(who)
        stream = f"room/{message.room}"
        before = await self.stage.engine.state(stream)
        count = len(await self.stage.log.read(stream))
        self.stage.engine.submit(stream, Submission(message, who, reply, ear))
        await self.stage.wait_until_idle()
        assert reply.count == 1, "not answered once"
        if reply.refusal is not None:
            why = reply.refusal
            assert why.reason is not Reason.INTERNAL, why.detail
            assert SECRET not in repr(why) or SECRET.encode() in data
            assert count == len(await self.stage.log.read(stream)), "refused, and recorded"
            assert before == await self.stage.engine.state(stream), "refused, and changed"
        mark_reached(message.body.type, reply.refusal and reply.refusal.reason)
        await self._check_deliveries()

    def _subscriber(self, who: Actor) -> RecordingPeer:
        name = f"{who.workspace}/{who.principal}"
        ear = self.stage.peers.get(name)
        if ear is None or not ear.is_connected:
            ear = self.stage.connect(who, name)
            self.stage.peers[name] = ear
        return ear

    async def _wait(self) -> None:
        await self.stage.advance_time(self.draw.pick(CLOCK_STEPS_S))

    async def _disconnect(self, who: Actor) -> None:
        self._subscriber(who).disconnect()

    async def _run_checked(self, step: Coroutine[Any, Any, None]) -> None:
        await step
        await self.stage.wait_until_idle()
        await self._check_deliveries()

    async def _check_deliveries(self) -> None:
        """Everything that was recorded since, and everything that was heard."""
        self.oracle.recent_members = set(self.oracle.members)
        for row in await self.stage.log.read(STREAM, self.oracle.version):
            self.oracle.read(row)
        self.ids |= self.oracle.ids | {"fork": [*self.oracle.forks, "main"]}
        assert self.stage.engine.failures == []
        for ear in list(self.stage.peers.values()):
            elsewhere = ear.runtime.startswith(OUTSIDER.workspace)
            for frame in ear.received:
                self._check(ear.principal, frame, elsewhere=elsewhere)
            ear.writes.clear()

    def _check(self, seat: str, frame: dict[str, Any], *, elsewhere: bool) -> None:
        if frame["session"] != ROOM:
            return
        named = frame["payload"].get("visible_to") if frame["type"] == "context.add" else None
        assert named is None or seat in {*named, frame["sender"]}, f"{seat} heard what is hidden"
        if "seq" in frame:
            heard = self.oracle.wire_records[frame["seq"] - 1]
            assert heard.id == frame["id"]
            assert self.oracle.can_see(heard, seat), f"{seat} heard {frame['type']}"
            assert not elsewhere, f"{frame['type']} left its workspace"


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """What is on the shelf is told to everybody."""
    patch.setattr(context_items, "item_audience", lambda item: None)
