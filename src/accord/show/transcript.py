"""A conversation on the terminal: time, member and action; code and output behind a margin line."""

from collections.abc import Iterable, Iterator

from accord.show import style
from accord.show.columns import column_width, pieces
from accord.show.text import (
    MIN_TEXT_WIDTH,
    escape_controls,
    local_time,
    one_line,
    text_width,
    wrap,
)
from accord.show.timeline.state import SYSTEM, Turn

INDENT = " " * 10
LISTING_MARGIN = "│ "
CONTINUATION_MARGIN = "│↪ "  # distinct from any line of content, which follows `│ `
MAX_LISTING_LINES = 40
UNCUT_KINDS = frozenset({"proposal"})  # members must see all of what they approve

MOOD_STYLES: dict[str, style.Style] = {
    "good": style.green,
    "bad": style.red,
    "wait": style.yellow,
}
SPEECH_KINDS = frozenset({"prompt", "answer", "thought"})
SPACED_KINDS = SPEECH_KINDS | {"proposal", "interrupt"}


class TranscriptRenderer:
    """Renders turns one by one, with a line for each new day and blank lines around speech."""

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        self._day = ""
        self._before = ""

    def render(self, turn: Turn) -> Iterator[str]:
        """The lines of one more turn."""
        today = f"{local_time(turn.at):%A, %d %B %Y}"
        if today != self._day:
            yield from (*([""] if self._day else []), style.dim(today), "")
        elif turn.kind in SPACED_KINDS or self._before in SPEECH_KINDS:
            yield ""
        self._day, self._before = today, turn.kind
        yield from render_turn(turn, whole=self._whole)


def render_transcript(turns: Iterable[Turn], *, whole: bool = False) -> Iterator[str]:
    """The lines of all turns; `whole` shows long listings uncut."""
    renderer = TranscriptRenderer(whole=whole)
    for turn in turns:
        yield from renderer.render(turn)


def render_turn(turn: Turn, *, whole: bool = False) -> Iterator[str]:
    yield render_headline(turn)
    if turn.kind == "note":
        return
    if turn.text.strip():
        yield from wrap(turn.text, INDENT)
    if turn.listing.strip():
        max_lines = None if whole or turn.kind in UNCUT_KINDS else MAX_LISTING_LINES
        yield from render_listing(turn.listing, max_lines)


def render_headline(turn: Turn) -> str:
    """`20:01:10  alice asks claude`."""
    at = style.dim(f"{local_time(turn.at):%H:%M:%S}")
    who = "" if turn.who == SYSTEM else f"{style.bold(one_line(turn.who))} "
    title = MOOD_STYLES.get(turn.mood, str)(one_line(turn.title))
    extra = style.dim(f" · {one_line(turn.text)}") if turn.kind == "note" and turn.text else ""
    where = style.dim(f" · in {one_line(turn.fork)}") if turn.fork else ""
    return f"{at}  {who}{title}{where}{extra}"


def render_listing(code: str, max_lines: int | None = None, indent: str = INDENT) -> Iterator[str]:
    """Preformatted text behind a margin; long lines are wrapped, lines left out are counted."""
    margin = f"{indent}{LISTING_MARGIN}"
    width = max(MIN_TEXT_WIDTH, text_width() - column_width(margin))
    lines = [
        f"{style.dim(indent + (CONTINUATION_MARGIN if place else LISTING_MARGIN))}{piece}".rstrip()
        for line in escape_controls(code).rstrip("\n").split("\n")
        for place, piece in enumerate(pieces(line, width, narrowed=1))
    ]
    shown = lines if max_lines is None else lines[:max_lines]
    yield from shown
    if hidden := len(lines) - len(shown):
        more = "1 more line" if hidden == 1 else f"{hidden} more lines"
        yield style.dim(f"{margin}… {more}; --full shows all")
