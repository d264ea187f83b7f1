"""Messages of a fork reach its members only, live and replayed, until it is merged."""

import json

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.views import sessions
from accord.engine.delivery import joining as arrivals_module
from accord.transports.http.sessions import SessionReader
from tests.engine.conftest import Make
from tests.engine.test_two_processes import following, quiet
from tests.helpers.engine.harness import EngineHarness, FaultyLog, RecordingPeer, yield_to_loop
from tests.helpers.room.logged_room import (
    START_ID,
    fork_create,
    fork_switch,
    merge_execute,
    merge_propose,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    prompt_submit,
    session_join,
    tool_approve,
    tool_execute,
    tool_propose,
    tool_result,
)
from tests.spec import proves

INSIDE = ("bob", "claude")
OUTSIDE = ("alice", "carol")


async def begin(stage: EngineHarness) -> None:
    """Bob, who may approve, and Claude go aside; Alice the admin and Carol stay."""
    await stage.open_room(CAROL, CLAUDE)
    await stage.send(BOB, session_join(BOB, Role.NAVIGATOR, Role.DRIVER))
    await stage.send(ALICE, prompt_submit(), START_ID)
    await stage.send(BOB, fork_create("Aside", CLAUDE), "f")


async def talk(stage: EngineHarness) -> list[str]:
    """A prompt, an answer and a gated tool inside; the ids of what came of it."""
    seen = len(stage.peers["bob"].ids)
    await stage.send(BOB, prompt_submit(), "q", fork="aside")
    await stage.send(CLAUDE, ResponseStart("claude", "q"), "a", fork="aside")
    await stage.send(CLAUDE, ResponseChunk("Well"), "c", "a")
    await stage.send(CLAUDE, ResponseEnd("complete"), "e", "a", fork="aside")
    await stage.send(CLAUDE, tool_propose(), "t", fork="aside")
    await stage.send(BOB, tool_approve(BOB, "t"), "y", fork="aside")
    await stage.send(CLAUDE, tool_execute("t"), "x", fork="aside")
    await stage.send(CLAUDE, tool_result("t"), "z", fork="aside")
    return stage.peers["bob"].ids[seen:]


async def merge(stage: EngineHarness, strategy: MergeStrategy = MergeStrategy.APPEND) -> None:
    await stage.send(BOB, merge_propose("aside", strategy=strategy), "m")
    await stage.send(BOB, merge_execute("m"), "done")


async def back(stage: EngineHarness, who: Actor, ref: str | None = None) -> RecordingPeer:
    """Somebody comes in on a new connection."""
    ear = stage.connect(who)
    await stage.send(who, session_join(who, Role.DRIVER), ref=ref)
    return ear


async def read(stage: EngineHarness, who: Actor) -> list[str]:
    """The ids in somebody's transcript."""
    archive = SessionReader(stage.engine)
    page = await archive.read_transcript(
        await archive.readable_room("r", who), who.principal, 0, 1000
    )
    return [json.loads(frame)["id"] for frame in page.frames]


@proves("OPEN-46", "PVP-16.1-2")
async def test_fork_is_announced_to_all_members(stage: EngineHarness) -> None:
    await begin(stage)

    for ear in stage.peers.values():
        (told,) = (each for each in ear.received if each["id"] == "f")
        assert told["fork"] == "aside"
    assert "f" in (await back(stage, DAVE)).ids


@proves("PVP-16.1-3", "PVP-3.2-1", "OPEN-47", "UNI-12")
async def test_fork_messages_reach_fork_members_only(stage: EngineHarness) -> None:
    await begin(stage)
    said = await talk(stage)

    assert len(said) >= 8
    for seat in INSIDE:
        assert {*said} <= {*stage.peers[seat].ids}
    for seat in OUTSIDE:
        assert not {*said} & {*stage.peers[seat].ids}
        assert {"q", "t"}.isdisjoint(str(stage.peers[seat].received).split("'"))
    await stage.send(ALICE, prompt_submit(), "trunk")
    assert all("trunk" in ear.ids for ear in stage.peers.values())


@proves("OPEN-37", "OPEN-47", "UNI-12")
@pytest.mark.parametrize("ref", [None, START_ID])
@pytest.mark.parametrize("who", [ALICE, BOB, CAROL, CLAUDE, DAVE])
async def test_replay_shows_fork_messages_to_fork_members_only(
    stage: EngineHarness, who: Actor, ref: str | None
) -> None:
    await begin(stage)
    said = await talk(stage)

    ear = await back(stage, who, None if who is DAVE else ref)

    mine = [id for id in ear.ids if id in said]
    assert mine == (said if who.principal in INSIDE else [])
    assert [id for id in await read(stage, who) if id in said] == mine


@proves("OPEN-37", "OPEN-47", "UNI-12")
@pytest.mark.parametrize("who", [ALICE, BOB, CAROL])
async def test_paged_replay_shows_fork_messages_to_fork_members_only(
    make: Make, who: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals_module, "PAGE_ROWS", 2)
    stage = make(window=3)
    await begin(stage)
    said = await talk(stage)

    ear = await back(stage, who, START_ID)

    assert [id for id in ear.ids if id in said] == (said if who.principal in INSIDE else [])
    assert ear.seqs == sorted(set(ear.seqs))


@proves("UNI-9", "UNI-12", "OPEN-47")
async def test_fork_records_of_another_process_reach_fork_members_only(make: Make) -> None:
    one = make()
    await begin(one)
    two = one.restart()
    async with following(one, two):
        await two.send(BOB, prompt_submit(), "q", fork="aside", ear=two.connect(BOB))
        await quiet(one, two)

    assert [seat for seat, ear in one.peers.items() if "q" in ear.ids] == ["claude", "bob"]
    await two.close()


@proves("OPEN-35", "OPEN-47", "UNI-12")
@pytest.mark.parametrize("who", [ALICE, CAROL])
async def test_outsider_cannot_cite_or_probe_fork_messages(
    stage: EngineHarness, who: Actor
) -> None:
    await begin(stage)
    said = await talk(stage)
    await stage.send(CLAUDE, tool_propose(), "open", fork="aside")
    await stage.send(CLAUDE, ResponseStart("claude", "q"), "answer", fork="aside")
    gate = next(iter((await stage.state()).gates))

    for id in (*said, "open", gate, "answer", "never"):
        for cite in ({"ref": id}, {"causal_refs": (id,)}):
            with pytest.raises(Refused, match=f"^No such message here: {id}$"):
                await stage.send(who, prompt_submit(), **cite)
    await stage.send(BOB, prompt_submit(), ref="open")


@proves("OPEN-47", "OPEN-35")
async def test_fork_member_can_cite_undurable_messages(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(BOB, CLAUDE)
    await stage.send(ALICE, prompt_submit(), START_ID)
    log.hold("append")
    replies = [
        stage.submit(ALICE, fork_create("Aside", CLAUDE), "f"),
        stage.submit(ALICE, prompt_submit(), "q", fork="aside"),
        stage.submit(CLAUDE, ResponseStart("claude", "q"), "a", fork="aside"),
    ]
    outsider = stage.submit(BOB, prompt_submit(), ref="q")
    await yield_to_loop()
    log.release()
    await stage.wait_until_idle()

    assert all(reply.records for reply in replies)
    assert outsider.refusal


@proves("OPEN-47")
async def test_admin_who_joins_a_fork_can_read_its_history(stage: EngineHarness) -> None:
    await begin(stage)
    said = await talk(stage)
    await stage.send(ALICE, fork_switch("aside"))
    await stage.send(BOB, prompt_submit(), "later", fork="aside")

    assert "later" in stage.peers["alice"].ids
    assert {*said} <= {*(await back(stage, ALICE)).ids}
    assert "later" not in stage.peers["carol"].ids
    with pytest.raises(Refused):
        await stage.send(CAROL, fork_switch("aside"))


@proves("OPEN-48", "UNI-12")
@pytest.mark.parametrize(
    "strategy", [MergeStrategy.APPEND, MergeStrategy.INTERLEAVE, MergeStrategy.MANUAL]
)
async def test_merged_fork_is_visible_to_all_in_replay_and_transcript(
    stage: EngineHarness, strategy: MergeStrategy
) -> None:
    await begin(stage)
    said = await talk(stage)
    await merge(stage, strategy)

    for who in (ALICE, BOB, CAROL, CLAUDE, DAVE):
        ear = await back(stage, who)
        assert [id for id in ear.ids if id in said] == said
        assert [id for id in await read(stage, who) if id in said] == said
    with pytest.raises(Refused):
        await stage.send(BOB, prompt_submit(), fork="aside")
    await stage.send(CAROL, prompt_submit(), ref="q")


@proves("OPEN-47", "OPEN-48", "UNI-12")
async def test_nested_fork_is_merged_for_readers_of_the_outer_fork(
    stage: EngineHarness,
) -> None:
    await begin(stage)
    await stage.send(BOB, fork_create("Deeper"), fork="aside")
    await stage.send(BOB, prompt_submit(), "q", fork="aside")
    await stage.send(BOB, fork_create("Note", point="q"), fork="aside")
    with pytest.raises(Refused):
        await stage.send(CLAUDE, prompt_submit(), fork="deeper")
    await stage.send(BOB, merge_propose("deeper", "aside"), "m")
    await stage.send(BOB, merge_execute("m"), "done")

    assert "done" in stage.peers["claude"].ids
    assert {"m", "done"}.isdisjoint(stage.peers["carol"].ids)
    assert {"m", "done", "q"}.isdisjoint((await back(stage, CAROL)).ids)


@proves("OPEN-47", "UNI-12")
async def test_session_detail_shows_fork_gates_to_fork_members_only(
    stage: EngineHarness,
) -> None:
    await begin(stage)
    await stage.send(CLAUDE, tool_propose(), "t", fork="aside")
    room = await stage.state()

    for seat in (*INSIDE, *OUTSIDE):
        seen = sessions.session_detail(room, seat)
        count = 1 if seat in INSIDE else 0
        assert (len(seen["gates"]), len(seen["tools"]), seen["open_gates"]) == (count,) * 3
