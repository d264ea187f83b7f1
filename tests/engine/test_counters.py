"""Messages are counted once, and commits are measured."""

from collections.abc import Sequence

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.session_lifecycle import SessionCreate
from accord.engine.counters import Histogram, TimedSpan
from tests.engine.conftest import Make
from tests.helpers.engine.harness import FaultyLog
from tests.helpers.room.scenario import ALICE, CLAUDE, STREAM, prompt_submit


def test_histogram_counts_a_value_up_to_its_bound() -> None:
    spread = Histogram((1, 10))
    for value in (0.5, 1, 2, 10, 11):
        spread.add(value)

    assert spread.counts == [2, 2, 1]
    assert spread.total == 24.5


async def test_messages_are_counted_by_outcome(make: Make) -> None:
    stage = make()
    await stage.open_room(CLAUDE)
    await stage.send(ALICE, prompt_submit(), "p")
    await stage.send(ALICE, prompt_submit(), "p")
    tally = stage.engine.counters

    assert tally.accepted[SessionCreate] == 1
    assert tally.accepted[PromptSubmit] == 1
    assert tally.repeated[PromptSubmit] == 1
    assert (
        sum(tally.records_per_commit.counts)
        == sum(tally.commit_seconds.counts)
        == sum(tally.answer_seconds.counts)
    )
    assert sum(tally.replay_sizes.counts) == 2  # alice and claude came in


async def test_lost_commit_is_not_counted_as_a_commit(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    before = sum(stage.engine.counters.commit_seconds.counts)
    log.failing.add("append")
    with pytest.raises(Refused) as no:
        await stage.send(ALICE, prompt_submit(), "p")

    assert no.value.reason is Reason.UNAVAILABLE
    assert stage.engine.counters.lost_commits == 1
    assert sum(stage.engine.counters.commit_seconds.counts) == before
    assert PromptSubmit not in stage.engine.counters.accepted


async def test_spans_contain_no_content(make: Make) -> None:
    stage = make()
    told: list[tuple[TimedSpan, Sequence[TimedSpan]]] = []
    stage.engine.counters.on_span = lambda work, parts=(): told.append((work, parts))
    await stage.open_room(CLAUDE)
    before = len(await stage.log.read(STREAM))
    await stage.send(ALICE, prompt_submit(), "p")

    work, (commit, deliver) = told[-1]
    assert (work.name, work.attributes) == ("messages.handle", {"stream": STREAM, "messages": 1})
    assert (commit.name, deliver.name) == ("store.commit", "messages.deliver")
    assert commit.attributes == {
        "stream": STREAM,
        "records": len(await stage.log.read(STREAM)) - before,
    }
    assert work.started <= commit.started <= commit.ended == deliver.started <= deliver.ended
