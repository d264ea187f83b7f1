"""Removes the beginning of a stream: first the signed cut is stored, then rows go in batches."""

import asyncpg

from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.engine.ports import Conflict

BATCH_ROWS = 1000

_ROW_EXISTS_SQL = """
    SELECT FROM accord.records AS r JOIN accord.streams AS s ON s.key = r.stream
    WHERE s.name = $1 AND r.version = $2 AND r.hash = $3
"""
_VERSION_SQL = "SELECT version FROM accord.streams WHERE name = $1"
_BEGIN_SQL = "INSERT INTO accord.streams (name, version) VALUES ($1, $2)"
_SAVE_CUT_SQL = """
    INSERT INTO accord.cuts AS kept
        (stream, version, hash, at, by, reason, state, key, signature)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (stream) DO UPDATE SET version = excluded.version, hash = excluded.hash,
        at = excluded.at, by = excluded.by, reason = excluded.reason, state = excluded.state,
        key = excluded.key, signature = excluded.signature WHERE excluded.version > kept.version
"""
_REMOVE_SQL = """
    DELETE FROM accord.records WHERE pos IN (
        SELECT r.pos FROM accord.records AS r JOIN accord.streams AS s ON s.key = r.stream
        JOIN accord.cuts AS c ON c.stream = s.name
        WHERE s.name = $1 AND r.version <= c.version ORDER BY r.version LIMIT $2
    )
"""
_UNFINISHED_SQL = """
    SELECT c.stream FROM accord.cuts AS c JOIN accord.streams AS s ON s.name = c.stream
    WHERE EXISTS (
        SELECT FROM accord.records AS r WHERE r.stream = s.key AND r.version <= c.version
    )
"""


async def keep_cut(connection: asyncpg.Connection, cut: RetentionCut) -> None:
    """Store the cut, and delete the snapshot and heads that refer to the removed part."""
    async with connection.transaction():
        row = (cut.stream, cut.version, cut.hash)
        if await connection.fetchrow(_ROW_EXISTS_SQL, *row) is None:
            raise Conflict(f"{cut.stream} {cut.version} does not match the retention cut")
        about = (cut.at, cut.by, cut.reason, cut.state, cut.key, cut.signature)
        await connection.execute(_SAVE_CUT_SQL, *row, *about)
        await connection.execute("DELETE FROM accord.snapshots WHERE stream = $1", cut.stream)
        old = "DELETE FROM accord.heads WHERE stream = $1 AND version < $2"
        await connection.execute(old, cut.stream, cut.version)


async def begin_behind(connection: asyncpg.Connection, cut: RetentionCut) -> None:
    """Store the cut of a stream that has no records yet."""
    async with connection.transaction():
        known = await connection.fetchval(_VERSION_SQL, cut.stream)
        if known is None:
            await connection.execute(_BEGIN_SQL, cut.stream, cut.version)
        elif known != cut.version:
            raise Conflict(f"{cut.stream} already has records")
        about = (cut.at, cut.by, cut.reason, cut.state, cut.key, cut.signature)
        await connection.execute(_SAVE_CUT_SQL, cut.stream, cut.version, cut.hash, *about)


async def remove_rows(connection: asyncpg.Connection, stream: str) -> bool:
    """Remove the next batch of rows before the cut; False if there were none."""
    status = await connection.execute(_REMOVE_SQL, stream, BATCH_ROWS)
    return str(status) != "DELETE 0"


async def unfinished_streams(connection: asyncpg.Connection) -> list[str]:
    """Streams with a stored cut and rows before it."""
    return [row["stream"] for row in await connection.fetch(_UNFINISHED_SQL)]
