"""A long session against a short one: what a message costs, and how long joining takes."""

import time
from pathlib import Path
from typing import NamedTuple

from bench.participant import Room, connect, join
from bench.rooms import check
from bench.servers import Running, accord

SHORT_SESSION_RECORDS = 1000
WINDOW = 256
FILL_BATCH = 5000
JOINS = 10


class Length(NamedTuple):
    """µs of server CPU per message and ms to join, best of a few; by the session's length."""

    records: int
    short_us: float
    long_us: float
    alone_us: float
    short_join_ms: float
    long_join_ms: float
    start_s: float
    first_join_ms: float

    @property
    def ratio(self) -> float:
        """What length costs."""
        return self.long_us / self.short_us


async def fill(room: Room, records: int) -> None:
    """So many chunks, over the wire like any other."""
    while room.sent < records:
        count = min(FILL_BATCH, records - room.sent)
        await send(room, count)


async def send(room: Room, count: int) -> None:
    """Some more chunks."""
    frames = [room.chunk(number) for number in range(room.sent, room.sent + count)]
    await room.push(frames, WINDOW)


async def cost_us(server: Running, room: Room, messages: int) -> float:
    """Server CPU per message."""
    frames = [room.chunk(number) for number in range(room.sent, room.sent + messages)]
    before = server.cpu_s
    await room.push(frames, WINDOW)
    return (server.cpu_s - before) / messages * 1e6


async def short_cost_us(server: Running, messages: int) -> float:
    """The same in a session of a thousand records that is made for it."""
    room = await Room.open(server.url, 2)
    await fill(room, SHORT_SESSION_RECORDS)
    cost = await cost_us(server, room, messages)
    room.leave()
    check(server, room, room.sent)
    return cost


async def join_ms(url: str, session: str) -> float:
    """From sending the join to one's own announcement, which comes behind the replay."""
    one = await connect(url)
    began = time.monotonic()
    await join(one, session)
    took = time.monotonic() - began
    one.leave()
    return took * 1e3


async def measure(home: Path, records: int, messages: int, reps: int) -> Length:
    """Short and long in turns on one server; then the server starts again on the same log."""
    with accord(home) as server:
        alone = min([await short_cost_us(server, messages) for _ in range(reps)])
        long = await Room.open(server.url, 2)
        await fill(long, records)
        short = await Room.open(server.url, 2)
        await fill(short, SHORT_SESSION_RECORDS)
        short_us, long_us, short_ms, long_ms = [], [], [], []
        for _ in range(reps):
            short_us.append(await short_cost_us(server, messages))
            long_us.append(await cost_us(server, long, messages))
        for _ in range(JOINS):
            short_ms.append(await join_ms(server.url, short.session))
            long_ms.append(await join_ms(server.url, long.session))
        long.leave()
        short.leave()
        check(server, long, long.sent)
    began = time.monotonic()
    with accord(home) as server:
        start = time.monotonic() - began
        first = await join_ms(server.url, long.session)
    return Length(
        records,
        min(short_us),
        min(long_us),
        alone,
        median(short_ms),
        median(long_ms),
        start,
        first,
    )


def median(values: list[float]) -> float:
    """The middle one."""
    return sorted(values)[len(values) // 2]
