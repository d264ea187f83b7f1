"""An index of sessions by principal, so that listing them does not load all of them."""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from sys import intern
from typing import Any, NamedTuple

import msgspec

from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Instant
from accord.core.room.state import Room
from accord.core.views import sessions
from accord.engine.engine import Engine
from accord.engine.ports import DamagedError, EncodedRecord, StoreError

MAX_INDEXED_SESSIONS = 65_536
ROOM_PREFIX = "room/"
NO_PRINCIPAL = ""
Principal = tuple[str, str]
NO_ONE: Principal = ("", NO_PRINCIPAL)


class EndedSummary(NamedTuple):
    """The summary of an ended session, which never changes."""

    encoded: bytes
    members: frozenset[str]

    @classmethod
    def of_room(cls, room: Room) -> "EndedSummary | None":
        """None while the session is open."""
        if not room.ended:
            return None
        summary = msgspec.json.encode(sessions.session_summary(room, NO_PRINCIPAL))
        return cls(summary, frozenset(map(intern, room.members)))

    def summary_for(self, member: str) -> dict[str, Any]:
        """The summary with this principal's standing: member until the end, or former."""
        summary: dict[str, Any] = msgspec.json.decode(self.encoded)
        return summary | {"standing": "member" if member in self.members else "former"}


class IndexEntry(NamedTuple):
    """A session at a version, the principals that are or were in it, and what is open in it."""

    version: int
    principals: frozenset[tuple[str, str]]
    ended_summary: EndedSummary | None = None
    needs_attention: bool = False
    last_gate_ended_at: Instant = 0


# Called when an entry was added or replaced; must return quickly.
ChangeListener = Callable[[str, IndexEntry], None]


class SessionIndex:
    """Sessions by principal, kept up to date by every commit.

    The first request reads all sessions once; after that a request costs what its caller's own
    sessions cost. Beyond `max_entries` sessions only the most recently indexed are kept, and each
    request reads the others again.
    """

    def __init__(self, engine: Engine, max_entries: int = MAX_INDEXED_SESSIONS) -> None:
        self.engine = engine
        self.max_entries = max_entries
        self.entries: OrderedDict[str, IndexEntry] = OrderedDict()
        self.by_principal: dict[Principal, set[str]] = {}
        self.on_change: list[ChangeListener] = []
        self._is_complete = False
        self._stale: set[str] = set()  # changed by another process since they were indexed
        self._refreshing = asyncio.Lock()
        engine.on_state_change.append(self._on_state_change)
        engine.on_version_seen.append(self._on_version_seen)

    async def sessions_of(self, actor: Actor) -> dict[str, IndexEntry]:
        """The streams this principal may know about."""
        principal = (actor.workspace, actor.principal)
        unindexed = await self._refresh(principal)
        return {
            name: self.entries[name] for name in self.by_principal.get(principal, ())
        } | unindexed

    async def _refresh(self, principal: Principal) -> dict[str, IndexEntry]:
        async with self._refreshing:
            unindexed = {} if self._is_complete else await self._index_all(principal)
            while self._stale:
                await self._index_room(next(iter(self._stale)), 0)
            return unindexed

    async def _index_all(self, principal: Principal) -> dict[str, IndexEntry]:
        """Index every session; returns the principal's sessions if there are too many to keep."""
        newest = await self.engine.events.streams(ROOM_PREFIX)
        unindexed: dict[str, IndexEntry] = {}
        for name, version in newest.items():
            entry = self.entries.get(name)
            if entry is None or version > entry.version:
                entry = await self._index_room(name, version)
                if principal in entry.principals and len(newest) > self.max_entries:
                    unindexed[name] = entry
        self._is_complete = len(newest) <= self.max_entries
        return unindexed

    async def _index_room(self, name: str, version: int) -> IndexEntry:
        try:
            room: Room = await self.engine.state(name)
        except DamagedError:
            self._stale.discard(name)
            return self._remember(name, IndexEntry(version, frozenset()))
        self._stale.discard(name)
        stream = self.engine.streams.get(name)
        return self._remember(name, entry_of(room, stream.base.version if stream else 0))

    def _on_version_seen(self, name: str, version: int) -> None:
        """Another process may have appended; the next request, or a listener, reads the session."""
        is_in_use = self._is_complete or self._refreshing.locked()
        known = self.entries.get(name)
        if not is_in_use or not name.startswith(ROOM_PREFIX) or name in self._stale:
            return
        if version > (known.version if known else 0):
            self._stale.add(name)
            if self.on_change and not self._refreshing.locked():
                self.engine.tasks.spawn(self._refresh_stale())

    async def _refresh_stale(self) -> None:
        with contextlib.suppress(StoreError):  # the next request tries again
            await self._refresh(NO_ONE)

    def _on_state_change(self, name: str, _: Sequence[EncodedRecord]) -> None:
        stream = self.engine.streams.get(name)
        if stream is None or not name.startswith(ROOM_PREFIX):
            return
        room, version, known = stream.base.state, stream.base.version, self.entries.get(name)
        # Principals are never removed, so their number tells whether they changed.
        if known is None or len(known.principals) != len(room.members) + len(room.former):
            self._remember(name, entry_of(room, version))
        else:
            known = self.entries[name] = known._replace(
                version=version,
                ended_summary=EndedSummary.of_room(room),
                needs_attention=room.needs_attention,
                last_gate_ended_at=room.last_gate_ended_at,
            )
            self._notify(name, known)

    def _notify(self, name: str, entry: IndexEntry) -> None:
        for listener in self.on_change:
            listener(name, entry)

    def _remember(self, name: str, entry: IndexEntry) -> IndexEntry:
        self._forget(name)
        self.entries[name] = entry
        for principal in entry.principals:
            self.by_principal.setdefault(principal, set()).add(name)
        self._notify(name, entry)
        while len(self.entries) > self.max_entries:
            self._is_complete = False
            self._forget(next(iter(self.entries)))
        return entry

    def _forget(self, name: str) -> None:
        entry = self.entries.pop(name, None)
        for principal in entry.principals if entry else ():
            self.by_principal[principal].discard(name)
            if not self.by_principal[principal]:
                del self.by_principal[principal]


def entry_of(room: Room, version: int) -> IndexEntry:
    """The entry of a session at this version."""
    members = (*room.members, *room.former)
    return IndexEntry(
        version,
        frozenset((intern(room.workspace), intern(member)) for member in members),
        EndedSummary.of_room(room),
        room.needs_attention,
        room.last_gate_ended_at,
    )
