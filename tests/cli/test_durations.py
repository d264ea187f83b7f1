"""How long, as people type it."""

import pytest

from accord.cli.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90), ("30m", 1800), ("12h", 43_200), ("7d", 604_800), (" 1D ", 86_400), ("0s", 0)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "12", "h", "1.5h", "-1h", "1w", "1h30m", "١h", "9" * 10 + "s"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="12h"):
        parse_duration(text)
