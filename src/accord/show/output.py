"""Results on standard output: columns for people, JSON for programs."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder(order="deterministic")


def tell(content: Any) -> None:
    """A result for programs."""
    print(_ENCODER.encode(content).decode())  # noqa: T201 - this is where results go


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A result for people, in columns."""
    lines = [heads, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())  # noqa: T201 - this is where results go
