"""Being in a room without a connection: somebody is there as long as they keep asking."""

import asyncio
from collections import OrderedDict

from accord.core.kernel.actor import Actor
from accord.core.room.state import Room
from accord.engine.cell import Cell
from accord.engine.engine import Engine
from accord.engine.pulse import beats_of
from accord.engine.scheduler import Scheduler
from accord.transports.caller import RUNTIME

MOST_VISITORS = 10_000


class Visitor:
    """A member who comes by now and then; what the room hears they read from its log."""

    def __init__(self, lobby: "Lobby", stream: str, seat: str) -> None:
        self.lobby = lobby
        self.stream = stream
        self.seat = seat
        self.runtime = RUNTIME
        self.private = False  # nothing is sent
        self.alive = True
        self.last = lobby.engine.clock.now()

    @staticmethod
    def join(frames: list[bytes]) -> bytes:  # noqa: ARG004 - a peer's shape
        """Nothing: nothing is sent."""
        return b""

    def write(self, data: bytes) -> None:
        """They read for themselves."""

    async def drained(self) -> None:
        """There is nothing to wait for."""

    def close(self, reason: str, *, again: bool = False) -> None:  # noqa: ARG002 - a peer's shape
        """They are out, until they ask again."""
        asyncio.get_running_loop().call_soon(self.lobby.gone, self)


class Lobby:
    """Everybody who is somewhere over HTTP, and since when they are silent."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.here: OrderedDict[str, Visitor] = OrderedDict()
        self.scheduler = Scheduler(engine.clock, self._due)

    def visitor(self, stream: str, seat: str) -> Visitor:
        """Whom a join brings in: the one who is there, or a new one."""
        return self._there(stream, seat) or Visitor(self, stream, seat)

    def settle(self, visitor: Visitor) -> None:
        """A way in was answered: from now on silence counts, if it led in."""
        if self._inside(visitor):
            name = key(visitor.stream, visitor.seat)
            self.here[name] = visitor
            self.here.move_to_end(name)
            self._forget()
            self._heard(visitor)

    def _forget(self) -> None:
        """Those who have been gone longest."""
        while len(self.here) > MOST_VISITORS:
            _, oldest = self.here.popitem(last=False)
            self.gone(oldest)

    def asked(self, cell: Cell, actor: Actor) -> None:
        """Somebody reads: a sign of life (OPEN-50), and presence where no connection is."""
        self.engine.pulse.noticed(cell, actor)
        if (there := self._there(cell.stream, actor.seat)) is not None:
            self._heard(there)
        elif self._comes_back(cell, actor):
            visitor = Visitor(self, cell.stream, actor.seat)
            self.engine.arrivals.settle(cell, visitor)
            self.settle(visitor)

    def _comes_back(self, cell: Cell, actor: Actor) -> bool:
        """A member by a token; on trust, one who came over HTTP before (OPEN-29)."""
        room: Room = cell.base.state
        member = room.members.get(actor.seat)
        if member is None or room.ended:
            self.here.pop(key(cell.stream, actor.seat), None)
            return False
        was_here = key(cell.stream, actor.seat) in self.here or member.transport == "http"
        elsewhere = any(
            peer.seat == actor.seat for peer in self.engine.peers.connected(cell.stream)
        )
        return not elsewhere and (actor.grant is not None or was_here)

    def spoke(self, stream: str, seat: str) -> None:
        """Somebody posts."""
        if (there := self._there(stream, seat)) is not None:
            self._heard(there)

    def gone(self, visitor: Visitor) -> None:
        """Not there any more, until they ask again."""
        visitor.alive = False
        if self.here.get(name := key(visitor.stream, visitor.seat)) is visitor:
            self.scheduler.set(name, None)
        self.engine.peers.gone(visitor)

    def _there(self, stream: str, seat: str) -> Visitor | None:
        visitor = self.here.get(key(stream, seat))
        return visitor if visitor is not None and self._inside(visitor) else None

    def _inside(self, visitor: Visitor) -> bool:
        return visitor.stream in self.engine.peers.places.get(visitor, ())

    def _heard(self, visitor: Visitor) -> None:
        visitor.last = self.engine.clock.now()
        name = key(visitor.stream, visitor.seat)
        if name not in self.scheduler.when:
            self.scheduler.set(name, visitor.last + self._patience(visitor.stream))

    def _due(self, name: str) -> None:
        """Whoever was heard meanwhile stays; the others are as good as disconnected."""
        visitor = self.here.get(name)
        if visitor is None:
            self.scheduler.set(name, None)
            return
        until = visitor.last + self._patience(visitor.stream)
        if until > self.engine.clock.now():
            self.scheduler.set(name, until)
        else:
            self.gone(visitor)

    def _patience(self, stream: str) -> int:
        """Idle, then away, then a beat without an answer: milliseconds of silence."""
        beats = beats_of(self.engine.cells.get(stream))
        return beats.away + beats.every if beats is not None else 0


def key(stream: str, seat: str) -> str:
    """One name for a seat in a room; neither holds a line break."""
    return f"{stream}\n{seat}"
