"""Instants as text: UTC, milliseconds, `Z` (UNI-25)."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

MS_PER_SECOND = 1000

# An ISO 8601 timestamp as one pattern, so that the published schema accepts exactly the same texts:
# years of four digits (the first and last in UTC only, because another zone may lead out of the
# range), days that the month has, 29 February in leap years only.
_YEAR = "[0-9]{4}"
_LEAP = "[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00"
_DAY = "(?:0[1-9]|1[0-9]|2[0-8])"
_LONG = f"(?:0[13-9]|1[0-2])-(?:{_DAY}|29|30)|(?:0[13578]|1[02])-31"
_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_SECOND = f"(?!0000)(?:{_YEAR}-(?:{_LONG}|02-{_DAY})|(?:{_LEAP})-02-29)T{_TIME}"
_REST = "(?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
TIMESTAMP_PATTERN = f"^(?!(?:0001|9999).*[+-]..:..$){_SECOND}{_REST}$"
BOUNDARY_YEARS = ("0001", "9999")
SECONDS_LENGTH = len("2026-01-30T20:00:00")
_match_second = re.compile(_SECOND).fullmatch
_match_rest = re.compile(_REST).fullmatch


def to_iso(at: int) -> str:
    """`2026-01-30T20:00:00.000Z` for milliseconds since 1970."""
    seconds, milliseconds = divmod(at, MS_PER_SECOND)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


# Records that are written or read together share few seconds.
@lru_cache(1024)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


# Under load many messages share a millisecond, otherwise many share a second: a cache hit takes
# 0.1 µs instead of 0.9 µs.
@lru_cache(1024)
def is_iso(text: str) -> bool:
    """Whether this is an ISO 8601 timestamp; the sender's clock is not checked (OPEN-38)."""
    may_leave_range = text.startswith(BOUNDARY_YEARS) and text[-6:-5] in "+-"
    return (
        not may_leave_range
        and _is_second(text[:SECONDS_LENGTH])
        and _is_rest(text[SECONDS_LENGTH:])
    )


@lru_cache(1024)
def _is_second(text: str) -> bool:
    return _match_second(text) is not None


@lru_cache(2048)
def _is_rest(text: str) -> bool:
    return _match_rest(text) is not None


def is_before_timeout(since: str, seconds: int, now: str) -> bool:
    """Whether a timeout of `seconds` from `since` is still running at `now`; 0: no timeout."""
    try:
        elapsed = datetime.fromisoformat(now) - datetime.fromisoformat(since)
        return not seconds or elapsed < timedelta(seconds=seconds)
    except (ValueError, TypeError, OverflowError):
        return False
