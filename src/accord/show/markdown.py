"""A session as Markdown: readable as it is, and wherever Markdown is shown."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from accord.show.text import line, listed, moment, safe
from accord.show.timeline import SYSTEM, Turn

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&])")
_START = re.compile(r"^(\s*\d*)([-+=.)])")
_FENCE = re.compile(r"`{3,}")


def markdown(session: dict[str, Any], turns: Iterable[Turn]) -> str:
    """The whole document."""
    return "\n".join([*_heading(session), *_turns(turns), ""])


def _heading(session: dict[str, Any]) -> Iterator[str]:
    people = [
        f"{plain(each['id'])} ({listed(map(plain, each['roles']))})"
        for each in session.get("members", ())
    ]
    yield f"# {plain(session['name'] or session['id'])}"
    yield ""
    yield f"- Session: `{line(session['id']).replace('`', chr(39))}`"
    yield f"- Status: {plain(session['status'])}"
    yield f"- Opened: {plain(session['created_at'])} by {plain(session['created_by'])}"
    if people:
        yield f"- People: {listed(people)}"


def _turns(turns: Iterable[Turn]) -> Iterator[str]:
    day = ""
    for turn in turns:
        at = moment(turn.at)
        if (today := f"{at:%Y-%m-%d}") != day:
            yield from ("", f"## {today}")
            day = today
        who = "" if turn.who == SYSTEM else f"**{plain(turn.who)}** "
        inline = f" · {plain(turn.text)}" if turn.kind == "note" and turn.text else ""
        where = f" · in {plain(turn.fork)}" if turn.fork else ""
        yield from ("", f"{at:%H:%M:%S} {who}{plain(turn.title)}{where}{inline}")
        if turn.text.strip() and not inline:
            yield ""
            yield from (
                f"> {escaped(each)}".rstrip() for each in safe(turn.text).strip().split("\n")
            )
        if turn.listing.strip():
            yield from ("", *fenced(safe(turn.listing).rstrip()))


def quoted(text: str) -> Iterator[str]:
    """Others' words, line by line."""
    return (f"> {escaped(each)}".rstrip() for each in safe(text).strip().split("\n"))


def plain(text: str) -> str:
    """Others' words on one line, taken by the letter."""
    return escaped(line(text))


def escaped(text: str) -> str:
    """Text that no reader of Markdown takes for markup."""
    return _START.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", text))


def fenced(code: str) -> Iterator[str]:
    """A block whose fence is longer than any inside it."""
    fence = "`" * max([3, *(len(each) + 1 for each in _FENCE.findall(code))])
    yield from (f"{fence}text", code, fence)
