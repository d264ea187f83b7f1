"""Checks that SQLite itself cannot make: orphaned rows and missing rows."""

from collections.abc import Iterator

import apsw

_ROWS_WITHOUT_STREAM = """
    SELECT pos FROM records WHERE stream NOT IN (SELECT key FROM streams) ORDER BY pos LIMIT 1
"""
_SIGNED_WITHOUT_ROWS = """
    SELECT DISTINCT signed.stream
    FROM (SELECT stream FROM heads UNION SELECT stream FROM cuts) AS signed
    LEFT JOIN streams ON name = signed.stream
    WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.stream = streams.key) ORDER BY 1
"""
# Positions count from 1 without a gap, except for rows removed by a cut.
_MISSING_ROW_COUNT = "SELECT ifnull(max(pos), 0) - count(*) FROM records"
_CUT_ROW_COUNT = """
    SELECT ifnull(sum(cuts.version - (
        SELECT count(*) FROM records AS r WHERE r.stream = s.key AND r.version <= cuts.version
    )), 0) FROM cuts JOIN streams AS s ON s.name = cuts.stream
"""
# Versions of a stream count without a gap, from the cut if there is one.
_FIRST_VERSION_GAP = """
    SELECT pos, name, before + 1 FROM (
        SELECT pos, name, records.version AS version,
            lag(records.version, 1, ifnull(cuts.version, 0))
                OVER (PARTITION BY records.stream ORDER BY records.version) AS before
        FROM records JOIN streams ON streams.key = records.stream
            LEFT JOIN cuts ON cuts.stream = name
    ) WHERE version > before + 1 ORDER BY pos LIMIT 1
"""
# A stream's missing last row shows only as a gap in positions, if nothing was ever removed.
_FIRST_POSITION_GAP = """
    SELECT pos FROM (SELECT pos, row_number() OVER (ORDER BY pos) AS place FROM records)
    WHERE pos <> place AND NOT EXISTS (SELECT 1 FROM cuts) ORDER BY pos LIMIT 1
"""


def integrity_problems(db: apsw.Connection) -> Iterator[str]:
    """Describe each orphaned, missing or undeleted row."""
    if position := db.execute(_ROWS_WITHOUT_STREAM).get:
        yield f"the record at position {position} belongs to no stream"
    for (stream,) in db.execute(_SIGNED_WITHOUT_ROWS):
        yield f"{stream} was signed, but has no records"
    lost = db.execute(_MISSING_ROW_COUNT).get - db.execute(_CUT_ROW_COUNT).get
    if lost > 0:
        what = "a record is" if lost == 1 else f"{lost} records are"
        yield f"{what} missing that retention did not remove{_first_gap_text(db)}"
    elif lost < 0:
        yield "records are present that retention had removed"


def _first_gap_text(db: apsw.Connection) -> str:
    """Where the first missing row was, as far as that can be told."""
    if found := db.execute(_FIRST_VERSION_GAP).get:
        position, stream, version = found
        return f"; the first is record {version} of {stream}, before position {position}"
    if position := db.execute(_FIRST_POSITION_GAP).get:
        return f"; the first was before position {position}"
    return ""
