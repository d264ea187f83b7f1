"""Results on standard output: tables for people, JSON for programs."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from accord.show import text
from accord.show.columns import column_width, cut, pad

COLUMN_GAP = 2
MIN_COLUMN_WIDTH = 8
_ENCODER = msgspec.json.Encoder(order="deterministic")


def print_json(content: Any) -> None:
    """Print one line of JSON that cannot control the terminal."""
    print(text.escape_json(_ENCODER.encode(content).decode()))  # noqa: T201 - this is where results go


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns; on a terminal they are cut to its width."""
    lines = [heads, *([text.one_line(cell) for cell in row] for row in rows)]
    if sys.stdout.isatty():
        lines = fit_columns(lines, shutil.get_terminal_size().columns)
    widths = _widths(lines)
    for line in lines:
        cells = (pad(cell, width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())  # noqa: T201 - this is where results go


def fit_columns(lines: list[Sequence[str]], width: int) -> list[Sequence[str]]:
    """Drop empty columns, then shorten the widest until the lines fit.

    The first column stays whole: it holds the id to copy into the next command.
    """
    if _total(lines) > width:
        full = [place for place in range(len(lines[0])) if any(line[place] for line in lines[1:])]
        lines = [[line[place] for place in full] for line in lines]
    while _total(lines) > width:
        widths = _widths(lines)
        place = max(range(1, len(widths)), key=widths.__getitem__, default=0)
        if widths[place] <= MIN_COLUMN_WIDTH:
            break
        max_width = widths[place] - 1
        lines = [[*line[:place], cut(line[place], max_width), *line[place + 1 :]] for line in lines]
    return lines


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(column_width(line[place]) for line in lines) for place in range(len(lines[0]))]


def _total(lines: Sequence[Sequence[str]]) -> int:
    widths = _widths(lines)
    return sum(widths) + COLUMN_GAP * (len(widths) - 1)
