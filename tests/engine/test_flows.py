"""What flows is decided once while nothing changes; it must not make any difference."""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from accord.core.kernel.actor import Actor, Grant
from accord.core.kernel.authority import Role
from accord.core.kernel.limits import KIB, Limits
from accord.core.kernel.log import Body, Message, Pieces
from accord.core.kernel.refusal import Why
from accord.core.kernel.times import iso
from accord.core.room.members import SessionLeave
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.engine.cell import MOST_FLOWS, Asked, Outcome
from accord.engine.flow import Flow
from accord.engine.load import OVERHEAD, Load
from accord.engine.run import take
from accord.stores.memory import MemoryLog
from tests.helpers.engine import Reply, Stage, Tricky
from tests.helpers.pieces import alike
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    ROOM,
    STREAM,
    T0,
    changes_roles,
    joins,
    prompts,
)

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


# One thing changes between two pieces


def ends(stage: Stage) -> None:
    stage.ask(CLAUDE, ResponseEnd("complete"), "end", "s0")


def other_credential(stage: Stage) -> Asked:
    fewer = replace(CLAUDE, grant=Grant(roles=frozenset({Role.OBSERVER})), ceiling=frozenset())
    return piece(stage, actor=fewer)


def other_sender(stage: Stage) -> Asked:
    return piece(stage, sender="codex")


def cites(stage: Stage) -> Asked:
    return piece(stage, causal_refs=("nothing",))


def other_kind(stage: Stage) -> Asked:
    return piece(stage, body=ThinkingChunk("hm"))


def other_answer(stage: Stage) -> Asked:
    return piece(stage, ref="p")


def elsewhere(stage: Stage) -> Asked:
    return piece(stage, room="nowhere")


def in_a_fork(stage: Stage) -> Asked:
    return piece(stage, fork="f")


def again(stage: Stage) -> Asked:
    return piece(stage, id="c0")


def in_other_words(stage: Stage) -> Asked:
    return piece(stage, body=ResponseChunk("other"), id="c0")


async def long_ago(stage: Stage) -> Asked:
    for number in range(3):
        await stage.say(CLAUDE, ResponseChunk("x"), f"x{number}", "s0")
    return piece(stage, id="c0")


async def silence(stage: Stage) -> None:
    for _ in range(40):
        await stage.beat(10)
    assert "claude" in stage.engine.cells[STREAM].quiet


def piece(stage: Stage, actor: Actor = CLAUDE, **other: Any) -> Asked:
    """A next piece, which differs in one thing."""
    usual: dict[str, Any] = {"id": "c1", "sender": "claude", "room": ROOM, "ref": "s0"}
    message = Message(ts=iso(T0), **({"body": ResponseChunk("more")} | usual | other))
    return Asked(message, actor, peer=stage.ears["claude"])


Way = Callable[[Stage, Asked], None]


def submit(stage: Stage, asked: Asked) -> None:
    stage.engine.submit(f"room/{asked.message.room}", asked)


def drive(stage: Stage, asked: Asked) -> None:
    """Behind another piece, in the same turn of the loop, as from a socket."""
    before = piece(stage, id="b").message
    stage.engine.submit(STREAM, Asked(before, CLAUDE, peer=stage.ears["claude"]))
    assert asked.answer is not None
    assert asked.peer is not None
    pieces = next(alike([asked.message]))
    if not take(stage.engine, pieces, asked.actor, asked.answer, asked.peer):
        submit(stage, asked)


async def after(change: Any, way: Way, flows: dict[str | None, Flow]) -> tuple[Any, int]:
    """What comes of a piece after the change, and how often the store had to settle it."""
    stage = Stage(window=2)
    stage._name = "m"
    await stage.open(CLAUDE, CODEX)
    stage.engine.cells[STREAM].flows = flows
    await stage.say(ALICE, prompts(), "p")
    await stage.say(CLAUDE, ResponseStart("claude", "p"), "s0")
    await stage.say(CLAUDE, ResponseChunk("more"), "c0", "s0")
    asked = change(stage)
    if isawaitable(asked):
        asked = await asked
    asked = asked or piece(stage)
    reply = asked.answer = Reply()
    way(stage, asked)
    await stage.engine.settle()
    heard = [(seat, ear.heard) for seat, ear in stage.ears.items()]
    refused = reply.refused if reply else None  # whoever drives hears of trouble only
    said = refused and (refused.why, refused.detail)
    rows = [row.body for row in await stage.log.read(STREAM)]
    return (said, heard, rows), stage.engine.tally.races


CHANGES = {
    "nothing": (lambda _: None, 0),
    "it ended": (ends, 0),
    "another credential": (other_credential, 0),
    "another sender": (other_sender, 0),
    "it cites what is not there": (cites, 0),
    "another kind": (other_kind, 0),
    "another answer": (other_answer, 0),
    "in another room": (elsewhere, 0),
    "in a fork": (in_a_fork, 0),
    "said again": (again, 0),
    "the same id for other words": (in_other_words, 0),
    "said again, long after": (long_ago, 1),
    "after a long silence": (silence, 0),
}


@pytest.mark.parametrize("way", [submit, drive])
@pytest.mark.parametrize(("change", "races"), CHANGES.values(), ids=CHANGES)
async def test_a_piece_after_a_change_is_decided_by_the_rules(
    change: Any, races: int, way: Way
) -> None:
    remembered = await after(change, way, {})
    assert remembered == await after(change, way, Forgetful())
    assert remembered[1] == races


async def streaming() -> Stage:
    stage = Stage(Tricky(MemoryLog()))
    await stage.open(CLAUDE)
    await stage.say(ALICE, prompts(), "p")
    await stage.say(CLAUDE, ResponseStart("claude", "p"), "s0")
    await stage.say(CLAUDE, ResponseChunk("more"), "c0", "s0")
    return stage


def pieces(stage: Stage, *ids: str) -> Pieces:
    return next(alike(piece(stage, id=id).message for id in ids))


async def test_pieces_are_taken_together_until_the_answer_ends() -> None:
    stage = await streaming()
    ear, told = stage.ears["claude"], Reply()

    assert take(stage.engine, pieces(stage, "c1", "c2", "c3"), CLAUDE, told, ear)
    stage.ask(CLAUDE, ResponseEnd("complete"), "end", "s0")
    assert not take(stage.engine, pieces(stage, "c4", "c5"), CLAUDE, told, ear)
    await stage.settle()

    assert stage.ears["alice"].ids[-4:] == ["c1", "c2", "c3", "end"]
    assert stage.engine.tally.taken[ResponseChunk] == 4
    assert not told


@pytest.mark.parametrize("ids", [("c1", "c1"), ("c1", "c0"), ("c0", "c1")])
async def test_pieces_are_not_taken_together_when_one_comes_again(ids: tuple[str, ...]) -> None:
    stage = await streaming()
    assert not take(stage.engine, pieces(stage, *ids), CLAUDE, Reply(), stage.ears["claude"])


async def test_old_pieces_that_come_again_together_are_looked_up_together() -> None:
    stage = Stage(window=2)
    await stage.open(CLAUDE)
    await stage.say(ALICE, prompts(), "p")
    await stage.say(CLAUDE, ResponseStart("claude", "p"), "s0")
    old = [f"o{number}" for number in range(20)]
    for id in old:
        await stage.say(CLAUDE, ResponseChunk("more"), id, "s0")
    told: list[tuple[str, bool]] = []

    def hear(outcome: Outcome) -> None:
        told.append((outcome.asked.message.id, outcome.again))

    ids = ["n0", *old[:10], "n1"]
    assert take(stage.engine, pieces(stage, *ids), CLAUDE, hear, stage.ears["claude"])
    for id in (*old[:10], "n2"):  # and once more, before the store has said anything
        again = piece(stage, id=id).message
        stage.engine.submit(STREAM, Asked(again, CLAUDE, hear, stage.ears["claude"]))
    await stage.engine.settle()

    assert stage.engine.tally.races == 1
    assert [id for id, again in told if again] == old[:10] * 2
    assert stage.ears["alice"].ids[-3:] == ["n0", "n1", "n2"]


async def test_pieces_wait_behind_what_waits() -> None:
    stage = await streaming()
    cell, ear = stage.engine.cells[STREAM], stage.ears["claude"]
    cell.busy += 1
    assert not take(stage.engine, pieces(stage, "c1", "c2"), CLAUDE, Reply(), ear)
    cell.busy -= 1
    cell.queue.append(piece(stage))
    assert not take(stage.engine, pieces(stage, "c1", "c2"), CLAUDE, Reply(), ear)


async def test_pieces_weigh_as_much_together_as_one_by_one() -> None:
    stage = await streaming()
    log, ear = stage.log, stage.ears["claude"]
    assert isinstance(log, Tricky)
    stage.engine.load = load = Load(Limits(unstored=8 * KIB))
    log.hold("append")

    assert take(stage.engine, pieces(stage, "c1", "c2", "c3"), CLAUDE, Reply(), ear)
    assert load.bytes > 3 * OVERHEAD
    assert take(stage.engine, pieces(stage, *map(str, range(8))), CLAUDE, Reply(), ear)
    assert load.bytes > 8 * KIB
    assert not take(stage.engine, pieces(stage, "c4", "c5"), CLAUDE, Reply(), ear)
    log.release()
    await stage.engine.settle()
    assert load.bytes == 0


async def test_pieces_taken_together_that_cannot_be_kept_are_refused_one_by_one() -> None:
    stage = await streaming()
    refused: list[tuple[str, Why]] = []

    def hear(outcome: Outcome) -> None:
        assert outcome.refused
        refused.append((outcome.asked.message.id, outcome.refused.why))

    log = stage.log
    assert isinstance(log, Tricky)
    log.failing.add("append")
    assert take(stage.engine, pieces(stage, "c1", "c2"), CLAUDE, hear, stage.ears["claude"])
    await stage.engine.settle()
    assert refused == [("c1", Why.UNAVAILABLE), ("c2", Why.UNAVAILABLE)]
    assert stage.ears["alice"].ids[-1] == "c0"
    assert stage.engine.load.bytes == 0


async def test_what_fails_on_the_short_way_is_answered_on_the_long_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = await streaming()
    for way in ("record", "records"):
        monkeypatch.setattr(Flow, way, lambda *_: 1 / 0)

    ear = stage.ears["claude"]
    assert not take(stage.engine, pieces(stage, "c1", "c2"), CLAUDE, Reply(), ear)
    reply = stage.ask(CLAUDE, ResponseChunk("more"), "c1", "s0")
    assert reply.refused
    assert reply.refused.why is Why.INTERNAL
