"""Colours and links, only on a terminal that supports them."""

import os
import sys
from collections.abc import Callable
from typing import TextIO

Style = Callable[[str], str]


def supports_color(out: TextIO | None = None) -> bool:
    """Whether `out` (default: standard output) shows colours; honours NO_COLOR and FORCE_COLOR."""
    screen = (out or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"
    return not os.environ.get("NO_COLOR") and (screen or bool(os.environ.get("FORCE_COLOR")))


def _ansi_style(number: str) -> Style:
    def paint(text: str) -> str:
        return f"\x1b[{number}m{text}\x1b[0m" if text and supports_color() else text

    return paint


def link(text: str, url: str) -> str:
    """The text as a hyperlink, or the plain text if the terminal has no hyperlinks."""
    supported = supports_color() and os.environ.get("TERM") != "linux"
    return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if supported else text


bold = _ansi_style("1")
dim = _ansi_style("2")
red = _ansi_style("31")
green = _ansi_style("32")
yellow = _ansi_style("33")
blue = _ansi_style("34")
magenta = _ansi_style("35")
cyan = _ansi_style("36")
