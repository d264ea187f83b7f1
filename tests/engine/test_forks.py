"""Forks: what is said inside is for those inside, live and replayed, until it is merged."""

import json

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Refused
from accord.core.room.state import Strategy
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.views import sessions
from accord.engine import arrivals as arrivals_module
from accord.transports.archive import Archive
from tests.engine.conftest import Make
from tests.engine.test_two_engines import following, quiet
from tests.helpers.engine import Ear, Stage, Tricky, turns
from tests.helpers.forks import START, executes_merge, forks, merges, switches
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    approves_tool,
    executes,
    finishes,
    joins,
    prompts,
    proposes,
)
from tests.spec import proves

INSIDE = ("bob", "claude")
OUTSIDE = ("alice", "carol")


async def begin(stage: Stage) -> None:
    """Bob, who may approve, and Claude go aside; Alice the admin and Carol stay."""
    await stage.open(CAROL, CLAUDE)
    await stage.say(BOB, joins(BOB, Role.NAVIGATOR, Role.DRIVER))
    await stage.say(ALICE, prompts(), START)
    await stage.say(BOB, forks("Aside", CLAUDE), "f")


async def talk(stage: Stage) -> list[str]:
    """A prompt, an answer and a gated tool inside; the ids of what came of it."""
    seen = len(stage.ears["bob"].ids)
    await stage.say(BOB, prompts(), "q", fork="aside")
    await stage.say(CLAUDE, ResponseStart("claude", "q"), "a", fork="aside")
    await stage.say(CLAUDE, ResponseChunk("Well"), "c", "a")
    await stage.say(CLAUDE, ResponseEnd("complete"), "e", "a", fork="aside")
    await stage.say(CLAUDE, proposes(), "t", fork="aside")
    await stage.say(BOB, approves_tool(BOB, "t"), "y", fork="aside")
    await stage.say(CLAUDE, executes("t"), "x", fork="aside")
    await stage.say(CLAUDE, finishes("t"), "z", fork="aside")
    return stage.ears["bob"].ids[seen:]


async def merge(stage: Stage, strategy: Strategy = Strategy.APPEND) -> None:
    await stage.say(BOB, merges("aside", strategy=strategy), "m")
    await stage.say(BOB, executes_merge("m"), "done")


async def back(stage: Stage, who: Actor, ref: str | None = None) -> Ear:
    """Somebody comes in on a new connection."""
    ear = stage.connect(who)
    await stage.say(who, joins(who, Role.DRIVER), ref=ref)
    return ear


async def read(stage: Stage, who: Actor) -> list[str]:
    """The ids in somebody's transcript."""
    archive = Archive(stage.engine)
    page = await archive.transcript(await archive.room("r", who), who.seat, 0, 1000)
    return [json.loads(frame)["id"] for frame in page.frames]


@proves("OPEN-46", "PVP-16.1-2")
async def test_a_fork_is_announced_to_all_with_its_id(stage: Stage) -> None:
    await begin(stage)

    for ear in stage.ears.values():
        (told,) = (each for each in ear.heard if each["id"] == "f")
        assert told["fork"] == "aside"
    assert "f" in (await back(stage, DAVE)).ids


@proves("PVP-16.1-3", "PVP-3.2-1", "OPEN-47", "UNI-12")
async def test_what_is_said_inside_reaches_those_inside_alone(stage: Stage) -> None:
    await begin(stage)
    said = await talk(stage)

    assert len(said) >= 8
    for seat in INSIDE:
        assert {*said} <= {*stage.ears[seat].ids}
    for seat in OUTSIDE:
        assert not {*said} & {*stage.ears[seat].ids}
        assert {"q", "t"}.isdisjoint(str(stage.ears[seat].heard).split("'"))
    await stage.say(ALICE, prompts(), "trunk")
    assert all("trunk" in ear.ids for ear in stage.ears.values())


@proves("OPEN-37", "OPEN-47", "UNI-12")
@pytest.mark.parametrize("ref", [None, START])
@pytest.mark.parametrize("who", [ALICE, BOB, CAROL, CLAUDE, DAVE])
async def test_a_replay_shows_it_to_those_inside_alone(
    stage: Stage, who: Actor, ref: str | None
) -> None:
    await begin(stage)
    said = await talk(stage)

    ear = await back(stage, who, None if who is DAVE else ref)

    mine = [id for id in ear.ids if id in said]
    assert mine == (said if who.seat in INSIDE else [])
    assert [id for id in await read(stage, who) if id in said] == mine


@proves("OPEN-37", "OPEN-47", "UNI-12")
@pytest.mark.parametrize("who", [ALICE, BOB, CAROL])
async def test_pages_from_the_store_show_it_to_those_inside_alone(
    make: Make, who: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals_module, "PAGE", 2)
    stage = make(window=3)
    await begin(stage)
    said = await talk(stage)

    ear = await back(stage, who, START)

    assert [id for id in ear.ids if id in said] == (said if who.seat in INSIDE else [])
    assert ear.seqs == sorted(set(ear.seqs))


@proves("UNI-9", "UNI-12", "OPEN-47")
async def test_rows_of_another_process_are_told_to_those_inside_alone(make: Make) -> None:
    one = make()
    await begin(one)
    two = one.again()
    async with following(one, two):
        await two.say(BOB, prompts(), "q", fork="aside", ear=two.connect(BOB))
        await quiet(one, two)

    assert [seat for seat, ear in one.ears.items() if "q" in ear.ids] == ["claude", "bob"]
    await two.close()


@proves("OPEN-35", "OPEN-47", "UNI-12")
@pytest.mark.parametrize("who", [ALICE, CAROL])
async def test_nobody_outside_can_cite_it_or_learn_that_it_is_there(
    stage: Stage, who: Actor
) -> None:
    await begin(stage)
    said = await talk(stage)
    await stage.say(CLAUDE, proposes(), "open", fork="aside")
    await stage.say(CLAUDE, ResponseStart("claude", "q"), "answer", fork="aside")
    gate = next(iter((await stage.state()).gates))

    for id in (*said, "open", gate, "answer", "never"):
        for cite in ({"ref": id}, {"causal_refs": (id,)}):
            with pytest.raises(Refused, match=f"^No such message here: {id}$"):
                await stage.say(who, prompts(), **cite)
    await stage.say(BOB, prompts(), ref="open")


@proves("OPEN-47", "OPEN-35")
async def test_what_is_not_stored_yet_can_be_cited_by_those_inside(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(BOB, CLAUDE)
    await stage.say(ALICE, prompts(), START)
    log.hold("append")
    replies = [
        stage.ask(ALICE, forks("Aside", CLAUDE), "f"),
        stage.ask(ALICE, prompts(), "q", fork="aside"),
        stage.ask(CLAUDE, ResponseStart("claude", "q"), "a", fork="aside"),
    ]
    outsider = stage.ask(BOB, prompts(), ref="q")
    await turns()
    log.release()
    await stage.settle()

    assert all(reply.sealed for reply in replies)
    assert outsider.refused


@proves("OPEN-47")
async def test_an_admin_who_enters_hears_it_and_reads_what_was_said(stage: Stage) -> None:
    await begin(stage)
    said = await talk(stage)
    await stage.say(ALICE, switches("aside"))
    await stage.say(BOB, prompts(), "later", fork="aside")

    assert "later" in stage.ears["alice"].ids
    assert {*said} <= {*(await back(stage, ALICE)).ids}
    assert "later" not in stage.ears["carol"].ids
    with pytest.raises(Refused):
        await stage.say(CAROL, switches("aside"))


@proves("OPEN-48", "UNI-12")
@pytest.mark.parametrize("strategy", [Strategy.APPEND, Strategy.INTERLEAVE, Strategy.MANUAL])
async def test_once_merged_everybody_finds_it_in_replay_and_transcript(
    stage: Stage, strategy: Strategy
) -> None:
    await begin(stage)
    said = await talk(stage)
    await merge(stage, strategy)

    for who in (ALICE, BOB, CAROL, CLAUDE, DAVE):
        ear = await back(stage, who)
        assert [id for id in ear.ids if id in said] == said
        assert [id for id in await read(stage, who) if id in said] == said
    with pytest.raises(Refused):
        await stage.say(BOB, prompts(), fork="aside")
    await stage.say(CAROL, prompts(), ref="q")


@proves("OPEN-47", "OPEN-48", "UNI-12")
async def test_a_fork_of_a_fork_is_merged_for_the_readers_of_that_fork(stage: Stage) -> None:
    await begin(stage)
    await stage.say(BOB, forks("Deeper"), fork="aside")
    await stage.say(BOB, prompts(), "q", fork="aside")
    await stage.say(BOB, forks("Note", point="q"), fork="aside")
    with pytest.raises(Refused):
        await stage.say(CLAUDE, prompts(), fork="deeper")
    await stage.say(BOB, merges("deeper", "aside"), "m")
    await stage.say(BOB, executes_merge("m"), "done")

    assert "done" in stage.ears["claude"].ids
    assert {"m", "done"}.isdisjoint(stage.ears["carol"].ids)
    assert {"m", "done", "q"}.isdisjoint((await back(stage, CAROL)).ids)


@proves("OPEN-47", "UNI-12")
async def test_the_detail_of_a_session_shows_what_is_open_inside_to_those_inside(
    stage: Stage,
) -> None:
    await begin(stage)
    await stage.say(CLAUDE, proposes(), "t", fork="aside")
    room = await stage.state()

    for seat in (*INSIDE, *OUTSIDE):
        seen = sessions.detail(room, seat)
        count = 1 if seat in INSIDE else 0
        assert (len(seen["gates"]), len(seen["tools"]), seen["open_gates"]) == (count,) * 3
