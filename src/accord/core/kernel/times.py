"""Instants as text: UTC, milliseconds, `Z` (UNI-25)."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

SECOND = 1000

# A timestamp of ISO 8601 as a pattern, so that the published schema says the very same: years of
# four digits (the first and the last in UTC only, because another zone may lead out of them), days
# that the month has, 29 February in leap years only.
_YEAR = "[0-9]{4}"
_LEAP = "[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00"
_DAY = "(?:0[1-9]|1[0-9]|2[0-8])"
_LONG = f"(?:0[13-9]|1[0-2])-(?:{_DAY}|29|30)|(?:0[13578]|1[02])-31"
_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_SECOND = f"(?!0000)(?:{_YEAR}-(?:{_LONG}|02-{_DAY})|(?:{_LEAP})-02-29)T{_TIME}"
_REST = "(?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
STAMP = f"^(?!(?:0001|9999).*[+-]..:..$){_SECOND}{_REST}$"
EDGES = ("0001", "9999")
WHOLE_SECONDS = len("2026-01-30T20:00:00")
_second = re.compile(_SECOND).fullmatch
_rest = re.compile(_REST).fullmatch


def iso(at: int) -> str:
    """`2026-01-30T20:00:00.000Z` for milliseconds since 1970."""
    seconds, milliseconds = divmod(at, SECOND)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"


# Most messages come within a millisecond of another when many come, and within a second otherwise:
# what was looked at before takes 0.1 instead of 0.9 µs.
@lru_cache(1024)
def is_iso(text: str) -> bool:
    """Whether this is a timestamp of ISO 8601; whose clock it is is not our affair (OPEN-38)."""
    strays = text.startswith(EDGES) and text[-6:-5] in "+-"
    return not strays and _is_second(text[:WHOLE_SECONDS]) and _is_rest(text[WHOLE_SECONDS:])


@lru_cache(1024)
def _is_second(text: str) -> bool:
    return _second(text) is not None


@lru_cache(2048)
def _is_rest(text: str) -> bool:
    return _rest(text) is not None


def too_early(since: str, seconds: int, now: str) -> bool:
    """Whether a time limit of `seconds` that began at `since` is not over `now`; 0 is no limit."""
    try:
        passed = datetime.fromisoformat(now) - datetime.fromisoformat(since)
        return not seconds or passed < timedelta(seconds=seconds)
    except (ValueError, TypeError, OverflowError):
        return False
