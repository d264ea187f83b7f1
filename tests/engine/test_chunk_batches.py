"""Chunks of one read may be batched; the result must be the same as without batching."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import to_iso
from accord.core.room.conversation.interrupts import InterruptRaise
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.conversation.thinking import ThinkingChunk, ThinkingStart
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.state import Urgency
from accord.engine.chunk_fast_path import ChunkStream
from accord.engine.delivery import joining
from accord.engine.streams.stream import Outcome, Submission
from accord.stores.memory import MemoryLog
from tests.helpers.engine.harness import (
    EngineHarness,
    FaultyLog,
    PendingReply,
    RecordingPeer,
    yield_to_loop,
)
from tests.helpers.room.chunk_batches import batch_chunks
from tests.helpers.room.logged_room import START_ID, fork_create
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    DAVE,
    ROOM,
    STREAM,
    T0,
    prompt_submit,
    role_change,
    session_join,
)

OTHER = "other"
# What is at hand of a room: less than was said in it, or all.
SHORT, LONG = 8, 1000
# A name for what is said, what it says, and what it is about.
SAYINGS: dict[str, tuple[Callable[[Actor], Body], str | None, dict[str, Any]]] = {
    "piece": (lambda _: ResponseChunk("more"), "s0", {}),
    "long piece": (lambda _: ResponseChunk("x" * 90_000), "s0", {}),
    "piece without a name": (lambda _: ResponseChunk("more"), None, {}),
    "piece beside": (lambda _: ResponseChunk("aside"), "a0", {}),
    "piece in the fork": (lambda _: ResponseChunk("aside"), "a0", {"fork": "aside"}),
    "piece astray": (lambda _: ResponseChunk("more"), "s0", {"fork": "aside"}),
    "piece in no fork": (lambda _: ResponseChunk("more"), "s0", {"fork": "none"}),
    "piece elsewhere": (lambda _: ResponseChunk("there"), "s0", {"room": OTHER}),
    "piece nowhere": (lambda _: ResponseChunk("there"), "s0", {"room": "nowhere"}),
    "piece that cites": (lambda _: ResponseChunk("more"), "s0", {"causal_refs": ("p",)}),
    "piece that cites nothing": (lambda _: ResponseChunk("more"), "s0", {"causal_refs": ("-",)}),
    "thought": (lambda _: ThinkingChunk("hm"), "t0", {}),
    "thought astray": (lambda _: ThinkingChunk("hm"), "s0", {}),
    "thought for one": (lambda _: ThinkingChunk("hm"), "t1", {}),
    "end": (lambda _: ResponseEnd("complete"), "s0", {}),
    "stop": (lambda _: InterruptRaise(Urgency.STOP, "Enough", "claude"), None, {}),
    "leave": (lambda _: SessionLeave(), None, {}),
    "join": (lambda who: session_join(who, Role.DRIVER), None, {}),
    "back": (lambda who: session_join(who, Role.DRIVER), "p", {}),
}
PIECES = [name for name in SAYINGS if name.startswith(("piece", "thought"))]
EARS: dict[str, Actor] = {
    "claude": CLAUDE,
    "claude outside": CLAUDE,
    "codex": CODEX,
    "bob": BOB,
    "dave": DAVE,
}
EVENTS = ("fail", "hold", "others", "watch", "drive", "turn", "hang up", "come in")

said = st.tuples(
    st.sampled_from([*["piece"] * 8, *PIECES * 2, *SAYINGS]),
    st.sampled_from([None] * 9 + [0, 1, 2]),  # whether its id was used before
    st.integers(1, 4),  # so often in a row
)
reads = st.tuples(st.sampled_from([*["claude"] * 6, *EARS]), st.lists(said, min_size=1, max_size=5))
scripts = st.lists(reads | st.sampled_from(EVENTS), min_size=4, max_size=24)


class Forgetful(dict[str | None, ChunkStream]):
    """Knows of no flow, ever."""

    def __setitem__(self, *_: Any) -> None:
        pass


class Play:
    """A script, and what everybody heard of it."""

    def __init__(self, window: int = SHORT, *, drives: bool) -> None:
        self.drives = drives
        self.log = FaultyLog(MemoryLog())
        self.stage = EngineHarness(self.log, window=window)
        self.stage._name = "m"
        self.others = self.stage.restart(self.log.log)
        self.others._name = "o"
        self.ears: dict[str, RecordingPeer] = {}
        self.all: list[RecordingPeer] = []
        self.replies: list[PendingReply] = []
        self.count = 0
        self.together = 0
        self.asked = self.answers = 0
        self.refused: list[tuple[str, Reason, str]] = []
        self.held = False

    async def begin(self) -> None:
        stage = self.stage
        await stage.open_room(CLAUDE, CODEX)
        await stage.send(BOB, session_join(BOB, Role.NAVIGATOR, Role.DRIVER))
        await stage.open_room(CLAUDE, room=OTHER)
        if not self.drives:
            for cell in stage.engine.streams.values():
                cell.chunk_streams = Forgetful()
        for room in (ROOM, OTHER):
            await stage.send(ALICE, prompt_submit(), "p", room=room)
            await stage.send(ALICE, prompt_submit(), START_ID, room=room)
            await stage.send(CLAUDE, ResponseStart("claude", "p"), "s0", room=room)
        await stage.send(CLAUDE, ThinkingStart("claude", "p", "approvers_only"), "t0")
        await stage.send(CLAUDE, ThinkingStart("claude", "p", ("bob",)), "t1")
        await stage.send(BOB, fork_create("Aside", CLAUDE), "f")
        await stage.send(BOB, prompt_submit(), "q", fork="aside")
        await stage.send(CLAUDE, ResponseStart("claude", "q"), "a0", fork="aside")
        self.ears = {name: self.stage.peers.get(who.principal) for name, who in EARS.items()}  # type: ignore[misc]
        self.ears["claude outside"] = stage.connect(CLAUDE)
        self.ears["dave"] = stage.connect(DAVE)
        self.all = [*self.ears.values(), self.stage.peers["alice"]]

    def read(self, name: str, sayings: list[Any]) -> None:
        """What one socket brings in one turn of the loop."""
        who, ear, engine = EARS[name], self.ears[name], self.stage.engine
        messages = [self.message(who, *each[:2]) for each in sayings for _ in range(each[2])]
        for pieces in batch_chunks(messages):
            if self.drives and engine.submit_chunks(pieces, who, self.hear, ear):
                self.together += len(pieces.ids)
                continue
            for message in pieces.messages():
                self.asked += 1
                engine.submit(f"room/{message.room}", Submission(message, who, self.hear, ear))

    def message(self, who: Actor, what: str, again: int | None) -> Message:
        body, ref, more = SAYINGS[what]
        id = f"m{self.count}" if again is None else f"m{again}"
        self.count += again is None
        known = {"room": ROOM} | more
        return Message(id=id, ts=to_iso(T0), sender=who.principal, body=body(who), ref=ref, **known)

    def hear(self, outcome: Outcome) -> None:
        self.answers += 1
        if (no := outcome.refusal) is not None:
            self.refused.append((outcome.submission.message.id, no.reason, no.detail))

    async def happen(self, what: str) -> None:
        """Something else, before the next read."""
        stage = self.stage
        if what == "fail":
            self.log.failing ^= {"append"}
        elif what == "hold":
            self.log.release("append") if self.held else self.log.hold("append")
            self.held = not self.held
        elif what == "others":
            self.count += 1
            reply = self.others.submit(
                ALICE, prompt_submit(content="From afar"), f"m{self.count - 1}"
            )
            await self.others.engine.wait_until_idle()
            assert reply
        elif what in {"watch", "drive"}:
            roles = [[Role.DRIVER], [Role.OBSERVER]][:: 1 if what == "watch" else -1]
            self.replies.append(stage.submit(ALICE, role_change(ALICE, CLAUDE, *roles)))
        elif what == "hang up":
            self.ears["claude"].disconnect()
        elif what == "come in":
            self.ears["claude"] = stage.connect(CLAUDE)
            self.all.append(self.ears["claude"])
            self.replies.append(stage.submit(CLAUDE, session_join(CLAUDE, Role.DRIVER), "j", "p"))
        else:
            await yield_to_loop(3)

    async def run(self, script: list[Any]) -> list[Any]:
        await self.begin()
        for step in script:
            if isinstance(step, str):
                await self.happen(step)
            else:
                self.read(*step)
        if self.held:
            self.log.release("append")
        await self.stage.engine.wait_until_idle()
        assert self.stage.engine.failures == []
        rows = [[r.body for r in await self.log.log.read(f"room/{r}")] for r in (ROOM, OTHER)]
        assert self.answers >= self.asked, "nobody answered"
        assert self.drives or self.answers == self.asked
        later = [reply.refusal for reply in self.replies]
        refused = [*self.refused, *((no.reason, no.detail) for no in later if no)]
        return [refused, rows, [(ear.close_reason, ear.received) for ear in self.all]]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "PAGE_ROWS", 5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scripts, st.sampled_from([SHORT, LONG]))
@example([("claude", [("piece", None, 2), ("end", None, 1), ("piece", None, 3)])], LONG)
@example([("claude", [("piece", None, 2), ("piece astray", None, 1), ("piece", None, 1)])], LONG)
@example(
    [("claude", [("piece", None, 2), ("piece in no fork", None, 1), ("piece", None, 1)])], LONG
)
@example([("claude", [("piece", None, 2), ("piece", 0, 2), ("long piece", 1, 2)])], LONG)
@example([("claude", [("piece", None, 2), ("thought astray", None, 2)])], LONG)
@example([("claude", [("piece", None, 2), ("piece that cites nothing", None, 2)])], LONG)
@example([("claude", [("thought for one", None, 3)])] * 2, LONG)
@example([("claude outside", [("piece", None, 3)])] * 2, LONG)
@example([("claude", [("piece in the fork", None, 3)])] * 2, LONG)
async def test_batched_chunks_have_the_same_result_as_single_ones(
    script: list[Any], window: int
) -> None:
    driven = await Play(window, drives=True).run(script)
    assert driven == await Play(window, drives=False).run(script)


async def test_scripts_do_use_the_batch_path() -> None:
    play = Play(drives=True)
    await play.run([("claude", [(what, None, 5)]) for what in ("piece", "thought") * 2])
    assert play.together == 2 * 5  # once the first has been decided by the rules
    assert play.stage.engine.streams[STREAM].chunk_streams
