"""Reading over MCP: what length, threads and agents cost, and the SDK's minimal server."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from bench.mcp_client import Load, ask, cpu_us, result_of, tool_call
from bench.report import Row, ratios, spread
from bench.servers import Running, accord, running_small_server, temporary_directory
from bench.thread_log import Threads, Written, lengths_of, longest, write

READ = 20
SIZES = ("short", "long", "many")
CLIENTS = 4
REQUESTS = 400
SEED = 7


class Scale(NamedTuple):
    """How thorough to be, and how large is large."""

    rounds: int = 5
    seconds: float = 1.0
    short: int = 1_000
    messages: int = 50_000
    threads: int = 10_000
    agents: int = 1_000


TINY = Scale(1, 0.1, 100, 300, 20, 5)


class Figures(NamedTuple):
    """µs of CPU for a call, one for each round, by what was read."""

    read_us: dict[str, list[float]]
    unread_us: dict[str, list[float]]


def logs(scale: Scale) -> dict[str, Threads]:
    """The logs to read from: few messages, one long thread, and many threads with many agents."""
    busy = max(1, scale.threads // 10)
    each = max(READ, scale.messages * 4 // 5 // busy)
    many = lengths_of(scale.messages, scale.threads, busy, each)
    return {
        "short": Threads((scale.short,), 2),
        "long": Threads((scale.messages,), 2),
        "many": Threads(many, scale.agents),
    }


def path_of(thread: Written) -> str:
    return f"/mcp?as={thread.reader}"


def newest(threads: Sequence[Written]) -> list[bytes]:
    """Reads of the newest messages, as by an agent that follows a thread."""
    return [
        tool_call(
            path_of(thread),
            "read_messages",
            {"thread_id": thread.id, "since_seq": thread.length - READ, "limit": READ},
        )
        for thread in threads
    ]


def anywhere(threads: Sequence[Written]) -> list[bytes]:
    """Reads from random places, as by agents that come back after a while."""
    chance = random.Random(SEED)
    chosen = [chance.choice(threads) for _ in range(REQUESTS)]
    return [
        tool_call(
            path_of(thread),
            "read_messages",
            {
                "thread_id": thread.id,
                "since_seq": chance.randint(0, thread.length - READ),
                "limit": READ,
            },
        )
        for thread in chosen
    ]


def unread(threads: Sequence[Written]) -> list[bytes]:
    """Questions how much is unread: everything, since nothing was acknowledged."""
    return [
        tool_call(path_of(thread), "get_thread", {"thread_id": thread.id}) for thread in threads
    ]


async def check(server: Running, request: bytes) -> None:
    """What is measured has to read as many messages as it says."""
    _, content = await ask(server, request)
    found = len(result_of(content)["messages"])
    if found != READ:
        raise RuntimeError(f"read {found} messages instead of {READ}")


async def measure(where: str | None, scale: Scale, sizes: Sequence[str] = SIZES) -> Figures:
    """All logs in turns, each with a server of its own on the same core."""
    reads, counts = {}, {}
    with ExitStack() as stack:
        home = stack.enter_context(temporary_directory(where))
        for name in sizes:
            (home / name).mkdir()
            threads = longest(await write(home / name, logs(scale)[name]))
            server = stack.enter_context(accord(home / name))
            reads[name] = Load(server, newest(threads))
            reads[f"{name}, anywhere"] = Load(server, anywhere(threads))
            counts[name] = Load(server, unread(threads))
        sdk = stack.enter_context(running_small_server("sdk", home, scale.messages))
        asked = {"thread_id": "th_1", "since_seq": scale.messages - READ, "limit": READ}
        reads["sdk"] = Load(sdk, [tool_call("/mcp", "read_messages", asked)])
        for load in reads.values():
            await check(load.server, load.requests[0])
            await cpu_us(load, CLIENTS, 0, len(load.requests))
        read_us, unread_us = defaultdict(list), defaultdict(list)
        for _ in range(scale.rounds):
            for name, load in reads.items():
                read_us[name].append(await cpu_us(load, CLIENTS, scale.seconds))
            for name, load in counts.items():
                unread_us[name].append(await cpu_us(load, CLIENTS, scale.seconds / 2))
    return Figures(dict(read_us), dict(unread_us))


def rows(found: Figures, scale: Scale) -> Iterator[Row]:
    """Each figure with its target."""
    read, count = found.read_us, found.unread_us
    sizes = {
        "long": f"{scale.messages:,} messages",
        "many": f"{scale.threads:,} threads, {scale.agents:,} agents",
    }
    for name, size in sizes.items():
        ratio = ratios(read[name], read["short"])
        yield Row(
            f"reading {READ} messages, {size} to {scale.short:,}",
            f"{ratio.text()}; {spread(read[name]).text(0)} µs",
            "at most 1.20",
            ratio.middle <= 1.2,
        )
        older = ratios(read[f"{name}, anywhere"], read["short, anywhere"])
        yield Row(f"the same from anywhere in the thread, {size}", older.text(), "", None)
        to_sdk = ratios(read[name], read["sdk"])
        what = f"the same, {size}, to the SDK's with {scale.messages:,}"
        yield Row(what, to_sdk.text(), "at most 0.35", to_sdk.middle <= 0.35)
        flat = ratios(count[name], count["short"])
        what = f"unread count, {size} to {scale.short:,}"
        yield Row(what, flat.text(), "at most 1.20", flat.middle <= 1.2)
