"""Whether what was printed is what the page shows, where ids, hashes and times differ each time."""

import re
from typing import NamedTuple

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"

# What differs from run to run, by its shape; the first that fits counts.
VOLATILE_PATTERNS = {
    "token": r"eyJ[\w-]+\.[\w-]+\.[\w-]+",
    "mark": r"\d+:[0-9a-f]{64}",
    "hash": r"[0-9a-f]{64}",
    "ulid": r"\b(?:ses_|dec_|th_|msg_)?[0-7][0-9A-HJKMNP-TV-Z]{25}\b",
    "commit": r"\b[0-9a-f]{10}\b",
    "instant": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z",
    "moment": r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?",
    "day": rf"\w+day, \d{{1,2}} (?:{_MONTHS}) \d{{4}}",
    "clock": r"\b\d\d:\d\d:\d\d\b",
    "minute": r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d \w{3} )?\b\d\d:\d\d\b",
    "address": r"127\.0\.0\.1:\d+",
    "span": r"\b\d+ (?:ms|s|min|h)\b(?: \d+ (?:s|min)\b)?",
    "records": r"\b\d+ records\b",
}
WILDCARD = "…"
_PART = re.compile(
    "|".join(
        [
            *(f"(?P<{name}>{shape})" for name, shape in VOLATILE_PATTERNS.items()),
            f"(?P<any>{WILDCARD})",
        ]
    )
)
# What a reader would type again from what was shown.
BOUND_NAMES = frozenset({"ulid", "mark", "hash", "token"})


class OutputPattern(NamedTuple):
    """A pattern for what may be printed, and the names on the page in the order of its groups."""

    pattern: str
    names: list[str]


def compile_pattern(expected: str) -> OutputPattern:
    """What the page shows, as a pattern."""
    lines = expected.rstrip().splitlines()
    names: list[str] = []
    parts = ["(?s:.*)" if each.strip() == WILDCARD else _line(each, names) for each in lines]
    return OutputPattern("\n".join(parts), names)


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
    if kind in BOUND_NAMES:
        names.append(found[0])
        return f"({VOLATILE_PATTERNS[kind]})"
    return f"(?:{VOLATILE_PATTERNS[kind]})"


def match_output(expected: str, printed: str) -> dict[str, str] | None:
    """What each name on the page is called this time, or None when something else was printed."""
    made = compile_pattern(expected)
    found = re.fullmatch(made.pattern, normalize(printed))
    return dict(zip(made.names, found.groups(), strict=True)) if found else None


def normalize(text: str) -> str:
    """Without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def substitute_names(command: str, names: dict[str, str]) -> str:
    """The command with this time's names."""
    for shown, real in names.items():
        command = command.replace(shown, real)
    return command
