"""Heartbeats: members are asked for a sign of life, and their silence is put on record."""

from typing import TYPE_CHECKING

from accord.core.kernel.actor import PRESENCE, Actor
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Beats, Instant, Recall, Silence
from accord.engine.cell import Cell
from accord.engine.scheduler import Scheduler

if TYPE_CHECKING:
    from accord.engine.engine import Engine


class Pulse:
    """Beats in every room that somebody is connected to."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.scheduler = Scheduler(engine.clock, self.beat)

    def start(self, stream: str, seat: str) -> None:
        """Somebody came in: they are here now, and the room is asked from now on."""
        cell = self.engine.cells.get(stream)
        beats = beats_of(cell)
        if cell is None or beats is None:
            return
        now = self.engine.clock.now()
        cell.seen[seat] = now
        if stream not in self.scheduler.when:
            self.scheduler.set(stream, now + beats.every)

    def stop(self, stream: str, seat: str) -> None:
        """Nobody answers for this seat: what it sends from elsewhere does not make it present."""
        if cell := self.engine.cells.get(stream):
            cell.seen.pop(seat, None)
            cell.quiet.pop(seat, None)

    def beat(self, stream: str) -> None:
        """Ask everybody who is connected, and note who has been silent."""
        cell = self.engine.cells.get(stream)
        peers = self.engine.peers.rooms.get(stream)
        beats = beats_of(cell)
        if cell is None or beats is None or not peers:
            self.scheduler.set(stream, None)
            return
        now = self.engine.clock.now()
        self._ping(stream, beats, now)
        seats = {peer.seat for peer in peers}
        for seat in sorted(seats):
            self._listen(cell, beats, seat, now)
        cell.seen = {seat: at for seat, at in cell.seen.items() if seat in seats}
        self.scheduler.set(stream, self._next(cell, beats, now))

    def noticed(self, cell: Cell, actor: Actor) -> None:
        """Whatever a member sends is a sign of life, even if nothing comes of it (UNI-22)."""
        if actor.seat in cell.seen and cell.context.insider(cell.place.state, actor):
            cell.seen[actor.seat] = self.engine.clock.now()
            self.heard(cell, actor.seat)

    def heard(self, cell: Cell, seat: str) -> None:
        """Somebody who was silent speaks."""
        beats = beats_of(cell)
        if cell.quiet.pop(seat, None) and beats is not None:
            self._note(cell, beats, seat, Silence.OVER)

    def _ping(self, stream: str, beats: Beats, now: Instant) -> None:
        engine = self.engine
        said = Recall(engine.ids(), SYSTEM, beats.ping)
        frame = engine.codec.recall(now, stream.partition("/")[2], said)
        engine.peers.shout(stream, frame)

    def _listen(self, cell: Cell, beats: Beats, seat: str, now: Instant) -> None:
        silence = now - cell.seen.setdefault(seat, now)
        if silence < beats.idle:
            return
        how = Silence.AWAY if silence >= beats.away else Silence.IDLE
        if cell.quiet.get(seat) is not how:
            cell.quiet[seat] = how
            self._note(cell, beats, seat, how)

    def _note(self, cell: Cell, beats: Beats, seat: str, how: Silence) -> None:
        last = cell.seen.get(seat, self.engine.clock.now())
        self.engine.tell(cell.stream, beats.silent(seat, last, how), PRESENCE)

    def _next(self, cell: Cell, beats: Beats, now: Instant) -> Instant:
        """The next beat, or sooner if somebody's silence would mean more by then."""
        due = [now + beats.every]
        for last in cell.seen.values():
            due += [last + limit for limit in (beats.idle, beats.away) if last + limit > now]
        return min(due)


def beats_of(cell: Cell | None) -> Beats | None:
    """How a stream beats, if it does."""
    return None if cell is None else cell.context.beats(cell.base.state)
