"""Words from others, made fit to be shown: nothing in them can move a cursor or hide a line."""

import json
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from accord.show import screen

# Holds emoji and letters of some scripts together; all other invisible marks are shown, and so is
# one beside a plain letter, where it does nothing but make two words look the same.
JOINER = re.compile("(?<=[^\x00-\x7f])\u200d(?=[^\x00-\x7f])")
WIDEST = 100
ALL_BUT_READING = frozenset(
    {
        *("file_write", "file_delete", "shell_execute", "network_request"),
        *("deploy", "database", "secret_access", "external_api"),
    }
)
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")
# What means something else within double quotes.
_ODD = re.compile(r"[\"$`!]|\\(?:[\\\n]|\Z)")
MINUTE, HOUR, DAY = 60, 3600, 86_400
AGES = 1 << 53


def safe(text: str) -> str:
    """The text with every control and formatting character spelled out, lines and tabs aside."""
    text = text.replace("\r\n", "\n")
    if text.isprintable():
        return text
    held = {match.start() for match in JOINER.finditer(text)}
    shown = (c if at in held else _shown(c) for at, c in enumerate(text))
    return "".join(shown).expandtabs(4)


def _shown(letter: str) -> str:
    plain = letter.isprintable() or letter in "\n\t"
    return letter if plain else letter.encode("unicode_escape").decode()


def inert(code: str) -> str:
    """JSON with every character that could steer a terminal as an escape; it says the same."""
    if code.replace("\n", "").isprintable():
        return code
    letters = (c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in code)
    return "".join(letters)


def unstyled(text: str) -> str:
    """The text without colours and other styles, as a terminal would have shown its letters."""
    return _STYLE.sub("", text)


def line(text: str) -> str:
    """The text on one line."""
    return " ".join(safe(text).split())


def standing(said: dict[str, Any]) -> str:
    """The verdict in a line."""
    sure = f", confidence {said['confidence']}" if said["confidence"] else ""
    ruling = f"{said['batch']}/{said['item']}: {said['verdict']}, {said['state']}{sure}"
    return f"{ruling} (ruling {said['sha256'][:12]})"


def clipped(text: str, room: int) -> str:
    """As much of it as there is room for."""
    return text if len(text) <= room else f"{text[: room - 1]}…"


def width() -> int:
    """How wide a paragraph may be here."""
    return min(screen.columns(WIDEST), WIDEST)


def wrapped(text: str, indent: str = "", most: int | None = None) -> Iterator[str]:
    """Prose in lines that fit, its own line breaks kept; past `most` lines it says how many."""
    lines = list(_wrapped(text, indent))
    yield from lines[:most]
    if most is not None and len(lines) > most:
        yield f"{indent}… {count(len(lines) - most, 'more line')}"


def _wrapped(text: str, indent: str) -> Iterator[str]:
    room = max(20, width() - len(indent))
    for paragraph in safe(text).rstrip().split("\n"):
        hang = paragraph[: len(paragraph) - len(paragraph.lstrip())][: room // 2]
        parts = textwrap.wrap(
            paragraph, room, subsequent_indent=hang, break_on_hyphens=False, tabsize=4
        )
        yield from (f"{indent}{part}".rstrip() for part in parts or [""])


def count(number: int, thing: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def listed(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = list(words) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def span(seconds: float) -> str:
    """How long, as people say it; what is past all sense is called so."""
    if not -AGES < seconds < AGES:
        return "ages"
    whole = int(seconds)
    for size, letter, smaller, small in (
        (DAY, "d", HOUR, "h"),
        (HOUR, "h", MINUTE, "min"),
        (MINUTE, "min", 1, "s"),
    ):
        if whole >= size:
            most, rest = whole // size, whole % size // smaller
            return f"{most} {letter} {rest} {small}" if rest else f"{most} {letter}"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    return f"{whole} s" if seconds >= 10 or seconds == whole else f"{seconds:.1f} s"


def moment(ts: str) -> datetime:
    """A timestamp in the reader's own time; the beginning of time for what is none."""
    try:
        return datetime.fromisoformat(ts).astimezone()
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC).astimezone()


def command(arguments: dict[str, Any]) -> str | None:
    """The command line, where the arguments are one and nothing else."""
    match arguments:
        case {"argv": [*words]} if len(arguments) == 1 and all(isinstance(w, str) for w in words):
            return " ".join(map(quoted, words))
        case {"command": str(text)} if len(arguments) == 1:
            return text
        case _:
            return None


def quoted(word: str) -> str:
    """The word as a shell reads it; in double quotes where it has single ones and nothing odd."""
    doubly = "'" in word and not _ODD.search(word)
    return f'"{word}"' if doubly else shlex.quote(word)


def invocation(arguments: dict[str, Any]) -> str:
    """What would be run, whole: a command line, else the arguments as JSON."""
    if (typed := command(arguments)) is not None:
        return f"$ {typed}"
    rest = {name: value for name, value in arguments.items() if name != "decision"}
    if len(rest) < len(arguments) and (typed := command(rest)) is not None:
        # The step comes first, in one line: no command can write a line above itself.
        return f"decision {json.dumps(arguments['decision'], ensure_ascii=False)}\n$ {typed}"
    return json.dumps(arguments, indent=2, ensure_ascii=False)


def quorum(rule: dict[str, Any]) -> str:
    """Which approvals are needed, in words."""
    number = count(rule.get("count", 1), "approval")
    match rule.get("type"):
        case "any":
            return number
        case "all":
            return "the approval of everyone who may approve"
        case "majority":
            return "the approval of more than half of those who may"
        case "role":
            return f"{number} by role {line(rule['role'])}"
        case "label":
            return f"{number} by label {line(rule['label'])}"
        case "specific":
            return f"the approval of {listed(map(line, rule['participants']))}"
        case "all_of":
            return listed(map(quorum, rule["rules"]))
        case _:
            return line(json.dumps(rule))


def missing(lacks: Iterable[dict[str, Any]], approvals: Iterable[str]) -> str:
    """Which approvals are still missing, in words; nothing where the next one is enough."""
    yes, lacks = set(approvals), list(lacks)
    most = max((each["missing"] for each in lacks if not _is_any(each)), default=0)
    # Whoever meets another rule counts among any.
    told = [each for each in lacks if not (_is_any(each) and each["missing"] <= most)]
    return listed(_lack(each["rule"], each["missing"], yes) for each in told)


def _is_any(lack: dict[str, Any]) -> bool:
    return bool(lack["rule"].get("type") == "any")


def _lack(rule: dict[str, Any], number: int, yes: set[str]) -> str:
    match rule.get("type"):
        case "any" | "majority":
            return count(number, "more approval")
        case "all":
            return f"{count(number, 'more approval')}, as everyone must agree"
        case "specific":
            return (
                f"the approval of {listed(line(n) for n in rule['participants'] if n not in yes)}"
            )
        case _:
            return quorum({**rule, "count": number})


def gated(config: dict[str, Any]) -> str:
    """What needs approval in a session, and which."""
    categories = config["require_approval_for"]
    rule = quorum(config["default_gate_quorum"])
    if not categories:
        return f"only what is risky needs {rule}"
    if "all" in categories:
        return f"everything needs {rule}"
    if set(categories) >= ALL_BUT_READING:
        return f"everything but reading files needs {rule}"
    return f"{listed(map(line, categories))} {'needs' if len(categories) == 1 else 'need'} {rule}"
