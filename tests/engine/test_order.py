"""One order for everybody: who speaks when, what is counted, and what may be named."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from accord.core import room as rooms
from accord.core.dialects import canonical
from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import iso
from accord.core.room.state import House
from accord.core.room.streams import ResponseChunk, ResponseStart
from accord.engine.engine import Engine, World
from accord.engine.ports import Sealed
from accord.stores.memory import MemoryLog
from tests.helpers.desk import Ids, StillClock
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    STREAM,
    T0,
    announces,
    configures,
    creates,
    executes,
    joins,
    prompts,
    proposes,
)
from tests.spec import proves


class Ear:
    """A connection that remembers what it was sent."""

    def __init__(self, who: Actor) -> None:
        self.seat = who.seat
        self.runtime = who.seat
        self.private = True
        self.alive = True
        self.heard: list[dict[str, Any]] = []

    @staticmethod
    def join(frames: list[bytes]) -> bytes:
        return b"\n".join(frames)

    def write(self, data: bytes) -> None:
        self.heard += [json.loads(line) for line in data.splitlines()]

    async def drained(self) -> None:
        pass

    def close(self, reason: str, *, again: bool = False) -> None:
        raise AssertionError(reason)


class Session:
    """A room on a real engine, with everybody's ears."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        world = World(canonical, StillClock(T0), Ids(), House())
        self.engine = Engine(self.log, [rooms.CONTEXT], world, check=True)
        self.ears: dict[str, Ear] = {}
        self.said = 0

    async def say(
        self, who: Actor, body: Body, id: str = "", ref: str | None = None, **more: Any
    ) -> tuple[Sealed, ...]:
        """The records of what somebody says."""
        self.said += 1
        ear = self.ears.setdefault(who.seat, Ear(who))
        message = Message(id or f"m{self.said}", iso(T0), "r", who.seat, body, ref, **more)
        return await self.engine.handle(message, who, peer=ear)

    async def open(self, **config: Any) -> None:
        """Alice, Bob and Claude meet."""
        await self.say(ALICE, creates(**config))
        await self.say(BOB, joins(BOB, Role.DRIVER))
        await self.say(CLAUDE, joins(CLAUDE, Role.DRIVER))

    async def talk(self) -> None:
        """Everybody says something."""
        await self.say(ALICE, prompts(), "prompt")
        await self.say(CLAUDE, ResponseStart("claude", "prompt"), "answer")
        await self.say(CLAUDE, proposes(), "tool", ref="prompt")
        await self.say(CLAUDE, ResponseChunk("Hello"), ref="answer")
        await self.say(BOB, announces(BOB))

    async def seqs(self) -> list[int]:
        """What was counted, in the order it is kept."""
        rows = await self.log.read(STREAM)
        return [
            sealed.record.seq
            for sealed in (canonical.unseal(row.stream, row.version, row.body) for row in rows)
            if sealed.frame
        ]


@pytest.fixture
def session() -> Iterator[Session]:
    made = Session()
    yield made
    made.engine.scheduler.stop()
    assert made.engine.failures == []


@proves("PVP-4.2-8", "PVP-4.2-9", "PVP-6.2-11", "UNI-9", "OPEN-35")
@pytest.mark.parametrize("mode", ["total", "causal"])
async def test_in_either_mode_all_that_is_said_is_counted_from_one(
    session: Session, mode: str
) -> None:
    await session.open(ordering_mode=mode)
    await session.talk()

    seqs = await session.seqs()

    assert seqs == list(range(1, len(seqs) + 1))
    assert [each["seq"] for each in session.ears["alice"].heard] == seqs


@proves("OPEN-55")
async def test_a_change_of_mode_keeps_the_count_running(session: Session) -> None:
    await session.open(ordering_mode="total")
    await session.say(ALICE, configures(ordering_mode="causal"))
    await session.talk()

    seqs = await session.seqs()

    assert seqs == list(range(1, len(seqs) + 1))


@proves("PVP-6.2-11", "PVP-6.2-10", "OPEN-35", "PVP-6.6-3")
async def test_everybody_hears_the_same_in_the_same_order_the_sender_too(session: Session) -> None:
    await session.open()
    await session.talk()
    await session.say(ALICE, configures(allow_forks=False))

    alice, bob, claude = (session.ears[who.seat].heard for who in (ALICE, BOB, CLAUDE))

    assert [each["id"] for each in alice[-5:]] == [each["id"] for each in bob[-5:]]
    assert bob[-8:] == alice[-8:] == claude[-8:]
    assert alice[-1]["type"] == "session.config_update"


@proves("PVP-6.2-10", "PVP-4.2-10", "PVP-4.1-10", "OPEN-35")
async def test_a_message_follows_everything_it_depends_on(session: Session) -> None:
    await session.open(ordering_mode="causal")
    await session.say(ALICE, prompts(), "first")
    (second,) = await session.say(BOB, prompts(), "second", causal_refs=("first",))

    order = [each["id"] for each in session.ears["claude"].heard]

    assert second.record.causal_refs == ("first",)
    assert order.index("first") < order.index("second")
    assert session.ears["claude"].heard[-1]["causal_refs"] == ["first"]


@proves("OPEN-35", "PVP-4.2-10", "PVP-4.1-8")
@pytest.mark.parametrize("named", [{"ref": "nothing"}, {"causal_refs": ("m1", "nothing")}])
async def test_what_was_never_said_cannot_be_named(session: Session, named: Any) -> None:
    await session.open()

    with pytest.raises(Refused) as no:
        await session.say(ALICE, prompts(), **named)

    assert no.value.why is Why.MALFORMED
    assert no.value.details == {"unknown": ["nothing"]}


@proves("OPEN-35", "UNI-12")
async def test_what_one_could_not_see_cannot_be_named(session: Session) -> None:
    await session.open(require_approval_for=())
    await session.say(CLAUDE, proposes(), "tool")
    (started,) = await session.say(CLAUDE, executes("tool"), "run")
    assert started.record.to == frozenset({"claude"})

    with pytest.raises(Refused) as no:
        await session.say(ALICE, prompts(), causal_refs=("run",))

    assert no.value.details == {"unknown": ["run"]}
    assert all(each["id"] != "run" for each in session.ears["alice"].heard)


@proves("PVP-4.2-2", "OPEN-36", "UNI-11")
async def test_the_same_message_again_has_no_second_effect(session: Session) -> None:
    await session.open()
    first = await session.say(ALICE, prompts(), "again")
    heard = len(session.ears["bob"].heard)

    second = await session.say(ALICE, prompts(), "again")

    assert second == first
    assert len(session.ears["bob"].heard) == heard


@proves("PVP-4.2-2", "OPEN-36", "UNI-11")
@pytest.mark.parametrize(
    ("who", "body"), [(ALICE, prompts(content="Another")), (BOB, prompts()), (BOB, announces(BOB))]
)
async def test_an_id_is_not_used_for_anything_else(
    session: Session, who: Actor, body: Body
) -> None:
    await session.open()
    await session.say(ALICE, prompts(), "once")

    with pytest.raises(Refused) as no:
        await session.say(who, body, "once")

    assert no.value.why is Why.KEY_REUSED


@proves("OPEN-36")
async def test_a_retried_announce_gets_its_first_outcome(session: Session) -> None:
    await session.open()
    wish = announces(BOB, Role.ADMIN, name="Robert")
    first = await session.say(BOB, wish, "announce")

    assert await session.say(BOB, wish, "announce") == first


@proves("OPEN-11", "UNI-1")
async def test_a_sender_is_who_the_edge_says(session: Session) -> None:
    await session.open()
    message = Message("m", iso(T0), "r", "alice", prompts())

    for seat in ("alice", "system"):
        with pytest.raises(Refused) as no:
            await session.engine.handle(Message("m", iso(T0), "r", seat, prompts()), BOB)
        assert no.value.why is Why.CLAIM_MISMATCH
    assert (await session.engine.handle(message, ALICE))[0].record.sender == "alice"


@proves("PVP-4.2-5", "PVP-3.2-1")
async def test_what_is_said_in_one_session_is_not_heard_in_another(session: Session) -> None:
    await session.open()
    ear = session.ears["carol"] = Ear(CAROL)
    elsewhere = Message("c", iso(T0), "elsewhere", "carol", creates())
    await session.engine.handle(elsewhere, CAROL, peer=ear)

    await session.talk()

    assert {each["session"] for each in ear.heard} == {"elsewhere"}
    assert {each["session"] for each in session.ears["alice"].heard} == {"r"}
