"""Repeated and late events in a log."""

from tests.core.work.story import ANN, BOB, assigned, folded, line
from tests.spec import proves

AT_THREE = "2026-01-01T00:03:00Z"


@proves("PACT-2.5-2", "OPEN-105")
def test_a_repeat_counts_once_and_what_has_no_id_is_never_one() -> None:
    once = [assigned("T1"), line("checkpoint", BOB, "T1", at=1)]
    twice = [*once, line("changes_requested", ANN, "T1", at=2), once[1] | {"ts": AT_THREE}]
    nameless = [each | {"event_id": ""} for each in twice]

    for lines, status in ((twice, "changes_requested"), (nameless, "awaiting_review")):
        assert folded(*lines).tasks["T1"].status == status


@proves("PACT-1-2", "OPEN-103")
def test_a_later_line_may_belong_before_all_others() -> None:
    tasks = folded(line("checkpoint", BOB, "T1", at=5), assigned("T1", at=1)).tasks

    assert tasks["T1"].status == "awaiting_review"


@proves("OPEN-103")
def test_an_event_without_a_time_comes_behind_the_line_before_it() -> None:
    """Its time is that of the line before it, and not the latest one."""
    timeless = line("join", BOB, at=3) | {"ts": "yesterday"}
    early = line("join", ANN, at=2)

    tasks = folded(assigned("T1", at=1), assigned("T9", at=9), early, timeless).tasks

    assert (tasks["T9"].status, tasks["T1"].status) == ("assigned", "in_progress")
