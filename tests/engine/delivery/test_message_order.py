"""One order for all members: `seq`, citations and retries."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from accord.core import room as rooms
from accord.core.dialects import stored_records
from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import to_iso
from accord.core.room.conversation.responses import ResponseChunk, ResponseStart
from accord.core.room.room_settings import ServerPolicy
from accord.engine.engine import Engine
from accord.engine.ports import EncodedRecord, EnginePorts
from accord.stores.memory import MemoryLog
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    STREAM,
    T0,
    participant_announce,
    prompt_submit,
    session_config_update,
    session_create,
    session_join,
    tool_execute,
    tool_propose,
)
from tests.helpers.servers.token_service import ManualClock, SequentialIds
from tests.spec import proves


class Ear:
    """A connection that remembers what it was sent."""

    def __init__(self, who: Actor) -> None:
        self.principal = who.principal
        self.runtime = who.principal
        self.is_secure = True
        self.is_connected = True
        self.heard: list[dict[str, Any]] = []

    @staticmethod
    def join_frames(frames: list[bytes]) -> bytes:
        return b"\n".join(frames)

    def write(self, data: bytes) -> None:
        self.heard += [json.loads(line) for line in data.splitlines()]

    async def drain(self) -> None:
        pass

    def close(self, reason: str, *, reconnect: bool = False) -> None:
        raise AssertionError(reason)


class Session:
    """A room on a real engine, with everybody's ears."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        world = EnginePorts(stored_records, ManualClock(T0), SequentialIds(), ServerPolicy())
        self.engine = Engine(self.log, [rooms.CONTEXT], world, check=True)
        self.ears: dict[str, Ear] = {}
        self.said = 0

    async def say(
        self, who: Actor, body: Body, id: str = "", ref: str | None = None, **more: Any
    ) -> tuple[EncodedRecord, ...]:
        """The records of what somebody says."""
        self.said += 1
        ear = self.ears.setdefault(who.principal, Ear(who))
        message = Message(id or f"m{self.said}", to_iso(T0), "r", who.principal, body, ref, **more)
        return await self.engine.handle(message, who, peer=ear)

    async def open(self, **config: Any) -> None:
        """Alice, Bob and Claude meet."""
        await self.say(ALICE, session_create(**config))
        await self.say(BOB, session_join(BOB, Role.DRIVER))
        await self.say(CLAUDE, session_join(CLAUDE, Role.DRIVER))

    async def talk(self) -> None:
        """Everybody says something."""
        await self.say(ALICE, prompt_submit(), "prompt")
        await self.say(CLAUDE, ResponseStart("claude", "prompt"), "answer")
        await self.say(CLAUDE, tool_propose(), "tool", ref="prompt")
        await self.say(CLAUDE, ResponseChunk("Hello"), ref="answer")
        await self.say(BOB, participant_announce(BOB))

    async def seqs(self) -> list[int]:
        """What was counted, in the order it is kept."""
        rows = await self.log.read(STREAM)
        return [
            sealed.record.seq
            for sealed in (
                stored_records.decode_record(row.stream, row.version, row.body) for row in rows
            )
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
async def test_seq_counts_from_one_in_either_mode(session: Session, mode: str) -> None:
    await session.open(ordering_mode=mode)
    await session.talk()

    seqs = await session.seqs()

    assert seqs == list(range(1, len(seqs) + 1))
    assert [each["seq"] for each in session.ears["alice"].heard] == seqs


@proves("OPEN-55")
async def test_change_of_mode_continues_the_seq(session: Session) -> None:
    await session.open(ordering_mode="total")
    await session.say(ALICE, session_config_update(ordering_mode="causal"))
    await session.talk()

    seqs = await session.seqs()

    assert seqs == list(range(1, len(seqs) + 1))


@proves("PVP-6.2-11", "PVP-6.2-10", "OPEN-35", "PVP-6.6-3")
async def test_all_members_and_the_sender_get_the_same_order(session: Session) -> None:
    await session.open()
    await session.talk()
    await session.say(ALICE, session_config_update(allow_forks=False))

    alice, bob, claude = (session.ears[who.principal].heard for who in (ALICE, BOB, CLAUDE))

    assert [each["id"] for each in alice[-5:]] == [each["id"] for each in bob[-5:]]
    assert bob[-8:] == alice[-8:] == claude[-8:]
    assert alice[-1]["type"] == "session.config_update"


@proves("PVP-6.2-10", "PVP-4.2-10", "PVP-4.1-10", "OPEN-35")
async def test_message_follows_everything_it_cites(session: Session) -> None:
    await session.open(ordering_mode="causal")
    await session.say(ALICE, prompt_submit(), "first")
    (second,) = await session.say(BOB, prompt_submit(), "second", causal_refs=("first",))

    order = [each["id"] for each in session.ears["claude"].heard]

    assert second.record.causal_refs == ("first",)
    assert order.index("first") < order.index("second")
    assert session.ears["claude"].heard[-1]["causal_refs"] == ["first"]


@proves("OPEN-35", "PVP-4.2-10", "PVP-4.1-8")
@pytest.mark.parametrize("named", [{"ref": "nothing"}, {"causal_refs": ("m1", "nothing")}])
async def test_citing_an_unknown_message_is_refused(session: Session, named: Any) -> None:
    await session.open()

    with pytest.raises(Refused) as no:
        await session.say(ALICE, prompt_submit(), **named)

    assert no.value.reason is Reason.MALFORMED
    assert no.value.details == {"unknown": ["nothing"]}


@proves("OPEN-35", "UNI-12")
async def test_citing_an_invisible_message_is_refused(session: Session) -> None:
    await session.open(require_approval_for=())
    await session.say(CLAUDE, tool_propose(), "tool")
    (started,) = await session.say(CLAUDE, tool_execute("tool"), "run")
    assert started.record.to == frozenset({"claude"})

    with pytest.raises(Refused) as no:
        await session.say(ALICE, prompt_submit(), causal_refs=("run",))

    assert no.value.details == {"unknown": ["run"]}
    assert all(each["id"] != "run" for each in session.ears["alice"].heard)


@proves("PVP-4.2-2", "OPEN-36", "UNI-11")
async def test_repeated_message_has_no_second_effect(session: Session) -> None:
    await session.open()
    first = await session.say(ALICE, prompt_submit(), "again")
    heard = len(session.ears["bob"].heard)

    second = await session.say(ALICE, prompt_submit(), "again")

    assert second == first
    assert len(session.ears["bob"].heard) == heard


@proves("PVP-4.2-2", "OPEN-36", "UNI-11")
@pytest.mark.parametrize(
    ("who", "body"),
    [
        (ALICE, prompt_submit(content="Another")),
        (BOB, prompt_submit()),
        (BOB, participant_announce(BOB)),
    ],
)
async def test_reused_id_for_another_message_is_refused(
    session: Session, who: Actor, body: Body
) -> None:
    await session.open()
    await session.say(ALICE, prompt_submit(), "once")

    with pytest.raises(Refused) as no:
        await session.say(who, body, "once")

    assert no.value.reason is Reason.KEY_REUSED


@proves("OPEN-36")
async def test_a_retried_announce_gets_its_first_outcome(session: Session) -> None:
    await session.open()
    wish = participant_announce(BOB, Role.ADMIN, name="Robert")
    first = await session.say(BOB, wish, "announce")

    assert await session.say(BOB, wish, "announce") == first


@proves("OPEN-11", "UNI-1")
async def test_sender_must_match_the_authenticated_actor(session: Session) -> None:
    await session.open()
    message = Message("m", to_iso(T0), "r", "alice", prompt_submit())

    for seat in ("alice", "system"):
        with pytest.raises(Refused) as no:
            await session.engine.handle(Message("m", to_iso(T0), "r", seat, prompt_submit()), BOB)
        assert no.value.reason is Reason.CLAIM_MISMATCH
    assert (await session.engine.handle(message, ALICE))[0].record.sender == "alice"


@proves("PVP-4.2-5", "PVP-3.2-1")
async def test_messages_do_not_reach_another_session(session: Session) -> None:
    await session.open()
    ear = session.ears["carol"] = Ear(CAROL)
    elsewhere = Message("c", to_iso(T0), "elsewhere", "carol", session_create())
    await session.engine.handle(elsewhere, CAROL, peer=ear)

    await session.talk()

    assert {each["session"] for each in ear.heard} == {"elsewhere"}
    assert {each["session"] for each in session.ears["alice"].heard} == {"r"}
