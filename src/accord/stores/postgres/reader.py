"""Queries on a pool of connections; they never wait for the writer."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from accord.core.kernel.integrity.hash_chain import SignatureCoverage, SignedHead
from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.engine.ports import DamagedError, Row, Snapshot
from accord.engine.streams.verified_reads import REPAIR_HINT
from accord.stores.append import PositionedRow

READ_ROWS = 1000
READ_BYTES = 4 << 20
# How long one query may take before it counts as a lost connection.
QUERY_TIMEOUT_S = 30.0

# Rows up to the first that exceeds the bytes, at least one.
_WITHIN_BYTES = """
    SELECT pos, name, version, id, body, hash FROM (
        SELECT *, sum(octet_length(body)) OVER (ORDER BY pos) - octet_length(body) AS before
        FROM ({rows}) AS rows
    ) AS sized WHERE before <= {limit} ORDER BY pos
"""
_STREAM_SQL = _WITHIN_BYTES.format(
    rows="""
        SELECT r.pos, s.name, r.version, r.id, r.body, r.hash
        FROM accord.streams AS s JOIN accord.records AS r ON r.stream = s.key
        WHERE s.name = $1 AND r.version > $2 ORDER BY r.version LIMIT $3
    """,
    limit="$4",
)
_LOG_SQL = _WITHIN_BYTES.format(
    rows="""
        SELECT r.pos, s.name, r.version, r.id, r.body, r.hash
        FROM accord.records AS r JOIN accord.streams AS s ON s.key = r.stream
        WHERE r.pos > $1 ORDER BY r.pos LIMIT $2
    """,
    limit="$3",
)
_FIND_SQL = """
    SELECT r.pos, s.name, r.version, r.id, r.body, r.hash
    FROM accord.streams AS s JOIN accord.records AS r ON r.stream = s.key
    WHERE s.name = $1 AND r.id = ANY ($2::text[]) ORDER BY r.version
"""
_NEWEST_SQL = "SELECT version FROM accord.streams WHERE name = $1"
_STREAMS_SQL = "SELECT name, version FROM accord.streams WHERE name ^@ $1 ORDER BY name"
_HEAD = "SELECT stream, version, hash, at, key, signature, total FROM accord.heads"
_SIGNED_SQL = """
    SELECT greatest(
        (SELECT max(version) FROM accord.heads WHERE stream = $1),
        (SELECT version FROM accord.cuts WHERE stream = $1),
        0
    )
"""
# A cut is signed as well, and covers more than the heads that were removed with its rows.
_COVERED_SQL = """
    SELECT coalesce(sum(greatest(head, cut)), 0)::bigint FROM (
        SELECT coalesce(h.version, 0) AS head, coalesce(c.version, 0) AS cut
        FROM (SELECT stream, max(version) AS version FROM accord.heads GROUP BY stream) AS h
        FULL JOIN accord.cuts AS c USING (stream)
    ) AS covered
"""
_CUT_SQL = """
    SELECT stream, version, hash, at, by, reason, state, key, signature FROM accord.cuts
    WHERE stream = $1
"""
_SIZES_SQL = """
    SELECT relname, pg_total_relation_size(oid) FROM pg_class
    WHERE relnamespace = to_regnamespace('accord') AND relkind = 'r'
"""


class Reader:
    """Reads on the connections of a pool."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self.pool = pool

    async def read(self, stream: str, after: int, limit: int) -> list[Row]:
        """Rows of a stream behind `after`; empty only if there are none."""
        newest = await self._value(_NEWEST_SQL, stream) or 0
        found = await self._rows(_STREAM_SQL, stream, after, limit, READ_BYTES)
        rows = [row for _, row in found]
        if not rows and limit and after < newest:
            raise DamagedError(f"Record {after + 1} of {stream} cannot be found; {REPAIR_HINT}")
        return rows

    async def read_after(self, position: int, limit: int) -> list[PositionedRow]:
        """Rows of all streams behind `position`; empty only if there are none."""
        return await self._rows(_LOG_SQL, position, limit, READ_BYTES)

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        """Rows with these ids, in order of version."""
        return [row for _, row in await self._rows(_FIND_SQL, stream, list(ids))]

    async def streams(self, prefix: str) -> dict[str, int]:
        """Newest versions by stream, in order of name."""
        found = await self._fetch(_STREAMS_SQL, prefix)
        return {row["name"]: row["version"] for row in found}

    async def position(self) -> int:
        """Position of the newest row."""
        return int(await self._value("SELECT position FROM accord.head"))

    async def cursor(self, name: str) -> int:
        """0 for an unknown name."""
        sql = "SELECT position FROM accord.cursors WHERE name = $1"
        return int(await self._value(sql, name) or 0)

    async def cursors(self) -> dict[str, int]:
        """All of them, by name."""
        found = await self._fetch("SELECT name, position FROM accord.cursors ORDER BY name")
        return {row["name"]: row["position"] for row in found}

    async def snapshot(self, stream: str) -> Snapshot | None:
        sql = "SELECT version, shape, blob FROM accord.snapshots WHERE stream = $1"
        found = await self._fetch(sql, stream)
        return Snapshot(*found[0]) if found else None

    async def heads(self, stream: str) -> list[SignedHead]:
        """In the order in which they were signed."""
        found = await self._fetch(f"{_HEAD} WHERE stream = $1 ORDER BY place", stream)
        return [SignedHead(*row) for row in found]

    async def signed_version(self, stream: str) -> int:
        """The newest version that a head or a cut covers."""
        return int(await self._value(_SIGNED_SQL, stream))

    async def signature_coverage(self) -> SignatureCoverage:
        """Both numbers from one state of the tables."""
        async with (
            self.pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            largest = f"{_HEAD} WHERE total <> 0 ORDER BY total DESC LIMIT 1"
            row = await connection.fetchrow(largest, timeout=QUERY_TIMEOUT_S)
            records = await connection.fetchval(_COVERED_SQL, timeout=QUERY_TIMEOUT_S)
        return SignatureCoverage(records, SignedHead(*row) if row else None)

    async def cut(self, stream: str) -> RetentionCut | None:
        """The retention cut of the stream, if its beginning was removed."""
        found = await self._fetch(_CUT_SQL, stream)
        return RetentionCut(*found[0]) if found else None

    async def sizes(self) -> dict[str, int]:
        """Bytes of each table with its indexes."""
        return dict(sorted(tuple(row) for row in await self._fetch(_SIZES_SQL)))

    async def _rows(self, sql: str, *values: Any) -> list[PositionedRow]:
        return [(row[0], Row(*row[1:])) for row in map(tuple, await self._fetch(sql, *values))]

    async def _fetch(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        return list(await self.pool.fetch(sql, *values, timeout=QUERY_TIMEOUT_S))

    async def _value(self, sql: str, *values: Any) -> Any:
        return await self.pool.fetchval(sql, *values, timeout=QUERY_TIMEOUT_S)
