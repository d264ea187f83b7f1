"""Rows say where they belong; an append that says otherwise is a mistake of the caller."""

from collections.abc import Sequence

from accord.engine.ports import Row


def check_place(stream: str, expected: int, rows: Sequence[Row]) -> None:
    """Rows belong to `stream` and their versions count on from `expected`."""
    version = expected
    for row in rows:
        version += 1
        if row.version != version or row.stream != stream:
            raise ValueError(
                f"{row.stream} {row.version} does not belong at {stream} {version}",
            )
