"""Results on standard output: columns for people, JSON for programs."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from accord.show import text

GAP = 2
NARROWEST = 8
_ENCODER = msgspec.json.Encoder(order="deterministic")


def tell(content: Any) -> None:
    """A result for programs."""
    print(text.inert(_ENCODER.encode(content).decode()))  # noqa: T201 - this is where results go


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A result for people, in columns; on a terminal no wider than that."""
    lines = [heads, *([text.line(cell) for cell in row] for row in rows)]
    if sys.stdout.isatty():
        lines = fitted(lines, shutil.get_terminal_size().columns)
    widths = _widths(lines)
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())  # noqa: T201 - this is where results go


def fitted(lines: list[Sequence[str]], room: int) -> list[Sequence[str]]:
    """The lines cut to fit: empty columns go first, then the widest is shortened, never the first.

    The first column is what one types again.
    """
    if _total(lines) > room:
        full = [place for place in range(len(lines[0])) if any(line[place] for line in lines[1:])]
        lines = [[line[place] for place in full] for line in lines]
    while _total(lines) > room:
        widths = _widths(lines)
        place = max(range(1, len(widths)), key=widths.__getitem__, default=0)
        if widths[place] <= NARROWEST:
            break
        most = widths[place] - 1
        lines = [[*line[:place], _cut(line[place], most), *line[place + 1 :]] for line in lines]
    return lines


def _cut(cell: str, most: int) -> str:
    return cell if len(cell) <= most else f"{cell[: most - 1].rstrip('…')}…"


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]


def _total(lines: Sequence[Sequence[str]]) -> int:
    widths = _widths(lines)
    return sum(widths) + GAP * (len(widths) - 1)
