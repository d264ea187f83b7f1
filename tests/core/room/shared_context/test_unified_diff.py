"""Unified diffs fit exactly, or change nothing."""

from collections.abc import Iterator
from contextlib import suppress
from difflib import unified_diff

import pytest
from hypothesis import assume, example, settings
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.room.shared_context.unified_diff import (
    DiffError,
    apply_diff,
    parse_hunks,
    split_lines,
)
from tests.spec import proves

# Few letters, so that texts have lines in common; and everything that only looks like a line's end.
words = st.text("ab-+ @\\", max_size=3) | st.sampled_from(["\r", "\x0b", "\u2028", "\x85", "-- a"])
texts = st.builds("".join, st.lists(words | st.just("\n"), max_size=24))


def marked(lines: Iterator[str]) -> Iterator[str]:
    """Lines of a diff as every tool writes them: one without an end is told to have none."""
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def diff(old: str, new: str, context: int = 3) -> str:
    """What a tool would write for two texts."""
    return "".join(marked(unified_diff(split_lines(old), split_lines(new), "a", "b", n=context)))


@proves("OPEN-40", "PVP-9.3-1")
@settings(max_examples=300, deadline=None)
@for_all(texts, texts, st.integers(0, 4))
@example("", "a", 3)
@example("a", "", 0)
@example("a", "a\n", 3)
@example("a\n", "a", 3)
@example("a\nb", "c\nb", 3)
@example("a\r\nb\r\n", "a\nb\r\n", 1)
@example("a\u2028b\n", "a\n", 3)
@example("-- a\n", "++ a\n", 0)
def test_the_diff_of_any_two_texts_makes_the_one_of_the_other(
    old: str, new: str, context: int
) -> None:
    assume(old != new)

    assert apply_diff(old, diff(old, new, context)) == new


@proves("OPEN-40")
@settings(max_examples=200, deadline=None)
@for_all(texts, texts, texts)
def test_on_another_text_a_diff_fits_where_it_says_or_not_at_all(
    old: str, new: str, other: str
) -> None:
    assume(old != new)
    change = diff(old, new)

    with suppress(DiffError):
        patched = apply_diff(other, change)
        # What it took away was there, and taking the change back restores the text.
        assert apply_diff(patched, diff(patched, other)) == other if patched != other else True
        for hunk in parse_hunks(change):
            assert tuple(split_lines(other)[hunk.start : hunk.start + len(hunk.old)]) == hunk.old


@proves("OPEN-40")
@settings(max_examples=300, deadline=None)
@for_all(texts, st.text() | texts | texts.map(lambda text: f"@@ -1,2 +1,2 @@\n{text}"))
def test_garbage_is_refused_and_nothing_else_happens(text: str, garbage: str) -> None:
    with suppress(DiffError):
        apply_diff(text, garbage)


@proves("OPEN-40")
@settings(max_examples=200, deadline=None)
@for_all(st.data(), texts, texts)
def test_a_damaged_diff_never_does_worse_than_being_refused(
    data: st.DataObject, old: str, new: str
) -> None:
    assume(old != new)
    whole = diff(old, new)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))

    with suppress(DiffError):
        apply_diff(old, whole[:start] + data.draw(st.text("+- @\\,1\n", max_size=4)) + whole[end:])


TEXT = "one\ntwo\nthree\nfour\n"


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ("@@ -2 +2 @@\n-two\n+zwei\n", "one\nzwei\nthree\nfour\n"),
        ("--- a\n+++ b\n@@ -2 +2 @@ def f():\n-two\n+zwei\n", "one\nzwei\nthree\nfour\n"),
        (
            "diff --git a/t b/t\nindex 1..2 100644\n--- a/t\n+++ b/t\n@@ -1 +0,0 @@\n-one\n",
            TEXT[4:],
        ),
        ("@@ -0,0 +1 @@\n+zero\n", f"zero\n{TEXT}"),
        ("@@ -4,0 +5 @@\n+five\n", f"{TEXT}five\n"),
        ("@@ -4,0 +5 @@\n+five\n\\ No newline at end of file\n", f"{TEXT}five"),
        ("@@ -4 +4,2 @@\n four\n+five", f"{TEXT}five"),
        ("@@ -1 +1 @@\n-one\n+1\n@@ -4 +4 @@\n-four\n+4\n", "1\ntwo\nthree\n4\n"),
    ],
)
def test_applied_diff_gives_the_new_text(change: str, result: str) -> None:
    assert apply_diff(TEXT, change) == result


def test_an_empty_line_may_have_lost_its_mark() -> None:
    assert apply_diff("a\n\nb\n", "@@ -1,3 +1,3 @@\n-a\n+A\n\n b\n") == "A\n\nb\n"
    assert apply_diff("a\n", "@@ -1 +1,2 @@\n a\n+\n\\ No newline at end of file\n") == "a\n"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("", "no hunk"),
        ("--- a\n+++ b\n", "no hunk"),
        ("two -> zwei", "is not part of a hunk"),
        ("@@ -2 +2 @@\n-two\n+zwei\n\n", "is not part of a hunk"),
        ("@@ -2 +2 @@\n-two\n+zwei\n--- a\n", "is not part of a hunk"),
        ("@@ -2 +2 @@\n-two\n", "the number of lines"),
        ("@@ -2 +2 @@\n-two\n-three\n", "the number of lines"),
        ("@@ -2,9 +2 @@\n-two\n+zwei\n", "the number of lines"),
        ("@@ -2 +2 @@\n*two\n+zwei\n", "starts with"),
        ("@@ -2 +2 @@\n-Two\n+zwei\n", "line 2 does not match"),
        ("@@ -3 +3 @@\n-two\n+zwei\n", "line 3 does not match"),
        ("@@ -2 +2 @@\n-two\n\\ No newline at end of file\n+zwei\n", "does not match"),
        ("@@ -9,0 +9 @@\n+nine\n", "line 10 does not match"),
        ("@@ -9 +9 @@\n-nine\n+9\n", "line 9 does not match"),
        ("@@ -0 +1 @@\n-one\n+1\n", "at line 0"),
        ("@@ -3 +3 @@\n-three\n+3\n@@ -2 +2 @@\n-two\n+2\n", "line 2 does not match"),
        ("@@ -2 +2 @@\n-two\n+2\n@@ -2 +2 @@\n-two\n+2\n", "line 2 does not match"),
        ("@@ -1 +1 @@\n-one\n+1\n@@ -4 +4 @@\n-five\n+5\n", "line 4 does not match"),
        ("@@ -1 +1 @@\n-one\n+1\n\\ No newline at end of file\n", "has no newline"),
        (f"@@ -{'9' * 5000} +1 @@\n-one\n+1\n", "is not part of a hunk"),
        ("@@ -١ +١ @@\n-one\n+1\n", "is not part of a hunk"),
        ("\\ No newline at end of file\n", "is not part of a hunk"),
        ("@@ -2 +2 @@\n\\ No newline at end of file\n-two\n", "the number of lines"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(change: str, reason: str) -> None:
    with pytest.raises(DiffError, match=reason):
        apply_diff(TEXT, change)


def test_nothing_is_glued_to_a_last_line_without_an_end() -> None:
    with pytest.raises(DiffError, match="has no newline"):
        apply_diff("a", "@@ -1,0 +2 @@\n+b\n")


@for_all(st.text())
def test_lines_are_what_line_feeds_end(text: str) -> None:
    lines = split_lines(text)

    assert "".join(lines) == text
    assert all("\n" not in line[:-1] and line for line in lines)
