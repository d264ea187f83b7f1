"""A log in memory, for tests and demos."""

from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence

from accord.core.kernel.integrity.hash_chain import SignatureCoverage, SignedHead
from accord.engine.ports import Conflict, Duplicate, Row, Snapshot, StoreError
from accord.stores.append import CommitSignal, check_append

TAIL_BATCH_ROWS = 1000


class MemoryLog:
    """The simplest implementation of the port."""

    def __init__(self) -> None:
        self._all: list[Row] = []
        self._streams: defaultdict[str, list[Row]] = defaultdict(list)
        self._ids: defaultdict[str, dict[str, Row]] = defaultdict(dict)
        self._cursors: dict[str, int] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._heads: defaultdict[str, dict[SignedHead, None]] = defaultdict(dict)
        self._commit_signal = CommitSignal()
        self._closed = False

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        check_append(stream, expected, rows)
        self._check_open()
        self._check_version(stream, expected)
        fresh = self._new_ids(stream, rows)
        self._ids[stream] |= fresh
        self._streams[stream] += rows
        self._all += rows
        self._commit_signal.notify()

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        self._check_open()
        first = max(after, 0)
        last = None if limit is None else first + limit
        return self._rows_of(stream)[first:last]

    async def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        self._check_open()
        held = self._ids.get(stream, {})
        found = [held[key] for key in dict.fromkeys(ids) if key in held]
        return sorted(found, key=lambda row: row.version)

    async def streams(self, prefix: str = "") -> dict[str, int]:
        self._check_open()
        return {
            name: len(rows)
            for name, rows in sorted(self._streams.items())
            if rows and name.startswith(prefix)
        }

    async def position(self) -> int:
        self._check_open()
        return len(self._all)

    async def tail(self, after: int) -> AsyncGenerator[list[tuple[int, Row]], None]:
        position = max(after, 0)
        while True:
            self._check_open()
            if position < len(self._all):
                rows = self._all[position : position + TAIL_BATCH_ROWS]
                batch = list(enumerate(rows, position + 1))
                position += len(batch)
                yield batch
            else:
                await self._commit_signal.next().wait()

    async def cursor(self, name: str) -> int:
        self._check_open()
        return self._cursors.get(name, 0)

    async def advance(self, name: str, position: int) -> None:
        self._check_open()
        self._cursors[name] = max(position, self._cursors.get(name, 0))

    async def snapshot(self, stream: str) -> Snapshot | None:
        self._check_open()
        return self._snapshots.get(stream)

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        self._check_open()
        kept = self._snapshots.get(stream)
        if kept is None or kept.version <= snapshot.version:
            self._snapshots[stream] = snapshot

    async def heads(self, stream: str) -> list[SignedHead]:
        self._check_open()
        return list(self._heads.get(stream, ()))

    async def signed_version(self, stream: str) -> int:
        return max((head.version for head in await self.heads(stream)), default=0)

    async def signature_coverage(self) -> SignatureCoverage:
        self._check_open()
        signed = [heads for heads in self._heads.values() if heads]
        records = sum(max(head.version for head in heads) for heads in signed)
        counted = [head for heads in signed for head in heads if head.total]
        return SignatureCoverage(records, max(counted, key=lambda head: head.total, default=None))

    async def add_head(self, head: SignedHead) -> None:
        self._check_open()
        self._heads[head.stream][head] = None

    async def close(self) -> None:
        self._closed = True
        self._commit_signal.notify()

    def _rows_of(self, stream: str) -> list[Row]:
        return self._streams.get(stream, [])

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The log is closed")

    def _check_version(self, stream: str, expected: int) -> None:
        version = len(self._rows_of(stream))
        if version != expected:
            raise Conflict(f"{stream} is at version {version}, not {expected}")

    def _new_ids(self, stream: str, rows: Sequence[Row]) -> dict[str, Row]:
        held, fresh = self._ids.get(stream, {}), dict[str, Row]()
        for row in rows:
            if row.id in held or row.id in fresh:
                raise Duplicate(stream, row.id)
            fresh[row.id] = row
        return fresh
