"""Who is there: lost connections, several of one person, and how a long absence ends."""

import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import Everyone
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.state import OnTimeout, Presence
from tests.engine.conftest import Make
from tests.helpers.engine import Stage, Tricky, turns
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    DAVE,
    approves_tool,
    holding,
    joins,
    prompts,
    proposes,
)
from tests.spec import proves

GRACE = 300  # seconds
DISCONNECTED, ACTIVE = Presence.DISCONNECTED, Presence.ACTIVE


async def presence(stage: Stage, seat: str) -> Presence:
    """Whether somebody is there."""
    return (await stage.state()).members[seat].presence


def news_of(stage: Stage, seat: str) -> list[str]:
    """What Alice heard of somebody's presence."""
    return [
        each["payload"]["status"]
        for each in stage.ears["alice"].heard
        if each["type"] == "presence.update" and each["payload"]["participant"] == seat
    ]


@proves("OPEN-32")
async def test_the_last_connection_lost_is_an_absence_and_no_leave(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)

    stage.ears["bob"].hang_up()
    await stage.settle()

    assert await presence(stage, "bob") is DISCONNECTED
    assert news_of(stage, "bob") == ["disconnected"]
    assert stage.ears["alice"].heard[-1]["sender"] == "system"
    assert "session.leave" not in stage.ears["alice"].types


@proves("OPEN-29", "OPEN-30", "UNI-2")
async def test_one_of_two_connections_lost_is_no_absence(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    first = stage.ears["bob"]
    second = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER))

    first.hang_up()
    await stage.settle()
    assert await presence(stage, "bob") is ACTIVE
    second.hang_up()
    await stage.settle()

    assert await presence(stage, "bob") is DISCONNECTED
    assert len((await stage.state()).members) == 3


async def test_both_connections_hear_everything_once(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    first = stage.ears["bob"]
    second = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER))
    await stage.say(BOB, prompts(), "p")

    assert second.ids == await stage.ids()
    assert first.ids == (await stage.ids())[-len(first.ids) :]
    assert first.ids.count("p") == 1


async def test_a_connection_that_did_not_join_hears_just_what_came_of_its_own(
    stage: Stage,
) -> None:
    await stage.open(BOB, CLAUDE)
    second = stage.connect(BOB)

    await stage.say(BOB, prompts(), "mine")
    await stage.say(ALICE, prompts(), "hers")

    assert second.ids == ["mine"]


@proves("OPEN-29", "UNI-2")
async def test_a_newer_connection_of_the_same_runtime_replaces_the_old(stage: Stage) -> None:
    await stage.open(CLAUDE)
    old = stage.connect(BOB, "laptop")
    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")
    new = stage.connect(BOB, "laptop")

    await stage.say(BOB, joins(BOB, Role.DRIVER), "again", old.ids[-1])
    await turns()
    await stage.settle()
    await stage.say(ALICE, prompts(), "p")

    assert old.closed == "replaced by a newer connection"
    assert not old.invited
    assert await presence(stage, "bob") is ACTIVE
    everything = await stage.ids()
    assert new.ids == everything[everything.index("again") :]
    assert "p" not in old.ids
    assert news_of(stage, "bob") == []


@proves("OPEN-29", "OPEN-32")
@pytest.mark.parametrize("noticed", ["before", "decided", "after"])
async def test_a_reconnect_racing_the_old_socket_is_no_absence(make: Make, noticed: str) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE, BOB)
    old, new = stage.ears["bob"], stage.connect(BOB)
    if noticed == "before":
        old.hang_up()
    log.hold("append")
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", old.ids[-1])
    if noticed == "decided":
        old.hang_up()
    await turns()
    log.release()
    await stage.settle()
    if noticed == "after":
        old.hang_up()
    await stage.settle()
    await stage.wait(2 * GRACE)

    assert await presence(stage, "bob") is ACTIVE
    await stage.say(ALICE, prompts(), "p")
    assert new.ids[-1] == "p"


async def test_a_reconnect_waiting_for_the_room_to_be_read_is_no_absence(make: Make) -> None:
    log = Tricky()
    stage = make(log, window=5)
    await stage.open(CLAUDE, BOB)
    for _ in range(10):
        await stage.say(ALICE, prompts())
    old, new = stage.ears["bob"], stage.connect(BOB)

    log.hold("find")
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", old.ids[0])
    await turns()
    old.hang_up()
    log.release()
    await stage.settle()

    assert await presence(stage, "bob") is ACTIVE
    assert news_of(stage, "bob") == []
    assert new.ids[-1] == (await stage.ids())[-1]


@proves("OPEN-32")
async def test_a_reconnect_that_is_refused_does_not_hide_the_absence(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE, BOB)
    old, _ = stage.ears["bob"], stage.connect(BOB)

    log.hold("append")
    stage.ask(ALICE, prompts())
    refused = stage.ask(holding(BOB, Role.OBSERVER), joins(BOB, Role.ADMIN), "back")
    old.hang_up()
    log.release()
    await stage.settle()

    assert refused.refused
    assert refused.refused.why is Why.FORBIDDEN
    assert await presence(stage, "bob") is DISCONNECTED


@proves("OPEN-32")
async def test_a_reconnect_lost_again_at_once_does_not_hide_the_absence(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE, BOB)
    old, new = stage.ears["bob"], stage.connect(BOB)

    log.hold("append")
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back")
    old.hang_up()
    new.hang_up()
    log.release()
    await stage.settle()

    assert await presence(stage, "bob") is DISCONNECTED


@proves("OPEN-32")
async def test_an_absence_the_store_could_not_keep_is_put_on_record_later(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE, BOB, DAVE)

    log.failing.add("append")
    stage.ears["bob"].hang_up()
    stage.ears["dave"].hang_up()
    await stage.settle()
    assert await presence(stage, "bob") is ACTIVE
    back = stage.ask(DAVE, joins(DAVE, Role.DRIVER), ear=stage.connect(DAVE))
    await stage.settle()
    assert back.refused
    log.failing.clear()
    stage.ask(DAVE, joins(DAVE, Role.DRIVER))
    await stage.settle()

    assert await presence(stage, "bob") is DISCONNECTED
    assert await presence(stage, "dave") is ACTIVE
    assert stage.engine.peers.unsaid == set()


@proves("OPEN-32", "UNI-23")
async def test_after_the_grace_period_the_server_says_the_leave(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    stage.ears["bob"].hang_up()
    await stage.settle()

    await stage.wait(GRACE - 1)
    assert "bob" in (await stage.state()).members
    await stage.wait(1)

    assert "bob" not in (await stage.state()).members
    leave = stage.ears["alice"].heard[-1]
    assert (leave["type"], leave["sender"]) == ("session.leave", "system")
    assert leave["payload"]["participant"] == "bob"
    with pytest.raises(Refused) as no:
        await stage.say(BOB, prompts(), ear=stage.connect(BOB))
    assert no.value.why is Why.NO_MEMBER


@proves("OPEN-32")
async def test_who_comes_back_in_time_stays(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    stage.ears["bob"].hang_up()
    await stage.settle()
    await stage.wait(GRACE - 1)

    stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER))
    await stage.wait(10 * GRACE)

    assert await presence(stage, "bob") is ACTIVE
    assert news_of(stage, "bob") == ["disconnected"]


@proves("OPEN-32", "UNI-23")
async def test_a_longer_patience_of_the_session_counts(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE, away_timeout_seconds=1000)
    stage.ears["bob"].hang_up()
    await stage.settle()

    await stage.wait(999)
    assert "bob" in (await stage.state()).members
    await stage.wait(1)

    assert "bob" not in (await stage.state()).members


@proves("OPEN-31", "OPEN-32")
async def test_a_grace_period_goes_on_over_a_restart(make: Make) -> None:
    first = make()
    await first.open(BOB, CLAUDE)
    first.ears["bob"].hang_up()
    await first.settle()
    first.clock.move(GRACE - 10)

    second = make(first.log, clock=first.clock)
    await second.engine.start()
    await second.wait(10)

    members = (await second.state()).members
    assert "bob" not in members
    assert members["alice"].presence is DISCONNECTED


@proves("OPEN-32", "OPEN-18")
async def test_a_blip_of_the_network_does_not_change_a_quorum(make: Make) -> None:
    """Dave reconnects while a gate waits for everybody; the old socket's end comes in between."""
    log = Tricky()
    stage = make(log)
    skip = OnTimeout.SKIP
    await stage.open(CLAUDE, on_participant_timeout=skip, default_gate_quorum=Everyone())
    await stage.say(DAVE, joins(DAVE, Role.NAVIGATOR))
    await stage.say(CLAUDE, proposes(), "t")
    old, _ = stage.ears["dave"], stage.connect(DAVE)

    log.hold("append")
    stage.ask(DAVE, joins(DAVE, Role.NAVIGATOR), "back")
    old.hang_up()
    stage.ask(ALICE, approves_tool(ALICE, "t"))
    log.release()
    await stage.settle()

    assert "t" in {gate.action for gate in (await stage.state()).gates.values()}


async def test_somebody_in_two_rooms_is_gone_from_both(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.open(BOB, room="other")

    stage.ears["bob"].hang_up()
    await stage.settle()

    for room in ("r", "other"):
        assert (await stage.state(room)).members["bob"].presence is DISCONNECTED
    assert stage.engine.peers.places.keys() == {stage.ears["alice"], stage.ears["claude"]}


@proves("OPEN-29")
async def test_a_seat_is_taken_from_the_moment_its_holder_knocks(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    first = stage.connect(BOB, "first")
    taken = stage.engine.peers.others

    log.hold("append")
    stage.ask(BOB, joins(BOB, Role.DRIVER), ear=first)
    assert taken("room/r", "bob", "second")
    assert not taken("room/r", "bob", "first")
    log.release()
    await stage.settle()

    assert taken("room/r", "bob", "second")
    first.hang_up()
    assert not taken("room/r", "bob", "second")


@proves("OPEN-32")
async def test_who_was_idle_and_is_lost_stays_lost_whatever_comes_from_elsewhere(
    stage: Stage,
) -> None:
    await stage.open(BOB, CLAUDE)
    stage.clock.move(200)
    stage.engine.pulse.scheduler.run_due()
    await stage.settle()
    assert await presence(stage, "bob") is Presence.IDLE
    stage.ears["bob"].hang_up()
    await stage.settle()

    stage.connect(BOB)
    await stage.say(BOB, prompts(), "by the way")

    assert await presence(stage, "bob") is DISCONNECTED
    await stage.wait(GRACE)
    assert "bob" not in (await stage.state()).members
