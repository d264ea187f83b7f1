"""Reads from the store, whole or in pages.

They verify the hash chain: a row that does not match is never returned.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

from accord.core.kernel.integrity.hash_chain import genesis_hash, link_hash
from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.engine.ports import Codec, DamagedError, EncodedRecord, EventLog, Prunable, Row

REPAIR_HINT = "run `accord verify` for details, `accord restore` to restore a backup"
# Rows per read; each row may have a MiB.
PAGE_ROWS = 500

# Up to so many rows of a stream after a version: `verified(events)`, or the `read` of a log for
# those who verify the rows themselves.
ReadPage = Callable[[str, int, int], Awaitable[list[Row]]]


async def read(
    events: EventLog, stream: str, after: int = 0, limit: int | None = None
) -> list[Row]:
    """Rows behind version `after`; DamagedError if one is not what was stored.

    If the beginning of the stream was removed, reading begins behind the cut.
    """
    try:
        return await _read(events, stream, after, limit)
    except DamagedError:
        gone = await cut(events, stream)
        if gone is None or after > gone.version:
            raise
        rows = await events.read(stream, gone.version, limit)
        return check_chain(stream, rows, gone.version, gone.hash)


async def _read(events: EventLog, stream: str, after: int, limit: int | None) -> list[Row]:
    if not after:
        rows = await events.read(stream, 0, limit)
        return check_chain(stream, rows, 0, genesis_hash(stream))
    rows = await events.read(stream, after - 1, None if limit is None else limit + 1)
    if not rows:
        return rows
    first = rows.pop(0)
    if first.version != after:
        raise damaged_error(stream, after)
    return check_chain(stream, rows, after, first.hash)


async def cut(events: EventLog, stream: str) -> RetentionCut | None:
    """The retention cut of the stream, if its beginning was removed."""
    return await events.cut(stream) if isinstance(events, Prunable) else None


async def find(events: EventLog, stream: str, ids: Sequence[str]) -> list[Row]:
    """Rows with these ids, each verified in its place; DamagedError as above."""
    rows = await events.find(stream, ids)
    for row in rows:
        if await read(events, stream, row.version - 1, 1) != [row]:
            raise damaged_error(stream, row.version)
    return rows


def check_chain(stream: str, rows: list[Row], version: int, last: bytes) -> list[Row]:
    """Return the rows if they continue the chain behind this version and hash."""
    for row in rows:
        version += 1
        # A changed byte can turn SQLite's blob into text.
        whole = type(row.body) is bytes and link_hash(last, row.body) == row.hash
        if row.version != version or not whole:
            raise damaged_error(stream, version)
        last = row.hash
    return rows


def damaged_error(stream: str, version: int) -> DamagedError:
    return DamagedError(f"Record {version} of {stream} is not what was stored; {REPAIR_HINT}")


class RecordReader:
    """Verified reads of one log, with the codec that its rows need."""

    def __init__(self, events: EventLog, codec: Codec) -> None:
        self.events = events
        self.codec = codec

    async def rows(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        """Rows behind version `after`."""
        return await read(self.events, stream, after, limit)

    async def versions(self, stream: str, ids: Sequence[str]) -> dict[str, int]:
        """Versions of the records with these ids."""
        return {row.id: row.version for row in await find(self.events, stream, ids)}

    async def records(self, stream: str, ids: Sequence[str]) -> dict[str, EncodedRecord]:
        """Records with these ids."""
        return {row.id: self.decode(row) for row in await find(self.events, stream, ids)}

    def decode(self, row: Row) -> EncodedRecord:
        return self.codec.decode_record(row.stream, row.version, row.body)


def verified(events: EventLog) -> ReadPage:
    """Reads that raise DamagedError at the first row that is not what was stored."""
    return partial(read, events)


async def read_pages(
    read: ReadPage, stream: str, after: int = 0, rows: int = PAGE_ROWS
) -> AsyncIterator[list[Row]]:
    """All rows after a version, in pages; other tasks get a turn after each page."""
    while page := await read(stream, after, rows):
        yield page
        after = page[-1].version
        await asyncio.sleep(0)


async def read_rows(
    read: ReadPage, stream: str, after: int = 0, rows: int = PAGE_ROWS
) -> AsyncIterator[Row]:
    """The rows of `read_pages` one by one."""
    async for page in read_pages(read, stream, after, rows):
        for row in page:
            yield row
