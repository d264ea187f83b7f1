"""A log that is folded as it is read comes to what it comes to when it is read first."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.dialects import pact
from accord.core.dialects.pactfold import folded
from accord.core.work.fold import Fold
from tests.core.work.story import ANN, BOB, assigned, line, log
from tests.spec import proves

TASKS = st.sampled_from(["T1", "T2"])
MINUTES = st.integers(0, 9)
GOOD = st.one_of(
    st.builds(lambda task, at: assigned(task, at=at), TASKS, MINUTES),
    st.builds(lambda task, at: line("checkpoint", BOB, task, at=at), TASKS, MINUTES),
    st.builds(lambda task, at: line("accept", ANN, task, at=at), TASKS, MINUTES),
    st.builds(lambda at: line("join", BOB, at=at) | {"ts": "soon"}, MINUTES),
    st.builds(lambda task, at: assigned(task, at=at) | {"event_id": ""}, TASKS, MINUTES),
).map(log)
AT_THREE = "2026-01-01T00:03:00Z"
LINES = st.lists(GOOD | st.sampled_from([b"\n", b"no event\n"]), max_size=12)


@pytest.fixture(autouse=True)
def every_line_is_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pact, "PART", 0)


def seen_at_once(data: bytes) -> tuple[Any, ...]:
    reading = pact.read(data)
    made = Fold().take(reading.entries)
    state = (made.work(), made.seen, made.at, made.skipped)
    return *state, reading.faults, reading.last, data.count(b"\n")


def seen_in_parts(data: bytes) -> tuple[Any, ...]:
    made, *rest = folded(data)
    return made.work(), made.seen, made.at, made.skipped, *rest


@proves("PACT-1-2", "OPEN-103", "OPEN-106")
@given(LINES, st.sampled_from([b"", b"torn"]))
def test_in_parts_or_at_once_a_log_comes_to_the_same(lines: list[bytes], end: bytes) -> None:
    data = b"".join([*lines, end])

    assert seen_in_parts(data) == seen_at_once(data)


@proves("PACT-2.5-2", "OPEN-105")
def test_a_repeat_counts_once_and_what_has_no_id_is_never_one() -> None:
    once = [assigned("T1"), line("checkpoint", BOB, "T1", at=1)]
    twice = [*once, line("changes_requested", ANN, "T1", at=2), once[1] | {"ts": AT_THREE}]
    nameless = [each | {"event_id": ""} for each in twice]

    for lines, status in ((twice, "changes_requested"), (nameless, "awaiting_review")):
        data = log(*lines)
        assert folded(data).fold.work().tasks["T1"].status == status
        assert seen_in_parts(data) == seen_at_once(data)


@proves("OPEN-103")
def test_an_event_of_a_later_part_may_belong_before_all_others() -> None:
    data = log(line("checkpoint", BOB, "T1", at=5), assigned("T1", at=1))

    assert seen_in_parts(data) == seen_at_once(data)
    assert folded(data).fold.work().tasks["T1"].status == "awaiting_review"
