"""Many rows in one statement, because each statement is a struggle for the interpreter's lock.

Measured on two cores, rows of 400 bytes, FULL, µs of CPU per row in batches of 64 / 256 / 512:

    a row at a time, `executemany`          7.4 / 5.6 / 5.2
    one statement over `json_each`, bodies
      in one blob cut by `substr`           9.9 / 7.0 / 6.3
    one statement over `carray` of blobs    8.3 / 6.2 / 5.7
    this: VALUES filled up with NULLs       6.6 / 4.4 / 3.8

The first takes the lock back once per row: while the event loop is busy, that made a commit of
500 rows wait for seconds where one statement waited for milliseconds.
"""

from collections.abc import Sequence
from functools import cache

import apsw

COLUMNS = 5
# apsw keeps no statement of more than 16 KiB at hand, and a row takes twelve bytes.
MOST = 1024

Value = str | int | bytes | None


@cache
def statement(rows: int) -> str:
    """Inserts up to `rows` rows, those that are not NULL, in their order."""
    values = ",".join(["(?,?,?,?,?)"] * rows)
    return (
        "INSERT INTO records (stream, version, id, body, hash) "  # noqa: S608 - placeholders only
        f"SELECT * FROM (VALUES{values}) WHERE column1 NOT NULL"
    )


def insert(db: apsw.Connection, values: Sequence[Value]) -> None:
    """Insert rows given one after the other as five values each."""
    step = MOST * COLUMNS
    for start in range(0, len(values), step):
        _insert(db, values[start : start + step])


def _insert(db: apsw.Connection, values: Sequence[Value]) -> None:
    rows = len(values) // COLUMNS
    # Few sizes, so that each statement is parsed once.
    size = 1 << (rows - 1).bit_length()
    db.execute(statement(size), (*values, *[None] * (COLUMNS * (size - rows))))
