"""The tables, and how a file of an earlier version becomes one of today."""

from collections.abc import Sequence
from contextlib import closing
from functools import cache

import apsw

from accord.stores.sqlite.transaction import transaction

APPLICATION_ID = 0x41434F52  # "ACOR", so that `file` and we know the file as ours

Migration = tuple[int, str]
_PARTS = "SELECT name, type, sql FROM sqlite_schema"

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


def newest(migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """The version this code writes."""
    return max(version for version, _ in migrations)


def version_of(connection: apsw.Connection) -> int:
    """The version of the file; 0 when nothing was made in it yet."""
    return int(connection.pragma("user_version"))


def altered(
    connection: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS
) -> str | None:
    """What in the file is not as we make it, or would do things by itself; None when nothing is."""
    ours = _parts(tuple(migrations), version_of(connection))
    names = _parts(tuple(migrations), newest(migrations)).keys()
    found = {name: (kind, sql) for name, kind, sql in connection.execute(_PARTS)}
    for name, (kind, sql) in found.items():
        if kind in {"trigger", "view"} or (name in names and ours.get(name) != (kind, sql)):
            return f"the {kind} {name} in it is not ours"
    lacks = next((name for name in ours if name not in found), None)
    return lacks and f"{lacks} is missing in it"


@cache
def _parts(migrations: tuple[Migration, ...], version: int) -> dict[str, tuple[str, str | None]]:
    """What a file of that version is made of."""
    steps = [step for step in migrations if step[0] <= version]
    with closing(apsw.Connection(":memory:")) as blank:
        migrate(blank, steps)
        return {name: (kind, sql) for name, kind, sql in blank.execute(_PARTS)}


def migrate(connection: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> bool:
    """Bring the file to the newest version, one transaction per step; whether there was one."""
    before = version_of(connection)
    for version, statements in sorted(migrations):
        if version_of(connection) < version:
            _step(connection, version, statements)
    return before < version_of(connection)


def _step(connection: apsw.Connection, version: int, statements: str) -> None:
    with transaction(connection):
        # Another process may have made the step while this one waited for the lock.
        if version_of(connection) < version:
            connection.execute(statements)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", version)
