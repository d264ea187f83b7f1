"""A log with threads in it, written before a server starts on it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from accord.api import threads as api
from accord.core.kernel.actor import Actor
from accord.core.kernel.role_permissions import Kind
from accord.identity.token_signing import trusted_actor
from accord.server.app import Server
from accord.server.options import ServerOptions
from accord.stores import open_log
from accord.transports.msg.write_methods import create_thread, post_message

AT_ONCE = 500
BODY = "The mapper drops null fields; see the finding on line 42. " * 4


class Threads(NamedTuple):
    """How many of each; `lengths` are those of threads, in messages."""

    lengths: tuple[int, ...]
    agents: int

    @property
    def messages(self) -> int:
        return sum(self.lengths)


class Written(NamedTuple):
    """A thread, who wrote it, who reads it, and how many messages it has."""

    id: str
    author: str
    reader: str
    length: int


def agent_name(number: int) -> str:
    return f"agent{number}"


@asynccontextmanager
async def offline_server(home: Path) -> AsyncIterator[Server]:
    """The parts of a server without a socket."""
    options = ServerOptions(home=home, auth="open", rate_limit=None, bridge_port=None)
    events = await open_log(options.store_url, durability=options.durability)
    server = Server(options, events)
    await server.start()
    try:
        yield server
    finally:
        await server.finish_pending(60)
        await server.stop(60)


async def write(home: Path, wanted: Threads) -> list[Written]:
    """Create the threads and post their messages; each agent takes turns with the next one."""
    async with offline_server(home) as server:
        made: list[Written] = []
        for start in range(0, len(wanted.lengths), AT_ONCE):
            numbers = range(start, min(start + AT_ONCE, len(wanted.lengths)))
            made += await asyncio.gather(*(create(server, wanted, number) for number in numbers))
        todo = [thread for thread in made for _ in range(thread.length)]
        for start in range(0, len(todo), AT_ONCE):
            some = todo[start : start + AT_ONCE]
            await asyncio.gather(*(post(server, thread) for thread in some))
    return made


async def create(server: Server, wanted: Threads, number: int) -> Written:
    one, other = (agent_name((number + step) % wanted.agents) for step in (0, 1))
    asked = api.CreateThread(title=f"Thread {number}", participants=[one, other])
    created = await create_thread(server.threads, actor(one), asked)
    return Written(created.thread_id, one, other, wanted.lengths[number])


async def post(server: Server, thread: Written) -> None:
    asked = api.PostMessage(thread_id=thread.id, schema_version=1, body=BODY)
    await post_message(server.threads, actor(thread.author), asked)


def actor(name: str) -> Actor:
    return trusted_actor(name, Kind.AGENT)


def lengths_of(messages: int, threads: int, long: int, each: int) -> tuple[int, ...]:
    """So many threads; every one of the first `long` has `each` messages, the others share."""
    others = max(1, threads - long)
    left = max(0, messages - long * each)
    return (*[each] * long, *[left // others] * (threads - long))


def longest(threads: Sequence[Written]) -> list[Written]:
    """Those to read from."""
    most = max(thread.length for thread in threads)
    return [thread for thread in threads if thread.length == most]
