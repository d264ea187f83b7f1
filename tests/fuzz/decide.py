"""What several people say at random: a refusal changes nothing, and nobody hears too much."""

import asyncio
import json
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.core.dialects import pvp
from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import shelf
from accord.engine.cell import Asked
from tests.core.dialects.wire import PAYLOADS, envelope
from tests.fuzz.draw import SEATS, SPOKEN, USUAL, Draw, Speech
from tests.fuzz.reached import reached
from tests.fuzz.targets import Trial
from tests.helpers.appendix import PRINTED
from tests.helpers.engine import Ear, Reply, Stage, check_rows
from tests.helpers.forks import adds, forks
from tests.helpers.oracle import Oracle
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    DAVE,
    ROOM,
    STREAM,
    creates,
    joins,
    prompts,
    proposes,
)

CAST = (ALICE, BOB, CAROL, DAVE, CLAUDE, CODEX, Actor("mallory", Kind.HUMAN))
ROLES = {"bob": (Role.NAVIGATOR, Role.DRIVER), "dave": (Role.APPROVER,)}
OUTSIDER = Actor("alice", Kind.HUMAN, workspace="elsewhere")
WAITS = (1, 31, 121, 301, 4000)
MOST_STEPS = 24
# No other bytes may say this; whoever hears it must be named.
SECRET = "xyzzy-plugh"


def seeds() -> Iterator[bytes]:
    """Every type said by everybody, and conversations as text."""
    for number in range(len(SPOKEN)):
        yield bytes((0, 0, number)) * 8
        yield bytes((number % 7, 4, number, *range(40)))
    yield b"\n".join(json.dumps(said).encode() for said in PRINTED)
    for name in sorted(PAYLOADS):
        for seat in ("alice", "claude"):
            yield json.dumps(envelope(name, session=ROOM, sender=seat)).encode()


def trial(place: Path) -> Trial:
    """A room for each input."""
    return lambda data: asyncio.run(play(data))


async def play(data: bytes) -> None:
    """One room, from the opening to the end."""
    await Play(data).run()


def sender_of(line: bytes) -> object:
    """Who a line says it is from."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said.get("sender") if isinstance(said, dict) else None


class Play:
    """One room in which the bytes decide who says what."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.stage = Stage()
        self.oracle = Oracle()
        self.draw = Draw(data)
        self.ids: dict[str, list[str]] = {"key": ["hidden", "k0"], "seat": list(SEATS)}
        self.said = 0

    async def run(self) -> None:
        """From the opening to the end."""
        await self._open()
        await (self._read_lines() if self.data.startswith(b"{") else self._improvise())
        await self.stage.close()
        check_rows(STREAM, await self.stage.log.read(STREAM))

    async def _open(self) -> None:
        opening: list[tuple[Actor, Body]] = [(ALICE, creates())]
        opening += [(who, joins(who, *ROLES.get(who.seat, (Role.DRIVER,)))) for who in CAST[1:6]]
        opening += [(ALICE, prompts()), (CLAUDE, proposes())]
        opening += [(BOB, adds("hidden", SECRET, to=["claude"]))]
        for number, (who, body) in enumerate(opening):
            self.stage.ask(who, body, f"o{number}")
        await self.stage.settle()
        await self.stage.say(BOB, forks("Aside", CLAUDE, point="o6"))
        await self._look()

    async def _improvise(self) -> None:
        speech = Speech(self.draw, self.ids)
        for _ in range(MOST_STEPS):
            if not self.draw.more:
                return
            who, act = self.draw.pick((*CAST, OUTSIDER)), self.draw.byte() % 16
            if act == 13:
                await self._do(self._wait())
            elif act == 14:
                await self._do(self._hang_up(who))
            elif act == 15:
                await self._say(who, self.draw.raw())
            else:
                await self._say(who, self._envelope(speech, who.seat, act))

    def _envelope(self, speech: Speech, me: str, act: int) -> bytes:
        name = self.draw.pick(SPOKEN)
        self.said += 1
        whole = USUAL | {"session": ROOM, "sender": me, "type": name, "id": f"m{self.said}"}
        whole["payload"] = speech.payload(name, me)
        if name.endswith((".chunk", ".end")) or act == 9:
            start = name.replace(".chunk", ".start").replace(".end", ".start")
            whole["ref"] = speech.id(start, me)
        if act in {10, 11}:
            whole["fork"] = speech.id("fork", me)
        if act == 12:
            whole["id"] = speech.id(self.draw.pick(SPOKEN), me)
        return json.dumps(whole).encode()

    async def _read_lines(self) -> None:
        for line in self.data.split(b"\n")[:MOST_STEPS]:
            sender = sender_of(line)
            who = next((each for each in CAST if each.seat == sender), self.draw.pick(CAST))
            await self._say(who, line)

    # One step, and what must hold after it

    async def _say(self, who: Actor, data: bytes) -> None:
        try:
            message = pvp.decode(data)
        except Refused:
            return
        reply, ear = Reply(), self._ear(who)
        stream = f"room/{message.room}"
        before = await self.stage.engine.state(stream)
        count = len(await self.stage.log.read(stream))
        self.stage.engine.submit(stream, Asked(message, who, reply, ear))
        await self.stage.settle()
        assert reply.count == 1, "not answered once"
        if reply.refused is not None:
            why = reply.refused
            assert why.why is not Why.INTERNAL, why.detail
            assert SECRET not in repr(why) or SECRET.encode() in data
            assert count == len(await self.stage.log.read(stream)), "refused, and recorded"
            assert before == await self.stage.engine.state(stream), "refused, and changed"
        reached(message.body.type, reply.refused and reply.refused.why)
        await self._look()

    def _ear(self, who: Actor) -> Ear:
        name = f"{who.workspace}/{who.seat}"
        ear = self.stage.ears.get(name)
        if ear is None or not ear.alive:
            ear = self.stage.connect(who, name)
            self.stage.ears[name] = ear
        return ear

    async def _wait(self) -> None:
        await self.stage.wait(self.draw.pick(WAITS))

    async def _hang_up(self, who: Actor) -> None:
        self._ear(who).hang_up()

    async def _do(self, step: Coroutine[Any, Any, None]) -> None:
        await step
        await self.stage.settle()
        await self._look()

    async def _look(self) -> None:
        """Everything that was recorded since, and everything that was heard."""
        self.oracle.lately = set(self.oracle.members)
        for row in await self.stage.log.read(STREAM, self.oracle.version):
            self.oracle.read(row)
        self.ids |= self.oracle.ids | {"fork": [*self.oracle.forks, "main"]}
        assert self.stage.engine.failures == []
        for ear in list(self.stage.ears.values()):
            elsewhere = ear.runtime.startswith(OUTSIDER.workspace)
            for frame in ear.heard:
                self._check(ear.seat, frame, elsewhere=elsewhere)
            ear.writes.clear()

    def _check(self, seat: str, frame: dict[str, Any], *, elsewhere: bool) -> None:
        if frame["session"] != ROOM:
            return
        named = frame["payload"].get("visible_to") if frame["type"] == "context.add" else None
        assert named is None or seat in {*named, frame["sender"]}, f"{seat} heard what is hidden"
        if "seq" in frame:
            heard = self.oracle.heard[frame["seq"] - 1]
            assert heard.id == frame["id"]
            assert self.oracle.visible(heard, seat), f"{seat} heard {frame['type']}"
            assert not elsewhere, f"{frame['type']} left its workspace"


def plant(patch: pytest.MonkeyPatch) -> None:
    """What is on the shelf is told to everybody."""
    patch.setattr(shelf, "audience", lambda item: None)
