"""A card on the terminal: a bar beside every line, and a second one beside text of others.

No text from outside can reach the first columns: it is escaped, wrapped to the terminal's width in
columns, and every line that it takes begins with the card's own margin.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from accord.show import style
from accord.show.columns import column_width, pieces, wrapped
from accord.show.proposed_call import CallLine
from accord.show.text import (
    MIN_TEXT_WIDTH,
    escape_controls,
    one_line,
    plural,
    spell_out,
    text_width,
)

CONTINUATION_INDENT = 4


class Glyphs(NamedTuple):
    """The characters that a card is drawn with."""

    bar: str
    words: str
    quote: str
    continued: str
    done: str
    open: str
    ruling: str
    ellipsis: str


UNICODE_GLYPHS = Glyphs("▌ ", "“ ", "│ ", "│↪", "✓", "○", "◆", "…")
ASCII_GLYPHS = Glyphs("# ", "> ", "| ", "|>", "+", "-", "*", "...")


def can_encode(text: str) -> bool:
    """Whether standard output shows these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def encodable(text: str) -> str:
    """The text with what standard output cannot show spelled out."""
    if text.isascii() or can_encode(text):
        return text
    return "".join(letter if can_encode(letter) else spell_out(letter) for letter in text)


class Card:
    """Draws the lines of one card."""

    def __init__(self, paint: style.Style = style.yellow) -> None:
        self.glyphs = UNICODE_GLYPHS if can_encode("".join(UNICODE_GLYPHS)) else ASCII_GLYPHS
        self._bar = paint(self.glyphs.bar.rstrip()) + " "
        self._width = max(MIN_TEXT_WIDTH, text_width() - len(self.glyphs.bar))

    def line(self, text: str, paint: style.Style = str, mark: str = "") -> Iterator[str]:
        """A sentence of ours, wrapped; `mark` stands before it.

        Lines after the first are indented: a name in the sentence must not begin a line of its own.
        """
        lead = f"{mark} " if mark else ""
        hang = " " * max(len(lead), CONTINUATION_INDENT)
        first, *rest = list(wrapped(encodable(one_line(text)), self._width - len(hang))) or [""]
        yield f"{self._bar}{lead}{paint(first)}".rstrip()
        yield from (f"{self._bar}{hang}{paint(part)}" for part in rest)

    def prose(self, text: str) -> Iterator[str]:
        """Words of others, wrapped behind a margin that no call has."""
        glyph, width = self.glyphs.words, self._quote_width
        for paragraph in encodable(escape_controls(text)).rstrip().split("\n"):
            lines = list(wrapped(paragraph, width)) or [""]
            yield from (f"{self._bar}{style.dim(glyph.rstrip())} {line}".rstrip() for line in lines)

    def listing(
        self, code: Sequence[CallLine], max_lines: int | None, full_flag: str
    ) -> Iterator[str]:
        """Preformatted lines of others, uncut or folded; continued lines have their own margin."""
        shown = 0
        for place, each in enumerate(code):
            lines = list(self._code_lines(each))
            if max_lines is not None and shown + len(lines) > max_lines:
                left = max_lines - shown
                yield from lines[:left]
                yield from self._fold_note(len(code) - place - (left > 0), full_flag)
                return
            shown += len(lines)
            yield from lines

    def _fold_note(self, hidden: int, full_flag: str) -> Iterator[str]:
        left_out = f"{plural(hidden, 'more line')} not shown" if hidden else "The rest is not shown"
        yield from self.line(
            f"{left_out}; {full_flag} shows all", style.yellow, self.glyphs.ellipsis
        )

    def _code_lines(self, line: CallLine) -> Iterator[str]:
        sign = f"{line.sign} " if line.sign else ""
        text = encodable(escape_controls(line.text).replace("\n", "\\n"))
        for place, part in enumerate(pieces(text, self._quote_width - len(sign), 0)):
            glyph = self.glyphs.continued if place else self.glyphs.quote.rstrip()
            shown = line.style(f"{sign}{part}".rstrip())
            yield f"{self._bar}{style.dim(glyph)} {shown}".rstrip()

    @property
    def _quote_width(self) -> int:
        return max(MIN_TEXT_WIDTH, self._width - column_width(self.glyphs.continued) - 1)
