"""The log in PostgreSQL while connections break and servers die."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from accord.engine.ports import StoreError
from accord.stores import open_log
from accord.stores.postgres import PostgresLog
from accord.stores.postgres import log as log_module
from accord.stores.postgres import writer as writer_module
from tests.contract.rows import HERE, THERE, first, row, rows
from tests.helpers.servers.postgres_server import SHARED_POSTGRES, PostgresServer
from tests.helpers.servers.tcp_proxy import TcpProxy, proxy_to
from tests.helpers.waiting import until

WRITERS = 8
APPENDS = 30


@pytest.fixture
def database() -> str:
    return SHARED_POSTGRES.server().new_database()


@asynccontextmanager
async def log_behind_proxy(url: str) -> AsyncIterator[tuple[PostgresLog, TcpProxy]]:
    """A log whose connections a test can cut."""
    server = SHARED_POSTGRES.server()
    async with proxy_to(server.port) as proxy:
        log = await PostgresLog.open(url.replace(f":{server.port}/", f":{proxy.port}/"))
        try:
            yield log, proxy
        finally:
            await log.close()


async def test_append_whose_answer_was_lost_is_stored_once_and_answered(database: str) -> None:
    async with log_behind_proxy(database) as (log, proxy):
        await log.append(HERE, 0, rows(HERE, 1))
        proxy.hold_answers()
        appending = asyncio.ensure_future(log.append(HERE, 1, rows(HERE, 1, after=1)))
        other = await open_log(database)
        await until(lambda: proxy.held_bytes > 0)
        assert {HERE: 2} == await other.streams()

        proxy.cut()

        await appending
        await log.append(HERE, 2, rows(HERE, 1, after=2))
        assert rows(HERE, 3) == await log.read(HERE)
        await other.close()


async def test_append_that_never_arrived_is_sent_again(database: str) -> None:
    async with log_behind_proxy(database) as (log, proxy):
        await log.append(HERE, 0, rows(HERE, 1))
        proxy.cut()

        await log.append(HERE, 1, rows(HERE, 1, after=1))

        assert rows(HERE, 2) == await log.read(HERE)


async def test_batch_of_a_replaced_writer_is_refused(database: str) -> None:
    """A batch that arrives late, after its writer looked, would otherwise be stored unanswered."""
    log = await PostgresLog.open(database)
    await log.append(HERE, 0, rows(HERE, 1))
    late = await asyncpg.connect(database)
    epoch = await late.fetchval("SELECT epoch FROM accord.writers WHERE id = $1", log._writer.id)
    await log._writer._open_connection()

    with pytest.raises(asyncpg.PostgresError, match="replaced"):
        await late.fetchrow(
            *(writer_module._APPEND_SQL, log._writer.id, epoch, [HERE], [1], [1]),
            *([1], [1], ["late"], [b"{}"], [b"hash"]),
        )

    assert rows(HERE, 1) == await log.read(HERE)
    await late.close()
    await log.close()


async def test_unreachable_database_is_an_error_and_work_goes_on_when_it_is_back(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "RECOVERY_TIMEOUT_S", 0.3)
    monkeypatch.setattr(log_module, "READ_RETRY_S", 0.3)
    async with log_behind_proxy(database) as (log, proxy):
        await log.append(HERE, 0, rows(HERE, 1))
        proxy.accepts = False
        proxy.cut()

        with pytest.raises(StoreError, match="cannot be reached"):
            await log.append(HERE, 1, rows(HERE, 1, after=1))
        with pytest.raises(StoreError, match="cannot be reached"):
            await log.read(HERE)

        proxy.accepts = True
        await log.append(HERE, 1, rows(HERE, 1, after=1))
        assert rows(HERE, 2) == await log.read(HERE)


async def test_tail_goes_on_after_a_lost_connection(database: str) -> None:
    other = await open_log(database)
    async with log_behind_proxy(database) as (log, proxy):
        seeing = asyncio.ensure_future(first(log, 3))
        await other.append(HERE, 0, rows(HERE, 1))
        proxy.cut()
        await other.append(HERE, 1, rows(HERE, 1, after=1))
        await other.append(THERE, 0, [row(THERE, 1)])

        assert [1, 2, 3] == [position for position, _ in await seeing]
    await other.close()


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A database server that a test may kill."""
    directory = Path(tmp_path_factory.mktemp("postgres"))
    for folder in (directory, *directory.parents):
        if folder.owner() == directory.owner() and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o011)
    server = PostgresServer(directory).start()
    yield server
    server.stop()


def has_at_least(items: list[tuple[str, int]], count: int) -> bool:
    return len(items) >= count


async def test_killed_database_loses_no_acknowledged_row_and_stores_none_twice(
    own_server: PostgresServer,
) -> None:
    log = await open_log(own_server.new_database())
    acknowledged: list[tuple[str, int]] = []

    async def write(stream: str) -> None:
        for version in range(1, APPENDS + 1):
            await log.append(stream, version - 1, [row(stream, version)])
            acknowledged.append((stream, version))

    writing = [asyncio.ensure_future(write(f"room/{number}")) for number in range(WRITERS)]
    for third, stop in enumerate((own_server.kill, lambda: own_server.stop(signal.SIGINT)), 1):
        enough = third * WRITERS * APPENDS // 3
        await until(partial(has_at_least, acknowledged, enough))
        await asyncio.to_thread(stop)
        await asyncio.to_thread(own_server.start)
    await asyncio.gather(*writing)

    for number in range(WRITERS):
        stream = f"room/{number}"
        assert rows(stream, APPENDS) == await log.read(stream)
    assert WRITERS * APPENDS == await log.position() == len(acknowledged)
    await log.close()


READ_ONLY = "default_transaction_read_only"


async def test_database_that_comes_back_read_only_is_one_sentence_until_it_takes_records(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "RECOVERY_TIMEOUT_S", 1.0)
    log = await open_log(own_server.new_database())
    await log.append(HERE, 0, rows(HERE, 1))
    await asyncio.to_thread(own_server.kill)
    own_server.settings[READ_ONLY] = "on"
    await asyncio.to_thread(own_server.start)

    with pytest.raises(StoreError, match="is read-only; name its primary server"):
        await log.append(HERE, 1, rows(HERE, 1, after=1))
    with pytest.raises(StoreError, match="is read-only; name its primary server"):
        await log.append(HERE, 1, rows(HERE, 1, after=1))

    assert rows(HERE, 1) == await log.read(HERE)
    del own_server.settings[READ_ONLY]
    await asyncio.to_thread(own_server.stop, signal.SIGINT)
    await asyncio.to_thread(own_server.start)
    await log.append(HERE, 1, rows(HERE, 1, after=1))
    assert rows(HERE, 2) == await log.read(HERE)
    await log.close()
