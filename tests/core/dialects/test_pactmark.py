"""Lines that come in later are folded from a mark on, and the book is as if from the start."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.dialects import pactmark
from accord.core.dialects.pactbook import Book, told
from accord.core.dialects.pactmark import Bookmark, Bookmarks
from tests.core.dialects.test_pactbook import EVENTS, dated, said
from tests.core.work.story import ANN, BOB, assigned, line

EARLY = [json.dumps(each) for each in (assigned("T1", at=1), assigned("T2", at=2))]
SHOWN = json.dumps(line("checkpoint", BOB, "T1", evidence="a", at=5))
JUDGED = json.dumps(line("accept", ANN, "T1", at=6))
BETWEEN = json.dumps(line("checkpoint", BOB, "T2", evidence="b", at=4))


def marked(lines: list[str]) -> Bookmark:
    book = Book()
    assert book.add(lines)
    return Bookmark(book)


def test_what_git_puts_between_late_lines_is_folded_from_the_mark_on() -> None:
    mark = marked(EARLY)
    for key, each in (("a", SHOWN), ("b", JUDGED), ("c", BETWEEN)):
        mark.note(key, each)
    order = ["1", "2", "c", "a", "b"]

    found = mark.again(order)

    assert found
    assert said(found) == said(told([*EARLY, BETWEEN, SHOWN, JUDGED]))
    assert found.lines == 5
    assert said(mark.again(order) or Book()) == said(found)


def test_a_mark_does_not_hold_for_what_is_older_or_not_known() -> None:
    mark = marked([*EARLY, SHOWN])
    mark.note("b", JUDGED)
    assert mark.again(["1", "2", "a", "b"])
    mark.note("c", BETWEEN)

    assert mark.again(["1", "2", "a", "b", "c"]) is None
    assert mark.again(["1", "2", "a", "unheard"]) is None


def test_the_last_marks_are_kept_and_the_newest_that_holds_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pactmark, "EVERY", 2)
    marks, book = Bookmarks(), Book()
    for number, each in enumerate([*EARLY, SHOWN, JUDGED]):
        assert book.add([each])
        marks.note(str(number), each)
        marks.put(book)
    marks.note("c", BETWEEN)  # the marks are behind the first line and behind the third

    found = marks.again(["0", "1", "2", "3", "c"])

    assert found
    assert said(found) == said(told([*EARLY, SHOWN, JUDGED, BETWEEN]))
    assert marks.again(["0", "1", "2", "3"])
    marks.moved(0)
    assert marks.again(["0", "1", "2", "3"]) is None


@given(
    st.lists(EVENTS, max_size=12),
    st.lists(EVENTS, max_size=12),
    st.lists(st.integers(0, 9), min_size=1, max_size=9),
    st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_from_a_mark_or_from_the_start_a_book_says_the_same(
    before: list[dict[str, Any]], after: list[dict[str, Any]], minutes: list[int], chance: Any
) -> None:
    events = dated([*before, *after], minutes)
    early = sorted(events[: len(before)], key=lambda each: str(each["ts"]))
    late = events[len(before) :]
    chance.shuffle(late)
    book = Book()
    book.add([json.dumps(each) for each in early])
    mark = Bookmark(book)
    for each in late:
        mark.note(each["event_id"], json.dumps(each))

    found = mark.again([each["event_id"] for each in (*early, *late)])

    last = early[-1]["ts"] if early else ""
    assert (found is None) is any(each["ts"] < last for each in late)
    if found:
        assert said(found) == said(told([json.dumps(each) for each in (*early, *late)]))
