"""Two processes on one log: whoever is second folds and decides again, and each hears the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Why
from accord.core.room.members import SessionLeave
from accord.core.room.streams import ResponseChunk, ResponseStart
from accord.engine import engine as engine_module
from accord.engine.ports import EventLog, Row
from accord.stores.sqlite import SqliteLog
from tests.engine.conftest import Make
from tests.helpers.engine import Stage, Tricky, turns
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    approves_tool,
    creates,
    joins,
    prompts,
    proposes,
    rejects_tool,
)
from tests.spec import proves


@asynccontextmanager
async def following(*stages: Stage) -> AsyncIterator[None]:
    """While inside, each hears what the others append."""
    tasks = [asyncio.create_task(stage.engine.follow()) for stage in stages]
    await turns()
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def quiet(*stages: Stage) -> None:
    """Nothing is under way anywhere."""
    for _ in range(5):
        await turns()
        for stage in stages:
            await stage.settle()


@proves("OPEN-24", "UNI-9", "PVP-3.2-2")
async def test_the_second_writer_decides_again_and_nothing_is_lost_or_doubled(make: Make) -> None:
    one = make()
    await one.open(CLAUDE)
    two = make(one.log)
    await two.say(BOB, joins(BOB, Role.DRIVER), "bob")
    before = await one.ids()

    replies = [one.ask(ALICE, prompts(), f"one{n}") for n in range(5)]
    others = [two.ask(BOB, prompts(), f"two{n}") for n in range(5)]
    await quiet(one, two)

    assert all(reply.sealed for reply in (*replies, *others))
    said = (await one.ids())[len(before) :]
    assert sorted(said) == sorted(f"{who}{n}" for who in ("one", "two") for n in range(5))
    for who in ("one", "two"):
        assert [id for id in said if id.startswith(who)] == [f"{who}{n}" for n in range(5)]
    assert one.ears["alice"].seqs == sorted(set(one.ears["alice"].seqs))


@proves("PVP-4.2-8", "PVP-6.2-11", "UNI-9")
async def test_each_hears_what_the_other_appends_once_and_in_order(make: Make) -> None:
    one = make()
    await one.open(CLAUDE)
    two = make(one.log)
    async with following(one, two):
        bob = two.connect(BOB)
        await two.say(BOB, joins(BOB, Role.DRIVER))
        for n in range(4):
            one.ask(ALICE, prompts(), f"a{n}")
            two.ask(BOB, prompts(), f"b{n}")
            await quiet(one, two)

    everything = await one.ids()
    assert bob.ids == one.ears["alice"].ids == everything
    assert bob.seqs == list(range(1, len(everything) + 1))


@proves("OPEN-24")
async def test_a_vote_here_and_a_rejection_there_the_first_one_wins(make: Make) -> None:
    one = make()
    await one.open(BOB, CLAUDE)
    await one.say(CLAUDE, proposes(), "t")
    two = make(one.log)
    await two.state()

    no = two.ask(ALICE, rejects_tool(ALICE, "t"), "no", ear=two.connect(ALICE))
    await two.settle()
    yes = one.ask(ALICE, approves_tool(ALICE, "t"), "yes")
    await one.settle()

    assert no.sealed
    assert yes.refused
    assert yes.refused.why is Why.WRONG_STATE
    assert (await one.state()) == (await two.state())


async def test_a_room_made_elsewhere_meanwhile_is_taken(make: Make) -> None:
    one = make()
    two = make(one.log)
    first, second = one.ask(ALICE, creates(), "one"), two.ask(BOB, creates(), "two")
    await quiet(one, two)

    assert first.sealed
    assert second.refused
    assert second.refused.why is Why.WRONG_STATE
    assert (await two.state()).created_by == "alice"


async def test_what_others_append_during_a_look_up_is_not_missed(make: Make) -> None:
    mine = Tricky()
    one = make(mine, window=5)
    await one.open(CLAUDE)
    await one.say(ALICE, prompts(), "old")
    for _ in range(6):
        await one.say(ALICE, prompts())
    two = make(mine.log, window=5)

    async with following(one):
        mine.hold("find")
        looking = one.ask(CLAUDE, ResponseStart("claude", "old"), "start")
        await turns()
        await two.say(BOB, joins(BOB, Role.DRIVER), "bob")
        await quiet()
        mine.release()
        await quiet(one, two)

    assert looking.sealed
    assert one.ears["alice"].ids[-3] == "bob"
    assert one.ears["alice"].ids[-1] == "start"
    assert one.ears["alice"].ids == await one.ids()


async def test_a_conflict_during_a_look_up_keeps_everything_in_order(make: Make) -> None:
    mine = Tricky()
    one = make(mine, window=5)
    await one.open(CLAUDE)
    await one.say(ALICE, prompts(), "old")
    for _ in range(6):
        await one.say(ALICE, prompts())
    two = make(mine.log, window=5)

    mine.hold("append", "find", "read")
    first = one.ask(ALICE, prompts(), "first")
    await turns()
    looking = one.ask(CLAUDE, ResponseStart("claude", "old"), "start")
    behind = one.ask(CLAUDE, ResponseChunk("Hi"), "chunk", "start")
    await two.say(BOB, joins(BOB, Role.DRIVER), "bob")
    mine.release("append")  # a conflict: it folds again, and waits for that
    await turns()
    mine.release("find")
    await turns()
    assert not looking, "it was decided on a state that is not the log's"
    mine.release("read")
    await quiet(one)

    assert all(reply.sealed for reply in (first, looking, behind))
    assert (await one.ids())[-3:] == ["first", "start", "chunk"]
    assert one.ears["alice"].ids == await one.ids()


async def test_what_others_append_while_a_commit_waits_is_heard_first(make: Make) -> None:
    mine = Tricky()
    one = make(mine)
    await one.open(CLAUDE)
    two = make(mine.log)

    async with following(one):
        mine.hold("append")
        late = one.ask(ALICE, prompts(), "late")
        await turns()
        await two.say(BOB, joins(BOB, Role.DRIVER), "bob")
        await turns()
        assert "bob" not in one.ears["alice"].ids
        mine.release()
        await quiet(one, two)

    assert late.sealed
    assert one.ears["alice"].ids[-1] == "late"
    assert one.ears["alice"].ids == await one.ids()


async def test_more_than_a_window_at_once_is_told_in_full(make: Make) -> None:
    one = make(window=4)
    await one.open(CLAUDE)
    two = make(one.log, window=4)
    two.connect(ALICE)
    for n in range(20):
        await two.say(ALICE, prompts(), f"p{n}")

    await one.say(CLAUDE, joins(CLAUDE, Role.DRIVER), "again")

    assert one.ears["alice"].ids == await one.ids()


async def test_rows_that_appear_while_a_room_is_opened_are_not_doubled(make: Make) -> None:
    log = Tricky()
    one = make(log.log)
    await one.open(CLAUDE)
    for _ in range(6):
        await one.say(ALICE, prompts())
    await one.engine.snapshots.take(one.engine.cells["room/r"])

    two = make(Slow(log.log, one))
    alice = two.connect(ALICE)
    await two.say(ALICE, joins(ALICE, Role.ADMIN))
    await quiet(one, two)

    assert alice.seqs == sorted(set(alice.seqs))
    assert alice.ids == await one.ids()


class Slow(Tricky):
    """Between any two reads, somebody else appends."""

    def __init__(self, log: EventLog, other: Stage) -> None:
        super().__init__(log)
        self.other = other

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        rows = await super().read(stream, after, limit)
        if self.calls["read"] < 4:
            await self.other.say(ALICE, prompts())
        return rows


async def test_who_leaves_through_the_other_hears_nothing_more_here(make: Make) -> None:
    one = make()
    await one.open(BOB, CLAUDE)
    two = make(one.log)
    here = one.ears["bob"]

    async with following(one):
        await two.say(BOB, SessionLeave(), "leave", ear=two.connect(BOB))
        await quiet(one, two)
        await one.say(ALICE, prompts(), "secret")

    assert here.ids[-1] == "leave"
    assert "secret" not in here.ids


@proves("OPEN-37")
async def test_a_client_resumes_at_another_server_before_that_has_heard(make: Make) -> None:
    one = make()
    await one.open(BOB, CLAUDE)
    two = make(one.log)
    await two.state()
    last = (await one.say(ALICE, prompts(), "last"))[0]

    bob = two.connect(BOB)
    await two.say(BOB, joins(BOB, Role.DRIVER), "back", last.record.id)

    assert bob.ids[0] == "back"
    assert bob.seqs == [last.record.seq + 1, last.record.seq + 2]


async def test_what_came_before_following_began_is_followed_too(make: Make) -> None:
    one = make()
    await one.open(CLAUDE)
    two = make(one.log)
    await two.engine.start()
    await two.say(BOB, joins(BOB, Role.DRIVER))
    await one.say(ALICE, prompts(), "early")

    async with following(two):
        await quiet(two)

    assert "early" in two.ears["bob"].ids


async def test_following_goes_on_when_the_store_fails_for_a_while(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "PATIENCE", 0.0)
    mine = Tricky()
    one = make(mine)
    await one.open(CLAUDE)
    two = make(mine.log)

    async with following(one):
        mine.failing.add("tail")
        await two.say(BOB, joins(BOB, Role.DRIVER), "bob")
        await turns()
        mine.failing.clear()
        await quiet(one, two)

    assert one.ears["alice"].ids == await one.ids()


@proves("OPEN-37")
async def test_listeners_of_what_cannot_be_read_come_back_and_miss_nothing(make: Make) -> None:
    mine = Tricky()
    one = make(mine)
    await one.open(CLAUDE)
    two = make(mine.log)
    alice = one.ears["alice"]
    last = alice.ids[-1]

    async with following(one):
        mine.failing.add("read")
        await two.say(BOB, joins(BOB, Role.DRIVER), "bob")
        await quiet(one)
        mine.failing.clear()

        assert alice.closed
        assert alice.invited
        again = one.connect(ALICE)
        await one.say(ALICE, joins(ALICE, Role.ADMIN), "back", last)

    assert [*alice.ids, *again.ids] == await one.ids()


async def test_two_processes_on_one_file(make: Make, tmp_path: Path) -> None:
    """The same with the store that is durable, where a commit takes its time."""
    path = str(tmp_path / "accord.db")
    first, second = await SqliteLog.open(path), await SqliteLog.open(path)
    one, two = make(first, check=False), make(second, check=False)
    try:
        await one.open(CLAUDE)
        await two.say(BOB, joins(BOB, Role.DRIVER))
        for n in range(10):
            replies = [one.ask(ALICE, prompts(), f"a{n}"), two.ask(BOB, prompts(), f"b{n}")]
            await one.settle()
            await two.settle()
            assert all(reply.sealed for reply in replies)

        said = [s.record.id for s in await one.records() if s.record.id[0] in "ab"]
        assert sorted(said) == sorted(f"{who}{n}" for who in "ab" for n in range(10))
    finally:
        await one.close()
        await two.close()
        await first.close()
        await second.close()
