"""A log in dictionaries, for tests and demos; it is gone with the process."""

from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence

from accord.core.kernel.chain import Covered, Head
from accord.engine.ports import Conflict, Duplicate, Row, Snapshot, StoreError
from accord.stores.bell import Bell
from accord.stores.place import check_place

BATCH = 1000


class MemoryLog:
    """The port in its plainest form."""

    def __init__(self) -> None:
        self._all: list[Row] = []
        self._streams: defaultdict[str, list[Row]] = defaultdict(list)
        self._ids: defaultdict[str, dict[str, Row]] = defaultdict(dict)
        self._cursors: dict[str, int] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._heads: defaultdict[str, dict[Head, None]] = defaultdict(dict)
        self._bell = Bell()
        self._closed = False

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        check_place(stream, expected, rows)
        self._check_open()
        self._check_version(stream, expected)
        fresh = self._fresh(stream, rows)
        self._ids[stream] |= fresh
        self._streams[stream] += rows
        self._all += rows
        self._bell.ring()

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        self._check_open()
        first = max(after, 0)
        last = None if limit is None else first + limit
        return self._of(stream)[first:last]

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
                rows = self._all[position : position + BATCH]
                batch = list(enumerate(rows, position + 1))
                position += len(batch)
                yield batch
            else:
                await self._bell.next().wait()

    async def cursor(self, name: str) -> int:
        self._check_open()
        return self._cursors.get(name, 0)

    async def advance(self, name: str, position: int) -> None:
        self._check_open()
        self._cursors[name] = max(position, self._cursors.get(name, 0))

    async def snapshot(self, stream: str) -> Snapshot | None:
        self._check_open()
        return self._snapshots.get(stream)

    async def keep(self, stream: str, snapshot: Snapshot) -> None:
        self._check_open()
        kept = self._snapshots.get(stream)
        if kept is None or kept.version <= snapshot.version:
            self._snapshots[stream] = snapshot

    async def heads(self, stream: str) -> list[Head]:
        self._check_open()
        return list(self._heads.get(stream, ()))

    async def signed(self, stream: str) -> int:
        return max((head.version for head in await self.heads(stream)), default=0)

    async def covered(self) -> Covered:
        self._check_open()
        signed = [heads for heads in self._heads.values() if heads]
        records = sum(max(head.version for head in heads) for heads in signed)
        counted = [head for heads in signed for head in heads if head.total]
        return Covered(records, max(counted, key=lambda head: head.total, default=None))

    async def sign(self, head: Head) -> None:
        self._check_open()
        self._heads[head.stream][head] = None

    async def close(self) -> None:
        self._closed = True
        self._bell.ring()

    def _of(self, stream: str) -> list[Row]:
        return self._streams.get(stream, [])

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The log is closed")

    def _check_version(self, stream: str, expected: int) -> None:
        version = len(self._of(stream))
        if version != expected:
            raise Conflict(f"{stream} is at version {version}, not {expected}")

    def _fresh(self, stream: str, rows: Sequence[Row]) -> dict[str, Row]:
        held, fresh = self._ids.get(stream, {}), dict[str, Row]()
        for row in rows:
            if row.id in held or row.id in fresh:
                raise Duplicate(stream, row.id)
            fresh[row.id] = row
        return fresh
