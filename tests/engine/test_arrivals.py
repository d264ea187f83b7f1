"""Coming in, and what may happen on the way: who is there, who is not, and what they hear."""

import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.members import SessionLeave
from accord.core.room.state import Presence
from accord.engine import opener
from tests.engine.conftest import Make
from tests.helpers.engine import Tricky, turns
from tests.helpers.replay import away, midway, talk
from tests.helpers.room import ALICE, BOB, CAROL, CLAUDE, announces, creates, ends, joins, prompts
from tests.spec import proves

pytestmark = pytest.mark.usefixtures("small_pages")


# Coming in


@proves("OPEN-30", "PVP-7.1-2")
async def test_a_newcomer_hears_the_window_its_own_coming_and_then_the_room(make: Make) -> None:
    stage = make()
    await stage.open(CLAUDE)
    await talk(stage, 3)

    bob = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")
    await talk(stage, 2, "later")

    assert bob.ids == await stage.ids()
    assert bob.types[-4:] == [
        "session.join",
        "participant.announce",
        "prompt.submit",
        "prompt.submit",
    ]
    assert len(bob.heard) == len(bob.ids), "whoever is here is in the window, so nobody is called"


@proves("OPEN-30", "OPEN-37")
async def test_the_roll_is_called_of_those_whom_the_window_does_not_tell_of(make: Make) -> None:
    stage = make(window=4)
    await stage.open(CLAUDE, CAROL)
    await talk(stage, 10)

    bob = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "join")

    called = [each for each in bob.heard if "seq" not in each]
    assert [each["payload"]["id"] for each in called] == ["alice", "claude", "carol"]
    assert bob.types == ["participant.announce"] * 3 + ["prompt.submit"] * 2 + [
        "session.join",
        "participant.announce",
    ]
    assert bob.ids == (await stage.ids())[-4:]


@proves("PVP-6.1-3", "OPEN-6", "OPEN-30")
async def test_create_and_join_in_one_breath(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    log.hold("append")
    alice = stage.connect(ALICE)

    stage.ask(ALICE, creates(), "create")
    stage.ask(ALICE, joins(ALICE, Role.ADMIN), "join")
    stage.ask(ALICE, announces(ALICE), "announce")
    await turns()
    log.release()
    await stage.settle()
    await stage.say(CLAUDE, joins(CLAUDE, Role.DRIVER))

    assert alice.ids == await stage.ids()
    assert alice.seqs == list(range(1, 8))


async def test_create_and_join_before_the_room_was_looked_up(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    log.hold("snapshot", "read")
    alice, bob = stage.connect(ALICE), stage.connect(BOB)

    replies = [
        stage.ask(ALICE, creates(), "create"),
        stage.ask(ALICE, joins(ALICE, Role.ADMIN), "join"),
        stage.ask(BOB, joins(BOB, Role.DRIVER), "bob"),
        stage.ask(BOB, prompts(), "nobody to ask"),
    ]
    await turns()
    log.release()
    await stage.settle()

    assert [bool(reply.refused) for reply in replies] == [False, False, False, True]
    assert alice.ids == bob.ids == await stage.ids()


async def test_who_comes_and_goes_in_one_breath_hears_just_that(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    bob = stage.connect(BOB)

    log.hold("append")
    stage.ask(ALICE, prompts(), "before")
    stage.ask(BOB, joins(BOB, Role.DRIVER), "join")
    stage.ask(BOB, SessionLeave(), "leave")
    stage.ask(ALICE, prompts(), "after")
    log.release()
    await stage.settle()

    assert bob.ids[-1] == "leave"
    assert bob.seqs == sorted(set(bob.seqs))
    assert "after" not in bob.ids
    assert not stage.engine.peers.hears("room/r", bob)
    assert stage.ears["alice"].ids == await stage.ids()


async def test_leave_and_join_in_one_breath_is_a_way_back(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(BOB, CLAUDE)
    bob = stage.ears["bob"]
    last = bob.ids[-1]

    log.hold("append")
    stage.ask(BOB, SessionLeave(), "leave")
    stage.ask(ALICE, prompts(), "unheard")
    stage.ask(BOB, joins(BOB, Role.DRIVER), "join", "leave")
    log.release()
    await stage.settle()
    await stage.say(ALICE, prompts(), "live")

    assert last in bob.ids
    assert bob.ids == await stage.ids()


@proves("OPEN-49", "PVP-6.4-2")
async def test_a_leaver_hears_nothing_after_the_leave_on_any_connection(make: Make) -> None:
    stage = make()
    await stage.open(BOB, CLAUDE)
    first = stage.ears["bob"]
    second = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER))

    await stage.say(BOB, SessionLeave(), "leave")
    await stage.say(ALICE, prompts(), "secret")
    with pytest.raises(Refused) as no:
        await stage.say(BOB, prompts())

    assert no.value.why is Why.NO_MEMBER
    assert first.ids[-1] == second.ids[-1] == "leave"
    assert stage.ears["claude"].ids[-1] == "secret"


# What may happen on the way in


@proves("OPEN-32")
async def test_who_is_gone_before_the_door_opens_is_not_there(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    bob = stage.connect(BOB)

    log.hold("append")
    stage.ask(BOB, joins(BOB, Role.DRIVER), "join")
    bob.hang_up()
    log.release()
    await stage.settle()

    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED
    assert bob.heard == []
    assert bob not in stage.engine.peers.places


@proves("OPEN-32")
async def test_who_is_gone_while_it_is_told_a_long_story_is_not_there(make: Make) -> None:
    log = Tricky()
    stage = make(log, window=5)
    await stage.open(CLAUDE)
    _, bob = await midway(stage, 30)
    read = log.calls["read"]

    bob.hang_up()
    await stage.settle()

    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED
    assert stage.engine.arrivals.halls == stage.engine.peers.places.get(bob, {}) == {}
    assert log.calls["read"] - read < 5, "nobody reads on for who is gone"


@proves("OPEN-49")
async def test_who_leaves_while_it_is_told_a_long_story_hears_it_up_to_there(make: Make) -> None:
    stage = make(window=5)
    await stage.open(CLAUDE)
    _, bob = await midway(stage, 30)

    stage.ask(BOB, SessionLeave(), "leave")
    await turns()
    stage.ask(ALICE, prompts(), "secret")
    await turns()
    bob.resume()
    await stage.settle()
    await stage.say(ALICE, prompts(), "secret too")

    everything = await stage.ids()
    first = everything.index(bob.ids[0])
    assert bob.ids == everything[first : everything.index("leave") + 1]
    assert not stage.engine.peers.listened("room/r") or not stage.engine.peers.hears("room/r", bob)


async def test_a_join_while_one_is_told_a_long_story_changes_nothing(make: Make) -> None:
    stage = make(window=5)
    await stage.open(CLAUDE)
    before, bob = await midway(stage, 30)

    again = stage.ask(BOB, joins(BOB, Role.DRIVER), "impatient", before.ids[-1])
    await turns()
    bob.resume()
    await stage.settle()
    await stage.say(ALICE, prompts(), "live")

    assert again.sealed
    assert [*before.ids, *bob.ids] == (await stage.ids())[-len(before.ids) - len(bob.ids) :]


async def test_a_story_that_cannot_be_read_ends_the_connection_for_now(make: Make) -> None:
    log = Tricky()
    stage = make(log, window=5, check=False)
    await stage.open(CLAUDE)
    before, bob = await away(stage, 30)

    log.failing.add("read")
    log.spared["read"] = 1  # to find what was seen last
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])
    await turns()
    log.failing.clear()
    await stage.settle()

    assert bob.closed
    assert bob.invited
    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED
    after = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "now", before.ids[-1])
    assert [*before.ids, *after.ids] == (await stage.ids())[-len(before.ids) - len(after.ids) :]


async def test_a_room_with_somebody_on_the_way_in_does_not_make_way(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make(window=5)
    await stage.open(CLAUDE)
    before, bob = await away(stage, 30)
    for seat in ("alice", "claude"):
        stage.ears[seat].hang_up()
    await stage.settle()
    bob.stall()
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])
    await turns()

    monkeypatch.setattr(opener, "MOST_CELLS", 1)
    stage.ask(CAROL, creates(), room="other")
    await turns()
    stage.ask(ALICE, prompts(), "meanwhile", ear=stage.connect(ALICE))
    await turns()
    bob.resume()
    await stage.settle()

    assert bob.ids[-1] == "meanwhile"


@proves("OPEN-27")
async def test_an_ended_session_lets_nobody_in(make: Make) -> None:
    stage = make()
    await stage.open(BOB, CLAUDE)
    await stage.say(ALICE, ends())

    for who, why in ((BOB, Why.ENDED), (CAROL, Why.NO_ROOM)):
        with pytest.raises(Refused) as no:
            await stage.say(who, joins(who, Role.DRIVER), ear=stage.connect(who))
        assert no.value.why is why


async def test_who_comes_back_after_long_and_goes_in_one_breath_misses_nothing(make: Make) -> None:
    log = Tricky()
    stage = make(log, window=5)
    await stage.open(CLAUDE)
    before, bob = await away(stage, 30)

    log.hold("append")
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])
    stage.ask(BOB, SessionLeave(), "leave")
    stage.ask(CAROL, joins(CAROL), "secret")
    await turns()
    log.release()
    await stage.settle()

    everything = await stage.ids()
    after = everything.index(before.ids[-1]) + 1
    assert bob.ids == everything[after : everything.index("leave") + 1]
    assert len(bob.heard) == len(bob.ids), "nobody calls the roll for who is gone"
    assert stage.engine.arrivals.halls == {}
    assert not stage.engine.peers.hears("room/r", bob)
