"""Two processes on one log: conflicts are decided again, and records are delivered by both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.conversation.responses import ResponseChunk, ResponseStart
from accord.core.room.membership.leaving import SessionLeave
from accord.engine import workers
from accord.engine.ports import EventLog, Row
from accord.stores.sqlite import SqliteLog
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness, FaultyLog, yield_to_loop
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    prompt_submit,
    session_create,
    session_join,
    tool_approve,
    tool_propose,
    tool_reject,
)
from tests.spec import proves


@asynccontextmanager
async def following(*stages: EngineHarness) -> AsyncIterator[None]:
    """While inside, each hears what the others append."""
    tasks = [asyncio.create_task(stage.engine.follow_log()) for stage in stages]
    await yield_to_loop()
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def quiet(*stages: EngineHarness) -> None:
    """Nothing is under way anywhere."""
    for _ in range(5):
        await yield_to_loop()
        for stage in stages:
            await stage.wait_until_idle()


@proves("OPEN-24", "UNI-9", "PVP-3.2-2")
async def test_conflicting_writer_decides_again_without_loss_or_duplicate(make: Make) -> None:
    one = make()
    await one.open_room(CLAUDE)
    two = make(one.log)
    await two.send(BOB, session_join(BOB, Role.DRIVER), "bob")
    before = await one.ids()

    replies = [one.submit(ALICE, prompt_submit(), f"one{n}") for n in range(5)]
    others = [two.submit(BOB, prompt_submit(), f"two{n}") for n in range(5)]
    await quiet(one, two)

    assert all(reply.records for reply in (*replies, *others))
    said = (await one.ids())[len(before) :]
    assert sorted(said) == sorted(f"{who}{n}" for who in ("one", "two") for n in range(5))
    for who in ("one", "two"):
        assert [id for id in said if id.startswith(who)] == [f"{who}{n}" for n in range(5)]
    assert one.peers["alice"].seqs == sorted(set(one.peers["alice"].seqs))


@proves("PVP-4.2-8", "PVP-6.2-11", "UNI-9")
async def test_each_process_delivers_the_others_records_once_in_order(make: Make) -> None:
    one = make()
    await one.open_room(CLAUDE)
    two = make(one.log)
    async with following(one, two):
        bob = two.connect(BOB)
        await two.send(BOB, session_join(BOB, Role.DRIVER))
        for n in range(4):
            one.submit(ALICE, prompt_submit(), f"a{n}")
            two.submit(BOB, prompt_submit(), f"b{n}")
            await quiet(one, two)

    everything = await one.ids()
    assert bob.ids == one.peers["alice"].ids == everything
    assert bob.seqs == list(range(1, len(everything) + 1))


@proves("OPEN-24")
async def test_first_of_two_conflicting_votes_wins(make: Make) -> None:
    one = make()
    await one.open_room(BOB, CLAUDE)
    await one.send(CLAUDE, tool_propose(), "t")
    two = make(one.log)
    await two.state()

    no = two.submit(ALICE, tool_reject(ALICE, "t"), "no", ear=two.connect(ALICE))
    await two.wait_until_idle()
    yes = one.submit(ALICE, tool_approve(ALICE, "t"), "yes")
    await one.wait_until_idle()

    assert no.records
    assert yes.refusal
    assert yes.refusal.reason is Reason.WRONG_STATE
    assert (await one.state()) == (await two.state())


async def test_create_of_a_session_made_by_another_process_is_refused(make: Make) -> None:
    one = make()
    two = make(one.log)
    first, second = (
        one.submit(ALICE, session_create(), "one"),
        two.submit(BOB, session_create(), "two"),
    )
    await quiet(one, two)

    assert first.records
    assert second.refusal
    assert second.refusal.reason is Reason.WRONG_STATE
    assert (await two.state()).created_by == "alice"


async def test_foreign_records_during_a_lookup_are_not_missed(make: Make) -> None:
    mine = FaultyLog()
    one = make(mine, window=5)
    await one.open_room(CLAUDE)
    await one.send(ALICE, prompt_submit(), "old")
    for _ in range(6):
        await one.send(ALICE, prompt_submit())
    two = make(mine.log, window=5)

    async with following(one):
        mine.hold("find")
        looking = one.submit(CLAUDE, ResponseStart("claude", "old"), "start")
        await yield_to_loop()
        await two.send(BOB, session_join(BOB, Role.DRIVER), "bob")
        await quiet()
        mine.release()
        await quiet(one, two)

    assert looking.records
    assert one.peers["alice"].ids[-3] == "bob"
    assert one.peers["alice"].ids[-1] == "start"
    assert one.peers["alice"].ids == await one.ids()


async def test_conflict_during_a_lookup_keeps_the_order(make: Make) -> None:
    mine = FaultyLog()
    one = make(mine, window=5)
    await one.open_room(CLAUDE)
    await one.send(ALICE, prompt_submit(), "old")
    for _ in range(6):
        await one.send(ALICE, prompt_submit())
    two = make(mine.log, window=5)

    mine.hold("append", "find", "read")
    first = one.submit(ALICE, prompt_submit(), "first")
    await yield_to_loop()
    looking = one.submit(CLAUDE, ResponseStart("claude", "old"), "start")
    behind = one.submit(CLAUDE, ResponseChunk("Hi"), "chunk", "start")
    await two.send(BOB, session_join(BOB, Role.DRIVER), "bob")
    mine.release("append")  # a conflict: it folds again, and waits for that
    await yield_to_loop()
    mine.release("find")
    await yield_to_loop()
    assert not looking, "it was decided on a state that is not the log's"
    mine.release("read")
    await quiet(one)

    assert all(reply.records for reply in (first, looking, behind))
    assert (await one.ids())[-3:] == ["first", "start", "chunk"]
    assert one.peers["alice"].ids == await one.ids()


async def test_foreign_records_during_a_commit_are_delivered_first(make: Make) -> None:
    mine = FaultyLog()
    one = make(mine)
    await one.open_room(CLAUDE)
    two = make(mine.log)

    async with following(one):
        mine.hold("append")
        late = one.submit(ALICE, prompt_submit(), "late")
        await yield_to_loop()
        await two.send(BOB, session_join(BOB, Role.DRIVER), "bob")
        await yield_to_loop()
        assert "bob" not in one.peers["alice"].ids
        mine.release()
        await quiet(one, two)

    assert late.records
    assert one.peers["alice"].ids[-1] == "late"
    assert one.peers["alice"].ids == await one.ids()


async def test_more_foreign_records_than_the_window_are_all_delivered(make: Make) -> None:
    one = make(window=4)
    await one.open_room(CLAUDE)
    two = make(one.log, window=4)
    two.connect(ALICE)
    for n in range(20):
        await two.send(ALICE, prompt_submit(), f"p{n}")

    await one.send(CLAUDE, session_join(CLAUDE, Role.DRIVER), "again")

    assert one.peers["alice"].ids == await one.ids()


async def test_rows_appended_while_a_stream_is_read_are_not_duplicated(make: Make) -> None:
    log = FaultyLog()
    one = make(log.log)
    await one.open_room(CLAUDE)
    for _ in range(6):
        await one.send(ALICE, prompt_submit())
    await one.engine.snapshots.take(one.engine.streams["room/r"])

    two = make(Slow(log.log, one))
    alice = two.connect(ALICE)
    await two.send(ALICE, session_join(ALICE, Role.ADMIN))
    await quiet(one, two)

    assert alice.seqs == sorted(set(alice.seqs))
    assert alice.ids == await one.ids()


class Slow(FaultyLog):
    """Between any two reads, somebody else appends."""

    def __init__(self, log: EventLog, other: EngineHarness) -> None:
        super().__init__(log)
        self.other = other

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        rows = await super().read(stream, after, limit)
        if self.calls["read"] < 4:
            await self.other.send(ALICE, prompt_submit())
        return rows


async def test_leave_through_another_process_ends_delivery_here(make: Make) -> None:
    one = make()
    await one.open_room(BOB, CLAUDE)
    two = make(one.log)
    here = one.peers["bob"]

    async with following(one):
        await two.send(BOB, SessionLeave(), "leave", ear=two.connect(BOB))
        await quiet(one, two)
        await one.send(ALICE, prompt_submit(), "secret")

    assert here.ids[-1] == "leave"
    assert "secret" not in here.ids


@proves("OPEN-37")
async def test_client_resumes_at_a_process_that_is_behind(make: Make) -> None:
    one = make()
    await one.open_room(BOB, CLAUDE)
    two = make(one.log)
    await two.state()
    last = (await one.send(ALICE, prompt_submit(), "last"))[0]

    bob = two.connect(BOB)
    await two.send(BOB, session_join(BOB, Role.DRIVER), "back", last.record.id)

    assert bob.ids[0] == "back"
    assert bob.seqs == [last.record.seq + 1, last.record.seq + 2]


async def test_rows_before_following_began_are_followed(make: Make) -> None:
    one = make()
    await one.open_room(CLAUDE)
    two = make(one.log)
    await two.engine.start()
    await two.send(BOB, session_join(BOB, Role.DRIVER))
    await one.send(ALICE, prompt_submit(), "early")

    async with following(two):
        await quiet(two)

    assert "early" in two.peers["bob"].ids


async def test_following_resumes_after_a_store_failure(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "RETRY_DELAY_S", 0.0)
    mine = FaultyLog()
    one = make(mine)
    await one.open_room(CLAUDE)
    two = make(mine.log)

    async with following(one):
        mine.failing.add("tail")
        await two.send(BOB, session_join(BOB, Role.DRIVER), "bob")
        await yield_to_loop()
        mine.failing.clear()
        await quiet(one, two)

    assert one.peers["alice"].ids == await one.ids()


@proves("OPEN-37")
async def test_readers_of_an_unreadable_stream_reconnect_and_miss_nothing(make: Make) -> None:
    mine = FaultyLog()
    one = make(mine)
    await one.open_room(CLAUDE)
    two = make(mine.log)
    alice = one.peers["alice"]
    last = alice.ids[-1]
    await two.send(BOB, session_join(BOB, Role.DRIVER), "bob")

    async with following(one):  # behind a record that has to be read
        mine.failing.add("read")
        await two.send(BOB, prompt_submit(), "asked")
        await quiet(one)
        mine.failing.clear()

        assert alice.close_reason
        assert alice.reconnect_invited
        again = one.connect(ALICE)
        await one.send(ALICE, session_join(ALICE, Role.ADMIN), "back", last)

    assert [*alice.ids, *again.ids] == await one.ids()


async def test_two_processes_on_one_sqlite_file(make: Make, tmp_path: Path) -> None:
    """The same with the store that is durable, where a commit takes its time."""
    path = str(tmp_path / "accord.db")
    first, second = await SqliteLog.open(path), await SqliteLog.open(path)
    one, two = make(first, check=False), make(second, check=False)
    try:
        await one.open_room(CLAUDE)
        await two.send(BOB, session_join(BOB, Role.DRIVER))
        for n in range(10):
            replies = [
                one.submit(ALICE, prompt_submit(), f"a{n}"),
                two.submit(BOB, prompt_submit(), f"b{n}"),
            ]
            await one.wait_until_idle()
            await two.wait_until_idle()
            assert all(reply.records for reply in replies)

        said = [s.record.id for s in await one.records() if s.record.id[0] in "ab"]
        assert sorted(said) == sorted(f"{who}{n}" for who in "ab" for n in range(10))
    finally:
        await one.close()
        await two.close()
        await first.close()
        await second.close()
