"""Whether what was printed is what the page shows, where ids, hashes and times differ each time."""

import re
from typing import NamedTuple

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"

# What differs from run to run, by its shape; the first that fits counts.
VOLATILE = {
    "token": r"eyJ[\w-]+\.[\w-]+\.[\w-]+",
    "mark": r"\d+:[0-9a-f]{64}",
    "hash": r"[0-9a-f]{64}",
    "ulid": r"\b(?:ses_|dec_)?[0-7][0-9A-HJKMNP-TV-Z]{25}\b",
    "commit": r"\b[0-9a-f]{10}\b",
    "instant": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z",
    "moment": r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?",
    "day": rf"\w+day, \d{{1,2}} (?:{_MONTHS}) \d{{4}}",
    "clock": r"\b\d\d:\d\d:\d\d\b",
    "address": r"127\.0\.0\.1:\d+",
    "span": r"\b\d+ (?:ms|s|min|h)\b(?: \d+ (?:s|min)\b)?",
    "records": r"\b\d+ records\b",
}
ANYTHING = "…"
_PART = re.compile(
    "|".join(
        [*(f"(?P<{name}>{shape})" for name, shape in VOLATILE.items()), f"(?P<any>{ANYTHING})"]
    )
)
# What a reader would type again from what was shown.
NAMES = frozenset({"ulid", "mark", "hash", "token"})


class Shape(NamedTuple):
    """A pattern for what may be printed, and the names on the page in the order of its groups."""

    pattern: str
    names: list[str]


def shape(expected: str) -> Shape:
    """What the page shows, as a pattern."""
    lines = expected.rstrip().splitlines()
    names: list[str] = []
    parts = ["(?s:.*)" if each.strip() == ANYTHING else _line(each, names) for each in lines]
    return Shape("\n".join(parts), names)


def _line(text: str, names: list[str]) -> str:
    parts, at = list[str](), 0
    for found in _PART.finditer(text):
        parts.append(re.escape(text[at : found.start()]))
        parts.append(_part(found, names))
        at = found.end()
    return "".join([*parts, re.escape(text[at:])]).replace(r"\ ", " ")


def _part(found: re.Match[str], names: list[str]) -> str:
    kind = found.lastgroup or ""
    if kind == "any":
        return ".*"
    if kind in NAMES:
        names.append(found[0])
        return f"({VOLATILE[kind]})"
    return f"(?:{VOLATILE[kind]})"


def compare(expected: str, printed: str) -> dict[str, str] | None:
    """What each name on the page is called this time, or None when something else was printed."""
    made = shape(expected)
    found = re.fullmatch(made.pattern, tidy(printed))
    return dict(zip(made.names, found.groups(), strict=True)) if found else None


def tidy(text: str) -> str:
    """Without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def renamed(command: str, names: dict[str, str]) -> str:
    """The command with this time's names."""
    for shown, real in names.items():
        command = command.replace(shown, real)
    return command
