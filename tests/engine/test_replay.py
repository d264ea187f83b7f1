"""Coming back: what was missed, and then the room, each once."""

from collections.abc import Sequence

import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Refused, Why
from accord.engine.ports import Row
from tests.engine.conftest import Make
from tests.helpers.engine import Tricky, turns
from tests.helpers.replay import away, midway, talk
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    executes,
    gate_on,
    joins,
    prompts,
    proposes,
)
from tests.spec import proves

pytestmark = pytest.mark.usefixtures("small_pages")


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
    before, bob = await midway(stage, 40)

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
    _, bob = await midway(stage, 20)

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
