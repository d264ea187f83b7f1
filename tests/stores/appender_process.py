"""A process that appends rows and prints what was acknowledged, until it ends or is killed."""

import asyncio
import sys

from accord.engine.ports import EventLog, Row
from accord.stores import open_log

STREAMS = ("room/a", "room/b", "room/c")


def body(stream: str, version: int) -> bytes:
    """What every reader can check."""
    return f"{stream} at {version}".encode() * 20


def some(stream: str, after: int, count: int) -> list[Row]:
    """The rows that belong there."""
    versions = range(after + 1, after + count + 1)
    return [Row(stream, at, f"{stream}-{at}", body(stream, at), b"#" * 32) for at in versions]


async def append(log: EventLog, stream: str, rounds: int) -> None:
    """One to three rows at a time, each answered on standard output once it is durable."""
    at = (await log.streams()).get(stream, 0)
    for turn in range(rounds):
        count = 1 + turn % 3
        await log.append(stream, at, some(stream, at, count))
        at += count
        print(stream, at, flush=True)


async def main(url: str, rounds: int) -> None:
    """All streams at once."""
    log = await open_log(url)
    await asyncio.gather(*(append(log, stream, rounds) for stream in STREAMS))
    await log.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
