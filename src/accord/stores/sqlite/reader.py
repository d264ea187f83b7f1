"""Reads the file on its own connections, which never wait for the writer.

Fetching a row takes the interpreter's lock once; with a busy event loop, a thread that fetched a
thousand rows was seen to wait for seconds. So small queries run on the event loop itself, in
microseconds, and large ones return one row that contains all others: 3.4 instead of 2.4 µs of CPU
per row, and one wait instead of a thousand.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import apsw
import msgspec

from accord.core.kernel.integrity.hash_chain import SignatureCoverage, SignedHead
from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.engine.ports import DamagedError, Row, Snapshot
from accord.engine.streams.verified_reads import REPAIR_HINT
from accord.stores.sqlite.database_file import connect
from accord.stores.sqlite.errors import describe_damage
from accord.stores.sqlite.integrity import integrity_problems
from accord.stores.sqlite.pruning import CUT_SQL

PositionedRow = tuple[int, Row]

SMALL_READ_ROWS = 64
SMALL_READ_BYTES = 256 << 10
LARGE_READ_ROWS = 1000
LARGE_READ_BYTES = 4 << 20

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
# A cut is signed as well, and covers more than the heads that were removed with its rows.
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
_decode_ints = msgspec.json.Decoder(list[int]).decode
_decode_strings = msgspec.json.Decoder(list[str]).decode


class Reader:
    """Synchronous; used by one thread at a time."""

    def __init__(self, path: str, *, wait: bool = True) -> None:
        self._db = connect(path)
        self._db.pragma("query_only", 1)
        if not wait:
            self._db.set_busy_timeout(0)

    def read_small(self, stream: str, after: int, limit: int) -> tuple[list[Row], bool]:
        """The first rows of a stream behind `after`, and whether there may be more."""
        newest = self._newest(stream)
        rows = [
            row for _, row in self._read_rows(_STREAM, (stream, after, limit), SMALL_READ_BYTES)
        ]
        more = len(rows) == limit or _total_bytes(rows) > SMALL_READ_BYTES
        if not more:
            _check_end(stream, rows[-1].version if rows else after, newest)
        return rows, more

    def read(self, stream: str, after: int, limit: int) -> list[Row]:
        """Rows of a stream behind `after`; empty only if there are none."""
        newest = self._newest(stream)
        rows = [row for _, row in self._read_joined(_STREAM, stream, after, limit)]
        if not rows and limit:
            _check_end(stream, after, newest)
        return rows

    def read_after(self, position: int, limit: int) -> list[PositionedRow]:
        """Rows of all streams behind `position`; empty only if there are none."""
        return self._read_joined(_LOG, position, limit)

    def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        """Rows with these ids, in order of version."""
        found = [self._db.execute(_FIND, (stream, each)).get for each in dict.fromkeys(ids)]
        return sorted((Row(*row) for row in found if row), key=lambda row: row.version)

    def streams(self, prefix: str) -> dict[str, int]:
        """Newest versions by stream, in order of name."""
        names, versions = self._db.execute(_STREAMS, (prefix,)).get
        return dict(zip(_decode_strings(names), _decode_ints(versions), strict=True))

    def position(self) -> int:
        """Position of the newest row."""
        return self._db.execute("SELECT max(pos) FROM records").get or 0

    def cursor(self, name: str) -> int:
        """0 for an unknown name."""
        return self._db.execute("SELECT position FROM cursors WHERE name = ?", (name,)).get or 0

    def cursors(self) -> dict[str, int]:
        """All of them, by name."""
        return dict(self._db.execute("SELECT name, position FROM cursors ORDER BY name"))

    def snapshot(self, stream: str) -> Snapshot | None:
        sql = "SELECT version, shape, blob FROM snapshots WHERE stream = ?"
        row = self._db.execute(sql, (stream,)).get
        return Snapshot(*row) if row else None

    def heads(self, stream: str) -> list[SignedHead]:
        """In the order in which they were signed."""
        return [SignedHead(*row) for row in self._db.execute(_HEADS, (stream,))]

    def signed_version(self, stream: str) -> int:
        """The newest version that a head or a cut covers."""
        return int(self._db.execute(_SIGNED, (stream,)).get)

    def signature_coverage(self) -> SignatureCoverage:
        """Both numbers from one state of the file."""
        with self._db:
            row = self._db.execute(_LARGEST).get
            records = self._db.execute(_COVERED).get
        return SignatureCoverage(records, SignedHead(*row) if row else None)

    def cut(self, stream: str) -> RetentionCut | None:
        """The retention cut of the stream, if its beginning was removed."""
        row = self._db.execute(f"{CUT_SQL} WHERE stream = ?", (stream,)).get
        return RetentionCut(*row) if row else None

    def data_version(self) -> int:
        """Changes when another connection commits."""
        return int(self._db.pragma("data_version"))

    def integrity(self) -> list[str]:
        """Verify the whole file; empty if there is no problem."""
        found = [str(line) for (line,) in self._db.execute("PRAGMA integrity_check")]
        if found == ["ok"]:
            return list(integrity_problems(self._db))
        lines = (line for text in found for line in text.splitlines())
        return list(dict.fromkeys(describe_damage(line) for line in lines if line[:3] != "***"))

    def close(self) -> None:
        """Close; may be called twice."""
        self._db.close()

    def _newest(self, stream: str) -> int:
        """Read from the other end of the index than the rows, and before them."""
        return self._db.execute(_NEWEST, (stream,)).get or 0

    def _read_joined(self, sql: str, *values: str | int) -> list[PositionedRow]:
        whole = self._db.limit(apsw.SQLITE_LIMIT_LENGTH, LARGE_READ_BYTES)
        try:
            columns = self._db.execute(f"{_JOINED} FROM ({sql})", values).get
        except apsw.TooBigError:
            columns = None
        finally:
            self._db.limit(apsw.SQLITE_LIMIT_LENGTH, whole)
        placed = _positioned_rows(*columns) if columns else None
        return self._read_rows(sql, values, LARGE_READ_BYTES) if placed is None else placed

    def _read_rows(self, sql: str, values: tuple[str | int, ...], most: int) -> list[PositionedRow]:
        placed = list[PositionedRow]()
        with closing(self._db.execute(sql, values)) as found:
            for position, *row in found:
                placed.append((position, Row(*row)))
                most -= len(placed[-1][1].body)
                if most < 0:
                    break
        return placed


def _positioned_rows(
    positions: str,
    names: str,
    versions: str,
    ids: str,
    hashes: str,
    lengths: str,
    bodies: bytes | None,
) -> list[PositionedRow] | None:
    """Rows from one joined value; None if the bodies were not joined as expected.

    SQLite documents joining text only. It joins any bytes, and we check that it did.
    """
    joined, sizes = bodies or b"", _decode_ints(lengths)
    if len(joined) != sum(sizes):
        return None
    words = (_decode_strings(names), _decode_ints(versions), _decode_strings(ids))
    rows = zip(
        *words,
        _split_bodies(joined, sizes),
        map(bytes.fromhex, _decode_strings(hashes)),
        strict=True,
    )
    return [(at, Row(*row)) for at, row in zip(_decode_ints(positions), rows, strict=True)]


def _split_bodies(joined: bytes, sizes: Iterable[int]) -> Iterator[bytes]:
    start = 0
    for size in sizes:
        yield joined[start : start + size]
        start += size


def _check_end(stream: str, last: int, newest: int) -> None:
    """A damaged index may end too early; compare with the newest version."""
    if last < newest:
        raise DamagedError(f"Record {last + 1} of {stream} cannot be found; {REPAIR_HINT}")


def _total_bytes(rows: Iterable[Row]) -> int:
    return sum(len(row.body) for row in rows)
