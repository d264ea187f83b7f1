"""The chunk fast path must never give another result than the rules."""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from accord.core.kernel.actor import Actor, CredentialRights
from accord.core.kernel.limits import KIB, Limits
from accord.core.kernel.messages import Body, ChunkBatch, Message
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import to_iso
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.conversation.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.room_settings import ServerPolicy
from accord.engine.chunk_fast_path import MAX_CHUNK_STREAMS, ChunkStream
from accord.engine.committer import RECORD_OVERHEAD_BYTES
from accord.engine.streams.stream import Outcome, Submission
from accord.stores.memory import MemoryLog
from tests.helpers.engine.harness import EngineHarness, FaultyLog, PendingReply
from tests.helpers.room.chunk_batches import batch_chunks
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    ROOM,
    STREAM,
    T0,
    prompt_submit,
    role_change,
    session_join,
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
    "join": lambda who: session_join(who, Role.DRIVER),
}
steps = st.tuples(
    st.sampled_from((*["chunk"] * 12, *["think"] * 6, *SAYINGS, "watch", "drive", "fail")),
    st.sampled_from(SPEAKERS),
    st.sampled_from((*[None] * 5, "f")),
    st.booleans(),
)


class Forgetful(dict[str | None, ChunkStream]):
    """Knows of no flow, ever."""

    def __setitem__(self, *_: Any) -> None:
        pass


async def play(script: list[Any], flows: dict[str | None, ChunkStream]) -> list[Any]:
    """What everybody heard, and what was refused, with and without settling in between."""
    log = FaultyLog(MemoryLog())
    stage = EngineHarness(log)
    stage._name = "m"
    await stage.open_room(BOB, CLAUDE, CODEX)
    cell = stage.engine.streams[STREAM]
    cell.chunk_streams = flows
    await stage.send(ALICE, prompt_submit(), "p")
    await stage.send(CLAUDE, ResponseStart("claude", "p"), "s0")
    await stage.send(CODEX, ResponseStart("codex", "p"), "s1")
    await stage.send(CLAUDE, ThinkingStart("claude", "p", "approvers_only"), "t0")
    replies = []
    for number, (what, (who, ref), fork, settles) in enumerate(script):
        if what == "fail":
            log.failing ^= {"append"}
        elif what in {"watch", "drive"}:
            roles = [[Role.DRIVER], [Role.OBSERVER]][:: 1 if what == "watch" else -1]
            replies.append(stage.submit(ALICE, role_change(ALICE, who, *roles), f"m{number}"))
        else:
            body = SAYINGS[what](who)
            replies.append(stage.submit(who, body, f"m{number}", ref, fork=fork))
        if settles:
            await stage.engine.wait_until_idle()
    await stage.engine.wait_until_idle()
    refusals = [each.refusal and (each.refusal.reason, each.refusal.detail) for each in replies]
    rows = [row.body for row in await log.log.read(STREAM)]
    return [refusals, rows, {seat: ear.received for seat, ear in stage.peers.items()}]


@given(st.lists(steps, min_size=8, max_size=40))
async def test_remembered_result_equals_that_of_the_rules(script: list[Any]) -> None:
    assert await play(script, {}) == await play(script, Forgetful())


async def test_number_of_remembered_results_is_bounded() -> None:
    stage = EngineHarness()
    await stage.open_room(CLAUDE)
    await stage.send(ALICE, prompt_submit(), "p")
    cell = stage.engine.streams[STREAM]
    for number in range(MAX_CHUNK_STREAMS + 1):
        await stage.send(CLAUDE, ResponseStart("claude", "p"), f"s{number}")
    for number in range(MAX_CHUNK_STREAMS + 1):
        await stage.send(CLAUDE, ResponseChunk("x"), f"c{number}", f"s{number}")
        assert len(cell.chunk_streams) <= MAX_CHUNK_STREAMS
    await stage.send(CLAUDE, ResponseEnd("complete"), "e", "s0")
    assert not cell.chunk_streams


# One thing changes between two pieces


def ends(stage: EngineHarness) -> None:
    stage.submit(CLAUDE, ResponseEnd("complete"), "end", "s0")


def other_credential(stage: EngineHarness) -> Submission:
    fewer = replace(
        CLAUDE,
        credential=CredentialRights(roles=frozenset({Role.OBSERVER})),
        max_permissions=frozenset(),
    )
    return piece(stage, actor=fewer)


def other_sender(stage: EngineHarness) -> Submission:
    return piece(stage, sender="codex")


def cites(stage: EngineHarness) -> Submission:
    return piece(stage, causal_refs=("nothing",))


def other_kind(stage: EngineHarness) -> Submission:
    return piece(stage, body=ThinkingChunk("hm"))


def other_answer(stage: EngineHarness) -> Submission:
    return piece(stage, ref="p")


def elsewhere(stage: EngineHarness) -> Submission:
    return piece(stage, room="nowhere")


def in_a_fork(stage: EngineHarness) -> Submission:
    return piece(stage, fork="f")


def again(stage: EngineHarness) -> Submission:
    return piece(stage, id="c0")


def in_other_words(stage: EngineHarness) -> Submission:
    return piece(stage, body=ResponseChunk("other"), id="c0")


async def long_ago(stage: EngineHarness) -> Submission:
    for number in range(3):
        await stage.send(CLAUDE, ResponseChunk("x"), f"x{number}", "s0")
    return piece(stage, id="c0")


async def silence(stage: EngineHarness) -> None:
    for _ in range(40):
        await stage.run_heartbeats(10)
    assert "claude" in stage.engine.streams[STREAM].inactive


def piece(stage: EngineHarness, actor: Actor = CLAUDE, **other: Any) -> Submission:
    """A next piece, which differs in one thing."""
    usual: dict[str, Any] = {"id": "c1", "sender": "claude", "room": ROOM, "ref": "s0"}
    message = Message(ts=to_iso(T0), **({"body": ResponseChunk("more")} | usual | other))
    return Submission(message, actor, peer=stage.peers["claude"])


Way = Callable[[EngineHarness, Submission], None]


def submit(stage: EngineHarness, asked: Submission) -> None:
    stage.engine.submit(f"room/{asked.message.room}", asked)


def drive(stage: EngineHarness, asked: Submission) -> None:
    """Behind another piece, in the same turn of the loop, as from a socket."""
    before = piece(stage, id="b").message
    stage.engine.submit(STREAM, Submission(before, CLAUDE, peer=stage.peers["claude"]))
    assert asked.on_outcome is not None
    assert asked.peer is not None
    pieces = next(batch_chunks([asked.message]))
    if not stage.engine.submit_chunks(pieces, asked.actor, asked.on_outcome, asked.peer):
        submit(stage, asked)


async def after(change: Any, way: Way, flows: dict[str | None, ChunkStream]) -> tuple[Any, int]:
    """What comes of a piece after the change, and how often the store had to settle it."""
    stage = EngineHarness(window=2)
    stage._name = "m"
    await stage.open_room(CLAUDE, CODEX)
    stage.engine.streams[STREAM].chunk_streams = flows
    await stage.send(ALICE, prompt_submit(), "p")
    await stage.send(CLAUDE, ResponseStart("claude", "p"), "s0")
    await stage.send(CLAUDE, ResponseChunk("more"), "c0", "s0")
    asked = change(stage)
    if isawaitable(asked):
        asked = await asked
    asked = asked or piece(stage)
    reply = asked.on_outcome = PendingReply()
    way(stage, asked)
    await stage.engine.wait_until_idle()
    heard = [(seat, ear.received) for seat, ear in stage.peers.items()]
    refused = reply.refusal if reply else None  # whoever drives hears of trouble only
    said = refused and (refused.reason, refused.detail)
    rows = [row.body for row in await stage.log.read(STREAM)]
    return (said, heard, rows), stage.engine.counters.conflicts


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
async def test_chunk_after_a_change_is_decided_by_the_rules(
    change: Any, races: int, way: Way
) -> None:
    remembered = await after(change, way, {})
    assert remembered == await after(change, way, Forgetful())
    assert remembered[1] == races


async def streaming(limits: Limits | None = None) -> EngineHarness:
    policy = ServerPolicy(limits=limits or Limits())
    stage = EngineHarness(FaultyLog(MemoryLog()), policy=policy)
    await stage.open_room(CLAUDE)
    await stage.send(ALICE, prompt_submit(), "p")
    await stage.send(CLAUDE, ResponseStart("claude", "p"), "s0")
    await stage.send(CLAUDE, ResponseChunk("more"), "c0", "s0")
    return stage


def pieces(stage: EngineHarness, *ids: str) -> ChunkBatch:
    return next(batch_chunks(piece(stage, id=id).message for id in ids))


async def test_chunks_are_batched_until_the_answer_ends() -> None:
    stage = await streaming()
    ear, told = stage.peers["claude"], PendingReply()

    assert stage.engine.submit_chunks(pieces(stage, "c1", "c2", "c3"), CLAUDE, told, ear)
    stage.submit(CLAUDE, ResponseEnd("complete"), "end", "s0")
    assert not stage.engine.submit_chunks(pieces(stage, "c4", "c5"), CLAUDE, told, ear)
    await stage.wait_until_idle()

    assert stage.peers["alice"].ids[-4:] == ["c1", "c2", "c3", "end"]
    assert stage.engine.counters.accepted[ResponseChunk] == 4
    assert not told


@pytest.mark.parametrize("ids", [("c1", "c1"), ("c1", "c0"), ("c0", "c1")])
async def test_chunks_are_not_batched_with_a_repeated_id(ids: tuple[str, ...]) -> None:
    stage = await streaming()
    assert not stage.engine.submit_chunks(
        pieces(stage, *ids), CLAUDE, PendingReply(), stage.peers["claude"]
    )


async def test_old_repeated_chunks_are_looked_up_in_one_query() -> None:
    stage = EngineHarness(window=2)
    await stage.open_room(CLAUDE)
    await stage.send(ALICE, prompt_submit(), "p")
    await stage.send(CLAUDE, ResponseStart("claude", "p"), "s0")
    old = [f"o{number}" for number in range(20)]
    for id in old:
        await stage.send(CLAUDE, ResponseChunk("more"), id, "s0")
    told: list[tuple[str, bool]] = []

    def hear(outcome: Outcome) -> None:
        told.append((outcome.submission.message.id, outcome.is_retry))

    ids = ["n0", *old[:10], "n1"]
    assert stage.engine.submit_chunks(pieces(stage, *ids), CLAUDE, hear, stage.peers["claude"])
    for id in (*old[:10], "n2"):  # and once more, before the store has said anything
        again = piece(stage, id=id).message
        stage.engine.submit(STREAM, Submission(again, CLAUDE, hear, stage.peers["claude"]))
    await stage.engine.wait_until_idle()

    assert stage.engine.counters.conflicts == 1
    assert [id for id, again in told if again] == old[:10] * 2
    assert stage.peers["alice"].ids[-3:] == ["n0", "n1", "n2"]


async def test_chunks_queue_behind_waiting_messages() -> None:
    stage = await streaming()
    cell, ear = stage.engine.streams[STREAM], stage.peers["claude"]
    cell.hold_count += 1
    assert not stage.engine.submit_chunks(pieces(stage, "c1", "c2"), CLAUDE, PendingReply(), ear)
    cell.hold_count -= 1
    cell.queue.append(piece(stage))
    assert not stage.engine.submit_chunks(pieces(stage, "c1", "c2"), CLAUDE, PendingReply(), ear)


async def test_batched_chunks_count_for_backpressure_like_single_ones() -> None:
    stage = await streaming(Limits(unstored=8 * KIB))
    log, ear, load = stage.log, stage.peers["claude"], stage.engine.backpressure
    assert isinstance(log, FaultyLog)
    log.hold("append")

    assert stage.engine.submit_chunks(pieces(stage, "c1", "c2", "c3"), CLAUDE, PendingReply(), ear)
    assert load.unstored_bytes > 3 * RECORD_OVERHEAD_BYTES
    assert stage.engine.submit_chunks(
        pieces(stage, *map(str, range(8))), CLAUDE, PendingReply(), ear
    )
    assert load.unstored_bytes > 8 * KIB
    assert not stage.engine.submit_chunks(pieces(stage, "c4", "c5"), CLAUDE, PendingReply(), ear)
    log.release()
    await stage.engine.wait_until_idle()
    assert load.unstored_bytes == 0


async def test_batched_chunks_that_cannot_be_stored_are_refused_one_by_one() -> None:
    stage = await streaming()
    refused: list[tuple[str, Reason]] = []

    def hear(outcome: Outcome) -> None:
        assert outcome.refusal
        refused.append((outcome.submission.message.id, outcome.refusal.reason))

    log = stage.log
    assert isinstance(log, FaultyLog)
    log.failing.add("append")
    assert stage.engine.submit_chunks(
        pieces(stage, "c1", "c2"), CLAUDE, hear, stage.peers["claude"]
    )
    await stage.engine.wait_until_idle()
    assert refused == [("c1", Reason.UNAVAILABLE), ("c2", Reason.UNAVAILABLE)]
    assert stage.peers["alice"].ids[-1] == "c0"
    assert stage.engine.backpressure.unstored_bytes == 0


async def test_chunk_that_fails_on_the_fast_path_takes_the_ordinary_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = await streaming()
    for way in ("record", "records"):
        monkeypatch.setattr(ChunkStream, way, lambda *_: 1 / 0)

    ear = stage.peers["claude"]
    assert not stage.engine.submit_chunks(pieces(stage, "c1", "c2"), CLAUDE, PendingReply(), ear)
    reply = stage.submit(CLAUDE, ResponseChunk("more"), "c1", "s0")
    assert reply.refusal
    assert reply.refusal.reason is Reason.INTERNAL
