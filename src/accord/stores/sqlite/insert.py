"""Many rows in one statement, because each statement is a struggle for the interpreter's lock.

Measured on two busy cores, rows of 400 bytes in five streams, FULL. CPU is the best of three in
batches of 100 and 500; rows per second are two runs in batches of 256 beside a thread that never
rests, as the event loop does at its limit.

    way                                        µs of CPU per row    rows per second
    a row at a time, `executemany`                    6.5 / 3.9    13,000 .. 30,000
    one statement over `json_each`, bodies cut
      out of one blob by `substr`                     8.1 / 4.9    15,000 .. 21,000
    one statement over a `carray` of blobs            7.0 / 4.7    20,000 .. 36,000
    this: VALUES, filled up with NULLs                6.6 / 3.3    46,000 .. 66,000
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
