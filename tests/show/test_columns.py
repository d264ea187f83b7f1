"""Text measured in columns."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from accord.show.columns import column_width, cut, pad, pieces, wrapped
from accord.show.text import escape_controls

# Letters of all widths, with marks, joiners and selectors.
LETTERS = "ab 漢e\u0301\u0489\U0001f469\u200d\u2602\ufe0f\u0928\u093e\u1100\u1161…│"


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("漢字", 4), ("e\u0301", 1), ("…│▌", 3), ("\u2602\ufe0f", 2), ("ß", 1)],
)
def test_width_is_that_of_a_terminal(text: str, width: int) -> None:
    assert column_width(text) == width


@given(st.text(alphabet=LETTERS, max_size=60))
def test_no_terminal_needs_more_columns_than_measured(text: str) -> None:
    assert wcswidth(text) <= column_width(text)


@given(st.text(alphabet=LETTERS, max_size=200), st.integers(20, 40))
def test_pieces_fit_and_are_the_line(text: str, width: int) -> None:
    shown = escape_controls(text)
    parts = list(pieces(shown, width))

    assert "".join(parts) == shown
    assert all(column_width(part) <= width for part in parts)


@given(st.text(alphabet=LETTERS, max_size=200), st.integers(20, 40))
def test_wrapped_lines_fit_and_lose_no_letter(text: str, width: int) -> None:
    shown = escape_controls(text)
    lines = list(wrapped(shown, width, "  "))

    assert all(column_width(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(shown.split())


def test_a_cut_text_ends_in_an_ellipsis_and_fits() -> None:
    assert cut("漢字漢字", 5) == "漢字…"
    assert cut("漢字", 4) == "漢字"
    assert column_width(pad("漢", 5)) == 5


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u0301x", "\\u0301x"),
        ("a \u0301", "a \\u0301"),
        ("a\n\u20dd", "a\n\\u20dd"),
        ("e" + "\u0301" * 6, "e" + "\u0301" * 4 + "\\u0301" * 2),
        ("a\ufe0f", "a\\ufe0f"),
        ("\u2602\ufe0f", "\u2602\ufe0f"),
        ("a\u3164b\u2800", "a\\u3164b\\u2800"),
    ],
)
def test_marks_join_a_letter_of_the_same_text_or_are_spelled_out(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_plain_text_is_measured_without_the_library() -> None:
    program = (
        "import sys; from accord.show.columns import column_width; column_width('Grüße, … │ ok');"
        "sys.exit('wcwidth' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
