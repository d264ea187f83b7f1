"""Reading what was written: each row must follow from the one before it, or nothing is read."""

from collections.abc import Sequence

from accord.core.kernel.chain import genesis, link
from accord.core.kernel.cuts import Cut
from accord.engine.ports import DamagedError, EventLog, Prunable, Row

DO = "`accord verify` tells more, `accord restore` brings a backup back"


async def read(
    events: EventLog, stream: str, after: int = 0, limit: int | None = None
) -> list[Row]:
    """Rows behind version `after`; DamagedError where one is not what was once stored.

    Of a stream whose beginning was removed those that are left.
    """
    try:
        return await _read(events, stream, after, limit)
    except DamagedError:
        gone = await cut(events, stream)
        if gone is None or after > gone.version:
            raise
        rows = await events.read(stream, gone.version, limit)
        return follow(stream, rows, gone.version, gone.hash)


async def _read(events: EventLog, stream: str, after: int, limit: int | None) -> list[Row]:
    if not after:
        rows = await events.read(stream, 0, limit)
        return follow(stream, rows, 0, genesis(stream))
    rows = await events.read(stream, after - 1, None if limit is None else limit + 1)
    if not rows:
        return rows
    first = rows.pop(0)
    if first.version != after:
        raise damaged(stream, after)
    return follow(stream, rows, after, first.hash)


async def cut(events: EventLog, stream: str) -> Cut | None:
    """Where the stream begins now, if its beginning was removed."""
    return await events.cut(stream) if isinstance(events, Prunable) else None


async def find(events: EventLog, stream: str, ids: Sequence[str]) -> list[Row]:
    """The rows with these ids, each in its place; DamagedError as above."""
    rows = await events.find(stream, ids)
    for row in rows:
        if await read(events, stream, row.version - 1, 1) != [row]:
            raise damaged(stream, row.version)
    return rows


def follow(stream: str, rows: list[Row], version: int, last: bytes) -> list[Row]:
    """The rows, if they are the next ones behind this version and its hash."""
    for row in rows:
        version += 1
        # A changed byte can make text of bytes.
        whole = type(row.body) is bytes and link(last, row.body) == row.hash
        if row.version != version or not whole:
            raise damaged(stream, version)
        last = row.hash
    return rows


def damaged(stream: str, version: int) -> DamagedError:
    """Where it is, and what to do."""
    return DamagedError(f"Record {version} of {stream} is not what was stored; {DO}")
