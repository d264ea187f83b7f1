"""Who reviewed which commit."""

from typing import Any

import pytest

from accord.core.provenance.note import merged
from accord.core.provenance.reviews import Review, note_of, reviews_of

ANN = Review("human:ann", "a" * 40, "dec_one")
BOB = Review("agent:bob", "b" * 40, "dec_one")


def test_a_note_says_who_saw_which_commit() -> None:
    assert reviews_of(note_of([ANN, BOB])) == (ANN, BOB)
    assert note_of([]) == {"version": 1}


def test_notes_that_are_merged_say_each_review_once() -> None:
    whole = merged(note_of([ANN]), note_of([BOB]), note_of([BOB, ANN]))

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
