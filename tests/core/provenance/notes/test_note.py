"""The note of a commit: read, written, merged."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.notes import note as notes
from accord.core.provenance.notes.note import Note, format_note, merge_notes, parse_note
from tests.core.provenance.decision_samples import NOTES
from tests.spec import proves

A = {"id": "a", "type": "prompt.submit", "timestamp": "2026-01-01T00:00:00Z", "content": "x"}
B = {"id": "b", "type": "response.end", "timestamp": "2026-01-02T00:00:00Z", "content": "y"}


@proves("GIT-NOTES-3")
@given(NOTES)
def test_a_note_comes_back_as_it_was_written(note: Note) -> None:
    assert parse_note(format_note(note)) == note


def test_half_a_surrogate_pair_can_be_stored() -> None:
    note = {"version": 1, "session": {"name": "\ud800"}}

    assert parse_note(format_note(note).encode().decode()) == note


@proves("GIT-NOTES-3", "UNI-27")
@pytest.mark.parametrize("version", [2, 0, "1", 1.0, True, None, [1]], ids=repr)
def test_another_version_is_refused_so_that_nobody_overwrites_it(version: object) -> None:
    with pytest.raises(Refused, match="Update Accord") as no:
        parse_note(json.dumps({"version": version}))

    assert no.value.reason is Reason.UNSUPPORTED_VERSION


@proves("GIT-NOTES-3", "UNI-27")
def test_rewritten_note_keeps_unknown_fields() -> None:
    note = parse_note('{"version": 1, "later": {"x": [1]}}')

    assert merge_notes(note, {"version": 1})["later"] == {"x": [1]}


@pytest.mark.parametrize(
    "text",
    [
        "PVP-Session: abc\nfree words",
        '{"version": 1, "x": 1e999}',
        '{"version": 1, "x": 1.5e999}',
        "{",
        "[1]",
        '{"no": "version"}',
        '{"version": NaN}',
        "[" * 100_000,
        '{"version":1,"a":' + "[" * 40 + "]" * 40 + "}",
    ],
    ids=lambda text: text[:12],
)
def test_what_is_no_note_of_ours_is_kept_whole(text: str) -> None:
    """OPEN-74."""
    mine: Note = {"version": 1, "session": {"id": "s"}}

    both = merge_notes(parse_note(text), mine)

    assert both == {"version": 1, "foreign": [text], "session": {"id": "s"}}


def test_an_empty_note_says_nothing() -> None:
    assert parse_note(" \n") == {"version": 1}


def test_two_notes_become_one_conversation_in_its_order() -> None:
    """OPEN-74: merged, never concatenated."""
    one = {"version": 1, "conversation": {"messages": [B]}}
    other = {"version": 1, "conversation": {"messages": [A, B]}}

    assert merge_notes(one, other)["conversation"]["messages"] == [A, B]


def test_a_whole_copy_wins_over_a_truncated_one() -> None:
    short = {**A, "content": "zzz…", "truncated": True}

    for pair in ([short], [A]), ([A], [short]):
        assert merge_notes(*({"messages": each} for each in pair))["messages"] == [A]


def test_entries_without_an_id_are_the_same_if_all_of_them_is() -> None:
    """OPEN-74."""
    one: Note = {"tags": ["a", {"id": 1}, {"id": 1, "x": 2}]}
    other: Note = {"tags": [{"id": 1}, "b", "a"]}

    for both in merge_notes(one, other), merge_notes(other, one):
        assert len(both["tags"]) == 4
        assert all(each in both["tags"] for each in ("a", "b", {"id": 1}, {"id": 1, "x": 2}))


def test_different_values_under_one_name_are_settled_the_same_on_both_sides() -> None:
    one: Note = {"session": {"id": "s", "name": "old"}, "x": [1], "y": {"k": 1}}
    other: Note = {"session": {"id": "s", "name": "new"}, "x": 1, "y": [2]}

    assert merge_notes(one, other) == merge_notes(other, one)
    assert merge_notes(one, other)["session"] == {"id": "s", "name": "old"}


@given(NOTES, NOTES, NOTES)
def test_the_order_of_merging_makes_no_difference(a: Note, b: Note, c: Note) -> None:
    assert format_note(merge_notes(a, b)) == format_note(merge_notes(b, a))
    assert format_note(merge_notes(merge_notes(a, b), c)) == format_note(
        merge_notes(a, merge_notes(b, c))
    )
    assert merge_notes(a, a) == merge_notes(a)
    assert merge_notes(merge_notes(a, b), b) == merge_notes(a, b)


@given(st.text())
def test_any_text_is_a_note_or_kept_whole(text: str) -> None:
    note = parse_note(text)

    assert note.get("foreign", [text]) == [text] or not text.strip()
    assert note["version"] == notes.NOTE_VERSION
