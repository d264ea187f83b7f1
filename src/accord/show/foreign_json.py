"""Read JSON that other members and other tools wrote: a value of any shape becomes plain text.

A message type promises fields, but a context item, an older server or another PVP implementation
may send something else. Showing a session must not fail for its readers because of that.
"""

import json
from typing import Any

JsonObject = dict[str, Any]


def as_text(value: Any) -> str:
    """Text as it is, nothing for null, everything else as JSON on one line."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def as_listing(value: Any) -> str:
    """Text as it is, everything else as indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2)


def as_texts(value: Any) -> list[str]:
    """The items of a list as text; any other value counts as the only item."""
    if isinstance(value, (list, tuple)):
        return [as_text(item) for item in value]
    return [] if value is None else [as_text(value)]


def as_items(value: Any) -> list[Any]:
    """The items of a list; nothing for any other value."""
    return list(value) if isinstance(value, (list, tuple)) else []


def as_object(value: Any) -> JsonObject:
    """The object itself; an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def as_int(value: Any) -> int:
    """A whole number; 0 for any other value, and for NaN and infinity."""
    try:
        return int(value) if isinstance(value, (int, float)) else 0
    except (ValueError, OverflowError):
        return 0
