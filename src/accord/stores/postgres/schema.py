"""Tables, functions and migrations.

Everything is in the schema `accord`. `accord.head` has one row, the position of the newest record;
an append locks it until its commit, so positions are given in commit order and leave no gap.
docs/design/postgresql-log.md has the reasons and the cost.
"""

from collections.abc import Sequence

import asyncpg

from accord.engine.ports import StoreError
from accord.stores.postgres.errors import DatabaseName, foreign_error, newer_error

# Older versions are no longer maintained by the PostgreSQL project.
MIN_SERVER_VERSION = 13
# The channel on which commits are announced, as named below.
CHANNEL = "accord_log"
# The channel of signals between servers.
SIGNAL_CHANNEL = "accord_signal"
# Lets one server at a time create or migrate the tables ("ACOR", as in the SQLite file).
MIGRATION_LOCK = 0x41434F52
# Raised below for a writer that was replaced.
FENCED = "AC001"

Migration = tuple[int, str]

MIGRATIONS: Sequence[Migration] = (
    (
        1,
        """
        CREATE TABLE accord.head (
            only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
            position bigint NOT NULL
        ) WITH (fillfactor = 10);
        INSERT INTO accord.head (position) VALUES (0);
        CREATE TABLE accord.streams (
            key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name text COLLATE "C" NOT NULL UNIQUE,
            version bigint NOT NULL
        ) WITH (fillfactor = 70);
        CREATE TABLE accord.records (
            pos bigint PRIMARY KEY,
            stream bigint NOT NULL,
            version bigint NOT NULL,
            id text COLLATE "C" NOT NULL,
            body bytea NOT NULL,
            hash bytea NOT NULL
        );
        CREATE UNIQUE INDEX records_version ON accord.records (stream, version);
        CREATE UNIQUE INDEX records_id ON accord.records (id, stream);
        CREATE TABLE accord.cursors (name text PRIMARY KEY, position bigint NOT NULL);
        CREATE TABLE accord.snapshots (
            stream text COLLATE "C" PRIMARY KEY,
            version bigint NOT NULL,
            shape text NOT NULL,
            blob bytea NOT NULL
        );
        CREATE TABLE accord.heads (
            place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            stream text COLLATE "C" NOT NULL,
            version bigint NOT NULL,
            hash bytea NOT NULL,
            at bigint NOT NULL,
            key text NOT NULL,
            signature bytea NOT NULL,
            total bigint NOT NULL,
            UNIQUE (stream, version, hash, at, key, signature)
        );
        CREATE INDEX heads_total ON accord.heads (total);
        CREATE TABLE accord.cuts (
            stream text COLLATE "C" PRIMARY KEY,
            version bigint NOT NULL,
            hash bytea NOT NULL,
            at bigint NOT NULL,
            by text NOT NULL,
            reason text NOT NULL,
            state bytea NOT NULL,
            key text NOT NULL,
            signature bytea NOT NULL
        );
        -- A writer that lost its connection increases its epoch, so that a batch it had sent
        -- earlier can no longer be stored after it has looked.
        CREATE TABLE accord.writers (
            id bigint PRIMARY KEY,
            epoch bigint NOT NULL,
            since timestamptz NOT NULL DEFAULT now()
        );

        -- Appends jobs (a stream, the version it is expected at) with their rows; a job that does
        -- not fit is skipped and does not affect the others. Returns, for each job, the version of
        -- its stream if that was not the expected one, or an id that the stream already has.
        CREATE FUNCTION accord.append_batch(
            writer bigint, writer_epoch bigint,
            job_streams text[], job_expected bigint[], job_counts bigint[],
            row_jobs integer[], row_places bigint[], row_ids text[],
            row_bodies bytea[], row_hashes bytea[],
            OUT last bigint, OUT conflicts bigint[], OUT duplicates text[]
        ) LANGUAGE plpgsql AS $$
        DECLARE
            stream_key bigint;
            stream_version bigint;
            repeated_jobs integer[];
            repeated_ids text[];
            first bigint;
            jobs integer[] := '{}';
            keys bigint[] := '{}';
            starts bigint[] := '{}';
        BEGIN
            SELECT position INTO STRICT last FROM accord.head FOR UPDATE;
            first := last;
            conflicts := array_fill(NULL::bigint, ARRAY[cardinality(job_streams)]);
            duplicates := array_fill(NULL::text, ARRAY[cardinality(job_streams)]);
            PERFORM FROM accord.writers AS w WHERE w.id = writer AND w.epoch = writer_epoch;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'this writer was replaced' USING ERRCODE = 'AC001';
            END IF;
            SELECT array_agg(job), array_agg(id) INTO repeated_jobs, repeated_ids FROM (
                SELECT r.job, min(r.id) AS id
                FROM unnest(row_jobs, row_ids) AS r (job, id)
                JOIN unnest(job_streams) WITH ORDINALITY AS j (name, job) ON j.job = r.job
                JOIN accord.streams AS s ON s.name = j.name
                JOIN accord.records AS stored ON stored.stream = s.key AND stored.id = r.id
                GROUP BY r.job
            ) AS repeated;
            FOR job IN 1 .. cardinality(job_streams) LOOP
                SELECT s.key, s.version INTO stream_key, stream_version
                    FROM accord.streams AS s WHERE s.name = job_streams[job];
                IF NOT FOUND THEN
                    stream_key := NULL;
                    stream_version := 0;
                END IF;
                IF stream_version <> job_expected[job] THEN
                    conflicts[job] := stream_version;
                ELSIF job = ANY (repeated_jobs) THEN
                    duplicates[job] := repeated_ids[array_position(repeated_jobs, job)];
                ELSIF job_counts[job] > 0 THEN
                    IF stream_key IS NULL THEN
                        INSERT INTO accord.streams (name, version)
                            VALUES (job_streams[job], job_counts[job])
                            RETURNING key INTO stream_key;
                    ELSE
                        UPDATE accord.streams SET version = version + job_counts[job]
                            WHERE key = stream_key;
                    END IF;
                    jobs := jobs || job;
                    keys := keys || stream_key;
                    starts := starts || last;
                    last := last + job_counts[job];
                END IF;
            END LOOP;
            IF last > first THEN
                INSERT INTO accord.records (pos, stream, version, id, body, hash)
                    SELECT a.start + r.place, a.key, job_expected[r.job] + r.place,
                        r.id, r.body, r.hash
                    FROM unnest(row_jobs, row_places, row_ids, row_bodies, row_hashes)
                        AS r (job, place, id, body, hash)
                    JOIN unnest(jobs, keys, starts) AS a (job, key, start) ON a.job = r.job;
                UPDATE accord.head SET position = last;
                PERFORM pg_notify('accord_log', writer || ' ' || last);
            END IF;
        END
        $$;
        """,
    ),
    (
        2,
        """
        -- Servers that use the log. One whose beat stands still for a lease is gone; its members
        -- are then marked as disconnected by the others.
        CREATE TABLE accord.servers (
            id bigint PRIMARY KEY,
            beat bigint NOT NULL DEFAULT 0,
            seen timestamptz NOT NULL DEFAULT now()
        ) WITH (fillfactor = 10);
        CREATE TABLE accord.connected (
            server bigint NOT NULL REFERENCES accord.servers ON DELETE CASCADE,
            stream text COLLATE "C" NOT NULL,
            member text COLLATE "C" NOT NULL,
            PRIMARY KEY (server, stream, member)
        );
        -- Signals that are too long for a notification; kept for a minute.
        CREATE UNLOGGED TABLE accord.signals (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            content bytea NOT NULL,
            sent timestamptz NOT NULL DEFAULT now()
        );
        """,
    ),
)

_VERSION_SQL = "SELECT version FROM accord.schema_version"
_PREPARE_SQL = """
    CREATE SCHEMA IF NOT EXISTS accord;
    CREATE TABLE IF NOT EXISTS accord.schema_version (version integer NOT NULL);
"""
# Not by `to_regclass`: it may answer from a cache that does not know yet what was just committed.
_TABLES_SQL = """
    SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'accord'
"""
_HAS_VERSION_SQL = f"{_TABLES_SQL} AND c.relname = 'schema_version'"


def newest_version(migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """The version this code writes."""
    return max(version for version, _ in migrations)


async def version_of(connection: asyncpg.Connection) -> int:
    """Version of the tables; 0 if there are none yet."""
    if not await connection.fetchval(_HAS_VERSION_SQL):
        return 0
    return await connection.fetchval(_VERSION_SQL) or 0


async def prepare(
    connection: asyncpg.Connection,
    name: DatabaseName,
    migrations: Sequence[Migration] = MIGRATIONS,
) -> None:
    """Create the tables, or migrate them to the newest version; refuses what is not ours."""
    server = connection.get_server_version()
    if server.major < MIN_SERVER_VERSION:
        detail = f"{name} is PostgreSQL {server.major}; Accord needs {MIN_SERVER_VERSION} or newer"
        raise StoreError(detail, str(name))
    version, newest = await version_of(connection), newest_version(migrations)
    if version > newest:
        raise newer_error(name, version, newest)
    if version < newest:
        await _migrate(connection, name, migrations)


async def _migrate(
    connection: asyncpg.Connection, name: DatabaseName, migrations: Sequence[Migration]
) -> None:
    """One transaction for all steps: a killed server leaves the old version."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
        # Another server may have migrated while this one waited for the lock.
        version = await version_of(connection)
        if version == 0 and await connection.fetchval(_TABLES_SQL):
            raise foreign_error(name)
        await connection.execute(_PREPARE_SQL)
        for step, statements in sorted(migrations):
            if version < step:
                await connection.execute(statements)
        await connection.execute("DELETE FROM accord.schema_version")
        newest = newest_version(migrations)
        await connection.execute("INSERT INTO accord.schema_version VALUES ($1)", newest)
