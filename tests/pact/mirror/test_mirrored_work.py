"""What the mirrored lines come to, as they come and in whatever order."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.views.session_tasks import TaskTimes
from accord.core.work.format.mirror_lines import parse_sources
from accord.core.work.mirror import event_key
from accord.core.work.vocabulary import TaskStatus
from accord.pact.mirror.mirrored_work import MirroredWork, fold_lines
from tests.core.work.story import ANN, BOB, CY, assigned, folded, line, log


def said(book: MirroredWork) -> tuple[Any, ...]:
    """Everything that a book says."""
    lists = (book.open_tasks(), book.waiting_by_reviewer(), book.open_by_feature())
    return (book.work(), book.times, book.checkpoints, *lists)


def test_when_a_task_moved_and_which_checkpoint_it_had() -> None:
    lines = parse_sources(
        log(
            assigned("T1", at=1),
            assigned("T2", at=2),
            line("checkpoint", BOB, "T1", evidence="a", at=3, id="C1"),
            line("accept", BOB, "T1", at=4),
            line("accept", ANN, "T1", at=5),
            line("checkpoint", BOB, "T2", evidence="b", at=6, id="C2"),
        )
    )

    found = fold_lines([each.line for each in lines.events])

    minute = "2026-01-01T00:0{}:00Z".format
    assert found.times == {
        "T1": TaskTimes(minute(1), minute(5), minute(5)),
        "T2": TaskTimes(minute(2), minute(6)),
    }
    assert found.checkpoints == {"T2": event_key("C2")}


def test_lines_that_come_later_add_to_what_is_known() -> None:
    events = [assigned("T1", at=1), line("accept", BOB, "T1", at=2)]
    events += [line("checkpoint", BOB, "T1", evidence="a", at=3), line("accept", ANN, "T1", at=4)]
    lines = [json.dumps(each) for each in events]
    book = MirroredWork()

    assert all(book.add_lines([each]) for each in lines)
    assert book.add_lines([])

    assert said(book) == said(fold_lines(lines))
    before = said(book)
    assert not book.add_lines([json.dumps(assigned("T0", at=0))])
    assert said(book) == before


def test_a_task_of_unknown_age_has_none() -> None:
    bare = {"event_type": "assign", "task_id": "T1", "feature": "F", "payload": {"owner": BOB}}
    shown = {"event_type": "checkpoint", "task_id": "T1", "agent_id": BOB}

    found = fold_lines([json.dumps(each) for each in (bare, shown)])

    assert found.times == {"T1": TaskTimes("", "")}
    assert found.checkpoints == {"T1": event_key("")}


# Whatever comes, in whatever portions

EVENTS = st.one_of(
    st.builds(
        assigned,
        st.sampled_from(["T1", "T2", "T3"]),
        reviewer=st.sampled_from([ANN, CY]),
        feature=st.sampled_from(["F", "G"]),
    ),
    st.builds(
        line,
        st.sampled_from(["checkpoint", "accept", "changes_requested", "join", "merge", "start"]),
        st.sampled_from([ANN, BOB, CY]),
        st.sampled_from(["", "T1", "T2", "T3"]),
        st.sampled_from(["F", "G"]),
    ),
)


def dated(events: list[dict[str, Any]], minutes: list[int]) -> list[dict[str, Any]]:
    stamps = ((minutes[number % len(minutes)], number) for number in range(len(events)))
    return [
        {**each, "event_id": f"e{number}", "ts": f"2026-01-01T00:{minute:02}:00Z"}
        for each, (minute, number) in zip(events, stamps, strict=True)
    ]


def from_scratch(book: MirroredWork) -> tuple[Any, ...]:
    """What is not done, by looking through everything."""
    work = book.work()
    tasks = work.tasks.values()
    open_ = [each.id for each in tasks if each.status is not TaskStatus.ACCEPTED]
    waiting: dict[str, set[str]] = {}
    for each in tasks:
        if each.status is TaskStatus.AWAITING_REVIEW:
            waiting.setdefault(each.reviewer, set()).add(each.id)
    unmerged = [each for each in work.features.values() if not each.shipped]
    return open_, waiting, {each.id: work.open_tasks(each) for each in unmerged}


@given(
    st.lists(EVENTS, max_size=30),
    st.lists(st.integers(0, 9), min_size=1, max_size=9),
    st.integers(1, 7),
)
@settings(deadline=None)
def test_a_book_says_the_same_however_its_lines_come(
    events: list[dict[str, Any]], minutes: list[int], portion: int
) -> None:
    events = dated(events, minutes)
    lines = [json.dumps(each) for each in events]
    whole = fold_lines(lines)
    one_by_one, in_order = MirroredWork(), sorted(lines, key=lambda each: json.loads(each)["ts"])
    for start in range(0, len(lines), portion):
        assert one_by_one.add_lines(in_order[start : start + portion])

    assert whole.work() == folded(*events)
    assert said(whole) == said(one_by_one)
    open_, waiting, left = from_scratch(whole)
    assert whole.open_tasks() == open_
    assert {name: set(tasks) for name, tasks in whole.waiting_by_reviewer().items()} == waiting
    assert whole.open_by_feature() == left


def test_an_event_without_a_time_comes_behind_the_one_before_it_in_the_file() -> None:
    timeless = {**line("checkpoint", BOB, "T1", evidence="a"), "ts": ""}
    lines = [json.dumps(each) for each in (assigned("T1", at=5), timeless, assigned("T0", at=1))]

    book = fold_lines(lines)

    assert book.tasks["T1"].status is TaskStatus.AWAITING_REVIEW
    assert list(book.tasks) == ["T0", "T1"]


def test_a_line_that_is_none_changes_nothing() -> None:
    book = fold_lines(["nonsense", json.dumps(assigned("T1"))])

    assert list(book.tasks) == ["T1"]


def test_a_session_reads_what_is_open_and_when_it_moved() -> None:
    book = fold_lines([json.dumps(assigned("T1", at=1)), json.dumps(assigned("T2", at=2))])

    rows = book.content("shop-1")["tasks"]

    assert [row["id"] for row in rows] == ["T1", "T2"]
    assert rows[0]["created_at"] == "2026-01-01T00:01:00Z"
    assert list(book.features) == ["F"]
