"""Instants as text: UTC, milliseconds, `Z` (UNI-25)."""

from datetime import UTC, datetime, timedelta

SECOND = 1000


def iso(at: int) -> str:
    """`2026-01-30T20:00:00.000Z` for milliseconds since 1970."""
    seconds, milliseconds = divmod(at, SECOND)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"


def is_iso(text: str) -> bool:
    """Whether this is a timestamp of ISO 8601 and UTC; whose clock is not our affair (OPEN-38)."""
    try:
        when = datetime.fromisoformat(text)
        _in_utc = when - (when.utcoffset() or timedelta())
    except (ValueError, OverflowError):
        return False
    return True


def too_early(since: str, seconds: int, now: str) -> bool:
    """Whether a time limit of `seconds` that began at `since` is not over `now`; 0 is no limit."""
    try:
        passed = datetime.fromisoformat(now) - datetime.fromisoformat(since)
        return not seconds or passed < timedelta(seconds=seconds)
    except (ValueError, TypeError, OverflowError):
        return False
