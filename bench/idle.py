"""What a joined connection costs that says nothing, and what a command costs that does nothing."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from bench.participant import Participant, connect, create, join
from bench.servers import Running

GROUP = 10
SETTLE_SECONDS = 2.0


async def group(url: str) -> list[Participant]:
    """A session with its participants."""
    first = await connect(url)
    session = await create(first)
    await join(first, session, role="driver")
    people = [first]
    for _ in range(GROUP - 1):
        one = await connect(url)
        await join(one, session)
        people.append(one)
    return people


async def kib_per_connection(server: Running, count: int) -> float:
    """Resident memory per connection, sessions of ten, after a group that came and went."""
    for one in await group(server.url):
        one.leave()
    await asyncio.sleep(SETTLE_SECONDS)
    before = server.rss_kib
    people: list[Participant] = []
    while len(people) < count:
        people += await group(server.url)
    await asyncio.sleep(SETTLE_SECONDS)
    grown = server.rss_kib - before
    if any(one.closed for one in people):
        raise RuntimeError("a connection was closed")
    for one in people:
        one.leave()
    return grown / len(people)


def version_cpu_ms(reps: int = 5) -> float | None:
    """CPU of `accord --version`, best of a few; None where there is no such command yet."""
    command = Path(sys.executable).with_name("accord")
    if not command.exists():
        return None
    taken = [_cpu_ms([str(command), "--version"]) for _ in range(reps)]
    return min((ms for ms in taken if ms is not None), default=None)


def _cpu_ms(command: list[str]) -> float | None:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime) * 1e3 if process.returncode == 0 else None
