"""Databases that cannot be used are refused with one sentence, and never with a password."""

import asyncio
from collections.abc import Callable

import pytest

from accord.engine.ports import ForeignStoreError, NewerStoreError, StoreError, UnknownStoreError
from accord.stores import open_log
from accord.stores.postgres import schema
from tests.helpers.servers.postgres_server import SHARED_POSTGRES, free_port

PASSWORD = "correct-horse"


@pytest.fixture
def database() -> str:
    return SHARED_POSTGRES.server().new_database()


def run(database: str, sql: str) -> None:
    SHARED_POSTGRES.server().run(sql, database.rpartition("/")[2])


def as_user(database: str, user: str) -> str:
    return database.replace("tester@", f"{user}:{PASSWORD}@")


def unreachable(_database: str) -> str:
    return f"postgresql://ann:{PASSWORD}@127.0.0.1:{free_port()}/accord"


def missing(database: str) -> str:
    return as_user(database, "tester") + "_missing"


def without_rights(database: str) -> str:
    run(database, "CREATE ROLE guest LOGIN")
    return as_user(database, "guest")


def read_only(database: str) -> str:
    name = database.rpartition("/")[2]
    run(database, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    return as_user(database, "tester")


def unknown_user(database: str) -> str:
    return as_user(database, "nobody_here")


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (unreachable, "cannot be reached; check that PostgreSQL runs there"),
        (missing, "does not exist; create it with `createdb`"),
        (without_rights, "does not let this user work in the schema accord"),
        (read_only, "is read-only; name its primary server"),
        (unknown_user, "refused this user"),
    ],
)
async def test_unusable_database_is_refused_with_what_to_do(
    database: str, broken: Callable[[str], str], sentence: str
) -> None:
    url = broken(database)

    with pytest.raises(StoreError, match=sentence) as told:
        await open_log(url)

    assert PASSWORD not in f"{told.value}{told.value.public_message}{told.value.location}"


@pytest.mark.parametrize("url", ["postgresql://[", "postgresql://h:port/db"])
async def test_url_that_names_nothing_is_refused(url: str) -> None:
    with pytest.raises((UnknownStoreError, StoreError)):
        await open_log(url)


async def test_schema_of_another_program_is_not_changed(database: str) -> None:
    run(database, "CREATE SCHEMA accord CREATE TABLE invoices (id int)")

    with pytest.raises(ForeignStoreError, match="other tables than Accord's"):
        await open_log(database)

    server, name = SHARED_POSTGRES.server(), database.rpartition("/")[2]
    tables = server.run("SELECT tablename FROM pg_tables WHERE schemaname = 'accord'", name)
    assert ["invoices"] == [row["tablename"] for row in tables]


async def test_tables_of_a_later_version_are_refused(database: str) -> None:
    await (await open_log(database)).close()
    run(database, "UPDATE accord.schema_version SET version = 99")

    with pytest.raises(NewerStoreError, match="later Accord"):
        await open_log(database)


async def test_two_servers_create_the_tables_at_once(database: str) -> None:
    logs = await asyncio.gather(*(open_log(database) for _ in range(4)))

    assert [0] * 4 == [await log.position() for log in logs]
    await asyncio.gather(*(log.close() for log in logs))


async def test_owner_of_the_database_needs_no_other_rights(database: str) -> None:
    name = database.rpartition("/")[2]
    run(database, f"CREATE ROLE {name}_owner LOGIN")
    run(database, f"ALTER DATABASE {name} OWNER TO {name}_owner")

    log = await open_log(database.replace("tester@", f"{name}_owner@"))

    assert await log.position() == 0
    await log.close()


def test_constants_are_those_in_the_sql() -> None:
    statements = schema.MIGRATIONS[0][1]

    assert f"ERRCODE = '{schema.FENCED}'" in statements
    assert f"pg_notify('{schema.CHANNEL}'" in statements
