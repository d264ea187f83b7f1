"""Rows say where they belong; an append that says otherwise is a mistake of the caller."""

from collections.abc import Sequence
from operator import attrgetter

from accord.engine.ports import Row

STREAM, VERSION = attrgetter("stream"), attrgetter("version")


def check_place(stream: str, expected: int, rows: Sequence[Row]) -> None:
    """Rows belong to `stream` and their versions count on from `expected`."""
    right = list(range(expected + 1, expected + 1 + len(rows)))
    versions, streams = list(map(VERSION, rows)), set(map(STREAM, rows))
    if versions != right or not streams <= {stream}:
        named = ", ".join(sorted(streams))
        raise ValueError(f"{named} {versions} does not belong at {stream} {right}")
