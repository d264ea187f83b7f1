"""The log in NATS while connections break, nodes die and servers race."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accord.engine.ports import Conflict, EventLog, StoreError
from accord.stores import open_log
from accord.stores.nats import NatsLog
from accord.stores.nats import jetstream as jetstream_module
from accord.stores.nats import log as log_module
from tests.contract.rows import HERE, THERE, first, row, rows
from tests.helpers.servers.nats_server import SHARED_NATS, NatsCluster, NatsServer
from tests.helpers.servers.tcp_proxy import TcpProxy, proxy_to
from tests.helpers.waiting import until

# nats-py leaves it to the collector to close the socket of a connection that was lost.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning",
    "ignore:loop is closed:ResourceWarning",
    "ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning",
)

WRITERS = 6
APPENDS = 40


@pytest.fixture
def stream() -> str:
    return SHARED_NATS.server().new_stream()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsCluster]:
    running = NatsCluster(tmp_path_factory.mktemp("cluster")).start()
    yield running
    running.stop()


@asynccontextmanager
async def log_behind_proxy(url: str) -> AsyncIterator[tuple[NatsLog, TcpProxy]]:
    """A log whose connection a test can cut."""
    server = SHARED_NATS.server()
    async with proxy_to(server.port) as proxy:
        log = await NatsLog.open(url.replace(f":{server.port}/", f":{proxy.port}/"))
        try:
            yield log, proxy
        finally:
            await log.close()


async def test_append_whose_answer_was_lost_is_stored_once_and_answered(stream: str) -> None:
    other = await open_log(stream)
    async with log_behind_proxy(stream) as (log, proxy):
        await log.append(HERE, 0, rows(HERE, 1))
        proxy.hold_answers()
        appending = asyncio.ensure_future(log.append(HERE, 1, rows(HERE, 1, after=1)))
        await until(lambda: proxy.held_bytes > 0)

        proxy.cut()

        await appending
        await log.append(HERE, 2, rows(HERE, 1, after=2))
        assert rows(HERE, 3) == await log.read(HERE) == await other.read(HERE)
    await other.close()


async def test_append_that_never_arrived_is_sent_again(stream: str) -> None:
    async with log_behind_proxy(stream) as (log, proxy):
        await log.append(HERE, 0, rows(HERE, 1))
        proxy.cut()

        await log.append(HERE, 1, rows(HERE, 1, after=1))

        assert rows(HERE, 2) == await log.read(HERE)


async def test_unreachable_cluster_is_an_error_and_work_goes_on_when_it_is_back(
    stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "ANSWER_TIMEOUT_S", 0.5)
    monkeypatch.setattr(jetstream_module, "API_TIMEOUT_S", 0.5)
    async with log_behind_proxy(stream) as (log, proxy):
        await log.append(HERE, 0, rows(HERE, 1))
        proxy.accepts = False
        proxy.cut()

        with pytest.raises(StoreError, match="cannot be reached"):
            await log.append(THERE, 0, rows(THERE, 1))
        with pytest.raises(StoreError, match="cannot be reached"):
            await log.read(HERE)

        monkeypatch.setattr(log_module, "ANSWER_TIMEOUT_S", 30)
        monkeypatch.setattr(jetstream_module, "API_TIMEOUT_S", 30)
        proxy.accepts = True
        await log.append(HERE, 1, rows(HERE, 1, after=1))
        assert rows(HERE, 2) == await log.read(HERE)


async def test_tail_goes_on_after_a_lost_connection(stream: str) -> None:
    other = await open_log(stream)
    async with log_behind_proxy(stream) as (log, proxy):
        seeing = asyncio.ensure_future(first(log, 3))
        await other.append(HERE, 0, rows(HERE, 1))
        proxy.cut()
        await other.append(HERE, 1, rows(HERE, 1, after=1))
        await other.append(THERE, 0, [row(THERE, 1)])

        assert [1, 2, 3] == [position for position, _ in await seeing]
    await other.close()


async def test_copy_is_continued_and_made_again_from_the_stream(
    stream: str, tmp_path: Path
) -> None:
    url = f"{stream}?copy={tmp_path}"
    log = await open_log(url)
    await log.append(HERE, 0, rows(HERE, 50))
    await log.close()
    assert copies(tmp_path)
    other = await open_log(stream)
    await other.append(HERE, 50, rows(HERE, 50, after=50))
    await other.close()

    continued = await open_log(url)
    assert rows(HERE, 100) == await continued.read(HERE)
    await continued.close()
    for each in copies(tmp_path):
        each.unlink()
    again = await open_log(url)

    assert rows(HERE, 100) == await again.read(HERE)
    assert 100 == await again.position()
    await again.close()


async def test_refused_append_is_not_stored_by_a_copy_that_reads_it_again(
    stream: str, tmp_path: Path
) -> None:
    """An append beyond the end is refused, and stays refused when the stream has grown since."""
    log = await open_log(stream)
    await log.append(HERE, 0, rows(HERE, 1))
    with pytest.raises(Conflict):
        await log.append(HERE, 2, [row(HERE, 3, "early")])
    await log.append(HERE, 1, rows(HERE, 1, after=1))

    fresh = await open_log(f"{stream}?copy={tmp_path}")

    assert rows(HERE, 2) == await fresh.read(HERE) == await log.read(HERE)
    await asyncio.gather(log.close(), fresh.close())


def copies(folder: Path) -> list[Path]:
    return list(folder.glob("*.db*"))


async def write(log: EventLog, writer: int, acked: list[tuple[str, str]]) -> None:
    """Append to two streams, each row as often as it takes."""
    for number in range(APPENDS):
        stream = (HERE, THERE)[number % 2]
        id = f"{writer}-{number}"
        while True:
            try:
                version = (await log.streams()).get(stream, 0)
                await log.append(stream, version, [row(stream, version + 1, id)])
            except Conflict:
                continue
            except StoreError:
                if await stored(log, stream, id):
                    break
                continue
            break
        acked.append((stream, id))


async def stored(log: EventLog, stream: str, id: str) -> bool:
    """Whether an append that ended in an error happened all the same."""
    while True:
        try:
            return bool(await log.find(stream, [id]))
        except StoreError:
            continue


async def check_same_history(urls: list[str], acked: list[tuple[str, str]]) -> None:
    """Every acknowledged row is there once, and every reader sees one order."""
    logs = [await open_log(url) for url in urls]
    count = await logs[0].position()
    seen = [await first(log, count) for log in logs]
    order = [(position, each.stream, each.version, each.id) for position, each in seen[0]]
    for other in seen[1:]:
        assert order == [(position, each.stream, each.version, each.id) for position, each in other]
    ids = [(stream, id) for _, stream, _, id in order]
    assert len(ids) == len(set(ids))
    assert set(acked) <= set(ids)
    assert [position for position, *_ in order] == list(range(1, count + 1))
    await asyncio.gather(*(log.close() for log in logs))


@pytest.mark.parametrize("fault", ["kill the leader", "kill a follower", "pause the leader"])
async def test_nothing_is_lost_or_repeated_while_a_node_fails(
    cluster: NatsCluster, fault: str
) -> None:
    url = cluster.new_stream()
    logs = [await open_log(url) for _ in range(3)]
    acked: list[tuple[str, str]] = []
    writing = asyncio.gather(*(write(logs[n % 3], n, acked) for n in range(WRITERS)))
    await until(lambda: len(acked) > WRITERS * APPENDS // 4)
    leader = await asyncio.to_thread(cluster.leader_of, url)
    node = next(each for each in cluster.servers if each is not leader)

    await asyncio.to_thread(strike, fault, leader, node)
    await until(lambda: len(acked) > WRITERS * APPENDS // 2)
    await asyncio.to_thread(mend, fault, leader, node)

    await writing
    await asyncio.gather(*(log.close() for log in logs))
    assert len(acked) == WRITERS * APPENDS
    await check_same_history([url] * 2, acked)


def strike(fault: str, leader: NatsServer, node: NatsServer) -> None:
    if fault == "pause the leader":
        leader.pause()
    else:
        (leader if "leader" in fault else node).kill()


def mend(fault: str, leader: NatsServer, node: NatsServer) -> None:
    if fault == "pause the leader":
        leader.resume()
    else:
        (leader if "leader" in fault else node).start()
