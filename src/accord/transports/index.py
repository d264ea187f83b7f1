"""Which sessions somebody is or was in, so that a list of them opens few."""

from collections import OrderedDict
from sys import intern
from typing import Any, NamedTuple

import msgspec

from accord.core.kernel.actor import Actor
from accord.core.room.state import Room
from accord.core.views import sessions
from accord.engine.engine import Engine
from accord.engine.ports import DamagedError

MOST_INDEXED = 65_536
NOBODY = ""


class Line(NamedTuple):
    """What a list says of a session that is over, because it will always say that."""

    words: bytes
    members: frozenset[str]

    @classmethod
    def of(cls, room: Room) -> "Line | None":
        """None while it goes on."""
        if not room.ended:
            return None
        words = msgspec.json.encode(sessions.summary(room, NOBODY))
        return cls(words, frozenset(map(intern, room.members)))

    def told(self, seat: str) -> dict[str, Any]:
        """To somebody who was in it to the end, or left before."""
        words: dict[str, Any] = msgspec.json.decode(self.words)
        return words | {"standing": "member" if seat in self.members else "former"}


class Seen(NamedTuple):
    """A room as it was when it was looked at, and who is or was in it."""

    version: int
    who: frozenset[tuple[str, str]]
    line: Line | None = None


class Index:
    """Every room by who is or was in it; a room is looked into again once it has moved on.

    Of very many rooms the newest looked at are remembered; the others are looked at again.
    """

    def __init__(self, engine: Engine, most: int = MOST_INDEXED) -> None:
        self.engine = engine
        self.most = most
        self.seen: OrderedDict[str, Seen] = OrderedDict()
        self.rooms: dict[tuple[str, str], set[str]] = {}

    async def of(self, actor: Actor) -> dict[str, Seen]:
        """The streams that may be known to this principal."""
        newest = await self.engine.events.streams("room/")
        who, forgotten = (actor.workspace, actor.seat), dict[str, Seen]()
        for name, version in newest.items():
            seen = self.seen.get(name)
            if seen is None or version > seen.version:
                seen = await self._look(name, version)
                if who in seen.who and len(newest) > self.most:
                    forgotten[name] = seen
        return {name: self.seen[name] for name in self.rooms.get(who, ())} | forgotten

    async def _look(self, name: str, version: int) -> Seen:
        try:
            room: Room = await self.engine.state(name)
        except DamagedError:
            return self._remember(name, Seen(version, frozenset()))
        cell = self.engine.cells.get(name)
        seats = (*room.members, *room.former)
        here = frozenset((intern(room.workspace), intern(seat)) for seat in seats)
        return self._remember(name, Seen(cell.base.version if cell else 0, here, Line.of(room)))

    def _remember(self, name: str, seen: Seen) -> Seen:
        self._forget(name)
        self.seen[name] = seen
        for who in seen.who:
            self.rooms.setdefault(who, set()).add(name)
        while len(self.seen) > self.most:
            self._forget(next(iter(self.seen)))
        return seen

    def _forget(self, name: str) -> None:
        seen = self.seen.pop(name, None)
        for who in seen.who if seen else ():
            self.rooms[who].discard(name)
            if not self.rooms[who]:
                del self.rooms[who]
