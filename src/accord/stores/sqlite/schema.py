"""Tables and migrations."""

from collections.abc import Sequence
from contextlib import closing
from functools import cache

import apsw

from accord.stores.sqlite.writer import write_transaction

APPLICATION_ID = 0x41434F52  # "ACOR", which `file` and we recognise

Migration = tuple[int, str]
_SCHEMA_SQL = "SELECT name, type, sql FROM sqlite_schema"

MIGRATIONS: Sequence[Migration] = (
    (
        1,
        """
        CREATE TABLE streams (
            key INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE
        );
        CREATE TABLE records (
            pos INTEGER PRIMARY KEY,
            stream INTEGER NOT NULL,
            version INTEGER NOT NULL,
            id TEXT NOT NULL,
            body BLOB NOT NULL,
            hash BLOB NOT NULL
        );
        CREATE UNIQUE INDEX records_version ON records (stream, version);
        -- The id first: ids grow with time, so rows of all streams meet on one page of the index.
        CREATE UNIQUE INDEX records_id ON records (id, stream);
        CREATE TABLE cursors (
            name TEXT PRIMARY KEY,
            position INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE snapshots (
            stream TEXT PRIMARY KEY,
            version INTEGER NOT NULL,
            shape TEXT NOT NULL,
            blob BLOB NOT NULL
        );
        CREATE TABLE heads (
            place INTEGER PRIMARY KEY,
            stream TEXT NOT NULL,
            version INTEGER NOT NULL,
            hash BLOB NOT NULL,
            at INTEGER NOT NULL,
            key TEXT NOT NULL,
            signature BLOB NOT NULL,
            UNIQUE (stream, version, hash, at, key, signature)
        );
        """,
    ),
    (
        2,
        """
        CREATE TABLE cuts (
            stream TEXT PRIMARY KEY,
            version INTEGER NOT NULL,
            hash BLOB NOT NULL,
            at INTEGER NOT NULL,
            by TEXT NOT NULL,
            reason TEXT NOT NULL,
            state BLOB NOT NULL,
            key TEXT NOT NULL,
            signature BLOB NOT NULL
        );
        """,
    ),
    (
        3,
        """
        ALTER TABLE heads ADD COLUMN total INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX heads_total ON heads (total);
        """,
    ),
)


def newest_version(migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """The version this code writes."""
    return max(version for version, _ in migrations)


def version_of(connection: apsw.Connection) -> int:
    """Version of the file; 0 if it has no tables yet."""
    return int(connection.pragma("user_version"))


def describe_alteration(
    connection: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS
) -> str | None:
    """Describe a table that differs from ours, or a trigger or view; None if there is none."""
    ours = _expected_schema(tuple(migrations), version_of(connection))
    names = _expected_schema(tuple(migrations), newest_version(migrations)).keys()
    found = {name: (kind, sql) for name, kind, sql in connection.execute(_SCHEMA_SQL)}
    for name, (kind, sql) in found.items():
        if kind in {"trigger", "view"} or (name in names and ours.get(name) != (kind, sql)):
            return f"the {kind} {name} in it is not ours"
    missing = next((name for name in ours if name not in found), None)
    return missing and f"{missing} is missing in it"


@cache
def _expected_schema(
    migrations: tuple[Migration, ...], version: int
) -> dict[str, tuple[str, str | None]]:
    """Tables and indexes of a file of that version."""
    steps = [step for step in migrations if step[0] <= version]
    with closing(apsw.Connection(":memory:")) as blank:
        migrate(blank, steps)
        return {name: (kind, sql) for name, kind, sql in blank.execute(_SCHEMA_SQL)}


def migrate(connection: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> bool:
    """Migrate to the newest version, one transaction per step; returns whether anything changed."""
    before = version_of(connection)
    for version, statements in sorted(migrations):
        if version_of(connection) < version:
            _apply_migration(connection, version, statements)
    return before < version_of(connection)


def _apply_migration(connection: apsw.Connection, version: int, statements: str) -> None:
    with write_transaction(connection):
        # Another process may have migrated while this one waited for the lock.
        if version_of(connection) < version:
            connection.execute(statements)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", version)
