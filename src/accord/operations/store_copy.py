"""Copies a log from one store to another: same records, same order, every signature.

The copy is resumable. Records are appended in the order of the source, and the position that was
reached is kept in the target. After an interruption the copy goes on from there and skips the
records that are already stored; a target with other records is refused.

Positions are numbered anew where retention has removed records. The cursors of workers are
translated, so that no worker does again what it has done.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from accord.core.kernel.refusal import Reason, Refused
from accord.engine.ports import CopyableStore, EventLog, Prunable, Row, SharedStore
from accord.stores import open_log

# The target's own record of how far the source was copied; removed by no one, harmless afterwards.
COPY_CURSOR = "store-copy"

Progress = Callable[[int, int], None]
PositionedRow = tuple[int, Row]


class CopySummary(msgspec.Struct, frozen=True):
    """What the target holds, and how much of it this run copied."""

    streams: int
    records: int
    copied: int


class StorePair(NamedTuple):
    """Where a log is copied from and to."""

    source: EventLog
    target: EventLog


async def copy_store(source_url: str, target_url: str, progress: Progress) -> CopySummary:
    """Copy the whole log; the caller makes sure that no server uses the source's file."""
    source = await open_log(source_url)
    try:
        target = await open_log(target_url)
        try:
            return await Copy(StorePair(source, target), progress).run()
        finally:
            await target.close()
    finally:
        await source.close()


class Copy:
    """One run, which may continue an earlier one."""

    def __init__(self, stores: StorePair, progress: Progress) -> None:
        self.stores = stores
        self.progress = progress
        self._versions: dict[str, int] = {}
        self._cursors: dict[str, int] = {}
        self._copied = 0

    async def run(self) -> CopySummary:
        """Refused if the target holds another log, or a server still uses one of them."""
        await self._claim_servers()
        source, target = self.stores
        last, start = await source.position(), await target.cursor(COPY_CURSOR)
        if start > last:
            raise other_log("it was copied from a longer log")
        self._versions = await target.streams()
        await self._check_same_records()
        self._cursors = dict(await copyable(source).cursors()) if last else {}
        self._cursors.pop(COPY_CURSOR, None)
        await self._copy_rows(start, last)
        await self._copy_heads()
        return await self._summary(last)

    async def _claim_servers(self) -> None:
        for store in self.stores:
            if isinstance(store, SharedStore):
                await store.claim_server()

    async def _check_same_records(self) -> None:
        """The newest record of every stream in the target is in the source.

        Its hash covers all records before it.
        """
        source, target = self.stores
        for stream, version in self._versions.items():
            ours = await target.read(stream, version - 1, 1)
            theirs = await source.read(stream, version - 1, 1)
            if ours and (not theirs or ours[0].hash != theirs[0].hash):
                raise other_log(f"record {version} of {stream} differs")

    async def _copy_rows(self, start: int, last: int) -> None:
        position = start
        if position >= last:
            return
        async for batch in self.stores.source.tail(start):
            rows = [placed for placed in batch if placed[0] <= last]
            await self._append(rows)
            position = rows[-1][0]
            await self.stores.target.advance(COPY_CURSOR, position)
            self.progress(position, last)
            if position >= last:
                return

    async def _append(self, batch: Sequence[PositionedRow]) -> None:
        """Append what the target does not have yet, in order, and move the cursors passed."""
        fresh = [each for each in batch if each[1].version > self._versions.get(each[1].stream, 0)]
        before = await self.stores.target.position() - (len(batch) - len(fresh))
        await self._begin_cut_streams(fresh)
        # Appends are stored in the order in which they are requested, many in one commit.
        await asyncio.gather(
            *(
                self.stores.target.append(stream, rows[0].version - 1, rows)
                for stream, rows in runs(fresh)
            )
        )
        self._versions |= {row.stream: row.version for _, row in fresh}
        self._copied += len(fresh)
        for name, position in self._cursors.items():
            if batch[0][0] <= position:
                passed = sum(1 for at, _ in batch if at <= position)
                await self.stores.target.advance(name, before + passed)

    async def _begin_cut_streams(self, rows: Sequence[PositionedRow]) -> None:
        """Streams whose beginning was removed begin behind their cut in the target too."""
        source, target = self.stores
        for row in {row.stream: row for _, row in reversed(rows)}.values():
            if row.version == 1 or self._versions.get(row.stream):
                continue
            cut = await source.cut(row.stream) if isinstance(source, Prunable) else None
            if cut is None or cut.version != row.version - 1:
                detail = f"{row.stream} of the source has no record {row.version - 1}"
                raise Refused(Reason.WRONG_STATE, f"{detail}; check it with `accord verify`")
            await copyable(target).begin_behind_cut(cut)

    async def _copy_heads(self) -> None:
        source, target = self.stores
        for stream in await source.streams():
            for head in await source.heads(stream):
                await target.add_head(head)

    async def _summary(self, last: int) -> CopySummary:
        """Refused if the source grew meanwhile: the target does not hold all of it."""
        source, target = self.stores
        streams = await target.streams()
        if await source.position() != last or streams != await source.streams():
            detail = "The source changed during the copy; stop its server and run this again"
            raise Refused(Reason.WRONG_STATE, detail)
        return CopySummary(len(streams), await target.position(), self._copied)


def runs(rows: Sequence[PositionedRow]) -> list[tuple[str, list[Row]]]:
    """Consecutive rows of one stream, together."""
    grouped = groupby((row for _, row in rows), key=lambda row: row.stream)
    return [(stream, list(group)) for stream, group in grouped]


def copyable(store: EventLog) -> CopyableStore:
    """Refused for a store in memory."""
    if not isinstance(store, CopyableStore):
        raise Refused(Reason.MALFORMED, "A log in memory cannot be copied")
    return store


def other_log(why: str) -> Refused:
    detail = f"The target holds another log: {why}; name an empty store. Nothing was changed"
    return Refused(Reason.WRONG_STATE, detail)
