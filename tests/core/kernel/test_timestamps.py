"""Instants as text."""

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.kernel.timestamps import is_before_timeout, is_iso, to_iso
from tests.spec import proves


@proves("UNI-25", "PVP-4.2-4")
@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_769_803_200_000, "2026-01-30T20:00:00.000Z"),
        (1_769_803_200_007, "2026-01-30T20:00:00.007Z"),
    ],
)
def test_an_instant_is_written_in_utc_with_milliseconds(at: int, text: str) -> None:
    assert to_iso(at) == text


@proves("UNI-25")
@given(st.integers(0, 4_000_000_000_000))
@settings(deadline=None)
def test_what_is_written_is_the_same_instant(at: int) -> None:
    assert is_iso(to_iso(at))
    assert round(datetime.fromisoformat(to_iso(at)).timestamp() * 1000) == at


@pytest.mark.parametrize(
    "text",
    ["2026-01-30T20:00:00Z", "2026-01-30T20:00:00.123456+02:00", "2026-01-30T20:00:00"],
)
def test_any_timestamp_of_iso_8601_is_read(text: str) -> None:
    assert is_iso(text)


@pytest.mark.parametrize(
    "text",
    ["", "now", "1769803200", "2026-13-01T00:00:00Z", "30/01/2026", "0001-01-01T00:00:00+14:00"],
)
def test_timestamp_parser_refuses_other_text(text: str) -> None:
    assert not is_iso(text)


def test_a_limit_is_over_when_its_seconds_have_passed() -> None:
    began = "2026-01-30T20:00:00.000Z"

    assert is_before_timeout(began, 300, "2026-01-30T20:04:59.999Z")
    assert not is_before_timeout(began, 300, "2026-01-30T20:05:00.000Z")
    assert is_before_timeout(began, 0, "2027-01-30T20:05:00.000Z")
    assert not is_before_timeout("", 300, began)
    assert not is_before_timeout(began, 10**400, began)
    assert not is_before_timeout("2026-01-30T20:00:00", 300, began)
