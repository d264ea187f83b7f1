"""What SQLite itself cannot know to be wrong: rows that belong nowhere, and rows that are gone."""

from collections.abc import Iterator

import apsw

_HOMELESS = """
    SELECT pos FROM records WHERE stream NOT IN (SELECT key FROM streams) ORDER BY pos LIMIT 1
"""
_ORPHANED = """
    SELECT DISTINCT heads.stream FROM heads LEFT JOIN streams ON name = heads.stream
    WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.stream = streams.key) ORDER BY 1
"""
# Nothing is ever taken out, so positions count from 1 without a gap.
_GAP = """
    SELECT pos FROM (SELECT pos, row_number() OVER (ORDER BY pos) AS place FROM records)
    WHERE pos <> place LIMIT 1
"""


def missing_parts(db: apsw.Connection) -> Iterator[str]:
    """Each thing that should be there and is not, or the other way round."""
    if position := db.execute(_HOMELESS).get:
        yield f"the record at position {position} belongs to no stream"
    for (stream,) in db.execute(_ORPHANED):
        yield f"{stream} was signed, but nothing of it is left"
    if position := db.execute(_GAP).get:
        yield f"a record before position {position} is gone"
