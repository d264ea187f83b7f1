"""What SQLite itself cannot know to be wrong: rows that belong nowhere, and rows that are gone."""

from collections.abc import Iterator

import apsw

_HOMELESS = """
    SELECT pos FROM records WHERE stream NOT IN (SELECT key FROM streams) ORDER BY pos LIMIT 1
"""
_ORPHANED = """
    SELECT DISTINCT signed.stream
    FROM (SELECT stream FROM heads UNION SELECT stream FROM cuts) AS signed
    LEFT JOIN streams ON name = signed.stream
    WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.stream = streams.key) ORDER BY 1
"""
# Positions count from 1 without a gap, but for what a cut says was removed.
_GONE = "SELECT ifnull(max(pos), 0) - count(*) FROM records"
_CUT = """
    SELECT ifnull(sum(cuts.version - (
        SELECT count(*) FROM records AS r WHERE r.stream = s.key AND r.version <= cuts.version
    )), 0) FROM cuts JOIN streams AS s ON s.name = cuts.stream
"""
# Within a stream versions count on without a gap, from the cut if there is one.
_FIRST = """
    SELECT pos, name, before + 1 FROM (
        SELECT pos, name, records.version AS version,
            lag(records.version, 1, ifnull(cuts.version, 0))
                OVER (PARTITION BY records.stream ORDER BY records.version) AS before
        FROM records JOIN streams ON streams.key = records.stream
            LEFT JOIN cuts ON cuts.stream = name
    ) WHERE version > before + 1 ORDER BY pos LIMIT 1
"""
# The last of a stream leaves a gap only here, and only where nothing was ever removed it means it.
_GAP = """
    SELECT pos FROM (SELECT pos, row_number() OVER (ORDER BY pos) AS place FROM records)
    WHERE pos <> place AND NOT EXISTS (SELECT 1 FROM cuts) ORDER BY pos LIMIT 1
"""


def missing_parts(db: apsw.Connection) -> Iterator[str]:
    """Each thing that should be there and is not, or the other way round."""
    if position := db.execute(_HOMELESS).get:
        yield f"the record at position {position} belongs to no stream"
    for (stream,) in db.execute(_ORPHANED):
        yield f"{stream} was signed, but nothing of it is left"
    lost = db.execute(_GONE).get - db.execute(_CUT).get
    if lost > 0:
        what = "a record is" if lost == 1 else f"{lost} records are"
        yield f"{what} gone that nobody removed on purpose{_where(db)}"
    elif lost < 0:
        yield "records are still there that were removed on purpose"


def _where(db: apsw.Connection) -> str:
    """Where the first of them was, as far as what is left tells."""
    if found := db.execute(_FIRST).get:
        position, stream, version = found
        return f"; the first is record {version} of {stream}, before position {position}"
    if position := db.execute(_GAP).get:
        return f"; the first was before position {position}"
    return ""
