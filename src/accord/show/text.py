"""Text for people; text from others is escaped, so that it cannot control the terminal."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from accord.core.kernel import command_line as command_lines
from accord.show import terminal_size
from accord.show.columns import column_width, cut, is_mark, wrapped
from accord.show.foreign_json import as_int, as_items, as_object, as_text, as_texts

# Joins emoji and letters of some scripts. All other invisible characters are escaped, and so is a
# joiner next to an ASCII letter, where its only effect is to make different words look the same.
JOINER = re.compile("(?<=[^\x00-\x7f])\u200d(?=[^\x00-\x7f])")
# Letters and symbols without any ink.
BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
# Marks on one letter; more would pile up over the lines above and below.
MAX_MARKS = 4
VARIATION_SELECTORS = range(0xFE00, 0xFE10)
MAX_WIDTH = 100
MIN_TEXT_WIDTH = 20
ALL_BUT_READ_CATEGORIES = frozenset(
    {
        *("file_write", "file_delete", "shell_execute", "network_request"),
        *("deploy", "database", "secret_access", "external_api"),
    }
)
# No marks at all: letters of most European languages, punctuation, box drawing.
_NO_MARKS = re.compile("[\n\t\x20-\x7e\xa0-\u02ff\u2010-\u20cf\u2100-\u2bff]*")
_ANSI_STYLE = re.compile(r"\x1b\[[0-9;:]*m")
# Characters with a special meaning inside double quotes.
_UNSAFE_IN_QUOTES = re.compile(r"[\"$`!]|\\(?:[\\\n]|\Z)")
MINUTE, HOUR, DAY = 60, 3600, 86_400
MAX_SPAN_S = 1 << 53
MAX_QUORUM_DEPTH = 8


def escape_controls(text: str) -> str:
    """Escape control, formatting and invisible characters except line breaks and tabs."""
    text = text.replace("\r\n", "\n")
    if text.isascii() and text.isprintable():
        return text
    held = {match.start() for match in JOINER.finditer(text)}
    shown = (c if at in held else _escape_letter(c) for at, c in enumerate(text))
    return _escape_marks("".join(shown)).expandtabs(4)


def _escape_letter(letter: str) -> str:
    plain = letter in "\n\t" or (letter.isprintable() and letter not in BLANK_LETTERS)
    return letter if plain else spell_out(letter)


def spell_out(text: str) -> str:
    """The text with every character as an escape of Python."""
    return "".join(letter.encode("unicode_escape").decode() for letter in text)


def _escape_marks(text: str) -> str:
    """Escape marks that would join a margin, pile up over other lines, or are invisible."""
    if _NO_MARKS.fullmatch(text):
        return text
    shown: list[str] = []
    marks = MAX_MARKS  # at the beginning there is no letter to join
    before = ""
    for letter in text:
        if not is_mark(letter):
            marks = MAX_MARKS if letter.isspace() else 0
            shown.append(letter)
        elif marks >= MAX_MARKS or (ord(letter) in VARIATION_SELECTORS and before.isascii()):
            shown.append(spell_out(letter))
        else:
            marks += 1
            shown.append(letter)
        before = letter
    return "".join(shown)


def escape_json(code: str) -> str:
    """Escape what could control a terminal in a JSON text; its value does not change."""
    if code.replace("\n", "").isprintable():
        return code
    letters = (c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in code)
    return "".join(letters)


def strip_styles(text: str) -> str:
    """Remove ANSI colours and other styles."""
    return _ANSI_STYLE.sub("", text)


def replace_surrogates(text: str) -> str:
    """Text from git, which need not be UTF-8, with a replacement character for each bad byte."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def one_line(text: str) -> str:
    """Escape the text and collapse its white space onto one line."""
    return " ".join(escape_controls(text).split())


def describe_verdict(ruling: dict[str, Any]) -> str:
    """`batch/item: verdict, state, confidence (ruling hash)`."""
    batch, item, verdict, state, confidence, sha256 = (
        as_text(ruling.get(name))
        for name in ("batch", "item", "verdict", "state", "confidence", "sha256")
    )
    sure = f", confidence {confidence}" if confidence else ""
    return f"{batch}/{item}: {verdict}, {state}{sure} (ruling {sha256[:12]})"


def clip(text: str, width: int) -> str:
    """Cut the text to `width` columns, ending in an ellipsis."""
    return cut(text, width)


def text_width() -> int:
    """Columns for a paragraph: those of the terminal, at most 100."""
    return min(terminal_size.terminal_columns(MAX_WIDTH), MAX_WIDTH)


def wrap(text: str, indent: str = "", max_lines: int | None = None) -> Iterator[str]:
    """Wrap prose, keeping its line breaks; what exceeds `max_lines` is counted in a last line."""
    lines = list(_wrap_paragraphs(text, indent))
    yield from lines[:max_lines]
    if max_lines is not None and len(lines) > max_lines:
        yield f"{indent}… {plural(len(lines) - max_lines, 'more line')}"


def _wrap_paragraphs(text: str, indent: str) -> Iterator[str]:
    width = max(MIN_TEXT_WIDTH, text_width() - column_width(indent))
    for paragraph in escape_controls(text).rstrip().split("\n"):
        hang = paragraph[: len(paragraph) - len(paragraph.lstrip())][: width // 2]
        lines = wrapped(paragraph, width, hang)
        yield from [f"{indent}{line}".rstrip() for line in lines] or [indent.rstrip()]


def plural(number: int, thing: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def join_words(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = list(words) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def format_duration(seconds: float) -> str:
    """`1 h 30 min`, `2.5 s`, `40 ms`; "ages" for numbers too large to be a real duration."""
    if not -MAX_SPAN_S < seconds < MAX_SPAN_S:
        return "ages"
    whole = int(seconds)
    for size, letter, smaller, small in (
        (DAY, "d", HOUR, "h"),
        (HOUR, "h", MINUTE, "min"),
        (MINUTE, "min", 1, "s"),
    ):
        if whole >= size:
            number, rest = whole // size, whole % size // smaller
            return f"{number} {letter} {rest} {small}" if rest else f"{number} {letter}"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    return f"{whole} s" if seconds >= 10 or seconds == whole else f"{seconds:.1f} s"


def local_time(ts: str) -> datetime:
    """A timestamp in the reader's time zone; 1970-01-01 if it cannot be parsed."""
    try:
        return datetime.fromisoformat(ts).astimezone()
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC).astimezone()


CONTRADICTION = "The arguments name different commands; which of them would run is not known:"


def command_line(arguments: dict[str, Any]) -> str | None:
    """The command line, if the arguments consist of one and nothing else; otherwise None.

    Arguments that name one command twice, and differently, are no command line.
    """
    if not arguments.keys() <= command_lines.COMMAND_KEYS or not command_lines.lines_agree(
        arguments
    ):
        return None
    if (words := command_lines.words_of(arguments)) is not None:
        return " ".join(map(shell_quote, words))
    line = arguments.get(command_lines.FULL_COMMAND, arguments.get(command_lines.COMMAND))
    return line if isinstance(line, str) else None


def shell_quote(word: str) -> str:
    """Quote a word for a shell; in double quotes if it contains single ones and nothing special."""
    double_quoted = "'" in word and not _UNSAFE_IN_QUOTES.search(word)
    return f'"{word}"' if double_quoted else shlex.quote(word)


def render_invocation(arguments: Any) -> str:
    """Everything that would run, uncut: a command line, or else the arguments as JSON."""
    if not isinstance(arguments, dict):
        return json.dumps(arguments, indent=2, ensure_ascii=False)
    if not command_lines.lines_agree(arguments):
        return f"{CONTRADICTION}\n{json.dumps(arguments, indent=2, ensure_ascii=False)}"
    if (typed := command_line(arguments)) is not None:
        return f"$ {typed}"
    rest = {name: value for name, value in arguments.items() if name != "decision"}
    if len(rest) < len(arguments) and (typed := command_line(rest)) is not None:
        # The step comes first, on one line, so that no command can imitate it.
        return f"decision {json.dumps(arguments['decision'], ensure_ascii=False)}\n$ {typed}"
    return json.dumps(arguments, indent=2, ensure_ascii=False)


def describe_quorum(quorum: Any, depth: int = 0) -> str:
    """Which approvals are needed, in words; a rule that is not known here as JSON."""
    rule = as_object(quorum)
    number = plural(as_int(rule.get("count", 1)), "approval")
    match rule.get("type"):
        case "any":
            return number
        case "all":
            return "the approval of everyone who may approve"
        case "majority":
            return "the approval of more than half of those who may"
        case "role":
            return f"{number} by role {one_line(as_text(rule.get('role')))}"
        case "label":
            return f"{number} by label {one_line(as_text(rule.get('label')))}"
        case "specific":
            return (
                f"the approval of {join_words(map(one_line, as_texts(rule.get('participants'))))}"
            )
        case "all_of" if depth < MAX_QUORUM_DEPTH:
            parts = as_items(rule.get("rules"))
            return join_words(describe_quorum(part, depth + 1) for part in parts)
        case _:
            return one_line(json.dumps(quorum))


def describe_missing(lacks: Iterable[dict[str, Any]], approvals: Iterable[str]) -> str:
    """Which approvals are still missing, in words; empty if any next approval is enough."""
    approvers, lacks = set(approvals), list(lacks)
    by_rule = max((lack["missing"] for lack in lacks if not _is_any(lack)), default=0)
    # An approval that another rule needs also counts for `any`.
    shown = [lack for lack in lacks if not (_is_any(lack) and lack["missing"] <= by_rule)]
    return join_words(_describe_lack(lack["rule"], lack["missing"], approvers) for lack in shown)


def _is_any(lack: dict[str, Any]) -> bool:
    return bool(lack["rule"].get("type") == "any")


def _describe_lack(rule: dict[str, Any], number: int, approvers: set[str]) -> str:
    match rule.get("type"):
        case "any" | "majority":
            return plural(number, "more approval")
        case "all":
            return f"{plural(number, 'more approval')}, as everyone must agree"
        case "specific":
            absent = (name for name in as_texts(rule.get("participants")) if name not in approvers)
            return f"the approval of {join_words(map(one_line, absent))}"
        case _:
            return describe_quorum({**rule, "count": number})


def describe_gating(config: dict[str, Any]) -> str:
    """Which categories need approval in a session, and by whom."""
    categories = as_texts(config.get("require_approval_for"))
    rule = describe_quorum(config.get("default_gate_quorum"))
    if not categories:
        return f"only risky actions need {rule}"
    if "all" in categories:
        return f"everything needs {rule}"
    if set(categories) >= ALL_BUT_READ_CATEGORIES:
        return f"everything but reading files needs {rule}"
    verb = "needs" if len(categories) == 1 else "need"
    return f"{join_words(map(one_line, categories))} {verb} {rule}"
