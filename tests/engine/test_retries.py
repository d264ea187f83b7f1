"""The same message again: in flight, in the window, long ago, by another, with another content."""

import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.ids import derived
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.members import SessionLeave
from accord.core.room.state import Presence
from tests.engine.conftest import Make
from tests.helpers.engine import Stage, Tricky, turns
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    STREAM,
    T0,
    approves_tool,
    creates,
    joins,
    prompts,
    proposes,
)
from tests.spec import proves


async def long_ago(stage: Stage, count: int = 10) -> None:
    """Enough is said that nothing from before is at hand."""
    for _ in range(count):
        await stage.say(ALICE, prompts())


@proves("OPEN-36", "UNI-11", "PVP-4.2-2")
async def test_a_retry_in_flight_gets_the_outcome_of_the_first(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(BOB, CLAUDE)

    log.hold("append")
    first = stage.ask(CLAUDE, proposes(), "t")
    retry = stage.ask(CLAUDE, proposes(), "t")
    await turns()
    again = stage.ask(CLAUDE, proposes(), "t")
    log.release()
    await stage.settle()

    assert first.sealed == retry.sealed == again.sealed
    assert [each.outcome and each.outcome.again for each in (first, retry, again)] == [0, 1, 1]
    assert stage.ears["bob"].ids.count("t") == 1
    assert (await stage.ids()).count("t") == 1


@proves("OPEN-36", "UNI-11", "PVP-4.2-2")
async def test_a_retry_from_before_the_window_gets_the_first_outcome(make: Make) -> None:
    stage = make(window=5)
    await stage.open(BOB, CLAUDE)
    first = await stage.say(ALICE, prompts(), "p")
    await long_ago(stage)
    heard = len(stage.ears["bob"].heard)

    again = await stage.say(ALICE, prompts(), "p")

    assert [each.record for each in again] == [each.record for each in first]
    assert len(stage.ears["bob"].heard) == heard
    assert (await stage.ids()).count("p") == 1


@proves("OPEN-36", "UNI-11")
async def test_what_would_be_refused_today_was_accepted_long_ago(make: Make) -> None:
    stage = make(window=5)
    await stage.open(BOB, CLAUDE)
    await stage.say(CLAUDE, proposes(), "t")
    vote = await stage.say(ALICE, approves_tool(ALICE, "t"), "vote")
    await stage.say(BOB, SessionLeave(), "leave")
    await long_ago(stage)

    again = await stage.say(ALICE, approves_tool(ALICE, "t"), "vote")
    left = await stage.say(BOB, SessionLeave(), "leave")

    assert again[0].record == vote[0].record
    assert left[0].record.id == "leave"
    with pytest.raises(Refused) as no:
        await stage.say(ALICE, approves_tool(ALICE, "t"), "another vote")
    assert no.value.why is Why.WRONG_STATE


@proves("OPEN-36", "UNI-11")
@pytest.mark.parametrize("since", [0, 10])
async def test_an_id_that_is_taken_is_taken_for_ever(make: Make, since: int) -> None:
    stage = make(window=5)
    await stage.open(BOB, CLAUDE)
    await stage.say(ALICE, prompts(), "p")
    await long_ago(stage, since)
    before = await stage.ids()

    for who, body in ((BOB, prompts()), (ALICE, prompts(content="Another")), (CLAUDE, proposes())):
        with pytest.raises(Refused) as no:
            await stage.say(who, body, "p")
        assert no.value.why is Why.KEY_REUSED

    assert await stage.ids() == before


async def test_retries_and_news_in_one_batch_each_get_their_own(make: Make) -> None:
    log = Tricky()
    stage = make(log, window=5)
    await stage.open(BOB, CLAUDE)
    await stage.say(ALICE, prompts(), "one")
    await stage.say(ALICE, prompts(), "two")
    await long_ago(stage)

    log.hold("append")
    ids = ("a", "one", "b", "two", "c")
    replies = [stage.ask(ALICE, prompts(), id) for id in ids]
    log.release()
    await stage.settle()

    assert [reply.sealed[0].record.id for reply in replies] == list(ids)
    assert [reply.outcome and reply.outcome.again for reply in replies] == [0, 1, 0, 1, 0]
    assert (await stage.ids())[-3:] == ["a", "b", "c"]
    assert stage.ears["bob"].ids[-3:] == ["a", "b", "c"]


async def test_an_id_of_ours_that_somebody_used_up_is_not_the_end(make: Make) -> None:
    """Whoever knows the instant can tell which id the gate of a proposal will have."""
    stage = make()
    await stage.open(BOB, CLAUDE)
    taken = derived(T0, STREAM, "t", "1")
    await stage.say(ALICE, prompts(), taken)

    gate = (await stage.say(CLAUDE, proposes(), "t"))[1]

    assert gate.record.id != taken
    assert (await stage.say(ALICE, prompts(), taken))[0].record.actor == "alice"
    await stage.records()


# Ways in


@proves("OPEN-36", "OPEN-37")
async def test_a_join_tried_again_on_another_connection_is_a_way_in(make: Make) -> None:
    stage = make()
    await stage.open(CLAUDE)
    lost = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")
    lost.hang_up()
    await stage.settle()
    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED
    seqs = len(await stage.ids())

    bob = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")
    await stage.say(ALICE, prompts(), "p")

    assert (await stage.state()).members["bob"].presence is Presence.ACTIVE
    assert bob.ids[-1] == "p"
    assert bob.seqs == list(range(1, seqs + 3))
    assert stage.ears["alice"].ids.count("join") == 1


@proves("OPEN-36")
async def test_a_create_tried_again_on_another_connection_is_a_way_in(make: Make) -> None:
    stage = make()
    lost = stage.connect(ALICE)
    await stage.say(ALICE, creates(), "create")
    lost.hang_up()

    alice = stage.connect(ALICE)
    again = await stage.say(ALICE, creates(), "create")

    assert again[0].record.id == "create"
    await stage.say(ALICE, joins(ALICE, Role.ADMIN), "join")
    assert alice.ids[-2] == "join"
    assert alice.seqs == list(range(1, len(alice.seqs) + 1))


async def test_a_join_tried_again_after_leaving_is_no_way_in(make: Make) -> None:
    stage = make()
    await stage.open(CLAUDE)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")
    await stage.say(BOB, SessionLeave(), "leave")

    bob = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")
    await stage.say(ALICE, prompts(), "p")

    assert bob.heard == []
    assert "bob" not in (await stage.state()).members


async def test_a_join_tried_again_on_its_own_connection_changes_nothing(make: Make) -> None:
    stage = make()
    await stage.open(CLAUDE)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")
    heard = len(stage.ears["bob"].heard)

    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")

    assert len(stage.ears["bob"].heard) == heard


async def test_who_cannot_be_put_on_record_as_back_comes_back_once_more(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    lost = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")
    lost.hang_up()
    await stage.settle()

    log.failing.add("append")
    bob = stage.connect(BOB)
    stage.ask(BOB, joins(BOB, Role.DRIVER), "join")
    await stage.settle()
    await turns()
    log.failing.clear()

    assert bob.closed
    assert bob.invited, "otherwise it would be put out when the grace period ends"
    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED
