"""Connections: who hears a room, what is written to them, and when they are gone."""

from collections.abc import Container, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from accord.core.kernel.actor import PRESENCE
from accord.core.kernel.authority import May
from accord.core.kernel.log import Door, Effect, Forget, Record, Say, Seats, Stash, Tell
from accord.core.kernel.refusal import Why
from accord.engine.cell import Cell, Outcome, Peer
from accord.engine.ports import Sealed
from accord.engine.replay import Entry, entry_of
from accord.engine.run import Run

if TYPE_CHECKING:
    from accord.engine.engine import Engine

# Looking a member of an enum up takes longer than all else a record costs here.
IN, OUT = Door.IN, Door.OUT
NOBODY: dict[Peer, None] = {}
# Refusals of what the server says itself that pass by themselves.
PASSING = frozenset({Why.UNAVAILABLE, Why.TOO_MANY})
# Bytes for a room, and for whom they are (None: everybody).
Line = tuple[bytes, Seats | None]
SAID_ALREADY: Line = (b"", frozenset())


class Peers:
    """Which connections hear which stream."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.rooms: dict[str, dict[Peer, None]] = {}
        self.halls = engine.arrivals.halls
        self.places: dict[Peer, set[str]] = {}
        self.unsaid: set[tuple[str, str]] = set()

    # Coming and going

    def hears(self, stream: str, peer: Peer) -> bool:
        """Whether this connection is in the room."""
        return peer in self.rooms.get(stream, ())

    def listened(self, stream: str) -> bool:
        """Whether any connection is in the room or on its way in."""
        return stream in self.rooms or stream in self.halls

    def connected(self, stream: str) -> list[Peer]:
        """Every connection that is in the room or on its way in."""
        return [*self.rooms.get(stream, ()), *self.halls.get(stream, ())]

    def others(self, stream: str, seat: str, runtime: str) -> bool:
        """Whether another runtime of that seat is in the room or on its way in."""
        return any(p.seat == seat and p.runtime != runtime for p in self._on_the_way(stream))

    def expect(self, stream: str, peer: Peer) -> None:
        """It comes in; an older connection of the same runtime gives way."""
        self.places.setdefault(peer, set()).add(stream)
        for old in self.connected(stream):
            if old is not peer and (old.seat, old.runtime) == (peer.seat, peer.runtime):
                self.detach(stream, old)
                old.close("replaced by a newer connection")

    def attach(self, stream: str, peer: Peer) -> None:
        """From now on it hears the room."""
        self.engine.arrivals.leave(stream, peer)
        self.rooms.setdefault(stream, {})[peer] = None
        self.places.setdefault(peer, set()).add(stream)
        self.engine.pulse.start(stream, peer.seat)

    def detach(self, stream: str, peer: Peer) -> None:
        """It hears the room no more."""
        self.silence(stream, peer)
        self.places.get(peer, set()).discard(stream)

    def cut_off(self, stream: str, seat: str | None = None) -> None:
        """They could miss something: they come back and are told where they left off."""
        for peer in self.connected(stream):
            if seat is None or peer.seat == seat:
                self.silence(stream, peer)
                peer.close("the session cannot go on now; join again", again=True)

    def disperse(self, stream: str) -> None:
        """Nothing happens there any more; those who are still being told of it are let be."""
        for peer in list(self.rooms.get(stream, ())):
            self.detach(stream, peer)
        self.engine.pulse.scheduler.set(stream, None)

    def silence(self, stream: str, peer: Peer) -> None:
        """Nothing more is written to it, though it may not know yet."""
        here = self.rooms.get(stream, {})
        here.pop(peer, None)
        if not here:
            self.rooms.pop(stream, None)
        self.engine.arrivals.leave(stream, peer)

    def gone(self, peer: Peer) -> None:
        """The connection is lost; whoever has no other one is disconnected (OPEN-32)."""
        for stream in self.places.pop(peer, set()):
            self.detach(stream, peer)
            self.left_meanwhile(stream, peer.seat)

    def left_meanwhile(self, stream: str, seat: str) -> None:
        """Who has no connection there, and none on its way, is absent."""
        if not any(peer.seat == seat for peer in self._on_the_way(stream)):
            self.absent(stream, seat)

    def _on_the_way(self, stream: str) -> Iterator[Peer]:
        """Connected ones, and those whose way in is not answered yet."""
        yield from self.rooms.get(stream, ())
        yield from (p for p, left in self.halls.get(stream, {}).items() if left is None)
        cell = self.engine.cells.get(stream)
        for asked in cell.pending() if cell else ():
            if asked.message.body.needs is May.ENTER and asked.peer and asked.peer.alive:
                yield asked.peer

    def absent(self, stream: str, seat: str) -> None:
        """Put on record that nobody answers for this seat."""
        self.engine.pulse.stop(stream, seat)
        context = self.engine.contexts[stream.partition("/")[0]]
        if context.absent is not None:
            body = context.absent(seat, self.engine.clock.now())
            self.engine.tell(stream, body, PRESENCE, partial(self._recorded, stream, seat))

    def _recorded(self, stream: str, seat: str, outcome: Outcome) -> None:
        if outcome.refused is not None and outcome.refused.why in PASSING:
            self.unsaid.add((stream, seat))

    def say_again(self, stream: str) -> None:
        """The store works again: put on record who was lost meanwhile."""
        due = {each for each in self.unsaid if each[0] == stream}
        self.unsaid -= due
        for _, seat in due:
            self.left_meanwhile(stream, seat)

    # Delivering

    def deliver(self, cell: Cell, outbox: Iterable[Outcome | Run]) -> None:
        """Everything that was decided, to its audience, in one write per connection."""
        lines: list[Line] = []
        entering: dict[Peer, Entry] = {}
        astray: list[Outcome] = []
        here = self.rooms.get(cell.stream, NOBODY)
        for outcome in outbox:
            if isinstance(outcome, Run):
                if outcome.peer in here:
                    lines += zip(outcome.frames(), repeat(outcome.to))
                else:
                    for each in outcome.outcomes():
                        self._spread(cell, each, lines, entering)
            elif outcome.again or outcome.refused is not None:
                astray.append(outcome)
            else:
                self._spread(cell, outcome, lines, entering)
        self._write(cell.stream, lines)
        if entering or astray:
            self.engine.arrivals.open_doors(cell, entering, astray)

    def _spread(
        self, cell: Cell, outcome: Outcome, lines: list[Line], entering: dict[Peer, Entry]
    ) -> None:
        """What came of one message: lines for the room, and who comes and goes by it."""
        if outcome.says:
            self._hold(cell, outcome.says)
        peer = outcome.asked.peer
        if peer is not None and peer not in self.rooms.get(cell.stream, NOBODY):
            self._from_outside(cell, outcome, peer, entering)
        for sealed in outcome.sealed:
            record = sealed.record
            event = record.event
            if (frame := sealed.frame) is not None:
                plain = record.fork is None and not event.whispers
                lines.append((frame, record.to) if plain else self._line(cell, sealed, lines))
            if event.door is OUT:
                self._write(cell.stream, lines)
                lines.clear()
                self._put_out(cell, record, entering)
        if outcome.says:
            said = list(self._said(outcome))
            lines += said
            self._aside(cell.stream, peer, said, entering)

    def _line(self, cell: Cell, sealed: Sealed, before: list[Line]) -> Line:
        """A record's bytes for those who may see it; a secret is whispered behind all `before`."""
        record, frame = sealed.record, sealed.frame or b""
        to = record.to if record.fork is None else cell.context.audience(cell.base.state, record)
        if not record.event.whispers:
            return frame, to
        self._write(cell.stream, before)
        before.clear()
        for peer in list(self.rooms.get(cell.stream, NOBODY)):
            if to is None or peer.seat in to:
                peer.write(peer.join([self._told(cell, sealed, peer)]))
        return SAID_ALREADY

    def _told(self, cell: Cell, sealed: Sealed, peer: Peer) -> bytes:
        """A record as this peer hears it: a secret's value where nobody reads along (PVP 20.3)."""
        record = sealed.record
        if not record.event.whispers or not peer.private:
            return sealed.frame or b""
        value = self.engine.vault.value(cell.stream, key_of(record))
        return self.engine.codec.whisper(record, value or "")

    def _hold(self, cell: Cell, effects: Iterable[Effect]) -> None:
        """Secrets come and go with what is on record about them."""
        for effect in effects:
            if isinstance(effect, Stash):
                self.engine.vault.stash(cell.stream, effect.key, effect.value)
            elif isinstance(effect, Forget):
                self.engine.vault.forget(cell.stream, effect.key)

    def _said(self, outcome: Outcome) -> Iterator[Line]:
        """What is told and not kept."""
        engine = self.engine
        for said in outcome.says:
            if isinstance(said, Say | Tell):
                id, at = engine.ids(), engine.clock.now()
                yield engine.codec.say(id, at, outcome.asked.message, said), said.to

    def shout(self, stream: str, frame: bytes) -> None:
        """To everybody who is connected, at once."""
        self._write(stream, [(frame, None)])

    def _from_outside(
        self, cell: Cell, outcome: Outcome, peer: Peer, entering: dict[Peer, Entry]
    ) -> None:
        """A sender who is not in the room comes in now, or hears just what came of its message."""
        if peer in entering:
            return
        hall = self.halls.get(cell.stream, NOBODY)
        comes_in = any(sealed.record.event.door is IN for sealed in outcome.sealed)
        if peer in hall:
            if comes_in:
                hall[peer] = None
        elif comes_in:
            entering[peer] = entry_of(cell, outcome.asked, peer)
        else:
            sealed = [s for s in outcome.sealed if s.frame and cell.may_see(s.record, peer.seat)]
            mine = [self._told(cell, each, peer) for each in sealed]
            if mine:
                peer.write(peer.join(mine))

    def _aside(
        self, stream: str, peer: Peer | None, said: Iterable[Line], entering: Container[Peer]
    ) -> None:
        """The answer to a sender who is neither in the room nor on the way in."""
        if peer is None or peer in entering or peer in self.connected(stream):
            return
        mine = [frame for frame, to in said if to is not None and peer.seat in to]
        if mine:
            peer.write(peer.join(mine))

    def deliver_foreign(self, cell: Cell, fresh: Iterable[Sealed]) -> None:
        """What another process appended."""
        lines: list[Line] = []
        for sealed in fresh:
            if sealed.record.event.hushes:
                # Ours is worth nothing any more; the new one, if any, is held elsewhere.
                self.engine.vault.forget(cell.stream, key_of(sealed.record))
            if sealed.record.said is not None:
                lines.append(self._line(cell, sealed, lines))
            if sealed.record.event.door is OUT:
                self._write(cell.stream, lines)
                lines = []
                self._put_out(cell, sealed.record, {})
        self._write(cell.stream, lines)

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
        seat: str = record.event.seat  # type: ignore[attr-defined]  # who goes out has one
        hall = self.halls.get(cell.stream, {})
        for peer in [peer for peer in hall if peer.seat == seat]:
            hall[peer] = record.version
        for peer in [p for p in self.rooms.get(cell.stream, ()) if p.seat == seat]:
            self.detach(cell.stream, peer)
        for peer in [p for p in entering if p.seat == seat]:
            self.engine.arrivals.let_in(cell, entering.pop(peer), record.version)


def may_see(record: Record, seat: str) -> bool:
    """Whether a record is for this seat."""
    return record.to is None or seat in record.to


def key_of(record: Record) -> str:
    """The secret that a record is about, if it whispers or hushes."""
    return record.said.key  # type: ignore[union-attr, no-any-return]  # such a body has one
