"""Changes a log's database file behind the program's back, and verifies it."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from accord.core.kernel.integrity.hash_chain import genesis_hash, link_hash
from accord.data_dir import KEYS_DIR_NAME, store_url_of
from accord.operations import verify
from accord.operations.local_log import open_existing_log
from accord.operations.verify import StreamReport


class VerifyReport(NamedTuple):
    """What `accord verify` reports."""

    damage: list[str]
    findings: dict[str, StreamReport]

    @property
    def holds(self) -> bool:
        return not self.damage and all(report.holds for report in self.findings.values())


async def verify_home(home: Path) -> VerifyReport:
    """Verify a data directory."""
    async with open_existing_log(store_url_of(home)) as events:
        keys = await verify.load_keys(events, home / KEYS_DIR_NAME)
        signatures = await verify.check_signatures(events, keys)
        damage = await verify.check_store(events)
        damage += [signatures.problem] if signatures.problem else []
        findings = [report async for report in verify.check_all_streams(events, keys)]
    return VerifyReport(damage, {report.stream: report for report in findings})


def verify_home_sync(home: Path) -> VerifyReport:
    """The same, outside an event loop."""
    return asyncio.run(verify_home(home))


def execute_sql(database: Path, sql: str, *values: Any) -> int:
    """Execute SQL directly on the database; returns the number of rows changed."""
    with closing(sqlite3.connect(database)) as db, db:
        return db.execute(sql, values).rowcount


def query_database(database: Path, sql: str, *values: Any) -> list[Any]:
    """Rows read directly from the database."""
    with closing(sqlite3.connect(database)) as db:
        return db.execute(sql, values).fetchall()


def flip_byte(value: Any, at: int, mask: int) -> Any:
    """The value with one byte changed, or a number changed by `mask`."""
    match value:
        case bytes():
            index = at % len(value)
            return value[:index] + bytes([value[index] ^ mask]) + value[index + 1 :]
        case str():
            index = at % len(value)
            other = chr(33 + (ord(value[index]) - 33 + mask) % 90)
            return value[:index] + other + value[index + 1 :]
        case int():
            return value + mask if at % 2 else value - mask
        case _:
            raise TypeError(value)


def stream_key(database: Path, stream: str) -> int:
    """The internal number of a stream in the database."""
    ((key,),) = query_database(database, "SELECT key FROM streams WHERE name = ?", stream)
    assert isinstance(key, int)
    return key


def forge_stream(database: Path, stream: str) -> None:
    """Rewrite a stream's records with consistent hashes, as a forger would."""
    key, before = stream_key(database, stream), genesis_hash(stream)
    sql = "SELECT pos, body FROM records WHERE stream = ? ORDER BY version"
    for pos, body in query_database(database, sql, key):
        forged = body.replace(b"Number", b"Member")
        before = link_hash(before, forged)
        execute_sql(
            database, "UPDATE records SET body = ?, hash = ? WHERE pos = ?", forged, before, pos
        )
