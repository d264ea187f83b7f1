"""A session as Markdown that is also readable as plain text."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from accord.show.text import escape_controls, join_words, local_time, one_line
from accord.show.timeline.state import SYSTEM, Turn

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&])")
_LINE_START = re.compile(r"^(\s*\d*)([-+=.)])")
_FENCE = re.compile(r"`{3,}")


def render_markdown(session: dict[str, Any], turns: Iterable[Turn]) -> str:
    return "\n".join([*_render_heading(session), *_render_turns(turns), ""])


def _render_heading(session: dict[str, Any]) -> Iterator[str]:
    people = [
        f"{escape_line(member['id'])} ({join_words(map(escape_line, member['roles']))})"
        for member in session.get("members", ())
    ]
    yield f"# {escape_line(session['name'] or session['id'])}"
    yield ""
    yield f"- Session: `{one_line(session['id']).replace('`', chr(39))}`"
    yield f"- Status: {escape_line(session['status'])}"
    yield f"- Opened: {escape_line(session['created_at'])} by {escape_line(session['created_by'])}"
    if people:
        yield f"- People: {join_words(people)}"


def _render_turns(turns: Iterable[Turn]) -> Iterator[str]:
    day = ""
    for turn in turns:
        at = local_time(turn.at)
        if (today := f"{at:%Y-%m-%d}") != day:
            yield from ("", f"## {today}")
            day = today
        who = "" if turn.who == SYSTEM else f"**{escape_line(turn.who)}** "
        inline = f" · {escape_line(turn.text)}" if turn.kind == "note" and turn.text else ""
        where = f" · in {escape_line(turn.fork)}" if turn.fork else ""
        yield from ("", f"{at:%H:%M:%S} {who}{escape_line(turn.title)}{where}{inline}")
        if turn.text.strip() and not inline:
            yield ""
            yield from quote_lines(turn.text)
        if turn.listing.strip():
            yield from ("", *code_block(escape_controls(turn.listing).rstrip()))


def quote_lines(text: str) -> Iterator[str]:
    """The text as a block quote, with its markup escaped."""
    lines = escape_controls(text).strip().split("\n")
    return (f"> {escape_markdown(line)}".rstrip() for line in lines)


def escape_line(text: str) -> str:
    """The text on one line, with its markup escaped."""
    return escape_markdown(one_line(text))


def escape_markdown(text: str) -> str:
    """Escape everything that Markdown would read as markup."""
    return _LINE_START.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", text))


def code_block(code: str) -> Iterator[str]:
    """A code block with a fence longer than any fence inside it."""
    fence = "`" * max([3, *(len(inner) + 1 for inner in _FENCE.findall(code))])
    yield from (f"{fence}text", code, fence)
