"""Rows to append, and what a tail has seen."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing

from accord.core.kernel.integrity.hash_chain import SignedHead
from accord.engine.ports import EventLog, Row

HERE = "room/here"
THERE = "room/there"


def row(stream: str, version: int, id_: str = "", body: bytes = b"{}") -> Row:
    """One that differs from every other of its stream."""
    return Row(stream, version, id_ or f"{stream}-{version}", body, bytes([version % 251]) * 32)


def rows(stream: str, count: int, after: int = 0) -> list[Row]:
    """As many as wanted, right behind version `after`."""
    return [row(stream, after + place) for place in range(1, count + 1)]


def head(stream: str, version: int, at: int = 0) -> SignedHead:
    """Signed by nobody in particular."""
    return SignedHead(stream, version, bytes([version]) * 32, at, "key", b"signature")


def following(
    log: EventLog, after: int
) -> AbstractAsyncContextManager[AsyncIterator[list[tuple[int, Row]]]]:
    """A tail that is closed at the end of the block."""
    return aclosing(log.tail(after))


async def first(log: EventLog, count: int, after: int = 0) -> list[tuple[int, Row]]:
    """The first rows that a tail brings, at least `count`."""
    seen = list[tuple[int, Row]]()
    async with following(log, after) as batches:
        async for batch in batches:
            assert batch
            seen += batch
            if len(seen) >= count:
                break
    return seen
