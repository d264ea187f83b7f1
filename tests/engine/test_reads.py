"""What arrives in one read of a socket may be taken together; nobody can tell whether it was."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Why
from accord.core.kernel.times import iso
from accord.core.room.interrupts import InterruptRaise
from accord.core.room.members import SessionLeave
from accord.core.room.state import Urgency
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.thinking import ThinkingChunk, ThinkingStart
from accord.engine import arrivals, run
from accord.engine.cell import Asked, Outcome
from accord.engine.flow import Flow
from accord.stores.memory import MemoryLog
from tests.helpers.engine import Ear, Reply, Stage, Tricky, turns
from tests.helpers.forks import START, forks
from tests.helpers.pieces import alike
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    DAVE,
    ROOM,
    STREAM,
    T0,
    changes_roles,
    joins,
    prompts,
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
    "join": (lambda who: joins(who, Role.DRIVER), None, {}),
    "back": (lambda who: joins(who, Role.DRIVER), "p", {}),
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


class Forgetful(dict[str | None, Flow]):
    """Knows of no flow, ever."""

    def __setitem__(self, *_: Any) -> None:
        pass


class Play:
    """A script, and what everybody heard of it."""

    def __init__(self, window: int = SHORT, *, drives: bool) -> None:
        self.drives = drives
        self.log = Tricky(MemoryLog())
        self.stage = Stage(self.log, window=window)
        self.stage._name = "m"
        self.others = self.stage.again(self.log.log)
        self.others._name = "o"
        self.ears: dict[str, Ear] = {}
        self.all: list[Ear] = []
        self.replies: list[Reply] = []
        self.count = 0
        self.together = 0
        self.asked = self.answers = 0
        self.refused: list[tuple[str, Why, str]] = []
        self.held = False

    async def begin(self) -> None:
        stage = self.stage
        await stage.open(CLAUDE, CODEX)
        await stage.say(BOB, joins(BOB, Role.NAVIGATOR, Role.DRIVER))
        await stage.open(CLAUDE, room=OTHER)
        if not self.drives:
            for cell in stage.engine.cells.values():
                cell.flows = Forgetful()
        for room in (ROOM, OTHER):
            await stage.say(ALICE, prompts(), "p", room=room)
            await stage.say(ALICE, prompts(), START, room=room)
            await stage.say(CLAUDE, ResponseStart("claude", "p"), "s0", room=room)
        await stage.say(CLAUDE, ThinkingStart("claude", "p", "approvers_only"), "t0")
        await stage.say(CLAUDE, ThinkingStart("claude", "p", ("bob",)), "t1")
        await stage.say(BOB, forks("Aside", CLAUDE), "f")
        await stage.say(BOB, prompts(), "q", fork="aside")
        await stage.say(CLAUDE, ResponseStart("claude", "q"), "a0", fork="aside")
        self.ears = {name: self.stage.ears.get(who.seat) for name, who in EARS.items()}  # type: ignore[misc]
        self.ears["claude outside"] = stage.connect(CLAUDE)
        self.ears["dave"] = stage.connect(DAVE)
        self.all = [*self.ears.values(), self.stage.ears["alice"]]

    def read(self, name: str, sayings: list[Any]) -> None:
        """What one socket brings in one turn of the loop."""
        who, ear, engine = EARS[name], self.ears[name], self.stage.engine
        messages = [self.message(who, *each[:2]) for each in sayings for _ in range(each[2])]
        for pieces in alike(messages):
            if self.drives and run.take(engine, pieces, who, self.hear, ear):
                self.together += len(pieces.ids)
                continue
            for message in pieces.each():
                self.asked += 1
                engine.submit(f"room/{message.room}", Asked(message, who, self.hear, ear))

    def message(self, who: Actor, what: str, again: int | None) -> Message:
        body, ref, more = SAYINGS[what]
        id = f"m{self.count}" if again is None else f"m{again}"
        self.count += again is None
        known = {"room": ROOM} | more
        return Message(id=id, ts=iso(T0), sender=who.seat, body=body(who), ref=ref, **known)

    def hear(self, outcome: Outcome) -> None:
        self.answers += 1
        if (no := outcome.refused) is not None:
            self.refused.append((outcome.asked.message.id, no.why, no.detail))

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
            reply = self.others.ask(ALICE, prompts(content="From afar"), f"m{self.count - 1}")
            await self.others.engine.settle()
            assert reply
        elif what in {"watch", "drive"}:
            roles = [[Role.DRIVER], [Role.OBSERVER]][:: 1 if what == "watch" else -1]
            self.replies.append(stage.ask(ALICE, changes_roles(ALICE, CLAUDE, *roles)))
        elif what == "hang up":
            self.ears["claude"].hang_up()
        elif what == "come in":
            self.ears["claude"] = stage.connect(CLAUDE)
            self.all.append(self.ears["claude"])
            self.replies.append(stage.ask(CLAUDE, joins(CLAUDE, Role.DRIVER), "j", "p"))
        else:
            await turns(3)

    async def run(self, script: list[Any]) -> list[Any]:
        await self.begin()
        for step in script:
            if isinstance(step, str):
                await self.happen(step)
            else:
                self.read(*step)
        if self.held:
            self.log.release("append")
        await self.stage.engine.settle()
        assert self.stage.engine.failures == []
        rows = [[r.body for r in await self.log.log.read(f"room/{r}")] for r in (ROOM, OTHER)]
        assert self.answers >= self.asked, "nobody answered"
        assert self.drives or self.answers == self.asked
        later = [reply.refused for reply in self.replies]
        refused = [*self.refused, *((no.why, no.detail) for no in later if no)]
        return [refused, rows, [(ear.closed, ear.heard) for ear in self.all]]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "PAGE", 5)


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
async def test_what_is_taken_together_comes_to_the_same(script: list[Any], window: int) -> None:
    driven = await Play(window, drives=True).run(script)
    assert driven == await Play(window, drives=False).run(script)


async def test_pieces_are_taken_together_in_these_plays() -> None:
    play = Play(drives=True)
    await play.run([("claude", [(what, None, 5)]) for what in ("piece", "thought") * 2])
    assert play.together == 2 * 5  # once the first has been decided by the rules
    assert play.stage.engine.cells[STREAM].flows
