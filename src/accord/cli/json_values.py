"""Values that several commands print with `--json`, so that each has one name and one form."""

import re
from datetime import UTC, datetime
from typing import Any

_CAPITAL = re.compile("[A-Z]")


def instant_for_json(at: int | None) -> str | None:
    """Milliseconds since 1970 as text."""
    from accord.core.kernel.timestamps import to_iso

    return None if at is None else to_iso(at)


def git_time_for_json(text: str) -> str:
    """A time that git printed, with any offset, in UTC; text that is no time stays as it is."""
    try:
        at = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return text
    return f"{at:%Y-%m-%dT%H:%M:%S}.000Z"


def finding_for_json(
    problem: str,
    fix: str = "",
    *,
    severity: str = "error",
    line: int | None = None,
    code: str | None = None,
    about: str | None = None,
) -> dict[str, Any]:
    """Something that a check found wrong: what, where, and how to fix it."""
    return {
        "severity": severity,
        "code": code,
        "about": about,
        "line": line,
        "problem": problem,
        "fix": fix,
    }


def snake_case_keys(content: Any) -> Any:
    """The same content with keys such as `session_id` in place of `sessionId`."""
    match content:
        case dict():
            return {to_snake_case(key): snake_case_keys(value) for key, value in content.items()}
        case list():
            return [snake_case_keys(value) for value in content]
        case _:
            return content


def to_snake_case(name: str) -> str:
    """`session_id` for `sessionId`."""
    return _CAPITAL.sub(lambda found: f"_{found[0].lower()}", name)
