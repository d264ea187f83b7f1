"""Who reviewed which commit."""

from typing import Any

import pytest

from accord.core.provenance.notes.note import CommitReview, merge_notes, reviews_note, reviews_of

ANN = CommitReview("human:ann", "a" * 40, "dec_one")
BOB = CommitReview("agent:bob", "b" * 40, "dec_one")


def test_a_note_says_who_saw_which_commit() -> None:
    assert reviews_of(reviews_note([ANN, BOB])) == (ANN, BOB)
    assert reviews_note([]) == {"version": 1}


def test_notes_that_are_merged_say_each_review_once() -> None:
    whole = merge_notes(reviews_note([ANN]), reviews_note([BOB]), reviews_note([BOB, ANN]))

    assert sorted(reviews_of(whole)) == sorted([ANN, BOB])


@pytest.mark.parametrize(
    "reviews",
    [
        None,
        "human:ann",
        ["human:ann"],
        [{"by": "human:ann"}],
        [{**ANN._asdict(), "commit": ""}],
        [[]],
    ],
)
def test_what_names_no_commit_is_no_review(reviews: Any) -> None:
    assert reviews_of({"version": 1, "reviews": reviews}) == ()
    assert (
        reviews_of({"version": 1, "decisions": [{"id": "d", "reviewed_by": ["human:ann"]}]}) == ()
    )
