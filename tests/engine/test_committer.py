"""Delivery and answers wait for the commit; deciding does not."""

from collections.abc import Iterator, Sequence

import pytest

from accord.core.kernel.context import Command
from accord.core.kernel.messages import Message
from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import to_iso
from accord.core.room import CONTEXT
from accord.core.room.conversation.prompts import PromptSubmit, PromptSubmitted
from accord.core.room.conversation.responses import ResponseChunk, ResponseStart
from accord.core.room.state import Room
from accord.engine.ports import EncodedRecord, Row
from accord.engine.streams.stream import Submission
from tests.engine.conftest import Make
from tests.helpers.engine.harness import FaultyLog, yield_to_loop
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    T0,
    prompt_submit,
    session_end,
    session_join,
    tool_approve,
    tool_execute,
    tool_propose,
)
from tests.spec import proves


@proves("PVP-3.2-2", "OPEN-35")
async def test_delivery_and_answer_wait_for_the_commit(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(BOB, CLAUDE)
    heard = {seat: len(ear.received) for seat, ear in stage.peers.items()}

    log.hold("append")
    reply = stage.submit(ALICE, prompt_submit(), "p")
    await yield_to_loop()

    assert not reply
    assert heard == {seat: len(ear.received) for seat, ear in stage.peers.items()}
    log.release()
    await stage.wait_until_idle()
    assert reply.records
    assert all(ear.ids[-1] == "p" for ear in stage.peers.values())


async def test_next_message_is_decided_during_the_commit(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)

    log.hold("append")
    stage.submit(ALICE, prompt_submit(), "p")
    await yield_to_loop()
    start = stage.submit(CLAUDE, ResponseStart("claude", "p"), "s")
    chunk = stage.submit(CLAUDE, ResponseChunk("Hello"), "c", "s")
    durable = await stage.state()

    assert not durable.streams
    log.release()
    await stage.wait_until_idle()
    assert [start.records[0].record.seq, chunk.records[0].record.seq] == [6, 7]
    assert stage.peers["alice"].ids[-3:] == ["p", "s", "c"]


async def test_refusal_waits_for_the_commits_before_it(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)

    log.hold("append")
    end = stage.submit(ALICE, session_end(), "end")
    late = stage.submit(ALICE, prompt_submit(), "late")
    await yield_to_loop()

    assert not end
    assert not late, "it would tell of an end that may never be"
    log.release()
    await stage.wait_until_idle()
    assert end.records
    assert late.refusal
    assert late.refusal.reason is Reason.ENDED


async def test_refusal_that_rests_on_lost_records_becomes_retryable(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)

    log.hold("append")
    log.failing.add("append")
    stage.submit(ALICE, session_end(), "end")
    late = stage.submit(ALICE, prompt_submit(), "late")
    log.release()
    await stage.wait_until_idle()
    log.failing.clear()

    assert late.refusal
    assert late.refusal.reason is Reason.UNAVAILABLE
    assert await stage.send(ALICE, prompt_submit(), "late")


async def test_messages_during_a_commit_share_the_next_one(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    before = log.calls["append"]

    log.hold("append")
    stage.submit(ALICE, prompt_submit(), "first")
    await yield_to_loop()
    replies = [stage.submit(ALICE, prompt_submit(), f"p{n}") for n in range(50)]
    log.release()
    await stage.wait_until_idle()

    assert log.calls["append"] - before == 2
    assert all(reply.count == 1 for reply in replies)
    assert (await stage.ids())[-50:] == [f"p{n}" for n in range(50)]


@proves("PVP-4.2-8", "PVP-6.2-11")
async def test_one_commit_is_one_write_per_connection(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(BOB, CLAUDE)
    writes = {seat: len(ear.writes) for seat, ear in stage.peers.items()}

    log.hold("append")
    for n in range(5):
        stage.submit(ALICE, prompt_submit(), f"p{n}")
        stage.submit(BOB, prompt_submit(), f"q{n}")
    log.release()
    await stage.wait_until_idle()

    said = [f"{who}{n}" for n in range(5) for who in "pq"]
    for seat, ear in stage.peers.items():
        (write,) = ear.writes[writes[seat] :]
        assert [each["id"] for each in write] == said


async def test_filtered_delivery_is_one_write_per_connection(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(BOB, CLAUDE, require_approval_for=())
    log.hold("append")
    stage.submit(CLAUDE, tool_propose(), "t")
    run = stage.submit(CLAUDE, tool_execute("t"), "run")
    stage.submit(ALICE, prompt_submit(), "p")
    log.release()
    await stage.wait_until_idle()

    assert run.records[0].record.to == frozenset({"claude"})
    assert [each["id"] for each in stage.peers["claude"].writes[-1]][-2:] == ["run", "p"]
    assert "run" not in stage.peers["alice"].ids
    assert stage.peers["alice"].seqs[-2:] == [8, 10]


# Failures


@proves("OPEN-36")
async def test_failed_commit_refuses_all_waiting_messages(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(BOB, CLAUDE)
    before, heard = await stage.state(), len(stage.peers["bob"].received)

    log.hold("append")
    log.failing.add("append")
    first = stage.submit(CLAUDE, tool_propose(), "t")
    await yield_to_loop()
    second = stage.submit(ALICE, tool_approve(ALICE, "t"))
    retry = stage.submit(CLAUDE, tool_propose(), "t")
    log.release()
    await stage.wait_until_idle()

    for reply in (first, second, retry):
        assert reply.refusal
        assert reply.refusal.reason is Reason.UNAVAILABLE
        assert reply.count == 1
    assert await stage.state() is before
    assert len(stage.peers["bob"].received) == heard
    log.failing.clear()
    assert await stage.send(CLAUDE, tool_propose(), "t")
    assert await stage.send(ALICE, tool_approve(ALICE, "t"))
    await stage.records()


async def test_unexpected_store_error_answers_all_messages(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)

    async def breaks(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(log, "append", breaks)
        with pytest.raises(Refused) as no:
            await stage.send(ALICE, prompt_submit(), "p")

    assert no.value.reason is Reason.UNAVAILABLE
    assert await stage.send(ALICE, prompt_submit(), "p")


async def test_unreadable_store_refuses_and_is_retried(make: Make) -> None:
    log = FaultyLog()
    await make(log).open_room(CLAUDE)
    stage = make(log)

    log.failing.add("read")
    replies = [stage.submit(ALICE, prompt_submit()) for _ in range(3)]
    await stage.wait_until_idle()

    for reply in replies:
        assert reply.refusal
        assert reply.refusal.reason is Reason.UNAVAILABLE
    assert stage.engine.streams == {}
    log.failing.clear()
    assert await stage.send(ALICE, prompt_submit())


async def test_failed_lookup_refuses_that_message_only(make: Make) -> None:
    log = FaultyLog()
    stage = make(log, window=5)
    await stage.open_room(CLAUDE)
    await stage.send(ALICE, prompt_submit(), "old")
    for _ in range(6):
        await stage.send(ALICE, prompt_submit())

    log.hold("append")
    log.failing.add("find")
    before = stage.submit(ALICE, prompt_submit(), "before")
    looking = stage.submit(CLAUDE, ResponseStart("claude", "old"), "looking")
    behind = stage.submit(ALICE, prompt_submit(), "behind")
    await yield_to_loop()
    log.release()
    await stage.wait_until_idle()

    assert before.records
    assert behind.records
    assert looking.refusal
    assert looking.refusal.reason is Reason.UNAVAILABLE
    assert [reply.count for reply in (before, looking, behind)] == [1, 1, 1]
    assert stage.peers["claude"].ids[-2:] == ["before", "behind"]
    log.failing.clear()
    assert await stage.send(CLAUDE, ResponseStart("claude", "old"), "looking")


async def test_undecodable_row_refuses_the_message(make: Make) -> None:
    log = FaultyLog()
    first = make(log)
    await first.open_room(CLAUDE)
    rows = await log.log.read("room/r")
    stage = make(Damaged(rows[0].body))

    with pytest.raises(Refused) as no:
        await stage.send(ALICE, prompt_submit())

    assert no.value.reason is Reason.DAMAGED
    assert "Record 1 of room/r is not what was stored" in no.value.detail


class Damaged(FaultyLog):
    """A log with a row nobody understands."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        return [Row(stream, 1, "x", self.body[:20], b"")]


# What goes wrong while deciding


async def test_exception_in_a_rule_changes_nothing_and_the_session_continues(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make()
    await stage.open_room(CLAUDE)
    before = await stage.state()
    position = await stage.log.position()

    def breaks(room: Room, ask: Command, body: PromptSubmit) -> Iterator[Event]:
        yield PromptSubmitted(said=body)
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setitem(CONTEXT.decide, PromptSubmit, breaks)  # type: ignore[misc]
        reply = stage.submit(ALICE, prompt_submit(), "p")

    assert reply.refusal
    assert reply.refusal.reason is Reason.INTERNAL
    assert await stage.state() is before
    assert await stage.log.position() == position
    assert await stage.send(ALICE, prompt_submit(), "p")


async def test_session_survives_a_connection_that_fails_on_write(make: Make) -> None:
    stage = make()
    await stage.open_room(BOB, CLAUDE)
    broken = stage.peers["bob"]

    def breaks(data: bytes) -> None:
        raise ZeroDivisionError

    broken.write = breaks  # type: ignore[method-assign]
    stage.submit(ALICE, prompt_submit(), "p")
    await stage.wait_until_idle()
    await yield_to_loop()

    assert all(ear.close_reason and ear.reconnect_invited for ear in stage.peers.values()), (
        "they come back"
    )
    again = stage.connect(ALICE)
    await stage.send(ALICE, session_join(ALICE, Role.ADMIN))
    assert "p" in again.ids
    assert [type(error) for error in stage.engine.failures] == [ZeroDivisionError]
    stage.engine.failures.clear()


async def test_failing_callback_does_not_affect_other_answers(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    listened: list[str] = []

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    def listens(_: str, fresh: Sequence[EncodedRecord]) -> None:
        listened.extend(sealed.record.id for sealed in fresh)

    stage.engine.on_commit += [breaks, listens]

    log.hold("append")
    message = Message("first", to_iso(T0), "r", "alice", prompt_submit())
    stage.engine.submit("room/r", Submission(message, ALICE, breaks))
    second = stage.submit(ALICE, prompt_submit(), "second")
    log.release()
    await stage.wait_until_idle()

    assert second.records
    assert listened == ["first", "second"]
    assert stage.peers["claude"].ids[-2:] == ["first", "second"]
    assert [type(error) for error in stage.engine.failures] == 2 * [ZeroDivisionError]
    stage.engine.failures.clear()


async def test_failing_callback_on_a_lost_commit_does_not_affect_others(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    log.failing.add("append")
    message = Message("first", to_iso(T0), "r", "alice", prompt_submit())
    stage.engine.submit("room/r", Submission(message, ALICE, breaks))
    second = stage.submit(ALICE, prompt_submit(), "second")
    await stage.wait_until_idle()

    assert second.refusal
    assert second.refusal.reason is Reason.UNAVAILABLE
    log.failing.clear()
    assert await stage.send(ALICE, prompt_submit(), "third")
    assert [type(error) for error in stage.engine.failures] == [ZeroDivisionError]
    stage.engine.failures.clear()
