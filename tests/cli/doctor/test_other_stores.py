"""`accord doctor` on PostgreSQL and NATS: what it finds, and advice that fits the store."""

from pathlib import Path

import pytest

from accord.stores import open_log
from tests.contract.rows import HERE, rows
from tests.helpers.clients.cli import run_accord
from tests.helpers.servers.nats_server import SHARED_NATS
from tests.helpers.servers.postgres_server import SHARED_POSTGRES


def store_check(home: Path, url: str, code: int) -> dict[str, str]:
    """What doctor says about the store that the settings name."""
    ran = run_accord("doctor", "--json", "--data-dir", str(home), ACCORD_STORE=url)
    assert ran.code == code, ran
    found: dict[str, str] = next(each for each in ran.json["checks"] if each["about"] == "store")
    return found


@pytest.fixture
def postgresql() -> str:
    return SHARED_POSTGRES.server().new_database()


async def test_a_log_in_postgresql_is_checked(tmp_path: Path, postgresql: str) -> None:
    log = await open_log(postgresql)
    await log.append(HERE, 0, rows(HERE, 3))
    await log.close()

    found = store_check(tmp_path, postgresql, code=0)

    assert (found["state"], "undamaged, 1 stream" in found["found"]) == ("ok", True)


async def test_a_log_in_nats_is_checked(tmp_path: Path) -> None:
    url = SHARED_NATS.server().new_stream()
    log = await open_log(f"{url}&copy={tmp_path / 'other'}" if "?" in url else url)
    await log.append(HERE, 0, rows(HERE, 3))
    await log.close()

    found = store_check(tmp_path, url, code=0)

    assert (found["state"], "undamaged, 1 stream" in found["found"]) == ("ok", True)


async def test_a_database_of_a_later_version_gets_advice_for_databases(
    tmp_path: Path, postgresql: str
) -> None:
    await (await open_log(postgresql)).close()
    later = "UPDATE accord.schema_version SET version = 99"
    SHARED_POSTGRES.server().run(later, postgresql.rpartition("/")[2])

    found = store_check(tmp_path, postgresql, code=5)

    assert found["state"] == "fail"
    assert "Use the version of Accord" in found["fix"]


def test_an_unreachable_database_is_one_sentence(tmp_path: Path) -> None:
    found = store_check(tmp_path, "postgresql://ann:secret@127.0.0.1:1/accord", code=5)

    assert found["state"] == "fail"
    assert "cannot be reached" in found["found"]
    assert "secret" not in str(found)
