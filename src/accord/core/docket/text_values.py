"""Values of a snapshot: escaping to one line of ASCII, and parsing of names, numbers and lists."""

import re
from decimal import Decimal, InvalidOperation

ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
BATCH_ID_PATTERN = re.compile(r"[A-Za-z0-9_.-]+")
RESOURCE_PATTERN = re.compile(r"([A-Za-z][A-Za-z0-9_]*):([0-9]{1,9})")
_NON_ASCII = re.compile(r"[^\x20-\x7e]|\\(?=u)")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_DRIVER_SEPARATORS = re.compile(r"[,;|\[\]()]|->")


def to_one_line(value: object) -> str:
    """The value on one line, without anything that would end a code block."""
    return " ".join(str(value).split()).replace("```", "'''")


def escape_non_ascii(line: str) -> str:
    """The line with every non-ASCII character escaped."""
    plain = line.isascii() and line.isprintable() and "\\u" not in line
    return line if plain else _NON_ASCII.sub(_escape_match, line)


def _escape_match(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def unescape(line: str) -> str:
    """The reverse of `escape_non_ascii`."""
    if "\\u" not in line:
        return line
    text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), line)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def yes_no(value: object) -> str:
    return "YES" if value else "NO"


def parse_count(text: str | None) -> int | None:
    """A count, or None if it is not a number."""
    digits = (text or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 7 else None


def step_part(value: object) -> str:
    """A part of a step, without the bars that separate parts."""
    return to_one_line(value).replace("|", "/")


def normalize_driver(value: object) -> str:
    """The name of a driver, without characters that separate list entries."""
    return " ".join(_DRIVER_SEPARATORS.sub("_", str(value).replace("\n", "_")).split()).replace(
        "```", "'''"
    )


def parse_resources(value: str) -> tuple[dict[str, int], list[str]]:
    """`ENG:1,GPU:2` as a table, and the entries that are not resources."""
    found: dict[str, int] = {}
    bad: list[str] = []
    for token in filter(None, (each.strip() for each in value.split(","))):
        if match := RESOURCE_PATTERN.fullmatch(token):
            found[match[1]] = int(match[2])
        else:
            bad.append(token)
    return found, bad


def parse_ids(value: str) -> tuple[tuple[str, ...], list[str]]:
    """The ids in `A,B`, `A B` or `[A, B]`, each once, and the entries that are not ids."""
    tokens = value.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    good = dict.fromkeys(each for each in tokens if ID_PATTERN.fullmatch(each))
    return tuple(good), [each for each in tokens if not ID_PATTERN.fullmatch(each)]


def format_resources(uses: dict[str, int]) -> str:
    """The table as `ENG:1,GPU:2`."""
    return ",".join(f"{name}:{count}" for name, count in uses.items())


def parse_number(value: str) -> Decimal | None:
    """The number, or None if it is not finite or not a number."""
    try:
        found = Decimal(value.strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() and abs(found.adjusted()) < 1000 else None
