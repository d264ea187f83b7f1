"""Text measured in the columns it takes on a terminal, not in characters."""

import re
import unicodedata
from collections.abc import Iterator

ELLIPSIS = "…"
# One column each, without asking the library, which takes 75 ms of CPU to load.
_NARROW = re.compile("[\x20-\x7e\xa0-\xac\xae-\u02ff\u2010-\u2027\u2500-\u257f▌✓○●◆↪]*")
# Widens the character before it in some terminals; counted, so that a line never gets too long.
PLAIN_MARKS = frozenset({"Mn", "Me"})
_EMOJI_SELECTOR = "\ufe0f"


def column_width(text: str) -> int:
    """The columns that printable text takes, at most."""
    if _NARROW.fullmatch(text):
        return len(text)
    return sum(map(letter_width, text))


def letter_width(letter: str) -> int:
    """The most columns that any terminal gives one character; only plain marks take none."""
    if _NARROW.fullmatch(letter):
        return 1
    if letter != _EMOJI_SELECTOR and unicodedata.category(letter) in PLAIN_MARKS:
        return 0
    from wcwidth import wcwidth  # imported late: it is slow to load and rarely needed

    return max(1, wcwidth(letter))


def is_mark(letter: str) -> bool:
    """Whether the character is drawn together with the one before it."""
    return unicodedata.category(letter).startswith("M")


def fitting_length(text: str, width: int) -> int:
    """How many characters from the beginning fit, at least one with the marks that belong to it."""
    if _NARROW.fullmatch(text):
        return max(1, min(len(text), width))
    used = begin = 0
    for place, letter in enumerate(text):
        begin = begin if is_mark(letter) else place
        used += letter_width(letter)
        if used > width:
            return begin or place or 1
    return len(text)


def cut(text: str, width: int) -> str:
    """The text, cut to the width with an ellipsis."""
    if column_width(text) <= width:
        return text
    return f"{text[: fitting_length(text, width - 1)].rstrip(ELLIPSIS)}{ELLIPSIS}"


def pad(text: str, width: int) -> str:
    """The text with spaces up to the width."""
    return text + " " * max(0, width - column_width(text))


def pieces(text: str, width: int, narrowed: int = 0) -> Iterator[str]:
    """Split a line, if possible before a space, into pieces that add up to exactly that line.

    Pieces after the first are shorter by `narrowed`.
    """
    while column_width(text) > width:
        end = fitting_length(text, width)
        space = text.rfind(" ", end // 2, end + 1)
        end = space if space > 0 else end
        yield text[:end]
        text, width, narrowed = text[end:], width - narrowed, 0
    yield text


def wrapped(words: str, width: int, hang: str = "") -> Iterator[str]:
    """Wrap words onto lines that begin with `hang`; a word longer than a line is split."""
    line = hang
    for word in words.split():
        joined = f"{line} {word}" if line.strip() else f"{line}{word}"
        if column_width(joined) <= width:
            line = joined
            continue
        if line.strip():
            yield line
        *whole, last = pieces(word, max(1, width - column_width(hang)))
        yield from (f"{hang}{piece}" for piece in whole)
        line = f"{hang}{last}"
    if line.strip():
        yield line
