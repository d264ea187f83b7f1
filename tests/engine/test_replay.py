"""Coming in and coming back: roll call, what was missed, and then the room, each once."""

from collections.abc import Sequence

import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.members import SessionLeave
from accord.core.room.state import Presence
from accord.engine import arrivals as arrivals_module
from accord.engine import opener
from accord.engine.ports import Row
from tests.engine.conftest import Make
from tests.helpers.engine import Ear, Stage, Tricky, turns
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    announces,
    creates,
    ends,
    executes,
    gate_on,
    joins,
    prompts,
    proposes,
)
from tests.spec import proves


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long histories are short here."""
    monkeypatch.setattr(arrivals_module, "PAGE", 7)


async def talk(stage: Stage, count: int, name: str = "p") -> None:
    """Much is said."""
    for n in range(count):
        await stage.say(ALICE, prompts(), f"{name}{n}")


async def away(stage: Stage, said: int) -> tuple[Ear, Ear]:
    """Bob was there, is gone while things are said, and connects again."""
    before = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "bob")
    before.hang_up()
    await talk(stage, said)
    return before, stage.connect(BOB)


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


# Coming back


@proves("OPEN-37", "PVP-19.1-3", "PVP-19.5-2")
@pytest.mark.parametrize("said", [0, 3, 40])
async def test_who_comes_back_hears_what_it_missed_and_nothing_twice(make: Make, said: int) -> None:
    stage = make(window=10)
    await stage.open(CLAUDE)
    before, bob = await away(stage, said)

    await stage.say(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])
    await stage.say(ALICE, prompts(), "live")

    everything = await stage.ids()
    assert [*before.ids, *bob.ids] == everything[-len(before.ids) - len(bob.ids) :]
    assert bob.ids[-1] == "live"
    assert "back" in bob.ids


@proves("OPEN-37")
async def test_the_room_goes_on_while_somebody_is_told_a_long_story(make: Make) -> None:
    log = Tricky()
    stage = make(log, window=5)
    await stage.open(CLAUDE)
    before, bob = await away(stage, 40)
    bob.stall()

    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])
    await turns()
    for n in range(3):
        stage.ask(ALICE, prompts(), f"meanwhile{n}")
        stage.ask(BOB, prompts(), f"mine{n}")
        await turns()
    assert stage.ears["alice"].ids[-1] == "mine2", "nobody waits for a slow reader"
    assert "meanwhile0" not in bob.ids
    bob.resume()
    await stage.settle()
    await stage.say(ALICE, prompts(), "live")

    assert [*before.ids, *bob.ids] == (await stage.ids())[-len(before.ids) - len(bob.ids) :]
    assert bob.seqs == sorted(set(bob.seqs))
    assert bob.ids[-1] == "live"


async def test_what_is_being_committed_is_not_told_twice(make: Make) -> None:
    """The store may have rows that the room has not been told of yet."""
    log = Ahead()
    stage = make(log, window=5)
    await stage.open(CLAUDE)
    before, bob = await away(stage, 20)

    bob.stall()
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])
    await turns()
    log.dawdle = True
    stage.ask(ALICE, prompts(), "early")
    await turns()
    bob.resume()
    await turns()
    log.dawdle = False
    await stage.settle()

    assert bob.ids.count("early") == 1
    assert bob.seqs == sorted(set(bob.seqs))


class Ahead(Tricky):
    """Keeps rows at once, but takes its time to say so."""

    dawdle = False

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        await super().append(stream, expected, rows)
        while self.dawdle:
            await turns(1)


@proves("OPEN-37", "OPEN-30")
async def test_a_long_story_names_everybody_once(make: Make) -> None:
    stage = make(window=5)
    await stage.open(CLAUDE)
    before, bob = await away(stage, 10)
    await stage.say(CAROL, joins(CAROL), "carol")
    await talk(stage, 10, "q")

    await stage.say(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])

    named = [each["id"] for each in bob.heard if each["type"] == "participant.announce"]
    assert len(named) == len(set(named))
    who = [e["payload"]["id"] for e in bob.heard if e["type"] == "participant.announce"]
    assert who == ["alice", "claude", "carol", "bob"]


@proves("OPEN-37")
@pytest.mark.parametrize("kind", ["tool", "gate"])
async def test_the_last_thing_seen_may_be_open_since_long_ago(make: Make, kind: str) -> None:
    """The room knows what is open without looking it up; replay must not."""
    stage = make(window=5)
    await stage.open(BOB, CLAUDE)
    before = stage.ears["bob"]
    await stage.say(CLAUDE, proposes(), "tool")
    last = "tool" if kind == "tool" else gate_on(await stage.state(), "tool").id
    seen = before.ids[: before.ids.index(last) + 1]
    before.hang_up()
    await talk(stage, 20)

    bob = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "back", last)
    await stage.say(ALICE, prompts(), "live")

    everything = await stage.ids()
    assert bob.ids == everything[everything.index(last) + 1 :]
    assert seen[-1] == last


@proves("OPEN-35", "OPEN-37")
async def test_a_ref_that_nobody_said_lets_nobody_in(make: Make) -> None:
    stage = make(window=5)
    await stage.open(CLAUDE)
    await talk(stage, 10)
    bob = stage.connect(BOB)

    with pytest.raises(Refused) as no:
        await stage.say(BOB, joins(BOB, Role.DRIVER), "join", "never said")

    assert no.value.why is Why.MALFORMED
    assert no.value.details == {"unknown": ["never said"]}
    assert bob.heard == []
    assert "bob" not in (await stage.state()).members


@proves("OPEN-35", "UNI-12")
@pytest.mark.parametrize("since", [0, 10])
async def test_a_ref_to_what_one_may_not_see_is_no_ref(make: Make, since: int) -> None:
    stage = make(window=5)
    await stage.open(CLAUDE, require_approval_for=())
    await stage.say(CLAUDE, proposes(), "tool")
    await stage.say(CLAUDE, executes("tool"), "run")
    await talk(stage, since)

    with pytest.raises(Refused) as no:
        await stage.say(BOB, joins(BOB, Role.DRIVER), "join", "run")

    assert no.value.details == {"unknown": ["run"]}


@proves("UNI-12", "OPEN-37")
@pytest.mark.parametrize("since", [0, 20])
async def test_replay_shows_each_what_it_may_see(make: Make, since: int) -> None:
    stage = make(window=5)
    await stage.open(BOB, CLAUDE, require_approval_for=())
    last = stage.ears["bob"].ids[-1]
    await stage.say(CLAUDE, proposes(), "tool")
    await stage.say(CLAUDE, executes("tool"), "run")
    await talk(stage, since)

    bob, claude = stage.connect(BOB), stage.connect(CLAUDE)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "bob", last)
    await stage.say(CLAUDE, joins(CLAUDE, Role.DRIVER), "claude", last)

    assert "run" in claude.ids
    assert "run" not in bob.ids
    assert {"tool", "bob"} < set(bob.ids)


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
    before, bob = await away(stage, 30)
    bob.stall()
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])
    await turns()
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
    before, bob = await away(stage, 30)
    bob.stall()
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])
    await turns()

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
    before, bob = await away(stage, 30)
    bob.stall()
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])
    await turns()

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
