"""Questions to the file, on a connection of their own that never waits for the writer.

A row that is fetched costs the interpreter's lock once; while the event loop is busy, a thread
that fetches a thousand of them was seen to wait for seconds. So what is small is asked on the
loop itself, in microseconds, and what is large comes as one row that holds them all: 3.4 µs of
CPU a row instead of 2.4, and one wait instead of a thousand.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import apsw
import msgspec

from accord.core.kernel.chain import Covered, Head
from accord.core.kernel.cuts import Cut
from accord.engine.ports import DamagedError, Row, Snapshot
from accord.engine.proven import DO
from accord.stores.sqlite.file import connect
from accord.stores.sqlite.pruning import CUT
from accord.stores.sqlite.recent import Placed
from accord.stores.sqlite.whole import missing_parts

FEW = 64
FEW_BYTES = 256 << 10
MANY = 1000
MANY_BYTES = 4 << 20

_STREAM = """
    SELECT pos, ?1 AS name, version, id, body, hash FROM records
    WHERE stream = (SELECT key FROM streams WHERE name = ?1) AND version > ?2
    ORDER BY version LIMIT ?3
"""
_LOG = """
    SELECT pos, name, version, id, body, hash FROM records CROSS JOIN streams ON key = stream
    WHERE pos > ?1 ORDER BY pos LIMIT ?2
"""
_NEWEST = """
    SELECT max(version) FROM records WHERE stream = (SELECT key FROM streams WHERE name = ?)
"""
_FIND = """
    SELECT ?1, version, id, body, hash FROM records
    WHERE id = ?2 AND stream = (SELECT key FROM streams WHERE name = ?1)
"""
_STREAMS = """
    SELECT json_group_array(name), json_group_array(newest) FROM (
        SELECT name, (SELECT max(version) FROM records WHERE stream = key) AS newest FROM streams
        WHERE name >= ?1 AND substr(name, 1, length(?1)) = ?1 ORDER BY name
    ) WHERE newest NOT NULL
"""
_HEAD = "SELECT stream, version, hash, at, key, signature, total FROM heads"
_HEADS = f"{_HEAD} WHERE stream = ? ORDER BY place"
_LARGEST = f"{_HEAD} WHERE total <> 0 ORDER BY total DESC LIMIT 1"
_SIGNED = """
    SELECT max(
        ifnull((SELECT max(version) FROM heads WHERE stream = ?1), 0),
        ifnull((SELECT version FROM cuts WHERE stream = ?1), 0)
    )
"""
# A cut is signed too, and reaches further than the heads that went with what it removed.
_COVERED = """
    SELECT (
        SELECT ifnull(sum(furthest), 0)
        FROM (SELECT max(version) AS furthest FROM heads GROUP BY stream)
    ) + (
        SELECT ifnull(sum(max(0, version - ifnull(
            (SELECT max(version) FROM heads WHERE heads.stream = cuts.stream), 0
        ))), 0) FROM cuts
    )
"""
_JOINED = (
    "SELECT json_group_array(pos), json_group_array(name), json_group_array(version), "
    "json_group_array(id), json_group_array(hex(hash)), json_group_array(length(body)), "
    "CAST(group_concat(body, '') AS BLOB)"
)
_numbers = msgspec.json.Decoder(list[int]).decode
_words = msgspec.json.Decoder(list[str]).decode


class Reader:
    """Synchronous; one thread at a time."""

    def __init__(self, path: str, *, wait: bool = True) -> None:
        self._db = connect(path)
        self._db.pragma("query_only", 1)
        if not wait:
            self._db.set_busy_timeout(0)

    def few(self, stream: str, after: int, limit: int) -> tuple[list[Row], bool]:
        """The first rows of a stream behind `after`, and whether there may be more of them."""
        newest = self._newest(stream)
        rows = [row for _, row in self._each(_STREAM, (stream, after, limit), FEW_BYTES)]
        more = len(rows) == limit or _size(rows) > FEW_BYTES
        if not more:
            _check_end(stream, rows[-1].version if rows else after, newest)
        return rows, more

    def read(self, stream: str, after: int, limit: int) -> list[Row]:
        """Rows of a stream behind `after`; none only when there are none."""
        newest = self._newest(stream)
        rows = [row for _, row in self._many(_STREAM, stream, after, limit)]
        if not rows and limit:
            _check_end(stream, after, newest)
        return rows

    def after(self, position: int, limit: int) -> list[Placed]:
        """Rows of all streams behind `position`; none only when there are none."""
        return self._many(_LOG, position, limit)

    def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        """In order of version."""
        found = [self._db.execute(_FIND, (stream, each)).get for each in dict.fromkeys(ids)]
        return sorted((Row(*row) for row in found if row), key=lambda row: row.version)

    def streams(self, prefix: str) -> dict[str, int]:
        """In order of name."""
        names, versions = self._db.execute(_STREAMS, (prefix,)).get
        return dict(zip(_words(names), _numbers(versions), strict=True))

    def position(self) -> int:
        """Of the newest row."""
        return self._db.execute("SELECT max(pos) FROM records").get or 0

    def cursor(self, name: str) -> int:
        """0 for a name that never moved."""
        return self._db.execute("SELECT position FROM cursors WHERE name = ?", (name,)).get or 0

    def snapshot(self, stream: str) -> Snapshot | None:
        """The one that is kept, if any."""
        sql = "SELECT version, shape, blob FROM snapshots WHERE stream = ?"
        row = self._db.execute(sql, (stream,)).get
        return Snapshot(*row) if row else None

    def heads(self, stream: str) -> list[Head]:
        """In the order in which they were signed."""
        return [Head(*row) for row in self._db.execute(_HEADS, (stream,))]

    def signed(self, stream: str) -> int:
        """By a head or by a cut."""
        return int(self._db.execute(_SIGNED, (stream,)).get)

    def covered(self) -> Covered:
        """Both from one state of the file."""
        with self._db:
            row = self._db.execute(_LARGEST).get
            records = self._db.execute(_COVERED).get
        return Covered(records, Head(*row) if row else None)

    def cut(self, stream: str) -> Cut | None:
        """Where the stream begins now, if its beginning was removed."""
        row = self._db.execute(f"{CUT} WHERE stream = ?", (stream,)).get
        return Cut(*row) if row else None

    def changes(self) -> int:
        """Differs from the last answer when another connection committed in between."""
        return int(self._db.pragma("data_version"))

    def integrity(self) -> list[str]:
        """What is wrong with the file, all of it read; empty when nothing is."""
        found = [str(line) for (line,) in self._db.execute("PRAGMA integrity_check")]
        if found == ["ok"]:
            return list(missing_parts(self._db))
        said = (line for text in found for line in text.splitlines())
        return [f"the file is damaged ({line})" for line in said if not line.startswith("***")]

    def close(self) -> None:
        """Twice is once."""
        self._db.close()

    def _newest(self, stream: str) -> int:
        """Sought from the other end of the index than the rows are; asked before them."""
        return self._db.execute(_NEWEST, (stream,)).get or 0

    def _many(self, sql: str, *values: str | int) -> list[Placed]:
        whole = self._db.limit(apsw.SQLITE_LIMIT_LENGTH, MANY_BYTES)
        try:
            columns = self._db.execute(f"{_JOINED} FROM ({sql})", values).get
        except apsw.TooBigError:
            columns = None
        finally:
            self._db.limit(apsw.SQLITE_LIMIT_LENGTH, whole)
        placed = _placed(*columns) if columns else None
        return self._each(sql, values, MANY_BYTES) if placed is None else placed

    def _each(self, sql: str, values: tuple[str | int, ...], most: int) -> list[Placed]:
        placed = list[Placed]()
        with closing(self._db.execute(sql, values)) as found:
            for position, *row in found:
                placed.append((position, Row(*row)))
                most -= len(placed[-1][1].body)
                if most < 0:
                    break
        return placed


def _placed(
    positions: str,
    names: str,
    versions: str,
    ids: str,
    hashes: str,
    lengths: str,
    bodies: bytes | None,
) -> list[Placed] | None:
    """None when the bodies did not come out as they went in.

    SQLite promises to join text; that it joins any bytes is what it does, and what we check.
    """
    joined, sizes = bodies or b"", _numbers(lengths)
    if len(joined) != sum(sizes):
        return None
    words = (_words(names), _numbers(versions), _words(ids))
    rows = zip(*words, _cut(joined, sizes), map(bytes.fromhex, _words(hashes)), strict=True)
    return [(at, Row(*row)) for at, row in zip(_numbers(positions), rows, strict=True)]


def _cut(joined: bytes, sizes: Iterable[int]) -> Iterator[bytes]:
    start = 0
    for size in sizes:
        yield joined[start : start + size]
        start += size


def _check_end(stream: str, last: int, newest: int) -> None:
    """A damaged index may lead to no more rows although there are."""
    if last < newest:
        raise DamagedError(f"Record {last + 1} of {stream} cannot be found; {DO}")


def _size(rows: Iterable[Row]) -> int:
    return sum(len(row.body) for row in rows)
