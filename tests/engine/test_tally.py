"""What happened is counted once, and measured per commit."""

from collections.abc import Sequence

import pytest

from accord.core.kernel.refusal import Refused, Why
from accord.core.room.lifecycle import SessionCreate
from accord.core.room.prompts import PromptSubmit
from accord.engine.tally import Spread, Stretch
from tests.engine.conftest import Make
from tests.helpers.engine import Tricky
from tests.helpers.room import ALICE, CLAUDE, STREAM, prompts


def test_a_value_is_counted_up_to_its_bound() -> None:
    spread = Spread((1, 10))
    for value in (0.5, 1, 2, 10, 11):
        spread.add(value)

    assert spread.counts == [2, 2, 1]
    assert spread.total == 24.5


async def test_every_message_is_counted_by_its_outcome(make: Make) -> None:
    stage = make()
    await stage.open(CLAUDE)
    await stage.say(ALICE, prompts(), "p")
    await stage.say(ALICE, prompts(), "p")
    tally = stage.engine.tally

    assert tally.taken[SessionCreate] == 1
    assert tally.taken[PromptSubmit] == 1
    assert tally.repeated[PromptSubmit] == 1
    assert sum(tally.records.counts) == sum(tally.commits.counts) == sum(tally.delays.counts)
    assert sum(tally.replays.counts) == 2  # alice and claude came in


async def test_what_the_store_loses_is_no_commit(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    before = sum(stage.engine.tally.commits.counts)
    log.failing.add("append")
    with pytest.raises(Refused) as no:
        await stage.say(ALICE, prompts(), "p")

    assert no.value.why is Why.UNAVAILABLE
    assert stage.engine.tally.lost == 1
    assert sum(stage.engine.tally.commits.counts) == before
    assert PromptSubmit not in stage.engine.tally.taken


async def test_stretches_of_work_are_told_without_content(make: Make) -> None:
    stage = make()
    told: list[tuple[Stretch, Sequence[Stretch]]] = []
    stage.engine.tally.trace = lambda work, parts=(): told.append((work, parts))
    await stage.open(CLAUDE)
    before = len(await stage.log.read(STREAM))
    await stage.say(ALICE, prompts(), "p")

    work, (commit, deliver) = told[-1]
    assert (work.name, work.about) == ("messages.handle", {"stream": STREAM, "messages": 1})
    assert (commit.name, deliver.name) == ("store.commit", "messages.deliver")
    assert commit.about == {"stream": STREAM, "records": len(await stage.log.read(STREAM)) - before}
    assert work.began <= commit.began <= commit.ended == deliver.began <= deliver.ended
