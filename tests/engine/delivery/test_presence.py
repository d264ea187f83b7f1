"""Presence: lost connections, several connections of one member, and the grace period."""

import pytest

from accord.core.kernel.ballot import Everyone
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room.room_settings import AbsencePolicy
from accord.core.room.state import Presence
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness, FaultyLog, yield_to_loop
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    DAVE,
    OPEN_POLICY,
    prompt_submit,
    session_join,
    tool_approve,
    tool_propose,
    with_credential,
)
from tests.spec import proves

GRACE = 300  # seconds
DISCONNECTED, ACTIVE = Presence.DISCONNECTED, Presence.ACTIVE


async def presence(stage: EngineHarness, seat: str) -> Presence:
    """Whether somebody is there."""
    return (await stage.state()).members[seat].presence


def news_of(stage: EngineHarness, seat: str) -> list[str]:
    """What Alice heard of somebody's presence."""
    return [
        each["payload"]["status"]
        for each in stage.peers["alice"].received
        if each["type"] == "presence.update" and each["payload"]["participant"] == seat
    ]


@proves("OPEN-32")
async def test_losing_the_last_connection_is_a_disconnect_not_a_leave(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)

    stage.peers["bob"].disconnect()
    await stage.wait_until_idle()

    assert await presence(stage, "bob") is DISCONNECTED
    assert news_of(stage, "bob") == ["disconnected"]
    assert stage.peers["alice"].received[-1]["sender"] == "system"
    assert "session.leave" not in stage.peers["alice"].types


@proves("OPEN-29", "OPEN-30", "UNI-2")
async def test_losing_one_of_two_connections_is_not_a_disconnect(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    first = stage.peers["bob"]
    second = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER))

    first.disconnect()
    await stage.wait_until_idle()
    assert await presence(stage, "bob") is ACTIVE
    second.disconnect()
    await stage.wait_until_idle()

    assert await presence(stage, "bob") is DISCONNECTED
    assert len((await stage.state()).members) == 3


async def test_both_connections_of_a_member_get_everything_once(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    first = stage.peers["bob"]
    second = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER))
    await stage.send(BOB, prompt_submit(), "p")

    assert second.ids == await stage.ids()
    assert first.ids == (await stage.ids())[-len(first.ids) :]
    assert first.ids.count("p") == 1


async def test_connection_without_a_join_gets_only_its_own_results(
    stage: EngineHarness,
) -> None:
    await stage.open_room(BOB, CLAUDE)
    second = stage.connect(BOB)

    await stage.send(BOB, prompt_submit(), "mine")
    await stage.send(ALICE, prompt_submit(), "hers")

    assert second.ids == ["mine"]


@proves("OPEN-29", "UNI-2")
async def test_newer_connection_of_the_same_runtime_replaces_the_older(
    stage: EngineHarness,
) -> None:
    await stage.open_room(CLAUDE)
    old = stage.connect(BOB, "laptop")
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")
    new = stage.connect(BOB, "laptop")

    await stage.send(BOB, session_join(BOB, Role.DRIVER), "again", old.ids[-1])
    await yield_to_loop()
    await stage.wait_until_idle()
    await stage.send(ALICE, prompt_submit(), "p")

    assert old.close_reason == "replaced by a newer connection"
    assert not old.reconnect_invited
    assert await presence(stage, "bob") is ACTIVE
    everything = await stage.ids()
    assert new.ids == everything[everything.index("again") :]
    assert "p" not in old.ids
    assert news_of(stage, "bob") == []


@proves("OPEN-29", "OPEN-32")
@pytest.mark.parametrize("noticed", ["before", "decided", "after"])
async def test_reconnect_before_the_old_socket_closes_is_not_a_disconnect(
    make: Make, noticed: str
) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE, BOB)
    old, new = stage.peers["bob"], stage.connect(BOB)
    if noticed == "before":
        old.disconnect()
    log.hold("append")
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "back", old.ids[-1])
    if noticed == "decided":
        old.disconnect()
    await yield_to_loop()
    log.release()
    await stage.wait_until_idle()
    if noticed == "after":
        old.disconnect()
    await stage.wait_until_idle()
    await stage.advance_time(2 * GRACE)

    assert await presence(stage, "bob") is ACTIVE
    await stage.send(ALICE, prompt_submit(), "p")
    assert new.ids[-1] == "p"


async def test_reconnect_queued_while_the_stream_is_read_is_not_a_disconnect(make: Make) -> None:
    log = FaultyLog()
    stage = make(log, window=5)
    await stage.open_room(CLAUDE, BOB)
    for _ in range(10):
        await stage.send(ALICE, prompt_submit())
    old, new = stage.peers["bob"], stage.connect(BOB)

    log.hold("find")
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "back", old.ids[0])
    await yield_to_loop()
    old.disconnect()
    log.release()
    await stage.wait_until_idle()

    assert await presence(stage, "bob") is ACTIVE
    assert news_of(stage, "bob") == []
    assert new.ids[-1] == (await stage.ids())[-1]


@proves("OPEN-32")
async def test_refused_reconnect_still_records_the_disconnect(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE, BOB)
    old, _ = stage.peers["bob"], stage.connect(BOB)

    log.hold("append")
    stage.submit(ALICE, prompt_submit())
    refused = stage.submit(
        with_credential(BOB, Role.OBSERVER), session_join(BOB, Role.ADMIN), "back"
    )
    old.disconnect()
    log.release()
    await stage.wait_until_idle()

    assert refused.refusal
    assert refused.refusal.reason is Reason.FORBIDDEN
    assert await presence(stage, "bob") is DISCONNECTED


@proves("OPEN-32")
async def test_reconnect_lost_at_once_still_records_the_disconnect(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE, BOB)
    old, new = stage.peers["bob"], stage.connect(BOB)

    log.hold("append")
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "back")
    old.disconnect()
    new.disconnect()
    log.release()
    await stage.wait_until_idle()

    assert await presence(stage, "bob") is DISCONNECTED


@proves("OPEN-32")
async def test_disconnect_is_recorded_after_the_store_recovers(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE, BOB, DAVE)

    log.failing.add("append")
    stage.peers["bob"].disconnect()
    stage.peers["dave"].disconnect()
    await stage.wait_until_idle()
    assert await presence(stage, "bob") is ACTIVE
    back = stage.submit(DAVE, session_join(DAVE, Role.DRIVER), ear=stage.connect(DAVE))
    await stage.wait_until_idle()
    assert back.refusal
    log.failing.clear()
    stage.submit(DAVE, session_join(DAVE, Role.DRIVER))
    await stage.wait_until_idle()

    assert await presence(stage, "bob") is DISCONNECTED
    assert await presence(stage, "dave") is ACTIVE
    assert stage.engine.delivery.unrecorded_absences == set()


@proves("OPEN-32", "UNI-23")
async def test_without_tokens_the_server_records_a_leave_after_the_grace_period(make: Make) -> None:
    stage = make(policy=OPEN_POLICY)
    await stage.open_room(BOB, CLAUDE)
    stage.peers["bob"].disconnect()
    await stage.wait_until_idle()

    await stage.advance_time(GRACE - 1)
    assert "bob" in (await stage.state()).members
    await stage.advance_time(1)

    assert "bob" not in (await stage.state()).members
    leave, gone = stage.peers["alice"].received[-2:]
    assert (leave["type"], leave["sender"]) == ("session.leave", "system")
    assert (gone["type"], gone["payload"]["status"]) == ("presence.update", "disconnected")
    assert leave["payload"]["participant"] == "bob"
    with pytest.raises(Refused) as no:
        await stage.send(BOB, prompt_submit(), ear=stage.connect(BOB))
    assert no.value.reason is Reason.NO_MEMBER


@proves("OPEN-32")
async def test_member_who_returns_in_time_stays(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    stage.peers["bob"].disconnect()
    await stage.wait_until_idle()
    await stage.advance_time(GRACE - 1)

    stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER))
    await stage.advance_time(10 * GRACE)

    assert await presence(stage, "bob") is ACTIVE
    assert news_of(stage, "bob") == ["disconnected"]


@proves("OPEN-32", "UNI-23")
async def test_grace_period_of_the_session_overrides_the_default(make: Make) -> None:
    stage = make(policy=OPEN_POLICY)
    await stage.open_room(BOB, CLAUDE, away_timeout_seconds=1000)
    stage.peers["bob"].disconnect()
    await stage.wait_until_idle()

    await stage.advance_time(999)
    assert "bob" in (await stage.state()).members
    await stage.advance_time(1)

    assert "bob" not in (await stage.state()).members


@proves("OPEN-31", "OPEN-32")
async def test_grace_period_continues_over_a_restart(make: Make) -> None:
    first = make(policy=OPEN_POLICY)
    await first.open_room(BOB, CLAUDE)
    first.peers["bob"].disconnect()
    await first.wait_until_idle()
    first.clock.advance(GRACE - 10)

    second = make(first.log, clock=first.clock, policy=OPEN_POLICY)
    await second.engine.start()
    await second.advance_time(10)

    members = (await second.state()).members
    assert "bob" not in members
    assert members["alice"].presence is DISCONNECTED


@proves("OPEN-32", "OPEN-18")
async def test_short_reconnect_does_not_change_a_quorum(make: Make) -> None:
    """Dave reconnects while a gate waits for everybody; the old socket's end comes in between."""
    log = FaultyLog()
    stage = make(log)
    skip = AbsencePolicy.SKIP
    await stage.open_room(CLAUDE, on_participant_timeout=skip, default_gate_quorum=Everyone())
    await stage.send(DAVE, session_join(DAVE, Role.NAVIGATOR))
    await stage.send(CLAUDE, tool_propose(), "t")
    old, _ = stage.peers["dave"], stage.connect(DAVE)

    log.hold("append")
    stage.submit(DAVE, session_join(DAVE, Role.NAVIGATOR), "back")
    old.disconnect()
    stage.submit(ALICE, tool_approve(ALICE, "t"))
    log.release()
    await stage.wait_until_idle()

    assert "t" in {gate.action for gate in (await stage.state()).gates.values()}


async def test_lost_connection_is_recorded_in_all_its_sessions(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.open_room(BOB, room="other")

    stage.peers["bob"].disconnect()
    await stage.wait_until_idle()

    for room in ("r", "other"):
        assert (await stage.state(room)).members["bob"].presence is DISCONNECTED
    assert stage.engine.delivery.streams_of.keys() == {stage.peers["alice"], stage.peers["claude"]}


@proves("OPEN-29")
async def test_runtime_counts_as_connected_from_the_join_request(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    first = stage.connect(BOB, "first")
    taken = stage.engine.delivery.has_other_runtime

    log.hold("append")
    stage.submit(BOB, session_join(BOB, Role.DRIVER), ear=first)
    assert taken("room/r", "bob", "second")
    assert not taken("room/r", "bob", "first")
    log.release()
    await stage.wait_until_idle()

    assert taken("room/r", "bob", "second")
    first.disconnect()
    assert not taken("room/r", "bob", "second")


@proves("OPEN-32", "OPEN-31")
async def test_membership_survives_two_days_of_absence_and_a_restart(make: Make) -> None:
    first = make()
    await first.open_room(BOB, CLAUDE, default_gate_quorum=Everyone())
    for seat in ("bob", "claude"):
        first.peers[seat].disconnect()
    await first.wait_until_idle()
    await first.advance_time(86_400)

    second = make(first.log, clock=first.clock)
    await second.engine.start()
    await second.advance_time(86_400)

    members = (await second.state()).members
    assert {*members} == {"alice", "bob", "claude"}
    assert {member.presence for member in members.values()} == {DISCONNECTED}
    await second.send(BOB, prompt_submit(), ear=second.connect(BOB))


@proves("UNI-22")
async def test_an_act_through_a_connection_that_did_not_join_is_reported(make: Make) -> None:
    stage = make()
    await stage.open_room(BOB, CLAUDE)
    stage.peers["bob"].disconnect()
    await stage.wait_until_idle()
    acts: list[str] = []
    stage.engine.delivery.on_unsubscribed_act = lambda _, actor: acts.append(actor.principal)

    await stage.send(BOB, prompt_submit(), ear=stage.connect(BOB))
    await stage.send(ALICE, prompt_submit())

    assert acts == ["bob"]
