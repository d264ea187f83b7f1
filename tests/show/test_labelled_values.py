"""Labels and values in lines that fit."""

import pytest

from accord.show.labelled_values import render_labelled, wrap_words


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_label_is_said_once_and_what_is_empty_not_at_all() -> None:
    facts = [("by", "ann"), ("by", "bob"), ("fork", ""), ("session", "s")]

    assert list(render_labelled(facts, "  ", 9)) == [
        "  by       ann",
        "           bob",
        "  session  s",
    ]


def test_what_is_long_goes_on_below_itself() -> None:
    assert list(render_labelled([("said", "word " * 12)], label=6)) == [
        "said  word word word word word word word",
        "      word word word word word",
    ]


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("first say `accord git heal now`, then", ["first say", "`accord git heal now`,", "then"]),
        ("an ` that is not closed", ["an ` that is not", "closed"]),
        ("\x1b[32mgreen\x1b[0m is as wide as", ["\x1b[32mgreen\x1b[0m is as wide as"]),
    ],
)
def test_what_is_to_be_copied_stays_on_one_line(value: str, lines: list[str]) -> None:
    assert wrap_words(value, 20) == lines
