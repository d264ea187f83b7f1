"""Colour where it helps a person at a terminal, and nowhere else."""

import os
import sys
from collections.abc import Callable
from typing import TextIO

Paint = Callable[[str], str]


def in_colour(out: TextIO | None = None) -> bool:
    """Whether the reader of `out` (standard output) sees colours; NO_COLOR is honoured."""
    screen = (out or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"
    return not os.environ.get("NO_COLOR") and (screen or bool(os.environ.get("FORCE_COLOR")))


def _code(number: str) -> Paint:
    def paint(text: str) -> str:
        return f"\x1b[{number}m{text}\x1b[0m" if text and in_colour() else text

    return paint


def link(text: str, url: str) -> str:
    """The text, to be clicked on where the terminal knows how; elsewhere nothing but the text."""
    able = in_colour() and os.environ.get("TERM") != "linux"
    return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if able else text


bold = _code("1")
dim = _code("2")
red = _code("31")
green = _code("32")
yellow = _code("33")
blue = _code("34")
magenta = _code("35")
cyan = _code("36")
