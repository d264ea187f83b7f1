"""One agent to many: deliveries per CPU second, and latency at a steady rate."""

import asyncio
import time
from typing import NamedTuple

from bench.limit import MAX_FOREIGN_LOAD
from bench.machine import busy_s
from bench.participant import Room
from bench.servers import Running, stored

WARM_UP_MESSAGES = 300
WINDOW = 256
RATE_PER_S = 200
# In ms: a load that is later than this now and then was stopped by its machine, as the server was.
MAX_LATENESS_MS = 2.0


class Deliveries(NamedTuple):
    """What fan-out cost."""

    participants: int
    per_s: float
    per_cpu_s: float
    other_share: float


class Latency(NamedTuple):
    """How long a message took to each receiver, in ms."""

    participants: int
    p50: float
    p90: float
    p99: float
    most: float
    late: float
    other_share: float

    @property
    def steady(self) -> bool:
        """Whether the machine let the load keep its time."""
        return self.late < MAX_LATENESS_MS and self.other_share < MAX_FOREIGN_LOAD


def check(server: Running, room: Room, sent: int) -> None:
    """Everything that was delivered is in the log, without a gap."""
    if not server.ours:
        return
    found = stored(server.home, room.session)
    kept = found.kinds.get("response.chunked", 0)
    if not found.is_complete or kept != sent:
        raise RuntimeError(f"{kept} of {sent} chunks are in the log")


async def fan_out(server: Running, participants: int, messages: int) -> Deliveries:
    """As fast as a bounded window allows; the sender's own copy is not counted."""
    room = await Room.open(server.url, participants)
    frames = [room.chunk(number) for number in range(WARM_UP_MESSAGES + messages)]
    await room.push(frames[:WARM_UP_MESSAGES], WINDOW)
    cpu, busy, own, began = server.cpu_s, busy_s(), time.process_time(), time.monotonic()
    await room.push(frames[WARM_UP_MESSAGES:], WINDOW)
    took = time.monotonic() - began
    cpu, busy, own = server.cpu_s - cpu, busy_s() - busy, time.process_time() - own
    room.leave()
    check(server, room, len(frames))
    count = messages * len(room.receivers)
    other = max(0.0, busy - cpu - own) / took
    return Deliveries(participants, count / took, count / max(cpu, 0.01), other)


async def latency(server: Running, participants: int, seconds: float) -> Latency:
    """At 200 messages a second; the first second does not count."""
    room = await Room.open(server.url, participants)
    room.reset(times=True)
    total = int(RATE_PER_S * (seconds + 1))
    late: list[float] = []
    busy, own, cpu, began = busy_s(), time.process_time(), server.cpu_s, time.monotonic()
    for number in range(total):
        due = began + number / RATE_PER_S
        if (left := due - time.monotonic()) > 0:
            await asyncio.sleep(left)
        late.append((time.monotonic() - due) * 1e3)
        room.agent.send(room.chunk(number, time.monotonic_ns()))
    room.sent = total
    await room.until_delivered()
    took = time.monotonic() - began
    busy = busy_s() - busy - (time.process_time() - own) - (server.cpu_s - cpu)
    room.leave()
    check(server, room, total)
    taken = sorted(ns / 1e6 for one in room.receivers for ns in one.latencies[RATE_PER_S:])
    return Latency(
        participants,
        percentile(taken, 0.5),
        percentile(taken, 0.9),
        percentile(taken, 0.99),
        taken[-1],
        percentile(sorted(late), 0.99),
        max(0.0, busy) / took,
    )


def percentile(ordered: list[float], part: float) -> float:
    """A percentile."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
