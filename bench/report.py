"""The table at the end: what was measured, and what was aimed for."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table."""

    what: str
    measured: str
    target: str
    met: bool | None


class Spread(NamedTuple):
    """A figure from several rounds: the median, the least and the most."""

    middle: float
    least: float
    most: float

    def text(self, digits: int = 2) -> str:
        """The median with the least and the most in brackets."""
        return f"{self.middle:.{digits}f} ({self.least:.{digits}f} to {self.most:.{digits}f})"


def spread(values: Sequence[float]) -> Spread:
    """Of figures that were taken in turns."""
    return Spread(median(values), min(values), max(values))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Round by round, because what else the machine does changes both alike."""
    return spread([one / other for one, other in zip(ours, theirs, strict=True)])


def table(rows: list[Row]) -> str:
    """The rows in columns, each with whether its target is met."""
    marks = {True: "met", False: "MISSED", None: ""}
    lines = [("what", "measured", "target", "")]
    lines += [(row.what, row.measured, row.target, marks[row.met]) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
