"""Connections: who hears a room, what they missed, and when they are gone."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from accord.core.kernel.actor import PRESENCE
from accord.core.kernel.log import Door, Record, Seats
from accord.engine.cell import Asked, Cell, Outcome, Peer
from accord.engine.ports import Sealed, StoreError

if TYPE_CHECKING:
    from accord.engine.engine import Engine

PAGE = 500
# Looking a member of an enum up takes longer than all else a record costs here.
IN, OUT = Door.IN, Door.OUT
NOBODY: dict[Peer, None] = {}


# Bytes for a room, and for whom they are (None: everybody).
Line = tuple[bytes, Seats | None]


class Entry(NamedTuple):
    """Somebody coming in, who has seen everything up to `since`; None: nothing."""

    peer: Peer
    since: int | None


class Peers:
    """Which connections hear which stream."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.rooms: dict[str, dict[Peer, None]] = {}
        self.places: dict[Peer, set[str]] = {}
        self.arriving: dict[str, set[Peer]] = {}

    # Coming and going

    def hears(self, stream: str, peer: Peer) -> bool:
        """Whether this connection is in the room."""
        return peer in self.rooms.get(stream, ())

    def others(self, stream: str, seat: str, runtime: str) -> bool:
        """Whether another runtime of that seat is connected to the room."""
        here = self.rooms.get(stream, ())
        return any(peer.seat == seat and peer.runtime != runtime for peer in here)

    def attach(self, stream: str, peer: Peer) -> None:
        """From now on it hears the room; an older connection of the same runtime is replaced."""
        here = self.rooms.setdefault(stream, {})
        for old in [p for p in here if p is not peer and p.seat == peer.seat]:
            if old.runtime == peer.runtime:
                self.detach(stream, old)
                old.close("replaced by a newer connection")
        here[peer] = None
        self.places.setdefault(peer, set()).add(stream)

    def detach(self, stream: str, peer: Peer) -> None:
        """It hears the room no more."""
        here = self.rooms.get(stream, {})
        here.pop(peer, None)
        if not here:
            self.rooms.pop(stream, None)
        self.places.get(peer, set()).discard(stream)

    def gone(self, peer: Peer) -> None:
        """The connection is lost; whoever has no other one is disconnected (OPEN-32)."""
        for stream in self.places.pop(peer, set()):
            self.detach(stream, peer)
            self._left_meanwhile(stream, peer)

    def _left_meanwhile(self, stream: str, peer: Peer) -> None:
        if not any(other.seat == peer.seat for other in self.rooms.get(stream, ())):
            self.absent(stream, peer.seat)

    def absent(self, stream: str, seat: str) -> None:
        """Put on record that nobody answers for this seat."""
        context = self.engine.contexts[stream.partition("/")[0]]
        if context.absent is not None:
            now = self.engine.clock.now()
            self.engine.tell(stream, context.absent(seat, now), PRESENCE)

    # Delivering

    def deliver(self, cell: Cell, outbox: Iterable[Outcome]) -> None:
        """Everything that was decided, to its audience, in one write per connection."""
        lines: list[Line] = []
        entering: dict[Peer, Entry] = {}
        here = self.rooms.get(cell.stream, NOBODY)
        for outcome in outbox:
            if outcome.again or outcome.refused is not None:
                continue
            peer = outcome.asked.peer
            if peer is not None and peer not in here:
                self._from_outside(cell, outcome, peer, entering)
            for sealed in outcome.sealed:
                record = sealed.record
                if sealed.frame is not None:
                    lines.append((sealed.frame, record.to))
                if record.event.door is OUT:
                    self._write(cell.stream, lines)
                    lines = []
                    self._put_out(cell, record, entering)
            for said in outcome.says:
                lines.append((self._say(outcome, said), said.to))
        self._write(cell.stream, lines)
        for entry in entering.values():
            self._let_in(cell, entry)

    def _from_outside(
        self, cell: Cell, outcome: Outcome, peer: Peer, entering: dict[Peer, Entry]
    ) -> None:
        """A sender who is not in the room comes in now, or hears just what came of its message."""
        if peer in entering or peer in self.arriving.get(cell.stream, ()):
            return
        if any(sealed.record.event.door is IN for sealed in outcome.sealed):
            entering[peer] = self._entry(cell, outcome.asked, peer)
        else:
            mine = [s.frame for s in outcome.sealed if s.frame and may_see(s.record, peer.seat)]
            if mine:
                peer.write(peer.join(mine))

    def deliver_foreign(self, cell: Cell, fresh: Iterable[Sealed]) -> None:
        """What another process appended."""
        lines: list[Line] = [(s.frame, s.record.to) for s in fresh if s.frame]
        self._write(cell.stream, lines)

    def _say(self, outcome: Outcome, said: object) -> bytes:
        engine = self.engine
        return engine.codec.say(engine.ids(), engine.clock.now(), outcome.asked.message, said)  # type: ignore[arg-type]

    def _write(self, stream: str, lines: list[Line]) -> None:
        here = self.rooms.get(stream)
        if not here or not lines:
            return
        frames = [frame for frame, to in lines if to is None]
        if len(frames) < len(lines):
            self._write_each(here, lines)
            return
        joined: dict[type[Peer], bytes] = {}
        for peer in list(here):
            kind = type(peer)
            if (data := joined.get(kind)) is None:
                data = joined[kind] = kind.join(frames)
            peer.write(data)

    def _write_each(self, here: Iterable[Peer], lines: list[Line]) -> None:
        for peer in list(here):
            mine = [frame for frame, to in lines if to is None or peer.seat in to]
            if mine:
                peer.write(peer.join(mine))

    def _put_out(self, cell: Cell, record: Record, entering: dict[Peer, Entry]) -> None:
        """Whoever left hears nothing that comes after."""
        seat: str = record.event.seat  # type: ignore[attr-defined]
        here = (*self.rooms.get(cell.stream, ()), *self.arriving.get(cell.stream, ()))
        for peer in [p for p in here if p.seat == seat]:
            self.detach(cell.stream, peer)
        for peer in [p for p in entering if p.seat == seat]:
            missed = self._missed(cell, entering.pop(peer), until=record.version)
            peer.write(peer.join(list(missed)))

    # Catching up

    def _entry(self, cell: Cell, asked: Asked, peer: Peer) -> Entry:
        """Where a joiner left off: behind the message its `ref` names (OPEN-37)."""
        ref = asked.message.ref
        last = (cell.index.get(ref) or asked.found.get(ref)) if ref else None
        return Entry(peer, last.record.version if last else None)

    def _let_in(self, cell: Cell, entry: Entry) -> None:
        """Roll call, what was missed, then the room as it goes on."""
        if not entry.peer.alive:
            self._left_meanwhile(cell.stream, entry.peer)
            return
        self.places.setdefault(entry.peer, set()).add(cell.stream)
        held = cell.window[0].record.version if cell.window else 1
        if entry.since is not None and entry.since + 1 < held:
            self.engine.spawn(self._page_in(cell, entry))
            return
        missed = list(self._missed(cell, entry))
        entry.peer.write(entry.peer.join([*self._roll_call(cell), *missed]))
        self.attach(cell.stream, entry.peer)

    def _missed(self, cell: Cell, entry: Entry, until: int | None = None) -> Iterator[bytes]:
        since, seat = entry.since or 0, entry.peer.seat
        for sealed in cell.window:
            record = sealed.record
            if sealed.frame is None or record.version <= since:
                continue
            if until is not None and record.version > until:
                return
            if may_see(record, seat):
                yield sealed.frame

    def _roll_call(self, cell: Cell) -> Iterator[bytes]:
        """Everybody who is here, unless the replay says it anyway."""
        engine, room = self.engine, cell.stream.partition("/")[2]
        for id, body in cell.context.welcome(cell.base.state):
            if id not in cell.index:
                yield engine.codec.recall(id, engine.clock.now(), room, body)

    async def _page_in(self, cell: Cell, entry: Entry) -> None:
        """Somebody who was away for long gets it all, page by page, and then the room."""
        arriving = self.arriving.setdefault(cell.stream, set())
        arriving.add(entry.peer)
        try:
            await self._pages(cell, entry)
        finally:
            arriving.discard(entry.peer)
            if not arriving:
                self.arriving.pop(cell.stream, None)

    async def _pages(self, cell: Cell, entry: Entry) -> None:
        peer, at = entry.peer, entry.since or 0
        peer.write(peer.join(list(self._roll_call(cell))))
        while at < cell.base.version:
            try:
                rows = await self.engine.events.read(cell.stream, at, PAGE)
            except StoreError:
                peer.close("the history cannot be read now; join again", again=True)
                return
            sealed = [self.engine.codec.unseal(r.stream, r.version, r.body) for r in rows]
            mine = [s.frame for s in sealed if s.frame and may_see(s.record, peer.seat)]
            if mine:
                peer.write(peer.join(mine))
            at = rows[-1].version
            await peer.drained()
        if cell.stream in self.places.get(peer, ()):
            self.attach(cell.stream, peer)


def may_see(record: Record, seat: str) -> bool:
    """Whether a record is for this seat."""
    return record.to is None or seat in record.to
