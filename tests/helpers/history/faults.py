"""What strikes a group of servers and their database while clients work."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from tests.helpers.servers.postgres_server import PostgresServer
from tests.helpers.servers.server_group import ServerGroup
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.servers.tcp_proxy import TcpProxy

# Seconds that a fault lasts; below the time after which senders get an error.
SHORT_S, LONG_S = 0.2, 1.5


class Cluster(NamedTuple):
    """Servers, each with a proxy of its own to the database."""

    postgres: PostgresServer
    group: ServerGroup
    proxies: list[TcpProxy]
    database: str

    def one(self, rng: random.Random) -> tuple[ServerProcess, TcpProxy]:
        """Any server and its proxy."""
        number = rng.randrange(len(self.proxies))
        return self.group[number], self.proxies[number]


Fault = Callable[[Cluster, random.Random], Awaitable[None]]


async def no_fault(cluster: Cluster, rng: random.Random) -> None:
    """Nothing strikes."""


async def killed_server(cluster: Cluster, rng: random.Random) -> None:
    """A server is killed and started again."""
    server, _ = cluster.one(rng)
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(rng.uniform(0, SHORT_S))
    await asyncio.to_thread(server.start)


async def stopped_server(cluster: Cluster, rng: random.Random) -> None:
    """A server is stopped with SIGTERM, exits with 0, and is started again."""
    server, _ = cluster.one(rng)
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.start)


async def killed_database(cluster: Cluster, rng: random.Random) -> None:
    """PostgreSQL and all its processes are killed; it recovers from its log."""
    await asyncio.to_thread(cluster.postgres.kill)
    await asyncio.sleep(rng.uniform(0, SHORT_S))
    await asyncio.to_thread(cluster.postgres.start)


async def partition(cluster: Cluster, rng: random.Random) -> None:
    """A server loses its connections to the database and gets no new ones for a while."""
    _, proxy = cluster.one(rng)
    proxy.accepts = False
    proxy.cut()
    await asyncio.sleep(rng.uniform(SHORT_S, LONG_S))
    proxy.accepts = True


async def lost_answers(cluster: Cluster, rng: random.Random) -> None:
    """What a server sends arrives, but the answers are delayed and then lost."""
    _, proxy = cluster.one(rng)
    proxy.hold_answers()
    await asyncio.sleep(rng.uniform(0, SHORT_S))
    proxy.cut()


async def slow_database(cluster: Cluster, rng: random.Random) -> None:
    """All answers of the database come late."""
    for _ in range(3):
        for proxy in cluster.proxies:
            proxy.hold_answers()
        await asyncio.sleep(rng.uniform(0, SHORT_S))
        for proxy in cluster.proxies:
            proxy.release_answers()
        await asyncio.sleep(rng.uniform(0, SHORT_S))


async def suspended_server(cluster: Cluster, rng: random.Random) -> None:
    """A server stands still for a while, as a suspended machine does."""
    server, _ = cluster.one(rng)
    cluster.group.hidden.add(server)
    server.suspend()
    await asyncio.sleep(rng.uniform(SHORT_S, LONG_S))
    server.resume()
    cluster.group.hidden.discard(server)


FAULTS: tuple[Fault, ...] = (
    no_fault,
    killed_server,
    stopped_server,
    killed_database,
    partition,
    lost_answers,
    slow_database,
    suspended_server,
)


@asynccontextmanager
async def run_cluster(
    directory: Path, postgres: PostgresServer, servers: int = 3
) -> AsyncIterator[Cluster]:
    """Servers on a new database of this PostgreSQL, which may be killed."""
    database = postgres.new_database()
    async with AsyncExitStack() as stack:
        proxies = [TcpProxy(postgres.port) for _ in range(servers)]
        for proxy in proxies:
            await proxy.start()
            stack.push_async_callback(proxy.close)
        urls = [database.replace(f":{postgres.port}/", f":{proxy.port}/") for proxy in proxies]
        group = ServerGroup(directory, urls)
        stack.callback(group.stop)
        await asyncio.to_thread(group.start)
        yield Cluster(postgres, group, proxies, database)
    for server in group.servers:
        assert "Traceback" not in server.log, server.log
