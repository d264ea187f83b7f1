"""Repeated ids: in flight, in the window, older, by another sender, with another content."""

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.ulid import derive_ulid
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.state import Presence
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness, FaultyLog, yield_to_loop
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    STREAM,
    T0,
    prompt_submit,
    session_create,
    session_join,
    tool_approve,
    tool_propose,
)
from tests.spec import proves


async def long_ago(stage: EngineHarness, count: int = 10) -> None:
    """Enough is said that nothing from before is at hand."""
    for _ in range(count):
        await stage.send(ALICE, prompt_submit())


@proves("OPEN-36", "UNI-11", "PVP-4.2-2")
async def test_a_retry_in_flight_gets_the_outcome_of_the_first(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(BOB, CLAUDE)

    log.hold("append")
    first = stage.submit(CLAUDE, tool_propose(), "t")
    retry = stage.submit(CLAUDE, tool_propose(), "t")
    await yield_to_loop()
    again = stage.submit(CLAUDE, tool_propose(), "t")
    log.release()
    await stage.wait_until_idle()

    assert first.records == retry.records == again.records
    assert [each.outcome and each.outcome.is_retry for each in (first, retry, again)] == [0, 1, 1]
    assert stage.peers["bob"].ids.count("t") == 1
    assert (await stage.ids()).count("t") == 1


@proves("OPEN-36", "UNI-11", "PVP-4.2-2")
async def test_a_retry_from_before_the_window_gets_the_first_outcome(make: Make) -> None:
    stage = make(window=5)
    await stage.open_room(BOB, CLAUDE)
    first = await stage.send(ALICE, prompt_submit(), "p")
    await long_ago(stage)
    heard = len(stage.peers["bob"].received)

    again = await stage.send(ALICE, prompt_submit(), "p")

    assert [each.record for each in again] == [each.record for each in first]
    assert len(stage.peers["bob"].received) == heard
    assert (await stage.ids()).count("p") == 1


@proves("OPEN-36", "UNI-11")
async def test_old_retry_that_would_be_refused_now_gets_its_first_outcome(make: Make) -> None:
    stage = make(window=5)
    await stage.open_room(BOB, CLAUDE)
    await stage.send(CLAUDE, tool_propose(), "t")
    vote = await stage.send(ALICE, tool_approve(ALICE, "t"), "vote")
    await stage.send(BOB, SessionLeave(), "leave")
    await long_ago(stage)

    again = await stage.send(ALICE, tool_approve(ALICE, "t"), "vote")
    left = await stage.send(BOB, SessionLeave(), "leave")

    assert again[0].record == vote[0].record
    assert left[0].record.id == "leave"
    with pytest.raises(Refused) as no:
        await stage.send(ALICE, tool_approve(ALICE, "t"), "another vote")
    assert no.value.reason is Reason.WRONG_STATE


@proves("OPEN-36", "UNI-11")
@pytest.mark.parametrize("since", [0, 10])
async def test_used_id_is_refused_even_outside_the_window(make: Make, since: int) -> None:
    stage = make(window=5)
    await stage.open_room(BOB, CLAUDE)
    await stage.send(ALICE, prompt_submit(), "p")
    await long_ago(stage, since)
    before = await stage.ids()

    for who, body in (
        (BOB, prompt_submit()),
        (ALICE, prompt_submit(content="Another")),
        (CLAUDE, tool_propose()),
    ):
        with pytest.raises(Refused) as no:
            await stage.send(who, body, "p")
        assert no.value.reason is Reason.KEY_REUSED

    assert await stage.ids() == before


async def test_retries_and_new_messages_in_one_batch_get_their_own_outcomes(make: Make) -> None:
    log = FaultyLog()
    stage = make(log, window=5)
    await stage.open_room(BOB, CLAUDE)
    await stage.send(ALICE, prompt_submit(), "one")
    await stage.send(ALICE, prompt_submit(), "two")
    await long_ago(stage)

    log.hold("append")
    ids = ("a", "one", "b", "two", "c")
    replies = [stage.submit(ALICE, prompt_submit(), id) for id in ids]
    log.release()
    await stage.wait_until_idle()

    assert [reply.records[0].record.id for reply in replies] == list(ids)
    assert [reply.outcome and reply.outcome.is_retry for reply in replies] == [0, 1, 0, 1, 0]
    assert (await stage.ids())[-3:] == ["a", "b", "c"]
    assert stage.peers["bob"].ids[-3:] == ["a", "b", "c"]


async def test_collision_with_a_server_generated_id_is_resolved(make: Make) -> None:
    """Whoever knows the instant can tell which id the gate of a proposal will have."""
    stage = make()
    await stage.open_room(BOB, CLAUDE)
    taken = derive_ulid(T0, STREAM, "t", "1")
    await stage.send(ALICE, prompt_submit(), taken)

    gate = (await stage.send(CLAUDE, tool_propose(), "t"))[1]

    assert gate.record.id != taken
    assert (await stage.send(ALICE, prompt_submit(), taken))[0].record.actor == "alice"
    await stage.records()


# Ways in


@proves("OPEN-36", "OPEN-37")
async def test_retried_join_on_another_connection_joins(make: Make) -> None:
    stage = make()
    await stage.open_room(CLAUDE)
    lost = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")
    lost.disconnect()
    await stage.wait_until_idle()
    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED
    seqs = len(await stage.ids())

    bob = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")
    await stage.send(ALICE, prompt_submit(), "p")

    assert (await stage.state()).members["bob"].presence is Presence.ACTIVE
    assert bob.ids[-1] == "p"
    assert bob.seqs == list(range(1, seqs + 3))
    assert stage.peers["alice"].ids.count("join") == 1


@proves("OPEN-36")
async def test_retried_create_on_another_connection_joins(make: Make) -> None:
    stage = make()
    lost = stage.connect(ALICE)
    await stage.send(ALICE, session_create(), "create")
    lost.disconnect()

    alice = stage.connect(ALICE)
    again = await stage.send(ALICE, session_create(), "create")

    assert again[0].record.id == "create"
    await stage.send(ALICE, session_join(ALICE, Role.ADMIN), "join")
    assert alice.ids[-2] == "join"
    assert alice.seqs == list(range(1, len(alice.seqs) + 1))


async def test_retried_join_after_a_leave_does_not_join(make: Make) -> None:
    stage = make()
    await stage.open_room(CLAUDE)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")
    await stage.send(BOB, SessionLeave(), "leave")

    bob = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")
    await stage.send(ALICE, prompt_submit(), "p")

    assert bob.received == []
    assert "bob" not in (await stage.state()).members


async def test_retried_join_on_the_same_connection_changes_nothing(make: Make) -> None:
    stage = make()
    await stage.open_room(CLAUDE)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")
    heard = len(stage.peers["bob"].received)

    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")

    assert len(stage.peers["bob"].received) == heard


async def test_member_whose_return_was_not_recorded_is_disconnected(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    lost = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")
    lost.disconnect()
    await stage.wait_until_idle()

    log.failing.add("append")
    bob = stage.connect(BOB)
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "join")
    await stage.wait_until_idle()
    await yield_to_loop()
    log.failing.clear()

    assert bob.close_reason
    assert bob.reconnect_invited, "otherwise it would be put out when the grace period ends"
    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED


# A session that is created again


@pytest.mark.parametrize("window", [5, 100])
async def test_an_identical_create_by_the_creator_gets_the_first_echo(
    make: Make, window: int
) -> None:
    stage = make(window=window)
    first = await stage.send(ALICE, session_create("Release"), "first")
    for who in (BOB, CLAUDE):
        await stage.send(who, session_join(who, Role.DRIVER))
    await long_ago(stage)
    heard, before = len(stage.peers["bob"].received), await stage.ids()

    again = await stage.send(ALICE, session_create("Release"), "second")

    assert again[0].record == first[0].record
    assert len(stage.peers["bob"].received) == heard
    assert await stage.ids() == before


async def test_a_create_with_other_content_or_by_another_is_refused(make: Make) -> None:
    stage = make()
    await stage.send(ALICE, session_create("Release"), "first")
    await stage.send(BOB, session_join(BOB, Role.DRIVER))

    for who, name in ((ALICE, "Other"), (BOB, "Release"), (CLAUDE, "Release")):
        with pytest.raises(Refused, match="is taken") as no:
            await stage.send(who, session_create(name))
        assert no.value.reason is Reason.WRONG_STATE


async def test_an_identical_create_brings_its_creator_not_back(make: Make) -> None:
    stage = make()
    await stage.send(ALICE, session_create("Release"), "first")
    for who in (BOB, CLAUDE):
        await stage.send(who, session_join(who, Role.DRIVER))
    await stage.send(ALICE, SessionLeave())
    alice = stage.connect(ALICE)

    again = await stage.send(ALICE, session_create("Release"), "second")
    await stage.send(BOB, prompt_submit())

    assert again[0].record.id == "first"
    assert alice.received == []
    assert "alice" not in (await stage.state()).members
