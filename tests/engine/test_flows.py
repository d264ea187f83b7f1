"""What flows is decided once while nothing changes; it must not make any difference."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Body
from accord.core.room.members import SessionLeave
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.engine.cell import MOST_FLOWS, Flow
from accord.stores.memory import MemoryLog
from tests.helpers.engine import Stage, Tricky
from tests.helpers.room import ALICE, BOB, CLAUDE, CODEX, STREAM, changes_roles, joins, prompts

SPEAKERS = (
    *[(CLAUDE, "s0")] * 4,
    *[(CODEX, "s1")] * 2,
    *[(CLAUDE, "t0")] * 2,
    (CLAUDE, None),
    (CODEX, "s0"),
    (BOB, "s0"),
    (CLAUDE, "p"),
    (CODEX, "nothing"),
)
Say = Callable[[Actor], Body]
SAYINGS: dict[str, Say] = {
    "chunk": lambda _: ResponseChunk("more"),
    "think": lambda _: ThinkingChunk("hm"),
    "end": lambda _: ResponseEnd("complete"),
    "think no more": lambda _: ThinkingEnd(),
    "leave": lambda _: SessionLeave(),
    "join": lambda who: joins(who, Role.DRIVER),
}
steps = st.tuples(
    st.sampled_from((*["chunk"] * 12, *["think"] * 6, *SAYINGS, "watch", "drive", "fail")),
    st.sampled_from(SPEAKERS),
    st.sampled_from((*[None] * 5, "f")),
    st.booleans(),
)


class Forgetful(dict[str | None, Flow]):
    """Knows of no flow, ever."""

    def __setitem__(self, *_: Any) -> None:
        pass


async def play(script: list[Any], flows: dict[str | None, Flow]) -> list[Any]:
    """What everybody heard, and what was refused, with and without settling in between."""
    log = Tricky(MemoryLog())
    stage = Stage(log)
    stage._name = "m"
    await stage.open(BOB, CLAUDE, CODEX)
    cell = stage.engine.cells[STREAM]
    cell.flows = flows
    await stage.say(ALICE, prompts(), "p")
    await stage.say(CLAUDE, ResponseStart("claude", "p"), "s0")
    await stage.say(CODEX, ResponseStart("codex", "p"), "s1")
    await stage.say(CLAUDE, ThinkingStart("claude", "p", "approvers_only"), "t0")
    replies = []
    for number, (what, (who, ref), fork, settles) in enumerate(script):
        if what == "fail":
            log.failing ^= {"append"}
        elif what in {"watch", "drive"}:
            roles = [[Role.DRIVER], [Role.OBSERVER]][:: 1 if what == "watch" else -1]
            replies.append(stage.ask(ALICE, changes_roles(ALICE, who, *roles), f"m{number}"))
        else:
            body = SAYINGS[what](who)
            replies.append(stage.ask(who, body, f"m{number}", ref, fork=fork))
        if settles:
            await stage.engine.settle()
    await stage.engine.settle()
    refusals = [each.refused and (each.refused.why, each.refused.detail) for each in replies]
    rows = [row.body for row in await log.log.read(STREAM)]
    return [refusals, rows, {seat: ear.heard for seat, ear in stage.ears.items()}]


@given(st.lists(steps, min_size=8, max_size=40))
async def test_a_flow_that_is_remembered_decides_what_the_rules_do(script: list[Any]) -> None:
    assert await play(script, {}) == await play(script, Forgetful())


async def test_so_many_flows_are_remembered() -> None:
    stage = Stage()
    await stage.open(CLAUDE)
    await stage.say(ALICE, prompts(), "p")
    cell = stage.engine.cells[STREAM]
    for number in range(MOST_FLOWS + 1):
        await stage.say(CLAUDE, ResponseStart("claude", "p"), f"s{number}")
    for number in range(MOST_FLOWS + 1):
        await stage.say(CLAUDE, ResponseChunk("x"), f"c{number}", f"s{number}")
        assert len(cell.flows) <= MOST_FLOWS
    await stage.say(CLAUDE, ResponseEnd("complete"), "e", "s0")
    assert not cell.flows
