"""Values on one line of ASCII, and back; names, numbers and lists as they are written."""

import re
from decimal import Decimal, InvalidOperation

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
BATCH_ID = re.compile(r"[A-Za-z0-9_.-]+")
RESOURCE = re.compile(r"([A-Za-z][A-Za-z0-9_]*):([0-9]{1,9})")
_ODD = re.compile(r"[^\x20-\x7e]|\\(?=u)")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_DRIVER = re.compile(r"[,;|\[\]()]|->")


def one_line(value: object) -> str:
    """The text of a value on one line, with nothing that ends a code block."""
    return " ".join(str(value).split()).replace("```", "'''")


def ascii_only(line: str) -> str:
    """The line with everything else as escapes."""
    plain = line.isascii() and line.isprintable() and "\\u" not in line
    return line if plain else _ODD.sub(_escaped, line)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def unescaped(line: str) -> str:
    """What was meant before `ascii_only`."""
    if "\\u" not in line:
        return line
    text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), line)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def part(value: object) -> str:
    """A part of a step, which a bar would end."""
    return one_line(value).replace("|", "/")


def driver(value: object) -> str:
    """The name of a driver, as every list can hold it."""
    return " ".join(_DRIVER.sub("_", str(value).replace("\n", "_")).split()).replace("```", "'''")


def resources(value: str) -> tuple[dict[str, int], list[str]]:
    """`ENG:1,GPU:2` as a table, and what of it was no resource."""
    found: dict[str, int] = {}
    bad: list[str] = []
    for token in filter(None, (each.strip() for each in value.split(","))):
        if match := RESOURCE.fullmatch(token):
            found[match[1]] = int(match[2])
        else:
            bad.append(token)
    return found, bad


def ids(value: str) -> tuple[tuple[str, ...], list[str]]:
    """`A,B`, `A B` or `[A, B]` in order and each once, and what of it was no id."""
    tokens = value.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    good = dict.fromkeys(each for each in tokens if ID.fullmatch(each))
    return tuple(good), [each for each in tokens if not ID.fullmatch(each)]


def shown(uses: dict[str, int]) -> str:
    """`ENG:1,GPU:2`."""
    return ",".join(f"{name}:{count}" for name, count in uses.items())


def number(value: str) -> Decimal | None:
    """The number, where it is one that can be compared."""
    try:
        found = Decimal(value.strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() and abs(found.adjusted()) < 1000 else None
