"""An index of threads by participant, so that listing them reads none of them.

It is filled once, from a stored copy where that is current, and kept up to date by every commit. It
holds the state of each thread, which has no messages in it.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence

import msgspec

from accord.core.kernel.actor import Actor
from accord.core.room.threads.state import STREAM_PREFIX, Thread
from accord.core.room.threads.thread_access import is_leading
from accord.engine.committer import of_streams
from accord.engine.engine import Engine
from accord.engine.ports import DamagedError, EncodedRecord, Snapshot, StoreError
from accord.engine.streams.snapshots import with_checksum, without_checksum

SNAPSHOT_NAME = "index/threads"
# The key for all threads of a workspace, with any participants.
EVERYONE = ""
Versions = dict[str, tuple[int, Thread]]
Principal = tuple[str, str]


class ThreadIndex:
    """Threads by workspace and participant."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._threads: Versions = {}
        self._by_principal: dict[Principal, set[str]] = {}
        self._is_complete = False
        self._stale: set[str] = set()  # changed by another process since they were indexed
        self._refreshing = asyncio.Lock()
        self.on_change: list[Callable[[Thread], None]] = []
        engine.on_state_change.append(of_streams(STREAM_PREFIX, self._on_state_change))
        engine.on_version_seen.append(of_streams(STREAM_PREFIX, self._on_version_seen))

    async def threads_of(self, actor: Actor) -> list[Thread]:
        """The threads that this actor may read, most recently changed first."""
        await self._refresh()
        name = EVERYONE if is_leading(actor) else actor.principal
        streams = self._by_principal.get((actor.workspace, name), ())
        found = [self._threads[stream][1] for stream in streams]
        return sorted(found, key=lambda thread: (-thread.updated_at, thread.id))

    async def save(self) -> None:
        """Store a copy, so that the next start reads only what changed since."""
        if not self._is_complete:
            return
        shape = self.engine.snapshots.shape(self.engine.contexts["thread"])
        blob = with_checksum(msgspec.msgpack.encode(self._threads))
        position = await self.engine.events.position()
        await self.engine.events.save_snapshot(SNAPSHOT_NAME, Snapshot(position, shape, blob))

    async def _refresh(self) -> None:
        async with self._refreshing:
            if not self._is_complete:
                await self._index_all()
            while self._stale:
                await self._index_thread(next(iter(self._stale)))

    async def _index_all(self) -> None:
        newest = await self.engine.events.streams(STREAM_PREFIX)
        for stream, (version, thread) in (await self._load()).items():
            if newest.get(stream) == version and stream not in self._threads:
                self._remember(stream, version, thread)
        for stream, version in newest.items():
            known = self._threads.get(stream)
            if known is None or known[0] < version:
                await self._index_thread(stream)
        self._is_complete = True
        await self.save()

    async def _load(self) -> Versions:
        """The stored copy; empty if other code wrote it."""
        kept = await self.engine.events.snapshot(SNAPSHOT_NAME)
        shape = self.engine.snapshots.shape(self.engine.contexts["thread"])
        if kept is None or kept.shape != shape:
            return {}
        try:
            return msgspec.msgpack.decode(without_checksum(kept.blob), type=Versions)
        except (msgspec.MsgspecError, ValueError):
            return {}

    async def _index_thread(self, stream: str) -> None:
        self._stale.discard(stream)
        try:
            thread: Thread = await self.engine.state(stream)
        except DamagedError:  # reading it reports the damage; the others are listed
            return
        opened = self.engine.streams.get(stream)
        if opened is not None and thread.exists:
            self._remember(stream, opened.base.version, thread)

    def _on_state_change(self, stream: str, _: Sequence[EncodedRecord]) -> None:
        opened = self.engine.streams.get(stream)
        if opened is not None:
            self._remember(stream, opened.base.version, opened.base.state)

    def _on_version_seen(self, stream: str, version: int) -> None:
        known = self._threads.get(stream)
        if version > (known[0] if known else 0):
            self._stale.add(stream)

    def _remember(self, stream: str, version: int, thread: Thread) -> None:
        known = self._threads.get(stream)
        self._threads[stream] = (version, thread)
        if known is None or known[1].participants != thread.participants:
            for principal in principals_of(thread):
                self._by_principal.setdefault(principal, set()).add(stream)
        for notify in self.on_change:
            notify(thread)


def principals_of(thread: Thread) -> Iterator[Principal]:
    """Who may find this thread in a list; no one is ever removed from one."""
    for name in (EVERYONE, thread.created_by, *thread.participants):
        yield thread.workspace, name


async def save_index(index: ThreadIndex) -> None:
    """Store the copy; without it the next start is only slower."""
    try:
        await index.save()
    except StoreError:
        return
