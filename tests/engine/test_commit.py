"""Nobody hears or is answered before the commit; the next message does not wait for it."""

from collections.abc import Iterator, Sequence

import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.log import Ask, Event, Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import iso
from accord.core.room import CONTEXT
from accord.core.room.prompts import PromptSubmit, PromptSubmitted
from accord.core.room.state import Room
from accord.core.room.streams import ResponseChunk, ResponseStart
from accord.engine.cell import Asked
from accord.engine.ports import Row, Sealed
from tests.engine.conftest import Make
from tests.helpers.engine import Tricky, turns
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    T0,
    approves_tool,
    ends,
    executes,
    joins,
    prompts,
    proposes,
)
from tests.spec import proves


@proves("PVP-3.2-2", "OPEN-35")
async def test_nobody_hears_or_is_answered_before_the_commit(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(BOB, CLAUDE)
    heard = {seat: len(ear.heard) for seat, ear in stage.ears.items()}

    log.hold("append")
    reply = stage.ask(ALICE, prompts(), "p")
    await turns()

    assert not reply
    assert heard == {seat: len(ear.heard) for seat, ear in stage.ears.items()}
    log.release()
    await stage.settle()
    assert reply.sealed
    assert all(ear.ids[-1] == "p" for ear in stage.ears.values())


async def test_the_next_message_is_decided_while_the_first_is_committed(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)

    log.hold("append")
    stage.ask(ALICE, prompts(), "p")
    await turns()
    start = stage.ask(CLAUDE, ResponseStart("claude", "p"), "s")
    chunk = stage.ask(CLAUDE, ResponseChunk("Hello"), "c", "s")
    durable = await stage.state()

    assert not durable.streams
    log.release()
    await stage.settle()
    assert [start.sealed[0].record.seq, chunk.sealed[0].record.seq] == [6, 7]
    assert stage.ears["alice"].ids[-3:] == ["p", "s", "c"]


async def test_a_refusal_keeps_its_place_behind_what_is_not_committed(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)

    log.hold("append")
    end = stage.ask(ALICE, ends(), "end")
    late = stage.ask(ALICE, prompts(), "late")
    await turns()

    assert not end
    assert not late, "it would tell of an end that may never be"
    log.release()
    await stage.settle()
    assert end.sealed
    assert late.refused
    assert late.refused.why is Why.ENDED


async def test_what_was_refused_because_of_what_is_lost_is_told_to_try_again(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)

    log.hold("append")
    log.failing.add("append")
    stage.ask(ALICE, ends(), "end")
    late = stage.ask(ALICE, prompts(), "late")
    log.release()
    await stage.settle()
    log.failing.clear()

    assert late.refused
    assert late.refused.why is Why.UNAVAILABLE
    assert await stage.say(ALICE, prompts(), "late")


async def test_what_arrives_during_a_commit_shares_the_next(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    before = log.calls["append"]

    log.hold("append")
    stage.ask(ALICE, prompts(), "first")
    await turns()
    replies = [stage.ask(ALICE, prompts(), f"p{n}") for n in range(50)]
    log.release()
    await stage.settle()

    assert log.calls["append"] - before == 2
    assert all(reply.count == 1 for reply in replies)
    assert (await stage.ids())[-50:] == [f"p{n}" for n in range(50)]


@proves("PVP-4.2-8", "PVP-6.2-11")
async def test_what_one_commit_brings_leaves_in_one_write_for_each_connection(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(BOB, CLAUDE)
    writes = {seat: len(ear.writes) for seat, ear in stage.ears.items()}

    log.hold("append")
    for n in range(5):
        stage.ask(ALICE, prompts(), f"p{n}")
        stage.ask(BOB, prompts(), f"q{n}")
    log.release()
    await stage.settle()

    said = [f"{who}{n}" for n in range(5) for who in "pq"]
    for seat, ear in stage.ears.items():
        (write,) = ear.writes[writes[seat] :]
        assert [each["id"] for each in write] == said


async def test_those_who_see_less_get_their_part_in_one_write_too(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(BOB, CLAUDE, require_approval_for=())
    log.hold("append")
    stage.ask(CLAUDE, proposes(), "t")
    run = stage.ask(CLAUDE, executes("t"), "run")
    stage.ask(ALICE, prompts(), "p")
    log.release()
    await stage.settle()

    assert run.sealed[0].record.to == frozenset({"claude"})
    assert [each["id"] for each in stage.ears["claude"].writes[-1]][-2:] == ["run", "p"]
    assert "run" not in stage.ears["alice"].ids
    assert stage.ears["alice"].seqs[-2:] == [8, 10]


# Failures


@proves("OPEN-36")
async def test_when_the_store_keeps_nothing_all_who_wait_are_told(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(BOB, CLAUDE)
    before, heard = await stage.state(), len(stage.ears["bob"].heard)

    log.hold("append")
    log.failing.add("append")
    first = stage.ask(CLAUDE, proposes(), "t")
    await turns()
    second = stage.ask(ALICE, approves_tool(ALICE, "t"))
    retry = stage.ask(CLAUDE, proposes(), "t")
    log.release()
    await stage.settle()

    for reply in (first, second, retry):
        assert reply.refused
        assert reply.refused.why is Why.UNAVAILABLE
        assert reply.count == 1
    assert await stage.state() is before
    assert len(stage.ears["bob"].heard) == heard
    log.failing.clear()
    assert await stage.say(CLAUDE, proposes(), "t")
    assert await stage.say(ALICE, approves_tool(ALICE, "t"))
    await stage.records()


async def test_a_store_that_breaks_in_an_unknown_way_leaves_nobody_waiting(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)

    async def breaks(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(log, "append", breaks)
        with pytest.raises(Refused) as no:
            await stage.say(ALICE, prompts(), "p")

    assert no.value.why is Why.UNAVAILABLE
    assert await stage.say(ALICE, prompts(), "p")


async def test_a_store_that_cannot_be_read_refuses_and_is_tried_again(make: Make) -> None:
    log = Tricky()
    await make(log).open(CLAUDE)
    stage = make(log)

    log.failing.add("read")
    replies = [stage.ask(ALICE, prompts()) for _ in range(3)]
    await stage.settle()

    for reply in replies:
        assert reply.refused
        assert reply.refused.why is Why.UNAVAILABLE
    assert stage.engine.cells == {}
    log.failing.clear()
    assert await stage.say(ALICE, prompts())


async def test_a_store_that_cannot_find_refuses_that_message_alone(make: Make) -> None:
    log = Tricky()
    stage = make(log, window=5)
    await stage.open(CLAUDE)
    await stage.say(ALICE, prompts(), "old")
    for _ in range(6):
        await stage.say(ALICE, prompts())

    log.hold("append")
    log.failing.add("find")
    before = stage.ask(ALICE, prompts(), "before")
    looking = stage.ask(CLAUDE, ResponseStart("claude", "old"), "looking")
    behind = stage.ask(ALICE, prompts(), "behind")
    await turns()
    log.release()
    await stage.settle()

    assert before.sealed
    assert behind.sealed
    assert looking.refused
    assert looking.refused.why is Why.UNAVAILABLE
    assert [reply.count for reply in (before, looking, behind)] == [1, 1, 1]
    assert stage.ears["claude"].ids[-2:] == ["before", "behind"]
    log.failing.clear()
    assert await stage.say(CLAUDE, ResponseStart("claude", "old"), "looking")


async def test_a_log_that_makes_no_sense_is_an_answer_too(make: Make) -> None:
    log = Tricky()
    first = make(log)
    await first.open(CLAUDE)
    rows = await log.log.read("room/r")
    stage = make(Damaged(rows[0].body))

    with pytest.raises(Refused) as no:
        await stage.say(ALICE, prompts())

    assert no.value.why is Why.DAMAGED
    assert "Record 1 of room/r is not what was stored" in no.value.detail


class Damaged(Tricky):
    """A log with a row nobody understands."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        return [Row(stream, 1, "x", self.body[:20], b"")]


# What goes wrong while deciding


async def test_a_mistake_of_ours_changes_nothing_and_the_room_goes_on(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make()
    await stage.open(CLAUDE)
    before = await stage.state()
    position = await stage.log.position()

    def breaks(room: Room, ask: Ask, body: PromptSubmit) -> Iterator[Event]:
        yield PromptSubmitted(said=body)
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setitem(CONTEXT.decide, PromptSubmit, breaks)  # type: ignore[misc]
        reply = stage.ask(ALICE, prompts(), "p")

    assert reply.refused
    assert reply.refused.why is Why.INTERNAL
    assert await stage.state() is before
    assert await stage.log.position() == position
    assert await stage.say(ALICE, prompts(), "p")


async def test_a_room_survives_a_connection_that_breaks_while_it_is_told(make: Make) -> None:
    stage = make()
    await stage.open(BOB, CLAUDE)
    broken = stage.ears["bob"]

    def breaks(data: bytes) -> None:
        raise ZeroDivisionError

    broken.write = breaks  # type: ignore[method-assign]
    stage.ask(ALICE, prompts(), "p")
    await stage.settle()
    await turns()

    assert all(ear.closed and ear.invited for ear in stage.ears.values()), "they come back"
    again = stage.connect(ALICE)
    await stage.say(ALICE, joins(ALICE, Role.ADMIN))
    assert "p" in again.ids
    assert [type(error) for error in stage.engine.failures] == [ZeroDivisionError]
    stage.engine.failures.clear()


async def test_an_answer_that_cannot_be_given_is_no_loss_for_others(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    listened: list[str] = []

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    def listens(_: str, fresh: Sequence[Sealed]) -> None:
        listened.extend(sealed.record.id for sealed in fresh)

    stage.engine.heard += [breaks, listens]

    log.hold("append")
    message = Message("first", iso(T0), "r", "alice", prompts())
    stage.engine.submit("room/r", Asked(message, ALICE, breaks))
    second = stage.ask(ALICE, prompts(), "second")
    log.release()
    await stage.settle()

    assert second.sealed
    assert listened == ["first", "second"]
    assert stage.ears["claude"].ids[-2:] == ["first", "second"]
    assert [type(error) for error in stage.engine.failures] == 2 * [ZeroDivisionError]
    stage.engine.failures.clear()


async def test_a_loss_that_somebody_cannot_be_told_of_is_told_to_the_others(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    log.failing.add("append")
    message = Message("first", iso(T0), "r", "alice", prompts())
    stage.engine.submit("room/r", Asked(message, ALICE, breaks))
    second = stage.ask(ALICE, prompts(), "second")
    await stage.settle()

    assert second.refused
    assert second.refused.why is Why.UNAVAILABLE
    log.failing.clear()
    assert await stage.say(ALICE, prompts(), "third")
    assert [type(error) for error in stage.engine.failures] == [ZeroDivisionError]
    stage.engine.failures.clear()
